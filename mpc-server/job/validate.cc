// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/validate.h"

#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/job/preauth_timestamp.h"
#include "mpc-server/job/ticket_header.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc {
namespace {

// Calls `check(kind, part)` for each part until one is not OK.
template <typename Check>
Judgement ForEachPart(const Job& job, Check check) {
  Judgement j = Ok();
  const auto all = [&](PartKind kind, const auto& parts) {
    for (const auto& part : parts) {
      if (j.ok()) j = check(kind, part);
    }
  };
  all(PartKind::kOpen, job.opens);
  all(PartKind::kSeal, job.seals);
  all(PartKind::kMakeMac, job.make_macs);
  all(PartKind::kVerifyMac, job.verify_macs);
  return j;
}

std::string Name(Operation operation, PartKind kind, uint32_t usage) {
  return absl::StrCat(OperationName(operation), ": ", PartKindName(kind), " with key usage ",
                      usage);
}

size_t BytesOf(const OpenPart& part) { return part.message.size(); }
size_t BytesOf(const SealPart& part) { return part.max_plaintext; }
size_t BytesOf(const MakeMacPart& part) { return part.data.size(); }
size_t BytesOf(const VerifyMacPart& part) { return part.data.size(); }

size_t PartCount(const Job& job) {
  return job.opens.size() + job.seals.size() + job.make_macs.size() + job.verify_macs.size();
}

size_t CountOf(const Job& job, PartKind kind, uint32_t usage) {
  size_t count = 0;
  (void)ForEachPart(job, [&](PartKind k, const auto& part) {
    count += k == kind && part.usage == usage;
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
  const bool no_output = rule->needs_output && job.seals.empty() && job.make_macs.empty();
  if (no_output || PartCount(job) == 0) {
    return Refuse(Verdict::kRefused, absl::StrCat(rule->name, " asks for nothing"));
  }
  return Ok();
}

Judgement CheckParts(const Job& job) {
  if (PartCount(job) > limits::kMaxPartsPerJob) {
    return Refuse(Verdict::kMalformed, absl::StrCat(PartCount(job), " parts, at most ",
                                                    limits::kMaxPartsPerJob, " are allowed"));
  }
  const Judgement known = ForEachPart(job, [&job](PartKind kind, const auto& part) {
    if (FindPart(job.operation, kind, part.usage) != nullptr) return Ok();
    return Refuse(Verdict::kRefused, absl::StrCat(Name(job.operation, kind, part.usage),
                                                  " is not in the table"));
  });
  if (!known.ok()) return known;
  for (const PartRule& rule : kPartRules) {
    if (rule.operation != job.operation) continue;
    const size_t count = CountOf(job, rule.kind, rule.usage);
    if (count >= rule.min_count && count <= rule.max_count) continue;
    return Refuse(Verdict::kRefused,
                  absl::StrCat(Name(rule.operation, rule.kind, rule.usage), ": ", count,
                               " parts, the table allows ", rule.min_count, " to ",
                               rule.max_count));
  }
  return Ok();
}

Judgement CheckSizes(const Job& job) {
  return ForEachPart(job, [](PartKind kind, const auto& part) {
    const size_t bytes = BytesOf(part);
    if (kind == PartKind::kOpen) {
      if (bytes <= limits::kMaxOpenBytes) return Ok();
      return Refuse(Verdict::kMalformed, absl::StrCat("message of ", bytes, " bytes, at most ",
                                                      limits::kMaxOpenBytes));
    }
    if (kind == PartKind::kSeal) {
      if (bytes <= limits::kMaxSealBytes) return Ok();
      return Refuse(Verdict::kMalformed, absl::StrCat("seal of ", bytes, " bytes, at most ",
                                                      limits::kMaxSealBytes));
    }
    if (bytes <= limits::kMaxMacDataBytes) return Ok();
    return Refuse(Verdict::kMalformed, "checksum over too much data");
  });
}

// A proof by certificate proves who asks for a ticket, in the job that seals it, and nothing beside
// it would be needed.
Judgement CheckCertificateParts(const Job& job) {
  if (job.certificate.empty()) return Ok();
  const size_t bytes =
      std::max(job.certificate.pa_pk_as_req.size(), job.certificate.request_body.size());
  if (bytes > limits::kMaxProofBytes) {
    return Refuse(Verdict::kMalformed, absl::StrCat("a proof by certificate of ", bytes,
                                                    " bytes, at most ", limits::kMaxProofBytes));
  }
  const bool login = job.operation == Operation::kLogin && job.opens.empty() &&
                     CountOf(job, PartKind::kSeal, kUsageTicket) == 1;
  if (login) return Ok();
  return Refuse(Verdict::kMalformed,
                absl::StrCat(OperationName(job.operation),
                             ": a proof by certificate goes with a LOGIN that seals a ticket and "
                             "opens nothing"));
}

// The gate asks for a proof of a kind that the job has not: refused before it costs anything.
Judgement CheckGateCanPass(const Job& job, const KeyInfo& client) {
  const bool judges =
      job.operation == Operation::kLogin || job.operation == Operation::kOpenPreauth;
  if (!judges || TakesAnything(client.gate)) return Ok();
  const bool timestamp = !job.opens.empty(), certificate = !job.certificate.empty();
  if (timestamp ? TakesTimestamp(client.gate) : certificate && TakesCertificate(client.gate)) {
    return Ok();
  }
  return Refuse(Verdict::kRefused,
                absl::StrCat("gate of ", client.principal, " is ", GateName(client.gate),
                             " and the job has no ",
                             TakesTimestamp(client.gate) ? "pre-auth to open" : "certificate",
                             TakesTimestamp(client.gate) && TakesCertificate(client.gate)
                                 ? " and no certificate" : ""));
}

Judgement CheckHandles(const Job& job, KeyLookup lookup) {
  const auto unknown = [](const Handle& handle) {
    return Refuse(Verdict::kUnknownHandle, absl::StrCat("no key has handle ", HandleText(handle)));
  };
  if (job.client.has_value() && lookup(*job.client) == nullptr) return unknown(*job.client);
  return ForEachPart(job, [&](PartKind, const auto& part) {
    return lookup(part.handle) != nullptr ? Ok() : unknown(part.handle);
  });
}

Judgement CheckPartKey(const PartRule& rule, const KeyInfo& key, absl::string_view realm,
                       const KeyInfo* client) {
  const auto refuse = [&](absl::string_view why) {
    return Refuse(Verdict::kRefused, absl::StrCat(Name(rule.operation, rule.kind, rule.usage),
                                                  ": key ", HandleText(key.handle), why));
  };
  if (!Allows(rule.classes, key.key_class)) {
    return refuse(absl::StrCat(" is of class ", KeyClassName(key.key_class)));
  }
  if (rule.of_client && key.principal_id != client->principal_id) {
    return refuse(" is not one of the client's");
  }
  // Under the key of krbtgt/REALM@OTHER the other realm vouches for its users to us.
  const bool makes = rule.kind == PartKind::kSeal || rule.kind == PartKind::kMakeMac;
  if (makes && !IsOfRealm(key.principal, realm)) {
    return refuse(absl::StrCat(" is ", key.principal,
                               ": only that realm makes tickets and checksums under it"));
  }
  // A realm may have keys from before this rule. An imported krbtgt's tickets are opened all the
  // same, until rotation removes it.
  if (key.key_class == KeyClass::kTgsOld) return Ok();
  if (const absl::Status s = CheckTicketEnctype(key.principal, key.enctype); !s.ok()) {
    return refuse(absl::StrCat(" is no longer used: ", s.message(),
                               " (mpc-admin doctor says how to replace it)"));
  }
  return Ok();
}

// ---- What the key's family of messages says of a part ----

struct GcmKey {
  const KeyInfo& info;
  const Enctype& enctype;
};
struct CtsKey {
  const KeyInfo& info;
  const Enctype& enctype;
};

// Calls `check(key, part)` for each part until one is not OK.
template <typename Check>
Judgement ForEachPartWithKey(const Job& job, KeyLookup lookup, Check check) {
  return ForEachPart(job, [&](PartKind, const auto& part) {
    const KeyInfo& info = *lookup(part.handle);
    const Enctype& enctype = *FindEnctype(info.enctype);  // CheckKeyInfo
    return enctype.is_gcm() ? check(GcmKey{info, enctype}, part)
                            : check(CtsKey{info, enctype}, part);
  });
}

// Before anything of the job is verified: what takes long must be short.
Judgement CheckLength(const GcmKey&, uint32_t, size_t) { return Ok(); }
Judgement CheckLength(const CtsKey& key, uint32_t usage, size_t bytes) {
  const size_t most = usage == kUsageAsReqChecksum ? limits::kMaxCtsRequestBytes
                      : usage == kUsageTicket      ? limits::kMaxCtsTicketBytes
                                                   : limits::kMaxCtsMessageBytes;
  if (bytes <= most) return Ok();
  return Refuse(Verdict::kMalformed, absl::StrCat(bytes, " bytes under a key of ", key.enctype.name,
                                                  ", key usage ", usage, ": at most ", most));
}

Judgement TooShort(const OpenPart& part) {
  return Refuse(Verdict::kBadTag,
                absl::StrCat("message of ", part.message.size(), " bytes is too short"));
}

Judgement CheckPreauthSize(const OpenPart& part, size_t plaintext) {
  if (part.usage != kUsagePreauth || plaintext <= kMaxPreauthPlaintext) return Ok();
  return Refuse(Verdict::kBadTag, absl::StrCat("pre-auth message of ", part.message.size(),
                                               " bytes holds no timestamp"));
}

// Each ticket that the servers seal under a gcm key has their header. What they seal for another realm
// its KDC opens: as a parent it would make a user of ours one of that realm's, for the quotas.
Judgement CheckFormat(const GcmKey& key, absl::string_view realm, const Job& job,
                      const OpenPart& part) {
  const auto message = ParseMessage(part.message);
  if (!message) return TooShort(part);
  if (job.operation == Operation::kReissueTicket && !IsOwnTgt(key.info.principal) &&
      !IsTgtFromOtherRealm(key.info.principal, realm)) {
    return Refuse(Verdict::kRefused, absl::StrCat("a parent ticket under ", key.info.principal,
                                                  ": another realm opens it"));
  }
  if (part.usage == kUsagePreauth && !message->header.empty()) {
    return Refuse(Verdict::kBadTag, "pre-auth message with a header");
  }
  if (part.usage == kUsageTicket && !DecodeTicketHeader(message->header)) {
    return Refuse(Verdict::kBadTag, "no ticket that the servers sealed has this header");
  }
  return CheckPreauthSize(part, message->PlaintextBytes());
}

// Such a ticket has no header, so nothing may be made from it; unless another realm made it, whose
// word about its users was all that a header could have been.
Judgement CheckFormat(const CtsKey& key, absl::string_view realm, const Job& job,
                      const OpenPart& part) {
  const auto message = ParseCtsMessage(key.enctype, part.message);
  if (!message) return TooShort(part);
  if (job.operation == Operation::kReissueTicket &&
      !IsTgtFromOtherRealm(key.info.principal, realm)) {
    return Refuse(Verdict::kRefused, absl::StrCat("a parent ticket of ", key.enctype.name,
                                                  " has no header: its origin is unknown"));
  }
  return CheckPreauthSize(part, message->PlaintextBytes());
}

Judgement CheckFormat(const GcmKey& key, absl::string_view, const Job&, const SealPart& part) {
  if (part.text.empty()) return Ok();
  return Refuse(Verdict::kMalformed,
                absl::StrCat("a seal of ", key.enctype.name, " takes no text"));
}
Judgement CheckFormat(const CtsKey& key, absl::string_view, const Job&, const SealPart& part) {
  if (part.text.bytes() == part.max_plaintext) return Ok();
  return Refuse(Verdict::kMalformed,
                absl::StrCat("a seal of ", key.enctype.name, " takes components of ",
                             part.max_plaintext, " bytes of its text, not of ", part.text.bytes()));
}

Judgement CheckFormat(const auto&, absl::string_view, const Job&, const MakeMacPart&) {
  return Ok();
}

Judgement CheckChecksumSize(const VerifyMacPart& part, size_t want) {
  if (part.checksum.size() == want) return Ok();
  return Refuse(Verdict::kBadTag, absl::StrCat("checksum of ", part.checksum.size(), " bytes"));
}
Judgement CheckFormat(const GcmKey&, absl::string_view, const Job&, const VerifyMacPart& part) {
  return CheckChecksumSize(part, kChecksumBytes);
}
Judgement CheckFormat(const CtsKey& key, absl::string_view, const Job&,
                      const VerifyMacPart& part) {
  return CheckChecksumSize(part, key.enctype.mac_bytes);
}

// A message of 17 to 20 that is not judged yet, beside one to make: chains of blocks that anybody
// could ask for. A KDC has no text for such a seal before it has opened the message anyway. A
// REISSUE_TICKET opens it the second time: there the seal is of a ticket from realm to realm.
Judgement CheckSealsBesideOpens(const Job& job, KeyLookup lookup) {
  if (job.operation == Operation::kReissueTicket) return Ok();
  const auto is_cts = [&](const auto& part) {
    return !FindEnctype(lookup(part.handle)->enctype)->is_gcm();
  };
  if (absl::c_none_of(job.opens, is_cts) || absl::c_none_of(job.seals, is_cts)) return Ok();
  return Refuse(
      Verdict::kRefused,
      absl::StrCat(OperationName(job.operation),
                   ": no seal of enctypes 17 to 20 in the job that opens such a message"));
}

}  // namespace

Judgement CheckShape(const Job& job) {
  Judgement j = CheckOperation(job);
  if (j.ok()) j = CheckParts(job);
  if (j.ok()) j = CheckSizes(job);
  if (j.ok()) j = CheckCertificateParts(job);
  return j;
}

Judgement CheckTexts(const Job& job, int party) {
  std::string why;
  for (size_t i = 0; i < job.seals.size(); ++i) {
    if (job.seals[i].text.empty() || TextSharesFit(job.seals[i].text, party, &why)) continue;
    return Refuse(Verdict::kMalformed, absl::StrCat("the text of seal ", i, ": ", why));
  }
  return Ok();
}

bool ShowsCertificate(const Job& job, const KeyInfo& client) {
  return !job.certificate.empty() && TakesCertificate(client.gate);
}

Judgement CheckKeys(const Job& job, absl::string_view realm, KeyLookup lookup) {
  Judgement j = CheckHandles(job, lookup);
  if (!j.ok()) return j;
  const KeyInfo* client = job.client.has_value() ? lookup(*job.client) : nullptr;
  if (client != nullptr && client->key_class != KeyClass::kUser) {
    return Refuse(Verdict::kRefused,
                  absl::StrCat("the client key is of class ", KeyClassName(client->key_class)));
  }
  j = ForEachPart(job, [&](PartKind kind, const auto& part) {
    const PartRule& rule = *FindPart(job.operation, kind, part.usage);  // CheckParts
    return CheckPartKey(rule, *lookup(part.handle), realm, client);
  });
  if (j.ok() && client != nullptr) j = CheckGateCanPass(job, *client);
  if (!j.ok()) return j;
  j = ForEachPartWithKey(job, lookup, [](const auto& key, const auto& part) {
    return CheckLength(key, part.usage, BytesOf(part));
  });
  if (!j.ok()) return j;
  j = ForEachPartWithKey(job, lookup, [&](const auto& key, const auto& part) {
    return CheckFormat(key, realm, job, part);
  });
  return j.ok() ? CheckSealsBesideOpens(job, lookup) : j;
}

}  // namespace mpckdc
