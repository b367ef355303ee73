// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ENROLL_TRANSACTION_H_
#define MPC_SERVER_ENROLL_TRANSACTION_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/enroll/admin_client.h"
#include "mpc-server/enroll/package.h"

namespace mpckdc::enroll {

struct TransactionTimeouts {
  absl::Duration stage = absl::Seconds(10);
  absl::Duration draw = absl::Seconds(30);
  absl::Duration commit = absl::Seconds(10);
  absl::Duration cleanup = absl::Seconds(3);
  int commit_attempts = 3;
  absl::Duration commit_pause = absl::Milliseconds(300);
};

// Keys of one change, on all three servers or on none.
//
//   stage ok x3 -> commit ok x3 -> handles may be written to the KDB
//     any failure before the last commit -> abort and delete everywhere, best effort
//
// Handles are fresh and the KDB learns them only after Commit() succeeded, so whatever a failure
// leaves on one or two servers is referred to by nobody: staged keys expire there, committed ones
// are orphans that `mpc-admin doctor` names. Running the same command again is always right.
//
// Not thread safe. Destroying an unfinished transaction rolls it back.
class KeyTransaction {
 public:
  // `servers` must have been Check()ed and outlive the transaction.
  explicit KeyTransaction(AdminServers* servers, TransactionTimeouts timeouts = {});
  ~KeyTransaction();
  KeyTransaction(const KeyTransaction&) = delete;
  KeyTransaction& operator=(const KeyTransaction&) = delete;

  const std::string& id() const { return id_; }

  // Packages one key's shares; nothing is sent yet.
  absl::Status Add(const v1::KeyInfo& info, absl::Span<const uint8_t> base,
                   const PackageSigner& signer);
  // A key that the servers draw jointly; nothing is sent yet.
  absl::Status AddDrawn(const v1::KeyInfo& info);

  // Sends everything added: StageKeys, then a DrawKey per drawn key. Rolls back on failure.
  absl::Status Stage();
  // Makes the staged keys usable. Rolls back on failure.
  absl::Status Commit();
  // Stage() and Commit().
  absl::Status Run();

  // Takes the keys away again, committed or not (the KDB could not be written). The status names
  // the servers where something may be left.
  absl::Status Rollback();

  const std::vector<std::string>& handles() const { return handles_; }

 private:
  enum class State { kOpen, kStaged, kCommitted, kFinished };

  absl::Status Check(const v1::KeyInfo& info) const;
  absl::Status StageShared();
  absl::Status StageDrawn();
  absl::Status CommitOne(AdminClient& server) const;
  absl::Status FailAndRollback(absl::Status why);

  AdminServers* servers_;
  TransactionTimeouts timeouts_;
  std::string id_;
  State state_ = State::kOpen;
  std::array<v1::StageKeysRequest, 3> stage_;
  std::vector<v1::KeyInfo> drawn_;
  std::vector<std::string> handles_;
};

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_ENROLL_TRANSACTION_H_
