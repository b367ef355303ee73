// SPDX-License-Identifier: Apache-2.0
// An attacker on the wire between two servers, for tests: passes everything on, and what the
// connecting side sends record by record, so that one can be changed, repeated, held back or cut.
#ifndef MPC_SERVER_TESTING_RELAY_H_
#define MPC_SERVER_TESTING_RELAY_H_

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "mpc-server/wire/socket.h"

namespace mpckdc {

enum class Attack {
  kNone,
  kFlipHeader,   // a bit of the record's header
  kFlipPayload,  // a bit in the middle of what follows it
  kFlipEnd,      // a bit of the last byte: of the tag, where there is one
  kReplay,       // the record a second time
  kReorder,      // the record after the one behind it
  kDrop,
  kTruncate,     // half of the record, and the end of the connection
};

class TestRelay {
 public:
  // Passes connections to its port on to `target`, one at a time.
  // Frames in clear have `tag_size` bytes behind their payload.
  explicit TestRelay(std::string target, size_t tag_size = 16);
  ~TestRelay();

  std::string address() const;
  // The next record of the connecting side suffers it; those behind it do not.
  void Arm(Attack attack) { attack_ = attack; }

  // Records of the connecting side, by kind.
  int tls_records() const { return tls_records_; }
  int frames() const { return frames_; }

 private:
  using Bytes = std::vector<uint8_t>;
  void Run();
  Fd ToTarget() const;
  void Pass(const Fd& from, const Fd& to);
  // Records that are complete in `pending` leave for `to`. False: cut.
  bool PassRecords(Bytes* pending, const Fd& to);
  bool PassOne(Bytes record, const Fd& to);

  size_t RecordSize(const Bytes& bytes) const;

  const std::string target_;
  const size_t tag_size_;
  const Fd listener_;
  std::atomic<bool> stop_ = false;
  std::atomic<Attack> attack_ = Attack::kNone;
  std::atomic<int> tls_records_ = 0, frames_ = 0;
  Bytes held_;  // by kReorder
  std::thread thread_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_RELAY_H_
