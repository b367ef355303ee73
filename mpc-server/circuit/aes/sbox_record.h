// SPDX-License-Identifier: Apache-2.0
// What the stages of an S-box layer write into the log of what is to be proved (share/proof_log.h),
// over a word type W and the length of the log's rows, 8 or 64. Rows elsewhere are 64 bytes apart.
//
// A stage is recorded right after its kernel, and with it what has arrived for the stage before:
//
//     stage      wires from                 bits of t, by node i
//     norm       state: x                   N:   tL = l(x's a) + F(next), tR = F(own)
//     helper     sent, received: N          N:   tR += received                  q:  as N, no l
//     inverse    sent, received: q          q:   tR += received                  M:  as N
//     product    sent, received: M          M:   tR += received                  as below
//     end                                   the product's
//
// and the other S-box's likewise. The last stage's bits are sent behind a linear layer L, so the
// log gets L^-1: tL = L^-1(F(next)), tR = L^-1(received + F(own)). Until `received` is there tR
// holds F(own) as it is, a byte of the message in the node that it leads back to.
#ifndef MPC_SERVER_CIRCUIT_AES_SBOX_RECORD_H_
#define MPC_SERVER_CIRCUIT_AES_SBOX_RECORD_H_

#include "mpc-server/circuit/aes/aes_kernels.h"
#include "mpc-server/circuit/aes/byte_rows.h"
#include "mpc-server/circuit/aes/mix_columns.h"
#include "mpc-server/share/gadgets.h"

namespace mpckdc {

// Where a gadget's stages have their wires and their bits.
struct ThroughputRows {
  static constexpr Gadget kGadget = Gadget::kSbox17;
  static constexpr size_t kSecondBits = 1, kProductBit = 9;
};
struct LatencyRows {
  static constexpr Gadget kGadget = Gadget::kSbox22;
  static constexpr size_t kSecondBits = 10, kProductBit = 14;
};

template <class W, size_t kLogRow, class Places>
struct SboxRecord {
  using T = typename W::T;
  using Tower = TowerBits<W>;
  static constexpr size_t kRow = 64;

  // --- of both -----------------------------------------------------------------------------------
  static void Norm(const SboxRows& to, const uint8_t* state, const ZeroRows& zero) {
    const size_t plane = 8 * to.bytes * kRow;
    ForEach(to, [&](size_t i, size_t o, const Node& node) MPCKDC_LAMBDA_INLINE {
      if (o == 0) {
        node.template AskFor<4>(node.t_right + 2 * kBitStride);
        node.template AskFor<4>(node.own + kNorm * kLogRow);
        node.template AskFor<Places::kSecondBits>(node.t_right + 4 * kLogRow);
      }
      T a[8], l[4];
      for (size_t k = 0; k < 8; ++k) {
        const uint8_t* x = state + (8 * i + k) * kRow + o;
        a[k] = W::Load(x + plane);
        node.PutWire(k, a[k], W::Xor(W::Load(x), a[k]));
      }
      for (size_t k = 0; k < 4; ++k) l[k] = W::Load(zero.next + (4 * i + k) * kRow + o);
      Tower::AddSquares(a, l);
      for (size_t k = 0; k < 4; ++k) {
        node.PutBit(k, l[k], W::Load(zero.own + (4 * i + k) * kRow + o));
      }
    });
  }
  static void End(const SboxRows& to, AesLinear linear, const uint8_t* received) {
    Undo(
        to, linear, received,
        [](const Node& node, size_t k, T r)
            MPCKDC_LAMBDA_INLINE { return W::Xor(node.RightBit(kProduct + k), r); },
        [](const Node& node, size_t k, T v)
            MPCKDC_LAMBDA_INLINE { node.PutRightBit(kProduct + k, v); });
  }

