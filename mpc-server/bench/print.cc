// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/print.h"

#include <sched.h>
#include <sys/utsname.h>

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpc-server/bench/commit.h"  // written by commit.cmake at each build

namespace mpckdc::bench {

// ---- The machine ----

namespace {

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    return std::string(absl::StripAsciiWhitespace(line.substr(line.find(':') + 1)));
  }
  return "unknown";
}
std::string Kernel() {
  utsname name = {};
  uname(&name);
  return absl::StrCat(name.sysname, " ", name.release);
}
std::string BestOfMachine() { return std::string(IsaName(SupportedIsas().back())); }

}  // namespace

int Cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof(cores), &cores);
  return CPU_COUNT(&cores);
}

std::string MachineText() {
  return absl::StrCat(CpuModel(), ", ", Cores(), " cores, ", Kernel(), ", best instruction set ",
                      BestOfMachine(), "; commit ", MPCKDC_COMMIT);
}

ordered_json Heading(const std::string& command) {
  const ordered_json machine = {
      {"cpu", CpuModel()}, {"cores", Cores()}, {"kernel", Kernel()}, {"best_isa", BestOfMachine()}};
  return {{"command", command},
          {"commit", MPCKDC_COMMIT},
          {"machine", machine},
          {"results", ordered_json::array()}};
}

// ---- JSON ----

std::string UnitName(Unit unit) {
  return unit == Unit::kLogin ? "login" : unit == Unit::kHmac ? "hmac" : "block";
}

ordered_json CtrJson(const ordered_json& blocks, const ordered_json& login) {
  const auto per_login = [&](const char* field) {
    return blocks[field].get<double>() / kCtrBlocks;
  };
  const double per_cpu_s = per_login("blocks_per_cpu_s");
  const double payload = blocks["payload_bytes_per_block_per_party"];
  return {
      {"blocks_per_login", kCtrBlocks},
      {"bits", blocks["bits"]},
      {"sbox", blocks["sbox"]},
      {"logins_per_s", per_login("blocks_per_s")},
      {"logins_per_cpu_s", per_cpu_s},
      {"payload_bytes_per_login_per_party", payload * kCtrBlocks},
      {"rounds", blocks["rounds"]},
      {"latency_ms", {{"p50", blocks["latency_ms"]["p50"]}, {"p99", blocks["latency_ms"]["p99"]}}},
      {"verified", blocks["verified"]},
      {"ratio", login["logins_per_cpu_s"].get<double>() / per_cpu_s}};
}

namespace {

// What was set, besides where it ran. Of a login "auto" stays: its two batches may differ.
void AddSetup(const BenchSetup& s, ordered_json& out) {
  if (s.unit == Unit::kBlock) {
    out.update({{"sbox", NameOf(kSboxChoices, {SboxOf(s)})}, {"bits", static_cast<int>(s.bits)},
                {"joined", s.joined}, {"chunk", s.chunk_lanes}, {"slots", s.slots}});
  } else if (s.unit == Unit::kHmac) {
    out.update({{"hash", NameOf(kHashes, s.hash)}, {"adder", NameOf(kAdderChoices, s.adder)},
                {"message", s.shared_messages ? "shared" : "public"},
                {"bytes", s.message_bytes}});
  } else {
    out.update({{"enctype", s.enctype}, {"checksum", s.checksum},
                {"protocol", NameOf(kProtocolChoices, s.protocol)},
                {"adder", NameOf(kAdderChoices, s.adder)}, {"sbox", NameOf(kSboxChoices, s.sbox)},
                {"request_bytes", s.request_bytes}, {"reply_bytes", s.reply_bytes}});
  }
}

}  // namespace

ordered_json SetupJson(const BenchSetup& s) {
  ordered_json out = {{"parties", NameOf(kPlacements, s.placement)},
                      {"channel", NameOf(kChannels, s.channel)},
                      {"batch", s.lanes},
                      {"workers", s.workers},
                      {"isa", std::string(IsaName(s.isa))}};
  AddSetup(s, out);
  out["randomness"] = NameOf(kRandomnesses, s.randomness);
  out["security"] = NameOf(kSecurities, s.security);
  const DeclaredSends declared = DeclaredOfAll(s);
  out["declared"] = {{"rounds", declared.cost.rounds},
                     {"bytes", declared.cost.bytes_to_next + declared.cost.bytes_to_prev},
                     {"messages", declared.frames}};
  return out;
}

// ---- Tables ----

