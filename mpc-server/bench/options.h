// SPDX-License-Identifier: Apache-2.0
// The command line of mpc-bench, checked against one table.
#ifndef MPC_SERVER_BENCH_OPTIONS_H_
#define MPC_SERVER_BENCH_OPTIONS_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/bench/links.h"
#include "mpc-server/bench/setup.h"

namespace mpckdc::bench {

struct Options {
  std::string command;  // aes, hmac, rfc3962, channel, breakdown, table2 or party
  bool help = false, version = false;

  // Each combination of these is measured.
  std::vector<Channel> channels = {DefaultChannel()};
  bool all_channels = false;
  std::vector<size_t> batches;  // empty: 16384; for hmac 2048; for rfc3962 500
  std::vector<int> workers;  // empty: 1; for table2 1 and the number of cores
  std::vector<Isa> isas;                      // empty: the best
  std::vector<std::optional<Sbox>> sboxes = {std::nullopt};  // nullopt: by the batch's size
  std::vector<AesBits> bits = {AesBits::k128};
  std::vector<size_t> parts = {limits::kPartBlocks}, slots = {limits::kPartsUnderWay};
  std::vector<Randomness> randomness = {Randomness::kKeyed};
  bool joined = false;
  // Of hmac. Hashes of a party: it is one of an hmac's.
  std::vector<HashKind> hashes;
  std::vector<Adder> adders = {Adder::kPrefix};
  std::vector<bool> shared_messages = {true};
  std::vector<size_t> message_bytes = {300};
  // Of rfc3962, with the adders. Enctypes of a party: it is one of a login's.
  std::vector<int32_t> enctypes;
  std::vector<bool> checksums = {true};
  std::vector<size_t> request_bytes = {LoginSetup().request_bytes};
  std::vector<size_t> reply_bytes = {LoginSetup().reply_bytes};

  Placement placement = Placement::kProcesses;
  double seconds = 2;   // of measuring, per combination
  int runs = 3;         // that the seconds are divided into
  bool with_floor = false;
  bool json = false;
  bool brief = false;
  std::string save;     // a file for the JSON
  LinkTuning tuning;
  std::vector<std::string> launch;
  std::array<std::string, kParties> addresses;

  // party
  int party = -1;
  std::string listen, ca, certificate, key;
  std::array<std::string, kParties> peers;
  uint64_t seed = 1;
};

// Arguments without the program's name. Errors name the option and what it takes.
absl::StatusOr<Options> ParseOptions(absl::Span<const std::string> arguments);

std::string HelpText();

// The variant that a batch of `setup` gets by "auto", as the servers choose it: by what one team
// has of it.
Sbox AutoSbox(const BenchSetup& setup);

// The combinations, in order.
std::vector<BenchSetup> Setups(const Options& options);

// The arguments that make a party process of this setup; parsing them gives it back.
std::vector<std::string> PartyArguments(const BenchSetup& setup, int party);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_OPTIONS_H_
