// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/aes_rounds.h"

#include <array>
#include <vector>

#include "mpc-server/circuit/aes/mix_columns.h"

namespace mpckdc::garble {
namespace {

// A word type (circuit/bitslice/word_*.h) that notes what is done.
struct Recorded {
  struct T {
    BitRecorder* by = nullptr;  // none: a constant
    Bit bit = kZeroBit;
  };
  static T Zero() { return {}; }
  static T Xor(T a, T b) { return Xor3(a, b, Zero()); }
  static T Xor3(T a, T b, T c) {
    BitRecorder* by = a.by != nullptr ? a.by : b.by != nullptr ? b.by : c.by;
    if (by == nullptr) return {nullptr, {a.bit.id ^ b.bit.id ^ c.bit.id}};
    return {by, by->Xor(a.bit, b.bit, c.bit)};
  }
  static T And(T a, T b) { return {a.by, a.by->And(a.bit, b.bit)}; }
  static T Not(T a) { return {a.by, a.by->Not(a.bit)}; }
};
using T = Recorded::T;
using Tower = TowerBits<Recorded>;

// The three coefficients of a product of two polynomials with two.
void Two(const T* u, const T* v, T* out) {
  out[0] = Recorded::And(u[0], v[0]);
  out[2] = Recorded::And(u[1], v[1]);
  const T both = Recorded::And(Recorded::Xor(u[0], u[1]), Recorded::Xor(v[0], v[1]));
  out[1] = Recorded::Xor3(both, out[0], out[2]);
}

// In GF(16), basis 1, w, w^2, w^3.
void Multiply(const T* u, const T* v, T* out) {
  T low[3], high[3], both[3], e[7];
  const T u_sum[2] = {Recorded::Xor(u[0], u[2]), Recorded::Xor(u[1], u[3])};
  const T v_sum[2] = {Recorded::Xor(v[0], v[2]), Recorded::Xor(v[1], v[3])};
  Two(u, v, low);
  Two(u + 2, v + 2, high);
  Two(u_sum, v_sum, both);
  for (int k = 0; k < 3; ++k) {
    e[k] = Recorded::Xor(e[k], low[k]);
    e[k + 4] = Recorded::Xor(e[k + 4], high[k]);
    e[k + 2] = Recorded::Xor(e[k + 2], Recorded::Xor3(both[k], low[k], high[k]));
  }
  Tower::Reduce(e);
  for (int k = 0; k < 4; ++k) out[k] = e[k];
}

// Boyar and Peralta's straight-line program with their names, x and y in another basis of GF(16)
// than n and out: x = B n, out = A y, found by trying all B.
void Invert(const T* n, T* out) {
  const T x1 = Recorded::Xor(n[0], n[3]), x2 = Recorded::Xor(n[1], n[3]), x3 = n[3],
          x4 = Recorded::Xor(n[1], n[2]);
  const T t1 = Recorded::Xor(x1, x2), t2 = Recorded::And(x1, x3), t3 = Recorded::Xor(x4, t2);
  const T y4 = Recorded::Xor(x2, Recorded::And(t1, t3));
  const T t5 = Recorded::Xor(x3, x4), t6 = Recorded::Xor(x2, t2);
  const T y2 = Recorded::Xor(x4, Recorded::And(t6, t5));
  const T t8 = Recorded::Xor(x3, y2), t9 = Recorded::Xor(t3, y2);
  const T t10 = Recorded::And(x4, t9), y1 = Recorded::Xor(t10, t8);
  const T t11 = Recorded::Xor(t3, t10), y3 = Recorded::Xor(Recorded::And(y4, t11), t1);
  out[0] = Recorded::Xor(y2, y3);
  out[1] = y4;
  out[2] = Recorded::Xor(y2, y4);
  out[3] = y1;
}

// x^-1 in the tower basis.
void InvertByte(const T* x, T* out) {
  const T *a = x, *b = x + 4;
  T n[4], m[4], sum[4];
  Multiply(a, b, n);
  Tower::AddSquares(x, n);
  Invert(n, m);
  for (int k = 0; k < 4; ++k) sum[k] = Recorded::Xor(a[k], b[k]);
  Multiply(sum, m, out);
  Multiply(b, m, out + 4);
}

void AddConstant(int constant, T* byte) {
  for (int k = 0; k < 8; ++k) {
    if ((constant >> k & 1) != 0) byte[k] = Recorded::Not(byte[k]);
  }
}

using Bytes = std::array<std::array<T, 8>, 16>;

void Substitute(Bytes& state) {
  for (auto& byte : state) {
    T in[8], out[8];
    Tower::Apply<Tower::ToTowerMap>(byte.data(), in);
    InvertByte(in, out);
    Tower::Apply<Tower::TowerToSboxMap>(out, byte.data());
    AddConstant(tower::kSboxConstant, byte.data());
  }
}
void SubstituteBack(Bytes& state) {
  for (auto& byte : state) {
    T in[8], out[8];
    AddConstant(tower::kSboxConstant, byte.data());
    Tower::Apply<Tower::SboxToTowerMap>(byte.data(), in);
    InvertByte(in, out);
    Tower::Apply<Tower::FromTowerMap>(out, byte.data());
  }
}

// Row r of column c comes from column c + r, or goes there.
void ShiftRows(bool back, Bytes& state) {
  const Bytes from = state;
  for (size_t c = 0; c < 4; ++c) {
    for (size_t r = 0; r < 4; ++r) {
      const size_t here = 4 * c + r, there = 4 * ((c + r) % 4) + r;
      state[back ? there : here] = from[back ? here : there];
    }
  }
}

void Mix(bool back, Bytes& state) {
  for (size_t c = 0; c < 4; ++c) {
    T y[4][8];
    for (size_t r = 0; r < 4; ++r) std::copy_n(state[4 * c + r].data(), 8, y[r]);
    if (back) {
      MixColumns<Recorded>::Unmix(y);
      for (size_t r = 0; r < 4; ++r) std::copy_n(y[r], 8, state[4 * c + r].data());
    } else {
      MixColumns<Recorded>::Mix(y, [&](int r, const T* out) {
        std::copy_n(out, 8, state[4 * c + static_cast<size_t>(r)].data());
      });
    }
  }
}

BitProgram Record(AesRound round) {
  BitRecorder bits;
  const auto input = [&](size_t first) {
    Bytes block;
    for (size_t i = 0; i < 128; ++i) block[i / 8][i % 8] = {&bits, bits.Input(first + i)};
    return block;
  };
  Bytes state = input(0), key = input(128);
  const auto add_key = [&] {
    for (size_t i = 0; i < 128; ++i) {
      state[i / 8][i % 8] = Recorded::Xor(state[i / 8][i % 8], key[i / 8][i % 8]);
    }
  };
  const bool back = round == AesRound::kDecrypt || round == AesRound::kDecryptLast;
  if (back) {
    ShiftRows(true, state);
    SubstituteBack(state);
    add_key();
    if (round == AesRound::kDecrypt) Mix(true, state);
  } else {
    Substitute(state);
    ShiftRows(false, state);
    if (round == AesRound::kEncrypt) Mix(false, state);
    add_key();
  }
  std::vector<Bit> outputs;
  for (const auto& byte : state) {
    for (const T& t : byte) outputs.push_back(t.bit);
  }
  return bits.Finish(outputs);
}

}  // namespace

const BitProgram& AesRoundProgram(AesRound round) {
  static const std::array<BitProgram, kAesRoundKinds> all = [] {
    std::array<BitProgram, kAesRoundKinds> made;
    for (size_t i = 0; i < kAesRoundKinds; ++i) made[i] = Record(static_cast<AesRound>(i));
    return made;
  }();
  return all[static_cast<size_t>(round)];
}

}  // namespace mpckdc::garble
