// SPDX-License-Identifier: Apache-2.0
//
// What the owner of one server takes from a realm whose servers trust each other to compute as they
// should: krbtgt's key and users' keys, from jobs that three servers judge as ever. The analysis is
// in testing/fault_analysis.h, the lying in testing/deviating_channel.h; here is who sees what.
#include <cstdio>
#include <tuple>

#include "gtest/gtest.h"
#include "mpc-server/key/derivation.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/testing/fault_analysis.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/testing/tested_security.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc {
namespace {

// ---- The attacker: what the owner of server `party` does with it ----

size_t StagesOf(Sbox sbox) { return sbox == Sbox::kLatency ? 3 : 4; }

// Some of the lanes that a batch's AES circuit of one key size computes.
struct LaneRange {
  size_t lanes, first, count;
};

// The fault in AES round `round` (1 and up) of those lanes. A batch's AES blocks begin in its first
// round, so the message is known by its number.
std::vector<Lie> FaultInRound(const SboxFault& fault, size_t round, const LaneRange& range) {
  std::vector<Lie> lies;
  const auto stages = FaultOfLanes(fault, range.lanes, range.first, range.count);
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    if (stages[stage].empty()) continue;
    const size_t message = (round - 1) * StagesOf(fault.sbox) + stage;
    lies.push_back({.kind = LieKind::kConstant,
                    .where = AtRound(static_cast<uint16_t>(message)),
                    .own_state = true,
                    .flips = stages[stage]});
  }
  return lies;
}

// The first blocks of a text that XOR-s to `keystream`.
std::vector<Block> WholeBlocks(const std::string& keystream) {
  std::vector<Block> blocks = BlocksOf(AsBytes(keystream));
  blocks.resize(keystream.size() / sizeof(Block));
  return blocks;
}

// What an OpenToServers shows to a server, from the messages of its round: v = x_{i-1} + a_i, and
// a_i is what it sent to prev.
std::vector<Block> OpenedIn(const SeenRound& seen) {
  std::string opened(seen.from_prev.size(), '\0');
  for (size_t i = 0; i < opened.size(); ++i) {
    opened[i] = static_cast<char>(seen.from_prev[i] ^ seen.to_prev[i]);
  }
  return WholeBlocks(opened);
}

// A realm in which server `party` lies when told to.
class LyingRealm {
 public:
  LyingRealm(int party, int32_t enctype, const EngineOptions& options = {})
      : party_(party), liar_(1), realm_(enctype, options) {
    realm_.hub().SetLiar(party, &liar_);
    realm_.RestartAll();
  }

  int party() const { return party_; }
  Liar& liar() { return liar_; }
  Realm& realm() { return realm_; }

  // Active security: the two others gave nothing, and one of them accuses the liar at least (the
  // other may hear of it by the end of the session).
  void ExpectCaught(const PerParty<JobResult>& answers) {
    for (const int p : {NextParty(party_), PrevParty(party_)}) {
      EXPECT_FALSE(answers[p].judgement.ok());
      EXPECT_TRUE(NoOutput(answers[p]));
    }
    ExpectAccused();
  }
  void ExpectAccused() {
    int accusations = 0;
    for (const int p : {NextParty(party_), PrevParty(party_)}) {
      ASSERT_FALSE(realm_.recorder(p).Batches().empty());
      const auto suspects = SuspectsOf(realm_.recorder(p).Batches().back().status);
      if (!suspects.has_value()) continue;
      ++accusations;
      EXPECT_TRUE(suspects->Has(party_)) << "P" << p << " accuses " << suspects->Text();
    }
    EXPECT_GT(accusations, 0);
  }

 private:
  const int party_;
  Liar liar_;
  Realm realm_;
};

// ---- krbtgt's key, from logins of an ordinary account ----

constexpr size_t kAes256Rounds = 14;
constexpr size_t kTicketBytes = 166;
constexpr size_t kTicketLanes = 1 + (kZeroBytes + kTicketBytes + 15) / 16;  // J0, zeros, text
// Of the ticket's text the client knows what stands in the reply too: flags, session key, names,
// times. The rest is the KDC's: its signatures.
const std::string kKnownText(100, 'k');

