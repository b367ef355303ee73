// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/faults.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace mpckdc::sim {

namespace {

constexpr absl::Duration kRoundTime = absl::Milliseconds(2);  // at most, of a link that is not slow
// A lie is found where its batch is proved, and a long batch is under way for seconds.
constexpr absl::Duration kUntilLiesShow = absl::Seconds(4);

// In the order of FaultKind.
constexpr const char* kFaultNames[] = {
    "kill", "pause", "cut", "partition", "one-way partition", "slow link", "reorder", "duplicate",
    "corrupt control frame", "corrupt record", "truncate", "old snapshot", "clock jump",
    "certificate expiry", "disk full", "failing fsync", "client partition"};
static_assert(std::size(kFaultNames) == kFaultKinds);

}  // namespace

const char* FaultName(FaultKind kind) { return kFaultNames[static_cast<int>(kind)]; }

std::vector<std::string> NamedSteps() {
  std::vector<std::string> steps = RefreshSteps();
  steps.insert(
      steps.end(),
      {
          // Between the servers: opening a session, agreeing, and the rounds of a batch by name.
          "connect",
          "send hello",
          "receive hello",
          "send seed",
          "receive seed",
          "send confirm",
          "receive confirm",
          "send agreement",
          "receive agreement",
          "send abort",
          "confirm",
          "line trial",
          "line trial's time",
          "aes/norm",
          "aes/helper",
          "aes/inverse",
          "aes/product",
          "aes/twist",
          "aes/scale",
          "ghash powers",
          "zero check/multiply",
          "tag check",
          "pre-auth timestamp",
          "key schedule/norm",
          "key schedule/helper",
          "key schedule/inverse",
          "key schedule/product",
          "key records check",
          // The proofs of what was sent.
          "proof/commit",
          "proof/weights",
          "proof/sums",
          "proof/point",
          "proof/levels",
          "proof/end",
          "proof/verdict",
          // Messages under keys of 17 to 20, and drawing such keys.
          "hmac/sha1",
          "hmac/sha256",
          "hmac/sha384",
          "ciphertext",
          "compress/sha1",
          "garbled/tables",
          "garbled/result",
          // A server's disk, before a write is durable and after.
          "disk: stage keys",
          "disk: staged keys",
          "disk: commit keys",
          "disk: committed keys",
          "disk: abort keys",
          "disk: aborted keys",
          "disk: delete keys",
          "disk: deleted keys",
          "disk: raise nonce mark",
          "disk: raised nonce mark",
          "disk: write replays",
          "disk: wrote replays",
          // An administrator's calls, as they arrive and before they are answered.
          "admin: stage",
          "admin: staged",
          "admin: draw",
          "admin: drawn",
          "admin: commit",
          "admin: committed",
          "admin: abort",
          "admin: aborted",
          "admin: delete",
          "admin: deleted",
          "admin: verify",
          "admin: verified",
          "admin: refresh",
          "admin: refreshed",
      });
  return steps;
}

std::vector<std::string> RefreshSteps() {
  return {
      "disk: prepare a refresh", "disk: prepared a refresh", "disk: enter an epoch",
      "disk: entered an epoch",  "disk: abandon a refresh",  "disk: abandoned a refresh",
      "disk: refresh keys",      "disk: refreshed keys",     "disk: end a refresh",
      "disk: ended a refresh",   "key file: write",          "key file: written",
      "disk: take over",         "disk: took over",
  };
}

Injector::Injector(const Parts& parts)
    : parts_(parts), steady_(static_cast<int>(parts.dice->Below(kParties))) {}

// ---- Steps ----

bool Injector::AtStep(int p, const char* step) {
  const auto known = by_address_.find(step);
  size_t index;
  if (known != by_address_.end()) {
    index = known->second;
  } else {
    // The same name may be a literal of several files.
    const auto same = [step](const Seen& seen) { return seen.name == step; };
    const auto it = std::find_if(steps_.begin(), steps_.end(), same);
    index = static_cast<size_t>(it - steps_.begin());
    if (it == steps_.end()) steps_.push_back({step, 0, absl::StartsWith(step, "hmac/")});
    by_address_[step] = index;
  }
  ++steps_[index].count;
  if (steps_[index].hmac) last_hmac_ = parts_.scheduler->now();
  for (size_t i = 0; i < armed_.size(); ++i) {
    if (armed_[i].party != p || armed_[i].step != steps_[index].name) continue;
    if (armed_[i].skip-- > 0) continue;
    const Armed now = armed_[i];
    armed_.erase(armed_.begin() + static_cast<ptrdiff_t>(i));
    return Apply(now.kind, p, now.step);
  }
  return false;
}

void Injector::Report() {
  for (const Seen& seen : steps_) parts_.journal->outcome().steps[seen.name] += seen.count;
}

