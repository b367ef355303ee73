// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/postgres_pool.h"

#include <algorithm>
#include <utility>

#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/postgres_error.h"

namespace mpckdc {

PgPool::PgPool(std::string conninfo, std::unique_ptr<DatabaseMemory> memory)
    : conninfo_(std::move(conninfo)), memory_(std::move(memory)) {}

PgPool::~PgPool() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (connector_.joinable()) connector_.join();
  if (listener_.joinable()) listener_.join();
}

absl::Status PgPool::Start() {
  connector_ = std::thread([this] { Connector(); });
  absl::Status started;
  {
    const absl::MutexLock lock(&mutex_);
    started = Await(SteadyNow() + limits::kDatabaseStart, [this] {
      mutex_.AssertHeld();
      return !idle_.empty() || (!failure_.ok() && !absl::IsUnavailable(failure_));
    });
    if (started.ok()) started = failure_;
  }
  if (started.ok()) listener_ = std::thread([this] { Listener(); });
  return started;
}

// ---- Who makes connections ----

// One reader and the first lane are made before they are asked for: what is away comes back by
// itself.
int PgPool::NextWanted() const {
  constexpr int kNone = -2;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = lanes_[i];
    if (lane.connection == nullptr && (lane.wanted || (i == 0 && !lane.taken)))
      return static_cast<int>(i);
  }
  const bool short_of_readers = idle_.size() < std::max<size_t>(readers_wanted_, readers_ == 0);
  return short_of_readers && readers_ < limits::kDatabaseReaders ? kReader : kNone;
}

bool PgPool::Work() const { return NextWanted() >= kReader; }

void PgPool::Connector() {
  mutex_.Lock();
  while (!stopping_) {
    if (!Work()) {
      changed_.Wait(&mutex_);
      continue;
    }
    const int lane = NextWanted();
    const uint64_t generation = generation_;
    mutex_.Unlock();
    auto made = Connect(lane);
    mutex_.Lock();
    const bool failed = !made.ok();
    Offer(lane, std::move(made), generation);
    const absl::Time again = SteadyNow() + limits::kDatabaseRetry;
    while (failed && !stopping_ && SteadyNow() < again) changed_.WaitUntil(&mutex_, again);
  }
  mutex_.Unlock();
}

absl::StatusOr<std::unique_ptr<PgConnection>> PgPool::Connect(int lane) {
  ASSIGN_OR_RETURN(std::unique_ptr<PgConnection> connection, PgConnection::Connect(conninfo_));
  // From before it is asked: what another connection commits meanwhile is beyond its answer.
  const uint64_t reached = memory_->lsn();
  ASSIGN_OR_RETURN(const DatabaseFacts facts, PrepareSession(*connection));
  RETURN_IF_ERROR(memory_->Check(facts, reached));
  bool unsure = false;
  {
    const absl::MutexLock lock(&mutex_);
    where_ = connection->Where();
    facts_ = facts;
    if (lane == kReader) return connection;
    unsure = lanes_[lane].unsure;
  }
  // A transaction of the connection before this one that still goes on has the row locked: this
  // waits for its end.
  ASSIGN_OR_RETURN(
      const PgResult row,
      connection->RunOne({"INSERT INTO mpckdc.writers VALUES ($1, 0, now()) "
                          "ON CONFLICT (id) DO UPDATE SET at = excluded.at RETURNING seq",
                          {PgValue::Bytes(memory_->WriterId(lane))}},
                         limits::kDatabaseAnswer));
  RETURN_IF_ERROR(memory_->CheckCommits(lane, static_cast<uint64_t>(row.Integer(0, 0)), unsure));
  return connection;
}

bool PgPool::HasSome(int lane) const {
  if (lane == kReader) return readers_ > 0;
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& l) { return l.taken || l.connection != nullptr; });
}

