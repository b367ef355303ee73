// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/audit/timeline.h"

#include <algorithm>

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

}  // namespace mpckdc::audit
