// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/engines.h"
#include "mpc-server/testing/tested_security.h"

#include <atomic>
#include <deque>
#include <utility>

#include "absl/synchronization/blocking_counter.h"

namespace mpckdc {
namespace {

// The answers of several servers to one question.
template <typename Answer>
class Gathered {
 public:
  explicit Gathered(size_t servers = kParties) : left_(static_cast<int>(servers)) {}

  auto From(int party) {
    return [this, party](Answer answer) {
      answers_[party] = std::move(answer);
      left_.DecrementCount();
    };
  }
  PerParty<Answer> Wait() {
    left_.Wait();
    return std::move(answers_);
  }

 private:
  PerParty<Answer> answers_;
  absl::BlockingCounter left_;
};

}  // namespace

// ---- MemoryHub ----

class MemoryHub::ChannelOf : public PeerChannel {
 public:
  ChannelOf(std::shared_ptr<MemoryRing> ring, int party, Clock* clock, const LineState& line)
      : ring_(std::move(ring)), channel_(ring_->channel(party)), clock_(clock), line_(line) {}
  ~ChannelOf() override { ring_->Close(); }

  absl::Status Post(const RoundId& id, absl::Span<const uint8_t> to_next,
                    absl::Span<const uint8_t> to_prev) override {
    return channel_.Post(id, to_next, to_prev);
  }
  absl::Status Collect(const RoundId& id, absl::Span<uint8_t> from_prev,
                       absl::Span<uint8_t> from_next, absl::Time deadline) override {
    return channel_.Collect(id, from_prev, from_next, Real(deadline));
  }
  absl::Status Send(Neighbour to, FrameType type, absl::Span<const uint8_t> payload) override {
    return channel_.Send(to, type, payload);
  }
  absl::StatusOr<Frame> Receive(Neighbour from, absl::Time deadline) override {
    return channel_.Receive(from, Real(deadline));
  }
  void BindSession(uint32_t session) override { channel_.BindSession(session); }
  ChannelCounters Counters() const override { return channel_.Counters(); }
  LineState Line(Neighbour) const override {
    LineState line = line_;
    line.sent = looks_ += 1 << 20;  // as if it was always full
    return line;
  }

 private:
  // The ring waits by the machine's clock.
  absl::Time Real(absl::Time deadline) {
    return SystemClock().Now() + (deadline - clock_->Now());
  }

  const std::shared_ptr<MemoryRing> ring_;
  PeerChannel& channel_;
  Clock* const clock_;
  const LineState line_;
  mutable std::atomic<uint64_t> looks_ = 0;
};

class MemoryHub::LinkOf : public PeerLink {
 public:
  LinkOf(MemoryHub* hub, int party, Clock* clock) : hub_(hub), party_(party), clock_(clock) {}

  absl::StatusOr<PeerChannels> Connect(absl::Time deadline) override {
    const absl::Time limit = SystemClock().Now() + (deadline - clock_->Now());
    const absl::MutexLock lock(&hub_->mu_);
    const uint64_t asked = hub_->generation_;
    hub_->waiting_[party_] = true;
    if (hub_->waiting_[0] && hub_->waiting_[1] && hub_->waiting_[2]) {
      hub_->MakeRings();
      hub_->waiting_ = {};
      ++hub_->generation_;
    }
    const auto ready = [&] { return down_ || hub_->generation_ != asked; };
    const bool in_time = hub_->mu_.AwaitWithDeadline(absl::Condition(&ready), limit);
    if (hub_->generation_ == asked) hub_->waiting_[party_] = false;
    if (down_) return absl::CancelledError("shut down");
    if (!in_time) return absl::DeadlineExceededError("a neighbour is missing");
    PeerChannels channels;
    for (const std::shared_ptr<MemoryRing>& ring : hub_->rings_) {
      channels.push_back(std::make_unique<ChannelOf>(ring, party_, clock_, hub_->line_));
      Liar* const liar = hub_->liars_[party_];
      if (liar != nullptr) channels.back() = liar->Wrap(std::move(channels.back()));
    }
    return channels;
  }

  void Shutdown() override {
    const absl::MutexLock lock(&hub_->mu_);
    down_ = true;
  }

