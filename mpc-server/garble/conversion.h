// SPDX-License-Identifier: Apache-2.0
// From a run's outputs to replicated shares, so that what follows is the same whoever computed. The
// value of a bit is o = colour + permute bit; a_e + a_{e+1} + a_{e+2} = o:
//
//     a_{e+1}      at G1, G2      the permute bit
//     a_{e+2}      at G2, E       drawn by the two
//     a_e          at E, G1       colour + a_{e+2}: E tells G1
//
// G1 checks what it is told. E's tokens and the alphas of G1 and G2 have
//
//     T = K + sum of o * alpha = (K + sum of (a_e + a_{e+1}) * alpha) + sum of a_{e+2} * alpha
//
// where G1 knows the first part, and is told the second one by G2 and T by E, both under a mask rho
// that E and G2 draw. E, who knows no alpha, can change a bit only by guessing a sum of them.
#ifndef MPC_SERVER_GARBLE_CONVERSION_H_
#define MPC_SERVER_GARBLE_CONVERSION_H_

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/garble/evaluator_side.h"
#include "mpc-server/garble/garbler_side.h"

namespace mpckdc::garble {

// One party's components of bits [row][lane]: a_i and a_{i-1}.
struct SharedBits {
  SecretVector<uint8_t> own, left;
};

// What E and G2 draw from the key that they share.
struct ConversionDraws {
  SecretVector<uint8_t> component;  // a_{e+2}
  Label rho{};

  ConversionDraws(const RunKey& key, size_t bits);
};

// The sum of alpha over the bits that are 1, without a branch on them.
Label SumOf(absl::Span<const Label> alphas, absl::Span<const uint8_t> bits);

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_CONVERSION_H_