void PgPool::Offer(int lane, absl::StatusOr<std::unique_ptr<PgConnection>> made,
                   uint64_t generation) {
  ++attempts_;
  // Those that there are go on, and who needs one more waits for one of them: no outage.
  const bool waits = IsNoneLeft(made.status()) && HasSome(lane);
  none_left_ = waits ? made.status() : absl::OkStatus();
  failure_ = waits ? absl::OkStatus() : made.status();
  // Who still waits asks again.
  if (waits && lane != kReader && !lanes_[lane].taken) lanes_[lane].wanted = false;
  if (made.ok() && generation == generation_) {
    if (lane == kReader) {
      idle_.push_back(*std::move(made));
      ++readers_;
    } else {
      lanes_[lane].connection = *std::move(made);
      lanes_[lane].wanted = lanes_[lane].unsure = false;
    }
  }
  changed_.SignalAll();
}

// ---- Who uses them ----

// While the last attempt to connect failed, nobody waits.
absl::Status PgPool::Await(absl::Time end, std::function<bool()> done) {
  while (!done()) {
    if (stopping_) return absl::UnavailableError("the server is stopping");
    if (SteadyNow() >= end) {
      if (!failure_.ok()) return failure_;
      if (!none_left_.ok()) return none_left_;
      return absl::UnavailableError(
          "all connections to the database of the share store are in use, or it does not answer: "
          "look at its load");
    }
    changed_.WaitUntil(&mutex_, end);
  }
  return absl::OkStatus();
}

bool PgPool::TakeIdle(bool writer, Lease* lease) {
  if (!writer) {
    if (idle_.empty()) return false;
    *lease = {std::move(idle_.back()), kReader, generation_};
    idle_.pop_back();
    return true;
  }
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].taken || lanes_[i].connection == nullptr) continue;
    lanes_[i].taken = true;
    *lease = {std::move(lanes_[i].connection), static_cast<int>(i), generation_};
    return true;
  }
  return false;
}

absl::StatusOr<PgPool::Lease> PgPool::Take(bool writer) {
  const absl::MutexLock lock(&mutex_);
  Lease lease;
  if (TakeIdle(writer, &lease)) return lease;
  if (!failure_.ok()) return failure_;
  const uint64_t attempts = attempts_;
  if (!writer) ++readers_wanted_;
  const absl::Status waited = Await(SteadyNow() + limits::kDatabaseWait, [&] {
    mutex_.AssertHeld();
    if (writer) {
      for (Lane& lane : lanes_) {
        if (lane.taken || lane.connection != nullptr) continue;
        lane.wanted = true;
        changed_.SignalAll();
        break;
      }
    } else {
      changed_.SignalAll();
    }
    return TakeIdle(writer, &lease) || (attempts_ != attempts && !failure_.ok());
  });
  if (!writer) --readers_wanted_;
  RETURN_IF_ERROR(waited);
  if (lease.connection == nullptr) return failure_;
  return lease;
}

absl::Status PgPool::TakeTurn() {
  const absl::MutexLock lock(&mutex_);
  const absl::Time end = SteadyNow() + limits::kDatabaseLock;
  while (turn_taken_) {
    if (SteadyNow() >= end) {
      return absl::UnavailableError(
          "other enrolments have been writing to the database for long: look at its load, and ask "
          "again");
    }
    changed_.WaitUntil(&mutex_, end);
  }
  turn_taken_ = true;
  return absl::OkStatus();
}

void PgPool::EndTurn() {
  const absl::MutexLock lock(&mutex_);
  turn_taken_ = false;
  changed_.SignalAll();
}

void PgPool::DropIdle() {
  ++generation_;
  readers_ -= idle_.size();
  idle_.clear();
  for (Lane& lane : lanes_) lane.connection.reset();
}

