// SPDX-License-Identifier: Apache-2.0
// Runs a recorded program (bit_program.h) on rows, once over a word type W (bitslice/word_*.h) and
// a number C of components per value: C = 1 computes on plain bits, C = 2 on both halves of a
// share.
//
//   slot n     | x: kRow bytes | a: kRow bytes |        C = 1: one row
//
// For a quadratic f without constant the message's row is f(x) + f(a) + zero share (share/
// circuit.h); a summand w counts as w.x + w.a, for the same reason. A public bit is the last
// component of its slot; the first is zero.
//
// Every function works on the first `width` bytes of each row, rounded up to whole words.
#ifndef MPC_SERVER_CIRCUIT_HASH_BIT_TEMPLATE_H_
#define MPC_SERVER_CIRCUIT_HASH_BIT_TEMPLATE_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/circuit/hash/bit_program.h"

#define MPCKDC_BIT_INLINE __attribute__((always_inline))

namespace mpckdc {

template <class W, int C, size_t kRow>
struct BitRunner {
  using T = typename W::T;
  static constexpr size_t kWideRow = 64;  // of inputs and outputs

  static const uint8_t* At(const uint8_t* slots, uint16_t slot, int c) {
    return slots + (C * size_t{slot} + static_cast<size_t>(c)) * kRow;
  }
  static T Get(const uint8_t* slots, uint16_t slot, int c) { return W::Load(At(slots, slot, c)); }
  static void Put(uint8_t* slots, uint16_t slot, int c, T v) {
    W::Store(const_cast<uint8_t*>(At(slots, slot, c)), v);
  }

  static void Store(const uint16_t* slots, size_t count, const uint8_t* sent,
                    const uint8_t* received, const BitRows& rows) {
    for (size_t o = 0; o < rows.width; o += W::kBytes) {
      for (size_t i = 0; i < count; ++i) {
        const T s = W::Load(sent + i * kRow + o);
        if (C == 2) Put(rows.slots + o, slots[i], 0, W::Xor(s, W::Load(received + i * kRow + o)));
        Put(rows.slots + o, slots[i], C - 1, s);
      }
    }
  }

  static void Run(const BitSection* sections, size_t count, const uint16_t* args,
                  const BitRows& rows) {
    for (size_t o = 0; o < rows.width; o += W::kBytes) {
      uint8_t* msg = rows.msg + o;
      for (size_t i = 0; i < count; ++i) {
        const BitSection& s = sections[i];
        if (s.op < BitOp::kMajority) {
          Local(s, args + s.at, rows, o);
        } else {
          Open(s, args + s.at, rows.slots + o, msg);
          msg += s.count * kRow;
        }
      }
    }
  }

  static void Local(const BitSection& s, const uint16_t* p, const BitRows& rows, size_t o) {
    uint8_t* slots = rows.slots + o;
    const size_t n = s.count;
    switch (s.op) {
      case BitOp::kInput:
        for (size_t i = 0; i < n; ++i, p += 2) {
          for (int c = 0; c < C; ++c) {
            Put(slots, p[0], c, W::Load(rows.input[c] + p[1] * kWideRow + o));
          }
        }
        return;
      case BitOp::kPublic:
        for (size_t i = 0; i < n; ++i, p += 2) {
          if (C == 2) Put(slots, p[0], 0, W::Zero());
          Put(slots, p[0], C - 1, W::Load(rows.publics + p[1] * kWideRow + o));
        }
        return;
      case BitOp::kXor2:
        for (size_t i = 0; i < n; ++i, p += 3) {
          for (int c = 0; c < C; ++c) {
            Put(slots, p[0], c, W::Xor(Get(slots, p[1], c), Get(slots, p[2], c)));
          }
        }
        return;
      case BitOp::kXor3:
        for (size_t i = 0; i < n; ++i, p += 4) {
          for (int c = 0; c < C; ++c) {
            Put(slots, p[0], c,
                W::Xor3(Get(slots, p[1], c), Get(slots, p[2], c), Get(slots, p[3], c)));
          }
        }
        return;
      case BitOp::kNot:
        for (size_t i = 0; i < n; ++i, p += 2) {
          if (C == 2) Put(slots, p[0], 0, Get(slots, p[1], 0));
          Put(slots, p[0], C - 1, W::Not(Get(slots, p[1], C - 1)));
        }
        return;
      case BitOp::kScale:
        for (size_t i = 0; i < n; ++i, p += 3) {
          const T by = Get(slots, p[1], C - 1);
          for (int c = 0; c < C; ++c) Put(slots, p[0], c, W::And(by, Get(slots, p[2], c)));
        }
        return;
      case BitOp::kOutput:
        for (size_t i = 0; i < n; ++i, p += 2) {
          for (int c = 0; c < C; ++c) {
            W::Store(rows.output[c] + p[0] * kWideRow + o, Get(slots, p[1], c));
          }
        }
        return;
      default:
        return;
    }
  }

  static void Open(const BitSection& s, const uint16_t* p, const uint8_t* slots, uint8_t* msg) {
    const size_t n = s.count;
    switch (s.op) {
      case BitOp::kMajority:
        for (size_t i = 0; i < n; ++i, p += 3, msg += kRow) {
          T r = W::Load(msg);
          for (int c = 0; c < C; ++c) {
            const T x = Get(slots, p[0], c), y = Get(slots, p[1], c), z = Get(slots, p[2], c);
            r = W::Xor3(r, W::And(W::Xor(x, z), W::Xor(y, z)), z);
          }
          W::Store(msg, r);
        }
        return;
      case BitOp::kChoose:
        for (size_t i = 0; i < n; ++i, p += 3, msg += kRow) {
          T r = W::Load(msg);
          for (int c = 0; c < C; ++c) {
            const T x = Get(slots, p[0], c), y = Get(slots, p[1], c), z = Get(slots, p[2], c);
            r = W::Xor3(r, W::And(x, W::Xor(y, z)), z);
          }
          W::Store(msg, r);
        }
        return;
      default:
        Products(s, p, slots, msg);
    }
  }

