// SPDX-License-Identifier: Apache-2.0
//
// Turns what the engine reports of itself into audit lines, metrics and log lines. What it answers
// is recorder.h's business.
#ifndef MPC_SERVER_SERVICE_OBSERVER_H_
#define MPC_SERVER_SERVICE_OBSERVER_H_

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
  void OnRecord(const KeyInfo& key, const std::string& text) override;

 private:
  void Audit(const char* kind, const AuditLog::Fields& fields);

  AuditLog* const audit_;
  Metrics* const metrics_;
  // The engine tries every second: what did not change is said once a minute, and audited once.
  std::optional<bool> connected_;  // all three are used on the engine's thread only
  std::string detail_;
  absl::Time said_ = absl::InfinitePast();
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_OBSERVER_H_
