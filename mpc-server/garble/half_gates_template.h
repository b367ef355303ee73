// SPDX-License-Identifier: Apache-2.0
// HalfGateFunctions once, over a vector V of 1, 2 or 4 labels with the CPU's AES instructions.
// Internal to the files that are compiled for it.
//
// A register's labels are those of consecutive elements i = gate * lanes + lane. Each has a hash
// key of its own, which is expanded while it is used: four keys at once cost about as much as the
// four encryptions. Where whole registers are of one gate (lanes a multiple of a register's labels)
// the keys of several gates are expanded together and each is used for all lanes.
#ifndef MPC_SERVER_GARBLE_HALF_GATES_TEMPLATE_H_
#define MPC_SERVER_GARBLE_HALF_GATES_TEMPLATE_H_

#include <immintrin.h>

#include "mpc-server/garble/half_gates.h"
#include "mpc-server/garble/tape_run.h"

#define MPCKDC_GARBLE_INLINE inline __attribute__((always_inline))

namespace mpckdc::garble {
namespace {

inline __m128i LoadLabel(const Label* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
inline void StoreLabel(Label* p, __m128i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v);
}

constexpr int kAesRounds = 10;
constexpr uint32_t kRoundConstants[kAesRounds + 1] = {0,    0x01, 0x02, 0x04, 0x08, 0x10,
                                                      0x20, 0x40, 0x80, 0x1B, 0x36};

template <class V>
struct HalfGates {
  using T = typename V::T;
  static constexpr size_t kLabels = V::kLabels;

  // FIPS 197, 5.2: the last word rotated, substituted, plus the constant, is added to a running
  // sum of the four words.
  static MPCKDC_GARBLE_INLINE T NextKey(T key, int round) {
    const T g = V::LastRound(V::SpreadRotatedLast(key), V::SetWords(kRoundConstants[round]));
    key = V::Xor(key, V::template ShiftWords<1>(key));
    return V::Xor3(key, V::template ShiftWords<2>(key), g);
  }

  // Keys that are expanded as they are used.
  struct OnTheFly {
    T key;
    MPCKDC_GARBLE_INLINE T First() const { return key; }
    MPCKDC_GARBLE_INLINE T Next(int round) { return key = NextKey(key, round); }
  };
  // One key of a register of expanded ones, for all labels.
  struct Expanded {
    T round[kAesRounds + 1];
    explicit Expanded(T key) {
      round[0] = key;
      for (int r = 1; r <= kAesRounds; ++r) round[r] = NextKey(round[r - 1], r);
    }
  };
  template <int kWhich>
  struct OfExpanded {
    const Expanded& keys;
    MPCKDC_GARBLE_INLINE T First() const { return V::template Broadcast<kWhich>(keys.round[0]); }
    MPCKDC_GARBLE_INLINE T Next(int r) const {
      return V::template Broadcast<kWhich>(keys.round[r]);
    }
  };

  // x[i] = H(x[i]) under k1, y[i] = H(y[i]) under k2.
  template <int kN, class K1, class K2>
  static MPCKDC_GARBLE_INLINE void Hash(K1 k1, K2 k2, T* x, T* y) {
    T s[kN], t[kN];
#pragma GCC unroll 2
    for (int i = 0; i < kN; ++i) {
      x[i] = V::Sigma(x[i]);
      y[i] = V::Sigma(y[i]);
      s[i] = V::Xor(x[i], k1.First());
      t[i] = V::Xor(y[i], k2.First());
    }
#pragma GCC unroll 10
    for (int r = 1; r <= kAesRounds; ++r) {
      const T key1 = k1.Next(r), key2 = k2.Next(r);
#pragma GCC unroll 2
      for (int i = 0; i < kN; ++i) {
        s[i] = r < kAesRounds ? V::Round(s[i], key1) : V::LastRound(s[i], key1);
        t[i] = r < kAesRounds ? V::Round(t[i], key2) : V::LastRound(t[i], key2);
      }
    }
#pragma GCC unroll 2
    for (int i = 0; i < kN; ++i) {
      x[i] = V::Xor(s[i], x[i]);
      y[i] = V::Xor(t[i], y[i]);
    }
  }

