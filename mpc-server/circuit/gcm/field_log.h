// SPDX-License-Identifier: Apache-2.0
// Sums of products in GF(2^128) in the log of what is to be proved (share/proof_log.h). One message
// at a time:
//
//   Begin(log, items, pairs, halves)      then for each item its pairs and EndItem()
//   Receive(message)                      nothing, if nothing was begun
//
// Internal to circuit/.
#ifndef MPC_SERVER_CIRCUIT_GCM_FIELD_LOG_H_
#define MPC_SERVER_CIRCUIT_GCM_FIELD_LOG_H_

#include "absl/types/span.h"
#include "mpc-server/share/proof_log.h"
#include "mpc-server/share/zero_shares.h"

namespace mpckdc {

class FieldLog {
 public:
  // What was under way is forgotten.
  void Reset() { log_ = nullptr; }
  // `halves`: of the whole message.
  void Begin(ProofLog& log, size_t items, size_t pairs, const ZeroHalves& halves);
  void Pair(const SharedBlock& s, const SharedBlock& t);
  void EndItem();
  void Receive(absl::Span<const uint8_t> message);

 private:
  ProofLog* log_ = nullptr;
  ProofFieldSection section_;
  size_t item_ = 0, pair_ = 0;
  ZeroHalves halves_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_GCM_FIELD_LOG_H_