// At a step that was seen in this run, each as likely as the others: rare ones get their share.
void Injector::Arm(FaultKind kind) {
  if (steps_.empty()) return;
  const int p = static_cast<int>(parts_.dice->Below(kParties));
  if (!aims_.empty() && parts_.dice->Chance(0.7)) return ArmAtAim(p, kind);
  armed_.push_back({p, steps_[parts_.dice->Below(steps_.size())].name, kind});
}

void Injector::ArmAtAim(int p, FaultKind kind) {
  static constexpr FaultKind kEndsIt[] = {FaultKind::kKill, FaultKind::kPause, FaultKind::kCut};
  Dice& dice = *parts_.dice;
  if (dice.Chance(0.5)) kind = kEndsIt[dice.Below(std::size(kEndsIt))];
  const std::string& step = aims_[dice.Below(aims_.size())];
  armed_.push_back({p, step, kind, dice.Chance(0.5) ? dice.Below(aim_times_) : 0});
  if (parts_.servers->refreshes()) parts_.administrator->StartRefresh();  // so that it comes by
}

// ---- Faults ----

bool Injector::Pause(int p) {
  Process* const process = parts_.servers->process(p);
  if (process == nullptr) return true;
  const uint64_t incarnation = process->incarnation;
  Scheduler* const scheduler = parts_.scheduler;
  parts_.servers->Pause(
      p, scheduler->now() + parts_.dice->Between(absl::Milliseconds(50), absl::Seconds(4)));
  // At a step of its own thread it stops right there.
  if (scheduler->current() != nullptr && scheduler->current() == process->executor->fiber()) {
    process->stands = true;
    scheduler->Yield();
    process->stands = false;
  }
  return !parts_.servers->Alive(p, incarnation);
}

// A full disk may be that of the party's database, for all its machines.
void Injector::FailDisk(int p, DiskFault fault) {
  if (fault == DiskFault::kFull && parts_.servers->shared() && parts_.dice->Chance(0.5)) {
    parts_.journal->Count("databases that refused writes");
    return parts_.servers->FailDatabase(
        p, absl::ResourceExhaustedError("the database is read-only: simulated"));
  }
  if (parts_.servers->Up(p)) parts_.servers->process(p)->disk->SetFault(fault);
}

// One clock at a time: two wrong ones may outvote the right one (doc/jobs.md, Nonces).
void Injector::JumpClock(int p) {
  if (wrong_clock_ < 0) wrong_clock_ = p == steady_ ? NextParty(p) : p;
  parts_.kdc->ClockJumped();
  const absl::Duration far = parts_.dice->Chance(0.5) ? absl::Hours(3) : absl::Minutes(2);
  parts_.servers->clock(wrong_clock_).Set(parts_.dice->Between(-far, far));
}

void Injector::BlockClient() {
  ClientLinks& links =
      parts_.dice->Chance(0.5) ? parts_.kdc->links(parts_.triple) : parts_.administrator->links();
  links.Block(static_cast<int>(parts_.dice->Below(kParties)), parts_.dice->Chance(0.5));
}

void Injector::ApplyToNetwork(FaultKind kind, int from, int to) {
  Network* const network = parts_.network;
  switch (kind) {
    case FaultKind::kCut: return network->Cut(from, to);
    case FaultKind::kPartition: network->Block(to, from); [[fallthrough]];
    case FaultKind::kOneWay: return network->Block(from, to);
    case FaultKind::kSlow: {
      static constexpr uint64_t kRates[] = {0, 4'000, 40'000, 1'000'000};
      const absl::Duration high =
          parts_.dice->Between(absl::Milliseconds(2), absl::Milliseconds(60));
      return network->Slow(from, to, absl::Milliseconds(1), high, kRates[parts_.dice->Below(4)]);
    }
    case FaultKind::kReorder: return network->DamageNext(from, to, Damage::kReorder);
    case FaultKind::kDuplicate: return network->DamageNext(from, to, Damage::kDuplicate);
    case FaultKind::kFlipControl: return network->DamageNext(from, to, Damage::kFlipControl);
    case FaultKind::kBadRecord: return network->DamageNext(from, to, Damage::kBadRecord);
    case FaultKind::kTruncate: return network->DamageNext(from, to, Damage::kTruncate);
    default: return;
  }
}

