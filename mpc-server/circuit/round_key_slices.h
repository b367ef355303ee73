// SPDX-License-Identifier: Apache-2.0
// The round keys of a batch's lanes as slices. Each lane's keys lie where the caller has them:
//
//   lane j:  | x of key 0 | a of key 0 | x of key 1 | a of key 1 | ..      32 bytes per key
//
// A pair is half a cache line and the lanes of a batch seldom lie in one place, so what slicing
// costs is fetching lines: every line would come once per key that it holds a part of. Hence
// kKeysAtOnce keys of a group are sliced together, and while a group is, the next one's lines are
// asked for. Lanes under one key (a login has a run of some) share their lines by themselves.
// Internal to circuit/.
#ifndef MPC_SERVER_CIRCUIT_ROUND_KEY_SLICES_H_
#define MPC_SERVER_CIRCUIT_ROUND_KEY_SLICES_H_

#include <algorithm>
#include <vector>

#include "mpc-server/bitslice/transpose.h"
#include "mpc-server/circuit/lane_groups.h"
#include "mpc-server/secret/secret.h"

namespace mpckdc {

class RoundKeySlices {
 public:
  // Rows for two keys: 64 bytes per lane and party.
  static constexpr size_t kKeysAtOnce = 2;

  // `key_count` keys per lane; key_of(j) is the address of lane j's, which stay the caller's.
  template <class KeyOf>
  void Reset(size_t lanes, size_t key_count, KeyOf key_of) {
    key_count_ = key_count;
    lanes_.resize(lanes);
    for (size_t j = 0; j < lanes; ++j) {
      lanes_[j] = reinterpret_cast<const uint8_t*>(key_of(j));
    }
    Grow(rows_, GroupCount(lanes) * kKeysAtOnce * 2 * kBlockPlane);
  }

  // Two planes of key k of a group. Keys are asked for in order, each for all groups. `scratch`:
  // kTransposeScratchBytes.
  const uint8_t* Rows(const TransposeFunctions& transpose, size_t group, size_t k,
                      uint8_t* scratch) {
    uint8_t* rows = rows_.data() + group * kKeysAtOnce * 2 * kBlockPlane;
    if (k % kKeysAtOnce == 0) {
      const size_t first = group * kGroupLanes, count = LanesInGroup(lanes_.size(), group);
      for (size_t i = 0; i < std::min(kKeysAtOnce, key_count_ - k); ++i) {
        uint8_t* x = rows + 2 * i * kBlockPlane;
        transpose.to_rows({lanes_.data() + first, count, lanes_.size() - first - count,
                           (k + i) * kPairBytes},
                          x, x + kBlockPlane, scratch);
      }
    }
    return rows + k % kKeysAtOnce * 2 * kBlockPlane;
  }

 private:
  size_t key_count_ = 0;
  std::vector<const uint8_t*> lanes_;
  SecretBytes rows_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_ROUND_KEY_SLICES_H_
