// SPDX-License-Identifier: Apache-2.0
//
// By which protocol three servers draw and verify keys: what the leader chooses and what followers
// refuse. What comes out is the same (compute/key_work_test.cc).
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/jobs.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

class KeyProtocolTest : public ::testing::Test {
 protected:
  KeyProtocolTest() { PrepareCircuits(); }

  KeyInfo NewKey(int32_t enctype) {
    KeyInfo info;
    info.principal = "drawn@EXAMPLE.COM";
    info.principal_id = PrincipalIdOf(info.principal);
    info.kvno = 1;
    info.enctype = enctype;
    realm_.random().Fill(absl::MakeSpan(info.handle));
    return info;
  }
  // Draws a key, and commits it.
  Handle Draw(int32_t enctype) {
    const KeyInfo info = NewKey(enctype);
    const TransactionId txn = {++transactions_};
    EXPECT_EQ(realm_.Draw(txn, info), absl::OkStatus());
    for (int p = 0; p < kParties; ++p) {
      EXPECT_EQ(realm_.store(p).Commit(txn, absl::Now()).status(), absl::OkStatus());
    }
    return info.handle;
  }
  std::vector<Handle> AddKeys(size_t count, int32_t enctype) {
    std::vector<Handle> handles;
    for (size_t i = 0; i < count; ++i) {
      const std::string name = absl::StrCat("user", enctype, "-", i, "@EXAMPLE.COM");
      handles.push_back(realm_.AddKey(name, KeyClass::kUser, enctype).info.handle);
    }
    return handles;
  }
  void ExpectAllGood(const std::vector<Handle>& handles) {
    const auto verified = realm_.Verify(handles);
    ASSERT_TRUE(verified.ok()) << verified.status();
    ASSERT_EQ(verified->size(), handles.size());
    for (size_t i = 0; i < handles.size(); ++i) {
      EXPECT_EQ((*verified)[i].handle, handles[i]);
      EXPECT_TRUE((*verified)[i].consistent) << (*verified)[i].detail;
    }
  }
  // Of all three since they started.
  void ExpectBatches(uint64_t garbled, uint64_t replicated) {
    for (int p = 0; p < kParties; ++p) {
      EXPECT_TRUE(Eventually([&] {
        const EngineStatus status = realm_.engine(p).Status();
        return status.garbled_batches == garbled && status.replicated_batches == replicated;
      })) << "P"
          << p << ": " << realm_.engine(p).Status().garbled_batches << " garbled, "
          << realm_.engine(p).Status().replicated_batches << " in rounds";
    }
  }
  void Force(ProtocolSetting setting) {
    realm_.options(1).protocol = setting;
    realm_.RestartAll();
  }

  Realm realm_;
  uint8_t transactions_ = 0;
};

// The servers believe that their lines are long.
TEST_F(KeyProtocolTest, FarApartKeysAreGarbled) {
  realm_.hub().SetLine({absl::Milliseconds(10), 0});
  realm_.RestartAll();
  std::vector<Handle> drawn;
  for (const Enctype& enctype : kEnctypes) drawn.push_back(Draw(enctype.number));
  ExpectAllGood(drawn);
  ExpectBatches(std::size(kEnctypes) + 1, 0);
}

TEST_F(KeyProtocolTest, WhatIsForced) {
  Force(ProtocolSetting::kReplicated);
  ExpectAllGood({Draw(kEnctypeAes256Gcm), Draw(kEnctypeAes128Sha256)});
  ExpectBatches(0, 3);
  Force(ProtocolSetting::kGarbled);
  ExpectAllGood({Draw(kEnctypeAes256Gcm), Draw(kEnctypeAes128Sha256)});
  ExpectBatches(3, 0);
}

// Each garbled batch within the limits; in rounds all go together.
TEST_F(KeyProtocolTest, ManyKeysAreVerifiedInBatchesThatFit) {
  std::vector<Handle> handles = AddKeys(limits::kGarbledParts + 5, kEnctypeAes128Gcm);
  Force(ProtocolSetting::kGarbled);
  ExpectAllGood(handles);
  ExpectBatches(2, 0);
  const std::vector<Handle> large = AddKeys(6, kEnctypeAes256Sha384);
  ExpectAllGood(large);
  ExpectBatches(4, 0);
  handles.insert(handles.end(), large.begin(), large.end());
  Force(ProtocolSetting::kReplicated);
  ExpectAllGood(handles);
  ExpectBatches(0, 1);
}

// On a line that carries no tables.
TEST_F(KeyProtocolTest, ASlowLineCarriesNoTablesOfKeys) {
  realm_.hub().SetLine({absl::ZeroDuration(), 1'000'000});
  realm_.RestartAll();
  Draw(kEnctypeAes128Gcm);
  ExpectBatches(0, 1);
}

