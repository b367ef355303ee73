// SPDX-License-Identifier: Apache-2.0
// The measuring itself: would it see what is wrong? Times are never asserted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/bench/measure.h"
#include "mpc-server/bench/messages.h"
#include "mpc-server/bench/options.h"
#include "mpc-server/bench/party.h"
#include "mpc-server/bench/workload.h"
#include "mpc-server/testing/memory_channel.h"

namespace mpckdc::bench {
namespace {

using testing::HasSubstr;

BenchSetup Small(size_t lanes = 7, int workers = 1) {
  return {.placement = Placement::kThreads,
          .channel = Channel::kMemory,
          .lanes = lanes,
          .workers = workers,
          .isa = BestIsa()};
}
// Batches of each of these sizes under both key sizes and S-boxes.
std::vector<BenchSetup> Shapes(std::initializer_list<size_t> sizes) {
  std::vector<BenchSetup> shapes;
  for (AesBits bits : {AesBits::k128, AesBits::k256}) {
    for (Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
      for (size_t lanes : sizes) {
        BenchSetup& s = shapes.emplace_back(Small(lanes));
        s.bits = bits;
        s.sbox = sbox;
      }
    }
  }
  return shapes;
}
BenchSetup Logins(size_t lanes, int32_t enctype = 18) {
  BenchSetup s = Small(lanes);
  s.unit = Unit::kLogin;
  s.enctype = enctype;
  return s;
}
BenchSetup Hmacs(size_t lanes) {
  BenchSetup s = Small(lanes);
  s.unit = Unit::kHmac;
  return s;
}

absl::StatusOr<Options> Parse(absl::string_view line) {
  return ParseOptions(std::vector<std::string>(absl::StrSplit(line, ' ', absl::SkipEmpty())));
}

MeasureOptions Briefly(bool floor = false) { return {true, floor, 0.001, 2}; }

std::unique_ptr<Parties> Open(const BenchSetup& setup) {
  absl::StatusOr<RingsOfThree> rings = ConnectInProcess(setup, {});
  EXPECT_TRUE(rings.ok()) << rings.status();
  auto parties = OpenOnThreads(setup, *std::move(rings), absl::Seconds(20));
  EXPECT_TRUE(parties.ok()) << parties.status();
  return *std::move(parties);
}

// Over memory, with `interceptor` on the wire.
absl::StatusOr<ordered_json> MeasureWith(const BenchSetup& setup,
                                         MemoryRing::Interceptor interceptor) {
  const auto ring = std::make_shared<MemoryRing>();
  ring->SetInterceptor(std::move(interceptor));
  RingsOfThree rings;
  for (int p = 0; p < kParties; ++p) {
    rings[p].emplace_back(ring, &ring->channel(p));
  }
  ASSIGN_OR_RETURN(auto parties, OpenOnThreads(setup, std::move(rings), absl::Seconds(20)));
  return Measure(setup, Briefly(), *parties);
}

// Beside the floor, if it is of blocks: it is the same but for what is computed.
void ExpectSound(const BenchSetup& s) {
  SCOPED_TRACE(testing::PrintToString(PartyArguments(s, 0)));
  const bool blocks = s.unit == Unit::kBlock;
  auto measured = Measure(s, Briefly(/*floor=*/blocks), *Open(s));
  ASSERT_TRUE(measured.ok()) << measured.status();
  ordered_json& m = *measured;
  EXPECT_EQ(m["verified"], true);
  EXPECT_EQ(m["verified_lanes"], std::min(s.lanes, WorkloadOf(s).most_verified_lanes));
  EXPECT_EQ(m["cost_as_declared"], true);
  if (!blocks) return;
  for (const char* same : {"cost_as_declared", "rounds", "bytes_per_block_per_party", "messages"}) {
    EXPECT_EQ(m[same], m["floor"][same]) << same;
  }
  EXPECT_GT(m["spread"]["blocks_per_cpu_s"]["min"], 0);
}

TEST(Measure, VerifiesAndCountsEveryShape) {
  for (BenchSetup s : Shapes({1, 7, 513, 1100})) {
    ExpectSound(s);
    s.workers = 2;
    if (s.lanes > 1) ExpectSound(s);
  }
}

// Also of logins: the tickets of so many are blocks of several chunks, beside the first of which
// the logins' own circuits run.
TEST(Measure, ChunksThatOverlap) {
  for (BenchSetup s : {Small(513), Small(1100), Small(2049), Logins(120)}) {
    s.chunk_lanes = 512;
    for (s.slots = 1; s.slots <= 3; ++s.slots) ExpectSound(s);
  }
}

TEST(Measure, WorkersJoined) {
  for (size_t lanes : {size_t{1}, limits::kRingBlocks, 2 * limits::kRingBlocks + 513}) {
    BenchSetup s = Small(lanes, 2);
    s.joined = true;
    s.chunk_lanes = 1024;
    ExpectSound(s);
  }
}

TEST(Measure, ExchangedRandomnessCostsTwiceTheBytesAndARoundMore) {
  BenchSetup s = Small(1100);
  s.chunk_lanes = 512;
  s.slots = 3;  // all chunks under way at once: one after the other each has its own round more
  s.randomness = Randomness::kExchanged;
  ExpectSound(s);
  BenchSetup keyed = s;
  keyed.randomness = Randomness::kKeyed;
  EXPECT_EQ(DeclaredOfAll(s).cost.bytes_to_next, 2 * DeclaredOfAll(keyed).cost.bytes_to_next);
  EXPECT_EQ(DeclaredOfAll(s).cost.rounds, DeclaredOfAll(keyed).cost.rounds + 1);
}

TEST(Measure, OverEveryChannel) {
  for (const auto& [name, channel] : kChannels) {
    if (!ChannelIsBuilt(channel)) continue;
    BenchSetup s = Small(7, 2);
    s.channel = channel;
    ExpectSound(s);
  }
}

// One bit of one share on the wire, in every place of the S-box. A login is checked by the servers
// as well: what comes out is an error or is not verified. Without a bit nothing is seen: it is the
// bit that is.
TEST(Measure, SeesAWrongShare) {
  const std::pair<BenchSetup, std::vector<std::string>> cases[] = {
      {Small(), {"aes/norm", "aes/helper", "aes/inverse", "aes/product", ""}},
      {Logins(3, 18), {"aes/product", ""}},
      {Logins(3, 19), {"aes/product", ""}}};
  for (auto [setup, steps] : cases) {
    setup.sbox = Sbox::kThroughput;
    for (const std::string& step : steps) {
      SCOPED_TRACE(absl::StrCat("enctype ", setup.enctype, ", step \"", step, "\""));
      std::atomic<int> hit = 0;
      const auto m = MeasureWith(setup, [&](MemoryRing::Intercepted& f) {
        if (f.step != step || f.from != 1) return;
        f.payload[0] ^= 1;
        ++hit;
      });
      EXPECT_EQ(hit > 0, !step.empty());
      EXPECT_EQ(!m.ok() || !m->at("verified"), hit > 0) << m.status();
      EXPECT_TRUE(m.ok() || setup.unit == Unit::kLogin) << m.status();
    }
  }
}

TEST(Measure, ReportsALostParty) {
  const auto m = MeasureWith(Small(), [](MemoryRing::Intercepted& f) {
    if (f.step == "aes/norm") f.header[0] ^= 0xff;
  });
  EXPECT_FALSE(m.ok());
}

// A report that counts one round or one byte too many is not as declared.
class TamperedParties : public Parties {
 public:
  TamperedParties(std::unique_ptr<Parties> real, const char* field, int change)
      : real_(std::move(real)), field_(field), change_(change) {}
  Answers Ask(const json& command) override {
    Answers answers = real_->Ask(command);
    if (command["do"] == "run" && answers[2].ok()) {
      json& count = (*answers[2])["workers"][0][field_];
      count = count.get<uint64_t>() + static_cast<uint64_t>(change_);
    }
    return answers;
  }

