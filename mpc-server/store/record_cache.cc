// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/record_cache.h"

namespace mpckdc {
namespace {

size_t SizeOf(const KeyRecord& record) {
  size_t size = sizeof(KeyRecord) + record.info.principal.size() + record.info.salt.size() +
                record.base.size() * sizeof(SharedBlock);
  for (const UsageKey& usage : record.usages) {
    size += sizeof(UsageKey) +
            (usage.round_keys.size() + usage.mac_states.size()) * sizeof(SharedBlock);
  }
  return size;
}

}  // namespace

void RecordCache::Empty() {
  entries_.clear();
  places_.clear();
  bytes_ = 0;
}

bool RecordCache::IsOf(uint64_t version) {
  if (version > version_) {
    Empty();
    version_ = version;
  }
  return version == version_;
}

RecordCache::Record RecordCache::Find(uint64_t version, const Handle& handle) {
  const absl::MutexLock lock(&mutex_);
  const auto it = IsOf(version) ? places_.find(handle) : places_.end();
  if (it == places_.end()) {
    ++missed_;
    return nullptr;
  }
  ++found_;
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->second;
}

void RecordCache::Add(uint64_t version, const Handle& handle, Record record) {
  const absl::MutexLock lock(&mutex_);
  if (!IsOf(version) || places_.contains(handle)) return;
  bytes_ += SizeOf(*record);
  entries_.emplace_front(handle, std::move(record));
  places_[handle] = entries_.begin();
  while (bytes_ > max_bytes_) {
    bytes_ -= SizeOf(*entries_.back().second);
    places_.erase(entries_.back().first);
    entries_.pop_back();
  }
}

void RecordCache::Clear() {
  const absl::MutexLock lock(&mutex_);
  Empty();
}

RecordCache::Use RecordCache::Usage() const {
  const absl::MutexLock lock(&mutex_);
  return {entries_.size(), bytes_, max_bytes_, found_, missed_};
}

size_t RecordCache::bytes() const {
  const absl::MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace mpckdc