void PgPool::GiveBack(Lease lease) {
  const absl::MutexLock lock(&mutex_);
  if (lease.connection == nullptr || lease.connection->broken()) {
    if (lease.connection != nullptr && lease.generation == generation_) DropIdle();
    lease.connection.reset();
  }
  const bool good = lease.connection != nullptr && lease.generation == generation_;
  if (lease.lane == kReader) {
    if (good) {
      idle_.push_back(std::move(lease.connection));
    } else {
      --readers_;
    }
  } else {
    lanes_[lease.lane].taken = false;
    if (good) lanes_[lease.lane].connection = std::move(lease.connection);
  }
  changed_.SignalAll();
}

absl::Status PgPool::Replace(Lease* lease, bool unsure, absl::Duration limit) {
  const absl::MutexLock lock(&mutex_);
  if (lease->generation == generation_) DropIdle();
  lease->connection.reset();
  const absl::Time end = SteadyNow() + limit;
  if (lease->lane == kReader) {
    --readers_;  // until there is another
    ++readers_wanted_;
  } else {
    lanes_[lease->lane].wanted = true;
    lanes_[lease->lane].unsure |= unsure;
  }
  changed_.SignalAll();
  const uint64_t attempts = attempts_;
  absl::Status waited = Await(end, [&] {
    mutex_.AssertHeld();
    auto& from = lease->lane == kReader ? (idle_.empty() ? lease->connection : idle_.back())
                                        : lanes_[lease->lane].connection;
    if (from != nullptr) {
      lease->connection = std::move(from);
      if (lease->lane == kReader) idle_.pop_back();
      lease->generation = generation_;
      return true;
    }
    // Who must know goes on asking.
    return !unsure && attempts_ != attempts && !failure_.ok();
  });
  if (lease->lane == kReader) {
    --readers_wanted_;
    if (lease->connection == nullptr) ++readers_;  // GiveBack() takes it away
  }
  if (waited.ok() && lease->connection == nullptr) waited = failure_;
  return waited;
}

// ---- What is said of it ----

DatabaseState PgPool::State() const {
  DatabaseState state;
  const absl::MutexLock lock(&mutex_);
  state.where = where_;
  state.system = facts_.system;
  state.synchronous = facts_.synchronous;
  state.answer_time = answer_time_;
  state.commit_time = commit_time_;
  state.connections = readers_;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    state.commits += memory_->Commits(i);
    if (lanes_[i].taken || lanes_[i].connection != nullptr) ++state.connections;
  }
  state.reachable = failure_.ok();
  state.trouble = std::string(failure_.message());
  return state;
}

void PgPool::Answered(absl::Duration time) {
  const absl::MutexLock lock(&mutex_);
  answer_time_ = time;
}

void PgPool::Committed(absl::Duration time) {
  const absl::MutexLock lock(&mutex_);
  commit_time_ = time;
}

// ---- Who listens ----

absl::StatusOr<std::unique_ptr<PgConnection>> PgPool::Listen() {
  ASSIGN_OR_RETURN(std::unique_ptr<PgConnection> connection, PgConnection::Connect(conninfo_));
  RETURN_IF_ERROR(connection->RunScript("LISTEN mpckdc_keys", limits::kDatabaseAnswer));
  return connection;
}

void PgPool::OnKeysChanged(std::function<void()> callback) {
  const absl::MutexLock lock(&callback_mutex_);
  callback_ = std::move(callback);
}

void PgPool::Listener() {
  constexpr absl::Duration kLook = absl::Milliseconds(100);  // whether to stop
  const auto stopping = [this] {
    const absl::MutexLock lock(&mutex_);
    return stopping_;
  };
  while (!stopping()) {
    auto connection = Listen();
    if (!connection.ok()) {
      absl::SleepFor(limits::kDatabaseRetry);
      continue;
    }
    bool changed = true;  // something may have happened meanwhile
    while (!stopping() && !(*connection)->broken()) {
      if (changed) {
        const absl::MutexLock lock(&callback_mutex_);
        if (callback_) callback_();
      }
      changed = (*connection)->WaitForNotification(kLook);
    }
  }
}

}  // namespace mpckdc
