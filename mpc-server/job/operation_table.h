// SPDX-License-Identifier: Apache-2.0
//
// The closed table of jobs: which parts an operation may have, under which usage and class of key,
// and what must be true before its output leaves a server. Anything not in it is refused. There is
// no row for "encrypt this block", for a PRF, or for a nonce of the caller's choice.
#ifndef MPC_SERVER_JOB_OPERATION_TABLE_H_
#define MPC_SERVER_JOB_OPERATION_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "mpc-server/job/job.h"
#include "mpc-server/key/key_info.h"

namespace mpckdc {

enum class PartKind : uint8_t { kOpen, kSeal, kMakeMac, kVerifyMac };

// RFC 3961 key usage numbers (RFC 4120 section 7.5.1).
inline constexpr uint32_t kUsagePreauth = 1;      // PA-ENC-TIMESTAMP, sealed by the client
inline constexpr uint32_t kUsageTicket = 2;
inline constexpr uint32_t kUsageAsReply = 3;
inline constexpr uint32_t kUsagePacChecksum = 17;
inline constexpr uint32_t kUsageAsReqChecksum = 56;
inline constexpr uint32_t kUsageCammac = 64;         // RFC 7751: verifiers of authorization data

// Sets of key classes.
using KeyClasses = uint8_t;
constexpr KeyClasses Only(KeyClass c) { return static_cast<KeyClasses>(1u << static_cast<int>(c)); }
constexpr bool Allows(KeyClasses set, KeyClass c) { return (set & Only(c)) != 0; }
inline constexpr KeyClasses kUserKeys = Only(KeyClass::kUser);
inline constexpr KeyClasses kTgsKeys = Only(KeyClass::kTgs);
// Those under which tickets are opened and checksums verified: an imported krbtgt as well.
inline constexpr KeyClasses kOpeningKeys =
    static_cast<KeyClasses>(Only(KeyClass::kTgs) | Only(KeyClass::kService) |
                            Only(KeyClass::kTgsOld));
inline constexpr KeyClasses kTicketKeys =
    static_cast<KeyClasses>(Only(KeyClass::kTgs) | Only(KeyClass::kService));

// Before a part's output leaves a server, by that server's own judgement.
enum class Precondition : uint8_t {
  kTagGood,     // the part's own tag, and for an open its zero block, were verified
  kGate,        // the client principal's gate, in this job
  kGrant,       // an earlier job of the session passed the gate, and its budget is not used up
  kParent,      // the ticket opened in this job is good and its origin is young enough
  kNothing,
};

struct PartRule {
  Operation operation;
  PartKind kind;
  uint32_t usage;
  uint8_t min_count;
  uint8_t max_count;
  KeyClasses classes;
  bool of_client;  // the key belongs to the principal of the job's `client`
  Precondition precondition;
};

// clang-format off
inline constexpr PartRule kPartRules[] = {
    // operation                 part                  usage               min max classes      of client  output needs
    {Operation::kLogin,          PartKind::kOpen,      kUsagePreauth,       0, 1, kUserKeys,    true,  Precondition::kTagGood},
    {Operation::kLogin,          PartKind::kSeal,      kUsageTicket,        0, 1, kTicketKeys,  false, Precondition::kGate},
    {Operation::kLogin,          PartKind::kSeal,      kUsageAsReply,       0, 1, kUserKeys,    true,  Precondition::kGate},
    {Operation::kLogin,          PartKind::kMakeMac,   kUsageAsReqChecksum, 0, 1, kUserKeys,    true,  Precondition::kGate},
    {Operation::kOpenPreauth,    PartKind::kOpen,      kUsagePreauth,       1, 1, kUserKeys,    true,  Precondition::kTagGood},
    {Operation::kSealGranted,    PartKind::kSeal,      kUsageTicket,        0, 1, kTicketKeys,  false, Precondition::kGrant},
    {Operation::kSealGranted,    PartKind::kSeal,      kUsageAsReply,       0, 1, kUserKeys,    true,  Precondition::kGrant},
    {Operation::kSealGranted,    PartKind::kMakeMac,   kUsageAsReqChecksum, 0, 1, kUserKeys,    true,  Precondition::kGrant},
    {Operation::kOpenTicket,     PartKind::kOpen,      kUsageTicket,        1, 1, kOpeningKeys, false, Precondition::kTagGood},
    {Operation::kReissueTicket,  PartKind::kOpen,      kUsageTicket,        1, 1, kTgsKeys,     false, Precondition::kTagGood},
    {Operation::kReissueTicket,  PartKind::kSeal,      kUsageTicket,        1, 1, kTicketKeys,  false, Precondition::kParent},
    {Operation::kMakeChecksum,   PartKind::kMakeMac,   kUsagePacChecksum,   0, 4, kTicketKeys,  false, Precondition::kNothing},
    {Operation::kMakeChecksum,   PartKind::kMakeMac,   kUsageCammac,        0, 4, kTicketKeys,  false, Precondition::kNothing},
    {Operation::kVerifyChecksum, PartKind::kVerifyMac, kUsagePacChecksum,   0, 4, kOpeningKeys, false, Precondition::kTagGood},
    {Operation::kVerifyChecksum, PartKind::kVerifyMac, kUsageCammac,        0, 4, kOpeningKeys, false, Precondition::kTagGood},
};

struct OperationRule {
  Operation operation;
  absl::string_view name;
  bool needs_client;
  bool needs_grant;
  bool needs_output;  // at least one seal or make_mac
  bool leaves_grant;
};

inline constexpr OperationRule kOperationRules[] = {
    // operation                 name               client grant  output leaves a grant
    {Operation::kLogin,          "LOGIN",           true,  false, true,  true},
    {Operation::kOpenPreauth,    "OPEN_PREAUTH",    true,  false, false, true},
    {Operation::kSealGranted,    "SEAL_GRANTED",    true,  true,  true,  false},
    {Operation::kOpenTicket,     "OPEN_TICKET",     false, false, false, false},
    {Operation::kReissueTicket,  "REISSUE_TICKET",  false, false, true,  false},
    {Operation::kMakeChecksum,   "MAKE_CHECKSUM",   false, false, true,  false},
    {Operation::kVerifyChecksum, "VERIFY_CHECKSUM", false, false, false, false},
};
// clang-format on

// What one passed gate pays for, counted over the job that passed it and all SEAL_GRANTED jobs that
// name it: twice the parts of an ordinary login, because the KDC may find that a ticket or a reply
// is longer than it had foreseen.
inline constexpr uint8_t kGrantTickets = 2;
inline constexpr uint8_t kGrantReplies = 2;
inline constexpr uint8_t kGrantChecksums = 2;

// nullptr when there is none.
constexpr const OperationRule* FindOperation(Operation operation) {
  for (const OperationRule& rule : kOperationRules) {
    if (rule.operation == operation) return &rule;
  }
  return nullptr;
}

constexpr const PartRule* FindPart(Operation operation, PartKind kind, uint32_t usage) {
  for (const PartRule& rule : kPartRules) {
    if (rule.operation == operation && rule.kind == kind && rule.usage == usage) return &rule;
  }
  return nullptr;
}

// A usage key has client nonces (1) or server nonces (all others), never both: no row makes the
// servers seal under usage 1.
constexpr bool TableKeepsNoncesApart() {
  for (const PartRule& rule : kPartRules) {
    const bool servers_nonce = rule.kind == PartKind::kSeal || rule.kind == PartKind::kMakeMac;
    if (servers_nonce && rule.usage == kUsagePreauth) return false;
  }
  return true;
}
static_assert(TableKeepsNoncesApart());

// Nothing is made under an imported krbtgt.
constexpr bool TableMakesNothingUnderAnOldTgs() {
  for (const PartRule& rule : kPartRules) {
    const bool makes = rule.kind == PartKind::kSeal || rule.kind == PartKind::kMakeMac;
    if (makes && Allows(rule.classes, KeyClass::kTgsOld)) return false;
  }
  return true;
}
static_assert(TableMakesNothingUnderAnOldTgs());

// "LOGIN", or "unknown operation".
absl::string_view OperationName(Operation operation);
absl::string_view PartKindName(PartKind kind);  // "open", "seal", "make_mac", "verify_mac"
absl::string_view KeyClassName(KeyClass key_class);  // "user", "tgs", "service"

}  // namespace mpckdc

#endif  // MPC_SERVER_JOB_OPERATION_TABLE_H_