 private:
  const std::unique_ptr<Parties> real_;
  const char* const field_;
  const int change_;
};

TEST(Measure, SeesACostThatIsNotAsDeclared) {
  const std::tuple<const char*, int, bool> changes[] = {{"rounds", 1, false},
                                                        {"bytes_to_next", 1, false},
                                                        {"frames", 1, false},
                                                        {"bytes", -1, false},
                                                        {"bytes", 0, true}};
  for (const auto& [field, change, as_declared] : changes) {
    TamperedParties parties(Open(Small()), field, change);
    const auto m = Measure(Small(), Briefly(), parties);
    ASSERT_TRUE(m.ok()) << m.status();
    EXPECT_EQ(m->at("cost_as_declared"), as_declared) << field;
  }
}

// Outputs of every kind of lane are right only for their batch and lane, all of them, consistent.
TEST(SharesAreRight, OnlyForTheBatchTheLaneAndTheValue) {
  for (const BenchSetup& s : {Small(7), Hmacs(7), Logins(7, 18), Logins(7, 20)}) {
    SCOPED_TRACE(testing::PrintToString(PartyArguments(s, 0)));
    const Workload workload = WorkloadOf(s);
    const auto parties = Open(s);
    const std::vector<size_t> sample = {0, 6};
    EXPECT_FALSE(parties->Outputs(sample).ok()) << "no batch was run";
    ASSERT_TRUE(parties->MakeKeys().ok());
    ASSERT_TRUE(parties->Run(Work::kLanes, 2).ok());
    EXPECT_FALSE(parties->Outputs({7}).ok()) << "no such lane";
    const auto shares = parties->Outputs(sample);
    ASSERT_TRUE(shares.ok()) << shares.status();
    EXPECT_TRUE(SharesAreRight(workload, 2, sample, *shares));
    EXPECT_FALSE(SharesAreRight(workload, 1, sample, *shares));
    EXPECT_FALSE(SharesAreRight(workload, 2, {6, 0}, *shares));
    EXPECT_FALSE(SharesAreRight(workload, 2, {0}, *shares));
    EXPECT_FALSE(SharesAreRight(workload, 2, {}, OutputShares{}));
    // Each block: consistent shares of a wrong value; then shares that do not fit together.
    for (size_t block = 0; block < 2 * workload.outputs_per_lane; ++block) {
      OutputShares wrong = *shares;
      for (std::vector<SharedBlock>& own : wrong) own[block].a[0] ^= 0x80;
      EXPECT_FALSE(SharesAreRight(workload, 2, sample, wrong)) << block;
      wrong = *shares;
      wrong[1][block].x[3] ^= 1;
      EXPECT_FALSE(SharesAreRight(workload, 2, sample, wrong)) << block;
    }
  }
}

TEST(SampleOfLanes, HasTheFirstTheLastAndEnough) {
  EXPECT_EQ(SampleOfLanes(1, 1024), std::vector<size_t>{0});
  EXPECT_EQ(SampleOfLanes(3, 1024), (std::vector<size_t>{0, 1, 2}));
  const std::vector<size_t> many = SampleOfLanes(262144, 1024);
  EXPECT_EQ(many.size(), 1024u);
  EXPECT_EQ(many.front(), 0u);
  EXPECT_EQ(many.back(), 262143u);
  EXPECT_TRUE(std::is_sorted(many.begin(), many.end()));
}

TEST(RoundSizes, AddUpToTheDeclaredCost) {
  for (const BenchSetup& s : Shapes({1, 512, 513})) {
    const std::vector<size_t> sizes = RoundSizes(s, s.lanes);
    const Cost cost = CostOfAes(s.bits, s.lanes, *s.sbox);
    EXPECT_EQ(sizes.size(), cost.rounds);
    EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), size_t{0}), cost.bytes_to_next);
    EXPECT_EQ(DeclaredOfAll(s).cost, cost);
  }
}

