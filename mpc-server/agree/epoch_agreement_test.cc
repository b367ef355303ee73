// SPDX-License-Identifier: Apache-2.0
//
// Whatever the three claim, they choose steps that lead to one epoch, or stop.
#include "mpc-server/agree/epoch_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "mpc-server/base/random_source.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

RefreshId Id(uint8_t n) { return RefreshId{n}; }
EpochClaim At(uint64_t epoch, uint8_t began) {
  EpochClaim claim;
  claim.epoch = epoch;
  claim.began_by = Id(began);
  return claim;
}
EpochClaim Empty() {
  EpochClaim claim;
  claim.empty = true;
  return claim;
}
EpochClaim Replaces(EpochClaim claim, int party) {
  claim.replace = static_cast<uint8_t>(party + 1);
  return claim;
}
EpochClaim Busy(EpochClaim claim) {
  claim.busy = true;
  return claim;
}
EpochClaim Prepared(EpochClaim claim, uint8_t n) {
  claim.prepared = Id(n);
  return claim;
}
EpochClaim Wants(EpochClaim claim) {
  claim.refresh = true;
  return claim;
}

void ExpectSteps(const std::array<EpochClaim, 3>& claims, const std::array<EpochStep, 3>& steps) {
  for (int p = 0; p < 3; ++p) {
    const auto chosen = ChooseEpochStep(claims, p, 0);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(*chosen, steps[p]) << p;
  }
}
void ExpectStop(const std::array<EpochClaim, 3>& claims, const std::string& text) {
  for (int p = 0; p < 3; ++p) {
    absl::Status stopped = ChooseEpochStep(claims, p, 0).status();
    if (stopped.ok()) stopped = CheckSettled(claims);
    EXPECT_THAT(stopped.ToString(), HasSubstr(text));
  }
}

using Step = EpochStep;

TEST(EpochAgreementTest, ARefreshTakesAllThree) {
  ExpectSteps({Wants(At(3, 1)), Wants(At(3, 1)), Wants(At(3, 1))},
              {Step::kRefresh, Step::kRefresh, Step::kRefresh});
  ExpectSteps({Wants(At(3, 1)), At(3, 1), Wants(At(3, 1))},
              {Step::kStay, Step::kStay, Step::kStay});
  ExpectSteps({Prepared(At(3, 1), 7), At(3, 1), At(3, 1)}, {Step::kStay, Step::kStay, Step::kStay});
}

TEST(EpochAgreementTest, WhoWasCutOffCatchesUp) {
  ExpectSteps({At(4, 7), Prepared(At(3, 1), 7), At(4, 7)},
              {Step::kWait, Step::kCatchUp, Step::kWait});
  ExpectSteps({Prepared(At(3, 1), 7), Prepared(At(3, 1), 7), At(4, 7)},
              {Step::kCatchUp, Step::kCatchUp, Step::kWait});
  // Even where all wish for another one: first things first.
  ExpectSteps({Wants(At(4, 7)), Wants(Prepared(At(3, 1), 7)), Wants(At(4, 7))},
              {Step::kWait, Step::kCatchUp, Step::kWait});
}

TEST(EpochAgreementTest, AnOldStoreStopsAllAndIsNamed) {
  ExpectStop({At(4, 7), At(3, 1), At(4, 7)},
             "server 1 is in share epoch 3, server 2 is in share epoch 4");
  ExpectStop({At(4, 7), Prepared(At(3, 1), 6), At(4, 7)}, "put back from a backup");
  ExpectStop({At(4, 7), Prepared(At(2, 1), 7), At(4, 7)}, "must be replaced");
  ExpectStop({At(4, 7), At(4, 6), At(4, 7)}, "by different refreshes");
}

TEST(EpochAgreementTest, ANewcomerJoinsIfAllThreeSaySo) {
  const EpochClaim old = Replaces(At(4, 7), 1);
  ExpectSteps({old, Replaces(Empty(), 1), old}, {Step::kReplace, Step::kReplace, Step::kReplace});
  EXPECT_EQ(Receiver({old, Replaces(Empty(), 1), old}), 1);
  ExpectStop({old, Empty(), old}, "run mpc-admin replace-party 1");
  ExpectStop({Replaces(At(4, 7), 2), Replaces(Empty(), 1), old}, "run mpc-admin replace-party 1");
  ExpectStop({Busy(old), Replaces(Empty(), 1), old}, "run mpc-admin replace-party 1");
  ExpectStop({old, Replaces(At(3, 1), 1), old}, "put back from a backup");
}

// In the first epoch too: whether it lost its keys or was never initialised, nobody logs in beside it.
TEST(EpochAgreementTest, AnEmptyStoreIsNotReadyBesideTheOthers) {
  ExpectStop({At(1, 0), Empty(), At(1, 0)}, "if data is lost run mpc-admin replace-party 1");
  ExpectStop({At(1, 0), Empty(), At(1, 0)}, "if it is being made run mpc-admin init-realm again");
  ExpectStop({Empty(), At(1, 0), Empty()}, "the store of server 0 and server 2 is empty");
  EXPECT_TRUE(CheckSettled({Empty(), Empty(), Empty()}).ok()) << "before init-realm";
  EXPECT_TRUE(CheckSettled({At(1, 0), At(1, 0), At(1, 0)}).ok());
  const EpochClaim old = Replaces(At(1, 0), 1);
  EXPECT_TRUE(CheckSettled({old, Replaces(Empty(), 1), old}).ok());
  EpochClaim receiving = At(2, 7);
  receiving.empty = receiving.receiving = true;
  EXPECT_TRUE(CheckSettled({At(2, 7), receiving, At(2, 7)}).ok());
  EXPECT_EQ(Receiver({At(1, 0), Empty(), At(1, 0)}), std::nullopt);
}

