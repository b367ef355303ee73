// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/audit/reconcile.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::audit {
namespace {

// A job's lines at the three servers lie no farther apart.
constexpr absl::Duration kAround = absl::Hours(1);
constexpr uint64_t kProgressLines = 4096;
// Of the hash of what was staged.
constexpr size_t kToldDigits = 32;

// Changes that all three servers are asked for. The others are harmless or one server's own.
bool IsChange(const std::string& call) {
  return call == "CommitKeys" || call == "DeleteKeys" || call == "SetPolicy" ||
         call == "RestoreKeys" || call == "DrawKey" || call == "RenameKeys";
}
// Calls that say what the CommitKeys of their transaction makes usable.
bool Stages(const std::string& call) {
  return call == "StageKeys" || call == "DrawKey" || call == "RenameKeys";
}

// One log while it is read.
struct Stream {
  explicit Stream(const std::vector<LogFile>& files) : reader(files) {}

  bool Advance() {
    more = reader.Next(&line);
    if (more) time = TimeOf(line);
    return more;
  }

  ChainReader reader;
  Line line;
  bool more = false;
  absl::Time time;
  ServerLog log;
};

struct View {
  absl::Time time;
  std::array<std::string, kServers> views;
};
struct Act {
  absl::Time time;
  std::array<uint64_t, kServers> times{};
  std::string renames;  // in this transaction
};
// What each server was told to stage in a transaction; empty: its log does not say.
struct Staging {
  absl::Time time;    // of its first line
  absl::Time last{};  // and of its last one
  std::array<std::string, kServers> told{};
  bool committed = false;  // somewhere
  bool given_up = false;   // a server refused, or was told to drop it: no difference that lasts
};

class Reconciler {
 public:
  Reconciler(const std::array<std::vector<LogFile>, kServers>& logs,
             const ReconcileOptions& options)
      : options_(options), streams_{Stream(logs[0]), Stream(logs[1]), Stream(logs[2])} {}

  absl::StatusOr<Reconciliation> Run();

 private:
  absl::Status Begin();
  Stream* Earliest();
  void Take(Stream& stream);
  void TakeBatch(Stream& stream, const Fields& line);
  void TakeJob(Stream& stream, const Fields& job, const Told& context);
  void TakeAdmin(Stream& stream, const Fields& line);
  void TakeDeviation(Stream& stream, const Fields& line);
  void EndJobs();
  void EndActs();
  void TakeStaging(Stream& stream, const std::string& call, const Fields& line);
  void CompareStagings();
  // Null: the log of a party has all lines of that time, by what it says itself.
  const char* WhyIncomplete(size_t party, absl::Time time) const;
  void CompareViews(const std::string& batch, const View& view);
  void Report(Finding finding);
  bool Asked(absl::Time time) const { return time >= options_.since && time <= options_.until; }