TEST(Setup, TeamsDivideTheLanes) {
  const BenchSetup s = Small(7, 3);
  EXPECT_EQ(FirstLane(s, 0), 0u);
  EXPECT_EQ(FirstLane(s, 3), 7u);
  EXPECT_EQ(LanesOf(s, 0) + LanesOf(s, 1) + LanesOf(s, 2), 7u);
}

TEST(Setup, TheSboxGoesByTheLanesOfATeam) {
  EXPECT_EQ(SboxOf(Small(limits::kLatencySboxBlocks - 1)), Sbox::kLatency);
  EXPECT_EQ(SboxOf(Small(limits::kLatencySboxBlocks)), Sbox::kThroughput);
  BenchSetup two = Small(limits::kLatencySboxBlocks, 2);
  EXPECT_EQ(SboxOf(two), Sbox::kLatency);
  two.joined = true;
  EXPECT_EQ(SboxOf(two), Sbox::kThroughput);
}

TEST(SpreadOf, IsMinMedianMax) {
  EXPECT_EQ(SpreadOf({3, 1, 2}).median, 2);
  EXPECT_EQ(SpreadOf({4, 1, 2, 3}).median, 2.5);
  EXPECT_EQ(SpreadOf({3, 1, 2}).min, 1);
  EXPECT_EQ(SpreadOf({3, 1, 2}).max, 3);
}

