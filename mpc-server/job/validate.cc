// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/validate.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/job/message_format.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/job/preauth_timestamp.h"
#include "mpc-server/job/tgt_header.h"

namespace mpckdc {
namespace {

// One part of a job, whatever its kind.
struct PartRef {
  PartKind kind;
  uint32_t usage;
  const Handle* handle;
};

// Calls `check` for each part until one is not OK.
template <typename Check>
Judgement ForEachPart(const Job& job, Check check) {
  const auto all = [&check](PartKind kind, const auto& parts) {
    for (const auto& part : parts) {
      Judgement j = check(PartRef{kind, part.usage, &part.handle});
      if (!j.ok()) return j;
    }
    return Ok();
  };
  Judgement j = all(PartKind::kOpen, job.opens);
  if (j.ok()) j = all(PartKind::kSeal, job.seals);
  if (j.ok()) j = all(PartKind::kMakeMac, job.make_macs);
  if (j.ok()) j = all(PartKind::kVerifyMac, job.verify_macs);
  return j;
}

std::string Name(Operation operation, const PartRef& part) {
  return absl::StrCat(OperationName(operation), ": ", PartKindName(part.kind), " with key usage ",
                      part.usage);
}

size_t PartCount(const Job& job) {
  return job.opens.size() + job.seals.size() + job.make_macs.size() + job.verify_macs.size();
}

size_t CountOf(const Job& job, PartKind kind, uint32_t usage) {
  size_t count = 0;
  (void)ForEachPart(job, [&](const PartRef& part) {
    count += part.kind == kind && part.usage == usage;
    return Ok();
  });
  return count;
}

Judgement CheckOperation(const Job& job) {
  const OperationRule* rule = FindOperation(job.operation);
  if (rule == nullptr) {
    return Refuse(Verdict::kRefused,
                  absl::StrCat("operation ", static_cast<int>(job.operation), " is not in table"));
  }
  if (job.client.has_value() != rule->needs_client) {
    return Refuse(Verdict::kMalformed, absl::StrCat(rule->name, rule->needs_client
                                                                    ? " needs a client handle"
                                                                    : " takes no client handle"));
  }
  if ((job.grant != 0) != rule->needs_grant) {
    const char* const text = rule->needs_grant ? " needs a grant" : " takes no grant";
    return Refuse(Verdict::kMalformed, absl::StrCat(rule->name, text));
  }
  if (rule->needs_output && job.seals.empty() && job.make_macs.empty()) {
    return Refuse(Verdict::kRefused, absl::StrCat(rule->name, " asks for nothing"));
  }
  return Ok();
}

Judgement CheckParts(const Job& job) {
  if (PartCount(job) > limits::kMaxPartsPerJob) {
    return Refuse(Verdict::kMalformed, absl::StrCat(PartCount(job), " parts, at most ",
                                                    limits::kMaxPartsPerJob, " are allowed"));
  }
  const Judgement known = ForEachPart(job, [&job](const PartRef& part) {
    if (FindPart(job.operation, part.kind, part.usage) != nullptr) return Ok();
    return Refuse(Verdict::kRefused,
                  absl::StrCat(Name(job.operation, part), " is not in the table"));
  });
  if (!known.ok()) return known;
  for (const PartRule& rule : kPartRules) {
    if (rule.operation != job.operation) continue;
    const size_t count = CountOf(job, rule.kind, rule.usage);
    if (count >= rule.min_count && count <= rule.max_count) continue;
    return Refuse(Verdict::kRefused,
                  absl::StrCat(Name(job.operation, {rule.kind, rule.usage, nullptr}), ": ", count,
                               " parts, the table allows ", rule.min_count, " to ",
                               rule.max_count));
  }
  return Ok();
}

Judgement CheckSizes(const Job& job) {
  for (const OpenPart& part : job.opens) {
    if (part.message.size() > limits::kMaxOpenBytes) {
      return Refuse(Verdict::kMalformed, absl::StrCat("message of ", part.message.size(),
                                                      " bytes, at most ", limits::kMaxOpenBytes));
    }
  }
  for (const SealPart& part : job.seals) {
    if (part.max_plaintext > limits::kMaxSealBytes) {
      return Refuse(Verdict::kMalformed, absl::StrCat("seal of ", part.max_plaintext,
                                                      " bytes, at most ", limits::kMaxSealBytes));
    }
  }
  const auto too_long = [](const std::string& data) {
    return data.size() > limits::kMaxMacDataBytes;
  };
  for (const MakeMacPart& part : job.make_macs) {
    if (too_long(part.data)) return Refuse(Verdict::kMalformed, "checksum over too much data");
  }
  for (const VerifyMacPart& part : job.verify_macs) {
    if (too_long(part.data)) return Refuse(Verdict::kMalformed, "checksum over too much data");
  }
  return Ok();
}

// The gate asks for a verified timestamp: a job without one is refused before it costs anything.
Judgement CheckGateCanPass(const Job& job, const KeyInfo& client) {
  if (client.gate != Gate::kTimestamp || job.operation != Operation::kLogin) return Ok();
  if (!job.opens.empty()) return Ok();
  return Refuse(Verdict::kRefused,
                absl::StrCat("gate of ", client.principal,
                             " is timestamp and the job has no pre-auth to open"));
}

Judgement CheckHandles(const Job& job, KeyLookup lookup) {
  const auto unknown = [](const Handle& handle) {
    return Refuse(Verdict::kUnknownHandle, absl::StrCat("no key has handle ", HandleText(handle)));
  };
  if (job.client.has_value() && lookup(*job.client) == nullptr) return unknown(*job.client);
  return ForEachPart(job, [&](const PartRef& part) {
    return lookup(*part.handle) != nullptr ? Ok() : unknown(*part.handle);
  });
}

Judgement CheckPartKey(const Job& job, const PartRef& part, const KeyInfo& key,
                       const KeyInfo* client) {
  const PartRule& rule = *FindPart(job.operation, part.kind, part.usage);  // CheckParts
  if (!Allows(rule.classes, key.key_class)) {
    return Refuse(Verdict::kRefused,
                  absl::StrCat(Name(job.operation, part), ": key ", HandleText(key.handle),
                               " is of class ", KeyClassName(key.key_class)));
  }
  if (rule.of_client && key.principal_id != client->principal_id) {
    return Refuse(Verdict::kRefused, absl::StrCat(Name(job.operation, part), ": key ",
                                                  HandleText(key.handle),
                                                  " is not one of the client's"));
  }
  return Ok();
}

// ---- What the key's enctype says of a part ----

Judgement TooShort(const OpenPart& part) {
  return Refuse(Verdict::kBadTag,
                absl::StrCat("message of ", part.message.size(), " bytes is too short"));
}

Judgement CheckPreauthSize(const OpenPart& part, size_t plaintext) {
  if (part.usage != kUsagePreauth || plaintext <= kMaxPreauthPlaintext) return Ok();
  return Refuse(Verdict::kBadTag, absl::StrCat("pre-auth message of ", part.message.size(),
                                               " bytes holds no timestamp"));
}

// A ticket under a tgs key has a TGT header, one under a service key has none: the servers seal no
// other.
Judgement CheckGcmOpen(const OpenPart& part, const KeyInfo& key) {
  const auto message = ParseMessage(part.message);
  if (!message) return TooShort(part);
  if (part.usage == kUsagePreauth && !message->header.empty()) {
    return Refuse(Verdict::kBadTag, "pre-auth message with a header");
  }
  if (part.usage == kUsageTicket) {
    const bool good = key.key_class == KeyClass::kTgs
                          ? DecodeTgtHeader(message->header).has_value()
                          : message->header.empty();
    if (!good) return Refuse(Verdict::kBadTag, "no ticket that the servers sealed has this header");
  }
  return CheckPreauthSize(part, message->PlaintextBytes());
}

// Such a ticket has no header, so nothing may be made from it.
Judgement CheckCtsOpen(const Job& job, const OpenPart& part, const Enctype& enctype) {
  const auto message = ParseCtsMessage(enctype, part.message);
  if (!message) return TooShort(part);
  if (job.operation == Operation::kReissueTicket) {
    return Refuse(Verdict::kRefused, absl::StrCat("a parent ticket of ", enctype.name,
                                                  " has no header: its origin is unknown"));
  }
  return CheckPreauthSize(part, message->PlaintextBytes());
}

Judgement CheckSealText(const SealPart& part, const Enctype& enctype) {
  const size_t want = enctype.is_gcm() ? 0 : part.max_plaintext;
  if (part.plaintext_share.size() == want) return Ok();
  return Refuse(Verdict::kMalformed,
                absl::StrCat("a seal of ", enctype.name, " for ", part.max_plaintext,
                             " bytes takes a plaintext share of ", want, " bytes, not of ",
                             part.plaintext_share.size()));
}

// Before anything of the job is verified: what takes long must be short.
Judgement CheckCtsLength(const Enctype& enctype, uint32_t usage, size_t bytes) {
  const size_t most = usage == kUsageAsReqChecksum ? limits::kMaxCtsRequestBytes
                                                   : limits::kMaxCtsMessageBytes;
  if (enctype.is_gcm() || bytes <= most) return Ok();
  return Refuse(Verdict::kMalformed, absl::StrCat(bytes, " bytes under a key of ", enctype.name,
                                                  ", key usage ", usage, ": at most ", most));
}

Judgement CheckLengths(const Job& job, KeyLookup lookup) {
  const auto check = [lookup](const auto& part, size_t bytes) {
    return CheckCtsLength(*FindEnctype(lookup(part.handle)->enctype), part.usage, bytes);
  };
  Judgement j = Ok();
  for (const OpenPart& part : job.opens) {
    if (j.ok()) j = check(part, part.message.size());
  }
  for (const SealPart& part : job.seals) {
    if (j.ok()) j = check(part, part.max_plaintext);
  }
  for (const MakeMacPart& part : job.make_macs) {
    if (j.ok()) j = check(part, part.data.size());
  }
  for (const VerifyMacPart& part : job.verify_macs) {
    if (j.ok()) j = check(part, part.data.size());
  }
  return j;
}

Judgement CheckFormats(const Job& job, KeyLookup lookup) {
  const auto enctype_of = [lookup](const Handle& handle) -> const Enctype& {
    return *FindEnctype(lookup(handle)->enctype);  // CheckKeyInfo
  };
  for (const OpenPart& part : job.opens) {
    const Enctype& enctype = enctype_of(part.handle);
    Judgement j = enctype.is_gcm() ? CheckGcmOpen(part, *lookup(part.handle))
                                   : CheckCtsOpen(job, part, enctype);
    if (!j.ok()) return j;
  }
  for (const SealPart& part : job.seals) {
    Judgement j = CheckSealText(part, enctype_of(part.handle));
    if (!j.ok()) return j;
  }
  for (const VerifyMacPart& part : job.verify_macs) {
    const Enctype& enctype = enctype_of(part.handle);
    const bool good = enctype.is_gcm() ? ParseChecksum(part.checksum).has_value()
                                       : part.checksum.size() == enctype.mac_bytes;
    if (!good) {
      return Refuse(Verdict::kBadTag, absl::StrCat("checksum of ", part.checksum.size(), " bytes"));
    }
  }
  return Ok();
}

}  // namespace

Judgement CheckShape(const Job& job) {
  Judgement j = CheckOperation(job);
  if (j.ok()) j = CheckParts(job);
  if (j.ok()) j = CheckSizes(job);
  return j;
}

Judgement CheckKeys(const Job& job, KeyLookup lookup) {
  Judgement j = CheckHandles(job, lookup);
  if (!j.ok()) return j;
  const KeyInfo* client = job.client.has_value() ? lookup(*job.client) : nullptr;
  if (client != nullptr && client->key_class != KeyClass::kUser) {
    return Refuse(Verdict::kRefused,
                  absl::StrCat("the client key is of class ", KeyClassName(client->key_class)));
  }
  j = ForEachPart(job, [&](const PartRef& part) {
    return CheckPartKey(job, part, *lookup(*part.handle), client);
  });
  if (j.ok() && client != nullptr) j = CheckGateCanPass(job, *client);
  if (j.ok()) j = CheckLengths(job, lookup);
  if (j.ok()) j = CheckFormats(job, lookup);
  return j;
}

}  // namespace mpckdc
