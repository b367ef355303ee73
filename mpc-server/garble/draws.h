// SPDX-License-Identifier: Apache-2.0
// What two servers draw alike, from a key of a run that only they have. A run is one garbling; a
// key serves once: a run that was garbled twice, and evaluated on two inputs, would give its
// evaluator two labels of a wire, and so the user's keys. Keys come from streams whose places are
// taken once (share/pairwise_streams.h).
#ifndef MPC_SERVER_GARBLE_DRAWS_H_
#define MPC_SERVER_GARBLE_DRAWS_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/garble/label.h"
#include "mpc-server/share/ctr_stream.h"

namespace mpckdc::garble {

using RunKey = std::array<uint8_t, 16>;

// AES-128 in counter mode, from the start. For one thread.
class Draws {
 public:
  explicit Draws(const RunKey& key);
  void Fill(absl::Span<uint8_t> bytes);  // a multiple of 16
  void Labels(absl::Span<Label> labels) {
    Fill({reinterpret_cast<uint8_t*>(labels.data()), labels.size() * sizeof(Label)});
  }
  // Deltas: their lowest bits are 1.
  void Deltas(absl::Span<Label> deltas) {
    Labels(deltas);
    for (Label& d : deltas) d.low |= 1;
  }

 private:
  const CtrFunctions& ctr_;
  Secret<CtrKey> key_;
  uint32_t position_ = 0;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_DRAWS_H_
