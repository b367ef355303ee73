// SPDX-License-Identifier: Apache-2.0
// A lane is a block of AES under round keys of its own.
#include <algorithm>

#include "mpc-server/base/status_macros.h"
#include "mpc-server/bench/workload.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc::bench {
namespace {

// From one lane's keys to the next one's. As in a server, where each key is an allocation of its
// own, they begin with a cache line.
constexpr size_t KeyStride(AesBits bits) { return (AesRoundKeys(bits) + 1) / 2 * 2; }

class BlockTeam : public TeamWork {
 public:
  // One key after the other, so that making them leaves no more memory behind than one key takes.
  BlockTeam(const BenchSetup& s, int party, size_t first, size_t lanes)
      : setup_(s), first_(first), aes_(CutOf(s), s.isa), keys_(lanes * KeyStride(s.bits)) {
    for (size_t begin = 0; begin < std::min(lanes, kDistinctKeys); ++begin) {
      const std::vector<Block> values =
          PlainKeySchedule(KeyOf(s, first + begin, 16 * AesKeyBlocks(s.bits)));
      for (size_t j = begin; j < lanes; j += kDistinctKeys) {
        ShareInto(s, party, first + j, values, &keys_[j * KeyStride(s.bits)]);
      }
    }
    for (size_t j = 0; j < lanes; ++j) {
      lanes_.push_back({&keys_[j * KeyStride(s.bits)], nullptr, {}});
    }
  }

  absl::Status Run(Rings& rings, uint32_t batch, Cost* cost) override {
    rings.BeginBatch(batch);
    for (size_t j = 0; j < lanes_.size(); ++j) lanes_[j].public_input = InputOf(first_ + j, batch);
    const absl::Span<const AesLane> lanes = lanes_, none;
    const bool short_keys = setup_.bits == AesBits::k128;
    RETURN_IF_ERROR(aes_.Run(rings, short_keys ? lanes : none, short_keys ? none : lanes,
                             SboxOf(setup_), {}, cost));
    return rings.Verify(cost);
  }
  absl::Span<const SharedBlock> outputs() const override {
    return setup_.bits == AesBits::k128 ? aes_.outputs128() : aes_.outputs256();
  }
  size_t key_bytes() const override {
    return keys_.size() * sizeof(SharedBlock) + lanes_.size() * sizeof(AesLane);
  }

 private:
  const BenchSetup setup_;
  const size_t first_;
  AesBatch aes_;
  SecretVector<SharedBlock> keys_;
  std::vector<AesLane> lanes_;
};

}  // namespace

Workload BlockWorkload(const BenchSetup& s) {
  return {.declared = [s](size_t lanes) { return DeclaredOfBlocks(s, s.bits, lanes, SboxOf(s)); },
          .make_team =
              [s](int party, size_t first, size_t lanes) {
                return std::make_unique<BlockTeam>(s, party, first, lanes);
              },
          .is_right =
              [s](size_t lane, uint32_t batch, absl::Span<const Block> outputs) {
                const Bytes key = KeyOf(s, lane, 16 * AesKeyBlocks(s.bits));
                return outputs[0] == PlainAes(key, InputOf(lane, batch));
              }};
}

}  // namespace mpckdc::bench
