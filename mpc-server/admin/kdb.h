// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_KDB_H_
#define MPC_SERVER_ADMIN_KDB_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/admin/config.h"

namespace mpckdc::admin {

// A key that the KDC's database has or is to have: everything but the key.
struct KdbKey {
  int32_t enctype = 0;
  int32_t salt_type = 0;
  std::string salt;
  std::string handle;  // 16 bytes
};

struct KdbPlan {
  std::string principal;  // in the database's own spelling
  bool exists = false;
  uint32_t kvno_next = 1;
  std::vector<KdbKey> keys;  // what new keys should look like; no handles
};

struct KdbEntry {
  std::string principal;
  uint32_t kvno = 0;
  int32_t enctype = 0;
  std::string handle;
};

// What SetHandles() is told of a principal.
struct KdbNewKeys {
  std::string principal;
  uint32_t kvno = 0;
  std::vector<KdbKey> keys;
  bool keep_old = false;  // keeps the keys of earlier versions

  std::vector<std::string> handles() const;
};

// The KDC's database, as far as mpc-admin needs it. NotFound: no such principal.
class Kdb {
 public:
  virtual ~Kdb() = default;
  // With `create`, a principal that does not exist gets a plan too; nothing is changed.
  virtual absl::StatusOr<KdbPlan> Plan(const std::string& principal, bool create) = 0;
  // Makes the principal if need be.
  virtual absl::Status SetHandles(const KdbNewKeys& keys) = 0;
  // The two for many principals, each with a result of its own, in their order. An error of the
  // whole says that nothing is known about any of them.
  virtual absl::StatusOr<std::vector<absl::StatusOr<KdbPlan>>> PlanMany(
      absl::Span<const std::string> principals, bool create) = 0;
  virtual absl::StatusOr<std::vector<absl::Status>> SetHandlesOfMany(
      absl::Span<const KdbNewKeys> principals) = 0;
  virtual absl::StatusOr<std::vector<KdbEntry>> List() = 0;
  virtual absl::Status Delete(const std::string& principal) = 0;
};

// By the program mpc-kdb on this or another machine (kdc-plugin/README.md):
//   plan PRINCIPAL [--create]  -> {"principal", "exists", "kvno_next",
//                                  "enctypes": [{"enctype", "salt_type", "salt" (hex)}]}
//   set-handles PRINCIPAL      <- {"kvno", "keep_old",
//                                  "keys": [{"enctype", "salt_type", "salt", "handle" (hex)}]}
//   plan-many [--create]       <- a line "PRINCIPAL" each
//                              -> for each a line as of plan, or {"error", "not_found"}
//   set-handles-many           <- a line as of set-handles each, with "principal"
//                              -> for each a line {} or {"error", "not_found"}
//   list                       -> a line {"principal", "kvno", "enctype", "handle"} per handle
//   delete PRINCIPAL           as kadmin's delprinc
// Exit status: 0 done, 1 failed, 2 bad command line, 4 no such principal; the reason is the last
// line on standard error. set-handles changes everything or nothing.
class CommandKdb : public Kdb {
 public:
  CommandKdb(std::vector<std::string> command, bool quote_arguments, absl::Duration timeout);

  absl::StatusOr<KdbPlan> Plan(const std::string& principal, bool create) override;
  absl::Status SetHandles(const KdbNewKeys& keys) override;
  absl::StatusOr<std::vector<absl::StatusOr<KdbPlan>>> PlanMany(
      absl::Span<const std::string> principals, bool create) override;
  absl::StatusOr<std::vector<absl::Status>> SetHandlesOfMany(
      absl::Span<const KdbNewKeys> principals) override;
  absl::StatusOr<std::vector<KdbEntry>> List() override;
  absl::Status Delete(const std::string& principal) override;

 private:
  absl::StatusOr<std::string> Run(const std::vector<std::string>& arguments,
                                  const std::string& input, bool undisturbed = false);

  std::vector<std::string> command_;
  bool quote_arguments_;
  absl::Duration timeout_;
};

// The program's answers; errors say what is wrong with them.
absl::StatusOr<KdbPlan> ParseKdbPlan(const std::string& json);
absl::StatusOr<std::vector<KdbEntry>> ParseKdbList(const std::string& json_lines);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_KDB_H_
