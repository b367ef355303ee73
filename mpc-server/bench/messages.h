// SPDX-License-Identifier: Apache-2.0
// What `mpc-bench` and its three `mpc-bench party` processes say to each other: one JSON object per
// line, commands on the party's standard input, one answer each on its standard output.
//
//   {"do": "keys"}                              {}                    shares of the keys are made
//   {"do": "run", "work": "aes", "batches": 9}  a report (below)      or "work": "floor"
//   {"do": "outputs", "lanes": [0, 7]}          {"shares": ["..."]}   hex of x and a, per lane
//   {"do": "memory"}                            {"idle_bytes": ...}
//
// The party's first line is {"ready": true}, after both neighbours are connected. An answer
// {"error": "..."} ends the party, as does the end of its input.
#ifndef MPC_SERVER_BENCH_MESSAGES_H_
#define MPC_SERVER_BENCH_MESSAGES_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mpc-server/bench/report.h"
#include "mpc-server/bench/usage.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc::bench {

using nlohmann::json;

// A line that is not a JSON object is DataLoss; an answer with "error" is that error.
absl::StatusOr<json> ParseMessage(absl::string_view line);

json ToJson(const PartyReport& report, const Usage& used);
absl::Status FromJson(const json& message, PartyReport* report, Usage* used);

json ToJson(const MemoryReport& memory);
absl::Status FromJson(const json& message, MemoryReport* memory);

json SharesToJson(const std::vector<SharedBlock>& shares);
absl::Status SharesFromJson(const json& message, std::vector<SharedBlock>* shares);

// The number at `key`, which must be there and not negative.
absl::StatusOr<uint64_t> NumberAt(const json& message, const char* key);
// The text at `key`; empty if there is none.
std::string TextAt(const json& message, const char* key);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_MESSAGES_H_