TEST(EpochAgreementTest, ANewcomerThatWasCutOffCatchesUp) {
  ExpectSteps({At(5, 8), Prepared(Empty(), 8), Prepared(At(4, 7), 8)},
              {Step::kWait, Step::kCatchUp, Step::kCatchUp});
  EXPECT_EQ(Receiver({At(5, 8), Prepared(Empty(), 8), Prepared(At(4, 7), 8)}), 1);
  ExpectStop({Prepared(At(4, 7), 8), Prepared(Empty(), 8), Prepared(At(4, 7), 8)},
             "run mpc-admin replace-party 1");
}

// Three stores under random crashes between the steps of random refreshes: they are never led to
// where two of them can not come together again, and each refresh that one entered all enter.
TEST(EpochAgreementTest, NoCutDividesThem) {
  SeededRandomForTest random(20);
  const auto below = [&](uint8_t n) {
    uint8_t byte = 0;
    random.Fill(absl::MakeSpan(&byte, 1));
    return byte % n;
  };
  uint64_t refreshes = 0, caught_up = 0;
  const auto At = [](uint64_t epoch, const RefreshId& by) {
    EpochState state;
    state.epoch = epoch;
    state.began_by = by;
    return state;
  };
  std::array<EpochState, 3> stores;
  for (uint32_t session = 1; session < 20000; ++session) {
    const bool agreed = below(2) == 0;
    std::array<EpochClaim, 3> claims;
    for (int p = 0; p < 3; ++p) claims[p] = ClaimOf(stores[p], agreed || below(4) == 0);
    RefreshId id{};
    memcpy(id.data(), &session, sizeof session);
    std::array<EpochStep, 3> steps;
    for (int p = 0; p < 3; ++p) {
      const auto chosen = ChooseEpochStep(claims, p, 0);
      ASSERT_TRUE(chosen.ok()) << chosen.status();
      steps[p] = *chosen;
    }
    // Each gets so far and no further; nobody is ahead of what the others have told it.
    std::array<bool, 3> prepared{};
    for (int p = 0; p < 3; ++p) {
      if (below(5) == 0) continue;  // cut off before it does anything
      if (steps[p] == Step::kStay) stores[p].prepared.reset();
      if (steps[p] == Step::kRefresh) stores[p].prepared = id;
      prepared[p] = steps[p] == Step::kRefresh;
      if (steps[p] != Step::kCatchUp) continue;
      stores[p] = At(stores[p].epoch + 1, *stores[p].prepared);
      ++caught_up;
    }
    if (!(prepared[0] && prepared[1] && prepared[2])) continue;
    for (int p = 0; p < 3; ++p) {
      if (below(3) == 0) continue;  // what the others told it was lost
      stores[p] = At(stores[p].epoch + 1, id);
      ++refreshes;
    }
  }
  EXPECT_GT(refreshes, 1000u);
  EXPECT_GT(caught_up, 1000u);
}

// Who is behind follows in the triple whose turn it is; in another one after a while, when that one
// has taken the turn.
TEST(EpochAgreementTest, AnotherTripleTakesOverWhereTheFirstDoesNotCome) {
  std::array<EpochClaim, 3> claims = {At(4, 7), Prepared(At(3, 1), 7), At(4, 7)};
  for (int p = 0; p < 3; ++p) {
    EXPECT_TRUE(absl::IsUnavailable(ChooseEpochStep(claims, p, 1).status()));
  }
  claims[0].insists = true;
  for (int p = 0; p < 3; ++p) EXPECT_EQ(*ChooseEpochStep(claims, p, 1), Step::kTakeOver);
  for (EpochClaim& claim : claims) claim.steward = 1;
  EXPECT_EQ(*ChooseEpochStep(claims, 1, 1), Step::kCatchUp);
  EXPECT_FALSE(ChooseEpochStep(claims, 1, 0).ok() &&
               *ChooseEpochStep(claims, 1, 0) == Step::kCatchUp);
}

// One entered, one has prepared the same, and the third lost its store at that moment: two servers
// have all there is, and the third is to be replaced.
TEST(EpochAgreementTest, WhoLosesItsStoreAmidARefreshCanBeReplaced) {
  for (int ahead = 0; ahead < 3; ++ahead) {
    for (const int lost : {(ahead + 1) % 3, (ahead + 2) % 3}) {
      std::array<EpochClaim, 3> claims;
      claims.fill(Prepared(At(3, 1), 7));
      claims[ahead] = At(4, 7);
      claims[lost] = Empty();
      for (EpochClaim& claim : claims) claim = Replaces(claim, lost);
      const auto step = ChooseEpochStep(claims, 3 - ahead - lost, 0);
      EXPECT_TRUE(step.ok()) << step.status();
    }
  }
}

}  // namespace
}  // namespace mpckdc
