// SPDX-License-Identifier: Apache-2.0
//
// What the owner of one server tries against the garbled circuits of logins of types 17 to 20
// (garble/): each deviation of the table in doc/protocol.md, against three engines and real
// batches.
//
// Built twice: as the servers are, and as a control whose defences can be dropped one by one
// (MPCKDC_CONTROL, the mutants Garbled*.patch): there the same deviation is not stopped.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/share/pairwise_streams.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/wire/frame_format.h"
#ifdef MPCKDC_CONTROL
#include "mpc-server/testing/control.h"
#endif

namespace mpckdc {
namespace {

// As it stands in a message: 128 bits; Delta's lowest one is 1.
struct Label {
  uint64_t low, high;
};

constexpr size_t kConfirmBytes = sizeof(Digest);  // of the view, before a batch's first message

uint32_t BatchOf(const MemoryRing::Intercepted& m) {
  FrameHeader header;
  return ReadFrameHeader(m.header.data(), &header).ok() ? header.batch : 0;
}

EngineOptions Together() {
  EngineOptions options;
  options.mode = BatchMode::kFixed;
  options.batch_window = absl::Milliseconds(50);
  return options;
}

// ---- One message, or one server's shares ----

// Of a batch's first run, by the batch's number. Whoever is G1 comes after E, then G2.
enum Role { kE, kG1, kG2 };
const char* const kRoleNames[] = {"E", "G1", "G2"};
int PartyOf(Role role, uint32_t batch) { return static_cast<int>((batch + role) % kParties); }
Role RoleOf(int party, uint32_t batch) {
  return static_cast<Role>((static_cast<uint32_t>(party) + 2 * batch) % kParties);
}

// What a run of this shape sends, without what confirms the view: bytes by sender, receiver, round.
class Sizes {
 public:
  void Add(Role from, Role to, size_t round, size_t bytes) {
    std::vector<size_t>& rounds = rounds_[{from, to}];
    if (rounds.size() <= round) rounds.resize(round + 1);
    rounds[round] = bytes;
  }
  // The last one in which it sends something.
  size_t LastRound(Role from, Role to) const {
    const auto& rounds = rounds_.at({from, to});
    size_t last = rounds.size();
    while (last > 0 && rounds[last - 1] == 0) --last;
    return last - 1;
  }
  size_t All(Role from, Role to) const {
    size_t all = 0;
    for (const size_t bytes : rounds_.at({from, to})) all += bytes;
    return all;
  }
  size_t Before(Role from, Role to, size_t round) const {
    const auto& rounds = rounds_.at({from, to});
    size_t before = 0;
    for (size_t i = 0; i < round && i < rounds.size(); ++i) before += rounds[i];
    return before;
  }

 private:
  std::map<std::pair<Role, Role>, std::vector<size_t>> rounds_;
};

// A byte of what one sends to another in a run; from the end if negative.
struct Lie {
  const char* what;
  Role liar, to;
  ptrdiff_t at;
  Role finder;
  // Who is named: the liar, or both neighbours of the finder.
  bool alone;
  const char* text;
  const char* defence;  // without which it is not found, or not so
  // Of the first round with something to send, or of the whole run.
  bool first_round = false;
};

constexpr char kTables[] = "sent are not those that";
constexpr char kLabel[] = "sent a label of another share than this one";
constexpr char kBits[] = "names bits whose labels it does not have";
constexpr char kSum[] = "part of their sum do not fit";

// What a pre-authentication's run ends with: its text is shown gated by the verdict, and goes out.
// Its length depends on the microseconds.
absl::Time LongNow() {
  return absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now())) + absl::Milliseconds(900);
}
const size_t kTimeBytes = EncodePreauthTimestamp(LongNow()).size();
const auto kOutputBits = static_cast<ptrdiff_t>(8 * (kConfounderBytes + kTimeBytes));
constexpr ptrdiff_t kLabelBytes = sizeof(Label);
// From the end of G1's stream: rows of outputs, permute bits of the time, of the verdict.
const ptrdiff_t kRowsAt = -kLabelBytes * kOutputBits;
const auto kPermuteAt =
    kRowsAt - kLabelBytes * static_cast<ptrdiff_t>((8 * kTimeBytes + 127) / 128) - kLabelBytes;

