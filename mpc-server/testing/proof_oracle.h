// SPDX-License-Identifier: Apache-2.0
// Is what three servers recorded true? (share/proof_log.h) Reads the three logs together, as nobody
// can who is one of the three: the oracle of what circuits record, and of proofs.
#ifndef MPC_SERVER_TESTING_PROOF_ORACLE_H_
#define MPC_SERVER_TESTING_PROOF_ORACLE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mpc-server/share/proof_log.h"

namespace mpckdc {

// One party's closed sections, copied.
class Recording {
 public:
  // Adds what `log` has now.
  void Add(const ProofLog& log);

  const std::vector<ProofSection>& sections() const { return sections_; }
  const std::vector<ProofFieldSection>& fields() const { return fields_; }

 private:
  std::vector<ProofSection> sections_;
  std::vector<ProofFieldSection> fields_;
  std::vector<std::unique_ptr<std::vector<uint8_t>>> memory_;
};

// A bit that its sender did not work out from its shares; of a field section an item.
struct FalseBit {
  int prover;
  bool field;
  size_t section, node, bit, lane;
};

struct OracleResult {
  // What does not fit together whatever was sent: another section at another party, a row that
  // should be zero. Empty: nothing.
  std::string malformed;
  // Wires of which a neighbour has another copy than the prover, in rows (or blocks).
  size_t other_wires = 0;
  std::vector<FalseBit> false_bits;  // of honest wires: L's own and R's left
};
OracleResult AskOracle(const std::array<Recording, 3>& parties);

// Q of a gadget on 64 lanes: the bits from the wires.
void QuadraticParts(Gadget gadget, const uint64_t* wires, uint64_t* bits);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_PROOF_ORACLE_H_
