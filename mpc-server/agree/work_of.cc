// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/steps.h"

#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/job/operation_table.h"

namespace mpckdc {
namespace {

// The checks have let the part through: its record is there and has the usage.
template <class Part>
AnyKeyUse UseOfKey(BatchRecords& records, const Part& part) {
  const KeyRecord* record = records.Find(part.handle);
  assert(record != nullptr && record->FindUsage(part.usage) != nullptr);
  return UseOf(*record, *record->FindUsage(part.usage));
}

// A key's facts that shape the batch or enter a header. The gate is left out: each server judges by
// its own.
void AppendFacts(const KeyInfo& info, std::string* out) {
  absl::StrAppend(out, AsText(info.handle), AsText(info.principal_id), info.enctype, ",",
                  static_cast<int>(info.key_class), ";");
}

}  // namespace

JobWork OpensOf(const ReceivedJob& received, BatchRecords& records, bool opens_only) {
  const Job& job = received.job;
  JobWork work;
  work.received = &received;
  if (job.client.has_value()) work.client = records.FindInfo(*job.client);
  work.opens_only = opens_only;
  for (const OpenPart& part : job.opens) work.AddOpen(UseOfKey(records, part), part);
  return work;
}

JobWork WorkOf(const ReceivedJob& received, BatchRecords& records,
               absl::FunctionRef<Nonce()> take_nonce,
               absl::FunctionRef<std::string(const SealPart&, const KeyInfo&)> header_of) {
  const Job& job = received.job;
  JobWork work = OpensOf(received, records, /*opens_only=*/false);
  for (const SealPart& part : job.seals) {
    const KeyInfo& key = records.Find(part.handle)->info;
    work.AddSeal(UseOfKey(records, part), part, take_nonce(), header_of(part, key));
  }
  for (const MakeMacPart& part : job.make_macs) {
    work.AddMakeMac(UseOfKey(records, part), part, take_nonce());
  }
  for (const VerifyMacPart& part : job.verify_macs) {
    work.AddVerifyMac(UseOfKey(records, part), part);
  }
  return work;
}

std::string FactsOf(const std::vector<JobWork>& work) {
  std::string facts;
  for (const JobWork& job : work) {
    if (job.client != nullptr) AppendFacts(*job.client, &facts);
    for (const OpenWork& open : job.opens) AppendFacts(*KeyOf(open.form).info, &facts);
    for (const SealWork& seal : job.seals) {
      AppendFacts(*KeyOf(seal).info, &facts);
      if (const auto* gcm = std::get_if<GcmSeal>(&seal)) facts.append(gcm->header);
    }
    for (const MakeMacWork& mac : job.make_macs) AppendFacts(*KeyOf(mac).info, &facts);
    for (const VerifyMacWork& mac : job.verify_macs) AppendFacts(*KeyOf(mac.form).info, &facts);
  }
  return facts;
}

}  // namespace mpckdc
