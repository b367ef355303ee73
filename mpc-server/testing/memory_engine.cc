// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/memory_engine.h"

#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

class MemoryTxn : public KvTxn {
 public:
  MemoryTxn(MemoryEngine::State state, uint64_t version)
      : state_(std::move(state)), version_(version) {}

  absl::StatusOr<uint64_t> KeyVersion() const override { return version_; }

  absl::StatusOr<absl::Span<const uint8_t>> Get(Table table,
                                                absl::string_view key) const override {
    const auto it = state_[table]->find(key);
    if (it == state_[table]->end()) return absl::NotFoundError("no such key");
    return AsBytes(it->second);
  }
  absl::StatusOr<absl::string_view> LastKey(Table table) const override {
    if (state_[table]->empty()) return absl::NotFoundError("the table is empty");
    return state_[table]->rbegin()->first;
  }
  absl::StatusOr<size_t> Count(Table table) const override { return state_[table]->size(); }
  absl::Status Scan(Table table, absl::string_view from, Visitor visit) const override {
    for (auto it = state_[table]->lower_bound(from); it != state_[table]->end(); ++it) {
      if (!visit(it->first, AsBytes(it->second))) break;
    }
    return absl::OkStatus();
  }

  absl::Status Put(Table table, absl::string_view key, absl::string_view value) override {
    Own(table).insert_or_assign(std::string(key), std::string(value));
    return absl::OkStatus();
  }
  absl::Status Append(Table table, absl::string_view key, absl::string_view value) override {
    return Put(table, key, value);
  }
  absl::Status Delete(Table table, absl::string_view key) override {
    if (Own(table).erase(std::string(key)) == 1) return absl::OkStatus();
    return absl::NotFoundError("no such key");
  }
  absl::StatusOr<std::vector<std::optional<std::string>>> InsertNew(
      Table table, absl::Span<const Entry> entries) override {
    std::vector<std::optional<std::string>> found(entries.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto [it, added] = Own(table).insert(entries[i]);
      if (!added) found[i] = it->second;
    }
    return found;
  }

  bool changed() const { return changed_; }
  MemoryEngine::State& state() { return state_; }

 private:
  MemoryEngine::Table& Own(Table table) {
    if (own_[table] == nullptr) {
      own_[table] = std::make_shared<MemoryEngine::Table>(*state_[table]);
      state_[table] = own_[table];
      changed_ = true;
    }
    return *own_[table];
  }

  MemoryEngine::State state_;
  const uint64_t version_;
  std::array<std::shared_ptr<MemoryEngine::Table>, record_format::kTables> own_;
  bool changed_ = false;
};

bool ChangesKeys(const MemoryEngine::State& before, const MemoryEngine::State& after) {
  namespace rf = record_format;
  const auto identity = [](const MemoryEngine::State& state) {
    const auto it = state[rf::kMeta]->find(rf::kNameIdentity);
    return it == state[rf::kMeta]->end() ? std::string() : it->second;
  };
  return before[rf::kKeys] != after[rf::kKeys] || before[rf::kRecords] != after[rf::kRecords] ||
         identity(before) != identity(after);
}

}  // namespace

MemoryEngine::MemoryEngine() {
  for (auto& table : state_) table = std::make_shared<const Table>();
}

absl::StatusOr<std::unique_ptr<const KvTxn>> MemoryEngine::BeginRead() const {
  return std::make_unique<MemoryTxn>(Snapshot(), 0);
}

absl::Status MemoryEngine::Write(absl::string_view what, Body body) {
  absl::MutexLock one_writer(&writer_);
  MemoryTxn txn(Snapshot(), 0);
  RETURN_IF_ERROR(body(txn));
  absl::MutexLock lock(&mutex_);
  if (!txn.changed()) return absl::OkStatus();
  if (write_status_.ok()) {
    if (ChangesKeys(state_, txn.state())) ++version_;
    state_ = std::move(txn.state());
  }
  if (write_status_.ok() && !lost_.empty() && what == lost_) {
    lost_.clear();
    return lost_status_;
  }
  return write_status_;
}

std::unique_ptr<const KvTxn> MemoryEngine::BeginSharedRead() const {
  const absl::MutexLock lock(&mutex_);
  return std::make_unique<MemoryTxn>(state_, version_);
}

MemoryEngine::State MemoryEngine::Snapshot() const {
  absl::MutexLock lock(&mutex_);
  return state_;
}

void MemoryEngine::Restore(State state) {
  absl::MutexLock lock(&mutex_);
  state_ = std::move(state);
  ++version_;
}

void MemoryEngine::LoseAnswer(std::string what, absl::Status status) {
  absl::MutexLock lock(&mutex_);
  lost_ = std::move(what);
  lost_status_ = std::move(status);
}

void MemoryEngine::FailWrites(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  write_status_ = std::move(status);
}

}  // namespace mpckdc
