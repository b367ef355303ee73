// SPDX-License-Identifier: Apache-2.0
// What G1 sends to E in a run, and G2 makes alike to sign it, in whole labels, in the order of the
// plan's steps:
//
//     start       S of the hash's keys, a label
//     inputs      [bit][lane][H(U0), H(U1), H(W0), H(W1)]      commitments, in the order of the bit
//     gates       [gate][lane][T_G, T_E]                       half_gates.h
//     shown       permute bits, packed
//     outputs     [bit][lane] R
#ifndef MPC_SERVER_GARBLE_RUN_FORMAT_H_
#define MPC_SERVER_GARBLE_RUN_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "mpc-server/garble/label.h"

namespace mpckdc::garble {

// Commitments of an input bit: of U's two labels and of W's, in the order of the bit.
inline constexpr size_t kInputRows = 4;
constexpr size_t CommitmentAt(size_t input, size_t side, size_t bit) {
  return kInputRows * input + 2 * side + bit;
}

// Colours as bits, the lowest one first, in whole labels.
constexpr size_t PackedLabels(size_t colours) {
  return (colours + 8 * sizeof(Label) - 1) / (8 * sizeof(Label));
}
void PackColours(absl::Span<const Label> labels, Label* packed);
void UnpackColours(const Label* packed, absl::Span<uint8_t> colours);

using LabelsHash = std::array<uint8_t, 32>;  // SHA-256
LabelsHash HashOfLabels(absl::Span<const Label> labels);

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_RUN_FORMAT_H_