const Lie kLies[] = {
    {"another start of the hash's keys", kG1, kE, 3, kE, false, kTables, "GarbledMac"},
    {"another commitment", kG1, kE, kLabelBytes + 5, kE, false, kTables, "GarbledMac"},
    {"another row of a gate", kG1, kE, kPermuteAt - 1, kE, false, kTables, "GarbledMac"},
    {"another permute bit of the verdict", kG1, kE, kPermuteAt, kE, false, kTables, "GarbledMac"},
    {"another permute bit of the time", kG1, kE, kRowsAt - 16, kE, false, kTables, "GarbledMac"},
    {"another row of an output", kG1, kE, -1, kE, false, kTables, "GarbledMac"},
    {"no label of u", kG1, kE, -1, kE, true, kLabel, "GarbledLabelU", true},
    {"no label of w", kG2, kE, -1, kE, true, kLabel, "GarbledLabelW", true},
    {"another MAC", kG2, kE, -1, kE, false, kTables, "GarbledMac"},
    {"another verdict to G1", kE, kG1, 0, kG1, true, kBits, "GarbledVerdict"},
    {"another verdict to G2", kE, kG2, 0, kG2, true, kBits, "GarbledVerdict"},
    {"another time to G1", kE, kG1, 7, kG1, true, kBits, "GarbledVerdict"},
    {"another time to G2", kE, kG2, 7, kG2, true, kBits, "GarbledVerdict"},
    {"another hash of labels to G2", kE, kG2, -1, kG2, true, kBits, "GarbledVerdict"},
    {"other outputs", kE, kG1, -kLabelBytes - 1, kG1, false, kSum, "GarbledSum"},
    {"another sum of tokens", kE, kG1, -1, kG1, false, kSum, "GarbledSum"},
    {"another part of the sum", kG2, kG1, 0, kG1, false, kSum, "GarbledSum"},
};

// Three engines whose wires are watched. A batch is one pre-authentication, so one run; its time is
// far from a heartbeat's.
class Wires {
 public:
  // `sizes`: of an honest run.
  Wires(int32_t enctype, const Sizes& sizes) : sizes_(sizes), realm_(enctype) {
    realm_.hub().SetInterceptor([this](MemoryRing::Intercepted& m) { See(m); });
    realm_.RestartAll();
  }

  Realm& realm() { return realm_; }
  // Which lie from the next batch on, and how often; null: none.
  void Tell(const Lie* lie) {
    const absl::MutexLock lock(&mu_);
    lie_ = lie;
    told_ = 0;
    result_left_ = false;
  }
  size_t told() {
    const absl::MutexLock lock(&mu_);
    return told_;
  }
  // Whether E sent a result since.
  bool result_left() {
    const absl::MutexLock lock(&mu_);
    return result_left_;
  }
  uint32_t batch() {
    const absl::MutexLock lock(&mu_);
    return batch_;
  }
  // Of all messages, before they are altered.
  using Alter = std::function<void(Role from, Role to, size_t round, absl::Span<uint8_t> bytes)>;
  void SetAlter(Alter alter) {
    const absl::MutexLock lock(&mu_);
    alter_ = std::move(alter);
  }
  // No result of E's to that one any more; -1: to both again.
  void HoldBack(int from_role) {
    const absl::MutexLock lock(&mu_);
    held_back_ = from_role;
  }
  Sizes sizes() {
    const absl::MutexLock lock(&mu_);
    return sizes_;
  }

