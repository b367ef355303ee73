// SPDX-License-Identifier: Apache-2.0
// The masks of what leaves toward the KDC (key/output_format.h draws who sends what).
//
// A party holds three kinds of keys: ko_i and ko_{i+1}, each with one neighbour, of which the keys
// and salts of an answer are made; and three that all parties know, for the zero shares w_i. Each
// answer has keys of its own, by HashPrf of a hash of what was asked: under different hashes they
// have nothing in common.
#ifndef MPC_SERVER_SHARE_OUTPUT_MASKS_H_
#define MPC_SERVER_SHARE_OUTPUT_MASKS_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/key/output_format.h"
#include "mpc-server/share/ctr_stream.h"
#include "mpc-server/share/pairwise_streams.h"

namespace mpckdc {

class OutputKeys {
 public:
  // Of a session.
  OutputKeys(int party, const PairwiseSeeds& seeds, Isa isa = BestIsa());
  // Keys that follow from these by `hash`, and tell nothing about them: of a batch.
  OutputKeys For(const std::array<uint8_t, 32>& hash) const;

 private:
  friend class OutputMasks;
  // "own": with the party before; "next": with the party after; zeros: W_{i-1}, W_i, W_{i+1}.
  struct Keys {
    CtrKey stream_own, stream_next, salt_own, salt_next;
    std::array<CtrKey, 3> zeros;
  };
  explicit OutputKeys(const CtrFunctions& ctr) : ctr_(&ctr) {}

  const CtrFunctions* ctr_;
  Secret<Keys> keys_;
};

// The outputs of one answer after the other. Each hash is used for one answer.
class OutputMasks {
 public:
  // `keys` must outlive this.
  explicit OutputMasks(const OutputKeys& keys) : keys_(keys) {}

  // What was asked, as this server got it: begins an answer.
  void SetHash(const std::array<uint8_t, 32>& hash);
  // Makes of this server's a_i what it sends, and of a_{i-1} what the party before sends. In the
  // order of the outputs; equally long.
  void Mask(uint32_t number, absl::Span<uint8_t> own, absl::Span<uint8_t> before);
  AnswerKeys Finish();

 private:
  struct Scratch {
    CtrKey stream_own, stream_next;
    std::array<CtrKey, 3> zeros;
    AnswerKeys answer;
    uint8_t mask[2][512];
  };
  void XorStreams(const CtrKey& zero1, const CtrKey& zero2, const CtrKey& stream, uint32_t number,
                  absl::Span<uint8_t> data);

  const OutputKeys& keys_;
  Secret<Scratch> scratch_;
  std::optional<ShareCheck> before_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_OUTPUT_MASKS_H_