class KrbtgtAttackTest : public ::testing::TestWithParam<std::tuple<int, Sbox>> {
 protected:
  KrbtgtAttackTest()
      : fault_(BestFault(std::get<1>(GetParam()))),
        lying_(std::get<0>(GetParam()), kEnctypeAes128Gcm, OptionsOf(fault_.sbox)) {}

  // All logins that wait come into one batch; the servers choose the S-box by its length.
  static EngineOptions OptionsOf(Sbox sbox) {
    EngineOptions options;
    if (sbox == Sbox::kThroughput) {
      options.mode = BatchMode::kFixed;
      options.batch_window = absl::Milliseconds(300);
    }
    return options;
  }
  size_t LoginsOfBatch() const { return fault_.sbox == Sbox::kThroughput ? 30 : 1; }

  // Alice logs in among others while her accomplice alters a round of her own ticket's lanes.
  std::vector<JobResult> LogInAmongOthers(size_t faulty_round) {
    Realm& realm = lying_.realm();
    const LaneRange mine = {LoginsOfBatch() * kTicketLanes, 1, kTicketLanes - 1};
    lying_.liar().ArmAll(FaultInRound(fault_, faulty_round, mine));
    std::vector<Job> jobs = {realm.Login(realm.alice)};
    while (jobs.size() < LoginsOfBatch()) jobs.push_back(realm.Login(realm.bob));
    std::vector<JobResult> results = realm.RunAll(jobs);
    lying_.liar().Disarm();
    return results;
  }

  // She reads her ticket: 16 zero bytes and kKnownText give keystream blocks. Empty: it did not
  // work.
  std::vector<Block> LogIn(size_t faulty_round) {
    Realm& realm = lying_.realm();
    const std::vector<JobResult> results = LogInAmongOthers(faulty_round);
    ++logins_;
    for (const JobResult& result : results) EXPECT_VERDICT(result, Verdict::kOk);
    if (!results[0].judgement.ok()) return {};
    std::string secret(kTicketBytes - kKnownText.size(), '\0');
    realm.random().Fill({reinterpret_cast<uint8_t*>(secret.data()), secret.size()});
    const std::string ticket = realm.FinishSeal(results[0], 0, kKnownText + secret);
    const auto message = ParseMessage(ticket);
    EXPECT_TRUE(message.has_value());
    EXPECT_EQ(OracleOpen(realm.tgt, kUsageTicket, ticket), std::nullopt) << "nothing was altered";
    return WholeBlocks(
        XorText(std::string(message->ciphertext), std::string(kZeroBytes, '\0') + kKnownText));
  }

  // The last round key, then with it the one before, each from as many logins as it takes.
  std::vector<uint8_t> StealKey() {
    RoundKeyScores last(fault_), before(fault_);
    while (!last.Best() && logins_ < kMostLogins) {
      for (const Block& block : LogIn(kAes256Rounds)) last.Add(block);
    }
    if (!last.Best()) return {};
    while (!before.Best() && logins_ < kMostLogins) {
      for (const Block& block : LogIn(kAes256Rounds - 1)) {
        before.Add(BeforeLastRound(block, *last.Best()));
      }
    }
    if (!before.Best()) return {};
    return KeyFromLastRoundKeys(MixColumnsOf(*before.Best()), *last.Best());
  }

  static constexpr int kMostLogins = 6;
  const SboxFault fault_;
  LyingRealm lying_;
  int logins_ = 0;
};

