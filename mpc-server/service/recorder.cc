// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/recorder.h"

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/service/job_log.h"
#include "mpc-server/service/log.h"

namespace mpckdc {
namespace {

constexpr size_t kDigestBytes = 16;  // of the job's SHA-256, in a line
constexpr size_t kJobTextBytes = 768;  // a good guess

template <class Bytes>
std::string Hex(const Bytes& bytes) {
  return absl::BytesToHexString(AsText(bytes));
}

void AppendKeys(absl::Span<const KeyUsed> keys, std::string* out) {
  const char* separator = ",\"keys\":[";
  for (const KeyUsed& key : keys) {
    absl::StrAppend(out, separator, "{\"part\":\"", PartKindName(key.part),
                    "\",\"usage\":", key.usage, ",\"handle\":\"", Hex(key.handle));
    absl::StrAppend(out, "\",\"principal\":\"", Hex(key.principal), "\"}");
    separator = ",";
  }
  if (!keys.empty()) out->push_back(']');
}

// A batch has thousands of jobs: their text is put together here, without a tree of JSON values.
void AppendJob(const BatchJob& job, std::string* out) {
  absl::StrAppend(out, "{\"kdc\":", audit::JsonText(job.kdc.name), ",\"session\":\"",
                  Hex(job.kdc.session), "\",\"id\":", job.id, ",\"op\":\"");
  absl::StrAppend(out, OperationText(job.operation), "\",\"principal\":\"", Hex(job.principal),
                  "\",\"digest\":\"",
                  absl::BytesToHexString(AsText(job.digest).substr(0, kDigestBytes)),
                  "\",\"verdict\":\"", VerdictName(job.judgement.verdict), "\"");
  if (!job.judgement.detail.empty()) {
    absl::StrAppend(out, ",\"detail\":", audit::JsonText(job.judgement.detail));
  }
  if (job.request != 0) absl::StrAppend(out, ",\"request\":\"", RequestText(job.request), "\"");
  if (job.computed && !job.judgement.ok()) absl::StrAppend(out, ",\"computed\":true");
  AppendKeys(job.keys, out);
  out->push_back('}');
}

// The fields `first`, and the jobs.
audit::Members WithJobs(const AuditLog::Fields& first, absl::string_view jobs) {
  const std::string text = audit::MembersOf(first).text;
  return {absl::StrCat(text, text.empty() ? "" : ",", "\"jobs\":[", jobs, "]")};
}

absl::Status Explained(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("answers no job that it cannot audit: ",
                                                  status.message()));
}

}  // namespace

absl::Status AuditRecorder::Ready() { return Explained(audit_->Ready()); }

// The text of those that are not counted instead.
std::string AuditRecorder::Listed(absl::Span<const BatchJob> jobs, absl::Time time) {
  std::string text;
  text.reserve(jobs.size() * kJobTextBytes);
  for (const BatchJob& job : jobs) {
    if (!refused_.Lists(job, time)) continue;
    if (!text.empty()) text.push_back(',');
    AppendJob(job, &text);
  }
  return text;
}

absl::Status AuditRecorder::Record(const BatchReport& report) {
  const std::string jobs = Listed(report.jobs, report.time);
  if (jobs.empty() && report.status.ok()) return absl::OkStatus();  // nothing else was in it
  AuditLog::Fields line = {{"ring", Hex(report.session)},
                           {"batch", report.batch},
                           {"view", Hex(report.view)},
                           {"waited_us", absl::ToInt64Microseconds(report.waited)},
                           {"agreed_us", absl::ToInt64Microseconds(report.agreed)},
                           {"computed_us", absl::ToInt64Microseconds(report.computed)},
                           {"aes_blocks", report.aes_blocks},
                           {"rounds", report.rounds}};
  if (!report.status.ok()) line["error"] = Text(report.status);
  const absl::Status written = audit_->AppendMembers("batch", WithJobs(line, jobs));
  if (!written.ok()) {
    Log().error("{} jobs are answered UNAVAILABLE: {}", report.jobs.size(), Text(written));
  }
  return Explained(written);
}

void AuditRecorder::RecordUnbatched(absl::Span<const BatchJob> jobs, uint64_t left_out) {
  const std::string listed = Listed(jobs, clock_.Now());
  if (listed.empty() && left_out == 0) return;
  AuditLog::Fields line;
  if (left_out > 0) line["left_out"] = left_out;
  const absl::Status written = audit_->AppendMembers("jobs", WithJobs(line, listed));
  if (!written.ok()) Log().error("{} refused jobs: {}", jobs.size(), Text(written));
}

void AuditRecorder::WriteCounts() {
  AuditLog::Fields line = refused_.Counts();
  if (line.is_null()) return refused_.Forget();
  if (audit_->Append("counted", std::move(line)).ok()) refused_.Forget();
}

}  // namespace mpckdc
