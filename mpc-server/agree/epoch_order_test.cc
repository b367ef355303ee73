// SPDX-License-Identifier: Apache-2.0
//
// Two triples change the epoch of the same stores, one party lies to each of them in its own way
// and cuts any line at any moment: the two honest parties' stores must still come to one epoch. The
// stores and the choice of steps are the production's; who is where in which session is drawn here.
//
//     a machine    idle --claims--> in a session, all claims heard --writes--> ... --cut--> idle
//
// The two honest machines of a triple are in one session or in none: whoever ends one first waits
// for the other, as it connects to it.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "mpc-server/agree/epoch_agreement.h"
#include "mpc-server/testing/memory_share_store.h"

namespace mpckdc {
namespace {

constexpr int kTriples = 2, kHonest = 2, kLiar = 2;

struct Machine {
  std::unique_ptr<MemoryShareStore> store;
  std::optional<EpochClaim> claim;  // of the session that opens
  bool idle = true;
  bool prepared = false;  // in this session, and told to the two others
};

struct Triple {
  std::array<Machine, kHonest> machines;
  std::array<EpochClaim, 3> claims;
  RefreshId session{};
};

// The stores, and what their owners do with them.
class Parties {
 public:
  explicit Parties(uint64_t seed) : random_(seed) {
    for (int p = 0; p < kHonest; ++p) {
      const auto engine = std::make_shared<MemoryEngine>();
      for (int t = 0; t < kTriples; ++t) {
        triples_[t].machines[p].store =
            std::make_unique<MemoryShareStore>(engine, StoreIdentity{"EXAMPLE.COM", p, 7}, t);
      }
    }
  }

  uint32_t Below(uint32_t n) {
    std::array<uint8_t, 4> bytes;
    random_.Fill(absl::MakeSpan(bytes));
    uint32_t number = 0;
    memcpy(&number, bytes.data(), sizeof number);
    return number % n;
  }

  // One machine of one honest party goes a step on, or is cut off.
  void Step() {
    Triple& triple = triples_[Below(kTriples)];
    const int p = static_cast<int>(Below(kHonest));
    Machine& machine = triple.machines[p];
    if (Below(12) == 0) return End(triple, p);
    if (Below(20) == 0) return Cut(triple, p);
    if (machine.idle) return Claim(triple, p);
    if (!machine.claim.has_value()) Take(triple, p);
  }

  // Nothing is left of the liar but a party that follows whoever is ahead.
  bool CanComeTogether() {
    std::array<EpochState, kHonest> states;
    for (int p = 0; p < kHonest; ++p) {
      MemoryShareStore& store = *triples_[0].machines[p].store;
      EXPECT_TRUE(store.ReloadEpoch().ok());
      states[p] = store.Epoch();
    }
    const int behind = states[0].epoch < states[1].epoch ? 0 : 1;
    const EpochState &old = states[behind], &fresh = states[1 - behind];
    entered_ = std::max(entered_, fresh.epoch);
    if (old.epoch == fresh.epoch) return old.began_by == fresh.began_by;
    return old.epoch + 1 == fresh.epoch && old.prepared == fresh.began_by;
  }

  uint64_t entered() const { return entered_; }
  const std::string& log() const { return log_; }

 private:
  void Note(int t, int p, const std::string& what) {
    absl::StrAppend(&log_, "triple ", t, ", P", p, ": ", what, "\n");
    if (log_.size() > 3000) log_.erase(0, 1000);
  }
  int NumberOf(const Triple& triple) { return &triple == &triples_[1] ? 1 : 0; }

  void Cut(Triple& triple, int p) {
    Machine& machine = triple.machines[p];
    machine.claim.reset();
    machine.idle = true;
    machine.prepared = false;
  }

  // A machine writes the last refresh's records, when both have its key.
  void End(Triple& triple, int p) {
    for (Triple& each : triples_) {
      if (!each.machines[p].store->NoteFellow(absl::Now()).ok()) return;
    }
    (void)triple.machines[p].store->Look();
    (void)triple.machines[p].store->EndRefresh();
  }

