// SPDX-License-Identifier: Apache-2.0
//
// A message to a server while it is put together from encoded entries, and until gRPC has sent it.
// If one of them holds a share of a plaintext, the memory is wiped before it is freed.
#ifndef KDC_PLUGIN_CLIENT_MESSAGE_BUFFER_H_
#define KDC_PLUGIN_CLIENT_MESSAGE_BUFFER_H_

#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "absl/strings/string_view.h"

namespace mpckdc::client {

class MessageBuffer {
 public:
  MessageBuffer() = default;
  ~MessageBuffer();
  MessageBuffer(MessageBuffer&&) = default;
  MessageBuffer& operator=(MessageBuffer&&) = delete;

  void Append(absl::string_view entry, bool holds_shares);
  size_t size() const { return bytes_.size(); }
  int entries() const { return entries_; }

  // What gRPC sends; it has the memory from now on.
  static grpc::ByteBuffer Release(MessageBuffer message);

 private:
  void MakeRoom(size_t size);

  std::string bytes_;
  int entries_ = 0;
  bool holds_shares_ = false;
};

}  // namespace mpckdc::client

#endif  // KDC_PLUGIN_CLIENT_MESSAGE_BUFFER_H_
