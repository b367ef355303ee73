// SPDX-License-Identifier: Apache-2.0
// What an administrator hears whose servers lost their disks, whichever command comes first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mpc-server/testing/admin_run_fixture.h"

namespace mpckdc::admin {
namespace {

using testing::HasSubstr;
using testing::Not;

class LostDiskTest : public RunTest {
 protected:
  void SetUp() override {
    Enroll(0, "alice");
    for (auto& server : realm_.servers) server->status().set_epoch(42);
  }
  // The server begins anew with nothing.
  void Lose(int party) {
    realm_.servers[party]->Clear();
    v1::StatusReply& status = realm_.servers[party]->status();
    status.set_initialised(false);
    status.set_peers_connected(false);
    status.set_epoch(1);
  }
  int InitRealmCalls() {
    int calls = 0;
    for (auto& server : realm_.servers) calls += server->calls("InitRealm");
    return calls;
  }
};

TEST_F(LostDiskTest, EveryCommandSaysThatTheStoreIsEmpty) {
  Lose(1);
  const std::string what =
      "the store of party 1 is empty, while parties 0 and 2 have 2 keys of the realm in share "
      "epoch 42";
  for (const char* command : {"init-realm", "list", "refresh", "rotate-krbtgt"}) {
    const Outcome outcome = Expect(4, {command}, {}, {what, "mpc-admin replace-party 1"});
    EXPECT_THAT(outcome.err, Not(HasSubstr("run mpc-admin init-realm"))) << command;
    EXPECT_THAT(outcome.err, Not(HasSubstr("configuration with mpc-admin's"))) << command;
  }
  EXPECT_EQ(InitRealmCalls(), 0) << "a realm would be made that stands in replace-party's way";
  const Outcome doctor =
      Expect(1, {"doctor"}, {"has no realm yet", "mpc-admin replace-party 1", "epochs.md"});
  EXPECT_THAT(doctor.out, Not(HasSubstr("new keys")));
  EXPECT_THAT(doctor.out, Not(HasSubstr("differ: cluster")));
}

TEST_F(LostDiskTest, OfTwoLostDisksOneComesFromItsBackup) {
  Lose(0);
  Lose(2);
  const std::vector<std::string> way_out = {
      "restore one of the two from its backup of share epoch 42",
      "the keys are gone, by design: make a new realm"};
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"replace-party", "2"}, {"init-realm"}, {"verify"}}) {
    Expect(4, line, {}, {"the stores of parties 0 and 2 are empty"});
    Expect(4, line, {}, way_out);
  }
  const Outcome doctor = Expect(1, {"doctor"}, way_out);
  EXPECT_THAT(doctor.out, Not(HasSubstr("from the two others")));
  EXPECT_THAT(doctor.out, Not(HasSubstr("mpc-admin init-realm")));
}

// The two others may be quarantined, and are rebuilt from only when they are not.
TEST_F(LostDiskTest, ReadmitGoesOnBesideAnEmptyStore) {
  Lose(1);
  realm_.servers[2]->status().mutable_quarantine()->set_text("a tag was wrong");
  Expect(0, {"readmit"}, {"party 2 ended its quarantine"});
}

// init-realm that was interrupted in a new realm, where nothing can be lost.
TEST_F(RunTest, ARealmThatIsHalfMadeIsMade) {
  realm_.servers[1]->status().set_initialised(false);
  Expect(4, {"list"}, {}, {"has no realm yet: run mpc-admin init-realm"});
  Expect(1, {"doctor"}, {"has no realm yet", "next: mpc-admin init-realm"});
  const Outcome made =
      Expect(0, {"init-realm"}, {"the three servers are ready, some were already"});
  EXPECT_THAT(made.out, Not(HasSubstr("kdb5_util create")));
  Expect(0, {"list"});
}

}  // namespace
}  // namespace mpckdc::admin