  // Both honest machines are out of the session before.
  void Claim(Triple& triple, int p) {
    Machine& machine = triple.machines[p];
    Machine& other = triple.machines[1 - p];
    if (machine.claim.has_value() || !other.idle) return;
    if (!machine.store->ReloadEpoch().ok()) return;
    machine.claim = ClaimOf(machine.store->Epoch(), Below(2) == 0);
    triple.claims[p] = *machine.claim;
    Note(NumberOf(triple), p, absl::StrCat("claims epoch ", machine.claim->epoch));
    if (!other.claim.has_value()) return;
    triple.claims[kLiar] = Lie(triple);
    triple.session = {};
    ++sessions_;
    memcpy(triple.session.data(), &sessions_, sizeof sessions_);
    for (Machine& each : triple.machines) {
      each.claim.reset();
      each.idle = each.prepared = false;
    }
  }

  EpochClaim Lie(const Triple& triple) {
    EpochClaim lie = triple.claims[Below(kHonest)];
    lie.refresh = Below(4) != 0;
    lie.insists = Below(2) == 0;
    lie.steward = static_cast<uint8_t>(Below(3) == 0 ? Below(kTriples) : lie.steward);
    if (lie.prepared.has_value() && Below(2) == 0) {
      ++lie.epoch;
      lie.began_by = *lie.prepared;
    }
    if (Below(2) == 0) lie.prepared.reset();
    return lie;
  }

  void Take(Triple& triple, int p) {
    Machine& machine = triple.machines[p];
    MemoryShareStore& store = *machine.store;
    const int t = NumberOf(triple);
    if (machine.prepared) {
      if (!triple.machines[1 - p].prepared) return;
      Note(t, p, absl::StrCat("enters: ", store.EnterEpoch(absl::Now()).ToString()));
      return Leave(triple, p);
    }
    const absl::StatusOr<EpochStep> step = ChooseEpochStep(triple.claims, p, t);
    if (!step.ok()) return Leave(triple, p);
    RefreshSeed seed;
    absl::Status done;
    switch (*step) {
      case EpochStep::kRefresh:
        done = store.PrepareEpoch(triple.session, seed);
        machine.prepared = done.ok();
        Note(t, p, absl::StrCat("prepares: ", done.ToString()));
        if (done.ok()) return;
        break;
      case EpochStep::kStay:
        Note(t, p, absl::StrCat("forgets: ", store.AbandonEpoch().ToString()));
        break;
      case EpochStep::kCatchUp:
        Note(t, p, absl::StrCat("follows: ", store.EnterEpoch(absl::Now()).ToString()));
        break;
      case EpochStep::kTakeOver:
        Note(t, p, absl::StrCat("takes over: ", store.TakeOver().ToString()));
        break;
      default:
        break;
    }
    Leave(triple, p);
  }

  // Its own session is over; what it prepared in it the other one may still hear.
  void Leave(Triple& triple, int p) {
    triple.machines[p].idle = true;
    if (triple.machines[1 - p].idle) {
      for (Machine& machine : triple.machines) machine.prepared = false;
    }
  }

  SeededRandomForTest random_;
  std::array<Triple, kTriples> triples_;
  uint32_t sessions_ = 0;
  uint64_t entered_ = 1;
  std::string log_;
};

TEST(EpochOrderTest, NoLieToTwoTriplesDividesTheHonest) {
  uint64_t entered = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Parties parties(seed);
    for (int step = 0; step < 3000; ++step) {
      parties.Step();
      ASSERT_TRUE(parties.CanComeTogether()) << "seed " << seed << "\n" << parties.log();
    }
    entered += parties.entered() - 1;
  }
  EXPECT_GT(entered, 400u);
}

}  // namespace
}  // namespace mpckdc
