// SPDX-License-Identifier: Apache-2.0
//
// mpc-admin audit: works on files of the servers' audit logs, without configuration, certificates
// or network.
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/audit/chain.h"
#include "mpc-server/audit/reconcile.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/key_info.h"

namespace mpckdc::audit {

using nlohmann::json;

static std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

// ---- With --json: nlohmann::json finds these by their names ----

static void to_json(json& out, const Break& found) {
  out = {{"kind", BreakName(found.kind)},
         {"file", found.file},
         {"line", found.line},
         {"text", found.text}};
}

// What verify and reconcile both say of a log.
static void to_json(json& out, const Verification& chain) {
  out = {{"lines", chain.lines},         {"first", chain.first},
         {"last", chain.head.seq},       {"first_time", chain.first_time},
         {"last_time", chain.last_time}, {"head", chain.head.hash},
         {"breaks", chain.breaks}};
}

static void to_json(json& out, const ServerLog& log) {
  out = log.chain;
  out.update({{"batches", log.batches}, {"jobs", log.jobs}});
}

static void to_json(json& out, const Finding& finding) {
  out = {{"kind", FindingName(finding.kind)},
         {"explained", finding.explained},
         {"time", TimeText(finding.time)},
         {"text", finding.text}};
  const JobStory& job = finding.job;
  if (job.kdc.empty()) return;
  json told = json::array();
  for (const auto& server : job.told) {
    told.push_back(!server ? json()
                           : json{{"verdict", server->verdict},
                                  {"digest", server->digest},
                                  {"detail", server->detail},
                                  {"ring", server->ring},
                                  {"batch", server->batch}});
  }
  out.update({{"kdc", job.kdc},
              {"session", job.session},
              {"id", job.id},
              {"op", job.operation},
              {"principal", job.principal},
              {"servers", told}});
}

static void to_json(json& out, const Reconciliation& result) {
  out = {{"realm", result.realm},
         {"clean", result.clean()},
         {"servers", result.servers},
         {"jobs", result.jobs},
         {"batches", result.batches},
         {"unexplained", result.unexplained},
         {"explained", result.explained},
         {"by_kdc", result.by_kdc},
         {"by_principal", result.by_principal},
         {"findings", result.findings},
         {"left_out", result.left_out}};
}

}  // namespace mpckdc::audit

namespace mpckdc::admin {
namespace {

using audit::kServers;
using nlohmann::json;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kShowProgress = 4096;  // lines
constexpr size_t kIdDigits = 32;
constexpr uint64_t kUsageTicket = 2;  // RFC 4120, 7.5.1
constexpr size_t kShownFindings = 50;
constexpr size_t kShownDigits = 8;  // of an id, in the table

// ---- What they have in common ----

std::string Describe(const audit::Break& found) {
  return absl::StrCat(found.file, ":", found.line, ": ", audit::BreakName(found.kind), ": ",
                      found.text);
}

// Shows progress over the bytes of files; EndProgress() ends it.
std::function<void(uint64_t)> ProgressOver(const std::vector<audit::LogFile>& files,
                                           Console* console) {
  uint64_t total = 0;
  for (const audit::LogFile& file : files) {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(file.path, error);
    if (!error) total += size;
  }
  return [total, console](uint64_t done) {
    console->Progress(std::min(done, total) / kMiB, std::max<uint64_t>(total / kMiB, 1), "MiB");
  };
}

// ---- verify ----

void Say(const audit::Verification& result, Console& console) {
  console.Say("log of     ", result.owner);
  console.Say("lines      ", result.first, " to ", result.head.seq, " (", result.lines, ")");
  if (result.first > 1) {
    console.Say("           lines 1 to ", result.first - 1,
                " are not in these files and were not checked");
  }
  console.Say("from       ", result.first_time);
  console.Say("to         ", result.last_time);
  console.Say("head       ", result.head.hash);
  for (const audit::Break& found : result.breaks) console.Say(Colour::kBad, Describe(found));
  const uint64_t more = result.break_count - result.breaks.size();
  if (more > 0) console.Say(Colour::kBad, "and ", more, " more breaks");
  if (result.intact()) console.Say(Colour::kGood, "the chain is intact");
}

absl::StatusOr<ExitCode> AuditVerify(const Options& options, Console& console) {
  ASSIGN_OR_RETURN(std::vector<audit::LogFile> files, audit::FindFiles(options.operands));
  ASSIGN_OR_RETURN(audit::Verification result,
                   audit::Verify(files, options.head, ProgressOver(files, &console)));
  console.EndProgress();
  json object = result;
  object.update(
      {{"intact", result.intact()}, {"owner", result.owner}, {"break_count", result.break_count}});
  if (!options.head.empty()) object["known_head_found"] = result.known_head_found;
  console.Print(object);
  Say(result, console);
  if (!options.head.empty()) {
    console.Say(result.known_head_found ? Colour::kGood : Colour::kBad,
                result.known_head_found
                    ? "the known head is a line of this log"
                    : "the known head is no line of this log: it was cut before that line, or "
                      "rewritten, or the line is in a file that was not given");
  }
  const bool good = result.intact() && (options.head.empty() || result.known_head_found);
  return good ? ExitCode::kOk : ExitCode::kFindings;
}

// ---- show ----

// A principal as the user named it: with the log's realm if he gave none, or by its id.
struct Wanted {
  std::string name;  // empty: any
  std::string id;    // as the log has it; empty until a line was seen

