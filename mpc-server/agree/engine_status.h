// SPDX-License-Identifier: Apache-2.0
//
// An engine's status, for metrics and `mpc-admin status`.
#ifndef MPC_SERVER_AGREE_ENGINE_STATUS_H_
#define MPC_SERVER_AGREE_ENGINE_STATUS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mpc-server/agree/deviation_report.h"
#include "mpc-server/compute/protocol_choice.h"
#include "mpc-server/judge/quota_rates.h"
#include "mpc-server/wire/peer_channel.h"

namespace mpckdc {

struct EngineStatus {
  bool peers_connected = false;
  std::string peers_detail;  // when not connected: the last error
  int party = 0;
  absl::Duration skew_prev;  // that neighbour's clock minus ours, at its last message
  absl::Duration skew_next;
  bool clock_suspect = false;  // no timestamp is judged: `degraded` says why
  // What this server's clock said when both peers' clocks last agreed with it.
  absl::Time clock_confirmed = absl::InfinitePast();
  uint64_t sessions = 0;
  uint64_t batches = 0;
  uint64_t jobs = 0;         // answered
  uint64_t jobs_failed = 0;  // answered with anything but OK
  uint64_t logins = 0;       // of `jobs` those that were a login's and OK
  absl::Duration waited, agreed, computed;  // of all batches together (BatchReport)
  uint64_t aes_blocks = 0;
  uint64_t rounds = 0;
  size_t waiting = 0;        // jobs not yet in a batch
  size_t pending_seals = 0;
  size_t grants = 0;
  std::string degraded;      // empty, or why this server does not seal (one sentence)
  QuotaRates quotas;
  size_t quota_buckets = 0;  // principals, KDCs and sources whose buckets are not full
  size_t quota_known = 0;    // principals of whom it is known where they log in from
  std::array<uint64_t, kQuotaKinds> quota_refused{};  // jobs that this server refused, by QuotaKind
  std::string unrecorded;    // empty, or why it answers no job: they cannot be written down
  std::optional<DeviationReport> quarantine;  // why it opens no session (quarantine.h)
  size_t different_records = 0;               // keys of which the three hold different records
  std::string different_record;               // one of them, and whose record differs
  size_t handed_over = 0, left_out = 0;       // keys, to a party that is rebuilt (hand_over.h)
  LineState line_prev, line_next;             // to the neighbours, as far as measured
  std::optional<CtsProtocol> protocol;        // of the last batch under keys of types 17 to 20,
                                              // with garbled gcm parts, or of keys
  uint64_t garbled_batches = 0;               // how many were garbled,
  uint64_t replicated_batches = 0;            // and how many computed in rounds
};

// The engine's thread changes it, any thread reads it.
class SharedStatus {
 public:
  template <typename Change>  // void(EngineStatus&)
  void Update(Change change) {
    const absl::MutexLock lock(&mu_);
    change(status_);
  }
  EngineStatus Get() const {
    const absl::MutexLock lock(&mu_);
    return status_;
  }

 private:
  mutable absl::Mutex mu_;
  EngineStatus status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_ENGINE_STATUS_H_