TEST_P(KrbtgtAttackTest, AFewLoginsGiveTheKeyThatSealsEveryTicket) {
  Realm& realm = lying_.realm();
  if (TestedSecurity() == Security::kActive) {
    for (const JobResult& result : LogInAmongOthers(kAes256Rounds)) {
      EXPECT_FALSE(result.judgement.ok());
      EXPECT_TRUE(NoOutput(result));
    }
    return lying_.ExpectAccused();
  }
  const std::vector<uint8_t> key = StealKey();
  std::printf("P%d, %s S-box: %.2f bits per byte and block, %d logins\n", lying_.party(),
              fault_.sbox == Sbox::kLatency ? "latency" : "throughput", BitsPerByte(fault_),
              logins_);
  const SecretBytes right = PlainUsageKey(realm.tgt.base, kUsageTicket);
  ASSERT_EQ(key, std::vector<uint8_t>(right.begin(), right.end()));

  // Bob's ticket, as it passes on the network.
  const JobResult login = realm.Run(realm.Login(realm.bob));
  const std::string ticket = realm.FinishSeal(login, 0, "bob's session key");
  const auto opened = PlainOpen(key, AsBytes(ticket));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(std::string(opened->plaintext.begin(), opened->plaintext.end()), "bob's session key");

  // And one that no server has made.
  const absl::Time now = absl::Now();
  const std::string header =
      EncodeTicketHeader(NewTicketHeader(realm.bob.info.principal_id, 12345, now, absl::Hours(24)));
  const Nonce nonce = JoinNonce({static_cast<uint32_t>(absl::ToUnixSeconds(now)), 7, 42});
  const std::string text = "whatever the attacker likes";
  const auto sealed = PlainSeal(key, nonce, AsBytes(header), AsBytes(text));
  const std::string forged(sealed.begin(), sealed.end());
  const JobResult taken = realm.Run(realm.OpenTicket(forged));
  ASSERT_VERDICT_OK(taken);
  EXPECT_EQ(XorText(GcmOf(taken.opens[0]).share,
                    std::string(ParseMessage(forged)->ciphertext.substr(kZeroBytes))),
            text);
}

INSTANTIATE_TEST_SUITE_P(Servers, KrbtgtAttackTest,
                         ::testing::Combine(::testing::Values(0, 1, 2),
                                            ::testing::Values(Sbox::kLatency, Sbox::kThroughput)));

// ---- A user's key, without an account: the time stamp of a pre-authentication ----

class LiarTest : public ::testing::TestWithParam<int> {};

// The servers open a pre-auth's text to each other, once its tag and its zero block are right:
// those lanes are left alone. Others than the attacker log in, in vain: their time stamps are
// garbage.
TEST_P(LiarTest, OpenedTimestampsGiveTheKeyOfWhoeverLogsIn) {
  LyingRealm lying(GetParam(), kEnctypeAes128Gcm);
  Realm& realm = lying.realm();
  const SboxFault fault = BestFault(Sbox::kLatency);
  const size_t text_lanes = (EncodePreauthTimestamp(absl::Now()).size() + 15) / 16;
  const LoginSizes sizes;
  // The pre-auth's lanes, the reply's and the checksum's.
  const size_t lanes = 2 + text_lanes + 1 + (kZeroBytes + sizes.reply + 15) / 16 + 1;
  RoundKeyScores scores(fault);
  lying.liar().Watch([&](const SeenRound& seen) {
    if (seen.id.step != std::string("pre-auth timestamp")) return;
    for (const Block& block : OpenedIn(seen)) scores.Add(block);
  });
  lying.liar().ArmAll(FaultInRound(fault, 10, {lanes, 2, text_lanes}));
  if (TestedSecurity() == Security::kActive) {
    lying.ExpectCaught(realm.RunEach(realm.Login(realm.alice)));
    EXPECT_EQ(scores.blocks(), 0u) << "a time stamp was opened";
    return;
  }
  int logins = 0;
  for (; !scores.Best() && logins < 10; ++logins) {
    EXPECT_FALSE(realm.Run(realm.Login(realm.alice)).judgement.ok());
  }
  lying.liar().Disarm();
  std::printf("P%d: a time stamp's key from %d logins of its owner\n", GetParam(), logins);
  ASSERT_TRUE(scores.Best().has_value());
  const std::vector<uint8_t> key = KeyFromLastRoundKey(*scores.Best());
  const SecretBytes right = PlainUsageKey(realm.alice.base, kUsagePreauth);
  ASSERT_EQ(key, std::vector<uint8_t>(right.begin(), right.end()));

  // The attacker logs in as Alice.
  GcmNonce nonce;
  realm.random().Fill(absl::MakeSpan(nonce));
  const auto forged = PlainSeal(key, nonce, {}, AsBytes(EncodePreauthTimestamp(absl::Now())));
  const JobResult login =
      realm.Run(realm.Login(realm.alice, std::string(forged.begin(), forged.end())));
  EXPECT_VERDICT(login, Verdict::kOk);
}

