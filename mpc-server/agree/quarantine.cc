// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/quarantine.h"

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

constexpr char kItem[] = "quarantine";  // empty: none
constexpr uint8_t kReportVersion = 1;

}  // namespace

std::string ReasonOf(const DeviationReport& report) {
  return absl::StrCat("quarantined since ",
                      absl::FormatTime(absl::RFC3339_sec, report.time, absl::UTCTimeZone()),
                      ", until mpc-admin readmit: ", report.text);
}

std::string EncodeReport(const DeviationReport& report) {
  ByteWriter out;
  out.Uint(kReportVersion, 1);
  out.Uint(report.suspects.mask(), 1);
  out.Uint(static_cast<uint64_t>(absl::ToUnixMicros(report.time)), 8);
  out.Fixed(report.session);
  out.Uint(report.batch, 8);
  out.Counted(report.text, 2);
  return out.Take();
}

absl::StatusOr<DeviationReport> DecodeReport(absl::Span<const uint8_t> bytes) {
  ByteReader in(bytes);
  DeviationReport report;
  const uint64_t version = in.Uint(1);
  const std::optional<Suspects> suspects = Suspects::FromMask(in.Uint(1));
  report.time = absl::FromUnixMicros(static_cast<int64_t>(in.Uint(8)));
  in.Into(report.session);
  report.batch = in.Uint(8);
  report.text = in.Text(in.Uint(2));
  if (version != kReportVersion || !suspects.has_value() || !in.AtEnd()) {
    return absl::DataLossError(
        "the store's record of a deviation cannot be read: restore the store, or use the version "
        "of "
        "mpc-server that wrote it");
  }
  report.suspects = *suspects;
  return report;
}

void Quarantine::Show(const std::optional<DeviationReport>& report) {
  status_->Update([&](EngineStatus& status) { status.quarantine = report; });
}

absl::Status Quarantine::Load() {
  const absl::StatusOr<SecretBytes> item = store_->ReadItem(kItem);
  if (absl::IsNotFound(item.status())) return absl::OkStatus();
  RETURN_IF_ERROR(item.status());
  if (item->empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const DeviationReport report, DecodeReport(*item));
  {
    const absl::MutexLock lock(&mu_);
    report_ = report;
  }
  Show(report);
  return absl::OkStatus();
}

void Quarantine::Enter(const DeviationReport& seen) {
  DeviationReport report = seen;
  report.text.resize(std::min(report.text.size(), limits::kMaxDeviationText));
  report.time = absl::FromUnixMicros(absl::ToUnixMicros(report.time));  // as it is written
  {
    const absl::MutexLock lock(&mu_);
    if (report_.has_value()) return;
    report_ = report;
    saved_ = false;
  }
  Show(report);
  Save();
  observer_->OnDeviation(report);
}

void Quarantine::Save() {
  {
    const absl::MutexLock lock(&mu_);
    if (saved_) return;
  }
  const absl::MutexLock writing(&store_mu_);
  DeviationReport report;
  {
    const absl::MutexLock lock(&mu_);
    if (saved_) return;  // or it was ended
    report = *report_;
  }
  const bool saved = store_->WriteItem(kItem, AsBytes(EncodeReport(report))).ok();
  const absl::MutexLock lock(&mu_);
  saved_ = saved;
}

// A deviation that one machine saw concerns the party, and so all of its machines.
void Quarantine::Look() {
  if (!store_->shared()) return;
  std::optional<DeviationReport> there;
  {
    const absl::MutexLock reading(&store_mu_);
    const absl::StatusOr<SecretBytes> item = store_->ReadItem(kItem);
    if (!item.ok() && !absl::IsNotFound(item.status())) return;
    if (item.ok() && !item->empty()) {
      const absl::StatusOr<DeviationReport> report = DecodeReport(*item);
      if (!report.ok()) return;
      there = *report;
    }
    const absl::MutexLock lock(&mu_);
    // One that this machine saw meanwhile is not there yet.
    if (!saved_ || there.has_value() == report_.has_value()) return;
    report_ = there;
  }
  Show(there);
  if (there.has_value()) observer_->OnDeviation(*there);
}

std::string Quarantine::Reason() const {
  const absl::MutexLock lock(&mu_);
  return report_.has_value() ? ReasonOf(*report_) : "";
}

absl::StatusOr<std::optional<DeviationReport>> Quarantine::Readmit() {
  std::optional<DeviationReport> ended;
  {
    const absl::MutexLock writing(&store_mu_);
    if (Reason().empty()) return ended;
    RETURN_IF_ERROR(store_->WriteItem(kItem, {}));
    const absl::MutexLock lock(&mu_);
    ended.swap(report_);
    saved_ = true;
  }
  Show(std::nullopt);
  return ended;
}

}  // namespace mpckdc