  // A register's elements, of which the first n are there. The outputs' labels.
  template <class K1, class K2>
  static MPCKDC_GARBLE_INLINE T GarbleLabels(K1 k1, K2 k2, T delta, T a0, T b0, Label* rows,
                                             size_t n) {
    T x[2] = {a0, V::Xor(a0, delta)}, y[2] = {b0, V::Xor(b0, delta)};
    Hash<2>(k1, k2, x, y);
    const T pb = V::Colours(b0);
    const T tg = V::Xor(V::Xor(x[0], x[1]), V::And(pb, delta));
    const T te = V::Xor(V::Xor(y[0], y[1]), a0);
    const T wg = V::Xor(x[0], V::And(V::Colours(a0), tg));
    const T we = V::Xor(y[0], V::And(pb, V::Xor(te, a0)));
    V::StorePairs(rows, tg, te, n);
    return V::Xor(wg, we);
  }
  template <class K1, class K2>
  static MPCKDC_GARBLE_INLINE T EvaluateLabels(K1 k1, K2 k2, T la, T lb, const Label* rows,
                                               size_t n) {
    T x[1] = {la}, y[1] = {lb}, tg, te;
    V::LoadPairs(rows, n, &tg, &te);
    Hash<1>(k1, k2, x, y);
    const T wg = V::Xor(x[0], V::And(V::Colours(la), tg));
    const T we = V::Xor(y[0], V::And(V::Colours(lb), V::Xor(te, la)));
    return V::Xor(wg, we);
  }
  // From and to memory.
  template <class K1, class K2>
  static MPCKDC_GARBLE_INLINE void GarbleOne(K1 k1, K2 k2, T delta, const Label* a, const Label* b,
                                             Label* rows, Label* c, size_t n) {
    V::Store(c, GarbleLabels(k1, k2, delta, V::Load(a, n), V::Load(b, n), rows, n), n);
  }
  template <class K1, class K2>
  static MPCKDC_GARBLE_INLINE void EvaluateOne(K1 k1, K2 k2, const Label* a, const Label* b,
                                               const Label* rows, Label* c, size_t n) {
    V::Store(c, EvaluateLabels(k1, k2, V::Load(a, n), V::Load(b, n), rows, n), n);
  }

  // S + 2 * gate + half of the elements from `at` on.
  static MPCKDC_GARBLE_INLINE T KeysOf(const GateRange& r, size_t at, size_t n, uint64_t half) {
    uint64_t low[kLabels];
    for (size_t i = 0; i < kLabels; ++i) {
      const size_t element = at + (i < n ? i : 0);
      const size_t gate = r.lanes == 1 ? element : element / r.lanes;
      low[i] = r.start.low + 2 * (r.first + gate) + half;
    }
    return V::SetHalves(low, r.start.high);
  }
  // From a register of gates' keys to the next one's.
  static MPCKDC_GARBLE_INLINE T Step() {
    uint64_t low[kLabels];
    for (size_t i = 0; i < kLabels; ++i) low[i] = 2 * kLabels;
    return V::SetHalves(low, 0);
  }
  static MPCKDC_GARBLE_INLINE T DeltaOf(const GateRange& r, const Label* delta, size_t at) {
    Label d[kLabels];
    for (size_t i = 0; i < kLabels; ++i) d[i] = delta[r.lanes == 1 ? 0 : (at + i) % r.lanes];
    return V::Load(d, kLabels);
  }

  // visit(k1, k2, at) for each register of elements, in order, where registers are of one gate:
  // the keys of a register's labels, two for a gate, are expanded together.
  template <class Visit>
  static MPCKDC_GARBLE_INLINE void ForEachOfOneGate(const GateRange& r, Visit visit) {
    constexpr size_t kGates = kLabels / 2;
    static_assert(kGates >= 1 && kGates <= 2);
    for (size_t gate = 0; gate < r.gates; gate += kGates) {
      uint64_t low[kLabels];
      for (size_t i = 0; i < kLabels; ++i) low[i] = r.start.low + 2 * (r.first + gate) + i;
      const Expanded keys(V::SetHalves(low, r.start.high));
      for (size_t lane = 0; lane < r.lanes; lane += kLabels) {
        visit(OfExpanded<0>{keys}, OfExpanded<1>{keys}, gate * r.lanes + lane, lane);
      }
      if (kGates == 1 || gate + 1 == r.gates) continue;
      for (size_t lane = 0; lane < r.lanes; lane += kLabels) {
        visit(OfExpanded<2 % kLabels>{keys}, OfExpanded<3 % kLabels>{keys},
              (gate + 1) * r.lanes + lane, lane);
      }
    }
  }
  // visit(k1, k2, at, n) for each register of elements. In one lane each is of the next gate.
  template <class Visit>
  static MPCKDC_GARBLE_INLINE void ForEach(const GateRange& r, Visit visit) {
    const size_t all = r.gates * r.lanes;
    T k1 = KeysOf(r, 0, kLabels, 0), k2 = KeysOf(r, 0, kLabels, 1);
    const T step = Step();
    for (size_t at = 0; at < all; at += kLabels) {
      const size_t n = all - at < kLabels ? all - at : kLabels;
      if (r.lanes != 1) {
        k1 = KeysOf(r, at, n, 0);
        k2 = KeysOf(r, at, n, 1);
      }
      visit(OnTheFly{k1}, OnTheFly{k2}, at, n);
      k1 = V::Add(k1, step);
      k2 = V::Add(k2, step);
    }
  }
  static bool OfOneGate(const GateRange& r) { return kLabels > 1 && r.lanes % kLabels == 0; }

