// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/worker.h"

#include <algorithm>
#include <utility>

#include "mpc-server/bench/usage.h"
#include "mpc-server/bench/workload.h"

namespace mpckdc::bench {
namespace {

constexpr absl::Duration kOpenTimeout = absl::Seconds(20);

}  // namespace

Worker::Worker(const BenchSetup& setup, int party, int number, PeerChannel& channel,
               absl::Duration round_timeout)
    : setup_(setup),
      party_(party),
      number_(number),
      channel_(channel),
      round_timeout_(round_timeout),
      aes_(setup.bits, setup.isa),
      thread_([this] { Loop(); }) {}

Worker::~Worker() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

void Worker::Loop() {
  const auto wanted = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return busy_ || ending_;
  };
  while (true) {
    std::function<absl::Status()> task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&wanted));
      if (!busy_) return;
      task = std::move(task_);
    }
    absl::Status s = task();
    absl::MutexLock lock(&mutex_);
    status_ = std::move(s);
    busy_ = false;
  }
}

void Worker::Start(std::function<absl::Status()> task) {
  absl::MutexLock lock(&mutex_);
  task_ = std::move(task);
  busy_ = true;
}

absl::Status Worker::Wait() {
  const auto done = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !busy_; };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&done));
  return status_;
}

void Worker::StartOpen() {
  Start([this] { return Open(); });
}
void Worker::StartKeys() {
  Start([this] { return MakeKeys(); });
}
void Worker::StartRun(Work work, uint32_t batches) {
  Start([this, work, batches] { return Run(work, batches); });
}

absl::Status Worker::Open() {
  SessionOptions options;
  options.party = party_;
  options.realm = "BENCH";
  options.cluster = static_cast<uint16_t>(number_);
  options.round_timeout = round_timeout_;
  absl::StatusOr<std::unique_ptr<PartyContext>> session =
      OpenSession(options, channel_, SystemClock(), SystemRandom(),
                  SystemClock().Now() + kOpenTimeout);
  if (!session.ok()) return session.status();
  session_ = *std::move(session);
  return absl::OkStatus();
}

absl::Status Worker::MakeKeys() {
  const size_t first = FirstLane(setup_, number_), lanes = LanesOf(setup_, number_);
  const size_t blocks = AesRoundKeys(setup_.bits);
  round_keys_ = SharesOfRoundKeys(setup_, party_, first, lanes);
  lanes_.resize(lanes);
  for (size_t j = 0; j < lanes; ++j) {
    lanes_[j] = {&round_keys_[j * blocks], nullptr, InputOf(first + j, 0)};
  }
  return absl::OkStatus();
}

size_t Worker::key_bytes() const {
  return round_keys_.size() * sizeof(SharedBlock) + lanes_.size() * sizeof(AesLane);
}

absl::Status Worker::Run(Work work, uint32_t batches) {
  report_ = {};
  report_.latency_ns.reserve(batches);
  const ChannelCounters before = channel_.Counters();
  for (uint32_t n = 0; n < batches; ++n) {
    const int64_t begin = MonotonicNs();
    absl::Status s = work == Work::kAes ? AesBatch() : FloorBatch();
    if (!s.ok()) return s;
    report_.latency_ns.push_back(MonotonicNs() - begin);
  }
  const ChannelCounters after = channel_.Counters();
  report_.frames = after.frames_sent - before.frames_sent;
  report_.bytes = after.bytes_sent - before.bytes_sent;
  return absl::OkStatus();
}

absl::Status Worker::AesBatch() {
  session_->BeginBatch(++batch_);
  for (AesLane& lane : lanes_) SetBatch(lane.public_input, batch_);
  aes_.Reset(lanes_, setup_.sbox);
  return RunTogether(*session_, {&aes_}, &report_.cost);
}

// The least that the channel needs for the batch's messages: no byte of them is computed or read.
absl::Status Worker::FloorBatch() {
  if (sizes_.empty()) {
    sizes_ = RoundSizes(setup_.bits, setup_.sbox, LanesOf(setup_, number_));
    const size_t largest = *std::max_element(sizes_.begin(), sizes_.end());
    for (SecretBytes* b : {&to_next_[0], &to_next_[1], &from_prev_[0], &from_prev_[1]}) {
      b->resize(largest);
    }
  }
  ++floor_batch_;
  for (size_t r = 0; r < sizes_.size(); ++r) {
    const RoundId id = {session_->session(), floor_batch_, static_cast<uint16_t>(r), "floor"};
    const RoundBuffers buffers = {absl::MakeConstSpan(to_next_[r % 2]).first(sizes_[r]),
                                  absl::MakeSpan(from_prev_[r % 2]).first(sizes_[r]),
                                  {},
                                  {}};
    absl::Status s = channel_.Exchange(id, buffers, SystemClock().Now() + round_timeout_);
    if (!s.ok()) return s;
    report_.cost.rounds += 1;
    report_.cost.bytes_to_next += sizes_[r];
  }
  return absl::OkStatus();
}

}  // namespace mpckdc::bench
