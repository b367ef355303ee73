// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "mpc-server/agree/steps.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc {
namespace {

// What there is to compute of a job's parts.
class LoadOfParts {
 public:
  explicit LoadOfParts(BatchRecords* records) : records_(*records) { load_.jobs = 1; }

  // `bytes`: of a message to open all of it, of a text to seal the text.
  // Checksums that are compared say so.
  void See(const Handle& handle, CtsPartKind kind, size_t bytes, bool judged = false) {
    const KeyInfo* info = records_.FindInfo(handle);
    saw_all_ = saw_all_ && info != nullptr;
    const Enctype* enctype = info != nullptr ? FindEnctype(info->enctype) : nullptr;
    if (enctype == nullptr) return;
    if (enctype->is_gcm()) return SeeGcm(*enctype, kind, bytes, judged);
    if (kind == CtsPartKind::kOpen) bytes -= std::min(bytes, enctype->mac_bytes);
    if (kind == CtsPartKind::kSeal) bytes += kConfounderBytes;
    load_.AddPart(*enctype, kind, bytes);
  }
  void SeeGcm(const Enctype& enctype, CtsPartKind kind, size_t bytes, bool judged) {
    const bool text = kind != CtsPartKind::kMac;
    const size_t blocks = text ? 2 + BlocksOf(bytes) : 1;
    load_.AddGcmPart(enctype, blocks, bytes, !judged && kind != CtsPartKind::kOpen);
  }
  const CtsLoad& load() const { return load_; }
  bool saw_all() const { return saw_all_; }

 private:
  BatchRecords& records_;
  CtsLoad load_;
  bool saw_all_ = true;
};

}  // namespace

// Anybody may send a bad pre-auth and behind it a long request, or a long "ticket". It shall not
// have a deep batch of its own, nor thousands of blocks in one with others, so it shows first that
// it is good: whichever protocol computes it, since that is not chosen yet.
void Measure(WaitingJob& waiting, BatchRecords& records) {
  if (waiting.measured) return;
  LoadOfParts parts(&records);
  const Job& job = waiting.job;
  for (const OpenPart& part : job.opens) {
    parts.See(part.handle, CtsPartKind::kOpen, part.message.size());
  }
  const CtsLoad of_opens = parts.load();
  for (const SealPart& part : job.seals) {
    parts.See(part.handle, CtsPartKind::kSeal, part.max_plaintext);
  }
  for (const MakeMacPart& part : job.make_macs) {
    parts.See(part.handle, CtsPartKind::kMac, part.data.size());
  }
  for (const VerifyMacPart& part : job.verify_macs) {
    parts.See(part.handle, CtsPartKind::kMac, part.data.size(), true);
  }
  const bool deep_behind = of_opens.parts > 0 && of_opens.rounds <= limits::kLongBatchRounds &&
                           parts.load().rounds > limits::kLongBatchRounds;
  const bool wide =
      of_opens.parts == 0 && !job.opens.empty() && BlocksOfJob(job) > limits::kMaxUnprovenBlocks;
  waiting.opens_first = !waiting.proven && (deep_behind || wide);
  waiting.load = waiting.opens_first ? of_opens : parts.load();
  waiting.length = waiting.load.parts > 0 ? JobLength::kLong : JobLength::kShort;
  waiting.measured = parts.saw_all();
}

}  // namespace mpckdc
