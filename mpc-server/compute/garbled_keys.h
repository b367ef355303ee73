// SPDX-License-Identifier: Apache-2.0
//
// Key work (key_work.h) by garbled circuits: a base key goes in, and
//
//   draw      what its usages have comes out as shares
//   verify    it is compared with what the record's usages have, which goes in as well; whether all
//             is equal is shown, and nothing else
//
// Keys of one enctype and the same usages are lanes of a run, up to sixteen.
#ifndef MPC_SERVER_COMPUTE_GARBLED_KEYS_H_
#define MPC_SERVER_COMPUTE_GARBLED_KEYS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/compute/protocol_choice.h"
#include "mpc-server/garble/garbled_run.h"
#include "mpc-server/garble/plan.h"
#include "mpc-server/garble/run_queue.h"
#include "mpc-server/share/session.h"
#include "mpc-server/store/key_record.h"

namespace mpckdc {

class GarbledKeys : public garble::RunQueue {
 public:
  explicit GarbledKeys(PartyContext& party) : party_(party) {}

  // Records are the caller's, and pass CheckKeyRecord() but for what a draw gives: the usages, by
  // the key's class. `agreed`: see NextGarbledRun().
  void BeginDraw(KeyRecord& record, const Digest& agreed);
  void BeginVerify(absl::Span<const KeyRecord* const> records, const Digest& agreed);
  // After Done(), of BeginVerify().
  const std::vector<bool>& equal() const { return equal_; }

  // What G1 sends for a key by itself.
  static size_t TableBytesOf(const Enctype& enctype, KeyClass key_class, KeyTask task);

 private:
  // Keys of one shape, its plan, and the run.
  struct Run {
    std::vector<size_t> lanes;  // of the records
    garble::Plan plan;
    std::vector<std::string> strings;
    std::unique_ptr<garble::GarbledRun> circuit;
  };

  void Begin(const Digest& agreed);
  Run& NewRun(const Enctype& enctype, absl::Span<const uint32_t> usages, KeyTask task,
              std::vector<size_t> lanes);
  void StartRun(Run& run, garble::SharedBits inputs, std::function<void()> then);

  PartyContext& party_;
  Digest agreed_{};
  std::vector<std::unique_ptr<Run>> runs_;
  std::vector<bool> equal_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_GARBLED_KEYS_H_
