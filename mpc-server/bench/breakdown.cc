// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/breakdown.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpckdc::bench {

std::string Breakdown(const Measurement& m, ordered_json* result) {
  const BenchSetup& s = m.setup;
  const LocalCosts local = MeasureLocal(s);
  const double total = m.lanes->cpu_ns_per_lane_per_party();
  const double communication = m.floor->cpu_ns_per_lane_per_party();
  const double explained = local.slicing_ns + local.gates_ns + local.randomness_ns +
                           communication + local.input_output_ns;
  const std::pair<const char*, double> parts[] = {
      {"slicing of round keys", local.slicing_ns},
      {"gates", local.gates_ns},
      {"randomness", local.randomness_ns},
      {"communication", communication},
      {"input and output", local.input_output_ns},
      {"not explained by the parts", total - explained},
      {"whole, as run", total}};
  std::string text = absl::StrFormat(
      "\nCPU time per block and party: AES-%d, batch %d, %d worker(s), %s, %s, %s S-box, %s\n",
      static_cast<int>(s.bits), s.lanes, s.workers, NameOf(kChannels, s.channel), IsaName(s.isa),
      NameOf(kSboxChoices, {SboxOf(s)}), NameOf(kPlacements, s.placement));
  for (const auto& [name, ns] : parts) {
    const double cycles = ns * local.cycles_per_ns, percent = 100 * ns / total;
    (*result)["breakdown"].push_back({{"part", name},
                                      {"ns_per_block", ns},
                                      {"cycles_per_block", cycles},
                                      {"percent", percent}});
    absl::StrAppendFormat(&text, "  %-26s %9.1f ns %9.1f cycles %6.1f %%\n", name, ns, cycles,
                          percent);
  }
  (*result)["tsc_ghz"] = local.cycles_per_ns;
  return text;
}

}  // namespace mpckdc::bench