 private:
  void See(MemoryRing::Intercepted& m) {
    if (m.type != FrameType::kRound) return;
    const size_t skip = m.round == 0 ? kConfirmBytes : 0;
    if (m.payload.size() < skip) return;
    const absl::MutexLock lock(&mu_);
    const absl::Span<uint8_t> bytes = m.payload.subspan(skip);
    if (bytes.empty()) return;
    batch_ = BatchOf(m);
    const Role from = RoleOf(m.from, batch_), to = RoleOf(m.to, batch_);
    if (from == kE) result_left_ = true;
    if (from == kE && to == held_back_) m.drop = true;
    if (alter_) alter_(from, to, m.round, bytes);
    if (lie_ == nullptr) {
      sizes_.Add(from, to, m.round, bytes.size());
    } else if (from == lie_->liar && to == lie_->to) {
      Alter1(m.round, bytes);
    }
  }
  void Alter1(size_t round, absl::Span<uint8_t> bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const Lie& lie = *lie_;
    if (lie.first_round && round > 0) return;
    const size_t all = lie.first_round ? bytes.size() : sizes_.All(lie.liar, lie.to);
    const size_t before = sizes_.Before(lie.liar, lie.to, round);
    const auto at = static_cast<size_t>(lie.at + (lie.at < 0 ? static_cast<ptrdiff_t>(all) : 0));
    if (at < before || at >= before + bytes.size()) return;
    bytes[at - before] ^= 1;
    ++told_;
  }

  absl::Mutex mu_;
  Sizes sizes_ ABSL_GUARDED_BY(mu_);  // of honest runs
  const Lie* lie_ ABSL_GUARDED_BY(mu_) = nullptr;
  Alter alter_ ABSL_GUARDED_BY(mu_);
  int held_back_ ABSL_GUARDED_BY(mu_) = -1;
  size_t told_ ABSL_GUARDED_BY(mu_) = 0;
  bool result_left_ ABSL_GUARDED_BY(mu_) = false;
  uint32_t batch_ ABSL_GUARDED_BY(mu_) = 0;
  Realm realm_;
};

// What the three ended with.
struct End {
  PerParty<JobResult> answers;
  JobResult combined;
  uint32_t batch;
  size_t told;
  bool result_left;
};

class GarbledAttack {
 public:
  explicit GarbledAttack(int32_t enctype) : wires_(enctype, SizesOf(enctype)) {}

  Realm& realm() { return wires_.realm(); }
  Wires& wires() { return wires_; }
  bool AnySees() { return SeenBy(0) || SeenBy(1) || SeenBy(2); }
  // A reply to somebody whose gate is the KDC: one text to seal.
  PerParty<Job> SealReply(const std::string& text) {
    const PlainKey& user = realm().otp;
    Job job = realm().Granted(
        0, user, {user.info.handle, kUsageAsReply, static_cast<uint32_t>(text.size())});
    job.operation = Operation::kLogin;
    return WithTexts(job, text, realm().random());
  }
  Job OpenPreauth() { return OpenPreauth(realm(), realm().alice); }
  static Job OpenPreauth(Realm& realm, const PlainKey& key, absl::Time when = LongNow()) {
    return realm.OpenPreauth(realm.alice, SealPreauth(key, when, realm.random()));
  }

  End Run(const PerParty<Job>& jobs, const Lie* lie) {
    wires_.Tell(lie);
    End end{realm().Run(jobs), {}, 0, 0, false};
    end.combined = Combine(end.answers);
    end.batch = wires_.batch();
    end.told = wires_.told();
    end.result_left = wires_.result_left();
    return end;
  }
  End Run(const Job& job, const Lie* lie) { return Run(PerParty<Job>{job, job, job}, lie); }

  std::optional<DeviationReport> SeenBy(int party) {
    return realm().engine(party).Status().quarantine;
  }
  // Whether the finder says so within a while, and names those whom it has to.
  bool Found(const Lie& lie, uint32_t batch, absl::Duration within = absl::Seconds(3)) {
    const int finder = PartyOf(lie.finder, batch);
    if (!Eventually([&] { return SeenBy(finder).has_value(); }, within)) return false;
    const DeviationReport seen = *SeenBy(finder);
    const Suspects want =
        lie.alone ? Suspects::One(PartyOf(lie.liar, batch)) : Suspects::Neighbours(finder);
    return seen.suspects == want && absl::StrContains(seen.text, lie.text);
  }
  // No honest server is accused alone, whoever accuses; the liar's own word counts for nothing.
  void ExpectNoHonestServerAccusedAlone(int liar) {
    for (int p = 0; p < kParties; ++p) {
      const auto seen = SeenBy(p);
      if (p == liar || !seen.has_value()) continue;
      EXPECT_TRUE(seen->suspects.Has(liar)) << seen->text;
      EXPECT_FALSE(seen->suspects.Has(p)) << seen->text;
    }
  }

