// SPDX-License-Identifier: Apache-2.0
// Labels of some bits of all lanes: zero labels at a garbler, the held ones at the evaluator.
//
//     [row][lane]      row 8 * i + k is bit k of byte i
//
// Joining, cutting and adding are free. Secret memory: a label tells its bit to who knows the
// other.
#ifndef MPC_SERVER_GARBLE_WIRES_H_
#define MPC_SERVER_GARBLE_WIRES_H_

#include <cassert>
#include <cstddef>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/garble/label.h"

namespace mpckdc::garble {

class Wires {
 public:
  Wires() = default;
  Wires(size_t rows, size_t lanes) : lanes_(lanes), labels_(rows * lanes) {}

  size_t lanes() const { return lanes_; }
  size_t rows() const { return lanes_ == 0 ? 0 : labels_.size() / lanes_; }
  size_t bytes() const { return rows() / 8; }
  Label* row(size_t r) { return labels_.data() + r * lanes_; }
  const Label* row(size_t r) const { return labels_.data() + r * lanes_; }
  absl::Span<const Label> labels() const { return labels_; }
  absl::Span<Label> labels() { return absl::MakeSpan(labels_); }

 private:
  size_t lanes_ = 0;
  SecretVector<Label> labels_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_WIRES_H_
