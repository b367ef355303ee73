// SPDX-License-Identifier: Apache-2.0
// The S-box layers of a circuit in the log of what is to be proved (share/proof_log.h). A section
// is one group's, of 32 S-boxes in the order in which they are computed:
//
//     AES            | layer 1: bytes 0..15 | layer 2: bytes 0..15 |     | layer 3 ..
//     key schedule   | layer 1: bytes 0..3  | .. | layer 8: 0..3   |     | layer 9 ..
//
// It is opened before its first message and closed when what its last one brought is recorded: with
// the next layer, or by Finish(). Internal to circuit/.
#ifndef MPC_SERVER_CIRCUIT_AES_SBOX_LOG_H_
#define MPC_SERVER_CIRCUIT_AES_SBOX_LOG_H_

#include <array>
#include <vector>

#include "mpc-server/base/isa.h"
#include "mpc-server/circuit/aes/aes_kernels.h"
#include "mpc-server/share/proof_log.h"

namespace mpckdc {

// What one stage of one group is recorded from; rows of 64 bytes. `in` is the stage before.
struct SboxStep {
  SboxStage stage;
  size_t layer;      // counted from 0
  AesLinear linear;  // of the last stage
  size_t group, lanes;
  const uint8_t* state;
  SentRows in;
  ZeroRows zero;
};

class SboxLog {
 public:
  // Layers of `bytes` S-boxes each, 16 or 4.
  SboxLog(size_t bytes, Isa isa);

  // Nothing is recorded yet.
  void Reset(Sbox sbox);
  // After the stage's kernel.
  void Record(ProofLog& log, const SboxStep& step);
  // The last stage's message has arrived. Nothing, if nothing was recorded.
  void Finish(size_t group, const uint8_t* received);

 private:
  void BeginLayer(ProofLog& log, const SboxStep& step);
  void EndLayer(size_t group, const uint8_t* received);
  void RecordPart(const SboxStep& step, size_t part) const;
  SboxRows RowsOf(size_t group, size_t part) const;
  const SboxRecordKernels& KernelsFor(size_t group) const;

  const size_t bytes_;
  const SboxRecords& kernels_;
  Sbox sbox_ = Sbox::kThroughput;
  ProofLog* log_ = nullptr;
  AesLinear linear_{};
  // A group's sections under way, one for each 64 lanes or one for all, and their layers of which
  // something is recorded.
  struct Group {
    std::array<ProofSection, kMostSplitSections> sections;
    size_t parts = 0;
    size_t layers = 0;
  };
  std::vector<Group> groups_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_SBOX_LOG_H_
