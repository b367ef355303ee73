// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/client/message_buffer.h"

#include <grpcpp/support/slice.h>

#include <algorithm>
#include <utility>

#include "mpc-server/base/secret.h"

namespace mpckdc::client {

MessageBuffer::~MessageBuffer() {
  if (holds_shares_) Wipe(bytes_.data(), bytes_.size());
}

void MessageBuffer::Append(absl::string_view entry, bool holds_shares) {
  MakeRoom(bytes_.size() + entry.size());
  bytes_.append(entry.data(), entry.size());
  holds_shares_ |= holds_shares;
  ++entries_;
}

// A string that grows frees what it was as it is; here that is wiped.
void MessageBuffer::MakeRoom(size_t size) {
  if (!holds_shares_ || size <= bytes_.capacity()) return;
  std::string larger;
  larger.reserve(std::max(size, 2 * bytes_.capacity()));
  larger.append(bytes_);
  Wipe(bytes_.data(), bytes_.size());
  bytes_.swap(larger);
}

grpc::ByteBuffer MessageBuffer::Release(MessageBuffer message) {
  auto* owned = new MessageBuffer(std::move(message));
  const grpc::Slice slice(
      owned->bytes_.data(), owned->bytes_.size(),
      +[](void* p) { delete static_cast<MessageBuffer*>(p); }, owned);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace mpckdc::client
