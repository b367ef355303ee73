// SPDX-License-Identifier: Apache-2.0
// Realms with two triples: which of them a command works with, and what status and doctor say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "mpc-server/testing/admin_run_fixture.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class TriplesTest : public RunTest {
 protected:
  TriplesTest() { AddTriple(); }

  enroll::FakeAdminServer& Machine(int triple, int party) {
    return triple == 0 ? *realm_.servers[party] : *second_->servers[party];
  }
  v1::StatusReply& StatusOf(int triple, int party) { return Machine(triple, party).status(); }
  size_t KeysOfSecond() { return second_->servers[0]->in_use(); }
};

TEST_F(TriplesTest, CommandsTakeTheFirstTripleThatIsReady) {
  Enroll(0, "alice");
  EXPECT_EQ(Keys(0), 2u);
  EXPECT_EQ(KeysOfSecond(), 0u);
  // All three answer, but one is alone: the keys could not be verified there.
  StatusOf(0, 1).set_peers_connected(false);
  Enroll(0, "bob");
  EXPECT_EQ(Keys(0), 2u);
  EXPECT_EQ(KeysOfSecond(), 2u);
  StatusOf(0, 1).set_peers_connected(true);
  Machine(0, 2).Stop();
  Enroll(0, "carol");
  EXPECT_EQ(KeysOfSecond(), 4u);
}

TEST_F(TriplesTest, WithoutOneThatIsReadyTheOneThatAnswers) {
  StatusOf(0, 1).set_peers_connected(false);
  Machine(1, 0).Stop();
  Enroll(0, "alice");
  EXPECT_EQ(Keys(0), 2u);
}

TEST_F(TriplesTest, WithoutAnyTheErrorNamesTheMachines) {
  const std::string first = Machine(0, 2).address(), second = Machine(1, 1).address();
  Machine(0, 2).Stop();
  Machine(1, 1).Stop();
  Expect(3, {"verify"}, {},
         {"of no triple do all three machines answer", first, second, "mpc-admin status asks all"});
}

TEST_F(TriplesTest, ATripleThatIsWrongIsNotPassedOver) {
  StatusOf(0, 1).set_triple(1);
  Expect(4, {"list"}, {}, {"of triple 0", "of triple 1", Machine(0, 1).address()});
}

TEST_F(TriplesTest, RealmsAreInitialisedAndServersReadmittedAtAll) {
  StatusOf(1, 2).set_initialised(false);
  Expect(0, {"init-realm"});
  EXPECT_TRUE(StatusOf(1, 2).initialised());
  StatusOf(1, 0).mutable_quarantine()->add_suspects(2);
  const json ended = json::parse(Expect(0, {"readmit", "--json"}).out);
  ASSERT_EQ(ended["readmitted"].size(), 1u);
  EXPECT_EQ(ended["readmitted"][0]["triple"], 1);
  EXPECT_FALSE(StatusOf(1, 0).has_quarantine());
}

TEST_F(TriplesTest, StatusShowsMachinesTriplesAndDatabases) {
  const Outcome good = Expect(0, {"status"}, {"TRIPLE  P0", "healthy", "db1:5432/mpckdc"});
  EXPECT_THAT(good.err, Not(HasSubstr("next:")));
  const json status = json::parse(Expect(0, {"status", "--json"}).out);
  ASSERT_EQ(status["servers"].size(), 6u);
  ASSERT_EQ(status["triples"].size(), 2u);
  EXPECT_EQ(status["triples"][1]["triple"], 1);
  EXPECT_EQ(status["triples"][1]["healthy"], true);
  EXPECT_EQ(status["servers"][4]["triple"], 1);
  EXPECT_EQ(status["servers"][4]["database"]["commit_us"], 1200);
  const std::string dead = Machine(1, 2).address();
  Machine(1, 2).Stop();
  for (int party = 0; party < 2; ++party) StatusOf(1, party).set_peers_connected(false);
  Expect(3, {"status"}, {"server " + dead + " does not answer"});
  const json one_down = json::parse(Expect(3, {"status", "--json"}).out);
  EXPECT_EQ(one_down["triples"][0]["healthy"], true);
  EXPECT_EQ(one_down["triples"][1]["healthy"], false);
  EXPECT_EQ(one_down["triples"][1]["why"], "server " + dead + " does not answer");
}

