// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/refused_jobs.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "proto/kdc_key.pb.h"

namespace mpckdc {

std::string OperationText(Operation operation) {
  const auto number = static_cast<v1::Operation>(operation);
  if (!v1::Operation_IsValid(number)) return "UNKNOWN";
  return v1::Operation_Name(number).substr(sizeof "OPERATION_" - 1);
}

// Kinds beyond limits::kMaxRefusalKinds are told apart by their verdicts alone.
RefusedJobs::Kind& RefusedJobs::KindOf(const BatchJob& job) {
  const Name name{job.kdc.name, job.operation, job.judgement.verdict};
  const bool room = kinds_.contains(name) || kinds_.size() < limits::kMaxRefusalKinds;
  return kinds_[room ? name : Name{"", Operation::kUnspecified, name.verdict}];
}

bool RefusedJobs::Lists(const BatchJob& job, absl::Time time) {
  if (job.computed || job.judgement.ok()) return true;
  Kind& kind = KindOf(job);
  second_ = absl::ToUnixSeconds(time);
  if (kind.second != second_) kind.listed = 0;  // also when a clock was set back
  kind.second = second_;
  if (kind.listed < limits::kRefusalLinesPerSecond) {
    ++kind.listed;
    return true;
  }
  ++kind.counted;
  kind.principal = job.principal;
  since_ = std::min(since_, clock_.Now());
  return false;
}

AuditLog::Fields RefusedJobs::Counts() const {
  AuditLog::Fields counted = AuditLog::Fields::array();
  for (const auto& [name, kind] : kinds_) {
    if (kind.counted == 0) continue;
    counted.push_back({{"kdc", name.kdc},
                       {"op", OperationText(name.operation)},
                       {"verdict", VerdictName(name.verdict)},
                       {"count", kind.counted},
                       {"principal", absl::BytesToHexString(AsText(kind.principal))}});
  }
  if (counted.empty()) return {};
  return {{"since", absl::FormatTime(absl::RFC3339_full, since_, absl::UTCTimeZone())},
          {"counted", std::move(counted)}};
}

void RefusedJobs::Forget() {
  since_ = absl::InfiniteFuture();
  std::erase_if(kinds_, [this](const auto& kind) { return kind.second.second != second_; });
  for (auto& [name, kind] : kinds_) kind.counted = 0;
}

}  // namespace mpckdc
