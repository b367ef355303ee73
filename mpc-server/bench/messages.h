// SPDX-License-Identifier: Apache-2.0
// What is said to a party and what it answers: one JSON object each. The three `mpc-bench party`
// processes read a command per line from standard input and write an answer per line.
//
//   {"do": "keys"}                              {}                    shares of the keys are made
//   {"do": "run", "work": "aes", "batches": 9}  a PartyReport         or "work": "floor"
//   {"do": "outputs", "lanes": [0, 7]}          an OutputsReport      lane by lane
//   {"do": "memory"}                            a MemoryReport
//
// The party's first line is {"ready": true}, after both neighbours are connected. An answer
// {"error": "..."} ends the party, as does the end of its input.
#ifndef MPC_SERVER_BENCH_MESSAGES_H_
#define MPC_SERVER_BENCH_MESSAGES_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/replicated_share.h"

// As hex of x and a. What is not that comes out as another share: Read() refuses it.
template <>
struct nlohmann::adl_serializer<mpckdc::SharedBlock> {
  static void to_json(json& message, const mpckdc::SharedBlock& share) {
    message = absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(&share), sizeof(share)));
  }
  static void from_json(const json& message, mpckdc::SharedBlock& share) {
    const std::string bytes = absl::HexStringToBytes(message.get<std::string>());
    std::memcpy(&share, bytes.data(), std::min(bytes.size(), sizeof(share)));
  }
};

namespace mpckdc::bench {

using nlohmann::json;

// One team of one party over all batches of a run.
struct WorkerReport {
  std::vector<int64_t> latency_ns;  // of each batch
  uint64_t rounds = 0, bytes_to_next = 0, bytes_to_prev = 0;  // as the runner counted
  uint64_t proof_rounds = 0, proof_to_next = 0, proof_to_prev = 0;  // of them, as proofs declare
  uint64_t frames = 0;  // sent, as the channel counted
  uint64_t bytes = 0;   // sent, frame headers included
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WorkerReport, latency_ns, rounds, bytes_to_next, bytes_to_prev,
                                   proof_rounds, proof_to_next, proof_to_prev, frames, bytes)

struct PartyReport {
  std::vector<WorkerReport> workers;
  int64_t start_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC around the whole run
  int64_t cpu_ns = 0;                // user and system, all threads
  uint64_t minor_faults = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PartyReport, workers, start_ns, end_ns, cpu_ns, minor_faults)

struct MemoryReport {
  uint64_t idle_bytes = 0;  // resident: connected, no keys yet
  uint64_t peak_bytes = 0;  // resident, at most, since then
  uint64_t key_bytes = 0;   // of the batch's keys and inputs, which a server has anyway
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MemoryReport, idle_bytes, peak_bytes, key_bytes)

struct OutputsReport {
  std::vector<SharedBlock> shares;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OutputsReport, shares)

// A line that is not a JSON object is DataLoss; an answer with "error" is that error.
inline absl::StatusOr<json> ParseMessage(absl::string_view line) {
  json message = json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!message.is_object()) {
    return absl::DataLossError(absl::StrCat("not a JSON object: \"", line.substr(0, 200), "\""));
  }
  const auto error = message.find("error");
  if (error == message.end() || !error->is_string()) return message;
  return absl::UnavailableError(error->get<std::string>());
}

// DataLoss if the message is not exactly a T's.
template <class T>
absl::StatusOr<T> Read(const json& message) {
  try {
    T value = message.get<T>();
    if (json(value).dump() == message.dump()) return value;
    return absl::DataLossError(absl::StrCat("a message has other fields or values than it may: ",
                                            message.dump().substr(0, 200)));
  } catch (const json::exception& e) {
    return absl::DataLossError(absl::StrCat("a message lacks a field: ", e.what()));
  }
}

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_MESSAGES_H_
