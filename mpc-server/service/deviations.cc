// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/deviations.h"

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "mpc-server/base/bytes.h"

namespace mpckdc {
namespace {

bool HasSession(const DeviationReport& report) {
  return absl::c_any_of(report.session, [](uint8_t byte) { return byte != 0; });
}

}  // namespace

v1::Quarantine ToProto(const DeviationReport& report) {
  v1::Quarantine out;
  for (int party = 0; party < kParties; ++party) {
    if (report.suspects.Has(party)) out.add_suspects(static_cast<uint32_t>(party));
  }
  out.set_text(report.text);
  if (HasSession(report)) out.set_session(std::string(AsText(report.session)));
  out.set_batch(report.batch);
  out.set_time_us(absl::ToUnixMicros(report.time));
  return out;
}

AuditLog::Fields DeviationFields(const DeviationReport& report) {
  AuditLog::Fields suspects = AuditLog::Fields::array();
  for (int party = 0; party < kParties; ++party) {
    if (report.suspects.Has(party)) suspects.push_back(party);
  }
  return {{"suspects", suspects},
          {"text", report.text},
          {"ring", HasSession(report) ? absl::BytesToHexString(AsText(report.session)) : ""},
          {"batch", report.batch}};
}

}  // namespace mpckdc
