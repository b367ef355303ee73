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
inline void StoreLabel(Label* p, __m128i v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }

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

  // The two keys of each label of a register, expanded as they are used.
  struct Fresh {
    T key[2];
    template <int kHalf>
    MPCKDC_GARBLE_INLINE T First() const {
      return key[kHalf];
    }
    template <int kHalf>
    MPCKDC_GARBLE_INLINE T Next(int round) {
      return key[kHalf] = NextKey(key[kHalf], round);
    }
  };
  // A register of expanded keys; of them the two of gate kWhich, for all labels.
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
    template <int kHalf>
    MPCKDC_GARBLE_INLINE T First() const {
      return V::template Broadcast<2 * kWhich + kHalf>(keys.round[0]);
    }
    template <int kHalf>
    MPCKDC_GARBLE_INLINE T Next(int r) const {
      return V::template Broadcast<2 * kWhich + kHalf>(keys.round[r]);
    }
  };

  // x = H(x) of kR registers side by side, since one alone waits for its keys: kN labels under each
  // of the two keys.
  template <int kR, int kN>
  struct Labels {
    T x[kR][2][kN];
  };
  template <int kR, int kN, class Keys>
  static MPCKDC_GARBLE_INLINE void Hash(Keys* keys, Labels<kR, kN>& l) {
    T s[kR][2][kN];
#pragma GCC unroll 2
    for (int r = 0; r < kR; ++r) {
      const T first[2] = {keys[r].template First<0>(), keys[r].template First<1>()};
#pragma GCC unroll 4
      for (int i = 0; i < 2 * kN; ++i) {
        l.x[r][i / kN][i % kN] = V::Sigma(l.x[r][i / kN][i % kN]);
        s[r][i / kN][i % kN] = V::Xor(l.x[r][i / kN][i % kN], first[i / kN]);
      }
    }
#pragma GCC unroll 10
    for (int round = 1; round <= kAesRounds; ++round) {
#pragma GCC unroll 2
      for (int r = 0; r < kR; ++r) {
        const T key[2] = {keys[r].template Next<0>(round), keys[r].template Next<1>(round)};
#pragma GCC unroll 4
        for (int i = 0; i < 2 * kN; ++i) {
          T& v = s[r][i / kN][i % kN];
          v = round < kAesRounds ? V::Round(v, key[i / kN]) : V::LastRound(v, key[i / kN]);
        }
      }
    }
#pragma GCC unroll 2
    for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 4
      for (int i = 0; i < 2 * kN; ++i) {
        l.x[r][i / kN][i % kN] = V::Xor(s[r][i / kN][i % kN], l.x[r][i / kN][i % kN]);
      }
    }
  }

  // Of kR registers the outputs' labels, to c; of the last register n labels are there.
  template <int kR, class Keys>
  static MPCKDC_GARBLE_INLINE void GarbleLabels(Keys* keys, const T* delta, const T* a, const T* b,
                                                Label* rows, size_t n, T* c) {
    Labels<kR, 2> l;
#pragma GCC unroll 2
    for (int r = 0; r < kR; ++r) {
      l.x[r][0][0] = a[r];
      l.x[r][0][1] = V::Xor(a[r], delta[r]);
      l.x[r][1][0] = b[r];
      l.x[r][1][1] = V::Xor(b[r], delta[r]);
    }
    Hash<kR, 2>(keys, l);
#pragma GCC unroll 2
    for (int r = 0; r < kR; ++r) {
      const auto& [x, y] = l.x[r];
      const T pb = V::Colours(b[r]);
      const T tg = V::Xor(V::Xor(x[0], x[1]), V::And(pb, delta[r]));
      const T te = V::Xor(V::Xor(y[0], y[1]), a[r]);
      const T wg = V::Xor(x[0], V::And(V::Colours(a[r]), tg));
      const T we = V::Xor(y[0], V::And(pb, V::Xor(te, a[r])));
      V::StorePairs(rows + kAndRows * kLabels * r, tg, te, r + 1 < kR ? kLabels : n);
      c[r] = V::Xor(wg, we);
    }
  }
  template <int kR, class Keys>
  static MPCKDC_GARBLE_INLINE void EvaluateLabels(Keys* keys, const T* a, const T* b,
                                                  const Label* rows, size_t n, T* c) {
    Labels<kR, 1> l;
    T tg[kR], te[kR];
#pragma GCC unroll 2
    for (int r = 0; r < kR; ++r) {
      l.x[r][0][0] = a[r];
      l.x[r][1][0] = b[r];
      V::LoadPairs(rows + kAndRows * kLabels * r, r + 1 < kR ? kLabels : n, &tg[r], &te[r]);
    }
    Hash<kR, 1>(keys, l);
#pragma GCC unroll 2
    for (int r = 0; r < kR; ++r) {
      const T wg = V::Xor(l.x[r][0][0], V::And(V::Colours(a[r]), tg[r]));
      const T we = V::Xor(l.x[r][1][0], V::And(V::Colours(b[r]), V::Xor(te[r], a[r])));
      c[r] = V::Xor(wg, we);
    }
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

  // visit(keys, at, lane) for each register of elements, in order, where registers are of one gate:
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
        visit(OfExpanded<0>{keys}, gate * r.lanes + lane, lane);
      }
      if (kGates == 1 || gate + 1 == r.gates) continue;
      for (size_t lane = 0; lane < r.lanes; lane += kLabels) {
        visit(OfExpanded<kGates - 1>{keys}, (gate + 1) * r.lanes + lane, lane);
      }
    }
  }
  static bool OfOneGate(const GateRange& r) { return kLabels > 1 && r.lanes % kLabels == 0; }

  // The keys of consecutive registers of elements. In one lane each is of the next gate.
  class KeyWalk {
   public:
    explicit MPCKDC_GARBLE_INLINE KeyWalk(const GateRange& r)
        : range_(r), next_{{KeysOf(r, 0, kLabels, 0), KeysOf(r, 0, kLabels, 1)}} {}
    MPCKDC_GARBLE_INLINE Fresh Next(size_t at, size_t n) {
      if (range_.lanes != 1) return {{KeysOf(range_, at, n, 0), KeysOf(range_, at, n, 1)}};
      const Fresh keys = next_;
      next_ = {{V::Add(keys.key[0], Step()), V::Add(keys.key[1], Step())}};
      return keys;
    }

   private:
    const GateRange& range_;
    Fresh next_;
  };

  // visit.template operator()<kR>(keys, at, n) for kR registers of elements, of which the last has
  // n.
  template <class Visit>
  static MPCKDC_GARBLE_INLINE void ForEach(const GateRange& r, Visit visit) {
    const size_t all = r.gates * r.lanes;
    KeyWalk walk(r);
    size_t at = 0;
    for (; at + kLabels < all; at += 2 * kLabels) {
      const size_t n = all - at - kLabels < kLabels ? all - at - kLabels : kLabels;
      Fresh keys[2] = {walk.Next(at, kLabels), walk.Next(at + kLabels, n)};
      visit.template operator()<2>(keys, at, n);
    }
    if (at >= all) return;
    Fresh keys[1] = {walk.Next(at, all - at)};
    visit.template operator()<1>(keys, at, all - at);
  }

  template <int kR>
  static MPCKDC_GARBLE_INLINE void Load(const Label* from, size_t n, T* to) {
#pragma GCC unroll 2
    for (int r = 0; r < kR; ++r) to[r] = V::Load(from + kLabels * r, r + 1 < kR ? kLabels : n);
  }
  template <int kR>
  static MPCKDC_GARBLE_INLINE void Store(const T* from, size_t n, Label* to) {
#pragma GCC unroll 2
    for (int r = 0; r < kR; ++r) V::Store(to + kLabels * r, from[r], r + 1 < kR ? kLabels : n);
  }

  static void Garble(const GateRange& r, const Label* delta, const Label* a, const Label* b,
                     Label* rows, Label* c) {
    if constexpr (kLabels > 1) {
      if (OfOneGate(r)) {
        return ForEachOfOneGate(
            r, [&](auto keys, size_t at, size_t lane) __attribute__((always_inline)) {
              const T d = V::Load(delta + lane, kLabels), a0 = V::Load(a + at, kLabels),
                      b0 = V::Load(b + at, kLabels);
              T out;
              GarbleLabels<1>(&keys, &d, &a0, &b0, rows + kAndRows * at, kLabels, &out);
              V::Store(c + at, out, kLabels);
            });
      }
    }
    const T of_first = DeltaOf(r, delta, 0);
    ForEach(
        r, [&]<int kR>(Fresh * keys, size_t at, size_t n) __attribute__((always_inline)) {
          T d[kR], x[kR], y[kR], out[kR];
          for (int i = 0; i < kR; ++i) {
            d[i] = r.lanes == 1 ? of_first : DeltaOf(r, delta, at + kLabels * i);
          }
          Load<kR>(a + at, n, x);
          Load<kR>(b + at, n, y);
          GarbleLabels<kR>(keys, d, x, y, rows + kAndRows * at, n, out);
          Store<kR>(out, n, c + at);
        });
  }

  static void Evaluate(const GateRange& r, const Label* a, const Label* b, const Label* rows,
                       Label* c) {
    if constexpr (kLabels > 1) {
      if (OfOneGate(r)) {
        return ForEachOfOneGate(
            r, [&](auto keys, size_t at, size_t) __attribute__((always_inline)) {
              const T la = V::Load(a + at, kLabels), lb = V::Load(b + at, kLabels);
              T out;
              EvaluateLabels<1>(&keys, &la, &lb, rows + kAndRows * at, kLabels, &out);
              V::Store(c + at, out, kLabels);
            });
      }
    }
    ForEach(
        r, [&]<int kR>(Fresh * keys, size_t at, size_t n) __attribute__((always_inline)) {
          T x[kR], y[kR], out[kR];
          Load<kR>(a + at, n, x);
          Load<kR>(b + at, n, y);
          EvaluateLabels<kR>(keys, x, y, rows + kAndRows * at, n, out);
          Store<kR>(out, n, c + at);
        });
  }

  static void HashEach(const HashKey& start, uint64_t first, const Label* x, size_t count,
                       Label* out) {
    for (size_t at = 0; at < count; at += kLabels) {
      const size_t n = count - at < kLabels ? count - at : kLabels;
      uint64_t low[kLabels];
      for (size_t i = 0; i < kLabels; ++i) low[i] = start.low + first + at + i;
      const T key = V::SetHalves(low, start.high);
      const T label = V::Load(x + at, n);
      Fresh keys = {{key, key}};
      Labels<1, 1> l = {{{{label}, {label}}}};  // twice: the second one is not used
      Hash<1, 1>(&keys, l);
      V::Store(out + at, l.x[0][0][0], n);
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

  // Expanded keys of the next gates. A tape's groups wait for each other's labels; expanding
  // keys meanwhile takes no time.
  //
  //     round    [round][half][gate]
  class Ahead {
   public:
    explicit Ahead(const BlockRun& r) : start_(r.start), first_(r.first), next_(r.first) {}

    // From gate `first` on, at least so many.
    MPCKDC_GARBLE_INLINE const Label* From(uint64_t first, size_t gates) {
      if (first + gates > next_) Fill(first);
      return &round_[0][0][first - first_];
    }
    struct Keys {
      const Label* at;
      template <int kHalf>
      MPCKDC_GARBLE_INLINE T First() const {
        return Next<kHalf>(0);
      }
      template <int kHalf>
      MPCKDC_GARBLE_INLINE T Next(int round) const {
        return V::Load(at + (2 * round + kHalf) * kRoom, kLabels);
      }
    };

   private:
    static constexpr size_t kGates = 24, kRoom = kGates + kGatePad;
    static constexpr size_t kChains = 4;

    void Fill(uint64_t first) {
      first_ = first;
      next_ = first + kGates;
      for (size_t at = 0; at < kGates; at += kChains * kLabels / 2) {
        T key[kChains];
#pragma GCC unroll 4
        for (size_t i = 0; i < kChains; ++i) {
          uint64_t low[kLabels];
          const size_t gate = at + i / 2 * kLabels;
          for (size_t k = 0; k < kLabels; ++k) low[k] = start_.low + 2 * (first + gate + k) + i % 2;
          key[i] = V::SetHalves(low, start_.high);
        }
#pragma GCC unroll 11
        for (int r = 0; r <= kAesRounds; ++r) {
#pragma GCC unroll 4
          for (size_t i = 0; i < kChains; ++i) {
            if (r > 0) key[i] = NextKey(key[i], r);
            V::Store(&round_[r][i % 2][at + i / 2 * kLabels], key[i], kLabels);
          }
        }
      }
    }

    const HashKey start_;
    uint64_t first_, next_;  // none yet: a group without gates is given what it does not read
    alignas(64) Label round_[kAesRounds + 1][2][kRoom];
  };

  // Gates are filled up to kGatePad, a multiple of kLabels.
  template <int kR>
  static MPCKDC_GARBLE_INLINE void Gather(const Label* slots, const TapeGate* g, T* a, T* b) {
#pragma GCC unroll 2
    for (int r = 0; r < kR; ++r, g += kLabels) {
      a[r] = V::Gather(
          slots, g, [](const TapeGate& t) { return t.x; }, [](const TapeGate& t) { return t.x2; });
      b[r] = V::Gather(
          slots, g, [](const TapeGate& t) { return t.y; }, [](const TapeGate& t) { return t.y2; });
    }
  }
  template <int kR>
  static MPCKDC_GARBLE_INLINE void Scatter(Label* slots, const TapeGate* g, const T* c) {
#pragma GCC unroll 2
    for (int r = 0; r < kR; ++r) V::Scatter(slots, g + kLabels * r, c[r]);
  }
  // visit.template operator()<kR>(keys, at, n) for kR registers of gates, of which the last has n.
  template <class Visit>
  static MPCKDC_GARBLE_INLINE void ForGroup(const GateRange& r, Ahead& ahead, Visit visit) {
    const Label* const from = ahead.From(r.first, r.gates);
    size_t at = 0;
    for (; at + kLabels < r.gates; at += 2 * kLabels) {
      const size_t n = r.gates - at - kLabels < kLabels ? r.gates - at - kLabels : kLabels;
      const typename Ahead::Keys keys[2] = {{from + at}, {from + at + kLabels}};
      visit.template operator()<2>(keys, at, n);
    }
    if (at >= r.gates) return;
    const typename Ahead::Keys keys[1] = {{from + at}};
    visit.template operator()<1>(keys, at, r.gates - at);
  }
  static MPCKDC_GARBLE_INLINE void GarbleSlots(const GateRange& r, Ahead& ahead, const Label& delta,
                                               Label* slots, const TapeGate* g, Label* rows) {
    const T d[2] = {V::Same(delta), V::Same(delta)};
    ForGroup(
        r,
        ahead, [&]<int kR>(const auto* keys, size_t at, size_t n) __attribute__((always_inline)) {
          T a[kR], b[kR], c[kR];
          Gather<kR>(slots, g + at, a, b);
          GarbleLabels<kR>(keys, d, a, b, rows + kAndRows * at, n, c);
          Scatter<kR>(slots, g + at, c);
        });
  }
  static MPCKDC_GARBLE_INLINE void EvaluateSlots(const GateRange& r, Ahead& ahead, Label* slots,
                                                 const TapeGate* g, const Label* rows) {
    ForGroup(
        r,
        ahead, [&]<int kR>(const auto* keys, size_t at, size_t n) __attribute__((always_inline)) {
          T a[kR], b[kR], c[kR];
          Gather<kR>(slots, g + at, a, b);
          EvaluateLabels<kR>(keys, a, b, rows + kAndRows * at, n, c);
          Scatter<kR>(slots, g + at, c);
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
