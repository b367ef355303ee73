// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "mpc-server/agree/steps.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc {
namespace {

// The longest chain of rounds among a job's parts: they run side by side.
class LongestPart {
 public:
  explicit LongestPart(BatchRecords* records) : records_(*records) {}

  void See(const Handle& handle, CtsPartKind kind, size_t bytes) {
    const KeyInfo* info = records_.FindInfo(handle);
    saw_all_ = saw_all_ && info != nullptr;
    const Enctype* enctype = info != nullptr ? FindEnctype(info->enctype) : nullptr;
    if (enctype == nullptr || enctype->is_gcm()) return;
    rounds_ = std::max(rounds_, CtsWork::RoundsOf(*enctype, kind, bytes));
  }
  uint64_t rounds() const { return rounds_; }
  bool saw_all() const { return saw_all_; }

 private:
  BatchRecords& records_;
  uint64_t rounds_ = 0;
  bool saw_all_ = true;
};

}  // namespace

// Anybody may send a bad pre-auth and behind it a long request, or a long "ticket". It shall not
// have a deep batch of its own, nor thousands of blocks in one with others, so it shows first that
// it is good.
void Measure(WaitingJob& waiting, BatchRecords& records) {
  if (waiting.measured) return;
  LongestPart longest(&records);
  const Job& job = waiting.job;
  for (const OpenPart& part : job.opens) {
    longest.See(part.handle, CtsPartKind::kOpen, part.message.size());
  }
  const uint64_t of_opens = longest.rounds();
  for (const SealPart& part : job.seals) {
    longest.See(part.handle, CtsPartKind::kSeal, part.max_plaintext);
  }
  for (const MakeMacPart& part : job.make_macs) {
    longest.See(part.handle, CtsPartKind::kMac, part.data.size());
  }
  for (const VerifyMacPart& part : job.verify_macs) {
    longest.See(part.handle, CtsPartKind::kMac, part.data.size());
  }
  const bool deep_behind = of_opens > 0 && of_opens <= limits::kLongBatchRounds &&
                           longest.rounds() > limits::kLongBatchRounds;
  const bool wide =
      of_opens == 0 && !job.opens.empty() && BlocksOfJob(job) > limits::kMaxUnprovenBlocks;
  waiting.opens_first = !waiting.proven && (deep_behind || wide);
  waiting.rounds = waiting.opens_first ? of_opens : longest.rounds();
  waiting.length = waiting.rounds > 0 ? JobLength::kLong : JobLength::kShort;
  waiting.measured = longest.saw_all();
}

}  // namespace mpckdc
