// SPDX-License-Identifier: Apache-2.0
// A follower tells the two others different stories of a batch of which all is garbled, and as its
// second garbler serves each of the stories: it garbles by that of the first garbler, and signs for
// the evaluator under the key that follows from the evaluator's. So the MAC fits where the three do
// not have one view (doc/garbled.md, "The view"), and the evaluator evaluates a circuit of other
// public bits than it means, or of another user's key.
//
// The liar does with what one server has: its record, the seeds that it drew and was given, its
// frames. Messages of the others are read only by whom they are sent to.
#ifndef MPC_SERVER_TESTING_TWO_VIEWS_H_
#define MPC_SERVER_TESTING_TWO_VIEWS_H_

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/agree/steps.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/compute/garbled_bits.h"
#include "mpc-server/garble/message_circuits.h"
#include "mpc-server/key/usage_keys.h"
#include "mpc-server/share/hash_prf.h"
#include "mpc-server/share/pairwise_streams.h"
#include "mpc-server/testing/garbled_parties.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/wire/frame_format.h"

namespace mpckdc::two_views {

using garble::GarbledRun;
using garble::NeighbourKeys;
using garble::Plan;
using garble::SharedBits;

inline constexpr int kE = 0, kG1 = 1, kLiar = 2;  // in a batch whose number is a multiple of three
inline constexpr int32_t kEnctype = kEnctypeAes128Sha256;

inline EngineOptions Together() {
  EngineOptions options;
  options.mode = BatchMode::kFixed;
  options.batch_window = absl::Milliseconds(50);
  options.protocol = ProtocolSetting::kGarbled;
  return options;
}

inline absl::Span<uint8_t> Bytes(std::string& text) {
  return absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size());
}

// The circuit of a pre-authentication, as compute/garbled_cts.cc makes it.
class Opening {
 public:
  explicit Opening(const std::string& preauth) {
    const Enctype& enctype = *FindEnctype(kEnctype);
    const CtsMessageView view = *ParseCtsMessage(enctype, preauth);
    message_ = std::string(sizeof(Block), '\0') + std::string(view.ciphertext);
    mac_ = std::string(view.mac);
    garble::MessageCircuits circuits(plan_, enctype);
    const Plan::Reg keys = circuits.RoundKeys(), states = circuits.MacStates();
    const Plan::String message = plan_.AddString(message_.size());
    const Plan::String mac = plan_.AddString(mac_.size());
    const Plan::Reg text = circuits.Decrypt(keys, message, sizeof(Block));
    const Plan::Reg computed = circuits.HmacOfPublic(states, message);
    const Plan::Reg gated =
        plan_.Bytes(text, kConfounderBytes, view.ciphertext.size() - kConfounderBytes);
    const auto checked = circuits.Check(computed, mac, gated);
    plan_.Show(checked.ok);
    plan_.Show(checked.gated);
    plan_.Output(text);
    plan_.Finish();
  }
  garble::RunInput Input() const { return {&plan_, 1, {{message_}, {mac_}}}; }

  // As compute/garbled_bits.cc, of the view's only part.
  Digest HashWith(const Digest& view) const {
    std::string all(view.begin(), view.end());
    const auto add = [&all](uint64_t n) {
      for (int i = 0; i < 8; ++i) all.push_back(static_cast<char>(n >> 8 * i));
    };
    for (const size_t n :
         {size_t{1}, size_t{0}, size_t{1}, plan_.gates(), plan_.steps().size(), plan_.input_rows(),
          plan_.shown_rows(), plan_.output_rows(), plan_.strings().size()}) {
      add(n);
    }
    for (const std::string& text : {message_, mac_}) {
      add(text.size());
      all += text;
    }
    return Sha256(all);
  }
  size_t input_rows() const { return plan_.input_rows(); }

 private:
  std::string message_, mac_;
  Plan plan_;
};

// As garble/garbled_run.cc.
inline garble::RunKey Following(garble::RunKey key, const Digest& hash) {
  const CtrFunctions& ctr = AllCtrs().For(BestIsa());
  CtrKey expanded;
  ctr.expand(key.data(), &expanded);
  HashPrf(ctr, expanded, hash, key.data());
  return key;
}