 private:
  MemoryHub* const hub_;
  const int party_;
  Clock* const clock_;
  bool down_ = false;  // under hub_->mu_
};

void MemoryHub::MakeRings() {
  rings_.clear();
  for (size_t i = 0; i < count_; ++i) {
    rings_.push_back(std::make_shared<MemoryRing>());
    if (interceptor_) rings_.back()->SetInterceptor(interceptor_);
  }
}
void MemoryHub::SetRings(size_t count) {
  const absl::MutexLock lock(&mu_);
  count_ = count + 1;
}
std::unique_ptr<PeerLink> MemoryHub::Link(int party, Clock* clock) {
  return std::make_unique<LinkOf>(this, party, clock);
}
void MemoryHub::SetInterceptor(MemoryRing::Interceptor interceptor) {
  const absl::MutexLock lock(&mu_);
  interceptor_ = std::move(interceptor);
}
void MemoryHub::SetLiar(int party, Liar* liar) {
  const absl::MutexLock lock(&mu_);
  liars_[party] = liar;
}
void MemoryHub::SetLine(const LineState& line) {
  const absl::MutexLock lock(&mu_);
  line_ = line;
}
void MemoryHub::CloseCurrent() {
  const absl::MutexLock lock(&mu_);
  for (const std::shared_ptr<MemoryRing>& ring : rings_) ring->Close();
}

uint64_t MemoryHub::FramesOn(size_t ring) {
  const absl::MutexLock lock(&mu_);
  uint64_t frames = 0;
  for (int p = 0; p < kParties; ++p) frames += rings_[ring]->channel(p).Counters().frames_sent;
  return frames;
}

// ---- ThreeEngines ----

ThreeEngines::ThreeEngines(const EngineOptions& options, uint64_t seed, const SharedStores& stores,
                           int triple)
    : random_(std::make_unique<LockedRandom>(1000 * seed)) {
  kdc_.name = "kdc1";
  random_->Fill(absl::MakeSpan(kdc_.session));
  for (int p = 0; p < kParties; ++p) {
    Server& s = servers_[p];
    s.options = options;
    // A loaded machine's memory is no slow line. Tests of the trial set it themselves.
    if (options.line_trial_bytes == limits::kLineTrialBytes) s.options.line_trial_bytes = 0;
    if (TestedSecurity() == Security::kSemiHonest) s.options.security = Security::kSemiHonest;
    const StoreIdentity identity{"EXAMPLE.COM", p, 7};
    s.store = stores[p] == nullptr
                  ? std::make_unique<MemoryShareStore>(identity)
                  : std::make_unique<MemoryShareStore>(stores[p], identity, triple);
    s.random = std::make_unique<LockedRandom>(1000 * seed + 1 + p);
  }
}

void ThreeEngines::StopAll() {
  for (int p = 0; p < kParties; ++p) Stop(p);
}

void ThreeEngines::StartAll() {
  for (int p = 0; p < kParties; ++p) Start(p);
}

void ThreeEngines::StartWith(int p, JobRecorder* recorder) {
  Server& s = servers_[p];
  s.observer = std::make_unique<RecordingObserver>();
  s.link = hub_.Link(p, &s.clock);
  s.executor = std::make_unique<ThreadExecutor>(&s.clock);
  s.long_executor = std::make_unique<ThreadExecutor>(&s.clock);
  s.engine = MakeJobEngine(s.options, {s.store.get(), &s.clock, s.random.get(), s.link.get(),
                                       s.executor.get(), s.long_executor.get(), s.observer.get(),
                                       recorder != nullptr ? recorder : &s.recorder,
                                       s.certificates});
  const absl::Status started = s.engine->Start();
  if (!started.ok()) abort();
}

void ThreeEngines::Stop(int p) {
  if (servers_[p].engine == nullptr) return;
  servers_[p].engine->Stop();
  servers_[p].engine.reset();
}

void ThreeEngines::LoseStore(int p) {
  servers_[p].store = std::make_unique<MemoryShareStore>(StoreIdentity{"EXAMPLE.COM", p, 7});
}

bool ThreeEngines::WaitConnected(absl::Duration limit) {
  const absl::Time until = absl::Now() + limit;
  while (absl::Now() < until) {
    int connected = 0;
    for (Server& s : servers_) {
      connected += s.engine != nullptr && s.engine->Status().peers_connected;
    }
    if (connected == kParties) return true;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return false;
}

PlainKey ThreeEngines::AddKey(const std::string& principal, KeyClass key_class, int32_t enctype,
                              Gate gate) {
  const PlainKey key = MakePlainKey(*random_, principal, key_class, enctype, gate);
  const PerParty<KeyRecord> records = ShareKey(key, *random_);
  for (int p = 0; p < kParties; ++p) {
    const absl::Status enrolled = Enrol(*servers_[p].store, records[p], absl::Now());
    if (!enrolled.ok()) abort();
  }
  return key;
}

PerParty<JobResult> ThreeEngines::Run(const PerParty<Job>& jobs) {
  Gathered<JobResult> answers;
  for (int p = 0; p < kParties; ++p) engine(p).Submit(kdc_, jobs[p], answers.From(p));
  return answers.Wait();
}

std::vector<JobResult> ThreeEngines::RunAll(const std::vector<Job>& jobs) {
  std::deque<Gathered<JobResult>> answers;
  for (const Job& job : jobs) {
    answers.emplace_back();
    for (int p = 0; p < kParties; ++p) engine(p).Submit(kdc_, job, answers.back().From(p));
  }
  std::vector<JobResult> results;
  for (Gathered<JobResult>& a : answers) results.push_back(Combine(a.Wait()));
  return results;
}

PerParty<JobResult> ThreeEngines::RunAt(const std::vector<int>& parties, const Job& job) {
  Gathered<JobResult> answers(parties.size());
  for (const int p : parties) engine(p).Submit(kdc_, job, answers.From(p));
  return answers.Wait();
}

JobResult ThreeEngines::RunStaggered(const Job& job, absl::Duration delay) {
  Gathered<JobResult> answers;
  for (const int p : {2, 0, 1}) {
    engine(p).Submit(kdc_, job, answers.From(p));
    absl::SleepFor(delay);
  }
  return Combine(answers.Wait());
}

PerParty<TagResult> ThreeEngines::Tags(const PerParty<TagRequest>& requests) {
  PerParty<TagResult> answers;
  for (int p = 0; p < kParties; ++p) answers[p] = servers_[p].engine->FinishTag(kdc_, requests[p]);
  return answers;
}

std::string ThreeEngines::FinishSeal(const JobResult& result, uint32_t seal,
                                     const std::string& plaintext) {
  const std::string ciphertext = Encrypt(result.seals[seal], plaintext);
  const TagResult tag = Combine(Tags(TagRequest{result.id, seal, ciphertext}));
  if (!tag.judgement.ok()) return tag.judgement.detail;
  return Message(result.seals[seal], ciphertext, tag.tag_share);
}

absl::Status ThreeEngines::Draw(const TransactionId& txn, const KeyInfo& info) {
  Gathered<absl::Status> answers;
  for (int p = 0; p < kParties; ++p) engine(p).DrawKey(txn, info, answers.From(p));
  for (const absl::Status& status : answers.Wait()) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

PerParty<absl::StatusOr<std::vector<VerifyResult>>> ThreeEngines::VerifyEach(
    const std::vector<Handle>& handles) {
  std::array<uint8_t, 16> request;
  random_->Fill(absl::MakeSpan(request));
  Gathered<absl::StatusOr<std::vector<VerifyResult>>> answers;
  for (int p = 0; p < kParties; ++p) engine(p).VerifyKeys(request, handles, answers.From(p));
  return answers.Wait();
}

PerParty<absl::StatusOr<std::vector<CompareResult>>> ThreeEngines::CompareEach(
    absl::FunctionRef<CompareRequest(int party)> request_of) {
  std::array<uint8_t, 16> id;
  random_->Fill(absl::MakeSpan(id));
  Gathered<absl::StatusOr<std::vector<CompareResult>>> answers;
  for (int p = 0; p < kParties; ++p) {
    CompareRequest request = request_of(p);
    request.id = id;
    engine(p).CompareKeys(std::move(request), answers.From(p));
  }
  return answers.Wait();
}

absl::StatusOr<std::vector<VerifyResult>> ThreeEngines::Verify(const std::vector<Handle>& handles) {
  using Answer = absl::StatusOr<std::vector<VerifyResult>>;
  const PerParty<Answer> answers = VerifyEach(handles);
  for (const Answer& answer : answers) {
    if (!answer.ok()) return answer;
  }
  for (size_t i = 0; i < handles.size(); ++i) {
    for (const Answer& answer : answers) {
      if ((*answer)[i].consistent != (*answers[0])[i].consistent) {
        return absl::InternalError("the servers do not agree about a verification");
      }
    }
  }
  return answers[0];
}

}  // namespace mpckdc
