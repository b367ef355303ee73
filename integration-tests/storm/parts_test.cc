// SPDX-License-Identifier: Apache-2.0
//
// The small parts: histogram, schedule, thresholds, which addresses, CPU times, users, handles.
#include <unistd.h>

#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "integration-tests/storm/limits.h"
#include "integration-tests/storm/options.h"
#include "integration-tests/storm/report.h"
#include "integration-tests/storm/run.h"
#include "integration-tests/storm/target.h"
#include "integration-tests/storm/users.h"

namespace mpckdc::storm {
namespace {

absl::StatusOr<Options> ParseWith(const std::vector<std::string>& more) {
  std::vector<std::string> all = {"--kdc",     "127.0.0.1:88", "--realm",  "R",
                                  "--enctype", "aes128-gcm",   "--keytab", "k"};
  all.insert(all.end(), more.begin(), more.end());
  return ParseOptions(all);
}

// ---- Histogram ----

TEST(HistogramTest, PercentilesAreWithinOneBin) {
  LatencyHistogram h;
  std::vector<double> values;
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> draw(std::log(0.005), 1);
  for (int i = 0; i < 100000; ++i) {
    values.push_back(draw(random));
    h.Add(absl::Seconds(values.back()));
  }
  std::sort(values.begin(), values.end());
  for (const double percent : {1.0, 50.0, 90.0, 99.0, 99.9}) {
    const double exact = values[static_cast<size_t>(percent / 100 * 100000) - 1];
    const double ours = absl::ToDoubleSeconds(h.Percentile(percent));
    EXPECT_GE(ours, exact * 0.9999) << percent;
    EXPECT_LE(ours, exact * 1.0101) << percent;
  }
  EXPECT_EQ(h.max(), absl::Seconds(values.back()));
  EXPECT_EQ(h.Percentile(100), h.max());
}

TEST(HistogramTest, EdgesAreKept) {
  LatencyHistogram h;
  EXPECT_EQ(h.Percentile(50), absl::ZeroDuration());
  h.Add(absl::ZeroDuration());
  h.Add(absl::Seconds(5000));  // beyond the last bin
  EXPECT_EQ(h.count(), 2u);
  EXPECT_LE(h.Percentile(50), absl::Microseconds(2));
  EXPECT_EQ(h.Percentile(99), absl::Seconds(5000));
  uint64_t sum = 0;
  for (const LatencyHistogram::Bin& bin : h.NonEmptyBins()) sum += bin.count;
  EXPECT_EQ(sum, 2u);
}

TEST(HistogramTest, MergeIsAddingAll) {
  LatencyHistogram a, b, both;
  for (int i = 1; i <= 1000; ++i) {
    (i % 3 == 0 ? a : b).Add(absl::Microseconds(i * 37));
    both.Add(absl::Microseconds(i * 37));
  }
  a.Merge(b);
  EXPECT_EQ(a.count(), both.count());
  EXPECT_EQ(a.Mean(), both.Mean());
  for (const double percent : {10.0, 50.0, 99.0}) {
    EXPECT_EQ(a.Percentile(percent), both.Percentile(percent));
  }
}

// ---- Schedule ----

const absl::Time kBegin = absl::UnixEpoch();

std::vector<absl::Duration> Gaps(PoissonSchedule schedule, int count) {
  std::vector<absl::Duration> gaps;
  absl::Time last = kBegin;
  for (int i = 0; i < count; ++i, schedule.Advance()) {
    gaps.push_back(schedule.next() - last);
    last = schedule.next();
  }
  return gaps;
}

TEST(ScheduleTest, SameSeedSameTimes) {
  EXPECT_EQ(Gaps({7, 1000, kBegin}, 100), Gaps({7, 1000, kBegin}, 100));
  EXPECT_NE(Gaps({7, 1000, kBegin}, 100), Gaps({8, 1000, kBegin}, 100));
}

// Gaps of a Poisson process are exponential: mean 1/rate, and as large a deviation.
TEST(ScheduleTest, GapsAreExponential) {
  constexpr int kCount = 100000;
  double sum = 0, squares = 0;
  int beyond_mean = 0;
  for (const absl::Duration gap : Gaps({3, 2000, kBegin}, kCount)) {
    const double x = absl::ToDoubleSeconds(gap) * 2000;
    sum += x;
    squares += x * x;
    beyond_mean += x > 1 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kCount, 1, 0.02);
  EXPECT_NEAR(squares / kCount, 2, 0.06);
  EXPECT_NEAR(static_cast<double>(beyond_mean) / kCount, std::exp(-1), 0.01);
}

TEST(ScheduleTest, ANewRateBeginsNow) {
  PoissonSchedule schedule(1, 0.001, kBegin);
  schedule.SetRate(1e6, kBegin + absl::Seconds(5));
  EXPECT_GE(schedule.next(), kBegin + absl::Seconds(5));
  EXPECT_LT(schedule.next(), kBegin + absl::Seconds(5.001));
}

TEST(ScheduleTest, RampIsEven) {
  Options options;
  options.rate = 1000;
  options.ramp_to = 5000;
  options.ramp_steps = 5;
  const std::vector<Stage> stages = StagesOf(options);
  ASSERT_EQ(stages.size(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_DOUBLE_EQ(stages[i].rate, 1000 * (i + 1));
}

// ---- Thresholds ----

const Metrics kKinds = {{"p99", {MetricKind::kTime}},
                        {"loss", {MetricKind::kShare}},
                        {"rate", {MetricKind::kNumber}},
                        {"cpu.kdc", {MetricKind::kTime}}};

TEST(ThresholdTest, UnitsAndOperators) {
  const std::pair<const char*, double> cases[] = {
      {"p99>250ms", 0.25}, {"p99 >= 250us", 0.00025}, {"p99>2s", 2},  {"loss>0.1%", 0.001},
      {"rate<8000", 8000}, {"cpu.kdc > 80ms", 0.08},  {"loss<=5%", 0.05}};
  for (const auto& [text, value] : cases) {
    absl::StatusOr<Threshold> t = ParseThreshold(text, kKinds);
    ASSERT_TRUE(t.ok()) << t.status();
    EXPECT_NEAR(t->value, value, 1e-12) << text;
  }
}

TEST(ThresholdTest, ErrorsNameWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"p98>1s", "no metric \"p98\""},   {"p99>250", "with its unit"}, {"p99>x", "with its unit"},
      {"rate<5ms", "without a unit"},    {"loss>0.1", "share in %"},   {"p99=5ms", "no < or >"},
      {"p99>infs", "with its unit"},     {"rate<", "without a unit"},  {"", "no < or >"}};
  for (const auto& [text, part] : cases) {
    absl::StatusOr<Threshold> t = ParseThreshold(text, kKinds);
    ASSERT_FALSE(t.ok()) << text;
    EXPECT_NE(std::string(t.status().message()).find(part), std::string::npos) << t.status();
  }
}

TEST(ThresholdTest, ExceededOnTheRightSide) {
  const std::tuple<const char*, double, bool> cases[] = {
      {"rate>5", 6, true},  {"rate>5", 5, false}, {"rate>=5", 5, true}, {"rate<5", 4, true},
      {"rate<5", 5, false}, {"rate<=5", 5, true}, {"p99>1s", 0, true}};  // was not measured
  for (const auto& [text, measured, exceeded] : cases) {
    const Metrics metrics = {{"rate", {MetricKind::kNumber, measured}}};
    EXPECT_EQ(Exceeded(*ParseThreshold(text, kKinds), metrics).has_value(), exceeded) << text;
  }
}

// ---- Which addresses ----

TEST(TargetTest, Addresses) {
  EXPECT_TRUE(ParseAddress("127.0.0.1:88").ok());
  EXPECT_TRUE(ParseAddress("[::1]:88").ok());
  for (const char* bad : {"", "88", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "localhost:88",
                          "kdc.example.com:88", "::1:88", "[::1:88", "127.0.0.1:8x"}) {
    EXPECT_FALSE(ParseAddress(bad).ok()) << bad;
  }
}

TEST(TargetTest, OnlyLoopbackUnlessInATestsNamespace) {
  const NetworkView ordinary = {false, true}, lab = {true, false}, container = {true, true};
  const auto may = [](const char* address, const NetworkView& view, bool own = false) {
    return MayLoad(*ParseAddress(address), view, own).ok();
  };
  for (const char* loopback : {"127.0.0.1:88", "127.9.8.7:1", "[::1]:88"}) {
    EXPECT_TRUE(may(loopback, ordinary)) << loopback;
  }
  for (const char* inside : {"10.0.0.1:88", "192.168.7.1:88", "172.31.0.1:88", "192.0.2.5:88",
                             "[fd00::1]:88"}) {
    EXPECT_FALSE(may(inside, ordinary)) << inside;
    EXPECT_FALSE(may(inside, container)) << inside;
    EXPECT_FALSE(may(inside, {false, false})) << inside;
    EXPECT_TRUE(may(inside, lab)) << inside;
  }
  for (const char* outside : {"8.8.8.8:88", "172.32.0.1:88", "128.0.0.1:88", "[2001:db8::1]:88"}) {
    EXPECT_FALSE(may(outside, ordinary)) << outside;
    EXPECT_FALSE(may(outside, lab)) << outside;
    EXPECT_TRUE(may(outside, ordinary, true)) << outside;
  }
}

TEST(TargetTest, DefaultRoutes) {
  const std::string head =
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\n";
  EXPECT_FALSE(HasDefaultRoute4(head));
  EXPECT_FALSE(HasDefaultRoute4(head + "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\n"));
  EXPECT_TRUE(HasDefaultRoute4(head + "eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\n"));
  const std::string zero(32, '0');
  const std::string ff = " ffffffff 00000001 00000000 00200200 ";
  EXPECT_FALSE(HasDefaultRoute6(absl::StrCat(zero, " 00 ", zero, " 00 ", zero, ff, "lo\n")));
  EXPECT_TRUE(HasDefaultRoute6(absl::StrCat(zero, " 00 ", zero, " 00 ", zero, ff, "eth0\n")));
}

// ---- CPU times ----

TEST(CpuMeterTest, FieldsOfStat) {
  const char line[] =
      "1234 (a) name) (x) S 1 1234 1234 0 -1 4194304 100 0 0 0 250 50 7 7 20 0 9 0 100 0 0";
  EXPECT_DOUBLE_EQ(CpuSecondsOfStat(line, 100), 3.0);
  EXPECT_LT(CpuSecondsOfStat("", 100), 0);
  EXPECT_LT(CpuSecondsOfStat("1 (x) S 1 2", 100), 0);
}

TEST(CpuMeterTest, NamesAndNumbers) {
  EXPECT_TRUE(ParseWith({"--pid", "kdc=12"}).ok());
  for (const char* bad : {"kdc", "=12", "kdc=", "kdc=x", "kdc=-1", "kdc=0"}) {
    EXPECT_FALSE(ParseWith({"--pid", bad}).ok()) << bad;
  }
  EXPECT_FALSE(CheckRunning({{"gone", 1 << 30}}).ok());
  const std::vector<WatchedProcess> twice = {{"self", getpid()}, {"self", getpid()}};
  EXPECT_TRUE(CheckRunning(twice).ok());
  EXPECT_EQ(ReadCpu(twice).others.size(), 1u);
}

// ---- Users ----

TEST(UsersTest, Patterns) {
  EXPECT_EQ(*ExpandPattern("user%06d", 42), "user000042");
  EXPECT_EQ(*ExpandPattern("%d/admin", 7), "7/admin");
  EXPECT_EQ(*ExpandPattern("100%%-%03d", 1234), "100%-1234");
  for (const char* bad : {"user", "user%", "user%s", "user%6d", "%d%d", "%0d x%n", "%020d"}) {
    EXPECT_FALSE(ExpandPattern(bad, 1).ok()) << bad;
  }
}

TEST(UsersTest, Csv) {
  absl::StatusOr<std::vector<CsvLine>> lines = ParseCsv("# name,password\nann,pa,ss\r\n\nbob,x\n");
  ASSERT_TRUE(lines.ok());
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ((*lines)[0].name, "ann");
  EXPECT_EQ(std::string((*lines)[0].password.begin(), (*lines)[0].password.end()), "pa,ss");
  for (const char* bad : {"", "ann", "ann,", ",x", "ann,x\nbob"}) {
    EXPECT_FALSE(ParseCsv(bad).ok()) << bad;
  }
}

TEST(UsersTest, OneSourceAndNoMore) {
  Options o;
  o.realm = "EXAMPLE.COM";
  o.enctype = 17;
  EXPECT_FALSE(MakeUsers(o, nullptr).ok());
  o.users = "u%d";
  EXPECT_FALSE(MakeUsers(o, nullptr).ok());  // no number
  o.number = 3;
  o.password = {'x'};
  absl::StatusOr<std::vector<User>> users = MakeUsers(o, nullptr);
  ASSERT_TRUE(users.ok()) << users.status();
  EXPECT_EQ(users->size(), 3u);
  o.csv = "/nowhere";
  EXPECT_FALSE(MakeUsers(o, nullptr).ok());
}

// ---- Handles ----

// Principal, kvno, enctype, digit of its handle.
using HandlesEntry = std::tuple<const char*, unsigned, const char*, char>;

absl::StatusOr<RealmHandles> Parse(const std::vector<HandlesEntry>& entries, int32_t of_users) {
  nlohmann::json keys;
  for (const auto& [principal, kvno, enctype, digit] : entries) {
    keys.push_back({{"principal", principal},
                    {"kvno", kvno},
                    {"enctype", enctype},
                    {"handle", std::string(32, digit)}});
  }
  return ParseHandles(nlohmann::json({{"keys", keys}}).dump(), "R", of_users);
}

TEST(HandlesTest, HighestVersionOfTheEnctype) {
  absl::StatusOr<RealmHandles> handles = Parse({{"ann@R", 2, "aes128-gcm", '2'},
                                                {"ann@R", 3, "aes128-gcm", '3'},
                                                {"ann@R", 1, "aes128-gcm", '1'},
                                                {"ann@R", 9, "aes256-gcm", '9'},
                                                {"krbtgt/R@R", 1, "aes256-gcm", 'a'},
                                                {"krbtgt/R@R", 1, "aes128-gcm", 'b'}},
                                               -24001);
  ASSERT_TRUE(handles.ok()) << handles.status();
  ASSERT_EQ(handles->users.size(), 1u);
  EXPECT_EQ(handles->users.at("ann@R")[0], 0x33);
  EXPECT_EQ(handles->krbtgt[0], 0xbb);
  EXPECT_EQ(handles->krbtgt_enctype, -24001);
}

// A TGT is under a GCM key, whatever the users have.
TEST(HandlesTest, KrbtgtsKeyIsOfGcm) {
  absl::StatusOr<RealmHandles> handles = Parse({{"ann@R", 2, "aes256-cts-hmac-sha1-96", '2'},
                                                {"krbtgt/R@R", 1, "aes256-gcm", 'a'},
                                                {"krbtgt/R@R", 7, "aes256-cts-hmac-sha1-96", 'b'}},
                                               18);
  ASSERT_TRUE(handles.ok()) << handles.status();
  EXPECT_EQ(handles->users.at("ann@R")[0], 0x22);
  EXPECT_EQ(handles->user_enctype, 18);
  EXPECT_EQ(handles->krbtgt_enctype, -24002);
}

TEST(HandlesTest, ErrorsSayWhereFrom) {
  for (const char* bad :
       {"", "[]", "{}", R"({"keys":[1]})", R"({"keys":[]})",
        R"({"keys":[{"principal":"a","kvno":1,"enctype":"aes128-gcm","handle":"00"}]})"}) {
    absl::StatusOr<RealmHandles> handles = ParseHandles(bad, "R", -24001);
    ASSERT_FALSE(handles.ok()) << bad;
    EXPECT_NE(handles.status().message().find("mpc-admin list --json"), std::string::npos);
  }
}

// ---- Errors by code ----

TEST(TallyTest, ErrorNames) {
  EXPECT_EQ(ErrorName(24), "KDC_ERR_PREAUTH_FAILED");
  EXPECT_EQ(ErrorName(93), "KRB_ERROR_93");
}

// ---- Options ----

TEST(OptionsTest, GoodOnes) {
  absl::StatusOr<Options> o =
      ParseWith({"--rate", "1000", "--ramp", "5000", "--duration", "2s", "--check", "10%", "--pid",
                 "a=1", "--pid", "b=2", "--fail-if", "p99>1s", "--wrong-passwords", "0.2"});
  ASSERT_TRUE(o.ok()) << o.status();
  EXPECT_EQ(o->enctype, -24001);
  EXPECT_EQ(o->in_flight, limits::kDefaultOpenLoopInFlight);
  EXPECT_EQ(o->processes.size(), 2u);
  EXPECT_DOUBLE_EQ(o->check, 0.1);
  EXPECT_DOUBLE_EQ(o->wrong_share, 0.2);
}

TEST(OptionsTest, BadOnesAreNamed) {
  const std::vector<std::string> cases[] = {
      {"--in-flight", "0"},    {"--in-flight", "x"},       {"--rate", "-1"},
      {"--duration", "5"},     {"--check", "101%"},        {"--enctype", "rot13"},
      {"--tgs", "1"},          {"--ramp", "5000"},         {"--plot", "x.gif"},
      {"--threads", "20"},     {"--pid", "12"},            {"--no-such-option"},
      {"--duration"},          {"stray"},                  {"--users", "u%d"},
      {"--rate", "10", "--ramp", "5"}};
  for (const std::vector<std::string>& more : cases) {
    EXPECT_FALSE(ParseWith(more).ok()) << more[0];
  }
  EXPECT_FALSE(ParseOptions({"--realm", "R"}).ok());
  EXPECT_FALSE(ParseOptions({"jobs", "--realm", "R", "--enctype", "17", "--keytab", "k"}).ok());
}

}  // namespace
}  // namespace mpckdc::storm
