// SPDX-License-Identifier: Apache-2.0
// rotate-krbtgt: what it does when, and that each step may be the last one of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "absl/time/clock.h"
#include "mpc-server/testing/admin_run_fixture.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kTgt = "krbtgt/EXAMPLE.COM@EXAMPLE.COM";

class RotateTest : public RunTest {
 protected:
  void SetUp() override { Expect(0, {"randkey", "krbtgt/EXAMPLE.COM"}); }

  std::set<uint32_t> Versions(const std::string& principal = kTgt) {
    std::set<uint32_t> versions;
    for (const v1::KeyInfo& key : kdb_.principals[principal]) versions.insert(key.kvno());
    return versions;
  }
  // Every handle of the database is on the three servers and not deleted.
  void ExpectAllUsable() {
    for (const v1::KeyInfo& key : kdb_.principals[kTgt]) {
      for (auto& server : realm_.servers) {
        const auto held = server->committed();
        ASSERT_TRUE(held.contains(key.handle()));
        EXPECT_EQ(held.at(key.handle()).info().retired_us(), 0);
      }
    }
  }
  void Age(absl::Duration age) { kdb_.changed[kTgt] = absl::Now() - age; }
};

TEST_F(RotateTest, NextKeyThenTheEndOfTheOldOne) {
  Expect(0, {"rotate-krbtgt"},
         {"version 2 drawn by the servers", "versions 1, 2", "the old keys can go at"});
  EXPECT_THAT(Versions(), ElementsAre(1, 2));
  ExpectKeys(4);
  Expect(0, {"doctor"}, {"has versions 1, 2: when the old ones can go"});
  Expect(4, {"rotate-krbtgt", "--finish"}, {}, {"can be good until", "--force"});
  EXPECT_THAT(Versions(), ElementsAre(1, 2));
  Age(absl::Hours(25));
  Expect(0, {"rotate-krbtgt", "--finish"},
         {"version 1 aes256-gcm: named by no database, deleted", "version 2, the newest"});
  EXPECT_THAT(Versions(), ElementsAre(2));
  ExpectKeys(2);
  ExpectAllUsable();
  Expect(0, {"rotate-krbtgt", "--finish"}, {"version 2, the newest"});
}

TEST_F(RotateTest, ASecondTimeBeforeTheEndTakesForce) {
  Expect(0, {"rotate-krbtgt"});
  Expect(0, {"rotate-krbtgt"}, {"versions 1, 2"}, {"rotated already"});
  ExpectKeys(4);
  Expect(0, {"rotate-krbtgt", "--force"}, {"versions 1, 2, 3"});
  Expect(0, {"rotate-krbtgt", "--finish", "--force"}, {"version 3, the newest"});
  EXPECT_THAT(Versions(), ElementsAre(3));
  ExpectKeys(2);
}

// The servers' limit counts where the database has none, or a longer one.
TEST_F(RotateTest, TheDayOfTheEnd) {
  Expect(0, {"rotate-krbtgt"});
  const auto due = [&] {
    const json state = json::parse(Run({"rotate-krbtgt", "--status", "--json"}).out);
    return state["principals"][0]["due"].get<int64_t>() - absl::ToUnixSeconds(kdb_.changed[kTgt]);
  };
  EXPECT_EQ(due(), 24 * 3600 + 300);
  kdb_.longest = absl::Hours(24 * 30);
  EXPECT_EQ(due(), 7 * 24 * 3600 + 300);
  kdb_.longest = absl::ZeroDuration();
  EXPECT_EQ(due(), 7 * 24 * 3600 + 300);
  const auto say = [&](int party, absl::Duration life) {
    realm_.servers[party]->status().set_max_renewable_life_us(absl::ToInt64Microseconds(life));
  };
  say(2, absl::ZeroDuration());
  EXPECT_EQ(due(), 7 * 24 * 3600 + 300) << "one server's word ends no ticket";
  say(2, absl::Hours(24 * 3650));
  EXPECT_EQ(due(), 7 * 24 * 3600 + 300) << "nor keeps a key";
  say(1, absl::Hours(10));
  say(2, absl::Hours(10));
  EXPECT_EQ(due(), 10 * 3600 + 300);
}

TEST_F(RotateTest, ATimersRun) {
  const std::vector<std::string> timer = {"rotate-krbtgt", "--if-older", "30d"};
  Expect(0, timer, {"version 1, the newest", "the next key comes after"});
  EXPECT_THAT(Versions(), ElementsAre(1));
  Age(absl::Hours(24 * 31));
  Expect(0, timer, {"versions 1, 2"});
  Expect(0, timer, {"versions 1, 2"});
  EXPECT_THAT(Versions(), ElementsAre(1, 2));
  Age(absl::Hours(25));
  Expect(0, timer, {"version 2, the newest"});
  EXPECT_THAT(Versions(), ElementsAre(2));
  ExpectKeys(2);
}

