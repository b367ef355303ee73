// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/lies.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/proof/batch_verifier.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/sim/fibers.h"
#include "mpc-server/sim/machine.h"
#include "mpc-server/testing/frame_channel.h"
#include "mpc-server/testing/join.h"

namespace mpckdc::sim {
namespace {

constexpr size_t kInputs = 6;  // drawn in so many ways; the odd ones exchange their randomness
constexpr double kControlShare = 0.03;
constexpr uint64_t kRunsOfScheduler = 256;  // it keeps what has ended

constexpr const char* kEndNames[] = {"no message suited", "named",    "ended, nobody named",
                                     "no effect",         "WRONG",    "one goes on",
                                     "MISNAMED",          "SELECTIVE"};
static_assert(std::size(kEndNames) == kLieEnds);

Randomness RandomnessOf(const Subject& subject, size_t inputs) {
  const bool exchanged = inputs % 2 != 0 && !subject.has_roles();
  return exchanged ? Randomness::kExchanged : Randomness::kKeyed;
}

// Nothing here waits for time.
class NoTime : public Clock {
 public:
  absl::Time Now() override { return absl::UnixEpoch(); }
  void SleepUntil(absl::Time) override {}
};

// ---- Three parties on fibers of one thread ----

// Frames between them; when none of them can go on, all connections end.
struct FiberRing {
  struct Wire {
    std::array<uint8_t, kFrameHeaderSize> header;
    SecretBytes payload;
  };
  explicit FiberRing(Scheduler* on) : scheduler(on) {}

  void Close() {
    closed = true;
    for (Fiber* fiber : waiting) scheduler->Wake(fiber);
  }

  Scheduler* const scheduler;
  std::deque<Wire> pipes[kParties][kParties];  // [from][to]
  std::array<Fiber*, kParties> waiting{};
  bool closed = false;
};

class FiberChannel : public FrameChannel {
 public:
  FiberChannel(FiberRing* ring, int party) : FrameChannel(party), ring_(*ring) {}
  ChannelCounters Counters() const override { return {}; }

 private:
  absl::Status Put(Neighbour to, const FrameHeader& header, absl::string_view,
                   absl::Span<const uint8_t> payload) override {
    FiberRing::Wire& wire = ring_.pipes[party_][Party(to)].emplace_back();
    WriteFrameHeader(header, wire.header.data());
    wire.payload.assign(payload.begin(), payload.end());
    ring_.scheduler->Wake(ring_.waiting[Party(to)]);
    return absl::OkStatus();
  }
  absl::Status Next(Neighbour from, bool, absl::Time, FrameHeader* header,
                    SecretBytes* payload) override {
    std::deque<FiberRing::Wire>& pipe = ring_.pipes[Party(from)][party_];
    while (pipe.empty()) {
      if (ring_.closed) return absl::UnavailableError("the connection ended");
      ring_.waiting[party_] = ring_.scheduler->current();
      ring_.scheduler->Wait(absl::InfiniteFuture());
      ring_.waiting[party_] = nullptr;
    }
    FiberRing::Wire wire = std::move(pipe.front());
    pipe.pop_front();
    return Open(wire.header.data(), std::move(wire.payload), header, payload);
  }
  absl::Status Fail(Neighbour n, absl::string_view step, const absl::Status& cause) override {
    broken_ = absl::Status(
        cause.code(), absl::StrCat("P", Party(n), " in step \"", step, "\": ", cause.message()));
    return broken_;
  }