  static void Garble(const GateRange& r, const Label* delta, const Label* a, const Label* b,
                     Label* rows, Label* c) {
    if constexpr (kLabels > 1) {
      if (OfOneGate(r)) {
        return ForEachOfOneGate(
            r, [&](auto k1, auto k2, size_t at, size_t lane) __attribute__((always_inline)) {
              GarbleOne(k1, k2, V::Load(delta + lane, kLabels), a + at, b + at,
                        rows + kAndRows * at, c + at, kLabels);
            });
      }
    }
    const T of_first = DeltaOf(r, delta, 0);
    ForEach(
        r, [&](auto k1, auto k2, size_t at, size_t n) __attribute__((always_inline)) {
          const T d = r.lanes == 1 ? of_first : DeltaOf(r, delta, at);
          GarbleOne(k1, k2, d, a + at, b + at, rows + kAndRows * at, c + at, n);
        });
  }

  static void Evaluate(const GateRange& r, const Label* a, const Label* b, const Label* rows,
                       Label* c) {
    if constexpr (kLabels > 1) {
      if (OfOneGate(r)) {
        return ForEachOfOneGate(
            r, [&](auto k1, auto k2, size_t at, size_t) __attribute__((always_inline)) {
              EvaluateOne(k1, k2, a + at, b + at, rows + kAndRows * at, c + at, kLabels);
            });
      }
    }
    ForEach(
        r, [&](auto k1, auto k2, size_t at, size_t n) __attribute__((always_inline)) {
          EvaluateOne(k1, k2, a + at, b + at, rows + kAndRows * at, c + at, n);
        });
  }

  static void HashEach(const HashKey& start, uint64_t first, const Label* x, size_t count,
                       Label* out) {
    for (size_t at = 0; at < count; at += kLabels) {
      const size_t n = count - at < kLabels ? count - at : kLabels;
      uint64_t low[kLabels];
      for (size_t i = 0; i < kLabels; ++i) low[i] = start.low + first + at + i;
      const OnTheFly key{V::SetHalves(low, start.high)};
      T a[1] = {V::Load(x + at, n)}, unused[1] = {a[0]};
      Hash<1>(key, key, a, unused);
      V::Store(out + at, a[0], n);
    }
  }

  static MPCKDC_GARBLE_INLINE void Xor3(const Label* a, const Label* b, const Label* c, Label* out,
                                        size_t count) {
    size_t i = 0;
    for (; i + kLabels <= count; i += kLabels) {
      V::Store(out + i,
               V::Xor3(V::Load(a + i, kLabels), V::Load(b + i, kLabels), V::Load(c + i, kLabels)),
               kLabels);
    }
    for (; i < count; ++i) {
      StoreLabel(out + i, _mm_xor_si128(_mm_xor_si128(LoadLabel(a + i), LoadLabel(b + i)),
                                        LoadLabel(c + i)));
    }
  }

  // ---- Gates of one lane, of slots ----

  static constexpr bool kGathers = kLabels > 1;

  // For each register of gates: Gates are filled up to kGatePad, a multiple of kLabels.
  template <class Visit>
  static MPCKDC_GARBLE_INLINE void ForSlots(const GateRange& r, Label* slots, const TapeGate* g,
                                            Visit visit) {
    T k1 = KeysOf(r, 0, kLabels, 0);
    const T step = Step();
    for (size_t at = 0; at < r.gates; at += kLabels, g += kLabels) {
      const size_t n = r.gates - at < kLabels ? r.gates - at : kLabels;
      const T k2 = V::Add(k1, V::Ones());
      const T a = V::Gather(slots, g, [](const TapeGate& t) { return t.x; },
                            [](const TapeGate& t) { return t.x2; });
      const T b = V::Gather(slots, g, [](const TapeGate& t) { return t.y; },
                            [](const TapeGate& t) { return t.y2; });
      V::Scatter(slots, g, visit(OnTheFly{k1}, OnTheFly{k2}, a, b, at, n));
      k1 = V::Add(k1, step);
    }
  }
  static MPCKDC_GARBLE_INLINE void GarbleSlots(const GateRange& r, const Label& delta,
                                               Label* slots, const TapeGate* g, Label* rows) {
    const T d = V::Same(delta);
    ForSlots(
        r, slots, g, [&](auto k1, auto k2, T a, T b, size_t at, size_t n)
        __attribute__((always_inline)) {
          return GarbleLabels(k1, k2, d, a, b, rows + kAndRows * at, n);
        });
  }
  static MPCKDC_GARBLE_INLINE void EvaluateSlots(const GateRange& r, Label* slots,
                                                 const TapeGate* g, const Label* rows) {
    ForSlots(
        r, slots, g, [&](auto k1, auto k2, T a, T b, size_t at, size_t n)
        __attribute__((always_inline)) {
          return EvaluateLabels(k1, k2, a, b, rows + kAndRows * at, n);
        });
  }

  static constexpr HalfGateFunctions Functions() {
    using Run = TapeRun<HalfGates>;
    return {Garble, Evaluate, HashEach, Run::GarbleBlock, Run::EvaluateBlock};
  }
};

}  // namespace
}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_HALF_GATES_TEMPLATE_H_