  const ReconcileOptions options_;
  std::array<Stream, kServers> streams_;
  std::array<size_t, kServers> party_{};  // of each stream
  std::array<Timeline, kServers> timelines_;  // by party
  std::array<CountedJobs, kServers> counted_;
  absl::flat_hash_map<std::string, JobStory> jobs_;
  absl::flat_hash_map<std::string, View> views_;
  std::map<std::pair<std::string, std::string>, Act> acts_;  // by what, and by whom
  std::map<std::string, Staging> stagings_;                  // by transaction
  Reconciliation result_;
};

absl::Status Reconciler::Begin() {
  std::set<size_t> parties;
  std::set<std::string> realms;
  for (size_t i = 0; i < kServers; ++i) {
    Stream& stream = streams_[i];
    if (!stream.Advance()) {
      RETURN_IF_ERROR(stream.reader.status());
      return absl::InvalidArgumentError(absl::StrCat("log ", i + 1, " has no line"));
    }
    const Fields fields = FieldsOf(stream.line);
    party_[i] = NumberField(fields, "party");
    if (party_[i] >= kServers || !parties.insert(party_[i]).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("name the logs of three different servers: log ", i + 1, " is of party ",
                       party_[i], " as well"));
    }
    realms.insert(result_.realm = TextField(fields, "realm"));
  }
  if (realms.size() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError("the logs are of different realms");
}

Stream* Reconciler::Earliest() {
  Stream* first = nullptr;
  for (Stream& stream : streams_) {
    if (stream.more && (first == nullptr || stream.time < first->time)) first = &stream;
  }
  return first;
}

absl::StatusOr<Reconciliation> Reconciler::Run() {
  RETURN_IF_ERROR(Begin());
  uint64_t lines = 0;
  while (Stream* stream = Earliest()) {
    Take(*stream);
    stream->Advance();
    if (jobs_.size() > options_.max_unmatched) {
      return absl::InvalidArgumentError(absl::StrCat(
          "more than ", options_.max_unmatched, " jobs are not in all three logs (up to ",
          absl::FormatTime(absl::RFC3339_sec, stream->time, absl::UTCTimeZone()),
          "): do the files cover the same time? Choose a shorter one with --since and --until"));
    }
    if (!options_.progress || ++lines % kProgressLines != 0) continue;
    options_.progress(streams_[0].reader.bytes() + streams_[1].reader.bytes() +
                      streams_[2].reader.bytes());
  }
  EndJobs();
  for (const auto& [batch, view] : views_) CompareViews(batch, view);
  EndActs();
  CompareStagings();
  for (size_t i = 0; i < kServers; ++i) {
    RETURN_IF_ERROR(streams_[i].reader.status());
    result_.servers[party_[i]] = streams_[i].log;
    result_.servers[party_[i]].chain = streams_[i].reader.so_far();
  }
  std::stable_sort(result_.findings.begin(), result_.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.time < b.time; });
  return std::move(result_);
}

void Reconciler::Take(Stream& stream) {
  Timeline& timeline = timelines_[party_[&stream - &streams_[0]]];
  const Line& line = stream.line;
  if (Timeline::Matters(line)) return timeline.Note(line, stream.time, FieldsOf(line));
  timeline.NoteTime(line, stream.time);
  if (stream.time < options_.since - kAround || stream.time > options_.until + kAround) return;
  if (line.kind == "batch") return TakeBatch(stream, FieldsOf(line));
  if (line.kind == "jobs" || line.kind == "counted") {
    const Fields fields = FieldsOf(line);
    counted_[party_[&stream - &streams_[0]]].Note(line, stream.time, fields);
    return TakeBatch(stream, fields);
  }
  if (line.kind == "admin") TakeAdmin(stream, FieldsOf(line));
  if (line.kind == "deviation") TakeDeviation(stream, FieldsOf(line));
}

// Never explained away: whoever reads the logs must know.
void Reconciler::TakeDeviation(Stream& stream, const Fields& line) {
  std::string who;
  for (const Fields& party : line.contains("suspects") ? line["suspects"] : Fields::array()) {
    absl::StrAppend(&who, who.empty() ? "server " : " or server ", party.dump());
  }
  Report({FindingKind::kDeviation,
          false,
          stream.time,
          absl::StrCat("server ", party_[&stream - &streams_[0]], " saw ", who,
                       " deviate in batch ", TextField(line, "ring"), "/",
                       NumberField(line, "batch"), ": ", TextField(line, "text")),
          {}});
}

void Reconciler::TakeBatch(Stream& stream, const Fields& line) {
  if (!line.is_object() || !line.contains("jobs") || !line["jobs"].is_array()) return;
  Told context;
  context.ring = TextField(line, "ring");
  context.batch = NumberField(line, "batch");
  context.broken = line.contains("error");
  for (const Fields& job : line["jobs"]) TakeJob(stream, job, context);
  if (context.ring.empty()) return;
  ++stream.log.batches;
  const std::string key = absl::StrCat(context.ring, "/", context.batch);
  View& view = views_.try_emplace(key, View{stream.time, {}}).first->second;
  view.views[party_[&stream - &streams_[0]]] = TextField(line, "view");
  if (absl::c_linear_search(view.views, "")) return;
  CompareViews(key, view);
  views_.erase(key);
}

