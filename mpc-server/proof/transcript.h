// SPDX-License-Identifier: Apache-2.0
// Hashes of what was said: BLAKE2b-256 over labelled fields, each with its length before it, so
// that no two different sequences of fields give the same bytes.
#ifndef MPC_SERVER_PROOF_TRANSCRIPT_H_
#define MPC_SERVER_PROOF_TRANSCRIPT_H_

#include <sodium.h>

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/sha256.h"

namespace mpckdc::proof {

class Transcript {
 public:
  explicit Transcript(absl::string_view domain);

  Transcript& Add(absl::Span<const uint8_t> field);
  Transcript& Add(uint64_t number);
  // Of everything so far; more may be added afterwards.
  Digest Hash() const;

 private:
  crypto_generichash_state state_;
};

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_TRANSCRIPT_H_
