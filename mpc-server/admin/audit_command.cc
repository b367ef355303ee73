// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/audit_command.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/audit/chain.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/key_info.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kShowProgress = 4096;  // lines

constexpr size_t kIdDigits = 32;

// ---- verify ----

json ToJson(const audit::Verification& result) {
  return {{"intact", result.intact()},
          {"owner", result.owner},
          {"lines", result.lines},
          {"first", result.first},
          {"last", result.head.seq},
          {"first_time", result.first_time},
          {"last_time", result.last_time},
          {"head", result.head.hash},
          {"breaks", BreaksToJson(result.breaks)},
          {"break_count", result.break_count}};
}

void Say(const audit::Verification& result, Console& console) {
  console.Say(absl::StrCat("log of     ", result.owner));
  console.Say(absl::StrCat("lines      ", result.first, " to ", result.head.seq, " (",
                           result.lines, ")"));
  if (result.first > 1) {
    console.Say(absl::StrCat("           lines 1 to ", result.first - 1,
                             " are not in these files and were not checked"));
  }
  console.Say(absl::StrCat("from       ", result.first_time));
  console.Say(absl::StrCat("to         ", result.last_time));
  console.Say(absl::StrCat("head       ", result.head.hash));
  for (const audit::Break& found : result.breaks) {
    console.Say(Describe(found), Colour::kBad);
  }
  const uint64_t more = result.break_count - result.breaks.size();
  if (more > 0) console.Say(absl::StrCat("and ", more, " more breaks"), Colour::kBad);
  if (result.intact()) console.Say("the chain is intact", Colour::kGood);
}

absl::StatusOr<ExitCode> AuditVerify(const Options& options, Console& console) {
  ASSIGN_OR_RETURN(std::vector<audit::LogFile> files, audit::FindFiles(options.operands));
  ASSIGN_OR_RETURN(audit::Verification result,
                   audit::Verify(files, options.head, ProgressOver(files, &console)));
  console.EndProgress();
  json object = ToJson(result);
  if (!options.head.empty()) object["known_head_found"] = result.known_head_found;
  console.Print(object);
  Say(result, console);
  if (!options.head.empty()) {
    console.Say(result.known_head_found
                    ? "the known head is a line of this log"
                    : "the known head is no line of this log: it was cut before that line, or "
                      "rewritten, or the line is in a file that was not given",
                result.known_head_found ? Colour::kGood : Colour::kBad);
  }
  const bool good = result.intact() && (options.head.empty() || result.known_head_found);
  return good ? ExitCode::kOk : ExitCode::kFindings;
}

// ---- show ----

// Picks the jobs and the administrators' acts that concern one principal, or all.
class Shower {
 public:
  Shower(const Options& options, Console* console)
      : principal_(options.principal), options_(options), console_(*console) {}

  absl::Status Take(const audit::Line& line) {
    const absl::Time time = audit::TimeOf(line);
    if (time < options_.since || time > options_.until) return absl::OkStatus();
    const bool jobs = line.kind == "batch" || line.kind == "jobs";
    if (!jobs && line.kind != "admin") return absl::OkStatus();
    const audit::Fields fields = audit::FieldsOf(line);
    RETURN_IF_ERROR(Resolve(fields));
    if (!jobs) {
      TakeAct(line, fields);
    } else if (fields.contains("jobs")) {
      for (const audit::Fields& job : fields["jobs"]) TakeJob(line, job);
    }
    return absl::OkStatus();
  }

  void End() {
    console_.Print(found_);
    if (count_ == 0) console_.Say("nothing was found");
  }

 private:
  // A name without a realm is of the log's; 32 hexadecimal digits are an id as the log has it.
  absl::Status Resolve(const audit::Fields& fields) {
    if (principal_.empty() || !id_.empty()) return absl::OkStatus();
    if (principal_.size() == kIdDigits && FromHex(principal_).ok()) {
      id_ = principal_;
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(std::string name,
                     QualifyPrincipal(principal_, audit::TextField(fields, "realm")));
    principal_ = name;
    id_ = HandleText(PrincipalIdOf(name));
    return absl::OkStatus();
  }

  void TakeJob(const audit::Line& line, const audit::Fields& job) {
    if (!id_.empty() && audit::TextField(job, "principal") != id_) return;
    Show(line, audit::TextField(job, "kdc"), audit::TextField(job, "op"),
         audit::TextField(job, "verdict"), audit::TextField(job, "principal"),
         audit::TextField(job, "detail"));
  }

  void TakeAct(const audit::Line& line, const audit::Fields& act) {
    std::string names;
    bool mine = id_.empty() || audit::TextField(act, "principal") == principal_;
    if (act.contains("keys") && act["keys"].is_array()) {
      for (const audit::Fields& key : act["keys"]) {
        const std::string name = audit::TextField(key, "principal");
        mine |= name == principal_;
        if (absl::StrContains(names, name)) continue;
        absl::StrAppend(&names, names.empty() ? "" : ",", name);
      }
    }
    if (!mine) return;
    Show(line, audit::TextField(act, "who"), audit::TextField(act, "call"),
         audit::TextField(act, "result"), names, audit::TextField(act, "reason"));
  }

  void Show(const audit::Line& line, const std::string& who, const std::string& what,
            const std::string& verdict, const std::string& principal, const std::string& detail) {
    ++count_;
    if (console_.json()) {
      found_.push_back({{"seq", line.seq},
                        {"time", std::string(line.time)},
                        {"who", who},
                        {"what", what},
                        {"verdict", verdict},
                        {"principal", principal},
                        {"detail", detail}});
      return;
    }
    console_.Say(absl::StrFormat("%s  %8d  %-12s %-15s %-14s %s%s%s", line.time, line.seq, who,
                                 what, verdict, principal, detail.empty() ? "" : "  ", detail),
                 verdict == "OK" ? Colour::kNone : Colour::kWarning);
  }

  std::string principal_;  // as given, then with the realm
  std::string id_;
  const Options& options_;
  Console& console_;
  json found_ = json::array();
  uint64_t count_ = 0;
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

}  // namespace

json BreaksToJson(const std::vector<audit::Break>& breaks) {
  json list = json::array();
  for (const audit::Break& found : breaks) {
    list.push_back({{"kind", audit::BreakName(found.kind)},
                    {"file", found.file},
                    {"line", found.line},
                    {"text", found.text}});
  }
  return list;
}

std::string Describe(const audit::Break& found) {
  return absl::StrCat(found.file, ":", found.line, ": ", audit::BreakName(found.kind), ": ",
                      found.text);
}

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

absl::StatusOr<ExitCode> AuditCommand(const Options& options, Console& console) {
  if (options.since > options.until) return BadUsage("audit", "--since is after --until");
  if (options.command == "audit reconcile") return AuditReconcile(options, console);
  return options.command == "audit verify" ? AuditVerify(options, console)
                                           : AuditShow(options, console);
}

}  // namespace mpckdc::admin
