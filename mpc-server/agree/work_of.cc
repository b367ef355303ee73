// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/steps.h"

#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/job/operation_table.h"

namespace mpckdc {
namespace {

KeyUse UseOfKey(BatchRecords& records, const Handle& handle, uint32_t usage) {
  const KeyRecord* record = records.Find(handle);
  assert(record != nullptr && record->FindUsage(usage) != nullptr);
  return {&record->info, record->FindUsage(usage)};
}

// A key's facts that shape the batch or enter a header. The gate is left out: each server judges by
// its own.
void AppendFacts(const KeyInfo& info, std::string* out) {
  absl::StrAppend(out, AsText(info.handle), AsText(info.principal_id), info.enctype, ",",
                  static_cast<int>(info.key_class), ";");
}

}  // namespace

JobWork WorkOf(const ReceivedJob& received, BatchRecords& records,
               absl::FunctionRef<Nonce()> take_nonce,
               absl::FunctionRef<std::string(const SealPart&, const KeyInfo&)> header_of) {
  const Job& job = received.job;
  const auto key_of = [&records](const auto& part) {
    return UseOfKey(records, part.handle, part.usage);
  };
  JobWork work;
  work.received = &received;
  if (job.client.has_value()) work.client = records.FindInfo(*job.client);
  for (const OpenPart& part : job.opens) {
    OpenWork open;
    open.key = key_of(part);
    open.is_preauth = part.usage == kUsagePreauth;
    if (open.key.is_gcm()) {
      open.message = *ParseMessage(part.message);  // CheckFormats
    } else {
      open.cts = *ParseCtsMessage(open.key.enctype(), part.message);
    }
    work.opens.push_back(std::move(open));
  }
  for (const SealPart& part : job.seals) {
    const KeyUse key = key_of(part);
    work.seals.push_back({key, take_nonce(), header_of(part, *key.info), part.max_plaintext,
                          part.plaintext_share});
  }
  for (const MakeMacPart& part : job.make_macs) {
    work.make_macs.push_back({key_of(part), take_nonce(), part.data});
  }
  for (const VerifyMacPart& part : job.verify_macs) {
    VerifyMacWork mac;
    mac.key = key_of(part);
    mac.data = part.data;
    if (mac.key.is_gcm()) {
      mac.checksum = *ParseChecksum(part.checksum);
    } else {
      mac.mac = part.checksum;
    }
    work.verify_macs.push_back(std::move(mac));
  }
  return work;
}

std::string FactsOf(const std::vector<JobWork>& work) {
  std::string facts;
  for (const JobWork& job : work) {
    if (job.client != nullptr) AppendFacts(*job.client, &facts);
    for (const OpenWork& open : job.opens) AppendFacts(*open.key.info, &facts);
    for (const SealWork& seal : job.seals) {
      AppendFacts(*seal.key.info, &facts);
      facts.append(seal.header);
    }
    for (const MakeMacWork& mac : job.make_macs) AppendFacts(*mac.key.info, &facts);
    for (const VerifyMacWork& mac : job.verify_macs) AppendFacts(*mac.key.info, &facts);
  }
  return facts;
}

}  // namespace mpckdc
