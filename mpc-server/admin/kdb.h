// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_KDB_H_
#define MPC_SERVER_ADMIN_KDB_H_

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/admin.pb.h"

namespace mpckdc::admin {

struct KdbPlan {
  std::string principal;  // in the database's own spelling
  bool exists = false;
  uint32_t kvno_next = 1;
  std::vector<v1::KeyInfo> keys;  // enctype and salt of what new keys should look like
};

struct KdbTickets {
  std::string principal;
  absl::Time changed;      // InfinitePast: unknown
  absl::Duration longest;  // Infinite: no limit
};

// What SetHandles() is told of a principal.
struct KdbNewKeys {
  std::string principal;
  uint32_t kvno = 0;
  std::vector<v1::KeyInfo> keys;
  bool keep_old = false;  // keeps the keys of earlier versions
  // What the principal had when these were planned. Something else now: mpc-kdb refuses, and
  // nothing that somebody set meanwhile is lost.
  struct Expected {
    bool exists = false;
    uint32_t kvno = 0;  // the newest; 0: none
    std::vector<std::string> handles;
  };
  std::optional<Expected> expected = {};
};

std::vector<std::string> HandlesOf(absl::Span<const v1::KeyInfo> keys);

// Runs the program mpc-kdb with these arguments and standard input; what it writes to its output.
// `undisturbed`: Ctrl-C at the terminal does not end it.
using KdbProgram = std::function<absl::StatusOr<std::string>(
    const std::vector<std::string>& arguments, const std::string& input, bool undisturbed)>;

// The program on this or another machine. `quote_arguments`: for the shell there.
KdbProgram KdbCommand(std::vector<std::string> command, bool quote_arguments,
                      absl::Duration timeout);

// The KDC's database, as far as mpc-admin needs it, by mpc-kdb (kdc-plugin/README.md):
//   plan PRINCIPAL [--create]  -> {"principal", "exists", "kvno_next",
//                                  "enctypes": [{"enctype", "salt_type", "salt" (hex)}]}
//   set-handles PRINCIPAL      <- {"kvno", "keep_old",
//                                  "keys": [{"enctype", "salt_type", "salt", "handle" (hex)}],
//                                  "expected": {"exists", "kvno", "handles"}}
//   plan-many [--create]       <- a line "PRINCIPAL" each
//                              -> for each a line as of plan, or {"error", "not_found"}
//   set-handles-many           <- a line as of set-handles each, with "principal"
//                              -> for each a line {} or {"error", "not_found"}
//   list                       -> a line {"principal", "kvno", "enctype", "handle"} per handle,
//                                 with "history": true of one that only a password history names,
//                                 and "renamed_from" or "renamed_to" of an entry whose renaming
//                                 has not come to its end;
//                                 {"principal", "keyless": true} for one that has no key at all
//   delete PRINCIPAL           as kadmin's delprinc
//   tickets PRINCIPAL          -> {"principal", "changed" (when its keys were, seconds since 1970),
//                                  "longest" (seconds that a ticket for it can live or be renewed)}
//   purge PRINCIPAL            <- {"keep_from": N}; keys of versions before N go
// Exit status: 0 done, 1 failed, 2 bad command line, 4 no such principal; the reason is the last
// line on standard error. set-handles changes everything or nothing.
//
// NotFound: no such principal. Other errors say what is wrong, also with an answer.
class Kdb {
 public:
  using Plans = std::vector<absl::StatusOr<KdbPlan>>;

  explicit Kdb(KdbProgram run) : run_(std::move(run)) {}

  // With `create`, a principal that does not exist gets a plan too; nothing is changed.
  absl::StatusOr<KdbPlan> Plan(const std::string& principal, bool create) const;
  // Makes the principal if need be.
  absl::Status SetHandles(const KdbNewKeys& keys) const;
  // The two for many principals, each with a result of its own, in their order. An error of the
  // whole says that nothing is known about any of them.
  absl::StatusOr<Plans> PlanMany(absl::Span<const std::string> principals, bool create) const;
  absl::StatusOr<std::vector<absl::Status>> SetHandlesOfMany(
      absl::Span<const KdbNewKeys> principals) const;
  // All keys: principal, version, enctype and handle. `keyless` (may be null): the principals that
  // have no key of any kind, as all seem to where a directory's access rules hide keys.
  absl::StatusOr<std::vector<v1::KeyInfo>> List(std::set<std::string>* keyless = nullptr) const;
  absl::Status Delete(const std::string& principal) const;
  absl::StatusOr<KdbTickets> Tickets(const std::string& principal) const;
  absl::Status Purge(const std::string& principal, uint32_t keep_from) const;
  // Another command of mpc-kdb: those of import_kdb.h.
  absl::StatusOr<std::string> Run(const std::vector<std::string>& arguments,
                                  const std::string& input, bool undisturbed) const {
    return run_(arguments, input, undisturbed);
  }

 private:
  const KdbProgram run_;
};

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_KDB_H_
