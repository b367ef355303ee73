// SPDX-License-Identifier: Apache-2.0
// Three logs that fit together, of no circuit: for tests of proofs alone.
#ifndef MPC_SERVER_TESTING_SYNTHETIC_LOGS_H_
#define MPC_SERVER_TESTING_SYNTHETIC_LOGS_H_

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "mpc-server/circuit/gcm/gf128.h"
#include "mpc-server/proof/bits64.h"
#include "mpc-server/proof/gadget.h"
#include "mpc-server/share/proof_log.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc::proof {

struct SectionShape {
  Gadget gadget;
  size_t lanes, nodes;
};
struct FieldShape {
  std::vector<size_t> pairs;  // of each item
};

class SyntheticLogs {
 public:
  explicit SyntheticLogs(uint64_t seed) : random_(seed) {}

  std::array<ProofLog, kParties>& logs() { return logs_; }

  void Add(const SectionShape& shape) {
    std::array<ProofSection, kParties> s;
    for (int p = 0; p < kParties; ++p) s[p] = logs_[p].Open(shape.gadget, shape.lanes);
    for (size_t node = 0; node < shape.nodes; ++node) {
      for (size_t word = 0; word < s[0].row / 8; ++word) AddWord(s, node, word);
    }
    for (int p = 0; p < kParties; ++p) logs_[p].Close(s[p], shape.nodes);
  }

  void Add(const FieldShape& shape) {
    size_t pairs = 0;
    std::vector<uint32_t> ends;
    for (const size_t n : shape.pairs) ends.push_back(static_cast<uint32_t>(pairs += n));
    std::array<ProofFieldSection, kParties> f;
    for (int p = 0; p < kParties; ++p) {
      f[p] = logs_[p].OpenField(ends.size(), pairs);
      std::copy(ends.begin(), ends.end(), f[p].ends);
    }
    for (size_t i = 0; i < pairs; ++i) {
      for (int p = 0; p < kParties; ++p) {
        f[p].S(kProofOwn)[i] = f[NextParty(p)].S(kProofLeft)[i] = RandomBlock();
        f[p].T(kProofOwn)[i] = f[NextParty(p)].T(kProofLeft)[i] = RandomBlock();
      }
    }
    for (int prover = 0; prover < kParties; ++prover) {
      size_t pair = 0;
      for (size_t i = 0; i < ends.size(); ++i) {
        Block sum{};
        for (; pair < ends[i]; ++pair) {
          const auto& o = f[prover];
          sum = XorBlocks(sum, GfMultiply(XorBlocks(o.S(0)[pair], o.S(1)[pair]),
                                          XorBlocks(o.T(0)[pair], o.T(1)[pair])));
          sum = XorBlocks(sum, GfMultiply(o.S(0)[pair], o.T(0)[pair]));
        }
        const Block left = RandomBlock();
        f[PrevParty(prover)].Sum(kProofOwn)[i] = left;
        f[NextParty(prover)].Sum(kProofLeft)[i] = XorBlocks(left, sum);
      }
    }
    for (int p = 0; p < kParties; ++p) logs_[p].CloseField(f[p]);
  }

 private:
  Block RandomBlock() {
    Block b;
    for (uint8_t& v : b) v = static_cast<uint8_t>(random_());
    return b;
  }
  static uint8_t* Word(uint8_t* rows, const ProofSection& s, size_t row, size_t word) {
    return rows + row * s.row + 8 * word;
  }

  void AddWord(std::array<ProofSection, kParties>& s, size_t node, size_t word) {
    const size_t wires = GadgetWires(s[0].gadget), bits = GadgetBits(s[0].gadget);
    uint64_t a[kParties][kMaxGadgetWires];
    for (int p = 0; p < kParties; ++p) {
      for (size_t k = 0; k < wires; ++k) {
        a[p][k] = random_();
        Bits64::Store(Word(s[p].Wires(kProofOwn, node), s[p], k, word), a[p][k]);
        Bits64::Store(Word(s[NextParty(p)].Wires(kProofLeft, node), s[p], k, word), a[p][k]);
      }
    }
    VisitGadget<Bits64>(s[0].gadget, [&]<class G>() {
      for (int prover = 0; prover < kParties; ++prover) {
        uint64_t x[kMaxGadgetWires], of_x[kMaxGadgetBits], of_a[kMaxGadgetBits];
        for (size_t k = 0; k < wires; ++k) x[k] = a[prover][k] ^ a[PrevParty(prover)][k];
        G::Eval(x, of_x);
        G::Eval(a[prover], of_a);
        for (size_t j = 0; j < bits; ++j) {
          const uint64_t left = random_();
          auto& l = s[PrevParty(prover)];
          auto& r = s[NextParty(prover)];
          Bits64::Store(Word(l.T(kProofOwn, node), l, j, word), left);
          Bits64::Store(Word(r.T(kProofLeft, node), r, j, word), left ^ of_x[j] ^ of_a[j]);
        }
      }
    });
  }

  std::mt19937_64 random_;
  std::array<ProofLog, kParties> logs_;
};

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_TESTING_SYNTHETIC_LOGS_H_
