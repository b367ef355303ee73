// SPDX-License-Identifier: Apache-2.0
// What status, doctor and readmit say of servers that deviated, hold other records or differ in
// their security.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mpc-server/admin/names.h"
#include "mpc-server/testing/admin_run_fixture.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// What server `party` saw of those that it names.
void Accuse(enroll::FakeRealm& realm, int party, const std::vector<uint32_t>& suspects) {
  v1::StatusReply& status = realm.servers[party]->status();
  status.set_peers_connected(false);
  for (const uint32_t suspect : suspects) status.mutable_quarantine()->add_suspects(suspect);
  status.mutable_quarantine()->set_text("two stories");
  status.mutable_quarantine()->set_batch(7);
  status.mutable_quarantine()->set_session(std::string(16, '\x2b'));
}

TEST_F(RunTest, StatusAndDoctorNameAServerThatDeviated) {
  Accuse(realm_, 0, {1, 2});
  Accuse(realm_, 2, {0, 1});
  Expect(1, {"status"}, {"QUARANTINED"},
         {"is quarantined: party 1 or party 2 deviated on ", "two stories",
          "what the servers saw fits party 1; or it was party 0 or party 2, which only says"});
  const json status = json::parse(Expect(1, {"status", "--json"}).out);
  EXPECT_EQ(status["suspects"], json::array({1}));
  for (const json& server : status["servers"]) {  // in any order
    const json& seen = server["quarantine"];
    EXPECT_EQ(seen.is_null(), server["party"] == 1);
    if (server["party"] != 0) continue;
    EXPECT_EQ(seen["suspects"], json::array({1, 2}));
    EXPECT_EQ(seen["batch"], 7);
    EXPECT_EQ(seen["session"], Hex(std::string(16, '\x2b')));
  }
  EXPECT_EQ(status["possible_suspects"], json::array({0, 1, 2}));
  for (const auto& server : realm_.servers) server->status().set_peers_connected(false);
  Expect(1, {"doctor"},
         {"BAD", "is quarantined", "fits party 1", "readmit",
          "nothing here: a quarantined server opens no session"});
}

// ATTACK. Who accuses one calls itself another: it was itself, all the same.
TEST_F(RunTest, ALiarUnderAnothersNameIsNoLessSuspect) {
  Accuse(realm_, 0, {1});
  realm_.servers[0]->status().set_party(2);
  Expect(1, {"status"}, {}, {"they contradict each other: party 0 or party 1 or party 2 deviated"});
  const json status = json::parse(Expect(1, {"status", "--json"}).out);
  EXPECT_EQ(status["suspects"], json::array());
  EXPECT_EQ(status["possible_suspects"], json::array({0, 1, 2}));
}

// ATTACK. It keeps the other one from answering, and calls itself that.
TEST_F(RunTest, ALiarUnderTheNameOfOneThatIsDownIsNoLessSuspect) {
  Accuse(realm_, 0, {1});
  realm_.servers[0]->status().set_party(2);
  Accuse(realm_, 1, {0});
  realm_.servers[2]->FailCalls("GetStatus");
  Expect(3, {"status"}, {}, {"they contradict each other: party 0 or party 1 deviated"});
  const json status = json::parse(Expect(3, {"status", "--json"}).out);
  EXPECT_EQ(status["suspects"], json::array());
  EXPECT_EQ(status["possible_suspects"], json::array({0, 1}));
}

// Whatever it writes where its answers are shown.
TEST_F(RunTest, WhatALyingServerSaysIsOneLine) {
  v1::StatusReply& status = realm_.servers[1]->status();
  status.set_degraded("bye\nparty 2 deviated\033[2K");
  status.mutable_quarantine()->add_suspects(2);
  status.mutable_quarantine()->set_text("two\rstories");
  for (const char* command : {"status", "doctor"}) {
    const Outcome outcome = Expect(1, {command});
    const std::string text = outcome.out + outcome.err;
    EXPECT_THAT(text, HasSubstr("bye\\x0aparty 2 deviated\\x1b[2K"));
    EXPECT_THAT(text, HasSubstr("two\\x0dstories"));
    EXPECT_THAT(text, Not(testing::AnyOf(HasSubstr("\033["), HasSubstr("\nparty 2 deviated"))));
  }
}

