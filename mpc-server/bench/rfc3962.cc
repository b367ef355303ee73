// SPDX-License-Identifier: Apache-2.0
// A login under one of the enctypes 17 to 20 beside one under the CTR enctypes, which is 33 AES
// blocks: measured right after it, on a batch of as many logins, with keys of the same size.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpc-server/bench/commands.h"
#include "mpc-server/bench/login_workload.h"

namespace mpckdc::bench {
namespace {

constexpr size_t kCtrBlocks = 33;

BenchSetup CtrSetup(const BenchSetup& login) {
  BenchSetup ctr = login;
  ctr.login.reset();
  ctr.bits = LoginSizes(login).bits;
  ctr.lanes = login.lanes * kCtrBlocks;
  ctr.sbox = AutoSbox(ctr);
  return ctr;
}

double LoginsPerCpuS(const Measurement& ctr) {
  return ctr.aes->blocks_per_cpu_s.median / kCtrBlocks;
}

ordered_json CtrJson(const Measurement& ctr, double ratio) {
  return {{"blocks_per_login", kCtrBlocks},
          {"bits", static_cast<int>(ctr.setup.bits)},
          {"sbox", std::string(SboxName(ctr.setup.sbox))},
          {"logins_per_s", ctr.aes->blocks_per_s.median / kCtrBlocks},
          {"logins_per_cpu_s", LoginsPerCpuS(ctr)},
          {"payload_bytes_per_login_per_party",
           ctr.aes->payload_bytes_per_block_per_party * kCtrBlocks},
          {"rounds", ctr.aes->rounds},
          {"latency_ms", {{"p50", ctr.aes->p50_ms}, {"p99", ctr.aes->p99_ms}}},
          {"verified", ctr.verified},
          {"ratio", ratio}};
}

constexpr char kHead[] =
    "parties   channel   logins isa      enctype checksum adder         sbox         logins/s"
    "   /CPU-s    +-    p50 ms    p99 ms  B/login   rounds declared  CTR/CPU-s ratio verified\n";

std::string Line(const Measurement& m, const Measurement& ctr, double ratio) {
  const BenchSetup& s = m.setup;
  const Result& r = *m.aes;
  const double half = 0.5 * (r.blocks_per_cpu_s.max - r.blocks_per_cpu_s.min);
  return absl::StrFormat(
      "%-9s %-7s %8d %-8s %7d %-8s %-13s %-10s %10.0f %8.0f %3.0f%% %9.3f %9.3f %8.0f %8.0f %8s"
      " %10.0f %5.3f %8s\n",
      PlacementName(s.placement), ChannelName(s.channel), s.lanes, IsaName(s.isa),
      s.login->enctype, s.login->checksum ? "yes" : "no", AdderName(s.login->adder),
      SboxName(s.sbox), r.blocks_per_s.median, r.blocks_per_cpu_s.median,
      100 * half / r.blocks_per_cpu_s.median, r.p50_ms, r.p99_ms,
      r.payload_bytes_per_block_per_party, r.rounds, r.cost_as_declared ? "yes" : "NO",
      LoginsPerCpuS(ctr), ratio, m.verified && ctr.verified ? "yes" : "NO");
}

}  // namespace

absl::StatusOr<Findings> Rfc3962(const Options& o, const MeasureSetup& measure) {
  Findings found;
  found.data = Heading("rfc3962");
  found.text = absl::StrCat(HeadingText(o.brief), kHead);
  for (const BenchSetup& s : Setups(o)) {
    absl::StatusOr<Measurement> m = measure(s, {true, false, o.seconds, o.runs});
    if (!m.ok()) return m.status();
    absl::StatusOr<Measurement> ctr = measure(CtrSetup(s), {true, false, o.seconds, o.runs});
    if (!ctr.ok()) return ctr.status();
    const double ratio = m->aes->blocks_per_cpu_s.median / LoginsPerCpuS(*ctr);
    ordered_json result = MeasurementJson(*m);
    result["ctr"] = CtrJson(*ctr, ratio);
    found.data["results"].push_back(std::move(result));
    found.text += Line(*m, *ctr, ratio);
    found.verified = found.verified && m->verified && ctr->verified;
  }
  return found;
}

}  // namespace mpckdc::bench
