// SPDX-License-Identifier: Apache-2.0
//
// audit reconcile: what only some of the servers saw.
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/admin/audit_command.h"
#include "mpc-server/audit/reconcile.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::admin {
namespace {

using audit::kServers;
using nlohmann::json;

constexpr size_t kShownFindings = 50;
constexpr size_t kShownDigits = 8;  // of an id, in the table

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

// "OK OK -": what each server says of the job.
std::string Verdicts(const audit::JobStory& job) {
  std::string text;
  for (const auto& told : job.told) {
    absl::StrAppend(&text, text.empty() ? "" : " ", told ? told->verdict : "-");
  }
  return text;
}

json ToJson(const audit::Finding& finding) {
  json object = {{"kind", audit::FindingName(finding.kind)},
                 {"explained", finding.explained},
                 {"time", TimeText(finding.time)},
                 {"text", finding.text}};
  const audit::JobStory& job = finding.job;
  if (job.kdc.empty()) return object;
  json told = json::array();
  for (const auto& server : job.told) {
    if (!server) {
      told.push_back(nullptr);
      continue;
    }
    told.push_back({{"verdict", server->verdict},
                    {"digest", server->digest},
                    {"detail", server->detail},
                    {"ring", server->ring},
                    {"batch", server->batch}});
  }
  object.update({{"kdc", job.kdc},
                 {"session", job.session},
                 {"id", job.id},
                 {"op", job.operation},
                 {"principal", job.principal},
                 {"servers", told}});
  return object;
}

json ToJson(const audit::Reconciliation& result) {
  json servers = json::array();
  for (const audit::ServerLog& log : result.servers) {
    servers.push_back({{"lines", log.chain.lines},
                       {"first", log.chain.first},
                       {"last", log.chain.head.seq},
                       {"first_time", log.chain.first_time},
                       {"last_time", log.chain.last_time},
                       {"head", log.chain.head.hash},
                       {"batches", log.batches},
                       {"jobs", log.jobs},
                       {"breaks", BreaksToJson(log.chain.breaks)}});
  }
  json findings = json::array();
  for (const audit::Finding& finding : result.findings) findings.push_back(ToJson(finding));
  return {{"realm", result.realm},
          {"clean", result.clean()},
          {"servers", servers},
          {"jobs", result.jobs},
          {"batches", result.batches},
          {"unexplained", result.unexplained},
          {"explained", result.explained},
          {"by_kdc", result.by_kdc},
          {"by_principal", result.by_principal},
          {"findings", findings},
          {"left_out", result.left_out}};
}

Table ServerTable(const audit::Reconciliation& result) {
  Table table({"SERVER", "LINES", "BATCHES", "JOBS", "FROM", "TO", "HEAD", "CHAIN"});
  for (size_t party = 0; party < kServers; ++party) {
    const audit::ServerLog& log = result.servers[party];
    table.AddRow({absl::StrCat(party), absl::StrCat(log.chain.first, "-", log.chain.head.seq),
                  absl::StrCat(log.batches), absl::StrCat(log.jobs), log.chain.first_time,
                  log.chain.last_time, log.chain.head.hash.substr(0, 2 * kShownDigits),
                  log.chain.intact() ? "intact" : "BROKEN"});
  }
  return table;
}

void SayBreaks(const audit::Reconciliation& result, Console& console) {
  for (const audit::ServerLog& log : result.servers) {
    if (log.chain.intact()) continue;
    console.Say(Describe(log.chain.breaks.front()), Colour::kBad);
    if (log.chain.break_count > 1) {
      console.Say(absl::StrCat("  and ", log.chain.break_count - 1, " more breaks of that chain"),
                  Colour::kBad);
    }
  }
}

// What nothing explains, one job a row; why, once for all rows that have the same reason.
void SayFindings(const audit::Reconciliation& result, Console& console) {
  Table table({"TIME", "WHAT", "KDC", "JOB", "OPERATION", "PRINCIPAL", "SERVERS 0 1 2"});
  std::vector<std::string> reasons;
  size_t shown = 0;
  for (const audit::Finding& finding : result.findings) {
    if (finding.explained || shown == kShownFindings) continue;
    ++shown;
    const audit::JobStory& job = finding.job;
    if (job.kdc.empty()) {
      table.AddRow({TimeText(finding.time), audit::FindingName(finding.kind)});
    } else {
      table.AddRow({TimeText(finding.time), audit::FindingName(finding.kind), job.kdc,
                    absl::StrCat(job.session.substr(0, kShownDigits), "/", job.id), job.operation,
                    job.principal.substr(0, kShownDigits), Verdicts(job)});
    }
    if (reasons.empty() || reasons.back() != finding.text) reasons.push_back(finding.text);
  }
  if (shown == 0) return;
  console.Say("");
  console.Print(table);
  if (result.unexplained > shown) {
    console.Say(absl::StrCat("and ", result.unexplained - shown, " more; --json lists them"));
  }
  for (const std::string& reason : reasons) console.Say(reason, Colour::kBad);
}

void SayCounts(const char* title, const std::map<std::string, uint64_t>& counts,
               Console& console) {
  if (counts.empty()) return;
  console.Say("");
  console.Say(title, Colour::kDim);
  size_t shown = 0;
  for (const auto& [name, count] : counts) {
    if (++shown > kShownFindings) break;
    console.Say(absl::StrCat("  ", count, "  ", name));
  }
}

}  // namespace

absl::StatusOr<ExitCode> AuditReconcile(const Options& options, Console& console) {
  if (options.operands.size() != kServers) {
    return BadUsage("audit reconcile",
                    "name three logs, one of each server: a file each, or a folder each");
  }
  std::array<std::vector<audit::LogFile>, kServers> logs;
  std::vector<audit::LogFile> all;
  for (size_t i = 0; i < kServers; ++i) {
    ASSIGN_OR_RETURN(logs[i], audit::FindFiles({options.operands[i]}));
    all.insert(all.end(), logs[i].begin(), logs[i].end());
  }
  ASSIGN_OR_RETURN(
      audit::Reconciliation result,
      audit::Reconcile(logs, {options.since, options.until, ProgressOver(all, &console)}));
  console.EndProgress();
  console.Print(ToJson(result));
  console.Print(ServerTable(result));
  console.Say(absl::StrCat(result.jobs, " jobs in ", result.batches,
                           " batches are told alike by all three"));
  SayBreaks(result, console);
  SayFindings(result, console);
  SayCounts("not explained, by KDC:", result.by_kdc, console);
  SayCounts("not explained, by principal:", result.by_principal, console);
  SayCounts("different, and normal:", result.explained, console);
  console.Say("");
  if (result.clean()) {
    console.Say("nothing is unexplained", Colour::kGood);
    return ExitCode::kOk;
  }
  console.Say(absl::StrCat(result.unexplained, " differences are not explained",
                           result.unexplained > 0 ? "" : ", but a chain is broken"),
              Colour::kBad);
  return ExitCode::kFindings;
}

}  // namespace mpckdc::admin
