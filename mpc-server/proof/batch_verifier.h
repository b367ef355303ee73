// SPDX-License-Identifier: Apache-2.0
// A session's verifier: its log, its coins and its proofs (share/verifier.h).
#ifndef MPC_SERVER_PROOF_BATCH_VERIFIER_H_
#define MPC_SERVER_PROOF_BATCH_VERIFIER_H_

#include "mpc-server/base/random_source.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/proof/message_proof.h"
#include "mpc-server/share/verifier.h"

namespace mpckdc::proof {

class BatchVerifier : public Verifier {
 public:
  // `party` and `random` must outlive this. Becomes the party's verifier.
  BatchVerifier(PartyContext& party, RandomSource& random, Isa isa = BestIsa());
  ~BatchVerifier() override;

  // In secret memory, for the masks and shares of proofs that its members keep.
  static void* operator new(size_t size) { return SecretAllocate(size); }
  static void operator delete(void* data, size_t size) { SecretFree(data, size); }

  void SetContext(const Digest& context) override { context_ = context; }
  ProofLog& log() override { return log_; }
  Circuit& Begin(PartyContext& party) override;
  absl::Status Finding() const override { return proof_.Finding(); }
  void End() override { log_.Clear(); }

  // What all proofs begun so far cost, as they declared.
  const Cost& declared() const { return declared_; }

 private:
  PartyContext& party_;
  ProofLog log_;
  CoinToss coins_;
  MessageProof proof_;
  Digest context_{};
  Cost declared_;
  uint32_t batch_ = 0, number_ = 0;  // of the batch's proofs
};

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_BATCH_VERIFIER_H_
