// SPDX-License-Identifier: Apache-2.0
//
// ATTACK. One server says for ever that there is more: a list, a collection, a refresh, a catch-up.
// Who waits for it finds nothing out about the two others, and a timer never runs again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/testing/admin_run_fixture.h"

namespace mpckdc::admin {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

enum class Lie { kNone, kEmptyPages, kOneKeyEach, kFullPages, kTheSamePage };

class Endless final : public enroll::FakeAdminServer {
 public:
  using FakeAdminServer::FakeAdminServer;

  Status ListKeys(Context* context, const v1::ListKeysRequest* request,
                  grpc::ServerWriter<v1::ListKeysReply>* writer) override {
    if (list_ == Lie::kNone || request->staged()) {
      return FakeAdminServer::ListKeys(context, request, writer);
    }
    v1::ListKeysReply reply;
    const size_t count = list_ == Lie::kEmptyPages  ? 0
                         : list_ == Lie::kOneKeyEach ? 1
                                                     : limits::kMaxListKeysPerCall;
    for (size_t i = 0; i < count; ++i) {
      const std::string handle = absl::StrCat(absl::Dec(++listed_, absl::kZeroPad16));
      *reply.add_keys() = KeyOf("alice@EXAMPLE.COM", 1, kEnctypeAes256Gcm, handle);
    }
    reply.set_next(list_ == Lie::kTheSamePage
                       ? std::string(16, '0')
                       : std::string(absl::StrCat(absl::Dec(++listed_, absl::kZeroPad16))));
    writer->Write(reply);
    return Status::OK;
  }
  Status CollectKeys(Context* context, const v1::CollectKeysRequest* request,
                     v1::CollectKeysReply* reply) override {
    if (collects_ == 0) return FakeAdminServer::CollectKeys(context, request, reply);
    reply->set_collected(static_cast<uint32_t>(collects_));
    reply->set_more(true);
    return Status::OK;
  }
  Status GetStatus(Context* context, const v1::StatusRequest* request,
                   v1::StatusReply* reply) override {
    const Status s = FakeAdminServer::GetStatus(context, request, reply);
    if (absl::Now() < writes_until_) reply->set_refreshing(true);
    return s;
  }
  Status Refresh(Context*, const v1::RefreshRequest*, v1::RefreshReply*) override {
    return Status::OK;
  }
  Status CatchUp(Context*, const v1::CatchUpRequest*, v1::CatchUpReply*) override {
    return Status::OK;
  }

  Lie list_ = Lie::kNone;
  size_t collects_ = 0;
  absl::Time writes_until_ = absl::InfinitePast();

 private:
  uint64_t listed_ = 0;
};

class EndlessTest : public RunTest {
 protected:
  EndlessTest() {
    for (uint32_t party = 0; party < 3; ++party) {
      auto server = std::make_unique<Endless>(party, kRealm);
      server->Start();
      servers_.push_back(server.get());
      realm_.servers[party] = std::move(server);
    }
    Enroll(0, "alice");
  }
  // What is waited for besides follows from it.
  void WithTimeoutOfASecond() {
    std::ifstream in(config_);
    std::string text(std::istreambuf_iterator<char>(in), {});
    text.replace(text.find("timeout = 2"), 11, "timeout = 1");
    std::ofstream(config_) << text;
  }

  std::vector<Endless*> servers_;
};

class EndlessLists : public EndlessTest, public testing::WithParamInterface<Lie> {};

TEST_P(EndlessLists, AreEndedAndNamed) {
  servers_[1]->list_ = GetParam();
  const std::string name = servers_[1]->address();
  const std::string list = absl::StrCat("server ", name, ": the list of keys ");
  const auto ends = AnyOf(HasSubstr(list + "does not end"), HasSubstr(list + "goes back"));
  for (const char* command : {"list", "verify", "gc"}) {
    EXPECT_THAT(Expect(5, {command}).err, ends) << command;
  }
  EXPECT_THAT(Expect(5, {"delete", "--old", "--all"}).err, ends);
  EXPECT_THAT(Expect(1, {"doctor"}).out, ends);
}
INSTANTIATE_TEST_SUITE_P(All, EndlessLists,
                         testing::Values(Lie::kEmptyPages, Lie::kOneKeyEach, Lie::kFullPages,
                                         Lie::kTheSamePage));

TEST_F(EndlessTest, ACollectionIsEndedAndNamed) {
  for (const size_t in_each : {size_t{1}, limits::kCollectAtOnce}) {
    servers_[2]->collects_ = in_each;
    Expect(5, {"gc", "--collect"}, {},
           {absl::StrCat("server ", servers_[2]->address(), ": its collecting does not end")});
  }
  servers_[2]->collects_ = 0;
  Expect(0, {"gc", "--collect"}, {"0, 0, 0"});
}

TEST_F(EndlessTest, ARefreshThatOneServerAloneDoesNotEndIsNotWaitedFor) {
  WithTimeoutOfASecond();
  servers_[0]->status().set_refreshing(true);
  servers_[0]->status().set_refresh_to_write(uint64_t{1} << 60);
  Expect(5, {"refresh"}, {},
         {absl::StrCat("server ", servers_[0]->address(), " says that it still writes")});
}

// A server that was restarted when it had written does not know any more how much it was.
TEST_F(EndlessTest, ASlowServerIsNoLiarWhereTheOthersWereRestarted) {
  WithTimeoutOfASecond();
  for (const int party : {1, 2}) {
    v1::SharePackage package;
    for (int i = 0; i < 1000; ++i) {
      package.mutable_info()->set_handle(absl::StrCat(absl::Dec(i, absl::kZeroPad16)));
      servers_[party]->Plant(package);
    }
  }
  servers_[0]->writes_until_ = absl::Now() + absl::Seconds(12);
  Expect(0, {"refresh"}, {"the records are written"});
}

// Without the refresh the lost store is worth something still: it must not be forgotten.
TEST_F(EndlessTest, AReplacementThatTakesLongSaysHowToGoOn) {
  WithTimeoutOfASecond();
  servers_[2]->status().set_receiving(true);
  Expect(5, {"replace-party", "2"}, {},
         {"party 2 says that it still receives keys",
          "then run mpc-admin replace-party 2 again, which refreshes the shares"});
}

// What a server that was restarted says of itself; its keys came before.
TEST_F(EndlessTest, AReplacementThatOnlyLacksItsRefreshSaysSo) {
  Expect(4, {"replace-party", "2"}, {},
         {"what is replaced must be empty",
          "if it was replaced, and its refresh is still to be done: mpc-admin refresh"});
}

TEST_F(EndlessTest, ACatchUpIsNotWaitedForForEver) {
  WithTimeoutOfASecond();
  servers_[2]->status().set_receiving(true);
  Expect(5, {"catch-up", "2"}, {}, {"party 2 says that it still receives keys"});
}

}  // namespace
}  // namespace mpckdc::admin
