// SPDX-License-Identifier: Apache-2.0
// The proof's gadgets of the S-boxes (proof/gadget.h) are the stages that the circuit opens
// (sbox.h): Q + l of the wires is the stage's message, for every byte.
#include "mpc-server/proof/gadget.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "mpc-server/circuit/aes/sbox.h"
#include "mpc-server/circuit/bitslice/word_portable.h"

namespace mpckdc {
namespace {

using W = WordPortable;
using Stages = SboxOfByte<W, 1>;

struct Identity {
  static constexpr tower::XorProgram kProgram = [] {
    tower::XorProgram p;
    for (int k = 0; k < 8; ++k) p.out[k] = k;
    return p;
  }();
};

// Byte 64 * part + lane in lane `lane`.
void AllBytes(size_t part, uint64_t* x) {
  for (size_t k = 0; k < 8; ++k) {
    x[k] = 0;
    for (size_t lane = 0; lane < 64; ++lane) x[k] |= ((64 * part + lane) >> k & 1) << lane;
  }
}

template <class G>
void Check(const uint64_t* wires, const uint64_t* opened) {
  uint64_t q[G::kOutputs], l[G::kOutputs];
  G::Eval(wires, q);
  G::EvalLinear(wires, l);
  for (size_t j = 0; j < G::kOutputs; ++j) EXPECT_EQ(q[j] ^ l[j], opened[j]) << j;
}

TEST(GadgetTest, Sbox17OpensWhatTheStagesOpen) {
  for (size_t part = 0; part < 4; ++part) {
    uint64_t x[1][8], n[1][4] = {}, q[1][1] = {}, m[1][4] = {}, product[8];
    AllBytes(part, x[0]);
    Stages::Norm(x, n[0]);
    q[0][0] = Stages::Helper(n, 0);
    Stages::Inverse(n, q, m[0]);
    Stages::Product<Identity>(x, m, product);
    uint64_t wires[17], opened[17];
    std::copy_n(x[0], 8, wires);
    std::copy_n(n[0], 4, wires + 8);
    wires[12] = q[0][0];
    std::copy_n(m[0], 4, wires + 13);
    std::copy_n(n[0], 4, opened);
    opened[4] = q[0][0];
    std::copy_n(m[0], 4, opened + 5);
    std::copy_n(product, 8, opened + 9);
    Check<proof::Sbox17Gadget<W>>(wires, opened);
  }
}

TEST(GadgetTest, Sbox22OpensWhatTheStagesOpen) {
  for (size_t part = 0; part < 4; ++part) {
    uint64_t x[1][8], n[1][4] = {}, uv[1][10] = {}, scale[8];
    AllBytes(part, x[0]);
    Stages::Norm(x, n[0]);
    Stages::Twist(x, n, uv[0]);
    Stages::Scale<Identity>(uv, scale);
    uint64_t wires[22], opened[22];
    std::copy_n(x[0], 8, wires);
    std::copy_n(n[0], 4, wires + 8);
    std::copy_n(uv[0], 10, wires + 12);
    std::copy_n(n[0], 4, opened);
    std::copy_n(uv[0], 10, opened + 4);
    std::copy_n(scale, 8, opened + 14);
    Check<proof::Sbox22Gadget<W>>(wires, opened);
  }
}

// The wires of an honest S-box are functions of the byte: random wires show that Q and l are right
// off that graph too, which is what is multiplied when a prover lies.
TEST(GadgetTest, StagesOfRandomWires) {
  uint64_t w[22], seed = 1;
  for (uint64_t& v : w) v = seed = seed * 6364136223846793005 + 1442695040888963407;
  uint64_t x[1][8], n[1][4], q[1][1] = {{w[12]}}, m[1][4], uv[1][10], opened[22] = {};
  std::copy_n(w, 8, x[0]);
  std::copy_n(w + 8, 4, n[0]);
  std::copy_n(w + 13, 4, m[0]);
  std::copy_n(w + 12, 10, uv[0]);
  Stages::Norm(x, opened);
  opened[4] = Stages::Helper(n, 0);
  Stages::Inverse(n, q, opened + 5);
  Stages::Product<Identity>(x, m, opened + 9);
  Check<proof::Sbox17Gadget<W>>(w, opened);

  std::fill(opened, opened + 22, 0);
  Stages::Norm(x, opened);
  Stages::Twist(x, n, opened + 4);
  Stages::Scale<Identity>(uv, opened + 14);
  Check<proof::Sbox22Gadget<W>>(w, opened);
}

}  // namespace
}  // namespace mpckdc
