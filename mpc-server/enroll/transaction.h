// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ENROLL_TRANSACTION_H_
#define MPC_SERVER_ENROLL_TRANSACTION_H_

#include <array>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/enroll/admin_client.h"
#include "mpc-server/enroll/two_phase.h"
#include "mpc-server/package/package.h"

namespace mpckdc::enroll {

// Keys of one change, on all three servers or on none (two_phase.h).
//
// Handles are fresh and the KDB learns them only after Commit() succeeded, so whatever a failure
// leaves on one or two servers is referred to by nobody: staged keys expire there, committed ones
// are orphans that `mpc-admin doctor` names. Running the same command again is always right.
//
// Not thread safe. Destroying an unfinished transaction rolls it back.
class KeyTransaction : private TransactionServers {
 public:
  // `servers` must have been Check()ed and outlive the transaction.
  explicit KeyTransaction(AdminServers* servers, TransactionTimeouts timeouts = {});
  KeyTransaction(const KeyTransaction&) = delete;
  KeyTransaction& operator=(const KeyTransaction&) = delete;

  // Packages the keys' shares, as many in a package as it holds; nothing is sent yet.
  absl::Status Add(absl::Span<const KeyToShare> keys, const PackageSigner& signer);
  // Keys that another program has sealed for id(), in one triple of packages; nothing is sent yet.
  absl::Status AddSealed(absl::Span<const v1::KeyInfo> keys, SealedBytes sealed,
                         const PackageSigner& signer);
  // A key that the servers draw jointly; nothing is sent yet.
  absl::Status AddDrawn(const v1::KeyInfo& info);
  // Copies of keys of one principal as `principal`'s, under handles that are new (RenameKeys);
  // nothing is sent yet.
  absl::Status AddRenamed(absl::Span<const v1::RenamedKey> keys, const std::string& principal);
  // After Stage(): the new handles of keys for the history that the servers had no more, and which
  // are not in the transaction.
  const absl::flat_hash_set<std::string>& unknown() const { return unknown_; }

  const std::string& id() const { return id_; }

  // Sends everything added: StageKeys, then a DrawKey per drawn key, then RenameKeys. Rolls back on
  // failure. Aborted: a refresh of the shares came between; a new transaction may succeed.
  absl::Status Stage();
  // Makes the staged keys usable. Rolls back on failure.
  absl::Status Commit() { return two_phase_.Commit(keys_.size()); }
  // Stage() and Commit().
  absl::Status Run();

  // Takes the keys away again, committed or not (the KDB could not be written). The status names
  // the servers where something may be left.
  absl::Status Rollback() { return two_phase_.Rollback(); }
  absl::Status RollbackAfter(const absl::Status& why) { return two_phase_.RollbackAfter(why); }

 private:
  // The calls of two_phase.h over gRPC.
  std::array<absl::Status, 3> OnAll(const std::function<absl::Status(int party)>& call) override;
  absl::StatusOr<uint32_t> CommitKeys(int party, absl::Duration timeout) override;
  absl::Status AbortKeys(int party, absl::Duration timeout) override;
  absl::Status DeleteKeys(int party, absl::Duration timeout) override {
    // At once: no database was told of them.
    return servers_->at(party).DeleteKeys(keys_, Deletion::kNow, timeout);
  }
  std::string Name(int party) override { return servers_->at(party).name(); }
  void Pause(absl::Duration d) override { absl::SleepFor(d); }

  absl::Status StageRenamed();

  // Notes a key's handle, which must be new.
  absl::Status Note(const v1::KeyInfo& info);
  void Append(SealedTriple packages, size_t keys);

  AdminServers* servers_;
  TransactionTimeouts timeouts_;
  std::string id_;
  std::vector<std::array<v1::StageKeysRequest, 3>> stage_;  // calls, each within the limits
  size_t last_call_keys_ = 0;                               // of stage_.back()
  std::vector<v1::KeyInfo> drawn_;
  v1::RenameKeysRequest renamed_;
  absl::flat_hash_set<std::string> unknown_;
  std::vector<v1::NamedKey> keys_;
  absl::flat_hash_set<std::string> handle_set_;
  TwoPhase two_phase_;  // the last member: its destructor may call the servers
};

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_ENROLL_TRANSACTION_H_
