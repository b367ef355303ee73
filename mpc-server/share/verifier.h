// SPDX-License-Identifier: Apache-2.0
// What makes sure that a session's messages were right before anything that rests on them leaves
// (PartyContext::Verify). A protocol that needs no proof of its messages has another one, or none.
#ifndef MPC_SERVER_SHARE_VERIFIER_H_
#define MPC_SERVER_SHARE_VERIFIER_H_

#include "mpc-server/base/sha256.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/proof_log.h"

namespace mpckdc {

class Verifier {
 public:
  virtual ~Verifier() = default;

  // A hash of what the three agreed on for the batch under way; its proofs compare it.
  virtual void SetContext(const Digest& context) = 0;
  // Where circuits note what they send.
  virtual ProofLog& log() = 0;
  // A circuit that proves all that is closed in the log, and checks the two others' proofs; its end
  // without an error is the proof. Not called with an empty log.
  virtual Circuit& Begin(PartyContext& party) = 0;
  // What this server found of the proof under way, whatever became of the session since.
  virtual absl::Status Finding() const = 0;
  // It ended without an error: what was proved leaves the log.
  virtual void End() = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_VERIFIER_H_
