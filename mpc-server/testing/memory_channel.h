// SPDX-License-Identifier: Apache-2.0
// Three parties on three threads of one process, for tests and benches. Deadlines are real time.
//
//   MemoryRing ring;
//   ring.SetInterceptor([](MemoryRing::Intercepted& m) { if (m.step == ...) m.payload[0] ^= 1; });
//   std::thread p0([&] { Run(ring.channel(0)); }); ...
#ifndef MPC_SERVER_TESTING_MEMORY_CHANNEL_H_
#define MPC_SERVER_TESTING_MEMORY_CHANNEL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "mpc-server/wire/peer_channel.h"

namespace mpckdc {

class MemoryRing {
 public:
  // A frame under way. The interceptor sees every frame before it is delivered, on the sender's
  // thread, one at a time, and may rewrite header bytes and payload, or drop it.
  struct Intercepted {
    int from;                   // party
    int to;                     // party
    FrameType type;
    std::string step;           // RoundId::step, or the frame type's name for control frames
    uint16_t round;
    absl::Span<uint8_t> header;  // kFrameHeaderSize bytes as sent
    absl::Span<uint8_t> payload;
    bool drop = false;
    std::optional<std::string> instead{};  // of the payload, of any length
  };
  using Interceptor = std::function<void(Intercepted&)>;

  MemoryRing();
  ~MemoryRing();

  PeerChannel& channel(int party);
  // Before any party runs.
  void SetInterceptor(Interceptor interceptor);
  // Every blocked and later call of every party fails with Unavailable.
  void Close();

 private:
  class Pipe;
  class Channel;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_MEMORY_CHANNEL_H_