// ---- Messages ----

TEST(Messages, ComeBackAsTheyWent) {
  const PartyReport report = {{{{10, 20}, 3, 400, 0, 1, 50, 8, 7, 512}, {}}, 5, 99, 8, 9};
  const json sent = json::parse(json(report).dump());
  const auto back = Read<PartyReport>(sent);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(json(*back), sent);
  EXPECT_EQ(back->workers[0].latency_ns, (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(back->workers[0].proof_to_prev, 8u);
  EXPECT_EQ(back->workers[0].bytes, 512u);
  EXPECT_EQ(back->minor_faults, 9u);
  const OutputsReport outputs = {{{InputOf(1, 2), InputOf(3, 4)}, {InputOf(5, 6), InputOf(7, 8)}}};
  const auto read = Read<OutputsReport>(json::parse(json(outputs).dump()));
  ASSERT_TRUE(read.ok() && read->shares.size() == 2) << read.status();
  EXPECT_EQ(read->shares[1].x, outputs.shares[1].x);
  EXPECT_EQ(read->shares[1].a, outputs.shares[1].a);
}

TEST(Messages, BadOnesAreErrors) {
  for (const char* line : {"", "[1]", "{\"a\": "}) EXPECT_FALSE(ParseMessage(line).ok()) << line;
  EXPECT_THAT(ParseMessage("{\"error\": \"no route\"}").status().message(), HasSubstr("no route"));
  for (const char* report : {R"({"workers": 3})", R"({"workers": [7]})", R"({"workers": []})"}) {
    EXPECT_FALSE(Read<PartyReport>(json::parse(report)).ok()) << report;
  }
  json negative = PartyReport();
  EXPECT_TRUE(Read<PartyReport>(negative).ok());
  negative["minor_faults"] = -1;
  EXPECT_FALSE(Read<PartyReport>(negative).ok());
  for (const char* shares : {R"({"shares": ["00"]})", R"({"shares": 1})", R"({"others": [""]})"}) {
    EXPECT_FALSE(Read<OutputsReport>(json::parse(shares)).ok()) << shares;
  }
}

TEST(Party, SaysWhatIsWrongWithACommand) {
  const auto parties = Open(Small());
  for (const char* command :
       {"{}", R"({"do": 3})", R"({"do": "stop"})", R"({"do": "run"})",
        R"({"do": "run", "work": "aes", "batches": 1})",  // no keys yet
        R"({"do": "run", "work": "floor", "batches": -1})", R"({"do": "outputs"})",
        R"({"do": "outputs", "lanes": ["0"]})"}) {
    EXPECT_FALSE(parties->Ask(json::parse(command))[0].ok()) << command;
  }
}

TEST(Party, SaysWhatIsWrongWithItsFiles) {
  const auto o = Parse(
      "party --party=1 --listen=127.0.0.1:1 --peers=127.0.0.1:1,127.0.0.1:2,127.0.0.1:3 "
      "--ca=/nonexistent/file.pem --cert=/nonexistent/file.pem --key=/nonexistent/file.pem "
      "--channel=tls");
  ASSERT_TRUE(o.ok()) << o.status();
  std::istringstream in;
  std::ostringstream out;
  EXPECT_EQ(RunParty(*o, in, out), 1);
  EXPECT_THAT(ParseMessage(out.str()).status().message(), HasSubstr("/nonexistent/file.pem"));
}

// ---- Options ----

TEST(Options, BadOnesGetAClearError) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "no command"},
      {"aez", "unknown command \"aez\""},
      {"aes --batches=7", "unknown option --batches"},
      {"aes --batch", "--batch needs a value"},
      {"aes --batch=0", "--batch: \"0\" is not a number from 1"},
      {"aes --batch=512,x", "\"x\""},
      {"aes --channel=udp", "one of aead, tls, tcp, memory"},
      {"aes --sbox=fast", "throughput"},
      {"aes --isa=mmx", "--isa: \"mmx\""},
      {"aes --chunk=700", "multiple of 512"},
      {"aes --randomness=none", "one of keyed, exchanged"},
      {"aes --bits=192", "one of 128, 256"},
      {"aes --seconds=-1", "--seconds: \"-1\" is not a number from 0"},
      {"aes --seconds=nan", "--seconds"},
      {"aes --json=1", "takes no value"},
      {"aes again", "\"again\""},
      {"aes --hash=sha1", "aes has no option --hash"},
      {"hmac --enctype=17", "hmac has no option --enctype"},
      {"hmac --with-floor", "hmac has no option --with-floor"},
      {"rfc3962 --workers=2", "rfc3962 runs on one worker"},
      {"aes --channel=memory", "needs --parties=threads"},
      {"aes --parties=threads --launch=env", "need --parties=processes"},
      {"aes --batch=2 --workers=3", "less than --workers=3"},
      {"aes --addresses=a:1,b:2", "three addresses"},
      {"aes --addresses=a:1,b:2,c:99999", "port"},
      {"party", "party: needs --party"},
      {"party --party=3", "from 0 to 2"}};
  for (const auto& [line, error] : cases) {
    EXPECT_THAT(Parse(line).status().message(), HasSubstr(error)) << line;
  }
}

