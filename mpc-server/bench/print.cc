// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/print.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpc-server/bench/machine.h"

namespace mpckdc::bench {
namespace {

ordered_json SpreadJson(const Spread& s) {
  return {{"min", s.min}, {"median", s.median}, {"max", s.max}};
}

// `unit` is what a lane is: a block or an hmac.
void AddResult(const Result& r, ordered_json& out, const std::string& unit = "block") {
  const std::string per_s = unit + "s_per_s", per_cpu_s = unit + "s_per_cpu_s";
  out["batches"] = r.batches;
  out[per_s] = r.blocks_per_s.median;
  out[per_cpu_s] = r.blocks_per_cpu_s.median;
  out["cpu_ns_per_" + unit + "_per_party"] = r.cpu_ns_per_block_per_party();
  out["bytes_per_" + unit + "_per_party"] = r.bytes_per_block_per_party;
  out["payload_bytes_per_" + unit + "_per_party"] = r.payload_bytes_per_block_per_party;
  out["rounds"] = r.rounds;
  out["messages"] = r.messages;
  out["cost_as_declared"] = r.cost_as_declared;
  out["latency_ms"] = {{"p50", r.p50_ms}, {"p99", r.p99_ms}, {"max", r.max_ms}};
  out["minor_faults_per_batch"] = r.minor_faults_per_batch;
  out["spread"] = {{per_s, SpreadJson(r.blocks_per_s)},
                   {per_cpu_s, SpreadJson(r.blocks_per_cpu_s)}};
}

double Ratio(const Measurement& m) {
  return m.aes->blocks_per_cpu_s.median / m.floor->blocks_per_cpu_s.median;
}

std::string Columns(const BenchSetup& s) {
  const std::string workers = absl::StrCat(s.workers, s.joined ? "j" : "");
  const std::string parts = absl::StrCat(s.slots, "x", s.part_lanes);
  return absl::StrFormat("%-9s %-7s %8d %3s %8s %-9s %-8s %-10s %4d", PlacementName(s.placement),
                         ChannelName(s.channel), s.lanes, workers, parts,
                         RandomnessName(s.randomness), IsaName(s.isa), SboxName(s.sbox),
                         static_cast<int>(s.bits));
}
constexpr char kColumns[] =
    "parties   channel    batch   W    parts random    isa      sbox       bits";

std::string Columns(const Result& r) {
  const double half = 0.5 * (r.blocks_per_cpu_s.max - r.blocks_per_cpu_s.min);
  return absl::StrFormat("%10.0f %10.0f %3.0f%% %9.3f %9.3f %8.2f %4.0f %4.0f %7.1f",
                         r.blocks_per_s.median, r.blocks_per_cpu_s.median,
                         100 * half / r.blocks_per_cpu_s.median, r.p50_ms, r.p99_ms,
                         r.bytes_per_block_per_party, r.rounds, r.messages,
                         r.minor_faults_per_batch);
}
constexpr char kResultColumns[] =
    "  blocks/s   /CPU-s    +-    p50 ms    p99 ms  B/block rnds msgs  faults";

}  // namespace

ordered_json Heading(const std::string& command) {
  const Machine m = ThisMachine();
  return {{"command", command},
          {"commit", Commit()},
          {"machine",
           {{"cpu", m.cpu}, {"cores", m.cores}, {"kernel", m.kernel}, {"best_isa", m.best_isa}}},
          {"results", ordered_json::array()}};
}

std::string HeadingText(bool brief) {
  if (brief) return "";
  const Machine m = ThisMachine();
  return absl::StrFormat("%s, %d cores, %s, best instruction set %s; commit %s\n", m.cpu, m.cores,
                         m.kernel, m.best_isa, Commit());
}

namespace {

// What was set, besides where it ran.
void AddAesSetup(const BenchSetup& s, ordered_json& out) {
  out["sbox"] = std::string(SboxName(s.sbox));
  out["bits"] = static_cast<int>(s.bits);
  out["joined"] = s.joined;
  out["part"] = s.part_lanes;
  out["slots"] = s.slots;
}
void AddHmacSetup(const HmacSetup& h, ordered_json& out) {
  out["hash"] = std::string(HashName(h.hash));
  out["adder"] = std::string(AdderName(h.adder));
  out["message"] = h.shared ? "shared" : "public";
  out["bytes"] = h.bytes;
}
void AddLoginSetup(const BenchSetup& s, ordered_json& out) {
  out["enctype"] = s.login->enctype;
  out["checksum"] = s.login->checksum;
  out["adder"] = std::string(AdderName(s.login->adder));
  out["sbox"] = std::string(SboxName(s.sbox));
  out["request_bytes"] = s.login->request_bytes;
  out["reply_bytes"] = s.login->reply_bytes;
}

}  // namespace

ordered_json MeasurementJson(const Measurement& m) {
  const BenchSetup& s = m.setup;
  const std::string unit = s.login.has_value() ? "login" : s.hmac.has_value() ? "hmac" : "block";
  ordered_json out = {{"parties", std::string(PlacementName(s.placement))},
                      {"channel", std::string(ChannelName(s.channel))},
                      {"batch", s.lanes},
                      {"workers", s.workers},
                      {"isa", std::string(IsaName(s.isa))}};
  if (s.login.has_value()) {
    AddLoginSetup(s, out);
  } else if (s.hmac.has_value()) {
    AddHmacSetup(*s.hmac, out);
  } else {
    AddAesSetup(s, out);
  }
  out["randomness"] = std::string(RandomnessName(s.randomness));
  const DeclaredSends declared = DeclaredOfAll(s);
  out["declared"] = {{"rounds", declared.cost.rounds},
                     {"bytes", declared.cost.bytes_to_next + declared.cost.bytes_to_prev},
                     {"messages", declared.frames}};
  if (m.aes.has_value()) {
    AddResult(*m.aes, out, unit);
    out["verified"] = m.verified;
    out["verified_lanes"] = m.verified_lanes;
    out["memory"] = {{"bytes_per_" + unit, m.memory_per_block},
                     {"bytes_per_" + unit + "_without_keys", m.memory_without_keys_per_block},
                     {"idle_bytes", m.idle_bytes}};
    if (m.floor.has_value()) {
      AddResult(*m.floor, out["floor"]);
      out["ratio_to_floor"] = Ratio(m);
    }
  } else if (m.floor.has_value()) {
    AddResult(*m.floor, out);
  }
  return out;
}

std::string AesTableHead(bool with_floor) {
  return absl::StrCat(kColumns, kResultColumns, "  mem/block verified",
                      with_floor ? " floor/CPU-s ratio" : "", "\n");
}

std::string AesTableLine(const Measurement& m) {
  std::string line = absl::StrCat(
      Columns(m.setup), Columns(*m.aes),
      absl::StrFormat(" %10.0f %8s", m.memory_per_block, m.verified ? "yes" : "NO"));
  if (m.floor.has_value()) {
    absl::StrAppendFormat(&line, " %11.0f %5.2f", m.floor->blocks_per_cpu_s.median, Ratio(m));
  }
  return line + "\n";
}

std::string HmacTableHead() {
  return "parties   channel    batch random    isa      hash   adder         message bytes"
         "    hmacs/s   /CPU-s    +-    p50 ms    p99 ms  B/hmac  rnds  faults mem/hmac verified\n";
}
std::string HmacTableLine(const Measurement& m) {
  const BenchSetup& s = m.setup;
  const Result& r = *m.aes;
  const double half = 0.5 * (r.blocks_per_cpu_s.max - r.blocks_per_cpu_s.min);
  return absl::StrFormat(
      "%-9s %-7s %8d %-9s %-8s %-6s %-13s %-7s %5d %10.0f %8.0f %3.0f%% %9.3f %9.3f %7.0f %5.0f"
      " %7.1f %8.0f %8s\n",
      PlacementName(s.placement), ChannelName(s.channel), s.lanes, RandomnessName(s.randomness),
      IsaName(s.isa), HashName(s.hmac->hash), AdderName(s.hmac->adder),
      s.hmac->shared ? "shared" : "public", s.hmac->bytes, r.blocks_per_s.median,
      r.blocks_per_cpu_s.median, 100 * half / r.blocks_per_cpu_s.median, r.p50_ms, r.p99_ms,
      r.payload_bytes_per_block_per_party, r.rounds, r.minor_faults_per_batch, m.memory_per_block,
      m.verified ? "yes" : "NO");
}

std::string ChannelTableHead() { return absl::StrCat(kColumns, kResultColumns, "\n"); }
std::string ChannelTableLine(const Measurement& m) {
  return absl::StrCat(Columns(m.setup), Columns(*m.floor), "\n");
}

}  // namespace mpckdc::bench
