// SPDX-License-Identifier: Apache-2.0
// Between a batch's blocks and the bits of a garbled run, and the batch's next run.
#ifndef MPC_SERVER_COMPUTE_GARBLED_BITS_H_
#define MPC_SERVER_COMPUTE_GARBLED_BITS_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/base/sha256.h"
#include "mpc-server/garble/garbled_run.h"
#include "mpc-server/garble/run_queue.h"
#include "mpc-server/share/session.h"

namespace mpckdc {

// Bits [row][lane] of the inputs of a run, written lane by lane in the order of its plan.
class GarbledInputs {
 public:
  GarbledInputs(size_t rows, size_t lanes)
      : lanes_(lanes),
        bits_{SecretVector<uint8_t>(rows * lanes), SecretVector<uint8_t>(rows * lanes)} {}

  void NextLane() {
    ++lane_;
    row_ = 0;
  }
  // The first `bits` of the blocks.
  void Put(absl::Span<const SharedBlock> blocks, size_t bits);
  void Put(absl::Span<const SharedBlock> blocks) { Put(blocks, 128 * blocks.size()); }
  garble::SharedBits Take() { return std::move(bits_); }

 private:
  const size_t lanes_;
  size_t lane_ = 0, row_ = 0;
  garble::SharedBits bits_;
};

// Of a lane's outputs, in whole blocks.
SecretVector<SharedBlock> BlocksOfOutputs(const garble::SharedBits& bits, size_t first_row,
                                          size_t rows, size_t lane, size_t lanes);

// Evaluated by whom the queue says, a lone run by the parties in turn, a batch each. The input's
// plan and strings are the caller's. The run's keys follow from `agreed`, a hash of what the three
// agreed on, from `which` of its parts this is, and from all that the circuit depends on and
// everybody knows: garblers who mean different circuits, or other keys, draw different labels.
std::unique_ptr<garble::GarbledRun> NextGarbledRun(
    PartyContext& party, const garble::RunQueue& queue, const Digest& agreed,
    absl::Span<const uint64_t> which, const garble::RunInput& input, garble::SharedBits inputs);

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_GARBLED_BITS_H_
