// SPDX-License-Identifier: Apache-2.0
// Runs blocks of a tape (tape_format.h) over the gates of one instruction set. Internal to the
// files that are compiled for it.
//
// K has, of the gates of one instruction set,
//
//     Garble, Evaluate   as in HalfGateFunctions
//     Xor3               out = a + b + c of so many labels
//     kGathers           whether the next ones are there: gates of one lane and copy, of slots
//     GarbleSlots(GateRange, delta, slots, gates, rows), EvaluateSlots(GateRange, ...)
#ifndef MPC_SERVER_GARBLE_TAPE_RUN_H_
#define MPC_SERVER_GARBLE_TAPE_RUN_H_

#include "mpc-server/garble/half_gates.h"

namespace mpckdc::garble {
namespace {

template <class K>
struct TapeRun {
  // kWidth: labels of a slot, or 0 for what is in the run.
  template <size_t kWidth, bool kGarbles>
  static void Run(const BlockRun& r) {
    const size_t width = kWidth != 0 ? kWidth : r.copies * r.lanes;
    const auto slot = [&](uint16_t s) { return r.slots + s * width; };
    const TapeXor* x = r.xors;
    const TapeScale* s = r.scales;
    const TapeGate* g = r.gates;
    auto* rows = Rows<kGarbles>(r);
    GateRange range = {r.start, r.first, 0, r.lanes};
    [[maybe_unused]] typename K::Ahead ahead(r);
    for (size_t i = 0; i < r.group_count; ++i) {
      const TapeGroup group = r.groups[i];
      for (size_t k = 0; k < group.xors; ++k, ++x) {
        K::Xor3(slot(x->a), slot(x->b), slot(x->c), slot(x->out), width);
      }
      for (size_t k = 0; k < group.scales; ++k, ++s) {
        Scale(slot(s->a), slot(s->mask), slot(s->out), width);
      }
      range.gates = group.gates * r.copies;
      if constexpr (kWidth == 1 && K::kGathers) {
        if constexpr (kGarbles) {
          K::GarbleSlots(range, ahead, r.delta[0], r.slots, g, rows);
        } else {
          K::EvaluateSlots(range, ahead, r.slots, g, rows);
        }
      } else {
        Gates<kGarbles>(range, r, g, group.gates, width, rows);
      }
      g += (group.gates + kGatePad - 1) / kGatePad * kGatePad;
      rows += kAndRows * group.gates * width;
      range.first += range.gates;
    }
  }

  template <bool kGarbles>
  static void RunAny(const BlockRun& r) {
    switch (r.copies * r.lanes) {
      case 1:
        return Run<1, kGarbles>(r);
      case 4:
        return Run<4, kGarbles>(r);
      case 16:
        return Run<16, kGarbles>(r);
      default:
        return Run<0, kGarbles>(r);
    }
  }
  static void GarbleBlock(const BlockRun& r) { RunAny<true>(r); }
  static void EvaluateBlock(const BlockRun& r) { RunAny<false>(r); }

 private:
  template <bool kGarbles>
  static auto* Rows(const BlockRun& r) {
    if constexpr (kGarbles) {
      return r.garbled;
    } else {
      return r.arrived;
    }
  }
  static void Scale(const Label* a, const Label* mask, Label* out, size_t width) {
    for (size_t i = 0; i < width; ++i) {
      out[i] = {a[i].low & mask[i].low, a[i].high & mask[i].high};
    }
  }

  // By copying inputs side by side.
  template <bool kGarbles, class Row>
  static void Gates(const GateRange& range, const BlockRun& r, const TapeGate* g, size_t gates,
                    size_t width, Row* rows) {
    Label* const a = r.scratch;
    Label* const b = a + kGroupGates * width;
    Label* const c = b + kGroupGates * width;
    const auto slot = [&](uint16_t s) { return r.slots + s * width; };
    for (size_t i = 0; i < gates; ++i) {
      K::Xor3(slot(g[i].x), slot(g[i].x2), slot(kZeroSlot), a + i * width, width);
      K::Xor3(slot(g[i].y), slot(g[i].y2), slot(kZeroSlot), b + i * width, width);
    }
    if constexpr (kGarbles) {
      K::Garble(range, r.delta, a, b, rows, c);
    } else {
      K::Evaluate(range, a, b, rows, c);
    }
    for (size_t i = 0; i < gates; ++i) {
      K::Xor3(c + i * width, slot(g[i].z), slot(kZeroSlot), slot(g[i].out), width);
    }
  }
};

}  // namespace
}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_TAPE_RUN_H_
