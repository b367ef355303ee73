// SPDX-License-Identifier: Apache-2.0
//
// One server of three lies, a million times: each time a short computation (sim/subjects.h) in a
// session of its own, and one message that is not what it should be (testing/deviating_channel.h).
// A run is a function of its number. doc/simulation.md, "A server that lies".
#ifndef MPC_SERVER_SIM_LIES_H_
#define MPC_SERVER_SIM_LIES_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "mpc-server/sim/subjects.h"
#include "mpc-server/testing/deviating_channel.h"
#include "mpc-server/testing/tested_security.h"

namespace mpckdc::sim {

// What a lie led to, by what the two honest servers hold in the end.
enum class LieEnd {
  kNone,       // it never came to it: no message suited
  kNamed,      // both end with an error, and one that accuses the liar
  kUnnamed,    // both end with an error, and nobody is accused
  kNoEffect,   // both go on, with right shares of right values
  kWrong,      // both go on, and something is wrong: it would leave the servers
  kOneGoesOn,  // one ends, one goes on
  kMisnamed,   // an honest server is accused alone
  kSelective,  // no effect, but with other secrets it has one: whoever sees that learns of them
};
inline constexpr int kLieEnds = static_cast<int>(LieEnd::kSelective) + 1;
const char* LieEndName(LieEnd end);

// What one run did and came to.
struct LieRun {
  std::string subject, step;
  LieKind kind = LieKind::kOneBit;
  int liar = 0;
  bool control = false, own_state = false;
  bool named = false;  // by one honest server at least
  // It was told in openings and verdicts alone: what one server gets there is not what another
  // gets.
  bool told_apart = false;
  LieEnd end = LieEnd::kNone;
  std::string detail;  // of the honest servers' errors
};
// Whether active security may not let it come to this.
bool IsFailure(const LieRun& run);

// What stands between computing values and letting them go: the proof of all that was sent. OK:
// they may go. Only a test may look at the lie.
using Prover =
    std::function<absl::Status(PartyContext& party, const LieRun& run, const Liar& liar)>;
// In active mode the servers prove here what they sent; semi-honest ones do nothing.
Prover ProverOf(Security security);

// Counts of many runs.
struct LieCounts {
  using Row = std::array<uint64_t, kLieEnds>;
  std::map<std::string, Row> by_kind, by_subject, by_step;
  uint64_t failures = 0;
  std::vector<std::string> first_failures;  // with the runs' numbers

  void Add(uint64_t number, const LieRun& run);
  void Add(const LieCounts& other);
  Row Sum() const;
  std::string Summary() const;
};

// Runs lies one after the other; not thread safe, one for each thread.
class Lies {
 public:
  explicit Lies(Prover prover = ProverOf(TestedSecurity()));
  ~Lies();

  LieRun Run(uint64_t number);

 private:
  struct Honest;
  struct Session;
  LieRun Once(uint64_t number, size_t subject, size_t inputs);
  const Honest& ReferenceOf(size_t subject, size_t inputs);
  Lie Draw(uint64_t number, const Honest& honest, LieRun* run);
  void Compute(Session& session, const LieRun& run, Subject& subject, int batches);
  LieEnd Judge(const Session& session, const Honest& honest, LieRun* run) const;

  const Prover prover_;
  // Inputs drawn in some ways.
  std::vector<std::vector<std::unique_ptr<Subject>>> subjects_;
  std::map<std::pair<size_t, size_t>, std::unique_ptr<Honest>> references_;
};

// Runs `first` .. `first + runs - 1` on `jobs` threads.
LieCounts RunLies(uint64_t first, uint64_t runs, int jobs,
                  const Prover& prover = ProverOf(TestedSecurity()));

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_LIES_H_