void Reconciler::TakeJob(Stream& stream, const Fields& job, const Told& context) {
  ++stream.log.jobs;
  const std::string kdc = TextField(job, "kdc");
  const std::string session = TextField(job, "session");
  const uint64_t id = NumberField(job, "id");
  const std::string key = absl::StrCat(session, "/", id, "/", kdc);
  JobStory& story = jobs_[key];
  if (story.kdc.empty()) {
    story.kdc = kdc;
    story.session = session;
    story.id = id;
    story.operation = TextField(job, "op");
    story.time = stream.time;
  }
  // A server that refused the job on sight may not know whose it is.
  if (story.principal.empty()) story.principal = TextField(job, "principal");
  Told told = context;
  told.verdict = TextField(job, "verdict");
  told.digest = TextField(job, "digest");
  told.detail = TextField(job, "detail");
  told.operation = TextField(job, "op");
  told.principal = TextField(job, "principal");
  told.computed = job.contains("computed") && job["computed"] == true;
  if (job.contains("keys")) told.keys = job["keys"].dump();
  story.told[party_[&stream - &streams_[0]]] = std::move(told);
  if (!story.Complete()) return;
  if (std::optional<Finding> finding = Compare(story)) {
    Report(*std::move(finding));
  } else if (Asked(story.time)) {
    ++result_.jobs;
  }
  jobs_.erase(key);
}

void Reconciler::TakeAdmin(Stream& stream, const Fields& line) {
  const std::string call = TextField(line, "call");
  TakeStaging(stream, call, line);
  if (!IsChange(call) || TextField(line, "result") != "OK") return;
  const bool renames = call == "RenameKeys";
  std::string what = call;
  for (const char* field : {"transaction", "handles", "gate", "now", "for_history"}) {
    if (line.contains(field)) absl::StrAppend(&what, " ", field, " ", line[field].dump());
  }
  for (const char* field : {"principal", "new_principal"}) {
    if (renames) absl::StrAppend(&what, " ", field, " ", Fields(TextField(line, field)).dump());
  }
  // One that a log ascribes to somebody else is none of the two.
  const std::string who = TextField(line, "who");
  Act& act = acts_.try_emplace({what, who}, Act{stream.time, {}, ""}).first->second;
  if (renames) act.renames = TextField(line, "transaction");
  ++act.times[party_[&stream - &streams_[0]]];
}

// CommitKeys names a transaction alone: whoever told each server something else to stage in it has
// the three hold different keys, gates or names.
void Reconciler::TakeStaging(Stream& stream, const std::string& call, const Fields& line) {
  const bool ok = TextField(line, "result") == "OK";
  const std::string id = TextField(line, "transaction");
  if (id.empty() || (!Stages(call) && call != "CommitKeys" && call != "AbortKeys")) return;
  Staging& staging = stagings_.try_emplace(id, Staging{.time = stream.time}).first->second;
  staging.last = stream.time;
  staging.committed |= ok && call == "CommitKeys";
  staging.given_up |= ok ? call == "AbortKeys" : Stages(call);
  if (!ok || !Stages(call)) return;
  std::string& told = staging.told[party_[&stream - &streams_[0]]];
  std::string all = absl::StrCat(told, call, TextField(line, "principal"), "\n",
                                 TextField(line, "new_principal"), "\n");
  if (line.contains("keys")) all += line["keys"].dump();
  told = HashText(all).substr(0, kToldDigits);
}

void Reconciler::CompareViews(const std::string& batch, const View& view) {
  std::set<std::string> different;
  size_t told = 0;
  for (const std::string& v : view.views) {
    if (!v.empty()) different.insert(v);
    told += !v.empty();
  }
  if (different.size() <= 1) {
    result_.batches += told == kServers && Asked(view.time);
    return;
  }
  Report({FindingKind::kViewDiffers, false, view.time,
          absl::StrCat("batch ", batch, ": the servers confirmed different contents. A server was "
                                        "lied to, or a log was rewritten"), {}});
}