// A list of many batches leaves the ring to a login between two of them.
TEST_F(KeyProtocolTest, LoginsTakeTurnsWithALongVerification) {
  const PlainKey stock = realm_.AddKey("stock@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes256Sha1);
  Force(ProtocolSetting::kGarbled);
  const std::vector<Handle> handles = AddKeys(20 * limits::kGarbledParts, kEnctypeAes128Gcm);
  const GroupId request = {7};
  Told<absl::Status> verified;
  for (int p = 0; p < kParties; ++p) {
    realm_.engine(p).VerifyKeys(request, handles,
                                [&](auto answer) { verified.Add(answer.status()); });
  }
  const auto batches = [&] { return realm_.engine(kLeader).Status().garbled_batches; };
  EXPECT_TRUE(Eventually([&] { return batches() >= 2; }));
  const uint64_t before = batches();
  EXPECT_VERDICT(realm_.Run(realm_.Login(stock)), Verdict::kOk);
  EXPECT_LE(batches(), before + 6);  // of keys, of the login, of keys; and while a test is slow
  EXPECT_TRUE(verified.All().empty());
  EXPECT_TRUE(Eventually([&] { return verified.All().size() == kParties; }, absl::Seconds(60)));
  for (const absl::Status& status : verified.All()) EXPECT_TRUE(status.ok()) << status;
}

// ---- What a follower refuses ----

// What the followers vote on key work whose proposals are changed on their way.
class KeyVoteTest : public KeyProtocolTest {
 protected:
  ~KeyVoteTest() override { realm_.StopAll(); }  // which calls the interceptor

  void Intercept(CtsProtocol protocol) {
    realm_.StopAll();
    realm_.hub().SetInterceptor([this, protocol](MemoryRing::Intercepted& frame) {
      if (frame.type != FrameType::kAgreement || !active_) return;
      const std::string bytes(AsText(frame.payload));
      if (frame.from == kLeader) {
        Proposal proposal = *DecodeProposal(bytes);
        if (proposal.entries.empty()) return;
        proposal.protocol = protocol;
        frame.instead = EncodeProposal(proposal);
      } else if (frame.to == kLeader) {
        Vote vote = *DecodeVote(bytes);
        if (!vote.codes.empty()) votes_.Add(vote);
      }
    });
    realm_.StartAll();
    ASSERT_TRUE(realm_.WaitConnected());
  }
  // The session then ends: the leader proposed something else.
  std::vector<Vote> VotesOn(const std::vector<Handle>& handles) {
    active_ = true;
    const GroupId request = {7};
    for (const int p : {1, 2, kLeader}) realm_.engine(p).VerifyKeys(request, handles, [](auto) {});
    EXPECT_TRUE(Eventually([&] { return votes_.All().size() >= 2; }));
    realm_.StopAll();
    return votes_.All();
  }

  std::atomic<bool> active_{false};
  Told<Vote> votes_;
};

TEST_F(KeyVoteTest, AProtocolThatItsAdministratorRulesOut) {
  const std::vector<Handle> handles = AddKeys(1, kEnctypeAes256Sha1);
  for (const int follower : {1, 2}) {
    realm_.options(follower).protocol = ProtocolSetting::kReplicated;
  }
  Intercept(CtsProtocol::kGarbled);
  for (const Vote& vote : VotesOn(handles)) {
    ASSERT_EQ(vote.codes.size(), 1u);
    EXPECT_EQ(static_cast<Verdict>(vote.codes[0]), Verdict::kUnavailable);
  }
}

TEST_F(KeyVoteTest, RoundsWhereItsAdministratorForcesTheOther) {
  const std::vector<Handle> handles = AddKeys(1, kEnctypeAes256Gcm);
  for (const int follower : {1, 2}) realm_.options(follower).protocol = ProtocolSetting::kGarbled;
  Intercept(CtsProtocol::kReplicated);
  for (const Vote& vote : VotesOn(handles)) {
    ASSERT_EQ(vote.codes.size(), 1u);
    EXPECT_EQ(static_cast<Verdict>(vote.codes[0]), Verdict::kUnavailable);
  }
}

// The leader computes them in rounds, all at once; garbled the last one is too much.
TEST_F(KeyVoteTest, AGarbledBatchBeyondTheLimits) {
  const std::vector<Handle> handles = AddKeys(5, kEnctypeAes256Sha384);
  realm_.options(kLeader).protocol = ProtocolSetting::kReplicated;
  Intercept(CtsProtocol::kGarbled);
  for (const Vote& vote : VotesOn(handles)) {
    ASSERT_EQ(vote.codes.size(), handles.size());
    for (size_t i = 0; i + 1 < handles.size(); ++i) EXPECT_EQ(vote.codes[i], kVoteOk);
    EXPECT_EQ(static_cast<Verdict>(vote.codes.back()), Verdict::kUnavailable);
  }
}

// What a server refuses is answered, and not proposed again until limits::kDrawKeyTimeout.
TEST_F(KeyProtocolTest, ADrawThatAServerRefusesEnds) {
  realm_.StopAll();
  realm_.hub().SetInterceptor([](MemoryRing::Intercepted& frame) {
    if (frame.type != FrameType::kAgreement || frame.from != 1) return;
    Vote vote = *DecodeVote(AsText(frame.payload));
    if (vote.codes.empty()) return;
    vote.codes[0] = CodeOf(Verdict::kUnavailable);
    frame.instead = EncodeVote(vote);
  });
  realm_.StartAll();
  ASSERT_TRUE(realm_.WaitConnected());
  const KeyInfo info = NewKey(kEnctypeAes256Gcm);
  Told<absl::Status> told;
  for (int p = 0; p < kParties; ++p) {
    realm_.engine(p).DrawKey({9}, info, [&, p](const absl::Status& status) {
      if (p != 1) told.Add(status);
    });
  }
  EXPECT_TRUE(Eventually([&] { return told.All().size() == 2; }));
  for (const absl::Status& status : told.All()) {
    EXPECT_TRUE(absl::IsUnavailable(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("server 1 said UNAVAILABLE"));
  }
  realm_.StopAll();
}

}  // namespace
}  // namespace mpckdc