// The same of errors, and of a key's principal.
TEST_F(RunTest, WhatALyingServerSaysElsewhereIsOneLine) {
  const std::string evil = "bye\nparty 2 deviated\033[2K\u009b";
  const auto expect = [](const Outcome& outcome, const std::string& what) {
    const std::string text = outcome.out + outcome.err;
    EXPECT_THAT(text, HasSubstr("bye\\x0aparty 2 deviated")) << what;
    EXPECT_THAT(text, Not(testing::AnyOf(HasSubstr("\033["), HasSubstr("\nparty 2 deviated"),
                                         HasSubstr("\u009b"))))
        << what;
  };
  v1::SharePackage package;
  *package.mutable_info() =
      KeyOf("x@EXAMPLE.COM " + evil, 1, kEnctypeAes256Gcm, std::string(16, 'h'));
  realm_.servers[1]->Plant(package);
  expect(Run({"list"}), "list");
  expect(Run({"doctor"}), "doctor");
  for (const char* method : {"ListKeys", "InitRealm"}) {
    realm_.servers[1]->set_fault(
        [&](enroll::FakeAdminServer::When, const std::string& called) {
          return called == method ? grpc::Status(grpc::StatusCode::INTERNAL, evil)
                                  : grpc::Status::OK;
        });
    expect(Run({method == std::string("ListKeys") ? "list" : "init-realm"}), method);
  }
}

// In whichever field: doctor shows them all, and refusals name some.
TEST_F(RunTest, EveryTextOfALyingServerIsOneLine) {
  const std::string evil = "bye\nparty 2 deviated\033[2K\u009b";
  v1::StatusReply& status = realm_.servers[1]->status();
  const v1::StatusReply good = status;
  const auto* const type = v1::StatusReply::descriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const auto* const field = type->field(i);
    if (field->type() != google::protobuf::FieldDescriptor::TYPE_STRING) continue;
    status.GetReflection()->SetString(&status, field, evil);
    for (const char* command : {"doctor", "status", "list"}) {
      const Outcome outcome = Run({command});
      EXPECT_THAT(outcome.out + outcome.err,
                  Not(testing::AnyOf(HasSubstr("\033"), HasSubstr("\nparty 2 deviated"),
                                     HasSubstr("\u009b"))))
          << command << " with " << field->name();
    }
    status = good;
  }
}

// Numbers that no honest server says are shown, and end nothing.
TEST_F(RunTest, ANumberOfALyingServerEndsNoCommand) {
  realm_.servers[1]->status().set_triple(0xFFFFFFFF);  // it is asked first
  EXPECT_EQ(json::parse(Expect(1, {"status", "--json"}).out)["triples"][0]["triple"], 0xFFFFFFFF);
  Expect(1, {"doctor"}, {"of triple 4294967295"});
  Expect(0, {"top", "--count", "1"}, {"4294967295"});
}

// A proof that fails at all three, as broken memory makes it.
TEST_F(RunTest, WhenAllThreeSawItNobodyIsExcused) {
  for (const uint32_t p : {0, 1, 2}) Accuse(realm_, p, {(p + 1) % 3, (p + 2) % 3});
  const std::string text =
      "they contradict each other: party 0 or party 1 or party 2 deviated, and what it says that "
      "it saw is no evidence";
  Expect(1, {"status"}, {}, {text});
  Expect(1, {"doctor"}, {text});
}

// Whatever the liar says of the others.
TEST_F(RunTest, OnlyWhatTheOthersSayCounts) {
  const struct {
    std::vector<std::vector<uint32_t>> seen;  // by party; empty: nothing
    std::vector<uint32_t> named, possible;
    std::string text;
  } cases[] = {
      {{{1}, {}, {}}, {1}, {0, 1}, "fits party 1; or it was party 0, which only says"},
      {{{1}, {0}, {}}, {}, {0, 1}, "contradict each other: party 0 or party 1 deviated"},
      {{{1}, {0, 2}, {1}}, {}, {1}, "contradict each other: party 1 deviated"},
      {{{1}, {}, {1}}, {1}, {1}, "saw fits party 1\n"},
      {{{1, 2}, {0, 2}, {0, 1}}, {}, {0, 1, 2}, "party 0 or party 1 or party 2 deviated"},
      {{{1}, {2}, {0}}, {}, {}, "more than one server deviates"},
  };
  for (const auto& c : cases) {
    for (uint32_t p = 0; p < 3; ++p) {
      realm_.servers[p]->status().clear_quarantine();
      if (!c.seen[p].empty()) Accuse(realm_, static_cast<int>(p), c.seen[p]);
    }
    const json status = json::parse(Expect(1, {"status", "--json"}).out);
    EXPECT_EQ(status["suspects"], json(c.named));
    EXPECT_EQ(status["possible_suspects"], json(c.possible));
    Expect(1, {"status"}, {}, {c.text});
  }
}

