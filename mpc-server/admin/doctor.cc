// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/doctor.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "mpc-server/admin/names.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;

constexpr size_t kNamesShown = 5;

constexpr struct {
  const char* shown;
  const char* in_json;
  Colour colour;
} kLevels[] = {{"ok", "ok", Colour::kGood},
               {"warning", "warning", Colour::kWarning},
               {"BAD", "bad", Colour::kBad}};

ExitCode Report(Session& session, const Findings& findings) {
  json list = json::array();
  std::array<size_t, std::size(kLevels)> counts = {};
  for (const Finding& finding : findings.all) {
    const auto& level = kLevels[finding.level];
    session.console.Say(level.colour, absl::StrFormat("%-8s %s", level.shown, finding.what));
    if (!finding.next.empty()) session.console.Say("         next: ", finding.next);
    if (!finding.page.empty()) session.console.Say("         see:  runbook ", finding.page);
    list.push_back({{"level", level.in_json},
                    {"what", finding.what},
                    {"next", finding.next},
                    {"runbook", finding.page}});
    ++counts[finding.level];
  }
  const size_t bad = counts[kBad], warnings = counts[kWarning];
  session.console.Print(json{{"findings", list}, {"bad", bad}, {"warnings", warnings}});
  session.console.Say(findings.all.size(), " checks: ", bad, " bad, ", warnings, " warnings");
  if (bad + warnings > 0) {
    session.console.Say("runbooks: deploy/runbooks, or /usr/share/doc/mpc-admin/runbooks");
  }
  return bad == 0 ? ExitCode::kOk : ExitCode::kFindings;
}

}  // namespace

std::string Some(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamesShown);
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + shown, ", "),
                      shown < names.size()
                          ? absl::StrCat(" and ", names.size() - shown, " more")
                          : "");
}

absl::StatusOr<ExitCode> DoctorCommand(Session& session) {
  Findings findings;
  CheckOwnCertificate(session.config, &findings);
  if (CheckServers(session, &findings)) {
    const absl::StatusOr<enroll::AdminServers*> connected =
        session.Connect(/*allow_uninitialised=*/true);
    if (!connected.ok()) {
      findings.Bad(runbook::kLoginsFail, connected.status());
    } else if (!(*connected)->lost().any()) {  // it was said what an empty store lacks: everything
      findings.Ok("the servers are parties 0, 1 and 2 of one cluster and epoch");
      CheckStaged(session, &findings);
      CheckStores(session, &findings);
    }
  }
  return Report(session, findings);
}

}  // namespace mpckdc::admin
