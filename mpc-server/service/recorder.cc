// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/recorder.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "mpc-server/service/log.h"
#include "mpc-server/store/bytes.h"
#include "proto/kdc_key.pb.h"

namespace mpckdc {
namespace {

constexpr size_t kDigestBytes = 16;  // of the job's SHA-256, in a line

// "LOGIN" of OPERATION_LOGIN.
std::string OperationText(Operation operation) {
  const auto number = static_cast<v1::Operation>(operation);
  if (!v1::Operation_IsValid(number)) return "UNKNOWN";
  return v1::Operation_Name(number).substr(sizeof "OPERATION_" - 1);
}

template <class Bytes>
std::string Hex(const Bytes& bytes) {
  return absl::BytesToHexString(AsText(bytes));
}

AuditLog::Fields JobFields(const BatchJob& job) {
  AuditLog::Fields fields = {{"kdc", job.kdc.name},
                             {"session", Hex(job.kdc.session)},
                             {"id", job.id},
                             {"op", OperationText(job.operation)},
                             {"principal", Hex(job.principal)},
                             {"digest", Hex(job.digest).substr(0, 2 * kDigestBytes)},
                             {"verdict", Text(VerdictName(job.judgement.verdict))}};
  if (!job.judgement.detail.empty()) fields["detail"] = job.judgement.detail;
  return fields;
}

AuditLog::Fields JobList(absl::Span<const BatchJob> jobs) {
  AuditLog::Fields list = AuditLog::Fields::array();
  for (const BatchJob& job : jobs) list.push_back(JobFields(job));
  return list;
}

absl::Status Explained(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("answers no job that it cannot audit: ",
                                                  status.message()));
}

}  // namespace

absl::Status AuditRecorder::Ready() { return Explained(audit_->Ready()); }

absl::Status AuditRecorder::Record(const BatchReport& report) {
  AuditLog::Fields line = {{"ring", Hex(report.session)},
                           {"batch", report.batch},
                           {"view", Hex(report.view)},
                           {"waited_us", absl::ToInt64Microseconds(report.waited)},
                           {"agreed_us", absl::ToInt64Microseconds(report.agreed)},
                           {"computed_us", absl::ToInt64Microseconds(report.computed)},
                           {"aes_blocks", report.aes_blocks},
                           {"rounds", report.rounds}};
  if (!report.status.ok()) line["error"] = Text(report.status);
  line["jobs"] = JobList(report.jobs);
  const absl::Status written = audit_->Append("batch", line);
  if (!written.ok()) {
    Log().error("{} jobs are answered UNAVAILABLE: {}", report.jobs.size(), Text(written));
  }
  return Explained(written);
}

void AuditRecorder::RecordUnbatched(absl::Span<const BatchJob> jobs, uint64_t left_out) {
  AuditLog::Fields line;
  if (left_out > 0) line["left_out"] = left_out;
  line["jobs"] = JobList(jobs);
  const absl::Status written = audit_->Append("jobs", line);
  if (!written.ok()) Log().error("{} refused jobs: {}", jobs.size(), Text(written));
}

}  // namespace mpckdc
