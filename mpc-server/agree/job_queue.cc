// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/job_queue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/sha256.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc {
namespace {
// Sessions whose ids are remembered: as many as streams, several times over. One may be forgotten
// when nothing is left to which its ids could refer: this is far above kMaxJobDeadline,
// kPendingSealLife and kGrantLife together.
constexpr size_t kMaxSessions = 16 * limits::kMaxStreamsPerServer;
constexpr absl::Duration kSessionMemory = absl::Minutes(5);
constexpr absl::Duration kPruneInterval = absl::Seconds(1);
constexpr size_t kMaxExpired = 1 << 16;
// Between two proposals of a job that is not yet everywhere.
constexpr absl::Duration kFirstRetry = absl::Milliseconds(5), kLastRetry = absl::Milliseconds(320);
// A next_try later than this was set before the clock was set back.
constexpr absl::Duration kLongestRetry = absl::Seconds(1);
}  // namespace

Digest AgreedDigest(const WaitingJob& job, bool proven) {
  return proven ? Sha256(absl::StrCat("mpc-kdc proven job", AsText(job.digest))) : job.digest;
}

size_t BlocksOfJob(const Job& job) {
  size_t blocks = 0;
  for (const MakeMacPart& part : job.make_macs) blocks += 1 + BlocksOf(part.data.size());
  for (const VerifyMacPart& part : job.verify_macs) blocks += 1 + BlocksOf(part.data.size());
  for (const OpenPart& part : job.opens) blocks += 1 + BlocksOf(part.message.size());
  for (const SealPart& part : job.seals) blocks += 1 + BlocksOf(kZeroBytes + part.max_plaintext);
  return blocks;
}

size_t NoncesOfJob(const Job& job) { return job.seals.size() + job.make_macs.size(); }

Judgement JobQueue::TakeId(const GroupId& group, JobId id, absl::Time now) {
  if (!sessions_.contains(group) && !RoomForSession(now)) {
    return Refuse(Verdict::kUnavailable,
                  absl::StrCat(kMaxSessions, " KDC sessions were used in the last ",
                               absl::FormatDuration(kSessionMemory),
                               ": does a KDC restart again and again?"));
  }
  Session& session = sessions_[group];
  session.seen = now;
  if (id <= session.last) {
    return Refuse(Verdict::kRefused, absl::StrCat("job id ", id, " after ", session.last,
                                                  ": ids of a session only increase"));
  }
  session.last = id;
  return Ok();
}

bool JobQueue::IdTaken(const GroupId& group, JobId id) const {
  const auto it = sessions_.find(group);
  return it != sessions_.end() && id <= it->second.last;
}

bool JobQueue::RoomForSession(absl::Time now) {
  if (sessions_.size() < kMaxSessions) return true;
  if (now >= sessions_pruned_ && now < sessions_pruned_ + kPruneInterval) return false;
  sessions_pruned_ = now;
  // After the clock was set back the sessions of the future count as used now.
  for (auto& [group, session] : sessions_) session.seen = std::min(session.seen, now);
  absl::erase_if(sessions_, [now](const auto& s) { return s.second.seen + kSessionMemory < now; });
  return sessions_.size() < kMaxSessions;
}

void JobQueue::Add(WaitingJobPtr job) {
  const Key key{job->group, job->job.id};
  jobs_.push_back(std::move(job));
  by_id_[key] = std::prev(jobs_.end());
}

WaitingJobPtr JobQueue::Find(const GroupId& group, JobId id) const {
  const auto it = by_id_.find({group, id});
  return it == by_id_.end() ? nullptr : *it->second;
}

bool JobQueue::Here(const GroupId& group, JobId id) const {
  const WaitingJobPtr job = Find(group, id);
  return job == nullptr ? IdTaken(group, id) : !job->unverified;
}

void JobQueue::Remove(const WaitingJob& job) {
  const auto it = by_id_.find({job.group, job.job.id});
  if (it == by_id_.end() || it->second->get() != &job) return;
  jobs_.erase(it->second);
  by_id_.erase(it);
}

std::vector<WaitingJobPtr> JobQueue::Ready(absl::Time now, Fits fits, size_t max_jobs,
                                           size_t max_blocks) const {
  std::vector<WaitingJobPtr> ready;
  size_t blocks = 0;
  for (const WaitingJobPtr& job : jobs_) {
    if (job->unverified) continue;
    if (job->next_try > now && job->next_try <= now + kLongestRetry) continue;
    if (!fits(*job)) continue;
    blocks += job->blocks;
    if (!ready.empty() && (ready.size() >= max_jobs || blocks > max_blocks)) break;
    ready.push_back(job);
  }
  return ready;
}

void JobQueue::TryAgain(WaitingJob& job, absl::Time now) {
  const int doublings = std::min(job.misses++, 10);
  job.next_try = now + std::min(kFirstRetry * (1 << doublings), kLastRetry);
}

absl::Time JobQueue::NextTry(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  for (const WaitingJobPtr& job : jobs_) {
    if (job->next_try > now) next = std::min(next, job->next_try);
    next = std::min(next, job->deadline);
  }
  return next;
}

std::vector<WaitingJobPtr> JobQueue::TakeExpired(absl::Time now) {
  std::vector<WaitingJobPtr> expired;
  for (const WaitingJobPtr& job : jobs_) {
    // Or the clock was set back since it came.
    const bool stale = job->deadline > now + limits::kMaxJobDeadline;
    if (job->deadline <= now || stale) expired.push_back(job);
  }
  for (const WaitingJobPtr& job : expired) {
    Remove(*job);
    RememberExpired({job->group, job->job.id});
  }
  return expired;
}

void JobQueue::RememberExpired(const Key& key) {
  expired_.insert(key);
  expired_order_.push_back(key);
  if (expired_order_.size() <= kMaxExpired) return;
  expired_.erase(expired_order_.front());
  expired_order_.pop_front();
}

std::vector<WaitingJobPtr> JobQueue::TakeAll() {
  std::vector<WaitingJobPtr> all(jobs_.begin(), jobs_.end());
  jobs_.clear();
  by_id_.clear();
  return all;
}

}  // namespace mpckdc