  FiberRing& ring_;
};

}  // namespace

// One session: who they are, and what it came to.
struct Lies::Session {
  uint64_t seed = 0;
  Randomness randomness = Randomness::kKeyed;
  int watched = 0;  // the party whose channel is `liar`'s
  Liar* liar = nullptr;
  std::array<absl::Status, kParties> status;
  std::array<Results, kParties> results;
};

// What happens when nobody lies: the rounds, and the values.
struct Lies::Honest {
  struct Message {
    uint16_t round;
    std::string step;
    size_t to_next, to_prev;
  };
  std::array<std::vector<Message>, kParties> messages;  // of each, where it sends something
  std::vector<Block> values;
  std::vector<uint8_t> opened;
};

Lies::Lies(Prover prover) : prover_(std::move(prover)) {
  for (size_t i = 0; i < kInputs; ++i) subjects_.push_back(AllSubjects(1 + i));
}
Lies::~Lies() = default;

Prover ProverOf(Security security) {
  if (security == Security::kSemiHonest) {
    return [](PartyContext&, const LieRun&, const Liar&) { return absl::OkStatus(); };
  }
  return [](PartyContext& party, const LieRun&, const Liar&) { return party.Verify(); };
}

namespace {

SessionOptions OptionsOf(int party, Randomness randomness) {
  SessionOptions options;
  options.party = party;
  options.realm = "SIM";
  options.randomness = randomness;
  options.security = TestedSecurity();
  return options;
}

}  // namespace

void Lies::Compute(Session& session, const LieRun& run, Subject& subject, int batches) {
  thread_local std::unique_ptr<Scheduler> scheduler;
  thread_local uint64_t runs = 0;
  if (runs++ % kRunsOfScheduler == 0) scheduler = std::make_unique<Scheduler>(absl::UnixEpoch());
  FiberRing ring(scheduler.get());
  NoTime clock;
  const Verify verify = [&](PartyContext& party) { return prover_(party, run, *session.liar); };
  const auto work = [&](int p, PeerChannel& channel) -> absl::Status {
    SeededRandomForTest random(kParties * session.seed + static_cast<uint64_t>(p));
    ASSIGN_OR_RETURN(const auto party, OpenSession(OptionsOf(p, session.randomness), channel, clock,
                                                   random, absl::InfiniteFuture()));
    std::optional<proof::BatchVerifier> verifier;
    if (party->security() == Security::kActive) verifier.emplace(*party, random);
    for (int batch = 1; batch <= batches; ++batch) {
      party->BeginBatch(static_cast<uint32_t>(batch));
      session.results[p].Clear();
      RETURN_IF_ERROR(subject.Run(*party, verify, &session.results[p]));
    }
    return absl::OkStatus();
  };
  std::array<Fiber*, kParties> fibers;
  for (int p = 0; p < kParties; ++p) {
    fibers[p] = scheduler->Spawn("", [&, p] {
      std::unique_ptr<PeerChannel> channel = std::make_unique<FiberChannel>(&ring, p);
      if (p == session.watched) channel = session.liar->Wrap(std::move(channel));
      session.status[p] = work(p, *channel);
    });
  }
  scheduler->RunUntil(scheduler->now());
  for (const Fiber* fiber : fibers) {
    if (scheduler->Done(fiber)) continue;
    ring.Close();
    scheduler->RunUntil(scheduler->now());
  }
}

// ---- What ought to come out ----

const Lies::Honest& Lies::ReferenceOf(size_t subject, size_t inputs) {
  std::unique_ptr<Honest>& honest = references_[{subject, inputs}];
  if (honest != nullptr) return *honest;
  honest = std::make_unique<Honest>();
  Session session;
  session.randomness = RandomnessOf(*subjects_[inputs][subject], inputs);
  for (int p = 0; p < kParties; ++p) {
    if (p > 0 && !subjects_[inputs][subject]->has_roles()) {
      honest->messages[p] = honest->messages[0];
      continue;
    }
    Liar nobody(0);
    nobody.Watch([&](const SeenRound& seen) {
      if (seen.to_next.empty() && seen.to_prev.empty()) return;
      honest->messages[p].push_back(
          {seen.id.round, seen.id.step, seen.to_next.size(), seen.to_prev.size()});
    });
    session.watched = p;
    session.liar = &nobody;
    Compute(session, {}, *subjects_[inputs][subject], 1);
  }
  for (const absl::Status& status : session.status) {
    if (!status.ok()) {
      std::fprintf(stderr, "%s, honestly: %s\n", subjects_[inputs][subject]->name().c_str(),
                   std::string(status.message()).c_str());
      std::abort();
    }
  }
  const auto& results = session.results;
  for (size_t i = 0; i < results[0].shares.size(); ++i) {
    const auto share = [&](int p) { return results[p].shares[i]; };
    if (!JoinForTest({share(0), share(1), share(2)}, &honest->values.emplace_back())) std::abort();
  }
  honest->opened = results[0].opened;
  return *honest;
}

// ---- The lie ----

namespace {

// A session has one hello, seed and confirmation for each neighbour: there is none to wait for, and
// none before.
bool Suits(const Lie& lie) {
  static constexpr LieKind kOfControl[] = {LieKind::kOneBit, LieKind::kSeveralBits, LieKind::kNoise,
                                           LieKind::kTwice, LieKind::kSwap};
  if (!lie.control) return lie.kind != LieKind::kSwap;
  return std::find(std::begin(kOfControl), std::end(kOfControl), lie.kind) != std::end(kOfControl);
}

}  // namespace

Lie Lies::Draw(uint64_t number, const Honest& honest, LieRun* run) {
  Dice dice(number);
  run->liar = static_cast<int>(dice.Below(kParties));
  run->control = dice.Chance(kControlShare);
  Lie lie;
  lie.control = run->control;
  do {
    lie.kind = static_cast<LieKind>(dice.Below(kLieKinds));
  } while (!Suits(lie));
  lie.own_state = run->own_state = dice.Chance(0.5);
  lie.weights = dice.Below(kKnownWeights);
  if (lie.control) {
    static constexpr const char* kFrames[] = {"hello", "seed", "confirm"};
    run->step = kFrames[dice.Below(std::size(kFrames))];
    lie.to_prev = dice.Chance(0.5);
    lie.to_next = !lie.to_prev;
    lie.where = AtStep(run->step);
  } else {
    const std::vector<Honest::Message>& messages = honest.messages[run->liar];
    const Honest::Message& message = messages[dice.Below(messages.size())];
    run->step = message.step;
    lie.to_next = message.to_next != 0;
    lie.to_prev = message.to_prev != 0;
    if (lie.to_next && lie.to_prev) (dice.Chance(0.5) ? lie.to_next : lie.to_prev) = false;
    const uint32_t batch = lie.kind == LieKind::kOldBatch ? 2 : 1;
    const bool all = lie.kind == LieKind::kConstant;
    lie.where = [batch, all, round = message.round](const RoundId& id) {
      return id.batch == batch && (all ? id.round >= round : id.round == round);
    };
  }
  run->kind = lie.kind;
  return lie;
}

namespace {

// Bits that are drawn by the run's number alone, whatever is sent.
bool HasFixedError(LieKind kind) {
  return kind == LieKind::kOneBit || kind == LieKind::kSeveralBits || kind == LieKind::kWholeRow ||
         kind == LieKind::kConstant || kind == LieKind::kCancelling;
}

}  // namespace

LieRun Lies::Run(uint64_t number) {
  Dice dice(~number);
  const size_t inputs = dice.Below(kInputs);
  double at = 0;
  for (const auto& subject : subjects_[inputs]) at += subject->share();
  at *= static_cast<double>(dice.Below(1 << 30)) / (1 << 30);
  size_t chosen = 0;
  while (chosen + 1 < subjects_[inputs].size() && at >= subjects_[inputs][chosen]->share()) {
    at -= subjects_[inputs][chosen++]->share();
  }
  LieRun run = Once(number, chosen, inputs);
  if (run.end != LieEnd::kNoEffect || !HasFixedError(run.kind)) return run;
  // The same error on other secrets.
  for (size_t other = (inputs + 2) % kInputs; other != inputs; other = (other + 2) % kInputs) {
    const LieRun again = Once(number, chosen, other);
    if (again.end == LieEnd::kNoEffect) continue;
    run.end = LieEnd::kSelective;
    run.detail = absl::StrCat("with other secrets: ", LieEndName(again.end), ", ", again.detail);
    break;
  }
  return run;
}

LieRun Lies::Once(uint64_t number, size_t chosen, size_t inputs) {
  Subject& subject = *subjects_[inputs][chosen];
  const Honest& honest = ReferenceOf(chosen, inputs);

  LieRun run;
  run.subject = subject.name();
  Lie lie = Draw(number, honest, &run);
  lie.row_bytes = subject.row_bytes();
  Liar liar(number);
  const bool replays = lie.kind == LieKind::kOldBatch || lie.kind == LieKind::kOtherRound;
  if (replays) liar.KeepHistory();
  const int batches = lie.kind == LieKind::kOldBatch && !lie.control ? 2 : 1;
  liar.Arm(std::move(lie));
  Session session;
  session.seed = number;
  session.randomness = RandomnessOf(subject, inputs);
  session.watched = run.liar;
  session.liar = &liar;
  Compute(session, run, subject, batches);
  run.end = liar.struck() == 0 ? LieEnd::kNone : Judge(session, honest, &run);
  return run;
}

// ---- What it came to ----

namespace {

// Whether two honest servers hold right shares of the right value: with the liar d, they are d + 1
// and d + 2, x_{d+2} = a_{d+1} + a_{d+2}, and v = x_{d+1} + a_{d+2} (share/replicated_share.h).
bool Right(const SharedBlock& first, const SharedBlock& second, const Block& value) {
  return XorBlocks(first.a, second.a) == second.x && XorBlocks(first.x, second.a) == value;
}

// What a server was told by the others, as far as it came.
bool IsPrefix(const std::vector<uint8_t>& part, const std::vector<uint8_t>& whole) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

}  // namespace

namespace {

// What is told in an opening and in a verdict was proved before; and a garbled run's result rests
// on nothing that the evaluator tells the other garbler. The zero shares that are exchanged before
// an opening are not used.
bool ToldApart(const Liar& liar) {
  bool told = false;
  for (const std::string& step : liar.steps()) {
    const bool opens =
        step == "tag check" || step == "pre-auth timestamp" || step == "garbled/result";
    if (!opens && !absl::StartsWith(step, "proof") && step != "zero shares") return false;
    told |= step != "zero shares";
  }
  return told;
}

}  // namespace

LieEnd Lies::Judge(const Session& session, const Honest& honest, LieRun* run) const {
  const int first = NextParty(run->liar), second = NextParty(first);
  int ended = 0;
  bool named = false, misnamed = false;
  for (const int p : {first, second}) {
    const absl::Status& status = session.status[p];
    if (status.ok()) continue;
    ++ended;
    absl::StrAppend(&run->detail, "P", p, ": ", status.message(), "; ");
    const std::optional<Suspects> suspects = SuspectsOf(status);
    if (!suspects.has_value()) continue;
    (suspects->Has(run->liar) ? named : misnamed) = true;
  }
  if (misnamed) return LieEnd::kMisnamed;
  run->named = named;
  run->told_apart = ToldApart(*session.liar);
  const Results &one = session.results[first], &other = session.results[second];
  // Opened too early, even if the session ends later.
  if (!IsPrefix(one.opened, honest.opened) || !IsPrefix(other.opened, honest.opened)) {
    run->detail += "a wrong value was opened";
    return LieEnd::kWrong;
  }
  if (ended == 1) return LieEnd::kOneGoesOn;
  if (ended == 2) return named ? LieEnd::kNamed : LieEnd::kUnnamed;
  for (size_t i = 0; i < honest.values.size(); ++i) {
    if (Right(one.shares[i], other.shares[i], honest.values[i])) continue;
    run->detail += absl::StrCat("block ", i, " is wrong");
    return LieEnd::kWrong;
  }
  return LieEnd::kNoEffect;
}

bool IsFailure(const LieRun& run) {
  if (run.end == LieEnd::kNone) return false;
  if (IsHonest(run.kind)) return run.end != LieEnd::kNoEffect;
  switch (run.end) {
    case LieEnd::kWrong:
    case LieEnd::kMisnamed:
    case LieEnd::kSelective:
      return true;
    case LieEnd::kOneGoesOn:
      return run.kind != LieKind::kTwice && !(run.named && run.told_apart);
    // A frame that comes twice, and what is said before there is a session: no bytes of a
    // computation are altered, and a network or a configuration may do the same.
    case LieEnd::kUnnamed:
      return !run.control && run.kind != LieKind::kTwice;
    default:
      return false;
  }
}

// ---- Counts ----

const char* LieEndName(LieEnd end) { return kEndNames[static_cast<int>(end)]; }

void LieCounts::Add(uint64_t number, const LieRun& run) {
  const auto end = static_cast<size_t>(run.end);
  std::string kind = LieName(run.kind);
  if (run.own_state && !run.control) kind += ", own state too";
  if (run.control) kind = absl::StrCat("control frame: ", kind);
  ++by_kind[kind][end];
  ++by_subject[run.subject][end];
  ++by_step[run.step][end];
  if (!IsFailure(run)) return;
  ++failures;
  constexpr size_t kKept = 20;
  if (first_failures.size() >= kKept) return;
  first_failures.push_back(absl::StrFormat("run %d: P%d, %s at \"%s\" of %s: %s (%s)", number,
                                           run.liar, kind, run.step, run.subject,
                                           LieEndName(run.end), run.detail));
}

void LieCounts::Add(const LieCounts& other) {
  using Rows = std::map<std::string, Row>;
  for (Rows LieCounts::*rows : {&LieCounts::by_kind, &LieCounts::by_subject, &LieCounts::by_step}) {
    for (const auto& [name, row] : other.*rows) {
      for (size_t i = 0; i < row.size(); ++i) (this->*rows)[name][i] += row[i];
    }
  }
  failures += other.failures;
  first_failures.insert(first_failures.end(), other.first_failures.begin(),
                        other.first_failures.end());
}

LieCounts::Row LieCounts::Sum() const {
  Row sum{};
  for (const auto& [name, row] : by_kind) {
    for (size_t i = 0; i < row.size(); ++i) sum[i] += row[i];
  }
  return sum;
}

std::string LieCounts::Summary() const {
  std::string out;
  const auto line = [&out](const std::string& name, const Row& row) {
    absl::StrAppendFormat(&out, "  %-44s", name);
    for (const uint64_t count : row) absl::StrAppendFormat(&out, " %10d", count);
    absl::StrAppend(&out, "\n");
  };
  const auto table = [&](const char* title, const std::map<std::string, Row>& rows) {
    absl::StrAppendFormat(&out, "%s; columns:", title);
    for (int i = 0; i < kLieEnds; ++i) absl::StrAppend(&out, i == 0 ? " " : ", ", kEndNames[i]);
    absl::StrAppend(&out, "\n");
    for (const auto& [name, row] : rows) line(name, row);
  };
  table("lies by kind", by_kind);
  table("lies by computation", by_subject);
  table("lies by step", by_step);
  line("all", Sum());
  for (const std::string& failure : first_failures) absl::StrAppend(&out, failure, "\n");
  const Row sum = Sum();
  uint64_t told = 0;
  for (size_t i = 1; i < sum.size(); ++i) told += sum[i];
  absl::StrAppendFormat(&out, "%d lies, %d of them failures\n", told, failures);
  return out;
}

LieCounts RunLies(uint64_t first, uint64_t runs, int jobs, const Prover& prover) {
  LieCounts sum;
  std::mutex mutex;
  std::vector<std::thread> threads;
  const auto count = static_cast<uint64_t>(std::max(jobs, 1));
  for (uint64_t job = 0; job < count; ++job) {
    threads.emplace_back([&, job] {
      Lies lies(prover);
      LieCounts own;
      for (uint64_t i = job; i < runs; i += count) own.Add(first + i, lies.Run(first + i));
      const std::lock_guard lock(mutex);
      sum.Add(own);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return sum;
}

}  // namespace mpckdc::sim