TEST(Options, ListsMakeEachCombination) {
  const auto o = Parse("aes --batch=512,16384 --sbox=auto,latency --bits 256");
  ASSERT_TRUE(o.ok()) << o.status();
  ASSERT_EQ(o->setups.size(), 4u);
  EXPECT_EQ(SboxOf(o->setups[0]), Sbox::kLatency);
  EXPECT_EQ(SboxOf(o->setups[1]), Sbox::kLatency);
  EXPECT_EQ(SboxOf(o->setups[2]), Sbox::kThroughput);
  EXPECT_EQ(o->setups[3].lanes, 16384u);
  EXPECT_EQ(o->setups[3].sbox, Sbox::kLatency);
  EXPECT_EQ(o->setups[3].bits, AesBits::k256);
}

TEST(Options, OfAPartyGiveItsSetupBack) {
  const BenchSetup setups[] = {{.lanes = 513,
                                .workers = 2,
                                .joined = true,
                                .chunk_lanes = 1024,
                                .slots = 3,
                                .randomness = Randomness::kExchanged,
                                .sbox = Sbox::kLatency,
                                .bits = AesBits::k256},
                               {.unit = Unit::kHmac,
                                .lanes = 9,
                                .adder = Adder::kRipple,
                                .hash = HashKind::kSha384,
                                .shared_messages = false,
                                .message_bytes = 77},
                               {.unit = Unit::kLogin,
                                .lanes = 8,
                                .enctype = 19,
                                .checksum = false,
                                .request_bytes = 99,
                                .reply_bytes = 98}};
  for (BenchSetup s : setups) {
    s.channel = Channel::kTls;
    s.seed = 77;
    const auto o = Parse(absl::StrCat(absl::StrJoin(PartyArguments(s, 2), " "),
                                      " --listen=h:1 --peers=h:1,h:2,h:3 --ca=c --cert=d --key=e"));
    ASSERT_TRUE(o.ok()) << o.status();
    EXPECT_EQ(o->peer.party, 2);
    ASSERT_EQ(o->setups.size(), 1u);
    EXPECT_EQ(o->setups[0].unit, s.unit);
    EXPECT_EQ(PartyArguments(o->setups[0], 2), PartyArguments(s, 2));
  }
}

}  // namespace
}  // namespace mpckdc::bench
