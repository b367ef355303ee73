// SPDX-License-Identifier: Apache-2.0
// The measuring itself: would it see what is wrong? Times are never asserted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/bench/login_workload.h"
#include "mpc-server/bench/measure.h"
#include "mpc-server/bench/messages.h"
#include "mpc-server/bench/options.h"
#include "mpc-server/bench/party_command.h"
#include "mpc-server/bench/print.h"
#include "mpc-server/bench/workload.h"
#include "mpc-server/testing/memory_channel.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc::bench {
namespace {

using testing::HasSubstr;

BenchSetup Small(size_t lanes = 7, int workers = 1) {
  BenchSetup s;
  s.placement = Placement::kThreads;
  s.channel = Channel::kMemory;
  s.lanes = lanes;
  s.workers = workers;
  s.isa = BestIsa();
  return s;
}

MeasureOptions Briefly(bool floor = false) { return {true, floor, 0.001, 2}; }

// Over memory, with `interceptor` on the wire.
absl::StatusOr<Measurement> MeasureWith(const BenchSetup& setup,
                                        MemoryRing::Interceptor interceptor) {
  const auto ring = std::make_shared<MemoryRing>();
  ring->SetInterceptor(std::move(interceptor));
  RingsOfThree rings;
  for (int p = 0; p < kParties; ++p) {
    rings[p] = {std::shared_ptr<PeerChannel>(ring, &ring->channel(p))};
  }
  auto parties = OpenOnThreads(setup, std::move(rings), absl::Seconds(20));
  if (!parties.ok()) return parties.status();
  return Measure(setup, Briefly(), **parties);
}

absl::StatusOr<Measurement> MeasureClean(const BenchSetup& setup, bool floor = false) {
  absl::StatusOr<RingsOfThree> rings = ConnectInProcess(setup, {});
  if (!rings.ok()) return rings.status();
  auto parties = OpenOnThreads(setup, *std::move(rings), absl::Seconds(20));
  if (!parties.ok()) return parties.status();
  return Measure(setup, Briefly(floor), **parties);
}

void ExpectSound(const BenchSetup& s) {
  SCOPED_TRACE(testing::PrintToString(PartyArguments(s, 0)));
  const auto m = MeasureClean(s, /*floor=*/true);
  ASSERT_TRUE(m.ok()) << m.status();
  EXPECT_TRUE(m->verified);
  EXPECT_EQ(m->verified_lanes, std::min<size_t>(s.lanes, kVerifiedLanes));
  EXPECT_TRUE(m->aes->cost_as_declared);
  EXPECT_TRUE(m->floor->cost_as_declared);
  EXPECT_EQ(m->aes->rounds, m->floor->rounds);
  EXPECT_EQ(m->aes->bytes_per_block_per_party, m->floor->bytes_per_block_per_party);
  EXPECT_EQ(m->aes->messages, m->floor->messages);
  EXPECT_GT(m->aes->blocks_per_cpu_s.min, 0);
}

TEST(Measure, VerifiesAndCountsEveryShape) {
  for (AesBits bits : {AesBits::k128, AesBits::k256}) {
    for (Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
      for (size_t lanes : {1u, 7u, 513u, 1100u}) {
        for (int workers : {1, 2}) {
          if (lanes < static_cast<size_t>(workers)) continue;
          BenchSetup s = Small(lanes, workers);
          s.bits = bits;
          s.sbox = sbox;
          ExpectSound(s);
        }
      }
    }
  }
}

TEST(Measure, PartsThatOverlap) {
  for (size_t slots : {1u, 2u, 3u}) {
    for (size_t lanes : {513u, 1100u, 2049u}) {
      BenchSetup s = Small(lanes);
      s.part_lanes = 512;
      s.slots = slots;
      ExpectSound(s);
    }
  }
}

TEST(Measure, WorkersJoined) {
  for (size_t lanes : {size_t{1}, limits::kRingBlocks, 2 * limits::kRingBlocks + 513}) {
    BenchSetup s = Small(lanes, 2);
    s.joined = true;
    s.part_lanes = 1024;
    ExpectSound(s);
  }
}

TEST(Measure, ExchangedRandomnessCostsTwiceTheBytesAndARoundMore) {
  BenchSetup s = Small(1100);
  s.part_lanes = 512;
  s.slots = 3;  // all parts under way at once: one after the other each has its own round more
  s.randomness = Randomness::kExchanged;
  ExpectSound(s);
  BenchSetup keyed = s;
  keyed.randomness = Randomness::kKeyed;
  EXPECT_EQ(DeclaredOfAll(s).cost.bytes_to_next, 2 * DeclaredOfAll(keyed).cost.bytes_to_next);
  EXPECT_EQ(DeclaredOfAll(s).cost.rounds, DeclaredOfAll(keyed).cost.rounds + 1);
}

TEST(Measure, OverEveryChannel) {
  for (Channel channel : kAllChannels) {
    if (!ChannelIsBuilt(channel)) continue;
    BenchSetup s = Small(7, 2);
    s.channel = channel;
    ExpectSound(s);
  }
}

// One bit of one share on the wire, in every place of the S-box.
TEST(Measure, SeesAWrongShare) {
  for (const char* step : {"aes/norm", "aes/helper", "aes/inverse", "aes/product"}) {
    std::atomic<int> hit = 0;
    const auto m = MeasureWith(Small(), [&](MemoryRing::Intercepted& f) {
      if (f.step != step || f.from != 1) return;
      f.payload[0] ^= 1;
      ++hit;
    });
    ASSERT_TRUE(m.ok()) << m.status();
    EXPECT_GT(hit, 0) << step;
    EXPECT_FALSE(m->verified) << step;
  }
}

// A login is checked by the servers as well: what comes out is an error or is not verified.
TEST(Measure, SeesAWrongShareOfALogin) {
  for (int32_t enctype : {18, 19}) {
    BenchSetup setup = Small(3);
    setup.login = LoginSetup{};
    setup.login->enctype = enctype;
    for (const char* step : {"aes/product", "input shares", ""}) {
      std::atomic<int> hit = 0;
      const auto m = MeasureWith(setup, [&](MemoryRing::Intercepted& f) {
        if (f.step != step || f.from != 1) return;
        f.payload[0] ^= 1;
        ++hit;
      });
      const bool seen = !m.ok() || !m->verified;
      EXPECT_EQ(seen, hit > 0) << "enctype " << enctype << ", step \"" << step << "\"";
      EXPECT_EQ(hit > 0, *step != '\0') << "enctype " << enctype << ", step \"" << step << "\"";
    }
  }
}

// The same harness without the bit: it is the bit that is seen.
TEST(Measure, SeesNothingWhereNothingIsWrong) {
  const auto m = MeasureWith(Small(), [](MemoryRing::Intercepted&) {});
  ASSERT_TRUE(m.ok()) << m.status();
  EXPECT_TRUE(m->verified);
}

TEST(Measure, ReportsALostParty) {
  const auto m = MeasureWith(Small(), [](MemoryRing::Intercepted& f) {
    if (f.step == "aes/inverse") f.header[0] ^= 0xff;
  });
  EXPECT_FALSE(m.ok());
}

// A report that counts one round or one byte too many is not as declared.
class TamperedParties : public Parties {
 public:
  TamperedParties(std::unique_ptr<Parties> real, std::function<void(WorkerReport&)> change)
      : real_(std::move(real)), change_(std::move(change)) {}
  absl::Status MakeKeys() override { return real_->MakeKeys(); }
  absl::StatusOr<RunReport> Run(Work work, uint32_t batches) override {
    absl::StatusOr<RunReport> run = real_->Run(work, batches);
    if (run.ok()) change_(run->parties[2].workers[0]);
    return run;
  }
  absl::StatusOr<OutputShares> Outputs(absl::Span<const size_t> lanes) override {
    return real_->Outputs(lanes);
  }
  absl::StatusOr<std::array<MemoryReport, kParties>> Memory() override { return real_->Memory(); }