  absl::Status Resolve(const audit::Fields& fields) {
    if (name.empty() || !id.empty()) return absl::OkStatus();
    if (name.size() == kIdDigits && FromHex(name).ok()) {
      id = name;
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(name, QualifyPrincipal(name, audit::TextField(fields, "realm")));
    id = HandleText(PrincipalIdOf(name));
    return absl::OkStatus();
  }
};

// "seal 2, open 2": what a job did under keys of tickets; of a service's, or of anybody's.
std::string TicketUses(const audit::Fields& job, const std::string& service) {
  std::string uses;
  if (!job.contains("keys") || !job["keys"].is_array()) return uses;
  for (const audit::Fields& key : job["keys"]) {
    const uint64_t usage = audit::NumberField(key, "usage");
    if (usage != kUsageTicket || audit::TextField(key, "principal") != service) continue;
    absl::StrAppend(&uses, uses.empty() ? "" : ", ", audit::TextField(key, "part"), " ", usage);
  }
  return uses;
}

// Picks the jobs and the administrators' acts that concern one principal, or all; or the jobs that
// sealed or opened tickets of a service, or that are part of one request.
class Shower {
 public:
  Shower(const Options& options, Console* console)
      : principal_{options.principal, ""},
        service_{options.service, ""},
        request_(options.request),
        options_(options),
        console_(*console) {}

  absl::Status Take(const audit::Line& line) {
    const absl::Time time = audit::TimeOf(line);
    if (time < options_.since || time > options_.until) return absl::OkStatus();
    const bool jobs = line.kind == "batch" || line.kind == "jobs";
    const bool counted = line.kind == "counted", at_door = line.kind == "refused";
    if (!jobs && !counted && !at_door && line.kind != "admin") return absl::OkStatus();
    const audit::Fields fields = audit::FieldsOf(line);
    RETURN_IF_ERROR(principal_.Resolve(fields));
    RETURN_IF_ERROR(service_.Resolve(fields));
    if (counted) {
      TakeCounts(line, fields);
    } else if (at_door) {
      TakeRefusal(line, fields);
    } else if (!jobs) {
      TakeAct(line, fields);
    } else if (fields.contains("jobs")) {
      for (const audit::Fields& job : fields["jobs"]) TakeJob(line, job);
    }
    return absl::OkStatus();
  }

  void End() {
    console_.Print(found_);
    if (count_ == 0) console_.Say("nothing was found");
    if (keyless_ > 0) {
      console_.Remark(absl::StrCat(keyless_,
                                   " jobs are in lines of format 2, which do not name the "
                                   "keys: what they sealed for whom cannot be told"));
    }
    if (unnamed_ > 0) {
      console_.Remark(absl::StrCat(unnamed_,
                                   " jobs that were refused, and not computed, are only counted: "
                                   "some may be what you look for. Without --principal and "
                                   "--request their counts are shown"));
    }
  }

 private:
  struct Found {
    std::string who, what, verdict, principal, detail;
  };

  bool OfRequest(const audit::Fields& fields) const {
    return request_.empty() || audit::TextField(fields, "request") == request_;
  }