// With the evaluator's story, the first garbler's is of another user's pre-authentication, or of
// another one of the same user's. All are garbage; anybody may send such.
class TwoViews {
 public:
  explicit TwoViews(bool one_user) : realm_(kEnctype, Together()) {
    users_ = {realm_.alice, one_user ? realm_.alice : realm_.bob};
    const absl::Time when =
        absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now())) + absl::Milliseconds(900);
    for (size_t job : {0, 1}) {
      preauths_[job] = SealPreauth(WrongPassword(users_[job]), when, realm_.random());
    }
    realm_.hub().SetInterceptor([this](MemoryRing::Intercepted& m) { See(m); });
    realm_.RestartAll();
  }

  Realm& realm() { return realm_; }
  // Whether it came to the lie.
  bool Run() {
    for (int tries = 0; tries < 20; ++tries) {
      {
        const absl::MutexLock lock(&mu_);
        if (lied_in_ != 0) return session_ != 0;
      }
      realm_.RunAll({realm_.OpenPreauth(users_[0], preauths_[0]),
                     realm_.OpenPreauth(users_[1], preauths_[1])});
    }
    return false;
  }
  // What E told the liar of its evaluation: the bits, and the hash of their labels.
  std::optional<std::string> ToldByE() {
    const absl::MutexLock lock(&mu_);
    return told_by_e_;
  }
  // What E would have told were this the user's key. The liar needs nobody to find out.
  std::string WouldTell(const std::vector<uint8_t>& base) {
    const absl::MutexLock lock(&mu_);
    const ExpandedUsage usage = *ExpandUsage(*FindEnctype(kEnctype), base, kUsagePreauth);
    std::vector<uint8_t> bytes(usage.round_keys.begin(), usage.round_keys.end());
    bytes.insert(bytes.end(), usage.mac_states.begin(), usage.mac_states.end());
    const std::vector<uint8_t> key = garble::ToRows(bytes, 1);
    const Opening of_e(preauths_[0]), of_g1(preauths_[1]);
    const SharedBits mine = BitsOf(0, of_e);  // own: w, left: m
    EXPECT_EQ(key.size(), mine.own.size());
    SecretVector<uint8_t> u(key.size());
    for (size_t i = 0; i < u.size(); ++i) u[i] = key[i] ^ mine.own[i] ^ mine.left[i];
    const NeighbourKeys keys = MixedKeys(of_e, of_g1);
    GarbledRun e(kE, kE, Secret<NeighbourKeys>({keys.next, {}}), of_e.Input(), {u, mine.own});
    GarbledRun g1(kG1, kE, Secret<NeighbourKeys>({{}, keys.own}), of_g1.Input(), {mine.left, u});
    GarbledRun g2(kLiar, kE, Secret<NeighbourKeys>(keys), of_g1.Input(), mine);
    ZeroShares none(*streams_, 1, 0, nullptr);
    while (e.ConsumedRound().from_next() != 0) {
      std::string from_g1, from_g2;
      for (GarbledRun* run : {&e, &g1, &g2}) {
        const RoundShape shape = run->NextRound();
        std::string next(shape.to_next, '\0'), prev(shape.to_prev, '\0');
        run->Produce(none, {Bytes(next), Bytes(prev)});
        if (run == &g1) from_g1 = prev;
        if (run == &g2) from_g2 = next;
      }
      EXPECT_TRUE(e.Consume({AsBytes(from_g2), AsBytes(from_g1)}).ok());
    }
    std::string to_g1(e.NextRound().to_next, '\0'), to_g2(e.NextRound().to_prev, '\0');
    e.Produce(none, {Bytes(to_g1), Bytes(to_g2)});
    return to_g2;
  }

 private:
  // With G1 the liar garbles what G1 does, which believes in the second job; for E, which believes
  // in the first one, it signs.
  NeighbourKeys MixedKeys(const Opening& of_e, const Opening& of_g1)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    NeighbourKeys keys = drawn_;
    const Digest by_g1 = of_g1.HashWith(ViewAt(kG1, 1)), by_e = of_e.HashWith(ViewAt(kE, 0));
    for (auto& key : keys.own) key = Following(key, by_g1);
    for (auto& key : keys.next) key = Following(key, by_e);
    return keys;
  }

  // What it sends to E as G2, but for empty messages: labels, and in the end the MAC. The labels
  // are of its share of the key that E believes in.
  void Garble(uint32_t session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    streams_.emplace(session, seeds_[session]);
    streams_->FillGarbling({lied_in_, 0, 0}, {drawn_.own[0].data(), sizeof(drawn_.own)},
                           {drawn_.next[0].data(), sizeof(drawn_.next)});
    const Opening of_e(preauths_[0]), of_g1(preauths_[1]);
    SharedBits bits = BitsOf(0, of_e);
    bits.left = BitsOf(1, of_g1).left;
    GarbledRun run(kLiar, kE, Secret<NeighbourKeys>(MixedKeys(of_e, of_g1)), of_g1.Input(),
                   std::move(bits));
    ZeroShares none(*streams_, 1, 0, nullptr);
    for (size_t round = 0; round < run.table_rounds(); ++round) {
      const RoundShape shape = run.NextRound();
      std::string to_e(shape.to_next, '\0'), to_g1(shape.to_prev, '\0');
      run.Produce(none, {Bytes(to_e), Bytes(to_g1)});
      if (!to_e.empty()) lies_.push_back(to_e);
    }
  }

  // The liar's share of a user's key.
  SharedBits BitsOf(size_t job, const Opening& opening) {
    const auto record = realm_.store(kLiar).Get(users_[job].info.handle);
    const UsageKey& key = *record->FindUsage(kUsagePreauth);
    GarbledInputs inputs(opening.input_rows(), 1);
    inputs.Put(key.round_keys);
    inputs.Put(key.mac_states);
    return inputs.Take();
  }

  // What a server believes in that takes this job alone.
  Digest ViewAt(int server, size_t job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto record = realm_.store(kLiar).Get(users_[job].info.handle);
    std::vector<JobWork> work(1);
    work[0].client = &record->info;
    work[0].AddOpen(UseOf(*record, *record->FindUsage(kUsagePreauth)),
                    {record->info.handle, kUsagePreauth, preauths_[job]});
    Ballot ballot(nullptr);
    ballot.bytes = proposal_;
    ballot.votes[kG1] = vote_of_g1_;
    ballot.votes[kLiar] = told_[server];
    return ViewOf(ballot, FactsOf(work));
  }

  void See(MemoryRing::Intercepted& m) {
    const absl::MutexLock lock(&mu_);
    FrameHeader header;
    ASSERT_TRUE(ReadFrameHeader(m.header.data(), &header).ok());
    if (m.type == FrameType::kSeed) return HearSeed(m, header.session);
    if (m.type == FrameType::kAgreement) return Agree(m);
    if (lied_in_ == 0 || header.batch != lied_in_ || m.type != FrameType::kRound) return;
    if (session_ == 0) session_ = header.session;
    if (header.session != session_) return;
    if (m.from == kE && m.to == kLiar && m.payload.size() > sizeof(Digest)) {
      told_by_e_ = std::string(AsText(m.payload));
    }
    if (m.from == kLiar && m.to == kE) Lie(header, m);
  }

  void Lie(const FrameHeader& header, MemoryRing::Intercepted& m)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!streams_.has_value()) Garble(header.session);
    if (sent_ >= lies_.size()) {  // it confirms nothing
      m.drop = true;
      return;
    }
    const std::string& lie = lies_[sent_++];
    ASSERT_GE(m.payload.size(), lie.size());
    // Behind a confirmation, if there is one here.
    const Digest view = ViewAt(kE, 0);
    const size_t at = m.payload.size() - lie.size();
    if (at == view.size()) std::copy(view.begin(), view.end(), m.payload.begin());
    std::copy(lie.begin(), lie.end(), m.payload.begin() + static_cast<ptrdiff_t>(at));
  }

  // The liar's own, and the one that it is given.
  void HearSeed(const MemoryRing::Intercepted& m, uint32_t session)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    Seed seed;
    std::copy(m.payload.begin(), m.payload.end(), seed.begin());
    if (m.from == kLiar) seeds_[session].own.Get() = seed;
    if (m.to == kLiar) seeds_[session].next.Get() = seed;
  }

  // E is told that the liar refuses the second job, the others that it refuses the first.
  void Agree(MemoryRing::Intercepted& m) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const std::string bytes(AsText(m.payload));
    if (m.from == kLeader && lied_in_ == 0) {
      const auto proposal = DecodeProposal(bytes);
      if (!proposal.ok()) return;
      proposal_ = bytes;
      const auto& entries = proposal->entries;
      const bool good = entries.size() == 2 && entries[0].id < entries[1].id &&
                        proposal->number % kParties == kE && proposal->kind == BatchKind::kLongJobs;
      about_to_ = good ? proposal->number : 0;
    }
    auto vote = DecodeVote(bytes);
    if (!vote.ok() || about_to_ == 0 || vote->number != about_to_) return;
    if (m.from == kG1 && m.to == kE) vote_of_g1_ = bytes;
    // Once: another session's numbers begin anew. The liar's own program goes with G1.
    std::string& told = told_[m.from == kLiar ? m.to : kLiar];
    if (vote->codes.size() != 2 || !told.empty() || (m.from != kLiar && m.to != kLiar)) return;
    if (m.from == kLiar) lied_in_ = about_to_;
    vote->codes[m.from == kLiar && m.to == kE ? 1 : 0] = CodeOf(Verdict::kRefused);
    told = EncodeVote(*vote);
    m.instead = told;
  }

  absl::Mutex mu_;
  std::map<uint32_t, PairwiseSeeds> seeds_ ABSL_GUARDED_BY(mu_);  // by session
  std::string proposal_ ABSL_GUARDED_BY(mu_), vote_of_g1_ ABSL_GUARDED_BY(mu_);
  std::array<std::string, kParties> told_ ABSL_GUARDED_BY(mu_);
  uint32_t about_to_ ABSL_GUARDED_BY(mu_) = 0, lied_in_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t session_ ABSL_GUARDED_BY(mu_) = 0;  // in which it lied, of the long ring
  NeighbourKeys drawn_ ABSL_GUARDED_BY(mu_);
  std::optional<PairwiseStreams> streams_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> lies_ ABSL_GUARDED_BY(mu_);
  size_t sent_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<std::string> told_by_e_ ABSL_GUARDED_BY(mu_);
  std::array<PlainKey, 2> users_;
  std::array<std::string, 2> preauths_;
  Realm realm_;
};

}  // namespace mpckdc::two_views

#endif  // MPC_SERVER_TESTING_TWO_VIEWS_H_
