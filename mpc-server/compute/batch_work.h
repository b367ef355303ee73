// SPDX-License-Identifier: Apache-2.0
//
// The computation of one batch of jobs on shares. Its structure (lanes, rounds, message lengths)
// follows from the agreed jobs alone and is the same at the three servers; what each server thinks
// of the results is judge.h.
//
//   ComputeBlocks   the parts under gcm keys (gcm_work.h): 40 or 56 rounds, 30 or 42 in a batch of
//                   few blocks; beside them those of enctypes 17 to 20 (cts_work.h), which take
//                   many more. A job of the latter that opens a message under a gcm key begins
//                   them when that message was found good, and a pre-auth in time
//   CheckTags       what is not judged yet: tags and zero blocks of opens, tags of verify_macs
//                                                                          (2 rounds, if any)
//   OpenTimestamps  plaintexts of the pre-auth messages whose tag is good, but for those that
//                   were opened already                                    (1 round, if any)
//   Verify          what was not proved before an opening                  (6 rounds, if any)
#ifndef MPC_SERVER_COMPUTE_BATCH_WORK_H_
#define MPC_SERVER_COMPUTE_BATCH_WORK_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/compute/job_work.h"
#include "mpc-server/compute/protocol_choice.h"
#include "mpc-server/share/circuit.h"

namespace mpckdc {

inline constexpr AesCut kBatchCut = {limits::kChunkBlocks, limits::kChunksUnderWay,
                                     limits::kRingBlocks};

// How a batch is computed, where its size is not to decide it: what the servers agreed on, and
// what mpc-bench compares. The same at the three servers.
struct FixedChoices {
  std::optional<Sbox> sbox;
  std::optional<Adder> adder;
  std::optional<CtsProtocol> protocol;  // none: as between servers that sit side by side
  bool garbled_gcm = false;
};

class BatchWork {
 public:
  // `rings`, `blocks`, `cache`, `circuits` and `work` are the caller's. `window` is the same at the
  // three servers.
  BatchWork(Rings& rings, AesBatch& blocks, PowersCache& cache, CtsCircuits& circuits,
            std::vector<JobWork>& work, const PreauthWindow& window = {},
            const FixedChoices& fixed = {});

  // `first`, of one round, is run together with the blocks (ConfirmView): before anything rests on
  // their first messages. Where all is garbled, tables go ahead of it (doc/garbled.md, "The view").
  absl::Status ComputeBlocks(Circuit& first);
  absl::Status CheckTags();
  absl::Status OpenTimestamps();
  // Has the two others check what was not opened to the servers and leaves them now: after it the
  // results may go.
  absl::Status Verify() { return rings_.Verify(&cost_); }
  bool verified() const { return rings_.verified(); }

  // The work of a part's family.
  const GcmWork& FamilyOf(const GcmPart&) const { return gcm_; }
  const CtsWork& FamilyOf(const CtsPart&) const { return cts_; }

  uint64_t aes_blocks() const { return gcm_.lanes(); }
  size_t kept_bytes() const { return gcm_.kept_bytes(); }
  const Cost& cost() const { return cost_; }
  // How the S-boxes of a batch of so many blocks are computed; the same at the three servers.
  static Sbox SboxOf(size_t blocks);

 private:
  Sbox ChosenSbox(size_t blocks) const;
  CtsProtocol ChosenProtocol() const;
  absl::Status JudgeGcmOpens();
  absl::Status RunCircuits(Circuit& first);
  absl::Status RunTables();
  void TakeGarbledVerdicts();
  void BeginCts();
  absl::Status OpenGcmTimestamps(const std::vector<OpenWork*>& opens);

  Rings& rings_;
  PartyContext& party_;  // ring 0
  GcmWork gcm_;
  CtsWork cts_;
  garble::RunQueue runs_;
  std::vector<JobWork>& work_;
  const PreauthWindow window_;
  const FixedChoices fixed_;
  Cost cost_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_BATCH_WORK_H_