 private:
  std::unique_ptr<Parties> real_;
  std::function<void(WorkerReport&)> change_;
};

TEST(Measure, SeesACostThatIsNotAsDeclared) {
  const std::function<void(WorkerReport&)> changes[] = {
      [](WorkerReport& w) { ++w.cost.rounds; }, [](WorkerReport& w) { ++w.cost.bytes_to_next; },
      [](WorkerReport& w) { ++w.frames; }, [](WorkerReport& w) { --w.bytes; }};
  for (const auto& change : changes) {
    auto rings = ConnectInProcess(Small(), {});
    ASSERT_TRUE(rings.ok());
    auto real = OpenOnThreads(Small(), *std::move(rings), absl::Seconds(20));
    ASSERT_TRUE(real.ok()) << real.status();
    TamperedParties parties(*std::move(real), change);
    const auto m = Measure(Small(), Briefly(), parties);
    ASSERT_TRUE(m.ok()) << m.status();
    EXPECT_FALSE(m->aes->cost_as_declared);
  }
}

std::array<std::vector<SharedBlock>, kParties> SharesOf(const std::vector<Block>& values) {
  SeededRandomForTest random(5);
  std::array<std::vector<SharedBlock>, kParties> shares;
  for (const Block& v : values) {
    const auto split = SplitForTest(v, random);
    for (int p = 0; p < kParties; ++p) shares[p].push_back(split[p]);
  }
  return shares;
}

TEST(SharesAreRight, OnlyForTheBatchTheLaneAndTheValue) {
  const BenchSetup s = Small();
  const Oracle oracle(s);
  const std::vector<size_t> lanes = {0, 6};
  const auto shares = SharesOf({oracle.Expected(0, 9), oracle.Expected(6, 9)});
  EXPECT_TRUE(SharesAreRight(oracle, 9, lanes, shares));
  EXPECT_FALSE(SharesAreRight(oracle, 8, lanes, shares));
  EXPECT_FALSE(SharesAreRight(oracle, 9, {6, 0}, shares));
  EXPECT_FALSE(SharesAreRight(oracle, 9, {0}, shares));
  EXPECT_FALSE(SharesAreRight(oracle, 9, {}, SharesOf({})));
  Block wrong = oracle.Expected(6, 9);
  wrong[15] ^= 0x80;  // consistent shares of a wrong value
  EXPECT_FALSE(SharesAreRight(oracle, 9, lanes, SharesOf({oracle.Expected(0, 9), wrong})));
  auto inconsistent = shares;  // a right value for two parties, not for the third
  inconsistent[1][0].x[3] ^= 1;
  EXPECT_FALSE(SharesAreRight(oracle, 9, lanes, inconsistent));
}

TEST(LoginsAreRight, OnlyForTheBatchAndTheLogin) {
  BenchSetup setup = Small(2);
  setup.login = LoginSetup{};
  const LoginOracle oracle(setup);
  EXPECT_FALSE(LoginsAreRight(oracle, setup, 1, {}, {}));
  const size_t each = LoginSizes(setup).outputs;
  std::vector<Block> zeros(each);
  EXPECT_FALSE(oracle.IsRight(0, 1, zeros));
  EXPECT_FALSE(oracle.IsRight(0, 1, absl::MakeConstSpan(zeros).first(each - 1)));
  EXPECT_NE(oracle.Preauth(0), oracle.Preauth(1));
  EXPECT_NE(RequestOf(setup, 0, 1), RequestOf(setup, 0, 2));
  EXPECT_NE(ReplyOf(setup, 0, 1), ReplyOf(setup, 1, 1));
}

TEST(SampleOfLanes, HasTheFirstTheLastAndEnough) {
  EXPECT_EQ(SampleOfLanes(1), std::vector<size_t>{0});
  EXPECT_EQ(SampleOfLanes(3), (std::vector<size_t>{0, 1, 2}));
  const std::vector<size_t> many = SampleOfLanes(262144);
  EXPECT_EQ(many.size(), kVerifiedLanes);
  EXPECT_EQ(many.front(), 0u);
  EXPECT_EQ(many.back(), 262143u);
  EXPECT_TRUE(std::is_sorted(many.begin(), many.end()));
}

TEST(RoundSizes, AddUpToTheDeclaredCost) {
  for (AesBits bits : {AesBits::k128, AesBits::k256}) {
    for (Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
      for (size_t lanes : {1u, 512u, 513u}) {
        BenchSetup s = Small(lanes);
        s.bits = bits;
        s.sbox = sbox;
        size_t sum = 0;
        const std::vector<size_t> sizes = RoundSizes(s, lanes);
        for (size_t size : sizes) sum += size;
        EXPECT_EQ(sizes.size(), CostOfAes(bits, lanes, sbox).rounds);
        EXPECT_EQ(sum, CostOfAes(bits, lanes, sbox).bytes_to_next);
        EXPECT_EQ(DeclaredOfAll(s).cost, CostOfAes(bits, lanes, sbox));
      }
    }
  }
}

TEST(Setup, TeamsDivideTheLanes) {
  const BenchSetup s = Small(7, 3);
  EXPECT_EQ(FirstLane(s, 0), 0u);
  EXPECT_EQ(FirstLane(s, 3), 7u);
  EXPECT_EQ(LanesOf(s, 0) + LanesOf(s, 1) + LanesOf(s, 2), 7u);
}

TEST(SpreadOf, IsMinMedianMax) {
  EXPECT_EQ(SpreadOf({3, 1, 2}).median, 2);
  EXPECT_EQ(SpreadOf({4, 1, 2, 3}).median, 2.5);
  EXPECT_EQ(SpreadOf({3, 1, 2}).min, 1);
  EXPECT_EQ(SpreadOf({3, 1, 2}).max, 3);
}

// ---- Messages ----

TEST(Messages, ReportsComeBackAsTheyWent) {
  PartyReport report;
  report.start_ns = 5;
  report.end_ns = 99;
  report.workers = {{{10, 20}, {3, 400, 0}, 7, 512}, {{}, {}, 0, 0}};
  PartyReport back;
  Usage used;
  ASSERT_TRUE(FromJson(json::parse(ToJson(report, {8, 9}).dump()), &back, &used).ok());
  EXPECT_EQ(back.start_ns, 5);
  EXPECT_EQ(back.end_ns, 99);
  ASSERT_EQ(back.workers.size(), 2u);
  EXPECT_EQ(back.workers[0].latency_ns, (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(back.workers[0].cost, (Cost{3, 400, 0}));
  EXPECT_EQ(back.workers[0].bytes, 512u);
  EXPECT_EQ(used.cpu_ns, 8);
  EXPECT_EQ(used.minor_faults, 9u);
}

TEST(Messages, SharesComeBackAsTheyWent) {
  const auto shares = SharesOf({InputOf(1, 2), InputOf(3, 4)})[1];
  std::vector<SharedBlock> back;
  ASSERT_TRUE(SharesFromJson(json::parse(SharesToJson(shares).dump()), &back).ok());
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[1].x, shares[1].x);
  EXPECT_EQ(back[1].a, shares[1].a);
}

TEST(Messages, BadOnesAreErrors) {
  EXPECT_FALSE(ParseMessage("").ok());
  EXPECT_FALSE(ParseMessage("[1]").ok());
  EXPECT_FALSE(ParseMessage("{\"a\": ").ok());
  EXPECT_THAT(ParseMessage("{\"error\": \"no route\"}").status().message(), HasSubstr("no route"));
  PartyReport report;
  Usage used;
  EXPECT_FALSE(FromJson(json::parse(R"({"workers": 3})"), &report, &used).ok());
  EXPECT_FALSE(FromJson(json::parse(R"({"workers": [7]})"), &report, &used).ok());
  EXPECT_FALSE(FromJson(json::parse(R"({"workers": []})"), &report, &used).ok());
  std::vector<SharedBlock> shares;
  EXPECT_FALSE(SharesFromJson(json::parse(R"({"shares": ["00"]})"), &shares).ok());
  EXPECT_FALSE(NumberAt(json::parse(R"({"n": -1})"), "n").ok());
}

TEST(Party, SaysWhatIsWrongWithItsFiles) {
  Options o;
  o.command = "party";
  o.party = 1;
  o.listen = "127.0.0.1:1";
  o.peers = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"};
  o.ca = o.certificate = o.key = "/nonexistent/file.pem";
  std::istringstream in;
  std::ostringstream out;
  EXPECT_EQ(RunParty(o, in, out), 1);
  EXPECT_THAT(ParseMessage(out.str()).status().message(), HasSubstr("/nonexistent/file.pem"));
}

// ---- Options ----

std::string ErrorOf(std::vector<std::string> arguments) {
  const auto o = ParseOptions(arguments);
  return o.ok() ? "" : std::string(o.status().message());
}

TEST(Options, BadOnesGetAClearError) {
  EXPECT_THAT(ErrorOf({}), HasSubstr("no command"));
  EXPECT_THAT(ErrorOf({"aez"}), HasSubstr("unknown command \"aez\""));
  EXPECT_THAT(ErrorOf({"aes", "--batches=7"}), HasSubstr("unknown option --batches"));
  EXPECT_THAT(ErrorOf({"aes", "--batch"}), HasSubstr("--batch needs a value"));
  EXPECT_THAT(ErrorOf({"aes", "--batch=0"}), HasSubstr("--batch: \"0\" is not a number from 1"));
  EXPECT_THAT(ErrorOf({"aes", "--batch=512,x"}), HasSubstr("\"x\""));
  EXPECT_THAT(ErrorOf({"aes", "--channel=udp"}), HasSubstr("one of aead, tls, tcp, memory"));
  EXPECT_THAT(ErrorOf({"aes", "--sbox=fast"}), HasSubstr("throughput"));
  EXPECT_THAT(ErrorOf({"aes", "--isa=mmx"}), HasSubstr("--isa: \"mmx\""));
  EXPECT_THAT(ErrorOf({"aes", "--part=700"}), HasSubstr("multiple of 512"));
  EXPECT_THAT(ErrorOf({"aes", "--randomness=none"}), HasSubstr("keyed or exchanged"));
  EXPECT_THAT(ErrorOf({"aes", "--bits=192"}), HasSubstr("128 or 256"));
  EXPECT_THAT(ErrorOf({"aes", "--seconds=-1"}), HasSubstr("seconds"));
  EXPECT_THAT(ErrorOf({"aes", "--seconds=nan"}), HasSubstr("seconds"));
  EXPECT_THAT(ErrorOf({"aes", "--json=1"}), HasSubstr("takes no value"));
  EXPECT_THAT(ErrorOf({"aes", "again"}), HasSubstr("unexpected argument"));
  EXPECT_THAT(ErrorOf({"aes", "--channel=memory"}), HasSubstr("needs --parties=threads"));
  EXPECT_THAT(ErrorOf({"aes", "--batch=2", "--workers=3"}), HasSubstr("less than --workers=3"));
  EXPECT_THAT(ErrorOf({"aes", "--addresses=a:1,b:2"}), HasSubstr("three addresses"));
  EXPECT_THAT(ErrorOf({"aes", "--addresses=a:1,b:2,c:99999"}), HasSubstr("port"));
  EXPECT_THAT(ErrorOf({"party"}), HasSubstr("party needs --party"));
  EXPECT_THAT(ErrorOf({"party", "--party=3"}), HasSubstr("from 0 to 2"));
}

TEST(Options, ListsMakeEachCombination) {
  const auto o = ParseOptions(std::vector<std::string>{"aes", "--batch=512,16384",
                                                       "--sbox=auto,latency", "--bits", "256"});
  ASSERT_TRUE(o.ok()) << o.status();
  const std::vector<BenchSetup> setups = Setups(*o);
  ASSERT_EQ(setups.size(), 4u);
  EXPECT_EQ(setups[0].sbox, AutoSbox(setups[0]));
  EXPECT_EQ(setups[1].sbox, Sbox::kLatency);
  EXPECT_EQ(setups[2].sbox, Sbox::kThroughput);
  EXPECT_EQ(setups[3].lanes, 16384u);
  EXPECT_EQ(setups[3].bits, AesBits::k256);
}

TEST(Options, AutoSboxGoesByTheLanesOfATeam) {
  EXPECT_EQ(AutoSbox(Small(limits::kLatencySboxBlocks - 1)), Sbox::kLatency);
  EXPECT_EQ(AutoSbox(Small(limits::kLatencySboxBlocks)), Sbox::kThroughput);
  BenchSetup two = Small(limits::kLatencySboxBlocks, 2);
  EXPECT_EQ(AutoSbox(two), Sbox::kLatency);
  two.joined = true;
  EXPECT_EQ(AutoSbox(two), Sbox::kThroughput);
}

TEST(Options, OfAPartyGiveItsSetupBack) {
  BenchSetup s = Small(513, 2);
  s.placement = Placement::kProcesses;
  s.channel = Channel::kTls;
  s.sbox = Sbox::kLatency;
  s.bits = AesBits::k256;
  s.seed = 77;
  s.joined = true;
  s.part_lanes = 1024;
  s.slots = 3;
  s.randomness = Randomness::kExchanged;
  std::vector<std::string> arguments = PartyArguments(s, 2);
  for (const char* more :
       {"--listen=h:1", "--peers=h:1,h:2,h:3", "--ca=c", "--cert=d", "--key=e"}) {
    arguments.push_back(more);
  }
  const auto o = ParseOptions(arguments);
  ASSERT_TRUE(o.ok()) << o.status();
  EXPECT_EQ(o->party, 2);
  const std::vector<BenchSetup> back = Setups(*o);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(PartyArguments(back[0], 2), PartyArguments(s, 2));
}

TEST(Options, HelpNamesEveryOption) {
  for (const char* name : {"--channel", "--batch", "--workers", "--isa", "--sbox", "--bits",
                           "--join", "--part", "--slots", "--randomness", "--seconds", "--runs",
                           "--with-floor", "--json", "--parties", "--launch", "--addresses",
                           "--timeout", "--party", "--seed"}) {
    EXPECT_THAT(HelpText(), HasSubstr(name));
  }
}

}  // namespace
}  // namespace mpckdc::bench
