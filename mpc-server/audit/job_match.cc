// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/audit/job_match.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"

namespace mpckdc::audit {
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

Finding FindingOf(FindingKind kind, const JobStory& job, bool explained, std::string text) {
  return {kind, explained, job.time, std::move(text), job};
}

}  // namespace

bool JobStory::Released() const { return ReleasedBy(*this) != nullptr; }

const char* FindingName(FindingKind kind) {
  switch (kind) {
    case FindingKind::kJobMissing: return "only some saw the job";
    case FindingKind::kJobDiffers: return "different jobs";
    case FindingKind::kVerdictDiffers: return "different verdicts";
    case FindingKind::kViewDiffers: return "different batches";
    case FindingKind::kAdminMissing: return "only some saw the act";
  }
  return "";
}

std::optional<Finding> Compare(const JobStory& job) {
  const Told& first = *job.told[0];
  bool same_job = true;
  bool same_verdict = true;
  for (const std::optional<Told>& told : job.told) {
    same_job &= told->digest == first.digest;
    same_verdict &= told->verdict == first.verdict;
  }
  if (!same_job) {
    return FindingOf(FindingKind::kJobDiffers, job, false,
                     "the KDC told the servers different things under one job number");
  }
  if (same_verdict) return std::nullopt;
  if (!job.Released()) {
    return FindingOf(FindingKind::kVerdictDiffers, job, true,
                     "no server answered; each gave up for a reason of its own");
  }
  std::string why;
  for (const std::optional<Told>& told : job.told) {
    if (told->verdict == kOk || HeldBack(*told, &why)) continue;
    return FindingOf(FindingKind::kVerdictDiffers, job, false,
                     absl::StrCat("one server says OK, another ", told->verdict, ": ",
                                  told->detail));
  }
  return FindingOf(FindingKind::kVerdictDiffers, job, true, why);
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
// line: the one that it was about to write when it was killed, or the last ones before the power
// went, which the disk had not yet.
bool MissingJobs::Normal(const JobStory& job, size_t server,
                         const Timeline::Moment& moment) const {
  if (moment.presence == Presence::kMute || moment.presence == Presence::kBefore) return true;
  if (!job.Released()) {
    return moment.presence != Presence::kRunning && moment.presence != Presence::kEnded;
  }
  const auto lost = lost_.find({server, moment.gap});
  if (lost == lost_.end()) return false;
  if (moment.presence == Presence::kKilled) return lost->second.batches.size() <= 1;
  return moment.presence == Presence::kRebooted &&
         job.time >= lost->second.last - 2 * limits::kAuditSyncInterval;
}

Finding MissingJobs::Explain(const JobStory& job) const {
  bool explained = true;
  std::string text;
  for (size_t server = 0; server < kServers; ++server) {
    if (job.told[server]) continue;
    const Timeline::Moment moment = timelines_[server].At(job.time, limits::kMaxPeerSkew);
    explained &= Normal(job, server, moment);
    absl::StrAppend(&text, text.empty() ? "" : "; ", "server ", server, " has no line of it and ",
                    PresenceText(moment.presence));
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
