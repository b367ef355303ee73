// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/hash/hash_run.h"

#include <algorithm>
#include <cstring>

#include "mpc-server/circuit/lane_groups.h"
#include "mpc-server/key/hash_plain.h"
#include "mpc-server/key/hash_template.h"

namespace mpckdc {
namespace {

constexpr size_t kBlockBytes = sizeof(Block);
constexpr size_t kMaxHashBlock = 128;

constexpr size_t ScheduleBytes(HashKind hash) {
  return HashSteps(hash) * HashWordBits(hash) / 8;
}
static_assert(ScheduleBytes(HashKind::kSha1) % kPairBytes == 0);
static_assert(ScheduleBytes(HashKind::kSha256) % kPairBytes == 0);
static_assert(ScheduleBytes(HashKind::kSha384) % kPairBytes == 0);

}  // namespace

HashRun::HashRun(HashKind hash, Isa isa)
    : hash_(hash),
      transpose_(AllTransposes().For(isa)),
      run_(isa),
      scratch_(kTransposeScratchBytes),
      padded_(kGroupLanes) {}

void HashRun::Start(MessageKind message, Adder adder, absl::Span<const HashBlock> lanes) {
  const bool shared = message == MessageKind::kShared;
  const size_t state_rows = StateRows(hash_);
  run_.Start(HashProgram(hash_, message, adder), lanes.size(),
             state_rows + (shared ? 8 * HashBlockBytes(hash_) : 0),
             shared ? 0 : 8 * ScheduleBytes(hash_));
  Grow(states_, lanes.size() * HashStateBlocks(hash_));
  for (size_t g = 0; g < run_.groups(); ++g) {
    const auto group = lanes.subspan(g * kGroupLanes, LanesInGroup(lanes.size(), g));
    SliceStates(group, g);
    if (shared) {
      SliceShared(group, g);
    } else {
      SlicePublic(group, g);
    }
  }
}

void HashRun::SliceStates(absl::Span<const HashBlock> lanes, size_t group) {
  const uint8_t* from[kGroupLanes];
  for (size_t j = 0; j < lanes.size(); ++j) {
    from[j] = reinterpret_cast<const uint8_t*>(lanes[j].state);
  }
  for (size_t q = 0; q < HashStateBlocks(hash_); ++q) {
    transpose_.to_rows({from, lanes.size(), q * kPairBytes},
                       run_.InputRows(group, 0) + q * kBlockPlane,
                       run_.InputRows(group, 1) + q * kBlockPlane, scratch_.data());
  }
}

// Behind the message: a bit, zeros, and in the last block's last 8 bytes the number of bits with
// the key's block (FIPS 180-4, 5.1). SHA-384 has 16 bytes for it, of which 8 stay zero.
uint8_t HashRun::PaddingAt(const HashBlock& lane, size_t position) const {
  if (position == lane.bytes) return 0x80;
  const size_t end = HmacInnerBlocks(hash_, lane.bytes) * HashBlockBytes(hash_);
  if (end - position > 8) return 0;
  const uint64_t bits = 8 * (HashBlockBytes(hash_) + lane.bytes);
  return static_cast<uint8_t>(bits >> 8 * (end - position - 1));
}

SharedBlock HashRun::PaddedBlock(const HashBlock& lane, size_t position) const {
  SharedBlock block;
  for (size_t i = 0; i < kBlockBytes; ++i, ++position) {
    if (position < lane.bytes) {
      block.x[i] = lane.shared_message[position / kBlockBytes].x[i];
      block.a[i] = lane.shared_message[position / kBlockBytes].a[i];
    } else {
      block.a[i] = PaddingAt(lane, position);
    }
  }
  return block;
}

void HashRun::SliceShared(absl::Span<const HashBlock> lanes, size_t group) {
  const size_t block = HashBlockBytes(hash_);
  const uint8_t* from[kGroupLanes];
  for (size_t q = 0; q < block / kBlockBytes; ++q) {
    for (size_t j = 0; j < lanes.size(); ++j) {
      const HashBlock& lane = lanes[j];
      const size_t position = lane.index * block + q * kBlockBytes;
      const SharedBlock* source = lane.shared_message + position / kBlockBytes;
      if (lane.pads && position + kBlockBytes > lane.bytes) {
        padded_[j] = PaddedBlock(lane, position);
        source = &padded_[j];
      }
      from[j] = reinterpret_cast<const uint8_t*>(source);
    }
    const size_t rows = StateRows(hash_) * kRowBytes + q * kBlockPlane;
    transpose_.to_rows({from, lanes.size(), 0}, run_.InputRows(group, 0) + rows,
                       run_.InputRows(group, 1) + rows, scratch_.data());
  }
}

void HashRun::PublicBlock(const HashBlock& lane, uint8_t* out) const {
  const size_t size = HashBlockBytes(hash_), begin = lane.index * size;
  const size_t copied = begin < lane.bytes ? std::min(size, lane.bytes - begin) : 0;
  if (copied != 0) std::memcpy(out, lane.public_message + begin, copied);
  for (size_t i = copied; i < size; ++i) out[i] = PaddingAt(lane, begin + i);
}

// The schedule is worked out in plain: 32 bytes of it are two blocks' rows.
void HashRun::SlicePublic(absl::Span<const HashBlock> lanes, size_t group) {
  const size_t size = ScheduleBytes(hash_);
  Grow(schedules_, kGroupLanes * size);
  const uint8_t* from[kGroupLanes];
  uint8_t block[kMaxHashBlock];
  for (size_t j = 0; j < lanes.size(); ++j) {
    PublicBlock(lanes[j], block);
    PublicSchedule(hash_, block, &schedules_[j * size]);
    from[j] = &schedules_[j * size];
  }
  for (size_t q = 0; q < size / kPairBytes; ++q) {
    uint8_t* rows = run_.PublicRows(group) + 2 * q * kBlockPlane;
    transpose_.to_rows({from, lanes.size(), q * kPairBytes}, rows, rows + kBlockPlane,
                       scratch_.data());
  }
}

void HashRun::Consume(absl::Span<const uint8_t> received) {
  run_.Consume(received);
  if (run_.Done()) Finish();
}

void HashRun::Finish() {
  const size_t blocks = HashStateBlocks(hash_), used = 8 * HashStateBytes(hash_) * kRowBytes;
  const size_t all = StateRows(hash_) * kRowBytes;
  for (size_t g = 0; g < run_.groups(); ++g) {
    for (int c : {0, 1}) std::memset(run_.InputRows(g, c) + used, 0, all - used);
    uint8_t* out = reinterpret_cast<uint8_t*>(states_.data() + g * kGroupLanes * blocks);
    for (size_t q = 0; q < blocks; ++q) {
      transpose_.to_pairs(run_.OutputRows(g, 0) + q * kBlockPlane,
                          run_.OutputRows(g, 1) + q * kBlockPlane,
                          {out + q * kPairBytes, blocks * kPairBytes,
                           LanesInGroup(run_.lanes(), g)},
                          scratch_.data());
    }
  }
}

}  // namespace mpckdc
