// SPDX-License-Identifier: Apache-2.0
//
// Key work as a garbled circuit: what it sends, and what becomes of who lies in it. That it gives
// what the rounds give is key_work_test's.
#include "mpc-server/compute/garbled_keys.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "mpc-server/compute/key_work.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/testing/nothing.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc {
namespace {

KeyInfo InfoOf(int32_t enctype, KeyClass key_class) {
  KeyInfo info;
  info.principal = "drawn@EXAMPLE.COM";
  info.principal_id = PrincipalIdOf(info.principal);
  info.kvno = 1;
  info.enctype = enctype;
  info.key_class = key_class;
  return info;
}

const Digest kAgreed = Sha256("a view");

using Records = std::array<KeyRecord, kParties>;

// Draws a key in each server's record.
std::array<absl::Status, kParties> Draw(MemoryRing& ring, const KeyInfo& info, Records& records) {
  return RunThreeParties(ring, 7, [&](PartyContext& party) {
    Nothing first;
    Cost cost;
    party.BeginBatch(1);
    auto record = DrawRecord(party, info, {CtsProtocol::kGarbled, kAgreed}, first, &cost);
    if (record.ok()) records[party.party()] = *std::move(record);
    return record.status();
  });
}
Records Drawn(int32_t enctype) {
  MemoryRing ring;
  Records records;
  for (const absl::Status& s : Draw(ring, InfoOf(enctype, KeyClass::kUser), records)) {
    EXPECT_TRUE(s.ok()) << s;
  }
  return records;
}

// How often each server says that the key is good, and its end.
struct Verified {
  std::array<absl::Status, kParties> ends;
  int good = 0, bad = 0;
};
Verified Verify(MemoryRing& ring, const Records& records) {
  Verified found;
  absl::Mutex mu;
  found.ends = RunThreeParties(ring, 8, [&](PartyContext& party) {
    const KeyRecord* const mine[] = {&records[party.party()]};
    Nothing first;
    Cost cost;
    party.BeginBatch(1);
    auto equal = VerifyRecords(party, mine, {CtsProtocol::kGarbled, kAgreed}, first, &cost);
    if (!equal.ok()) return equal.status();
    const absl::MutexLock lock(&mu);
    ++(equal->at(0) ? found.good : found.bad);
    return absl::OkStatus();
  });
  return found;
}

// ---- What is sent ----

class CostTest : public testing::TestWithParam<int32_t> {};

TEST_P(CostTest, IsAsDeclared) {
  for (const KeyClass key_class : {KeyClass::kUser, KeyClass::kService}) {
    Records records;
    for (KeyRecord& record : records) record.info = InfoOf(GetParam(), key_class);
    const auto flow = [&](PartyContext& party) { return std::make_unique<GarbledKeys>(party); };
    const auto draw = [&](PartyContext& party) {
      KeyRecord& record = records[party.party()];
      record.base.resize(BaseBlocks(GetParam()));
      party.DrawRandom(absl::MakeSpan(record.base));
      auto keys = flow(party);
      keys->BeginDraw(record, kAgreed);
      return keys;
    };
    const auto verify = [&](PartyContext& party) {
      const KeyRecord* const mine[] = {&records[party.party()], &records[party.party()]};
      auto keys = flow(party);
      keys->BeginVerify(mine, kAgreed);
      return keys;
    };
    const auto equal = [](int, const GarbledKeys& keys) {
      EXPECT_EQ(keys.equal(), std::vector<bool>({true, true}));
    };
    MemoryRing ring, again;
    EXPECT_EQ(RunCircuit(ring, draw, [](int, const GarbledKeys&) {}), absl::OkStatus());
    EXPECT_EQ(RunCircuit(again, verify, equal), absl::OkStatus());
  }
}

INSTANTIATE_TEST_SUITE_P(Enctypes, CostTest,
                         testing::Values(kEnctypeAes128Gcm, kEnctypeAes256Gcm, 17, 18, 19, 20));

// ---- Lies ----

// Of batch 1.
constexpr int kE = 1, kG1 = 2, kG2 = 0;
constexpr size_t kLabelBytes = 16;

using Sizes = std::map<std::pair<int, int>, std::vector<size_t>>;  // by sender and receiver

// A byte of what one sends to another, of all rounds; from the end if negative.
struct Lie {
  const char* what;
  int liar, to;
  ptrdiff_t at;
  bool of_first_round;
  int finder;
  bool alone;  // who is named: the liar, or both neighbours of the finder
  const char* text;
};

constexpr char kTables[] = "sent are not those that";
constexpr char kLabel[] = "sent a label of another share than this one";
constexpr char kBits[] = "names bits whose labels it does not have";
constexpr char kSum[] = "part of their sum do not fit";

const Lie kLiesOfDraws[] = {
    {"another row of a gate", kG1, kE, 500'000, false, kE, false, kTables},
    {"another row of an output", kG1, kE, -1, false, kE, false, kTables},
    {"no label of u", kG1, kE, -1, true, kE, true, kLabel},
    {"no label of w", kG2, kE, -1, true, kE, true, kLabel},
    {"another MAC", kG2, kE, -1, false, kE, false, kTables},
    {"other outputs", kE, kG1, -static_cast<ptrdiff_t>(kLabelBytes) - 1, false, kG1, false, kSum},
    {"another sum of tokens", kE, kG1, -1, false, kG1, false, kSum},
    {"another part of the sum", kG2, kG1, 0, false, kG1, false, kSum},
};
const Lie kLiesOfVerdicts[] = {
    {"another row of a gate", kG1, kE, 500'000, false, kE, false, kTables},
    {"another permute bit of the verdict", kG1, kE, -static_cast<ptrdiff_t>(kLabelBytes), false, kE,
     false, kTables},
    {"another verdict to G1", kE, kG1, 0, false, kG1, true, kBits},
    {"another verdict to G2", kE, kG2, 0, false, kG2, true, kBits},
};

// Watches, or alters one byte.
class Wire {
 public:
  explicit Wire(MemoryRing& ring, const Lie* lie = nullptr, Sizes sizes = {})
      : lie_(lie), sizes_(std::move(sizes)) {
    ring.SetInterceptor([this](MemoryRing::Intercepted& m) { See(m); });
  }
  Sizes sizes() {
    const absl::MutexLock lock(&mu_);
    return sizes_;
  }
  int told() {
    const absl::MutexLock lock(&mu_);
    return told_;
  }

 private:
  void See(MemoryRing::Intercepted& m) {
    if (m.type != FrameType::kRound || m.payload.empty()) return;
    const absl::MutexLock lock(&mu_);
    std::vector<size_t>& rounds = sizes_[{m.from, m.to}];
    if (lie_ == nullptr) {
      rounds.resize(m.round + size_t{1});
      rounds[m.round] = m.payload.size();
      return;
    }
    if (m.from != lie_->liar || m.to != lie_->to) return;
    size_t before = 0, all = 0;
    for (size_t i = 0; i < (lie_->of_first_round ? 1 : rounds.size()); ++i) {
      if (i < m.round) before += rounds[i];
      all += rounds[i];
    }
    const size_t at = static_cast<size_t>(lie_->at) + (lie_->at < 0 ? all : 0);
    if (lie_->of_first_round && m.round != 0) return;
    if (at < before || at >= before + m.payload.size()) return;
    m.payload[at - before] ^= 1;
    ++told_;
  }

  absl::Mutex mu_;
  const Lie* const lie_;
  Sizes sizes_ ABSL_GUARDED_BY(mu_);
  int told_ ABSL_GUARDED_BY(mu_) = 0;
};

void ExpectFound(const Lie& lie, const std::array<absl::Status, kParties>& ends) {
  const absl::Status& end = ends[lie.finder];
  const Suspects want = lie.alone ? Suspects::One(lie.liar) : Suspects::Neighbours(lie.finder);
  ASSERT_TRUE(SuspectsOf(end).has_value()) << end;
  EXPECT_EQ(*SuspectsOf(end), want) << end;
  EXPECT_TRUE(absl::StrContains(end.message(), lie.text)) << end;
  for (int p = 0; p < kParties; ++p) {
    const auto suspects = SuspectsOf(ends[p]);
    if (p == lie.liar || !suspects.has_value()) continue;
    EXPECT_TRUE(suspects->Has(lie.liar)) << ends[p];
  }
}

class LieTest : public testing::TestWithParam<int32_t> {};

TEST_P(LieTest, InADrawIsFound) {
  const KeyInfo info = InfoOf(GetParam(), KeyClass::kUser);
  MemoryRing honest;
  Wire watch(honest);
  Records records;
  for (const absl::Status& s : Draw(honest, info, records)) ASSERT_TRUE(s.ok()) << s;
  for (const Lie& lie : kLiesOfDraws) {
    SCOPED_TRACE(lie.what);
    MemoryRing ring;
    Wire wire(ring, &lie, watch.sizes());
    const auto ends = Draw(ring, info, records);
    EXPECT_EQ(wire.told(), 1);
    ExpectFound(lie, ends);
  }
}

TEST_P(LieTest, InAVerificationIsFound) {
  Records records = Drawn(GetParam());
  MemoryRing honest;
  Wire watch(honest);
  EXPECT_EQ(Verify(honest, records).good, 3);
  for (const bool bad : {false, true}) {
    if (bad) {
      for (KeyRecord& record : records) record.base[0].a[0] ^= 1;
    }
    for (const Lie& lie : kLiesOfVerdicts) {
      SCOPED_TRACE(lie.what);
      MemoryRing ring;
      Wire wire(ring, &lie, watch.sizes());
      const Verified found = Verify(ring, records);
      EXPECT_EQ(wire.told(), 1);
      ExpectFound(lie, found.ends);
      EXPECT_EQ(bad ? found.good : found.bad, 0) << "nobody believes another verdict";
    }
  }
}

// One server's record is not what its neighbours have: no verdict, whatever its part in the run.
TEST_P(LieTest, AnotherShareOfOneServerIsFound) {
  const Records good = Drawn(GetParam());
  for (int liar = 0; liar < kParties; ++liar) {
    for (const bool own : {false, true}) {
      SCOPED_TRACE(testing::Message() << "P" << liar << ", own component " << own);
      Records records = good;
      SharedBlock& block = records[liar].base[0];
      block.x[3] ^= 0x10;
      if (own) block.a[3] ^= 0x10;  // x ^ a, the previous one's component, stays
      MemoryRing ring;
      const Verified found = Verify(ring, records);
      EXPECT_EQ(found.good, 0);
      EXPECT_EQ(found.bad, 0);
      int accusers = 0;  // but the liar
      for (int p = 0; p < kParties; ++p) {
        const auto suspects = SuspectsOf(found.ends[p]);
        if (p == liar || !suspects.has_value()) continue;
        EXPECT_TRUE(suspects->Has(liar)) << found.ends[p];
        ++accusers;
      }
      EXPECT_EQ(accusers, liar == kE ? 0 : 1) << "the evaluator fools itself alone";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Enctypes, LieTest, testing::Values(kEnctypeAes256Gcm, 18, 19));

}  // namespace
}  // namespace mpckdc