// Each call that a run makes is its last; then the same command again, and it is as if nothing had
// happened. At no time the database names a key that the servers do not have.
TEST_F(RotateTest, EveryCallMayBeTheLast) {
  for (const char* method : {"ListKeys", "GetStatus", "DrawKey", "CommitKeys", "DeleteKeys"}) {
    for (int spared = 0; spared < 4; ++spared) {
      for (const auto when :
           {enroll::FakeAdminServer::When::kBefore, enroll::FakeAdminServer::When::kAfter}) {
        SCOPED_TRACE(testing::Message() << method << " " << spared);
        const std::set<uint32_t> before = Versions();
        realm_.servers[1]->FailCalls(method, when, grpc::StatusCode::UNAVAILABLE, 1000, spared);
        (void)Run({"rotate-krbtgt"});
        Age(absl::Hours(25));
        (void)Run({"rotate-krbtgt", "--finish"});
        ExpectAllUsable();
        realm_.servers[1]->set_fault(nullptr);
        // Killed between the servers and the database: nobody but a person knows that it was here.
        const Outcome again = Run({"rotate-krbtgt"});
        if (again.code != 0) {
          EXPECT_THAT(again.err, HasSubstr("at the primary, after a rotation that was killed: "
                                           "mpc-admin rotate-krbtgt --force"));
          Expect(0, {"rotate-krbtgt", "--force"});
        }
        Age(absl::Hours(25));
        Expect(0, {"rotate-krbtgt", "--finish"});
        EXPECT_EQ(Versions().size(), 1u);
        EXPECT_GT(*Versions().begin(), *before.begin());
        ExpectKeys(2);
        ExpectAllUsable();
      }
    }
  }
}

TEST_F(RotateTest, TheDatabaseFails) {
  kdb_.fail_set = absl::UnavailableError("ssh: no route");
  Expect(3, {"rotate-krbtgt"}, {}, {"no route"});
  ExpectKeys(2);
  kdb_.set_all_the_same = true;  // it was written, and the answer was lost
  Expect(0, {"rotate-krbtgt"}, {"versions 1, 2"});
  kdb_.fail_set = absl::OkStatus();
  Age(absl::Hours(25));
  kdb_.fail_purge = absl::UnavailableError("ssh: no route");
  Expect(3, {"rotate-krbtgt", "--finish"}, {}, {"no route"});
  EXPECT_THAT(Versions(), ElementsAre(1, 2));
  ExpectAllUsable();
  kdb_.fail_purge = absl::OkStatus();
  Expect(0, {"rotate-krbtgt", "--finish"}, {"version 2, the newest"});
}

// A run that was killed between the commit and the database left a key that is newer than the
// database's: another run may be about to name it, so it stays until the database is as new.
TEST_F(RotateTest, AKeyInTheMakingIsNotDeleted) {
  v1::SharePackage making = realm_.servers[0]->committed().begin()->second;
  making.mutable_info()->set_handle(std::string(16, 'm'));
  making.mutable_info()->set_kvno(2);
  for (auto& server : realm_.servers) server->Plant(making);
  Expect(0, {"rotate-krbtgt", "--if-older", "30d"});
  ExpectKeys(3);
  Expect(0, {"rotate-krbtgt", "--force"}, {"gcm: named by no database, deleted from the servers"});
  ExpectKeys(4);
  ExpectAllUsable();
}

// A replica's database, of before the primary's rotation. Another key drawn there would have the
// primary's taken for what a killed run left, and deleted.
TEST_F(RotateTest, OnAReplicaItIsRefused) {
  const FakeKdb replica = kdb_;
  Expect(0, {"rotate-krbtgt"});
  const FakeKdb primary = kdb_;
  kdb_ = replica;
  Expect(4, {"rotate-krbtgt"}, {},
         {"the servers hold version 2 of " + kTgt + ", and this database names none above 1",
          "rotate at the primary alone"});
  EXPECT_THAT(Versions(), ElementsAre(1));
  Age(absl::Hours(24 * 31));
  Expect(4, {"rotate-krbtgt", "--if-older", "30d"}, {}, {"rotate at the primary alone"});
  kdb_ = primary;
  ExpectAllUsable();
  ExpectKeys(4);
}

// ATTACK. One server says that the key which the primary has just drawn is an old one, and a replica's
// timer comes.
TEST_F(RotateTest, NoServerAloneMakesANewKeyOld) {
  const FakeKdb replica = kdb_;
  Expect(0, {"rotate-krbtgt"});
  const FakeKdb primary = kdb_;
  kdb_ = replica;
  for (auto [handle, package] : realm_.servers[0]->committed()) {
    package.mutable_info()->set_kvno(1);
    realm_.servers[0]->Plant(package);
  }
  Expect(0, {"rotate-krbtgt", "--if-older", "30d"});
  Age(absl::Hours(24 * 31));
  Expect(4, {"rotate-krbtgt", "--if-older", "30d"}, {}, {"the servers hold version 2"});
  kdb_ = primary;
  ExpectAllUsable();
}