// ---- With the KDC: one ticket that is opened ----

// The owner of the KDC asks for any ticket to be opened and gets the keystream of its text; a long
// one gives the last round key with half of its lanes and the one before with the others.
TEST_P(LiarTest, WithTheKdcOneOpenTicketGivesKrbtgtsKey) {
  LyingRealm lying(GetParam(), kEnctypeAes128Gcm);
  Realm& realm = lying.realm();
  const SboxFault fault = BestFault(Sbox::kLatency);
  constexpr size_t kText = 1500, kTextLanes = (kText + 15) / 16, kLanes = 2 + kTextLanes;
  constexpr size_t kHalf = kTextLanes / 2;
  const JobResult login = realm.Run(LoginJob(realm.NextId(), realm.alice, realm.tgt,
                                             realm.Preauth(realm.alice), {.ticket = kText}));
  ASSERT_VERDICT_OK(login);
  const std::string ticket = realm.FinishSeal(login, 0, std::string(kText, 't'));

  std::vector<Lie> faults = FaultInRound(fault, kAes256Rounds, {kLanes, 2, kHalf});
  for (Lie& d : FaultInRound(fault, kAes256Rounds - 1, {kLanes, 2 + kHalf, kTextLanes - kHalf})) {
    faults.push_back(std::move(d));
  }
  lying.liar().ArmAll(std::move(faults));
  const PerParty<JobResult> answers = realm.RunEach(realm.OpenTicket(ticket));
  if (TestedSecurity() == Security::kActive) return lying.ExpectCaught(answers);
  const JobResult opened = Combine(answers);
  ASSERT_VERDICT_OK(opened);
  const std::vector<Block> blocks = WholeBlocks(GcmOf(opened.opens[0]).share);
  RoundKeyScores last(fault), before(fault);
  for (size_t i = 0; i < kHalf; ++i) last.Add(blocks[i]);
  ASSERT_TRUE(last.Best().has_value());
  for (size_t i = kHalf; i < blocks.size(); ++i) {
    before.Add(BeforeLastRound(blocks[i], *last.Best()));
  }
  ASSERT_TRUE(before.Best().has_value());
  const SecretBytes right = PlainUsageKey(realm.tgt.base, kUsageTicket);
  EXPECT_EQ(KeyFromLastRoundKeys(MixColumnsOf(*before.Best()), *last.Best()),
            std::vector<uint8_t>(right.begin(), right.end()));
}

INSTANTIATE_TEST_SUITE_P(Servers, LiarTest, ::testing::Values(0, 1, 2));

// ---- A user's key of enctype 19 or 20, without an account: ciphertexts that are opened ----

// Under 19 and 20 the servers open the reply's ciphertext to each other before its HMAC is
// computed. Each block of the chain is a ciphertext block with a plaintext that nobody needs to
// know.
class OpenedCiphertextTest : public ::testing::TestWithParam<int32_t> {
 protected:
  OpenedCiphertextTest()
      : wide_(GetParam() == kEnctypeAes256Sha384),
        fault_(BestFault(Sbox::kLatency)),
        lying_(0, GetParam(), InRounds()) {
    lying_.liar().Watch([this](const SeenRound& seen) {
      if (seen.id.step == std::string("ciphertext")) opened_ = OpenedIn(seen);
    });
  }

  size_t Rounds() const { return wide_ ? 14 : 10; }

  // In the round, counted from AES's last (0), of every block of a chain.
  std::vector<Lie> FaultInChain(size_t from_last) const {
    const size_t stages = StagesOf(fault_.sbox);
    std::vector<Lie> lies =
        FaultInRound(fault_, Rounds() - from_last, {.lanes = 1, .first = 0, .count = 1});
    for (Lie& d : lies) {
      d.where = [this, stages, inner = std::move(d.where)](const RoundId& id) {
        if (!absl::StartsWith(id.step, "aes/")) return false;
        return inner({.round = static_cast<uint16_t>(id.round % (Rounds() * stages))});
      };
    }
    return lies;
  }