void Reconciler::EndJobs() {
  MissingJobs missing(timelines_, std::move(counted_));
  for (const auto& [key, job] : jobs_) missing.Add(job);
  for (const auto& [key, job] : jobs_) Report(missing.Explain(job));
}

void Reconciler::EndActs() {
  for (const auto& [said, act] : acts_) {
    const auto& [what, who] = said;
    const uint64_t most = *std::max_element(act.times.begin(), act.times.end());
    std::string text;
    bool explained = true;
    for (size_t party = 0; party < kServers; ++party) {
      if (act.times[party] == most) continue;
      const Timeline::Moment moment = timelines_[party].At(act.time, limits::kMaxPeerSkew);
      explained &= WhyIncomplete(party, act.time) != nullptr;
      absl::StrAppend(&text, text.empty() ? "" : "; ", "server ", party, " has no line of it and ",
                      PresenceText(moment.presence));
    }
    if (text.empty() || (!act.renames.empty() && stagings_[act.renames].given_up)) continue;
    Report({FindingKind::kAdminMissing, explained, act.time,
            explained ? text : absl::StrCat(what, " by ", who, ": ", text), {}});
  }
}

const char* Reconciler::WhyIncomplete(size_t party, absl::Time time) const {
  const Timeline::Moment moment = timelines_[party].At(time, limits::kMaxPeerSkew);
  const bool incomplete = moment.presence == Presence::kMute ||
                          moment.presence == Presence::kBefore ||
                          moment.presence == Presence::kRebooted;
  return incomplete ? PresenceText(moment.presence) : nullptr;
}

// One whose log does not say, as one that begins later, contradicts nobody; nor does one that has
// some of the lines, since many keys are staged by several calls.
void Reconciler::CompareStagings() {
  for (const auto& [transaction, staging] : stagings_) {
    if (!staging.committed) continue;
    std::map<std::string, std::set<size_t>> who, sure;
    std::string excused;
    for (size_t party = 0; party < kServers; ++party) {
      if (staging.told[party].empty()) continue;
      who[staging.told[party]].insert(party);
      const char* why = WhyIncomplete(party, staging.time);
      if (why == nullptr) why = WhyIncomplete(party, staging.last);
      if (why == nullptr) sure[staging.told[party]].insert(party);
      if (why != nullptr) absl::StrAppend(&excused, "; server ", party, " ", why);
    }
    if (who.size() < 2) continue;
    if (sure.size() < 2) {
      Report({FindingKind::kAdminMissing, true, staging.time,
              absl::StrCat("what was staged differs", excused), {}});
      continue;
    }
    who = std::move(sure);
    // Where two agree it is the third that was told something else, or says so.
    std::string text;
    for (const auto& [told, parties] : who) {
      if (who.size() == 2 && parties.size() > 1) continue;
      for (const size_t party : parties) {
        absl::StrAppend(&text, text.empty() ? "server " : " and server ", party);
      }
    }
    Report({FindingKind::kAdminMissing, false, staging.time,
            absl::StrCat("CommitKeys transaction ", transaction, ": what was staged in it differs",
                         " at ", text, ": mpc-admin audit show has the lines"), {}});
  }
}

void Reconciler::Report(Finding finding) {
  if (!Asked(finding.time)) return;
  if (finding.explained) {
    ++result_.explained[finding.text];
  } else {
    ++result_.unexplained;
    if (!finding.job.kdc.empty()) ++result_.by_kdc[finding.job.kdc];
    if (!finding.job.principal.empty()) ++result_.by_principal[finding.job.principal];
  }
  if (result_.findings.size() < Reconciliation::kMaxFindings) {
    result_.findings.push_back(std::move(finding));
  } else {
    ++result_.left_out;
  }
}

}  // namespace

bool Reconciliation::clean() const {
  return unexplained == 0 && std::all_of(servers.begin(), servers.end(), [](const ServerLog& log) {
           return log.chain.intact();
         });
}

absl::StatusOr<Reconciliation> Reconcile(const std::array<std::vector<LogFile>, kServers>& logs,
                                         const ReconcileOptions& options) {
  return Reconciler(logs, options).Run();
}

}  // namespace mpckdc::audit