// A bad night: this machine's clock leaps, and a timer's run ends tickets that are good for another day.
TEST_F(RotateTest, ByAClockThatLeapedNothingIsDue) {
  const auto servers_say = [&](int party, absl::Duration ago) {
    realm_.servers[party]->status().set_time_us(absl::ToUnixMicros(absl::Now() - ago));
  };
  const absl::Duration leap = absl::Hours(24 * 40);
  Expect(0, {"rotate-krbtgt"}, {"versions 1, 2"});
  Age(leap);  // that was a moment ago
  servers_say(0, leap);
  servers_say(1, absl::ZeroDuration());  // one that lies, or has leaped as far
  servers_say(2, leap);
  for (const char* how : {"--finish", "--if-older"}) {
    std::vector<std::string> arguments = {"rotate-krbtgt", how};
    if (how == std::string("--if-older")) arguments.push_back("30d");
    Expect(4, arguments, {}, {"this machine's clock differs from the servers' by 960h"});
    EXPECT_THAT(Versions(), ElementsAre(1, 2)) << how;
  }
  servers_say(0, absl::ZeroDuration());  // one server's clock is wrong, or it lies: two are right
  Expect(0, {"rotate-krbtgt", "--finish"}, {"version 2"});
  servers_say(1, leap);
  Expect(0, {"rotate-krbtgt", "--force"}, {"versions 2, 3"});
  Expect(0, {"rotate-krbtgt", "--finish", "--force"}, {"version 3"});
}

// ATTACK. One server lists a key that nobody else has, newer than the database's, or says so of one that
// all have: a timer would rotate no more.
TEST_F(RotateTest, NoServerAloneStopsTheRotation) {
  v1::KeyInfo invented = realm_.servers[1]->committed().begin()->second.info();
  v1::SharePackage raised = realm_.servers[2]->committed().begin()->second;
  invented.set_handle(std::string(16, 'x'));
  invented.set_kvno(7);
  realm_.servers[1]->AlsoList(invented);
  Age(absl::Hours(24 * 31));
  Expect(0, {"rotate-krbtgt", "--if-older", "30d"}, {"versions 1, 2"});
  raised.mutable_info()->set_kvno(9);
  realm_.servers[1]->Plant(raised);
  kdb_.changed[kTgt] = absl::Now() - absl::Hours(24 * 31);
  Expect(0, {"rotate-krbtgt", "--finish"}, {"version 2"});
  Age(absl::Hours(24 * 31));
  Expect(0, {"rotate-krbtgt", "--if-older", "30d"}, {"versions 2, 3"});
}

TEST_F(RotateTest, KadminLikewiseOthersNot) {
  Enroll(0, "kadmin/admin");
  Enroll(0, "kadmin/changepw");
  Expect(0, {"rotate-krbtgt", "--kadmin"},
         {"kadmin/admin@EXAMPLE.COM: versions 1, 2", "kadmin/changepw@EXAMPLE.COM: versions 1, 2"});
  EXPECT_THAT(Versions("kadmin/admin@EXAMPLE.COM"), ElementsAre(1, 2));
  EXPECT_THAT(Versions(), ElementsAre(1));
  Expect(0, {"rotate-krbtgt", "kadmin/admin", "--finish", "--force"});
  EXPECT_THAT(Versions("kadmin/admin@EXAMPLE.COM"), ElementsAre(2));
  Enroll(0, "alice");
  Expect(2, {"rotate-krbtgt", "alice"}, {}, {"neither krbtgt", "mpc-admin randkey alice"});
  Expect(2, {"rotate-krbtgt", "krbtgt/OTHER.ORG"}, {},
         {"cannot be given to the other realm", "rotate-krbtgt.md"});
  Expect(4, {"rotate-krbtgt", "kadmin/unknown"}, {}, {"no principal"});
  Expect(2, {"rotate-krbtgt", "--kadmin", "kadmin/admin"});
  Expect(2, {"rotate-krbtgt", "--finish", "--status"});
  Expect(2, {"rotate-krbtgt", "--if-older", "soon"}, {}, {"--if-older: wants"});
  std::erase_if(kdb_.principals["kadmin/changepw@EXAMPLE.COM"],
                [](const auto& key) { return key.kvno() > 1; });
  Expect(4, {"rotate-krbtgt", "kadmin/changepw"}, {},
         {"mpc-admin rotate-krbtgt --force kadmin/changepw@EXAMPLE.COM"});
}

}  // namespace
}  // namespace mpckdc::admin