  // --- the throughput S-box ----------------------------------------------------------------------
  static void Helper(const SboxRows& to, const SentRows& in, const ZeroRows& zero) {
    ForEach(to, [&](size_t i, size_t o, const Node& node) MPCKDC_LAMBDA_INLINE {
      if (o == 0) node.template AskFor<4>(node.t_right + 5 * kLogRow);
      node.template TakeOpened<4>(in, i, o, kNorm, 0);
      node.PutBit(4, W::Load(zero.next + i * kRow + o), W::Load(zero.own + i * kRow + o));
    });
  }
  // l of M: (n0+n1+n2+n3, n3, n2+n3, n1+n2+n3), see sbox.h.
  static void Inverse(const SboxRows& to, const SentRows& in, const ZeroRows& zero) {
    ForEach(to, [&](size_t i, size_t o, const Node& node) MPCKDC_LAMBDA_INLINE {
      if (o == 0) node.template AskFor<8>(node.t_right + kProduct * kLogRow);
      node.template TakeOpened<1>(in, i, o, 12, 4);
      const T n0 = node.Norm(0), n1 = node.Norm(1), n2 = node.Norm(2), n3 = node.Norm(3);
      const T n23 = W::Xor(n2, n3), n123 = W::Xor(n1, n23);
      const T l[4] = {W::Xor(n0, n123), n3, n23, n123};
      for (size_t k = 0; k < 4; ++k) {
        const size_t at = (4 * i + k) * kRow + o;
        node.PutBit(5 + k, W::Xor(l[k], W::Load(zero.next + at)), W::Load(zero.own + at));
      }
    });
  }
  static void Product(const SboxRows& to, AesLinear linear, const SentRows& in,
                      const ZeroRows& zero) {
    ForEach(to, [&](size_t i, size_t o, const Node& node)
                    MPCKDC_LAMBDA_INLINE { node.template TakeOpened<4>(in, i, o, 13, 5); });
    BeginProduct(to, linear, zero);
  }

  // --- the latency S-box -------------------------------------------------------------------------
  // l of u: (n0+n1+n3, n1+n2).
  static void Twist(const SboxRows& to, const SentRows& in, const ZeroRows& zero) {
    ForEach(to, [&](size_t i, size_t o, const Node& node) MPCKDC_LAMBDA_INLINE {
      if (o == 0) node.template AskFor<8>(node.t_right + kProduct * kLogRow);
      node.template TakeOpened<4>(in, i, o, kNorm, 0);
      const T n1 = node.Norm(1);
      const T l[2] = {W::Xor3(node.Norm(0), n1, node.Norm(3)), W::Xor(n1, node.Norm(2))};
      for (size_t k = 0; k < 10; ++k) {
        const size_t at = (10 * i + k) * kRow + o;
        const T next = W::Load(zero.next + at);
        node.PutBit(4 + k, k < 2 ? W::Xor(next, l[k]) : next, W::Load(zero.own + at));
      }
    });
  }
  static void Scale(const SboxRows& to, AesLinear linear, const SentRows& in,
                    const ZeroRows& zero) {
    ForEach(to, [&](size_t i, size_t o, const Node& node)
                    MPCKDC_LAMBDA_INLINE { node.template TakeOpened<10>(in, i, o, 12, 4); });
    BeginProduct(to, linear, zero);
  }

 private:
  static constexpr size_t kNorm = 8;  // N's wires
  static constexpr size_t kProduct = Places::kProductBit;
  static constexpr size_t kWireStride = GadgetWires(Places::kGadget) * kLogRow;
  static constexpr size_t kBitStride = GadgetBits(Places::kGadget) * kLogRow;

  // One S-box's rows in the log, at one word.
  struct Node {
    uint8_t *own, *left, *t_left, *t_right;

    Node(const SboxRows& to, size_t i, size_t o)
        : own(to.wires[0] + i * kWireStride + o),
          left(to.wires[1] + i * kWireStride + o),
          t_left(to.t[0] + i * kBitStride + o),
          t_right(to.t[1] + i * kBitStride + o) {}

    // Rows that a later stage will add to or read: the log is more than a cache holds, and they
    // come while this stage is computed.
    template <size_t kRows>
    MPCKDC_INLINE void AskFor(const uint8_t* rows) const {
      constexpr int kWrite = 1, kSecondLevel = 2;
#pragma GCC unroll 10
      for (size_t k = 0; kLogRow == 64 && k < kRows; ++k) {
        __builtin_prefetch(rows + k * kLogRow, kWrite, kSecondLevel);
      }
    }
    T Norm(size_t k) const { return W::Load(own + (kNorm + k) * kLogRow); }
    void PutWire(size_t k, T a, T b) const {
      W::StoreForLater(own + k * kLogRow, a);
      W::StoreForLater(left + k * kLogRow, b);
    }
    void PutNorm(size_t k, T a, T b) const {  // the inverse's l reads a again
      W::Store(own + (kNorm + k) * kLogRow, a);
      W::StoreForLater(left + (kNorm + k) * kLogRow, b);
    }
    T RightBit(size_t k) const { return W::Load(t_right + k * kLogRow); }
    void PutLeftBit(size_t k, T v) const { W::StoreForLater(t_left + k * kLogRow, v); }
    void PutRightBit(size_t k, T v) const { W::Store(t_right + k * kLogRow, v); }
    void PutBit(size_t k, T l, T r) const {
      PutLeftBit(k, l);
      PutRightBit(k, r);
    }
    // What the last stage opened of byte i: wires from `wire` on, bits from `bit` on.
    template <size_t kCount>
    MPCKDC_INLINE void TakeOpened(const SentRows& in, size_t i, size_t o, size_t wire,
                                  size_t bit) const {
#pragma GCC unroll 10
      for (size_t k = 0; k < kCount; ++k) {
        const size_t at = (kCount * i + k) * kRow + o;
        const T received = W::Load(in.received + at);
        const T sent = W::Load(in.sent + at);
        wire == kNorm ? PutNorm(k, sent, received) : PutWire(wire + k, sent, received);
        PutRightBit(bit + k, W::Xor(RightBit(bit + k), received));
      }
    }
  };

