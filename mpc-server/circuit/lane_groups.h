// SPDX-License-Identifier: Apache-2.0
// A bitsliced circuit's walk over its groups of 512 lanes, between rows in memory and messages.
// Full groups lie in a message as in memory. The last group's rows are cut in the message
// (circuit/bitslice/slices.h) and widened into scratch rows here. Internal to circuit/.
#ifndef MPC_SERVER_CIRCUIT_LANE_GROUPS_H_
#define MPC_SERVER_CIRCUIT_LANE_GROUPS_H_

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes/aes_kernels.h"
#include "mpc-server/circuit/bitslice/slices.h"
#include "mpc-server/circuit/bitslice/transpose.h"
#include "mpc-server/share/circuit.h"

namespace mpckdc {

// Buffers grow and never shrink: no allocation in steady state.
template <class T>
void Grow(SecretVector<T>& v, size_t size) {
  if (v.size() < size) v.resize(size);
}

class LaneGroups {
 public:
  LaneGroups() : scratch_(3 * kScratchBytes) {}

  // Starts with `lanes` lanes; no message is behind us.
  void Reset(size_t lanes) {
    lanes_ = lanes;
    sent_ = received_ = {};
    sent_rows_ = 0;
  }
  size_t lanes() const { return lanes_; }
  size_t groups() const { return GroupCount(lanes_); }
  size_t LanesIn(size_t group) const { return LanesInGroup(lanes_, group); }
  size_t MessageBytes(size_t rows) const { return WireBytes(lanes_, rows); }

  // For each group calls f(group, width, sent, received, msg, source), where `sent` and `received`
  // are the previous message's rows. The zero share is in `msg`, or the kernels make it from
  // `source`. With a log then calls record(group, {sent, received}, the zero share's two parts).
  template <class F, class Record>
  void Produce(const AesKernels& kernels, ZeroShares& zero, absl::Span<uint8_t> out, size_t rows,
               F f, Record record) {
    if (zero.log() != nullptr) return ProduceRecorded(zero, out, rows, f, record);
    size_t at = 0;
    for (size_t g = 0; g < groups(); ++g) {
      const size_t width = WireRowBytes(LanesIn(g));
      const absl::Span<uint8_t> wire = out.subspan(at, rows * width);
      at += wire.size();
      const SentRows behind = RowsBehind(g);
      if (width == kRowBytes) {
        ZeroSource source;
        const bool take = kernels.makes_zeros && zero.Take(wire.size(), &source);
        if (!take) zero.Fill(wire);
        f(g, width, behind.sent, behind.received, wire.data(), take ? &source : nullptr);
      } else {
        zero.Fill(wire);
        uint8_t* msg = Widened(wire.data(), rows, width, 2);
        f(g, width, behind.sent, behind.received, msg, static_cast<ZeroSource*>(nullptr));
        CompactRows(msg, rows, width, wire.data());
      }
    }
    sent_ = out;
    sent_rows_ = rows;
  }
  void Consume(absl::Span<const uint8_t> received) { received_ = received; }

  // After the last message: f(group, width, sent, received).
  template <class F>
  void Finish(F f) {
    for (size_t g = 0; g < groups(); ++g) {
      const SentRows behind = RowsBehind(g);
      f(g, WireRowBytes(LanesIn(g)), behind.sent, behind.received);
    }
  }

 private:
  template <class F, class Record>
  void ProduceRecorded(ZeroShares& zero, absl::Span<uint8_t> out, size_t rows, F f, Record record) {
    Grow(scratch_, 5 * kScratchBytes);
    for (size_t g = 0, at = 0; g < groups(); ++g) {
      const size_t width = WireRowBytes(LanesIn(g));
      const absl::Span<uint8_t> wire = out.subspan(at, rows * width);
      at += wire.size();
      const SentRows behind = RowsBehind(g);
      const ZeroHalves halves = zero.FillApart(wire);
      ZeroRows parts = {halves.own, halves.next};
      uint8_t* msg = wire.data();
      if (width != kRowBytes) {
        msg = Widened(wire.data(), rows, width, 2);
        parts = {Widened(halves.own, rows, width, 3), Widened(halves.next, rows, width, 4)};
      }
      f(g, width, behind.sent, behind.received, msg, static_cast<ZeroSource*>(nullptr));
      if (width != kRowBytes) CompactRows(msg, rows, width, wire.data());
      record(g, behind, parts);
    }
    sent_ = out;
    sent_rows_ = rows;
  }

  // One group's rows of the longest message.
  static constexpr size_t kScratchBytes = 16 * kMaxSlicesPerByte * kRowBytes;
  uint8_t* Scratch(size_t i) { return scratch_.data() + i * kScratchBytes; }

  // The previous message's rows of one group, 64 bytes apart.
  SentRows RowsBehind(size_t group) {
    if (sent_rows_ == 0) return {nullptr, nullptr};
    const size_t at = group * sent_rows_ * kRowBytes;
    const size_t width = WireRowBytes(LanesIn(group));
    if (width == kRowBytes) return {sent_.data() + at, received_.data() + at};
    return {Widened(sent_.data() + at, sent_rows_, width, 0),
            Widened(received_.data() + at, sent_rows_, width, 1)};
  }
  uint8_t* Widened(const uint8_t* wire, size_t rows, size_t width, size_t scratch) {
    ExpandRows(wire, rows, width, Scratch(scratch));
    return Scratch(scratch);
  }

  size_t lanes_ = 0;
  absl::Span<const uint8_t> sent_, received_;
  size_t sent_rows_ = 0;
  SecretBytes scratch_;  // sent, received, message of the last group; with a log, its zero share
};

// Planes of a shared block's 128 rows: x, then a.
inline constexpr size_t kBlockPlane = kBlockRows * kRowBytes;

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_LANE_GROUPS_H_
