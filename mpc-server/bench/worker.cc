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

Worker::Worker(const BenchSetup& setup, int party, int number, RingsOfParty channels,
               absl::Duration round_timeout)
    : setup_(setup),
      party_(party),
      number_(number),
      channels_(std::move(channels)),
      round_timeout_(round_timeout),
      aes_(CutOf(setup), setup.isa),
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
  options.rings = static_cast<uint8_t>(channels_.size());
  options.randomness = setup_.randomness;
  options.round_timeout = round_timeout_;
  std::vector<PartyContext*> rings;
  for (const std::shared_ptr<PeerChannel>& channel : channels_) {
    options.ring = static_cast<uint8_t>(rings.size());
    absl::StatusOr<std::unique_ptr<PartyContext>> session =
        OpenSession(options, *channel, SystemClock(), SystemRandom(),
                    SystemClock().Now() + kOpenTimeout);
    if (!session.ok()) return session.status();
    sessions_.push_back(*std::move(session));
    rings.push_back(sessions_.back().get());
  }
  rings_ = std::make_unique<Rings>(std::move(rings));
  return absl::OkStatus();
}

absl::Status Worker::MakeKeys() {
  if (setup_.login.has_value()) {
    login_ = std::make_unique<LoginBatch>(setup_, party_, FirstLane(setup_, number_),
                                          LanesOf(setup_, number_));
    return absl::OkStatus();
  }
  if (setup_.hmac.has_value()) {
    hmac_ = std::make_unique<Hmac>(setup_.hmac->hash, setup_.isa);
    hmac_lanes_ = std::make_unique<HmacLanes>(setup_, party_);
    PrepareHash(setup_.hmac->hash, setup_.hmac->adder);
    return absl::OkStatus();
  }
  const size_t first = FirstLane(setup_, number_), lanes = LanesOf(setup_, number_);
  const size_t stride = KeyStride(setup_.bits);
  round_keys_ = SharesOfRoundKeys(setup_, party_, first, lanes);
  lanes_.resize(lanes);
  for (size_t j = 0; j < lanes; ++j) {
    lanes_[j] = {&round_keys_[j * stride], nullptr, InputOf(first + j, 0)};
  }
  return absl::OkStatus();
}

size_t Worker::key_bytes() const {
  if (login_ != nullptr) return login_->bytes();
  if (hmac_lanes_ != nullptr) return hmac_lanes_->bytes();
  return round_keys_.size() * sizeof(SharedBlock) + lanes_.size() * sizeof(AesLane);
}

ChannelCounters Worker::Sent() const {
  ChannelCounters sum;
  for (const std::shared_ptr<PeerChannel>& channel : channels_) {
    const ChannelCounters c = channel->Counters();
    sum.frames_sent += c.frames_sent;
    sum.bytes_sent += c.bytes_sent;
  }
  return sum;
}

absl::Status Worker::Run(Work work, uint32_t batches) {
  report_ = {};
  report_.latency_ns.reserve(batches);
  const ChannelCounters before = Sent();
  for (uint32_t n = 0; n < batches; ++n) {
    const int64_t begin = MonotonicNs();
    absl::Status s = work == Work::kAes ? AesOfBatch() : FloorOfBatch();
    if (!s.ok()) return s;
    report_.latency_ns.push_back(MonotonicNs() - begin);
  }
  const ChannelCounters after = Sent();
  report_.frames = after.frames_sent - before.frames_sent;
  report_.bytes = after.bytes_sent - before.bytes_sent;
  return absl::OkStatus();
}

absl::Status Worker::HmacOfBatch() {
  hmac_lanes_->SetBatch(batch_);
  hmac_->Reset(hmac_lanes_->lanes(), setup_.hmac->adder);
  absl::Status s = RunTogether(rings_->first(), {hmac_.get()}, &report_.cost);
  const size_t blocks = HashStateBlocks(setup_.hmac->hash);
  digests_.resize(setup_.lanes * blocks);
  for (size_t j = 0; s.ok() && j < setup_.lanes; ++j) {
    const auto digest = hmac_->digest(j);
    std::copy(digest.begin(), digest.end(), digests_.begin() + static_cast<ptrdiff_t>(j * blocks));
  }
  return s;
}

absl::Status Worker::AesOfBatch() {
  rings_->BeginBatch(++batch_);
  if (login_ != nullptr) return login_->Run(rings_->first(), &report_.cost);
  if (setup_.hmac.has_value()) return HmacOfBatch();
  for (AesLane& lane : lanes_) SetBatch(lane.public_input, batch_);
  const absl::Span<const AesLane> lanes = lanes_, none;
  const bool short_keys = setup_.bits == AesBits::k128;
  return aes_.Run(*rings_, short_keys ? lanes : none, short_keys ? none : lanes, setup_.sbox, {},
                  &report_.cost);
}

absl::Status Worker::FloorOfBatch() {
  if (floors_.empty()) {
    for (const std::vector<size_t>& parts : PartsOfRings(setup_, LanesOf(setup_, number_))) {
      floors_.emplace_back(setup_, parts);
    }
  }
  ++floor_batch_;
  Cost cost;
  for (const ChannelFloor& floor : floors_) cost = Together(cost, floor.cost_of_batch());
  report_.cost = report_.cost + cost;
  return rings_->Run(floors_.size(), [this](size_t r, PartyContext& party) {
    return floors_[r].RunBatch(party.channel(), party.session(), floor_batch_, round_timeout_);
  });
}

}  // namespace mpckdc::bench