bool Injector::Apply(FaultKind kind, int p, const std::string& step) {
  if (kind == FaultKind::kOldDisk &&
      (p == steady_ || parts_.servers->refreshes() ||
       (parts_.servers->restored() >= 0 && parts_.servers->restored() != p))) {
    kind = FaultKind::kKill;
  }
  const int other = Neighbour(p);
  if (parts_.scheduler->now() - last_hmac_ < kRoundTime) {
    parts_.journal->Count("faults amid the rounds of an HMAC");
  }
  ++parts_.journal->outcome().faults[absl::StrCat(FaultName(kind), " at ", step)];
  parts_.journal->Log(absl::StrCat("fault in triple ", parts_.triple, ": ", FaultName(kind), " P",
                                   p, " P", other, " at ", step));
  switch (kind) {
    case FaultKind::kKill:
      parts_.servers->Kill(p, step);
      return true;
    case FaultKind::kOldDisk:
      parts_.servers->RestoreOld(p);
      if (parts_.servers->restored() == p) parts_.invariants->DiskRestored();
      return true;
    case FaultKind::kPause: return Pause(p);
    case FaultKind::kClockJump: JumpClock(p); return false;
    case FaultKind::kCertificate:
      parts_.network->SetCertificate(p, {absl::InfinitePast(), parts_.scheduler->now()});
      if (parts_.dice->Chance(0.7)) parts_.network->Cut(p, other);
      return false;
    case FaultKind::kDiskFull:
    case FaultKind::kUncertainWrite:
      FailDisk(p, kind == FaultKind::kDiskFull ? DiskFault::kFull : DiskFault::kUncertain);
      return false;
    case FaultKind::kClient: BlockClient(); return false;
    default: ApplyToNetwork(kind, p, other); return false;
  }
}

void Injector::InjectOne() {
  const auto kind = static_cast<FaultKind>(parts_.dice->Below(kFaultKinds));
  if (parts_.dice->Chance(0.6)) return Arm(kind);
  Apply(kind, static_cast<int>(parts_.dice->Below(kParties)), "any moment");
}

void Injector::Heal() {
  parts_.journal->Log("heal");
  armed_.clear();
  parts_.network->Heal();
  parts_.kdc->links(parts_.triple).Heal();
  parts_.administrator->links().Heal();
  wrong_clock_ = -1;
  for (int p = 0; p < kParties; ++p) {
    parts_.network->SetCertificate(p, {parts_.scheduler->now(), absl::InfiniteFuture()});
    parts_.servers->clock(p).Set(absl::ZeroDuration());
    if (parts_.servers->shared()) parts_.servers->FailDatabase(p, absl::OkStatus());
    if (!parts_.servers->Up(p)) {
      parts_.servers->Start(p);
    } else {
      parts_.servers->process(p)->disk->SetFault(DiskFault::kNone);
      parts_.servers->Continue(p);
    }
    parts_.servers->EndQuarantine(p);
  }
}

// At any of the messages that come next, of a batch or of an agreement.
Lie Injector::DrawLie() {
  Dice& dice = *parts_.dice;
  Lie lie;
  lie.control = dice.Chance(0.1);
  do {
    lie.kind = static_cast<LieKind>(dice.Below(kLieKinds));
  } while (lie.kind == LieKind::kSwap || lie.kind == LieKind::kLate);
  lie.skip = dice.Below(lie.control ? 6 : 60);
  lie.to_prev = dice.Chance(0.1);
  lie.to_next = !lie.to_prev || dice.Chance(0.5);
  lie.own_state = dice.Chance(0.5);
  lie.weights = dice.Below(kKnownWeights);
  return lie;
}

void Injector::RunLies(absl::Duration faulty, Liar* liar) {
  const absl::Time end = parts_.scheduler->now() + faulty;
  liar->KeepHistory();
  while (parts_.scheduler->now() < end) {
    liar->Arm(DrawLie());
    parts_.scheduler->Sleep(parts_.dice->Between(absl::Milliseconds(100), absl::Milliseconds(800)));
  }
  liar->Disarm();
  parts_.scheduler->Sleep(kUntilLiesShow);
  Heal();
  for (const auto& [kind, count] : liar->counts()) {
    parts_.journal->outcome().events[absl::StrCat("lies, ", kind)] += count;
  }
}

void Injector::Run(absl::Duration faulty, bool flip_rounds) {
  const absl::Time end = parts_.scheduler->now() + faulty;
  while (parts_.scheduler->now() < end) {
    if (parts_.dice->Chance(0.3)) parts_.servers->KeepSnapshots();
    if (flip_rounds) {
      const int p = static_cast<int>(parts_.dice->Below(kParties));
      parts_.network->DamageNext(p, NextParty(p), Damage::kFlipRound);
    } else {
      InjectOne();
    }
    parts_.scheduler->Sleep(
        parts_.dice->Between(absl::Milliseconds(20), absl::Milliseconds(800)));
    if (parts_.dice->Chance(0.3)) Heal();
  }
  if (flip_rounds) parts_.scheduler->Sleep(kUntilLiesShow);
  Heal();
}

}  // namespace mpckdc::sim