  static void Products(const BitSection& s, const uint16_t* p, const uint8_t* slots,
                       uint8_t* msg) {
    for (size_t i = 0; i < s.count; ++i, msg += kRow) {
      T r = W::Load(msg);
      for (size_t k = 0; k < s.linears; ++k, ++p) {
        for (int c = 0; c < C; ++c) r = W::Xor(r, Get(slots, *p, c));
      }
      for (size_t k = 0; k < s.products; ++k, p += 2) {
        for (int c = 0; c < C; ++c) r = W::AndXor(Get(slots, p[0], c), Get(slots, p[1], c), r);
      }
      W::Store(msg, r);
    }
  }

  // What is to be proved of opened rows: Maj = (x + z)(y + z) + z, Ch = x(y + z) + z, or the sum as
  // it is. Whole rows; those of the log may be shorter.
  template <size_t kLogRow>
  static void Record(const BitSection& s, const uint16_t* p, size_t count, const uint8_t* slots,
                     const BitRecord& to) {
    switch (s.op) {
      case BitOp::kMajority:
        return RecordEach<kLogRow>(to, slots, count, 1,
                                   [&](size_t i, const Recorded<kLogRow>& row) MPCKDC_BIT_INLINE {
                                     const uint16_t *x = p + 3 * i, *y = x + 1, *z = x + 2;
                                     row.Product(0, row.Sum(*x, *z), row.Sum(*y, *z));
                                     row.End(row.Own(*z));
                                   });
      case BitOp::kChoose:
        return RecordEach<kLogRow>(to, slots, count, 1,
                                   [&](size_t i, const Recorded<kLogRow>& row) MPCKDC_BIT_INLINE {
                                     const uint16_t *x = p + 3 * i, *y = x + 1, *z = x + 2;
                                     row.Product(0, row.Value(*x), row.Sum(*y, *z));
                                     row.End(row.Own(*z));
                                   });
      default:
        return RecordEach<kLogRow>(to, slots, count, s.products,
                                   [&](size_t i, const Recorded<kLogRow>& row) MPCKDC_BIT_INLINE {
                                     const uint16_t* linear =
                                         p + i * (s.linears + 2 * size_t{s.products});
                                     const uint16_t* pair = linear + s.linears;
                                     T sum = W::Zero();
                                     for (; linear != pair; ++linear)
                                       sum = W::Xor(sum, row.Own(*linear));
                                     for (size_t k = 0; k < s.products; ++k, pair += 2) {
                                       row.Product(k, row.Value(pair[0]), row.Value(pair[1]));
                                     }
                                     row.End(sum);
                                   });
    }
  }

  static constexpr BitKernels Kernels(BitRecordFunction far = Record<kRow>) {
    return {Store, Run, Record<kRow>, far, kRow};
  }

 private:
  // A value as P_i and its neighbours know it: a_i and a_{i-1} = x_i + a_i.
  struct Known {
    T own, left;
  };
  // One opened row's rows in the log, at one word.
  template <size_t kLogRow>
  struct Recorded {
    const uint8_t* slots;
    const uint8_t *own, *next;
    uint8_t *wires[2], *t[2];

    T Own(uint16_t slot) const { return Get(slots, slot, C - 1); }
    Known Value(uint16_t slot) const { return {Own(slot), W::Xor(Get(slots, slot, 0), Own(slot))}; }
    Known Sum(uint16_t a, uint16_t b) const {
      const Known u = Value(a), v = Value(b);
      return {W::Xor(u.own, v.own), W::Xor(u.left, v.left)};
    }
    void Product(size_t k, Known a, Known b) const {
      W::StoreForLater(wires[0] + 2 * k * kLogRow, a.own);
      W::StoreForLater(wires[0] + (2 * k + 1) * kLogRow, b.own);
      W::StoreForLater(wires[1] + 2 * k * kLogRow, a.left);
      W::StoreForLater(wires[1] + (2 * k + 1) * kLogRow, b.left);
    }
    void End(T linear) const {
      W::StoreForLater(t[0], W::Xor(linear, W::Load(next)));
      W::Store(t[1], W::Load(own));  // what is received is added to it
    }
  };
  template <size_t kLogRow, class F>
  static void RecordEach(const BitRecord& to, const uint8_t* slots, size_t count, size_t products,
                         F f) {
    constexpr size_t kAhead = 4;  // instances: a log is more than a cache holds
    constexpr int kWrite = 1, kSecondLevel = 2;
    const size_t wires = 2 * products * kLogRow;
    for (size_t i = 0; i < count; ++i) {
      for (size_t o = 0; o < kLogRow; o += W::kBytes) {
        const size_t from = i * kRow + o, t = i * kLogRow + o;
        if (kLogRow == 64 && o == 0) {
          __builtin_prefetch(to.t[1] + t + kAhead * kLogRow, kWrite, kSecondLevel);
        }
        f(i, Recorded<kLogRow>{slots + o,
                               to.own + from,
                               to.next + from,
                               {to.wires[0] + i * wires + o, to.wires[1] + i * wires + o},
                               {to.t[0] + t, to.t[1] + t}});
      }
    }
    W::FinishStores();
  }
};

}  // namespace mpckdc

#undef MPCKDC_BIT_INLINE

#endif  // MPC_SERVER_CIRCUIT_HASH_BIT_TEMPLATE_H_
