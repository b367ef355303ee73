// SPDX-License-Identifier: Apache-2.0
// The whole is measured by running the protocol, communication by running the channel alone, the
// local parts by running the engine's functions alone (kernel_costs.h). What the parts do not
// explain is printed as such: caches that the parts find warm and the whole does not, the runner.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpc-server/bench/commands.h"
#include "mpc-server/bench/kernel_costs.h"

namespace mpckdc::bench {
namespace {

struct Part {
  const char* name;
  double ns = 0;  // per block and party
};

// Of the local parts.
struct LocalCosts {
  Part slicing = {"slicing of round keys"};
  Part gates = {"gates"};
  Part randomness = {"randomness"};
  Part input_output = {"input and output"};
  double cycles_per_ns = 0;  // of the time stamp counter; 0: there is none
};

// The zero shares are made inside the kernels where that is faster. So the gates are timed with the
// zero shares apart, and randomness is what it adds to the gates as the engine runs them.
LocalCosts MeasureLocal(const BenchSetup& s) {
  KernelCostOptions options;
  options.bits = s.bits;
  options.isa = s.isa;
  options.sbox = s.sbox;
  options.batch = std::min(LanesOf(s, 0), s.part_lanes * s.slots);  // what is touched in turn
  LocalCosts local;
  for (bool apart : {false, true}) {
    options.zeros_apart = apart;
    for (const KernelCost& c : MeasureKernelCosts(options)) {
      const bool stage = absl::StartsWith(c.part, "aes/");
      if (apart) {
        if (stage) local.gates.ns += c.ns.median;
      } else if (stage || c.part == "zero shares") {
        local.randomness.ns += c.ns.median;
      } else if (c.part == "total") {
        local.cycles_per_ns = c.ns.median > 0 ? c.cycles.median / c.ns.median : 0;
      } else {
        (c.part == "round keys" ? local.slicing : local.input_output).ns += c.ns.median;
      }
    }
  }
  local.randomness.ns -= local.gates.ns;
  return local;
}

void Add(const Part& part, double total_ns, double cycles_per_ns, ordered_json& rows,
         std::string& text) {
  const double percent = 100 * part.ns / total_ns;
  rows.push_back({{"part", part.name},
                  {"ns_per_block", part.ns},
                  {"cycles_per_block", part.ns * cycles_per_ns},
                  {"percent", percent}});
  absl::StrAppendFormat(&text, "  %-26s %9.1f ns %9.1f cycles %6.1f %%\n", part.name, part.ns,
                        part.ns * cycles_per_ns, percent);
}

std::string Title(const BenchSetup& s) {
  return absl::StrFormat(
      "CPU time per block and party: AES-%d, batch %d, %d worker(s), %s, %s, %s S-box, %s\n",
      static_cast<int>(s.bits), s.lanes, s.workers, ChannelName(s.channel), IsaName(s.isa),
      SboxName(s.sbox), PlacementName(s.placement));
}

}  // namespace

absl::StatusOr<Findings> Breakdown(const Options& o, const MeasureSetup& measure) {
  Findings found;
  found.data = Heading("breakdown");
  found.text = HeadingText(o.brief);
  for (const BenchSetup& setup : Setups(o)) {
    absl::StatusOr<Measurement> m = measure(setup, {true, true, o.seconds, o.runs});
    if (!m.ok()) return m.status();
    const LocalCosts local = MeasureLocal(setup);
    const double total = m->aes->cpu_ns_per_block_per_party();
    const Part communication = {"communication", m->floor->cpu_ns_per_block_per_party()};
    Part rest = {"not explained by the parts", total};
    ordered_json result = MeasurementJson(*m);
    ordered_json rows = ordered_json::array();
    absl::StrAppend(&found.text, "\n", Title(setup));
    for (const Part& p : {local.slicing, local.gates, local.randomness, communication,
                          local.input_output}) {
      Add(p, total, local.cycles_per_ns, rows, found.text);
      rest.ns -= p.ns;
    }
    Add(rest, total, local.cycles_per_ns, rows, found.text);
    Add({"whole, as run", total}, total, local.cycles_per_ns, rows, found.text);
    result["breakdown"] = std::move(rows);
    result["tsc_ghz"] = local.cycles_per_ns;
    found.data["results"].push_back(std::move(result));
    found.verified = found.verified && m->verified;
  }
  return found;
}

}  // namespace mpckdc::bench