 private:
  // Of an honest pre-authentication.
  static const Sizes& SizesOf(int32_t enctype) {
    static auto& sizes = *new std::map<int32_t, Sizes>;
    const auto [place, is_new] = sizes.try_emplace(enctype);
    if (!is_new) return place->second;
    Wires wires(enctype, {});
    Realm& realm = wires.realm();
    EXPECT_VERDICT(realm.Run(OpenPreauth(realm, realm.alice)), Verdict::kOk);
    return place->second = wires.sizes();
  }

  Wires wires_;
};

// Enctype, and how many batches were honest: so each server is E.
class LiesTest : public ::testing::TestWithParam<std::tuple<int32_t, int>> {
 protected:
  // The finder's report of its batch is what it quarantines itself for; both go into logs.
  static void ExpectReported(GarbledAttack& attack, int finder) {
    const absl::Status reported = attack.realm().recorder(finder).Batches().back().status;
    ASSERT_TRUE(SuspectsOf(reported).has_value()) << reported;
    EXPECT_EQ(reported.message(), attack.SeenBy(finder)->text);
    EXPECT_EQ(*SuspectsOf(reported), attack.SeenBy(finder)->suspects);
  }
};

TEST_P(LiesTest, AreFoundWhereTheTableSays) {
  const auto [enctype, honest] = GetParam();
  for (const Lie& lie : kLies) {
    SCOPED_TRACE(lie.what);
    GarbledAttack attack(enctype);
    for (int i = 0; i < honest; ++i) {
      ASSERT_VERDICT_OK(attack.Run(attack.OpenPreauth(), nullptr).combined);
    }
    const End end = attack.Run(attack.OpenPreauth(), &lie);
    EXPECT_EQ(end.told, 1u);
    EXPECT_FALSE(end.combined.judgement.ok()) << "the KDC has nothing";
    ASSERT_TRUE(attack.Found(lie, end.batch));
    const int finder = PartyOf(lie.finder, end.batch), liar = PartyOf(lie.liar, end.batch);
    attack.ExpectNoHonestServerAccusedAlone(liar);
    ExpectReported(attack, finder);
    EXPECT_VERDICT(end.answers[finder], Verdict::kUnavailable);
    if (lie.finder == kE) {
      EXPECT_FALSE(end.result_left) << "E tells nothing before it has checked";
      for (const JobResult& answer : end.answers) EXPECT_VERDICT(answer, Verdict::kUnavailable);
    }
    if (honest == 0) {
      std::printf("enctype %d, %s of %s: %s\n", enctype, lie.what, kRoleNames[lie.liar],
                  attack.SeenBy(finder)->text.c_str());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Enctypes, LiesTest,
                         ::testing::Combine(::testing::Values(17, 18, 19, 20),
                                            ::testing::Values(0, 1, 2)));

// Whoever alters the commitment to one value of a bit learns nothing from the failure: it comes for
// both values, in the same words.
TEST(CommitmentTest, WhetherARunFailsTellsNoBit) {
  for (size_t commitment = 0; commitment < 24; ++commitment) {
    const auto at = static_cast<ptrdiff_t>(sizeof(Label) * (1 + commitment));
    const Lie lie = {"another commitment", kG1, kE, at, kE, false, kTables, ""};
    GarbledAttack attack(kEnctypeAes128Sha1);
    const End end = attack.Run(attack.OpenPreauth(), &lie);
    EXPECT_EQ(end.told, 1u);
    EXPECT_TRUE(attack.Found(lie, end.batch)) << commitment;
    EXPECT_FALSE(end.result_left);
  }
}

// ---- A whole login ----

// The ticket is made in rounds beside the pre-authentication's run; then comes the request's
// checksum.
class LoginTest : public ::testing::TestWithParam<int32_t> {
 protected:
  // A long message of G1 to E is altered: the first one, or the first behind a round without one.
  void ExpectFound(bool of_checksum) {
    constexpr Role liar = kG1, evaluator = kE;
    GarbledAttack attack(GetParam());
    bool told = false, ended = false;
    std::optional<size_t> last;
    attack.wires().SetAlter([&](Role from, Role to, size_t round, absl::Span<uint8_t> bytes) {
      if (told || from != liar || to != evaluator || bytes.size() < 4000) return;
      ended = ended || (last.has_value() && round > *last + 1);
      last = round;
      if (of_checksum && !ended) return;
      bytes[40] ^= 1;
      told = true;
    });
    Realm& realm = attack.realm();
    const End end = attack.Run(realm.Login(realm.alice), nullptr);
    EXPECT_TRUE(told);
    for (const JobResult& answer : end.answers) EXPECT_VERDICT(answer, Verdict::kUnavailable);
    const Lie lie = {"a table", liar, evaluator, 0, evaluator, false, kTables, ""};
    EXPECT_TRUE(attack.Found(lie, end.batch));
    attack.ExpectNoHonestServerAccusedAlone(PartyOf(liar, end.batch));
  }
};

TEST_P(LoginTest, AnAlteredPreauthenticationEndsItAll) { ExpectFound(false); }
TEST_P(LoginTest, AnAlteredChecksumEndsItAll) { ExpectFound(true); }

INSTANTIATE_TEST_SUITE_P(Enctypes, LoginTest, ::testing::Values(17, 18, 19, 20));

// ---- What is no message of a run ----

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

// Permute bits are G1's and G2's component of an output, E's is G1's too: whoever gives the KDC
// another one is contradicted by its other holder.
TEST(OutputTest, AnotherComponentIsNamedByTheKdc) {
  GarbledAttack attack(kEnctypeAes128Sha256);
  for (int liar = 0; liar < kParties; ++liar) {
    End end = attack.Run(attack.OpenPreauth(), nullptr);
    ASSERT_VERDICT_OK(end.combined);
    std::visit([](auto& open) { open.share[3] ^= 1; }, end.answers[liar].opens[0]);
    const JobResult combined = Combine(end.answers);
    EXPECT_EQ(combined.judgement.verdict, Verdict::kInconsistent);
    EXPECT_THAT(combined.judgement.detail, ::testing::HasSubstr(absl::StrCat("P", liar)));
  }
}

// Two evaluations of one garbling on different inputs would be two labels of a wire.
TEST(OneGarblingDeathTest, KeysAreDrawnOnce) {
  PairwiseStreams streams(1, PairwiseSeeds());
  std::array<uint8_t, 32> own, next;
  const auto draw = [&](uint32_t batch, uint32_t number) {
    streams.FillGarbling({batch, number, 0}, absl::MakeSpan(own), absl::MakeSpan(next));
  };
  draw(1, 0);
  draw(1, 1);
  draw(2, 0);
  EXPECT_DEATH(draw(2, 0), "used twice");
  EXPECT_DEATH(draw(1, 2), "used twice");
}

// ---- Two stories ----

// A follower that evaluates tells one garbler that it refuses the first of two jobs, and the other
// that it takes it. The two then garble different circuits, in the batch's first round, before they
// compare what they believe in. Were their draws the same, labels of the one would be labels of the
// other under another bit, and their difference the Delta that an evaluator must never have.
class TwoStoriesTest : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  TwoStoriesTest() : realm_(kEnctypeAes256Sha1, Together()) {
    realm_.hub().SetInterceptor([this](MemoryRing::Intercepted& m) { See(m); });
    realm_.RestartAll();
  }

  int liar() const { return std::get<0>(GetParam()); }
  // Who is told that the job is refused.
  int fooled() const { return std::get<1>(GetParam()) ? NextParty(liar()) : PrevParty(liar()); }

  void Lie() {
    for (int tries = 0; tries < 20 && lied_in_ == 0; ++tries) {
      // Garbage is enough: anybody may send it.
      realm_.RunAll({realm_.OpenPreauth(realm_.alice, realm_.AlteredPreauth(realm_.alice)),
                     realm_.OpenPreauth(realm_.bob, realm_.AlteredPreauth(realm_.bob))});
    }
    ASSERT_NE(lied_in_, 0u);
    for (const int garbler : {NextParty(liar()), PrevParty(liar())}) {
      ASSERT_GT(labels_[garbler].size(), 1000u);
    }
  }
  // Where the same draws stand at two places, labels are equal or differ by Delta: how often they
  // do by the most frequent difference.
  size_t Deltas() {
    const std::vector<Label>& first = labels_[NextParty(liar())];
    const std::vector<Label>& second = labels_[PrevParty(liar())];
    std::map<std::pair<uint64_t, uint64_t>, size_t> places, differences;
    for (size_t i = 0; i < first.size(); ++i) places[{first[i].low, first[i].high}] = i;
    std::optional<size_t> shift;
    for (size_t j = 0; j < second.size() && !shift.has_value(); ++j) {
      const auto place = places.find({second[j].low, second[j].high});
      if (place != places.end()) shift = place->second - j;
    }
    if (!shift.has_value()) return 0;
    size_t most = 1;  // there is an equal one
    for (size_t j = 0; j < second.size() && j + *shift < first.size(); ++j) {
      const Label &a = first[j + *shift], &b = second[j];
      if (((a.low ^ b.low) & 1) == 0) continue;
      most = std::max(most, ++differences[{a.low ^ b.low, a.high ^ b.high}]);
    }
    std::printf("P%d has Delta: %zu labels of the two garblers differ by it\n", liar(), most);
    return most;
  }

  void See(MemoryRing::Intercepted& m) {
    if (m.type == FrameType::kAgreement && m.from == liar() && m.payload[0] == 2) {
      auto vote = DecodeVote(AsText(m.payload));
      if (!vote.ok() || vote->codes.size() != 2) return;
      if (vote->number % kParties != static_cast<uint32_t>(liar())) return;
      lied_in_ = vote->number;
      if (m.to != fooled()) return;
      vote->codes[0] = CodeOf(Verdict::kRefused);
      m.instead = EncodeVote(*vote);
    }
    if (m.type != FrameType::kRound || m.to != liar() || BatchOf(m) != lied_in_) return;
    auto& labels = labels_[m.from];
    for (size_t at = kConfirmBytes; at + sizeof(Label) <= m.payload.size(); at += sizeof(Label)) {
      std::memcpy(&labels.emplace_back(), &m.payload[at], sizeof(Label));
    }
  }

  Realm realm_;
  std::atomic<uint32_t> lied_in_{0};
  std::map<int, std::vector<Label>> labels_;  // by sender
};

TEST_P(TwoStoriesTest, GiveTheEvaluatorNoDelta) {
  Lie();
  EXPECT_EQ(Deltas(), 0u);
}

#ifdef MPCKDC_CONTROL
// One lane more at G1 than at G2; the other way around what is drawn alike is not sent.
TEST_P(TwoStoriesTest, GiveItDeltaWhereKeysDoNotFollowFromThem) {
  DropForTest("GarbledAgreed");
  Lie();
  UpholdForTest("GarbledAgreed");
  const size_t deltas = Deltas();
  EXPECT_EQ(deltas > 300, fooled() == PrevParty(liar())) << deltas;
}
#endif

INSTANTIATE_TEST_SUITE_P(Liars, TwoStoriesTest,
                         ::testing::Combine(::testing::Values(1, 2), ::testing::Bool()));

#ifdef MPCKDC_CONTROL
// ---- Without a check ----

class Without {
 public:
  explicit Without(std::string defence) : defence_(std::move(defence)) { DropForTest(defence_); }
  ~Without() { UpholdForTest(defence_); }
  Without(const Without&) = delete;
  Without& operator=(const Without&) = delete;

 private:
  const std::string defence_;
};

constexpr absl::Duration kShort = absl::Milliseconds(300);

std::string Accusations(GarbledAttack& attack) {
  std::string text;
  for (int p = 0; p < kParties; ++p) {
    if (const auto seen = attack.SeenBy(p)) {
      absl::StrAppend(&text, " P", p, " accuses ", seen->suspects.Text());
    }
  }
  return text.empty() ? " nobody is accused" : text;
}

TEST(ControlTest, WithoutItsCheckNoLieIsFound) {
  for (const Lie& lie : kLies) {
    SCOPED_TRACE(lie.what);
    const Without check(lie.defence);
    GarbledAttack attack(kEnctypeAes256Sha1);
    const End end = attack.Run(attack.OpenPreauth(), &lie);
    EXPECT_EQ(end.told, 1u);
    EXPECT_FALSE(attack.Found(lie, end.batch, kShort));
    std::printf("without %s, %s of P%d: %s,%s\n", lie.defence, lie.what,
                PartyOf(lie.liar, end.batch),
                std::string(VerdictName(end.combined.judgement.verdict)).c_str(),
                Accusations(attack).c_str());
  }
}

// Shares that are not those that the other holder has: of another record, or of another text.
const Lie kOtherShares[] = {
    {"G1 m", kG1, kE, 0, kE, false, kTables, "GarbledMac"},
    {"G2 m", kG2, kE, 0, kE, false, kTables, "GarbledMac"},
    {"G1 u", kG1, kE, 0, kE, true, kLabel, "GarbledLabelU"},
    {"G2 w", kG2, kE, 0, kE, true, kLabel, "GarbledLabelW"},
    {"G1 u", kG1, kE, 0, kE, true, kLabel, "GarbledOrder"},
    {"G2 w", kG2, kE, 0, kE, true, kLabel, "GarbledOrder"},
};

TEST(ControlTest, OtherSharesAreFound) {
  for (const int32_t enctype : {17, 18, 19, 20}) {
    for (const Lie& lie : kOtherShares) {
      for (const bool seal : {false, true}) {
        SCOPED_TRACE(lie.what);
        GarbledAttack attack(enctype);
        const Without honesty(absl::StrCat("GarbledShares ", lie.what));
        const End end = seal ? attack.Run(attack.SealReply("reply"), nullptr)
                             : attack.Run(attack.OpenPreauth(), nullptr);
        for (const JobResult& answer : end.answers) EXPECT_VERDICT(answer, Verdict::kUnavailable);
        EXPECT_TRUE(attack.Found(lie, end.batch)) << Accusations(attack);
        EXPECT_FALSE(end.result_left);
        attack.ExpectNoHonestServerAccusedAlone(PartyOf(lie.liar, end.batch));
      }
    }
  }
}

// One garbler alters a text, whose HMAC is right then.
TEST(ControlTest, WithoutCommitmentsATextIsAltered) {
  for (const Lie& lie : kOtherShares) {
    SCOPED_TRACE(absl::StrCat(lie.what, " without ", lie.defence));
    GarbledAttack attack(kEnctypeAes256Sha1);
    const Without honesty(absl::StrCat("GarbledShares ", lie.what)), check(lie.defence);
    const End end = attack.Run(attack.SealReply("reply"), nullptr);
    EXPECT_FALSE(attack.Found(lie, end.batch, kShort));
    std::string opened = "nothing";
    if (!end.combined.seals.empty()) {
      opened = OracleOpen(attack.realm().otp, kUsageAsReply, CtsOf(end.combined.seals[0]).share)
                   .value_or("garbage");
    }
    std::printf("without %s, another %s: %s, %s,%s\n", lie.defence, lie.what,
                std::string(VerdictName(end.combined.judgement.verdict)).c_str(),
                absl::CHexEscape(opened).c_str(), Accusations(attack).c_str());
    if (lie.alone) {
      EXPECT_VERDICT(end.combined, Verdict::kOk);
      EXPECT_EQ(opened, "repl\xf9");
    }
  }
}

// A commitment is opened if the bit is the one that it is to: whether E fails tells the bit.
TEST(ControlTest, WithoutTheMacAFailureTellsABit) {
  const Without mac("GarbledMac");
  int taken = 0, refused = 0;
  for (size_t bit = 0; bit < 12; ++bit) {
    const Lie lie = {
        "another commitment", kG1, kE, static_cast<ptrdiff_t>(16 + 64 * bit), kE, false, kTables,
        "GarbledMac"};
    GarbledAttack attack(kEnctypeAes256Sha1);
    const End end = attack.Run(attack.OpenPreauth(), &lie);
    EXPECT_EQ(end.told, 1u);
    ++(end.combined.judgement.ok() ? taken : refused);
  }
  std::printf("of 12 altered commitments to 0 without the MAC: %d taken, %d refused\n", taken,
              refused);
  EXPECT_GT(taken, 0);
  EXPECT_GT(refused, 0);
}

// The evaluator lets a wrong password in: so far as the two others can tell.
TEST(ControlTest, WithoutTheLabelsHashAnyPasswordIsGood) {
  for (const bool dropped : {false, true}) {
    std::optional<Without> check;
    if (dropped) check.emplace("GarbledVerdict");
    GarbledAttack attack(kEnctypeAes256Sha1);
    const std::string time = EncodePreauthTimestamp(LongNow());
    attack.wires().SetAlter([&](Role from, Role, size_t, absl::Span<uint8_t> bytes) {
      if (from != kE) return;
      bytes[0] |= 1;  // good; the time's bits come next
      for (size_t i = 0; i < 8 * time.size(); ++i) {
        const uint8_t bit = static_cast<uint8_t>(time[i / 8]) >> i % 8 & 1;
        uint8_t& byte = bytes[(1 + i) / 8];
        byte = static_cast<uint8_t>((byte & ~(1 << (1 + i) % 8)) | bit << (1 + i) % 8);
      }
    });
    Realm& realm = attack.realm();
    const Job job = GarbledAttack::OpenPreauth(realm, WrongPassword(realm.alice));
    const End end = attack.Run(job, nullptr);
    for (const Role garbler : {kG1, kG2}) {
      EXPECT_VERDICT(end.answers[PartyOf(garbler, end.batch)],
                     dropped ? Verdict::kOk : Verdict::kUnavailable);
    }
  }
}

// The evaluator flips a bit of what the KDC gets, for itself and for G1.
TEST(ControlTest, WithoutTheSumOutputsAreAltered) {
  const auto lie = std::find_if(std::begin(kLies), std::end(kLies), [](const Lie& l) {
    return std::string(l.what) == "other outputs";
  });
  for (const bool dropped : {false, true}) {
    std::optional<Without> check;
    if (dropped) check.emplace("GarbledSum");
    GarbledAttack attack(kEnctypeAes256Sha1);
    const absl::Time when = LongNow();
    Realm& realm = attack.realm();
    End end = attack.Run(GarbledAttack::OpenPreauth(realm, realm.alice, when), &*lie);
    if (!dropped) {
      EXPECT_TRUE(attack.Found(*lie, end.batch));
      continue;
    }
    auto& own = end.answers[PartyOf(kE, end.batch)].opens;
    ASSERT_FALSE(own.empty());
    std::visit([](auto& open) { open.share.back() ^= 1; }, own[0]);
    const JobResult combined = Combine(end.answers);
    ASSERT_VERDICT_OK(combined);
    std::string altered = EncodePreauthTimestamp(when);
    altered.back() ^= 1;
    EXPECT_EQ(CtsOf(combined.opens[0]).share, altered);
  }
}

// Whether the verdict comes out right tells a garbler what its altered label did.
TEST(ControlTest, WithoutTheOrderTheEvaluatorTellsFirst) {
  const auto lie = std::find_if(std::begin(kLies), std::end(kLies), [](const Lie& l) {
    return std::string(l.what) == "no label of w";
  });
  for (const bool dropped : {false, true}) {
    std::optional<Without> check;
    if (dropped) check.emplace("GarbledFirst");
    GarbledAttack attack(kEnctypeAes256Sha1);
    const End end = attack.Run(attack.OpenPreauth(), &*lie);
    EXPECT_EQ(end.result_left, dropped);
  }
}
#endif  // MPCKDC_CONTROL

}  // namespace
}  // namespace mpckdc