  void TakeJob(const audit::Line& line, const audit::Fields& job) {
    if (!OfRequest(job)) return;
    if (!principal_.id.empty() && audit::TextField(job, "principal") != principal_.id) return;
    std::string what = audit::TextField(job, "op");
    if (!service_.id.empty()) {
      keyless_ += line.version < audit::kFormatVersion;
      const std::string uses = TicketUses(job, service_.id);
      if (uses.empty()) return;
      absl::StrAppend(&what, " (", uses, ")");
    }
    Show(line, {audit::TextField(job, "kdc"), what, audit::TextField(job, "verdict"),
                audit::TextField(job, "principal"), audit::TextField(job, "detail")});
  }

  // Of a flood, which has a line for its number. No ticket of a service is among them.
  void TakeCounts(const audit::Line& line, const audit::Fields& fields) {
    if (!service_.name.empty() || !fields.contains("counted")) return;
    for (const audit::Fields& kind : fields["counted"]) {
      const uint64_t count = audit::NumberField(kind, "count");
      const std::string last = audit::TextField(kind, "principal");
      if (!request_.empty() || (!principal_.id.empty() && last != principal_.id)) {
        unnamed_ += count;
        continue;
      }
      Show(line, {audit::TextField(kind, "kdc"), audit::TextField(kind, "op"),
                  audit::TextField(kind, "verdict"), last,
                  absl::StrCat(count, " more since ", audit::TextField(fields, "since"),
                               ", the last of this principal")});
    }
  }

  // What was refused before it was a job says whose request it was, if anything, and no more.
  void TakeRefusal(const audit::Line& line, const audit::Fields& refused) {
    if (request_.empty() || !OfRequest(refused)) return;
    Show(line, {audit::TextField(refused, "kdc"), audit::TextField(refused, "call"), "REFUSED", "",
                audit::TextField(refused, "reason")});
  }

  void TakeAct(const audit::Line& line, const audit::Fields& act) {
    if (!service_.name.empty() || !request_.empty()) return;
    std::string names;
    bool mine = principal_.id.empty() || audit::TextField(act, "principal") == principal_.name;
    if (act.contains("keys") && act["keys"].is_array()) {
      for (const audit::Fields& key : act["keys"]) {
        const std::string name = audit::TextField(key, "principal");
        mine |= name == principal_.name;
        if (absl::StrContains(names, name)) continue;
        absl::StrAppend(&names, names.empty() ? "" : ",", name);
      }
    }
    if (!mine) return;
    Show(line, {audit::TextField(act, "who"), audit::TextField(act, "call"),
                audit::TextField(act, "result"), names, audit::TextField(act, "reason")});
  }

  void Show(const audit::Line& line, const Found& found) {
    ++count_;
    if (console_.json()) {
      found_.push_back({{"seq", line.seq},
                        {"time", std::string(line.time)},
                        {"who", found.who},
                        {"what", found.what},
                        {"verdict", found.verdict},
                        {"principal", found.principal},
                        {"detail", found.detail}});
      return;
    }
    console_.Say(found.verdict == "OK" ? Colour::kNone : Colour::kWarning,
                 absl::StrFormat("%s  %8d  %-12s %-15s %-14s %s%s%s", line.time, line.seq,
                                 found.who, found.what, found.verdict, found.principal,
                                 found.detail.empty() ? "" : "  ", found.detail));
  }

