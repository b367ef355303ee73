// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/batch_verifier.h"

namespace mpckdc::proof {

BatchVerifier::BatchVerifier(PartyContext& party, RandomSource& random, Isa isa)
    : party_(party), coins_(party.party(), party.session_id(), random), proof_(party, coins_, isa) {
  party.SetVerifier(this);
}

BatchVerifier::~BatchVerifier() { party_.SetVerifier(nullptr); }

Circuit& BatchVerifier::Begin(PartyContext& party) {
  if (batch_ != party.batch()) number_ = 0;
  batch_ = party.batch();
  proof_.Reset(log_, context_, number_++);
  declared_ = declared_ + proof_.DeclaredCost();
  return proof_;
}

}  // namespace mpckdc::proof
