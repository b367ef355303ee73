// SPDX-License-Identifier: Apache-2.0
// What a run of a recorded program opens, in the log of what is to be proved (share/proof_log.h).
// An opened row is a sum of k products; each group of lanes has a section under way for each k, and
// opened rows become its nodes in the order of the message:
//
//     message of a stage    | Maj | Maj | Ch | k=2 | k=1 | k=2 |  ..
//     section of k = 1        n     n+1   n+2         n+3
//     section of k = 2                        m             m+1
//
// over as many stages as it takes to fill it. It is closed when the message that filled it has
// arrived, and at the run's end. Internal to circuit/.
#ifndef MPC_SERVER_CIRCUIT_HASH_BIT_LOG_H_
#define MPC_SERVER_CIRCUIT_HASH_BIT_LOG_H_

#include <array>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/circuit/hash/bit_program.h"
#include "mpc-server/share/proof_log.h"

namespace mpckdc {

// One group's rows, as far apart as the kernels have them.
struct BitGroup {
  size_t number, lanes;
  const uint8_t* slots;
  const uint8_t *own, *next;  // the zero share's two parts
};

class BitLog {
 public:
  // Nothing is recorded yet.
  void Reset();
  // A stage's message, after it has been computed.
  void Open(ProofLog& log, const BitKernels& kernels, absl::Span<const BitSection> sections,
            const uint16_t* args, const BitGroup& group);
  // The message has arrived. Both: nothing, if nothing was recorded.
  void Receive(size_t group, const uint8_t* received);
  void Finish(size_t group);

 private:
  // One for each 64 lanes, or one for all.
  using Sections = std::array<ProofSection, kMostSplitSections>;
  struct UnderWay {
    Sections sections;
    size_t nodes = 0;  // 0: none
  };
  // Rows of the last message that are nodes of the same sections, one behind the other.
  struct Piece {
    Sections sections;
    size_t node, count;
  };
  struct Group {
    std::array<UnderWay, kMaxGadgetProducts> by_products;
    std::vector<Piece> pieces;
    size_t parts = 0;  // sections side by side
  };

  ProofLog* log_ = nullptr;
  size_t row_ = 0;  // of messages
  std::vector<Group> groups_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_HASH_BIT_LOG_H_