  Wanted principal_, service_;
  const std::string& request_;  // empty: any
  const Options& options_;
  Console& console_;
  json found_ = json::array();
  uint64_t count_ = 0;
  uint64_t keyless_ = 0;  // jobs of lines that name no keys
  uint64_t unnamed_ = 0;  // refused jobs that were counted and may be those that are wanted
};

absl::StatusOr<ExitCode> AuditShow(const Options& options, Console& console) {
  ASSIGN_OR_RETURN(std::vector<audit::LogFile> files, audit::FindFiles(options.operands));
  Shower shower(options, &console);
  audit::ChainReader reader(files);
  const std::function<void(uint64_t)> tell = ProgressOver(files, &console);
  audit::Line line;
  for (uint64_t count = 1; reader.Next(&line); ++count) {
    RETURN_IF_ERROR(shower.Take(line));
    if (count % kShowProgress == 0) tell(reader.bytes());
  }
  RETURN_IF_ERROR(reader.status());
  console.EndProgress();
  shower.End();
  if (reader.so_far().intact()) return ExitCode::kOk;
  console.Remark("the chain of this log is broken: see mpc-admin audit verify");
  return ExitCode::kFindings;
}

// ---- reconcile: what only some of the servers saw ----

// "OK OK -": what each server says of the job.
std::string Verdicts(const audit::JobStory& job) {
  std::string text;
  for (const auto& told : job.told) {
    absl::StrAppend(&text, text.empty() ? "" : " ", told ? told->verdict : "-");
  }
  return text;
}

Table ServerTable(const audit::Reconciliation& result) {
  Table table = {{"SERVER", "LINES", "BATCHES", "JOBS", "FROM", "TO", "HEAD", "CHAIN"}};
  for (size_t party = 0; party < kServers; ++party) {
    const audit::ServerLog& log = result.servers[party];
    table.push_back({absl::StrCat(party), absl::StrCat(log.chain.first, "-", log.chain.head.seq),
                     absl::StrCat(log.batches), absl::StrCat(log.jobs), log.chain.first_time,
                     log.chain.last_time, log.chain.head.hash.substr(0, 2 * kShownDigits),
                     log.chain.intact() ? "intact" : "BROKEN"});
  }
  return table;
}

void SayBreaks(const audit::Reconciliation& result, Console& console) {
  for (const audit::ServerLog& log : result.servers) {
    if (log.chain.intact()) continue;
    console.Say(Colour::kBad, Describe(log.chain.breaks.front()));
    const uint64_t more = log.chain.break_count - 1;
    if (more > 0) console.Say(Colour::kBad, "  and ", more, " more breaks of that chain");
  }
}

// What nothing explains, one job a row; why, once for all rows that have the same reason.
void SayFindings(const audit::Reconciliation& result, Console& console) {
  Table table = {{"TIME", "WHAT", "KDC", "JOB", "OPERATION", "PRINCIPAL", "SERVERS 0 1 2"}};
  std::vector<std::string> reasons;
  for (const audit::Finding& finding : result.findings) {
    if (finding.explained || table.size() > kShownFindings) continue;
    const audit::JobStory& job = finding.job;
    table.push_back({audit::TimeText(finding.time), audit::FindingName(finding.kind)});
    if (!job.kdc.empty()) {
      const std::string name = absl::StrCat(job.session.substr(0, kShownDigits), "/", job.id);
      table.back().insert(
          table.back().end(),
          {job.kdc, name, job.operation, job.principal.substr(0, kShownDigits), Verdicts(job)});
    }
    if (reasons.empty() || reasons.back() != finding.text) reasons.push_back(finding.text);
  }
  const size_t shown = table.size() - 1;
  if (shown == 0) return;
  console.Say("");
  console.Print(table);
  if (result.unexplained > shown) {
    console.Say("and ", result.unexplained - shown, " more; --json lists them");
  }
  for (const std::string& reason : reasons) console.Say(Colour::kBad, reason);
}

void SayCounts(const char* title, const std::map<std::string, uint64_t>& counts,
               Console& console) {
  if (counts.empty()) return;
  console.Say("");
  console.Say(Colour::kDim, title);
  size_t shown = 0;
  for (const auto& [name, count] : counts) {
    if (++shown > kShownFindings) break;
    console.Say("  ", count, "  ", name);
  }
}

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
  console.Print(json(result));
  console.Print(ServerTable(result));
  console.Say(result.jobs, " jobs in ", result.batches, " batches are told alike by all three");
  SayBreaks(result, console);
  SayFindings(result, console);
  SayCounts("not explained, by KDC:", result.by_kdc, console);
  SayCounts("not explained, by principal:", result.by_principal, console);
  SayCounts("different, and normal:", result.explained, console);
  console.Say("");
  if (result.clean()) {
    console.Say(Colour::kGood, "nothing is unexplained");
    return ExitCode::kOk;
  }
  console.Say(Colour::kBad, result.unexplained, " differences are not explained",
              result.unexplained > 0 ? "" : ", but a chain is broken");
  return ExitCode::kFindings;
}

}  // namespace

absl::StatusOr<ExitCode> AuditCommand(const Options& options, Console& console) {
  if (options.since > options.until) return BadUsage("audit", "--since is after --until");
  if (options.command == "audit reconcile") return AuditReconcile(options, console);
  return options.command == "audit verify" ? AuditVerify(options, console)
                                           : AuditShow(options, console);
}

}  // namespace mpckdc::admin
