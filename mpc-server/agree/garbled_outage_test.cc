// SPDX-License-Identifier: Apache-2.0
//
// What is no lie in a garbled batch: a result that one garbler is not told, a cut or slow line.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "mpc-server/testing/garbled_attack.h"

namespace mpckdc::garbled_attack {
namespace {

// It releases and the other does not, so the KDC can read nothing. That is no deviation but an
// outage, and the time is used up where it was heard: the client sends a new one.
TEST(EvaluatorTest, WhoTellsOneGarblerAloneHelpsNobody) {
  GarbledAttack attack(kEnctypeAes256Sha1);
  for (const Role left_out : {kG1, kG2}) {
    const Job job = attack.OpenPreauth();
    attack.wires().HoldBack(left_out);
    const End end = attack.Run(job, nullptr);
    attack.wires().HoldBack(-1);
    EXPECT_FALSE(end.combined.judgement.ok());
    EXPECT_VERDICT(end.answers[PartyOf(left_out, end.batch)], Verdict::kUnavailable);
    EXPECT_FALSE(attack.AnySees());
    ASSERT_TRUE(attack.realm().WaitConnected());
    ASSERT_TRUE(Eventually(
        [&] { return attack.Run(attack.OpenPreauth(), nullptr).combined.judgement.ok(); }));
  }
}

// Nor is a cut line one.
TEST(NoDeviation, CutsInEachRound) {
  GarbledAttack attack(kEnctypeAes128Sha1);
  Realm& realm = attack.realm();
  size_t cuts = 0;
  std::atomic<size_t> most{1};
  for (size_t at = 0; at <= most; at += 3) {
    std::atomic<bool> cut{false};
    attack.wires().SetAlter([&](Role, Role, size_t round, absl::Span<uint8_t>) {
      most = std::max(most.load(), round);
      cut = cut || round == at;
    });
    std::thread cutter([&] {
      if (Eventually([&] { return cut.load(); }, absl::Seconds(1))) realm.hub().CloseCurrent();
    });
    attack.Run(attack.OpenPreauth(), nullptr);
    cutter.join();
    cuts += cut;
    attack.wires().SetAlter(nullptr);
    ASSERT_FALSE(attack.AnySees()) << "in round " << at;
    ASSERT_TRUE(realm.WaitConnected());
  }
  EXPECT_GT(cuts, 1u);
  EXPECT_TRUE(Eventually(
      [&] { return attack.Run(attack.OpenPreauth(), nullptr).combined.judgement.ok(); }));
}

// Nor a slow line. The second garbler has little to send and waits for as long as tables come.
TEST(NoDeviation, ALineThatTakesLongForTables) {
  GarbledAttack attack(kEnctypeAes128Sha1);
  Realm& realm = attack.realm();
  const PlainKey service = realm.AddKey("host/www.example.com@EXAMPLE.COM", KeyClass::kService,
                                        kEnctypeAes256Sha384, Gate::kNone);
  attack.wires().SetAlter([](Role from, Role to, size_t, absl::Span<uint8_t>) {
    if (from == kG1 && to == kE) absl::SleepFor(absl::Milliseconds(10));
  });
  const std::string data(3900, 'p');
  Job job = realm.MakeChecksums({{service.info.handle, 17, data}});
  job.deadline_ms = 30'000;
  const absl::Time begin = absl::Now();
  const End end = attack.Run(job, nullptr);
  EXPECT_GT(absl::Now() - begin, limits::kPeerTimeout);
  ASSERT_VERDICT_OK(end.combined);
  EXPECT_TRUE(OracleMacGood(service, 17, data, end.combined.make_macs[0]));
}

}  // namespace
}  // namespace mpckdc::garbled_attack
