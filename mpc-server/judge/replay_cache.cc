// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/replay_cache.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

namespace mpckdc {
namespace {

constexpr absl::Duration kPruneInterval = absl::Minutes(1);

uint32_t SecondsAfter(absl::Time time) {
  const int64_t seconds = absl::ToUnixSeconds(time + absl::Seconds(1) - absl::Nanoseconds(1));
  return static_cast<uint32_t>(std::clamp<int64_t>(seconds, 0, UINT32_MAX));
}

}  // namespace

ReplayCache::ReplayCache(ShareStore* store, RandomSource* random) : store_(store) {
  static_assert(sizeof key_ == crypto_shorthash_siphashx24_KEYBYTES);
  random->Fill(absl::MakeSpan(key_));
}

ReplayCache::Mark ReplayCache::MarkOf(const Handle& handle, const Nonce& nonce) const {
  Mark mark;
  static_assert(sizeof mark == crypto_shorthash_siphashx24_BYTES);
  uint8_t bytes[sizeof handle + sizeof nonce];
  std::memcpy(bytes, handle.data(), sizeof handle);
  std::memcpy(bytes + sizeof handle, nonce.data(), sizeof nonce);
  crypto_shorthash_siphashx24(mark.data(), bytes, sizeof bytes, key_.data());
  return mark;
}

absl::Status ReplayCache::Load() {
  expires_.clear();
  return store_->LoadReplayEntries([this](const ReplayEntry& entry) {
    expires_[MarkOf(entry.handle, entry.nonce)] = SecondsAfter(entry.expires);
  });
}

void ReplayCache::Add(const Handle& handle, const Nonce& nonce, absl::Time expires) {
  expires_[MarkOf(handle, nonce)] = SecondsAfter(expires);
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
  const int64_t seconds = absl::ToUnixSeconds(now);
  absl::erase_if(expires_, [seconds](const auto& entry) { return entry.second < seconds; });
  return store_->PruneReplayEntries(now).status();
}

}  // namespace mpckdc
