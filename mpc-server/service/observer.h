// SPDX-License-Identifier: Apache-2.0
//
// Turns what the engine reports of itself into audit lines, metrics and log lines. What it answers
// is recorder.h's business.
#ifndef MPC_SERVER_SERVICE_OBSERVER_H_
#define MPC_SERVER_SERVICE_OBSERVER_H_

#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "mpc-server/agree/batch_report.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/service/metrics.h"

namespace mpckdc {

class ServiceObserver : public EngineObserver {
 public:
  // Not owned; both must outlive the engine.
  ServiceObserver(AuditLog* audit, Metrics* metrics) : audit_(audit), metrics_(metrics) {}

  void OnBatch(const BatchReport& report) override;
  void OnDegraded(const std::string& reason) override;
  void OnPeers(bool connected, const std::string& detail) override;
  void OnPeerSkew(int peer, absl::Duration theirs_minus_ours) override;
  void OnDeviation(const DeviationReport& report) override;
  void OnEpoch(const EpochState& state) override;
  void OnRecord(const KeyInfo& key, const std::string& text) override;

 private:
  void Audit(const char* kind, const AuditLog::Fields& fields);

  AuditLog* const audit_;
  Metrics* const metrics_;
  // The engine tries every second, and why it fails may be two things in turn (a neighbour's
  // refusal, and that the other one, refused too, hung up): each is said once a minute, a change
  // audited once.
  std::optional<bool> connected_;           // both are used on the engine's thread only
  std::map<std::string, absl::Time> said_;  // since the last change
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_OBSERVER_H_
