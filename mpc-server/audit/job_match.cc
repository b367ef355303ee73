// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/audit/job_match.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"

namespace mpckdc::audit {
namespace {

absl::Time ParseRfc3339(const std::string& text) {
  absl::Time time;
  std::string error;
  return absl::ParseTime(absl::RFC3339_full, text, &time, &error) ? time : absl::InfinitePast();
}

}  // namespace

bool Timeline::Matters(const Line& line) {
  return line.kind == "start" || line.kind == "stop" || line.kind == "audit";
}

void Timeline::NoteTime(const Line& line, absl::Time time) {
  if (line.seq == 1) begins_ = true;
  if (runs_.empty() || runs_.back().stopped) runs_.push_back({time, time, false, ""});
  runs_.back().end = std::max(runs_.back().end, time);
}

void Timeline::Note(const Line& line, absl::Time time, const Fields& fields) {
  if (line.kind == "start") {
    if (line.seq == 1) begins_ = true;
    runs_.push_back({time, time, false, TextField(fields, "boot")});
    return;
  }
  NoteTime(line, time);
  if (line.kind == "stop") runs_.back().stopped = true;
  if (line.kind == "audit" && TextField(fields, "event") == "resumed") {
    mute_.emplace_back(ParseRfc3339(TextField(fields, "since")), time);
  }
}

Timeline::Moment Timeline::At(absl::Time time, absl::Duration margin) const {
  if (runs_.empty()) return {Presence::kBefore, 0};
  for (size_t i = 0; i < mute_.size(); ++i) {
    if (time > mute_[i].first - margin && time < mute_[i].second + margin) {
      return {Presence::kMute, i};
    }
  }
  if (time < runs_[0].start) return {begins_ ? Presence::kNotYet : Presence::kBefore, 0};
  for (size_t i = 0; i + 1 < runs_.size(); ++i) {
    const Run& run = runs_[i];
    const Run& next = runs_[i + 1];
    if (time <= run.end - margin || time >= next.start + margin) continue;
    if (run.stopped) return {Presence::kStopped, i};
    return {run.boot == next.boot ? Presence::kKilled : Presence::kRebooted, i};
  }
  const Run& last = runs_.back();
  if (last.stopped && time > last.end - margin) return {Presence::kStopped, runs_.size()};
  return {time > last.end ? Presence::kEnded : Presence::kRunning, runs_.size()};
}

// ---- What one log only counts ----

// A server that waits for its peers or for a long batch writes its count later than after a second.
constexpr absl::Duration kLongestCount = absl::Minutes(5);

void CountedJobs::Note(const Line& line, absl::Time time, const Fields& fields) {
  if (line.kind == "jobs") {
    const uint64_t left_out = NumberField(fields, "left_out");
    if (left_out > 0) counts_.emplace(time - kLongestCount, Count{time, "", left_out});
    return;
  }
  if (!fields.contains("counted") || !fields["counted"].is_array()) return;
  const absl::Time since = ParseRfc3339(TextField(fields, "since"));
  for (const Fields& kind : fields["counted"]) {
    counts_.emplace(since, Count{time, TextField(kind, "kdc"), NumberField(kind, "count")});
  }
}

bool CountedJobs::Take(const std::string& kdc, absl::Time time) {
  auto it = counts_.lower_bound(time - limits::kMaxPeerSkew - kLongestCount);
  const auto end = counts_.upper_bound(time + limits::kMaxPeerSkew);
  for (; it != end; ++it) {
    Count& count = it->second;
    if (count.until < time - limits::kMaxPeerSkew) continue;
    if (count.left == 0 || (!count.kdc.empty() && count.kdc != kdc)) continue;
    if (--count.left == 0) counts_.erase(it);
    return true;
  }
  return false;
}

const char* PresenceText(Presence presence) {
  switch (presence) {
    case Presence::kRunning: return "was running";
    case Presence::kBefore: return "has no files given of that time";
    case Presence::kNotYet: return "had no log yet";
    case Presence::kStopped: return "was stopped";
    case Presence::kKilled: return "was killed or crashed";
    case Presence::kRebooted: return "lost power or was reset";
    case Presence::kMute: return "could not write its audit log";
    case Presence::kEnded: return "has a log that ends before";
  }
  return "";
}

// ---- One job ----

namespace {

constexpr char kOk[] = "OK";

// The batch in which a job was computed, as the first server that answered OK names it.
const Told* ReleasedBy(const JobStory& job) {
  for (const std::optional<Told>& told : job.told) {
    if (told && told->verdict == kOk) return &*told;
  }
  return nullptr;
}

// A server that held its share back for a reason of its own: no ticket comes of two shares.
bool HeldBack(const Told& told, std::string* why) {
  if (told.verdict == "UNAVAILABLE") {
    *why = told.broken ? "the connection between the servers broke in the batch"
                       : "a server held its answer back: " + told.detail;
    return true;
  }
  if (told.verdict == "CLOCK_SKEW") {
    *why = "the clocks of the servers differ";
    return true;
  }
  return false;
}

// Lines of format 2 name no keys.
bool KeysDiffer(const JobStory& job) {
  const Told* first = nullptr;
  for (const std::optional<Told>& told : job.told) {
    if (!told || told->verdict != kOk || told->keys.empty()) continue;
    if (first != nullptr && told->keys != first->keys) return true;
    first = &*told;
  }
  return false;
}

Finding FindingOf(FindingKind kind, const JobStory& job, bool explained, std::string text) {
  return {kind, explained, job.time, std::move(text), job};
}

}  // namespace

bool JobStory::Released() const { return ReleasedBy(*this) != nullptr; }

bool JobStory::OnlyRefused() const {
  return std::all_of(told.begin(), told.end(), [](const std::optional<Told>& server) {
    return !server || !(server->broken || server->computed || server->verdict == kOk);
  });
}

const char* FindingName(FindingKind kind) {
  switch (kind) {
    case FindingKind::kJobMissing: return "only some saw the job";
    case FindingKind::kJobDiffers: return "different jobs";
    case FindingKind::kVerdictDiffers: return "different verdicts";
    case FindingKind::kKeysDiffer:
      return "different keys";
    case FindingKind::kViewDiffers: return "different batches";
    case FindingKind::kAdminMissing: return "only some saw the act";
    case FindingKind::kDeviation:
      return "a server deviated";
  }
  return "";
}

namespace {

// Of one job, whose digest they share. One that refused it on sight, or lacks the key, names nobody.
bool OwnersDiffer(const JobStory& job) {
  const std::string* operation = nullptr;
  const std::string* principal = nullptr;
  for (const std::optional<Told>& told : job.told) {
    if (!told) continue;
    if (operation != nullptr && told->operation != *operation) return true;
    operation = &told->operation;
    if (told->principal.find_first_not_of('0') == std::string::npos) continue;
    if (principal != nullptr && told->principal != *principal) return true;
    principal = &told->principal;
  }
  return false;
}

// What those who tell of the job contradict each other in, whether all three do or not: that one has
// no line of it explains nothing of the two others.
std::optional<Finding> Contradiction(const JobStory& job) {
  const Told* first = nullptr;
  bool same_job = true;
  for (const std::optional<Told>& told : job.told) {
    if (!told) continue;
    if (first == nullptr) first = &*told;
    same_job &= told->digest == first->digest;
  }
  if (!same_job) {
    return FindingOf(FindingKind::kJobDiffers, job, false,
                     "the KDC told the servers different things under one job number");
  }
  if (KeysDiffer(job)) {
    return FindingOf(FindingKind::kKeysDiffer, job, false,
                     "servers that answered name different principals for its keys: their stores "
                     "differ, or a log was rewritten");
  }
  if (OwnersDiffer(job)) {
    return FindingOf(FindingKind::kKeysDiffer, job, false,
                     "servers name different principals or operations of one job: their stores "
                     "differ, or a log was rewritten");
  }
  if (!job.Released()) return std::nullopt;
  std::string why;
  for (const std::optional<Told>& told : job.told) {
    if (!told || told->verdict == kOk || HeldBack(*told, &why)) continue;
    return FindingOf(FindingKind::kVerdictDiffers, job, false,
                     absl::StrCat("one server says OK, another ", told->verdict, ": ",
                                  told->detail));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Finding> Compare(const JobStory& job) {
  if (std::optional<Finding> finding = Contradiction(job)) return finding;
  bool same_verdict = true;
  std::string why;
  for (const std::optional<Told>& told : job.told) {
    same_verdict &= told->verdict == job.told[0]->verdict;
    (void)HeldBack(*told, &why);
  }
  if (same_verdict) return std::nullopt;
  return FindingOf(FindingKind::kVerdictDiffers, job, true,
                   job.Released() ? why
                                  : "no server answered; each gave up for a reason of its own");
}

void MissingJobs::Add(const JobStory& job) {
  const Told* released = ReleasedBy(job);
  if (released == nullptr) return;
  for (size_t server = 0; server < kServers; ++server) {
    if (job.told[server]) continue;
    const Timeline::Moment moment = timelines_[server].At(job.time, limits::kMaxPeerSkew);
    Lost& lost = lost_[{server, moment.gap}];
    lost.batches.emplace(released->ring, released->batch);
    lost.last = std::max(lost.last, job.time);
  }
}

// A released job was computed by all three. So the server without a line took part and lost the
// line: that of the batch of each kind, short and long, that it was about to write when it was
// killed, or the last ones before the power went, which the disk had not yet.
bool MissingJobs::Normal(const JobStory& job, size_t server,
                         const Timeline::Moment& moment) const {
  if (moment.presence == Presence::kMute || moment.presence == Presence::kBefore) return true;
  if (!job.Released()) {
    return moment.presence != Presence::kRunning && moment.presence != Presence::kEnded;
  }
  const auto lost = lost_.find({server, moment.gap});
  if (lost == lost_.end()) return false;
  if (moment.presence == Presence::kKilled) return lost->second.batches.size() <= 2;
  return moment.presence == Presence::kRebooted &&
         job.time >= lost->second.last - 2 * limits::kAuditSyncInterval;
}

Finding MissingJobs::Explain(const JobStory& job) {
  if (std::optional<Finding> finding = Contradiction(job)) return *std::move(finding);
  bool explained = true;
  std::string text;
  for (size_t server = 0; server < kServers; ++server) {
    if (job.told[server]) continue;
    const Timeline::Moment moment = timelines_[server].At(job.time, limits::kMaxPeerSkew);
    const bool normal = Normal(job, server, moment);
    const bool counted = !normal && job.OnlyRefused() && counted_[server].Take(job.kdc, job.time);
    explained &= normal || counted;
    absl::StrAppend(&text, text.empty() ? "" : "; ", "server ", server, " has no line of it and ",
                    counted ? "counted refused jobs of that KDC instead of writing each down"
                            : PresenceText(moment.presence));
  }
  if (!explained) {
    absl::StrAppend(&text, job.Released()
                               ? ". The job was computed, so that server took part: its log lacks "
                                 "lines"
                               : ". Nothing was computed: the KDC told only some of the servers, "
                                 "or its connection broke");
  }
  return FindingOf(FindingKind::kJobMissing, job, explained, std::move(text));
}

}  // namespace mpckdc::audit
