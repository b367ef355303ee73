// SPDX-License-Identifier: Apache-2.0
// One authenticated connection to one neighbour, over whatever protects its records. Nothing here
// blocks: each call does what it can and says for which socket event it waits. Internal to
// transport/.
//
//   Link --- TlsLink                 TLS records, OpenSSL's
//        +-- RawLink --- AeadLink    one record of our own per frame, keys from a TLS handshake
//                    +-- PlainLink   nothing; for benches only
#ifndef MPC_SERVER_WIRE_LINK_H_
#define MPC_SERVER_WIRE_LINK_H_

#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/wire/frame_format.h"
#include "mpc-server/wire/peer_channel.h"
#include "mpc-server/wire/socket.h"

namespace mpckdc {

// True: finished. False: would block; Events() says on what.
using Progress = absl::StatusOr<bool>;

class Link {
 public:
  explicit Link(Fd fd) : fd_(std::move(fd)) {}
  virtual ~Link() = default;

  int fd() const { return fd_.get(); }

  // Queues a frame behind what is still unsent. The second form keeps only a reference to the
  // payload, which must live until sent() has reached what queued() is afterwards.
  virtual void Queue(const FrameHeader& header, absl::Span<const uint8_t> payload) = 0;
  virtual void QueueReferring(const FrameHeader& header, absl::Span<const uint8_t> payload) = 0;
  virtual Progress Flush() = 0;
  // Bytes of frames, headers included, since the link was made.
  uint64_t queued() const { return counters_.bytes_sent; }
  uint64_t sent() const { return sent_; }
  // Forgets what is unsent (a referred payload may be about to die) and wipes what it wrote into
  // the target of an unfinished frame. After a frame cut short nothing more is ever sent: the peer
  // would take it for the rest of that frame.
  virtual void Abandon() = 0;

  // Reads one frame into `target`, which takes exactly a frame with the header `expected`. A
  // kAbort frame instead is Aborted, anything else DataLoss. Until it has finished, what is in
  // `target` may be anything.
  virtual Progress ReadInto(const FrameHeader& expected, absl::Span<uint8_t> target) = 0;
  // Reads any frame but a kRound. May be called again after "would block"; keeps what it has.
  virtual Progress ReadFrame(FrameHeader* header, SecretBytes* payload) = 0;

  // poll() events that the last unfinished calls wait for; none after they finished.
  short Events() const { return static_cast<short>(write_waits_ | read_waits_); }
  void ForgetEvents() { write_waits_ = read_waits_ = 0; }
  // Before poll() for reading. `whole`: do not wake before the whole expected frame has arrived,
  // where the link can say so to the kernel; a shorter frame then goes unnoticed. Returns whether
  // it was put off.
  virtual bool PutOffWaking(bool whole) { return static_cast<void>(whole), false; }

  const ChannelCounters& counters() const { return counters_; }

 protected:
  Fd fd_;
  short write_waits_ = 0, read_waits_ = 0;
  uint64_t sent_ = 0;
  bool cut_short_ = false;
  ChannelCounters counters_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_LINK_H_