TEST_F(RunTest, ReadmitEndsQuarantinesAndSaysWhich) {
  Accuse(realm_, 0, {1, 2});
  realm_.servers[2]->FailCalls("Readmit");
  Expect(3, {"readmit"}, {"party 0 ended its quarantine: party 1 or party 2 deviated"},
         {"run mpc-admin readmit again"});
  EXPECT_FALSE(realm_.servers[0]->status().has_quarantine());
  realm_.servers[2]->set_fault(nullptr);
  Expect(4, {"readmit"}, {"nothing to readmit: none of the three servers is quarantined"});
  Accuse(realm_, 1, {2});
  const json ended = json::parse(Expect(0, {"readmit", "--json"}).out);
  EXPECT_EQ(ended["readmitted"].size(), 1u);
  EXPECT_EQ(ended["readmitted"][0]["party"], 1);
}

TEST_F(RunTest, StatusAndDoctorNameRecordsThatDiffer) {
  for (const auto& server : realm_.servers) {
    server->status().set_different_records(2);
    server->status().set_different_record("the three servers hold different records of key 01");
  }
  Expect(1, {"status"}, {}, {"2 keys are refused: the three servers hold different records"});
  Expect(1, {"doctor"},
         {"BAD", "hold different records of key 01", "mpc-admin catch-up PARTY",
          "rebuild that server's store"});
}

TEST_F(RunTest, StatusAndDoctorSayWhichSecurityAndSemiHonestLoudly) {
  const Outcome active = Expect(0, {"status"}, {"SECURITY", "active"});
  EXPECT_THAT(active.out + active.err, Not(HasSubstr("SEMI-HONEST")));
  EXPECT_THAT(Expect(0, {"doctor"}, {"security is active"}).out, Not(HasSubstr("SEMI-HONEST")));
  for (const auto& server : realm_.servers) server->status().set_security("semi-honest");
  Expect(0, {"status"}, {"SEMI-HONEST"}, {"security is SEMI-HONEST, for benchmarks alone"});
  Expect(
      0, {"doctor"},
      {"warning", "security is SEMI-HONEST", "take security = \"semi-honest\" out of the three"});
}

// The three refuse to work together: mpc-server/share/session_test.cc.
TEST_F(RunTest, ADifferenceInSecurityIsAFinding) {
  realm_.servers[1]->status().set_security("semi-honest");
  constexpr char kText[] =
      "differ in [engine] security and do not work together: party 0 has active, party 1 has "
      "semi-honest, party 2 has active";
  Expect(0, {"status"}, {}, {kText});
  Expect(1, {"doctor"}, {"BAD", kText});
}

TEST_F(RunTest, StatusShowsProtocolAndLines) {
  v1::StatusReply& first = realm_.servers[0]->status();
  first.set_last_protocol("garbled");
  first.set_peer_distance_us_prev(120);
  first.set_peer_distance_us_next(1250);
  first.set_peer_rate_prev(117'000'000);
  first.set_peer_rate_next(1'200'000'000);
  realm_.servers[2]->status().set_protocol("replicated");
  Expect(0, {"status"},
         {"PROTOCOL", "garbled", "replicated!", "DISTANCE", "1.25 ms", "RATE", "936 Mb/s"});
  first.set_peer_rate_prev(55'000);
  Expect(0, {"status"}, {"440 kb/s"});
  first.set_peer_rate_prev(117'000'000);
  Expect(0, {"status", "--json"},
         {"\"last_protocol\": \"garbled\"", "\"peer_distance_us_next\": 1250",
          "\"peer_rate_prev\": 117000000", "\"protocol\": \"replicated\""});
}

// The three refuse to work together: mpc-server/agree/protocol_test.cc.
TEST_F(RunTest, ForcedProtocolsThatDifferAreAFinding) {
  realm_.servers[2]->status().set_protocol("garbled");
  EXPECT_THAT(Expect(0, {"doctor"}, {}).out, Not(HasSubstr("[engine] protocol")));
  realm_.servers[0]->status().set_protocol("replicated");
  constexpr char kText[] =
      "differ in [engine] protocol and do not work together: party 0 forces replicated, party 2 "
      "forces garbled";
  Expect(0, {"status"}, {}, {kText});
  Expect(1, {"doctor"}, {"BAD", kText, "force the same one"});
}

}  // namespace
}  // namespace mpckdc::admin