TEST_F(TriplesTest, AMachineWithoutItsDatabaseSaysSo) {
  v1::DatabaseStatus& database = *StatusOf(1, 0).mutable_database();
  database.set_reachable(false);
  database.set_trouble("the database cannot be reached:\nlook whether it runs");
  const std::string address = Machine(1, 0).address();
  Expect(1, {"status"}, {"NO DATABASE", "server " + address + " does not reach its database"},
         {"server " + address + ": the database cannot be reached:\\x0alook whether it runs"});
  Expect(1, {"doctor"},
         {"BAD      party 0 (" + address + "): the database cannot be reached",
          "deploy/postgresql.md", "triple 1 answers no jobs", "triple 0 is healthy"});
}

TEST_F(TriplesTest, DoctorComparesAPartysMachines) {
  const Outcome good =
      Expect(0, {"doctor"},
             {"the machines of each party agree", "commits in 1.20 ms", "triple 1 is healthy"});
  const v1::StatusReply before = StatusOf(1, 1);
  const auto finds = [&](const std::vector<std::string>& texts) {
    Expect(1, {"doctor"}, texts);
    StatusOf(1, 1) = before;
  };
  const std::string both = "BAD      party 1: servers ";
  StatusOf(1, 1).set_clock_skew_us(7'000'000);
  finds({both, "differ in [policy] clock_skew: 0 / 7s", "next: the machines of a party have one"});
  StatusOf(1, 1).mutable_database()->set_system(77);
  finds({both, "differ in database (the cluster's identifier): 41 / 77"});
  StatusOf(1, 1).clear_database();
  finds({both, "differ in [store] backend: postgresql / a file of its own"});
  StatusOf(1, 1).set_package_key(std::string(32, 'k'));
  finds({both, "do not share one store"});
  StatusOf(1, 1).set_refresh_waits("the key of epoch 0 is kept for the machines of triples 2");
  Expect(0, {"doctor"},
         {"warning  party 1", "kept for the machines of triples 2", "at most 12 hours"});
  Expect(0, {"status"}, {}, {"kept for the machines of triples 2"});
  StatusOf(1, 1) = before;
  StatusOf(1, 1).set_epoch(5);
  finds({both, "are in share epochs 1 and 5"});
  // A refresh begins at one triple a moment before the other.
  StatusOf(1, 1).set_epoch(2);
  StatusOf(1, 1).set_refreshing(true);
  EXPECT_THAT(Run({"doctor"}).out, Not(HasSubstr(both)));
  StatusOf(1, 1) = before;
  for (int party = 0; party < 3; ++party) StatusOf(1, party).set_triple(0);
  Expect(1, {"doctor"}, {"both have triple = 0: give each of them a number of its own"});
  Expect(1, {"status"}, {}, {"both have triple = 0"});
}

TEST_F(TriplesTest, MachinesInTheWrongLineAreAFinding) {
  StatusOf(0, 1).set_triple(1);
  StatusOf(1, 1).set_triple(0);
  Expect(1, {"status"}, {"are of triples 0 and 1"});
  Expect(1, {"doctor"}, {"next: name the machines of one triple side by side"});
}

// Its machines look which epoch the party is in when they meet their peers again.
TEST_F(TriplesTest, AMachineWithoutPeersIsNotBlamedForItsEpoch) {
  Machine(1, 0).Stop();
  for (int party = 0; party < 3; ++party) StatusOf(0, party).set_epoch(5);
  for (int party = 1; party < 3; ++party) StatusOf(1, party).set_peers_connected(false);
  EXPECT_THAT(Run({"doctor"}).out, Not(HasSubstr("are in share epochs")));
}

// Nobody should wait a minute for what may not begin for hours.
TEST_F(TriplesTest, NothingBeginsWhileAnOldKeyIsKept) {
  StatusOf(0, 1).set_refreshing(true);
  StatusOf(0, 1).set_refresh_waits("the key of epoch 0 is kept for the machines of triples 1");
  Expect(4, {"refresh"}, {}, {"kept for the machines of triples 1", "next: start those machines"});
  StatusOf(0, 2).set_initialised(false);
  StatusOf(0, 2).set_keys(0);
  Expect(4, {"replace-party", "2"}, {},
         {"party 1: the last refresh has not ended", "next: start those machines"});
}

// Keys are compared with the database although a machine of the other triple is down.
TEST_F(TriplesTest, DoctorGoesOnWithTheTripleThatIsThere) {
  Enroll(0, "alice");
  Machine(1, 0).Stop();
  Expect(1, {"doctor"}, {"start mpc-server on", "every handle of the KDC leads to a key"});
}

}  // namespace
}  // namespace mpckdc::admin
