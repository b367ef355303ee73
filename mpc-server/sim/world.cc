// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/world.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpckdc::sim {
namespace {

constexpr char kRealm[] = "EXAMPLE.COM";
constexpr uint16_t kCluster = 7;

}  // namespace

World::World(const WorldOptions& options)
    : options_(options),
      start_(absl::FromUnixSeconds(1'800'000'000)),
      scheduler_(start_),
      dice_(2 * options.seed),
      network_(&scheduler_, &dice_),
      random_(2 * options.seed + 1) {
  kdc_.name = "kdc1";
  random_.Fill(absl::MakeSpan(kdc_.session));
  for (int p = 0; p < kParties; ++p) {
    servers_[p].clock = std::make_unique<SimClock>(&scheduler_);
    MemoryShareStore fresh(StoreIdentity{kRealm, p, kCluster});
    servers_[p].disk = fresh.Snapshot();
    servers_[p].stream_busy = start_;
  }
  AddKeys();
  network_.SetStepHook([this](int p, const std::string& step) { return AtStep(p, step); });
}

World::~World() = default;

// ---- Servers ----

PlainKey World::AddKey(const std::string& principal, KeyClass key_class, int32_t enctype,
                       Gate gate) {
  const PlainKey key = MakePlainKey(random_, principal, key_class, enctype, gate);
  const PerParty<KeyRecord> records = ShareKey(key, random_);
  for (int p = 0; p < kParties; ++p) servers_[p].disk->keys[key.info.handle] = records[p];
  return key;
}

void World::AddKeys() {
  alice_ = AddKey("alice@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm, Gate::kTimestamp);
  bob_ = AddKey("bob@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes256Gcm, Gate::kTimestamp);
  tgt_ = AddKey("krbtgt/EXAMPLE.COM@EXAMPLE.COM", KeyClass::kTgs, kEnctypeAes256Gcm, Gate::kNone);
}

void World::StartServer(int p) {
  Server& server = servers_[p];
  if (server.process != nullptr) return;
  ++server.incarnation;
  auto process = std::make_unique<Process>();
  process->store = std::make_unique<MemoryShareStore>(StoreIdentity{kRealm, p, kCluster});
  process->store->Restore(*std::move(server.disk));
  server.disk.reset();
  process->random = std::make_unique<SeededRandomForTest>(dice_.Below(1ull << 60));
  process->link = network_.Link(p, server.clock.get());
  process->executor = std::make_unique<SimExecutor>(&scheduler_, server.clock.get());
  const EngineParts parts{process->store.get(), server.clock.get(),      process->random.get(),
                          process->link.get(),  process->executor.get(), nullptr};
  process->engine = std::make_unique<JobEngine>(EngineOptions{}, parts);
  server.process = std::move(process);
  const absl::Status started = server.process->engine->Start();
  if (!started.ok()) Violation(absl::StrCat("server ", p, " does not start: ", started.message()));
  Log(absl::StrCat("server ", p, " starts"));
}

// The process stops here and now: the disk stays as it is, nothing it still does has an effect.
void World::KillServer(int p, const std::string& where) {
  Server& server = servers_[p];
  if (server.process == nullptr) return;
  Log(absl::StrCat("server ", p, " is killed at ", where));
  ++server.incarnation;
  server.disk = server.process->store->Snapshot();
  network_.Kill(p);
  Process* const process = server.process.get();
  dead_.push_back(std::move(server.process));
  ++fibers_running_;
  scheduler_.Spawn("reaper", [this, process] {
    process->engine->Stop();
    --fibers_running_;
  });
}

bool World::AtStep(int p, const std::string& step) {
  ++steps_[step];
  if (kill_at_.first != p || kill_at_.second != step) return false;
  kill_at_.first = -1;
  KillServer(p, absl::StrCat("step \"", step, "\""));
  return true;
}

// ---- Faults ----

void World::KillAtStep() {
  auto it = steps_.begin();
  std::advance(it, static_cast<ptrdiff_t>(dice_.Below(steps_.size())));
  kill_at_ = {static_cast<int>(dice_.Below(3)), it->first};
}

void World::InjectOne() {
  const int a = static_cast<int>(dice_.Below(3));
  const int b = dice_.Chance(0.5) ? NextParty(a) : PrevParty(a);
  const uint64_t kind = dice_.Below(9);
  const char* const names[] = {"kill",    "kill at step", "cut",        "partition", "pause",
                               "corrupt", "slow",         "clock jump", "disk full"};
  ++outcome_.faults[names[kind]];
  Log(absl::StrCat("fault: ", names[kind], " ", a, " ", b));
  switch (kind) {
    case 0: KillServer(a, "a random moment"); break;
    case 1: KillAtStep(); break;
    case 2: network_.Cut(a, b); break;
    case 3: network_.Partition(a, b, true); break;
    case 4:
      if (servers_[a].process != nullptr) {
        scheduler_.Pause(servers_[a].process->executor->fiber(),
                         scheduler_.now() +
                             dice_.Between(absl::Milliseconds(100), absl::Seconds(6)));
      }
      break;
    case 5: network_.CorruptNextControl(a, b); break;
    case 6: network_.SetDelay(absl::Milliseconds(1), dice_.Between(absl::Milliseconds(2),
                                                                   absl::Milliseconds(60)));
      break;
    case 7:
      // One clock at a time: two wrong ones may outvote the right one (doc/jobs.md, Nonces).
      clocks_jumped_ = true;
      if (wrong_clock_ < 0) wrong_clock_ = a;
      servers_[wrong_clock_].clock->Set(dice_.Between(-absl::Hours(3), absl::Hours(3)));
      break;
    case 8:
      if (servers_[a].process != nullptr) {
        servers_[a].process->store->FailWrites(absl::ResourceExhaustedError("disk full"));
      }
      break;
  }
}

// Everything runs and is connected again. Clocks are right again too.
void World::Heal() {
  Log("heal");
  kill_at_.first = -1;
  network_.SetDelay(absl::Microseconds(100), absl::Milliseconds(1));
  for (int p = 0; p < kParties; ++p) {
    network_.Partition(p, NextParty(p), false);
    servers_[p].clock->Set(absl::ZeroDuration());
    wrong_clock_ = -1;
    if (servers_[p].process == nullptr) {
      StartServer(p);
    } else {
      servers_[p].process->store->FailWrites(absl::OkStatus());
      scheduler_.Pause(servers_[p].process->executor->fiber(), scheduler_.now());
    }
  }
}

// The control: what the durable marks prevent.
void World::ForgetfulRestart() {
  for (int p = 0; p < kParties; ++p) {
    KillServer(p, "the control");
    servers_[p].disk->mark = NonceMark{};
    servers_[p].clock->Set(-absl::Seconds(10));
  }
  scheduler_.Sleep(absl::Milliseconds(100));
  for (int p = 0; p < kParties; ++p) StartServer(p);
}

void World::Injector() {
  scheduler_.Sleep(absl::Seconds(2));
  if (options_.forget_marks) {
    for (int i = 0; i < 6; ++i) {
      scheduler_.Sleep(absl::Milliseconds(1700));
      ForgetfulRestart();
    }
  }
  while (!options_.forget_marks && Elapsed() < options_.faulty) {
    InjectOne();
    scheduler_.Sleep(dice_.Between(absl::Milliseconds(50), absl::Seconds(2)));
    if (dice_.Chance(0.4)) Heal();
  }
  Heal();
  healed_ = scheduler_.now();
  scheduler_.Sleep(options_.quiet);
  done_ = true;
}

// ---- The KDC ----

absl::Time World::StreamTime(int p) {
  const absl::Duration delay =
      dice_.Chance(0.05) ? dice_.Between(absl::Milliseconds(1), absl::Milliseconds(80))
                         : dice_.Between(absl::Microseconds(100), absl::Milliseconds(3));
  absl::Time& busy = servers_[p].stream_busy;
  busy = std::max(busy, scheduler_.now() + delay);
  return busy;
}

// To all three; waits for the answers, or three seconds: then the result is UNSPECIFIED (absent).
JobResult World::SendJob(const Job& job, bool may_lose) {
  auto call = std::make_shared<Call<JobResult>>();
  call->waiter = scheduler_.current();
  for (int p = 0; p < kParties; ++p) {
    if (may_lose && dice_.Chance(0.01)) continue;
    const bool twice = may_lose && dice_.Chance(0.02);
    scheduler_.At(StreamTime(p), [this, call, job, p, twice] {
      if (servers_[p].process == nullptr) return;
      const uint64_t incarnation = servers_[p].incarnation;
      JobEngine& engine = *servers_[p].process->engine;
      engine.Submit(kdc_, job, [this, call, p, incarnation](JobResult result) {
        if (servers_[p].incarnation != incarnation) return;  // the process is dead
        NoteNonces(p, result);
        call->answers[p] = std::move(result);
        call->got[p] = true;
        scheduler_.Wake(call->waiter);
      });
      if (!twice) return;
      engine.Submit(kdc_, job, [this](JobResult result) {
        if (result.judgement.verdict != Verdict::kRefused) Violation("a job id was taken twice");
      });
    });
  }
  const absl::Time limit = scheduler_.now() + absl::Seconds(3);
  while (!call->All() && scheduler_.now() < limit) scheduler_.Wait(limit);
  if (call->All()) return Combine(call->answers);
  for (int p = 0; p < kParties; ++p) {
    if (call->got[p] && !call->answers[p].judgement.ok()) return call->answers[p];
  }
  JobResult absent;
  absent.id = job.id;
  absent.judgement = Refuse(Verdict::kUnspecified, "no answer");
  call->waiter = nullptr;
  return absent;
}

TagResult World::SendTags(const TagRequest& request) {
  auto call = std::make_shared<Call<TagResult>>();
  call->waiter = scheduler_.current();
  for (int p = 0; p < kParties; ++p) {
    scheduler_.At(StreamTime(p), [this, call, request, p] {
      if (servers_[p].process == nullptr) return;
      call->answers[p] = servers_[p].process->engine->FinishTag(kdc_, request);
      call->got[p] = true;
      scheduler_.Wake(call->waiter);
    });
  }
  const absl::Time limit = scheduler_.now() + absl::Seconds(1);
  while (!call->All() && scheduler_.now() < limit) scheduler_.Wait(limit);
  if (call->All()) return Combine(call->answers);
  call->waiter = nullptr;
  return {request.job, request.seal, Refuse(Verdict::kUnspecified, "no answer"), {}};
}

// Whatever leaves a server under a nonce belongs to one place of one job.
void World::NoteNonces(int p, const JobResult& result) {
  int index = 0;
  const auto note = [&](const Nonce& nonce) {
    const std::pair<JobId, int> use{result.id, index++};
    const auto [it, fresh] = nonces_.insert({nonce, use});
    if (fresh || it->second == use) return;
    Violation(absl::StrCat("server ", p, " used a nonce for job ", use.first, " part ", use.second,
                           " that was used for job ", it->second.first, " part ",
                           it->second.second));
  };
  for (const SealResult& seal : result.seals) note(seal.nonce);
  for (const MakeMacResult& mac : result.make_macs) note(mac.nonce);
}

bool World::Allowed(Verdict v) const {
  if (v == Verdict::kOk || v == Verdict::kUnavailable || v == Verdict::kDeadline ||
      v == Verdict::kUnspecified) {
    return true;
  }
  return v == Verdict::kClockSkew && clocks_jumped_;
}

void World::CheckSeal(const JobResult& result, uint32_t seal, const PlainKey& key,
                      uint32_t usage) {
  const std::string text(20 + dice_.Below(120), static_cast<char>('a' + seal));
  const std::string ciphertext = Encrypt(result.seals[seal], text);
  const TagResult tag = SendTags({result.id, seal, ciphertext});
  if (tag.judgement.verdict == Verdict::kUnspecified) return;
  // A server that was restarted has forgotten the seal.
  if (tag.judgement.verdict == Verdict::kRefused) return;
  if (!tag.judgement.ok()) return Violation(absl::StrCat("tag: ", tag.judgement.detail));
  const std::string message = Message(result.seals[seal], ciphertext, tag.tag_share);
  if (OracleOpen(key, usage, message) != text) {
    return Violation(absl::StrCat("job ", result.id, " seal ", seal, " is wrong"));
  }
  if (usage == 2 && dice_.Chance(0.3)) CheckTicketOpens(message, text);
}

void World::CheckTicketOpens(const std::string& ticket, const std::string& inside) {
  Job job;
  job.id = ++last_id_;
  job.operation = Operation::kOpenTicket;
  job.opens.push_back({tgt_.info.handle, 2, ticket});
  const JobResult result = SendJob(job, false);
  const Verdict v = result.judgement.verdict;
  ++outcome_.verdicts[absl::StrCat("open ", VerdictName(v))];
  const bool by_clock = v == Verdict::kRefused && clocks_jumped_;
  if (!result.judgement.ok()) {
    if (!Allowed(v) && !by_clock) {
      Violation(absl::StrCat("a good ticket is ", VerdictName(v), ": ", result.judgement.detail));
    }
    return;
  }
  const std::string ciphertext = ticket.substr(12 + 1 + 33, ticket.size() - 12 - 1 - 33 - 16);
  if (XorText(result.opens[0].keystream_share, ciphertext.substr(16)) != inside) {
    Violation("an opened ticket is wrong");
  }
}

void World::CheckLogin(const Job& job, const JobResult& result, const PlainKey& user, bool right,
                       const std::string& as_req) {
  const Verdict v = result.judgement.verdict;
  const bool refusal_fits = !right && (v == Verdict::kBadTag || v == Verdict::kReplay);
  if (!Allowed(v) && !refusal_fits) {
    return Violation(absl::StrCat("login ", job.id, " is ", VerdictName(v), ": ",
                                  result.judgement.detail));
  }
  if (!result.judgement.ok()) return;
  if (!right) return Violation(absl::StrCat("login ", job.id, " must not succeed"));
  if (!OracleMacGood(user, 56, as_req, result.make_macs[0])) {
    return Violation(absl::StrCat("login ", job.id, ": the checksum is wrong"));
  }
  CheckSeal(result, 0, tgt_, 2);
  CheckSeal(result, 1, user, 3);
}

void World::OneLogin() {
  const PlainKey& user = dice_.Chance(0.5) ? alice_ : bob_;
  const bool replay = !old_preauth_.empty() && dice_.Chance(0.05);
  const bool wrong = !replay && dice_.Chance(0.1);
  PlainKey typed = user;
  if (wrong) typed.base[3] ^= 1;
  const PlainKey& who = replay ? old_user_ : user;
  const std::string preauth = replay ? old_preauth_ : SealPreauth(typed, scheduler_.now(), random_);
  LoginSizes sizes;
  sizes.ticket = static_cast<uint32_t>(150 + dice_.Below(40));
  const Job job = LoginJob(++last_id_, who, tgt_, preauth, sizes);
  const bool right = !replay && !wrong;
  const absl::Time sent = scheduler_.now();
  const JobResult result = SendJob(job, scheduler_.now() < healed_);
  ++outcome_.verdicts[result.judgement.verdict == Verdict::kUnspecified
                          ? "absent"
                          : std::string(VerdictName(result.judgement.verdict))];
  CheckLogin(job, result, who, right, sizes.as_req);
  if (!right) return;
  ++outcome_.logins;
  if (!result.judgement.ok()) {
    if (first_ok_after_heal_.has_value() && sent >= *first_ok_after_heal_) {
      Violation(absl::StrCat("login ", job.id, " fails long after the faults: ",
                             VerdictName(result.judgement.verdict), " ", result.judgement.detail));
    }
    return;
  }
  ++outcome_.logins_ok;
  old_preauth_ = preauth;
  old_user_ = who;
  if (scheduler_.now() >= healed_ && !first_ok_after_heal_) {
    first_ok_after_heal_ = scheduler_.now();
  }
}

void World::Load() {
  while (!done_ && outcome_.violations.empty()) {
    ++fibers_running_;
    scheduler_.Spawn("login", [this] {
      OneLogin();
      --fibers_running_;
    });
    scheduler_.Sleep(dice_.Between(absl::Milliseconds(1), absl::Milliseconds(400)));
  }
}

void World::CheckRecovery() {
  if (options_.forget_marks) return;
  if (!first_ok_after_heal_) return Violation("no login succeeds after the faults");
  const absl::Duration took = *first_ok_after_heal_ - healed_;
  if (took > options_.recovery) {
    Violation(absl::StrCat("the first login succeeds ", absl::FormatDuration(took),
                           " after the faults"));
  }
}

void World::Violation(const std::string& what) {
  Log(absl::StrCat("VIOLATION: ", what));
  for (int p = 0; p < kParties; ++p) {
    if (servers_[p].process == nullptr) continue;
    const EngineStatus status = servers_[p].process->engine->Status();
    Log(absl::StrCat("  server ", p, ": ", status.peers_connected ? "connected" : "not connected ",
                     status.peers_detail, status.degraded.empty() ? "" : ", degraded: ",
                     status.degraded));
  }
  outcome_.violations.push_back(what);
}

void World::Log(const std::string& what) {
  outcome_.log.push_back(
      absl::StrFormat("%9.4f %s", absl::ToDoubleSeconds(Elapsed()), what));
}

Outcome World::Run() {
  for (int p = 0; p < kParties; ++p) StartServer(p);
  scheduler_.Spawn("injector", [this] { Injector(); });
  scheduler_.Spawn("load", [this] { Load(); });
  while (!done_) scheduler_.RunUntil(scheduler_.now() + absl::Seconds(1));
  CheckRecovery();
  scheduler_.RunUntil(scheduler_.now() + absl::Seconds(10));  // what is under way ends
  for (int p = 0; p < kParties; ++p) KillServer(p, "the end");
  while (fibers_running_ > 0) scheduler_.RunUntil(scheduler_.now() + absl::Seconds(1));
  outcome_.frames = network_.frames();
  return std::move(outcome_);
}

}  // namespace mpckdc::sim
