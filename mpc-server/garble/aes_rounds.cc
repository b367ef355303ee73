// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/aes_rounds.h"

#include <algorithm>
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

BitProgram RecordSbox(bool encrypt) {
  BitRecorder bits;
  T byte[8], in[8], out[8];
  for (size_t k = 0; k < 8; ++k) byte[k] = {&bits, bits.Input(k)};
  if (encrypt) {
    Tower::Apply<Tower::ToTowerMap>(byte, in);
    InvertByte(in, out);
    Tower::Apply<Tower::TowerToSboxMap>(out, byte);
    AddConstant(tower::kSboxConstant, byte);
  } else {
    AddConstant(tower::kSboxConstant, byte);
    Tower::Apply<Tower::SboxToTowerMap>(byte, in);
    InvertByte(in, out);
    Tower::Apply<Tower::FromTowerMap>(out, byte);
  }
  std::vector<Bit> outputs;
  for (const T& t : byte) outputs.push_back(t.bit);
  return bits.Finish(outputs);
}

// Of one column: bit k of row r is row 4 * k + r.
BitProgram RecordMix(bool encrypt) {
  BitRecorder bits;
  T state[4][8], out[4][8];
  const auto input = [&](size_t k, size_t r) { return T{&bits, bits.Input(4 * k + r)}; };
  const auto key = [&](size_t k, size_t r) { return T{&bits, bits.Input(32 + 4 * k + r)}; };
  for (size_t r = 0; r < 4; ++r) {
    for (size_t k = 0; k < 8; ++k) {
      state[r][k] = encrypt ? input(k, r) : Recorded::Xor(input(k, r), key(k, r));
    }
  }
  if (encrypt) {
    MixColumns<Recorded>::Mix(state, [&](int r, const T* row) { std::copy_n(row, 8, out[r]); });
  } else {
    MixColumns<Recorded>::Unmix(state);
  }
  std::vector<Bit> outputs;
  for (size_t k = 0; k < 8; ++k) {
    for (size_t r = 0; r < 4; ++r) {
      outputs.push_back(encrypt ? Recorded::Xor(out[r][k], key(k, r)).bit : state[r][k].bit);
    }
  }
  return bits.Finish(outputs);
}

// What `from` says of bit k of row r of column c.
template <class From>
constexpr RowOrder MakeOrder(From from) {
  RowOrder order{};
  for (size_t k = 0; k < 8; ++k) {
    for (size_t r = 0; r < 4; ++r) {
      for (size_t c = 0; c < 4; ++c) from(order, k, r, c);
    }
  }
  return order;
}
constexpr uint16_t Plane(size_t k, size_t r, size_t c) {
  return static_cast<uint16_t>(16 * k + 4 * r + c % 4);
}
constexpr uint16_t BitOfByte(size_t k, size_t r, size_t c) {
  return static_cast<uint16_t>(8 * (4 * c + r) + k);
}

}  // namespace

const Tape& SboxTape(bool encrypt) {
  static const Tape tapes[] = {Tape(RecordSbox(false)), Tape(RecordSbox(true))};
  return tapes[encrypt];
}
const Tape& MixTape(bool encrypt) {
  static const Tape tapes[] = {Tape(RecordMix(false)), Tape(RecordMix(true))};
  return tapes[encrypt];
}

constinit const RowOrder kPlanesOfBytes = MakeOrder(
    [](RowOrder& o, size_t k, size_t r, size_t c) { o[Plane(k, r, c)] = BitOfByte(k, r, c); });
constinit const RowOrder kBytesOfPlanes = MakeOrder(
    [](RowOrder& o, size_t k, size_t r, size_t c) { o[BitOfByte(k, r, c)] = Plane(k, r, c); });
// Row r of column c comes from column c + r.
constinit const RowOrder kShiftRows = MakeOrder(
    [](RowOrder& o, size_t k, size_t r, size_t c) { o[Plane(k, r, c)] = Plane(k, r, c + r); });
constinit const RowOrder kShiftRowsBack = MakeOrder(
    [](RowOrder& o, size_t k, size_t r, size_t c) { o[Plane(k, r, c + r)] = Plane(k, r, c); });

}  // namespace mpckdc::garble
