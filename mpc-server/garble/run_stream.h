// SPDX-License-Identifier: Apache-2.0
// What G1 sends to E in a run, and G2 makes alike to sign it, in whole labels, in the order in
// which the circuit is written:
//
//     inputs      [bit][lane][H(U0), H(U1), H(W0), H(W1)]      commitments, see input.h
//     gates       rows (half_gates.h)
//     outputs     permute bits, or rows R (output.h)
//
// A chunk is passed on when it is full; nobody keeps them all.
#ifndef MPC_SERVER_GARBLE_RUN_STREAM_H_
#define MPC_SERVER_GARBLE_RUN_STREAM_H_

#include <cstring>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/garble/program_run.h"
#include "mpc-server/garble/table_mac.h"

namespace mpckdc::garble {

// Chunks of labels, to the evaluator (G1) or a MAC (G2).
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  virtual void Pass(absl::Span<const uint8_t> chunk) = 0;
};

class StreamOut : public RowSink {
 public:
  explicit StreamOut(ChunkSink& to) : to_(to) {}
  Label* Take(size_t labels) override {
    Flush();
    if (chunk_.size() < labels) chunk_.resize(labels);
    taken_ = labels;
    return chunk_.data();
  }
  // The last one has no next.
  void Flush() {
    if (taken_ != 0) {
      to_.Pass({reinterpret_cast<const uint8_t*>(chunk_.data()), taken_ * sizeof(Label)});
    }
    taken_ = 0;
  }

 private:
  ChunkSink& to_;
  SecretVector<Label> chunk_;
  size_t taken_ = 0;
};

// G2's end.
class MacSink : public ChunkSink {
 public:
  explicit MacSink(TableMac& mac) : mac_(mac) {}
  void Pass(absl::Span<const uint8_t> chunk) override { mac_.Add(chunk); }

 private:
  TableMac& mac_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_RUN_STREAM_H_