  template <class F>
  MPCKDC_INLINE static void ForEach(const SboxRows& to, F f) {
    for (size_t i = 0; i < to.bytes; ++i) {
      for (size_t o = 0; o < kLogRow; o += W::kBytes) f(i, o, Node(to, i, o));
    }
    W::FinishStores();
  }

  // tL complete, tR as far as it is known.
  MPCKDC_INLINE static void BeginProduct(const SboxRows& to, AesLinear linear,
                                         const ZeroRows& zero) {
    Undo(
        to, linear, zero.next,
        [](const Node&, size_t, T next) MPCKDC_LAMBDA_INLINE { return next; },
        [](const Node& node, size_t k, T v)
            MPCKDC_LAMBDA_INLINE { node.PutLeftBit(kProduct + k, v); });
    const size_t columns = Columns(linear);
    for (size_t c = 0; c < columns; ++c) {
      for (size_t r = 0; r < 4; ++r) {
        for (size_t o = 0; o < kLogRow; o += W::kBytes) {
          const Node node(to, NodeOf(linear, c, r), o);
          for (size_t k = 0; k < 8; ++k) {
            node.PutRightBit(kProduct + k, W::Load(zero.own + (32 * c + 8 * r + k) * kRow + o));
          }
        }
      }
    }
  }

  static size_t Columns(AesLinear linear) { return linear == AesLinear::kWord ? 1 : 4; }
  // The S-box that byte r of column c of the message comes from: ShiftRows backwards, or
  // InvShiftRows.
  static size_t NodeOf(AesLinear linear, size_t c, size_t r) {
    if (linear == AesLinear::kWord) return r;
    return 4 * ((linear == AesLinear::kInvShiftRows ? c + 4 - r : c + r) % 4) + r;
  }

  // Takes the message's rows back to the tower basis, column by column: get(node, k, row) gives
  // what to take back of bit k, put(node, k, v) gets it.
  template <class Get, class Put>
  MPCKDC_INLINE static void Undo(const SboxRows& to, AesLinear linear, const uint8_t* rows, Get get,
                                 Put put) {
    if (linear == AesLinear::kInvShiftRows) {
      UndoBy<typename Tower::ToTowerMap>(to, linear, rows, get, put);
    } else {
      UndoBy<typename Tower::SboxToTowerMap>(to, linear, rows, get, put);
    }
  }
  template <class Map, class Get, class Put>
  MPCKDC_INLINE static void UndoBy(const SboxRows& to, AesLinear linear, const uint8_t* rows,
                                   Get get, Put put) {
    const size_t columns = Columns(linear);
    for (size_t c = 0; c < columns; ++c) {
      for (size_t o = 0; o < kLogRow; o += W::kBytes) {
        T y[4][8];
        for (size_t r = 0; r < 4; ++r) {
          const Node node(to, NodeOf(linear, c, r), o);
          for (size_t k = 0; k < 8; ++k) {
            y[r][k] = get(node, k, W::Load(rows + (32 * c + 8 * r + k) * kRow + o));
          }
        }
        if (linear == AesLinear::kMixColumns) MixColumns<W>::Unmix(y);
        for (size_t r = 0; r < 4; ++r) {
          const Node node(to, NodeOf(linear, c, r), o);
          T tower[8];
          Tower::template Apply<Map>(y[r], tower);
          for (size_t k = 0; k < 8; ++k) put(node, k, tower[k]);
        }
      }
    }
    W::FinishStores();
  }
};

// As one table of functions.
template <class W, size_t kLogRow>
constexpr SboxRecordKernels MakeSboxRecordKernels() {
  using A = SboxRecord<W, kLogRow, ThroughputRows>;
  using B = SboxRecord<W, kLogRow, LatencyRows>;
  return {{A::Norm, B::Norm}, A::Helper, A::Inverse,      A::Product,
          B::Twist,           B::Scale,  {A::End, B::End}};
}

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_SBOX_RECORD_H_
