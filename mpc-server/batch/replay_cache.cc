// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/batch/replay_cache.h"

namespace mpckdc {
namespace {
constexpr absl::Duration kPruneInterval = absl::Minutes(1);
}  // namespace

absl::Status ReplayCache::Load() {
  expires_.clear();
  return store_->LoadReplayEntries(
      [this](const ReplayEntry& entry) { expires_[{entry.handle, entry.nonce}] = entry.expires; });
}

void ReplayCache::Add(const Handle& handle, const Nonce& nonce, absl::Time expires) {
  expires_[{handle, nonce}] = expires;
  unwritten_.push_back({handle, nonce, expires});
}

absl::Status ReplayCache::Flush() {
  if (unwritten_.empty()) return absl::OkStatus();
  const absl::Status written = store_->AddReplayEntries(unwritten_);
  // After a failure they stay unwritten: the next batch tries again; they are refused meanwhile.
  if (written.ok()) unwritten_.clear();
  return written;
}

absl::Status ReplayCache::Prune(absl::Time now) {
  if (now < pruned_ + kPruneInterval && now >= pruned_) return absl::OkStatus();
  pruned_ = now;
  absl::erase_if(expires_, [now](const auto& entry) { return entry.second < now; });
  return store_->PruneReplayEntries(now).status();
}

}  // namespace mpckdc
