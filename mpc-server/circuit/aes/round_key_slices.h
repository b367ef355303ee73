// SPDX-License-Identifier: Apache-2.0
// The round keys of a batch's lanes as slices. Each lane's keys lie where the caller has them:
//
//   lane j:  | x of key 0 | a of key 0 | x of key 1 | a of key 1 | ..      32 bytes per key
//
// The keys of a batch are far more than a cache holds, so what slicing costs is fetching lines. A
// pair is half a line: a line would come once per key that it holds a part of. And a CPU waits for
// few lines at once that are needed now, for more that are merely asked for, and fetches lines two
// by two. Hence kKeysAtOnce keys of a group are sliced together, two lines of each lane, and while
// they are, the next group's lines are asked for, into the second-level cache. (Asking a stage
// earlier is no use: the other parts under way have pushed the lines out again by then.) Lanes
// under one key stand together (a login has a run of some) and are asked for once.
//
// The first key of those sliced together is used at once, so its rows are one group's only, sliced
// last and still in the cache. The others' wait for their rounds:
//
//   now_    | x of key k | a of key k |
//   later_  group 0: | x of key k+1 | a of it | .. | a of key k+3 |  group 1: ..
// Internal to circuit/.
#ifndef MPC_SERVER_CIRCUIT_AES_ROUND_KEY_SLICES_H_
#define MPC_SERVER_CIRCUIT_AES_ROUND_KEY_SLICES_H_

#include <algorithm>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/bitslice/transpose.h"
#include "mpc-server/circuit/lane_groups.h"

namespace mpckdc {

enum class KeyOrder { kForward, kBackward };

class RoundKeySlices {
 public:
  // Rows for three wait: 96 bytes per lane and party.
  static constexpr size_t kKeysAtOnce = 4;

  // `key_count` keys per lane; key_of(j) is the address of lane j's, which stay the caller's.
  template <class KeyOf>
  void Reset(size_t lanes, size_t key_count, KeyOf key_of, KeyOrder order = KeyOrder::kForward) {
    key_count_ = key_count;
    order_ = order;
    lanes_.resize(lanes);
    for (size_t j = 0; j < lanes; ++j) {
      lanes_[j] = reinterpret_cast<const uint8_t*>(key_of(j));
    }
    Grow(now_, kRowsOfKey);
    Grow(later_, GroupCount(lanes) * (kKeysAtOnce - 1) * kRowsOfKey);
  }

  // Two planes of key k of a group, counted from where the order begins, until the next call. Keys
  // are asked for in that order, each for all groups. `scratch`: kTransposeScratchBytes.
  const uint8_t* Rows(const TransposeFunctions& transpose, size_t group, size_t k,
                      uint8_t* scratch) {
    if (k % kKeysAtOnce == 0) Slice(transpose, group, k, scratch);
    return RowsOf(group, k % kKeysAtOnce);
  }

 private:
  static constexpr size_t kLineBytes = 64;
  static constexpr size_t kRowsOfKey = 2 * kBlockPlane;

  // The rows of the i-th of the keys sliced together.
  uint8_t* RowsOf(size_t group, size_t i) {
    if (i == 0) return now_.data();
    return later_.data() + (group * (kKeysAtOnce - 1) + i - 1) * kRowsOfKey;
  }

  // The keys from k on, as many as belong together.
  void Slice(const TransposeFunctions& transpose, size_t group, size_t k, uint8_t* scratch) {
    const size_t keys = std::min(kKeysAtOnce, key_count_ - k);
    const Piece here = {std::min(PlaceOf(k), PlaceOf(k + keys - 1)), keys * kPairBytes};
    const absl::Span<const uint8_t* const> lanes = LanesOf(group), next = LanesOf(group + 1);
    const size_t share = (next.size() + keys - 1) / keys;
    if (group == 0) AskFor(lanes, here);
    for (size_t i = keys; i-- != 0;) {
      AskFor(next.subspan(std::min(i * share, next.size()), share), here);
      uint8_t* x = RowsOf(group, i);
      transpose.to_rows({lanes.data(), lanes.size(), PlaceOf(k + i)}, x, x + kBlockPlane, scratch);
    }
  }

  // Where a lane's key k lies, counted as in Rows().
  size_t PlaceOf(size_t k) const {
    return (order_ == KeyOrder::kForward ? k : key_count_ - 1 - k) * kPairBytes;
  }

  // A part of each lane's keys.
  struct Piece {
    size_t offset, bytes;
  };
  // Inlined always: compilers take a function that only prefetches for one without effect and drop
  // the call.
  [[gnu::always_inline]] static void AskFor(absl::Span<const uint8_t* const> lanes, Piece piece) {
    constexpr int kRead = 0, kSecondLevel = 2;
    const uint8_t* last = nullptr;
    for (const uint8_t* lane : lanes) {
      if (lane == last) continue;
      last = lane;
      for (size_t at = 0; at < piece.bytes; at += kLineBytes) {
        __builtin_prefetch(lane + piece.offset + at, kRead, kSecondLevel);
      }
    }
  }

  // None behind the last group.
  absl::Span<const uint8_t* const> LanesOf(size_t group) const {
    return absl::MakeConstSpan(lanes_).subspan(std::min(group * kGroupLanes, lanes_.size()),
                                               kGroupLanes);
  }

  size_t key_count_ = 0;
  KeyOrder order_ = KeyOrder::kForward;
  std::vector<const uint8_t*> lanes_;
  SecretBytes now_, later_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_ROUND_KEY_SLICES_H_
