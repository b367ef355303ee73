// SPDX-License-Identifier: Apache-2.0
// What the KDC makes of the three servers' parts of an output: the bits, or nothing.
//
//     o = colour + permute bit              T (of E) = K (of G1 and G2) + sum of o * alpha
//
// E, who knows no alpha, changes a bit only by guessing a sum of them; G1's part and G2's must be
// equal. Alphas have nothing to do with Delta: with E's labels they are of no use.
#ifndef MPC_SERVER_GARBLE_OUTPUT_H_
#define MPC_SERVER_GARBLE_OUTPUT_H_

#include <optional>

#include "mpc-server/base/secret.h"
#include "mpc-server/garble/evaluator_side.h"
#include "mpc-server/garble/garbler_side.h"

namespace mpckdc::garble {

enum class OutputFault { kNone, kGarblersDiffer, kWrongSum };

struct CombinedOutput {
  OutputFault fault = OutputFault::kNone;
  SecretVector<uint8_t> bits;  // [row][lane], 0 or 1; empty if there is a fault
};

CombinedOutput Combine(const EvaluatorOutput& e, const GarblerOutput& g1, const GarblerOutput& g2);

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_OUTPUT_H_