namespace {

// A field of the result. `digits` are behind the point; of a spread it is how far the runs lie
// apart that is printed.
struct Column {
  const char* head;
  int width;  // below 0: to the left
  const char* field;
  int digits = 0;
};
using Table = std::vector<Column>;

constexpr Column kPlace = {"parties", -9, "/parties"}, kChannel = {"channel", -7, "/channel"},
                 kBatch = {"batch", 7, "/batch"}, kWorkers = {"W", 3, "/workers"},
                 kRandom = {"random", -9, "/randomness"},
                 kSecurity = {"security", -11, "/security"}, kIsa = {"isa", -8, "/isa"},
                 kSbox = {"sbox", -10, "/sbox"}, kAdder = {"adder", -13, "/adder"},
                 kP50 = {"p50 ms", 9, "/latency_ms/p50", 3},
                 kP99 = {"p99 ms", 9, "/latency_ms/p99", 3}, kRounds = {"rounds", 6, "/rounds"},
                 kFaults = {"faults", 7, "/minor_faults_per_batch", 1},
                 kVerified = {"verified", 8, "/verified"};

const Table kBlocks = {
    kPlace, kChannel, kBatch, kWorkers, {"joined", 6, "/joined"}, {"chunk", 6, "/chunk"},
    {"slots", 5, "/slots"}, kRandom, kSecurity, kIsa, kSbox, {"bits", 4, "/bits"},
    {"blocks/s", 9, "/blocks_per_s"}, {"/CPU-s", 9, "/blocks_per_cpu_s"},
    {"+-", 4, "/spread/blocks_per_cpu_s"}, kP50, kP99,
    {"B/block", 8, "/bytes_per_block_per_party", 2}, kRounds, {"msgs", 4, "/messages"}, kFaults,
    {"mem/block", 9, "/memory/bytes_per_block"}, kVerified,
    {"floor/CPU-s", 11, "/floor/blocks_per_cpu_s"}, {"ratio", 5, "/ratio_to_floor", 2}};
const Table kHmacs = {
    kPlace, kChannel, kBatch, kRandom, kSecurity, kIsa, {"hash", -6, "/hash"}, kAdder,
    {"message", -7, "/message"}, {"bytes", 5, "/bytes"}, {"hmacs/s", 9, "/hmacs_per_s"},
    {"/CPU-s", 8, "/hmacs_per_cpu_s"}, {"+-", 4, "/spread/hmacs_per_cpu_s"}, kP50, kP99,
    {"B/hmac", 7, "/payload_bytes_per_hmac_per_party"}, kRounds, kFaults,
    {"mem/hmac", 8, "/memory/bytes_per_hmac"}, kVerified};
const Table kLogins = {
    kPlace, kChannel, kBatch, kSecurity, kIsa, {"enctype", 7, "/enctype"},
    {"protocol", -10, "/protocol"}, {"checksum", 8, "/checksum"},
    kAdder, kSbox, {"logins/s", 9, "/logins_per_s"}, {"/CPU-s", 8, "/logins_per_cpu_s"},
    {"+-", 4, "/spread/logins_per_cpu_s"}, kP50, kP99,
    {"B/login", 7, "/payload_bytes_per_login_per_party"}, kRounds,
    {"declared", 8, "/cost_as_declared"}, {"CTR/CPU-s", 9, "/ctr/logins_per_cpu_s"},
    {"ratio", 5, "/ctr/ratio", 3}, kVerified};
const Table kTable2 = {
    {"here, 3 parties x W workers", -27, "/parties"}, kWorkers, kBatch, kChannel, kIsa,
    {"blocks/s", 9, "/blocks_per_s"}, {"/core-s", 9, "/blocks_per_cpu_s"},
    {"p50 ms", 8, "/latency_ms/p50", 2},
    {"times the paper's 1 core", 24, "/times_the_paper_per_core_s", 1}, kVerified};

const Table& TableOf(const std::string& command) {
  static const Table none;
  if (command == "breakdown") return none;
  if (command == "hmac") return kHmacs;
  if (command == "rfc3962") return kLogins;
  return command == "table2" ? kTable2 : kBlocks;
}

std::string Cell(const Column& column, const ordered_json& result) {
  const ordered_json::json_pointer field(column.field);
  if (!result.contains(field)) return "";
  const ordered_json& value = result[field];
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (!value.is_object()) return absl::StrFormat("%.*f", column.digits, value.get<double>());
  const double apart = value["max"].get<double>() - value["min"].get<double>();
  return absl::StrFormat("%.0f%%", 50 * apart / value["median"].get<double>());
}

template <class Text>
std::string Line(const std::string& command, Text text) {
  std::string line;
  for (const Column& c : TableOf(command)) absl::StrAppendFormat(&line, "%*s ", c.width, text(c));
  return line.empty() ? line : line + "\n";
}

}  // namespace

std::string TableHead(const std::string& command) {
  return Line(command, [](const Column& column) { return column.head; });
}

std::string TableLine(const std::string& command, const ordered_json& result) {
  return Line(command, [&](const Column& column) { return Cell(column, result); });
}

// ---- The paper ----

namespace {

// Only figures that could be checked; the table's rows for 5, 10 and 16 cores and its latencies
// could not.
struct PaperRow {
  int cores_per_server;
  double blocks_per_s;

  double PerCoreSecond() const { return blocks_per_s / (kParties * cores_per_server); }
};
constexpr PaperRow kPaper[] = {{1, 100'103}, {20, 1'320'000}};

}  // namespace

double TimesThePaper(const ordered_json& result) {
  return result["blocks_per_cpu_s"].get<double>() / kPaper[0].PerCoreSecond();
}

ordered_json PaperJson() {
  ordered_json rows = ordered_json::array();
  for (const PaperRow& row : kPaper) {
    rows.push_back({{"cores_per_server", row.cores_per_server},
                    {"blocks_per_s", row.blocks_per_s},
                    {"blocks_per_core_s", row.PerCoreSecond()}});
  }
  return rows;
}

std::string PaperText() {
  std::string text;
  for (const PaperRow& row : kPaper) {
    absl::StrAppendFormat(&text, "paper, 3 servers x %2d cores  %26s %10.0f %10.0f\n",
                          row.cores_per_server, "", row.blocks_per_s, row.PerCoreSecond());
  }
  return text;
}

}  // namespace mpckdc::bench