  // A reply for Alice, of her login `grant`; each grant pays for two.
  PerParty<JobResult> Reply(JobId grant) {
    Realm& realm = lying_.realm();
    const Job job = realm.Granted(
        grant, realm.alice,
        {realm.alice.info.handle, kUsageAsReply, static_cast<uint32_t>(kReply.size())});
    return realm.Run(WithTexts(job, kReply, realm.random()));
  }
  JobId LogIn() {
    const JobResult login = lying_.realm().Run(lying_.realm().Login(lying_.realm().alice));
    EXPECT_VERDICT(login, Verdict::kOk);
    return login.id;
  }
  // All blocks but the cut one.
  std::vector<Block> FaultyCiphertext(size_t from_last) {
    const JobId grant = LogIn();
    lying_.liar().ArmAll(FaultInChain(from_last));
    const JobResult reply = Combine(Reply(grant));
    lying_.liar().Disarm();
    ++replies_;
    EXPECT_VERDICT(reply, Verdict::kOk);
    if (opened_.empty()) return {};
    opened_.pop_back();
    return opened_;
  }

  std::vector<uint8_t> StealKey() {
    constexpr int kMostReplies = 6;
    RoundKeyScores last(fault_), before(fault_);
    while (!last.Best() && replies_ < kMostReplies) {
      for (const Block& block : FaultyCiphertext(0)) last.Add(block);
    }
    if (!last.Best()) return {};
    if (!wide_) return KeyFromLastRoundKey(*last.Best());
    while (!before.Best() && replies_ < kMostReplies) {
      for (const Block& block : FaultyCiphertext(1)) {
        before.Add(BeforeLastRound(block, *last.Best()));
      }
    }
    if (!before.Best()) return {};
    return KeyFromLastRoundKeys(MixColumnsOf(*before.Best()), *last.Best());
  }

  const std::string kReply = std::string("session key etc. ") + std::string(255, 'R');
  const bool wide_;
  const SboxFault fault_;
  std::vector<Block> opened_;  // of the last reply
  int replies_ = 0;
  LyingRealm lying_;
};

TEST_P(OpenedCiphertextTest, AFewRepliesGiveTheKeyThatReadsAllReplies) {
  if (TestedSecurity() == Security::kActive) {
    const JobId grant = LogIn();
    lying_.liar().ArmAll(FaultInChain(0));
    lying_.ExpectCaught(Reply(grant));
    EXPECT_TRUE(opened_.empty()) << "a ciphertext was opened";
    return;
  }
  const std::vector<uint8_t> key = StealKey();
  std::printf("enctype %d: %d replies\n", GetParam(), replies_);
  Realm& realm = lying_.realm();
  const SecretBytes right =
      *DeriveKey(*FindEnctype(GetParam()), realm.alice.base, kUsageAsReply, DerivedKeyKind::kKe);
  ASSERT_EQ(key, std::vector<uint8_t>(right.begin(), right.end()));

  // Alice tries again, and nobody alters anything; what passes on the network is read: CBC, of
  // which the last two blocks are left out.
  const JobResult reply = Combine(Reply(LogIn()));
  ASSERT_VERDICT_OK(reply);
  const std::vector<Block> sent = WholeBlocks(CtsOf(reply.seals[0]).share);
  std::string text;
  for (size_t i = 1; i + 2 < (kConfounderBytes + kReply.size()) / sizeof(Block); ++i) {
    const Block plain = XorBlocks(PlainAes(key, sent[i], /*encrypt=*/false), sent[i - 1]);
    text.append(plain.begin(), plain.end());
  }
  EXPECT_GT(text.size(), 100u);
  EXPECT_EQ(text, kReply.substr(0, text.size()));
}

INSTANTIATE_TEST_SUITE_P(Enctypes, OpenedCiphertextTest,
                         ::testing::Values(kEnctypeAes128Sha256, kEnctypeAes256Sha384));

}  // namespace
}  // namespace mpckdc
