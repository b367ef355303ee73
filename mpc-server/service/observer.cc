// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/observer.h"

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/service/deviations.h"
#include "mpc-server/service/log.h"

namespace mpckdc {
namespace {

constexpr absl::Duration kRepeatPeers = absl::Minutes(1);
constexpr size_t kMostReasons = 64;

}  // namespace

void ServiceObserver::Audit(const char* kind, const AuditLog::Fields& fields) {
  absl::Status status = audit_->Append(kind, fields);
  if (!status.ok()) Log().error("{}", Text(status));
}

void ServiceObserver::OnBatch(const BatchReport& report) {
  metrics_->BatchDone(report);
  Log().debug("batch {}: {} jobs, {} AES blocks, {} rounds, {} ms", report.batch,
              report.jobs.size(), report.aes_blocks, report.rounds,
              absl::ToDoubleMilliseconds(report.computed));
  if (!report.status.ok()) Log().warn("batch {} failed: {}", report.batch, Text(report.status));
}

void ServiceObserver::OnDegraded(const std::string& reason) {
  Audit("sealing", {{"on", reason.empty()}, {"reason", reason}});
  if (reason.empty()) {
    Log().info("sealing again");
  } else {
    Log().error("this server does not seal: {}", reason);
  }
}

void ServiceObserver::OnPeerSkew(int peer, absl::Duration theirs_minus_ours) {
  const bool large = absl::AbsDuration(theirs_minus_ours) > limits::kMaxPeerSkew;
  Audit("clock", {{"peer", peer},
                  {"skew_us", absl::ToInt64Microseconds(theirs_minus_ours)},
                  {"large", large}});
  const std::string skew =
      absl::FormatDuration(absl::Trunc(theirs_minus_ours, absl::Milliseconds(1)));
  if (large) {
    Log().warn("the clock of party {} minus this server's is {}: set the clocks (chrony)", peer,
               skew);
  } else {
    Log().info("the clocks of party {} and this server agree again ({})", peer, skew);
  }
}

void ServiceObserver::OnDeviation(const DeviationReport& report) {
  Audit("deviation", DeviationFields(report));
  metrics_->Deviated(report.suspects);
  Log().error(
      "{} deviated from the protocol: {}. This server opens no session with the two others and "
      "answers no job until mpc-admin readmit; see deploy/runbooks/a-server-deviated.md first",
      report.suspects.Text(), report.text);
}

void ServiceObserver::OnEpoch(const EpochState& state) {
  const std::string refresh = absl::BytesToHexString(AsText(state.began_by));
  Audit("epoch", {{"epoch", state.epoch}, {"refresh", refresh}});
  Log().info("the shares were refreshed: share epoch {}; the records are written anew",
             state.epoch);
}

void ServiceObserver::OnRecord(const KeyInfo& key, const std::string& text) {
  Audit("record", {{"handle", HandleText(key.handle)},
                   {"principal", key.principal},
                   {"kvno", key.kvno},
                   {"same", text.empty()},
                   {"text", text}});
  if (text.empty()) {
    Log().info("the three servers hold the same record of key {} again", HandleText(key.handle));
  } else {
    Log().error("{}; jobs with this key are refused, see deploy/runbooks/a-server-deviated.md",
                text);
  }
}

void ServiceObserver::OnPeers(bool connected, const std::string& detail) {
  const bool changed = connected_ != connected;
  const absl::Time now = absl::Now();
  if (changed || said_.size() > kMostReasons) said_.clear();
  const auto [said, first] = said_.try_emplace(detail, now);
  if (!first && absl::AbsDuration(now - said->second) < kRepeatPeers) return;
  connected_ = connected;
  said->second = now;
  if (changed) Audit("peers", {{"connected", connected}, {"detail", detail}});
  if (connected) {
    Log().info("connected to both other servers");
  } else {
    Log().warn("not connected to the other servers, trying again: {}", detail);
  }
}

}  // namespace mpckdc
