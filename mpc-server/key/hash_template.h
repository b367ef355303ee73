// SPDX-License-Identifier: Apache-2.0
//
// The compression functions of SHA-1, SHA-256 and SHA-512 (FIPS 180-4, section 6), once, over the
// operations on words that Ops has: machine words (hash_plain.cc) or words of recorded bits
// (circuit/hash/word_recorder.h). Nothing here branches on a value.
//
//   Ops::Word, Ops::kBits                  a word and its length: 32 or 64
//   Word Sum(absl::Span<const Word>)       modulo 2^kBits
//   Word Xor(a, b), Xor(a, b, c), Not(a), Constant(v), RotateRight(a, n)
//   Word ShiftRight(a, n), Choose(x, y, z), Majority(x, y, z)
//   bool share_sum()                       how SHA-2 makes its two sums (Sha2Step)
//
// The message comes as a schedule: kw(t) is K_t + W_t as a list of one or two summands, since of
// public words the sum is computed outside.
#ifndef MPC_SERVER_KEY_HASH_TEMPLATE_H_
#define MPC_SERVER_KEY_HASH_TEMPLATE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "mpc-server/key/hash_kind.h"

namespace mpckdc {

inline constexpr size_t HashSteps(HashKind hash) { return hash == HashKind::kSha256 ? 64 : 80; }
inline constexpr size_t HashWordBits(HashKind hash) { return hash == HashKind::kSha384 ? 64 : 32; }
inline constexpr size_t HashStateWords(HashKind hash) { return hash == HashKind::kSha1 ? 5 : 8; }

inline constexpr uint32_t kSha1Constants[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};

// SHA-512's; those of SHA-256 are the upper halves of the first 64: both are the first bits of the
// fractional parts of the cube roots of the first primes.
inline constexpr uint64_t kSha512Constants[80] = {
    0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc,
    0x3956c25bf348b538, 0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118,
    0xd807aa98a3030242, 0x12835b0145706fbe, 0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2,
    0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235, 0xc19bf174cf692694,
    0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
    0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5,
    0x983e5152ee66dfab, 0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4,
    0xc6e00bf33da88fc2, 0xd5a79147930aa725, 0x06ca6351e003826f, 0x142929670a0e6e70,
    0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed, 0x53380d139d95b3df,
    0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
    0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30,
    0xd192e819d6ef5218, 0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8,
    0x19a4c116b8d2d0c8, 0x1e376c085141ab53, 0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8,
    0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373, 0x682e6ff3d6b2b8a3,
    0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
    0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b,
    0xca273eceea26619c, 0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178,
    0x06f067aa72176fba, 0x0a637dc5a2c898a6, 0x113f9804bef90dae, 0x1b710b35131c471b,
    0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc, 0x431d67c49c100d4c,
    0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
};

inline constexpr uint64_t HashConstant(HashKind hash, size_t t) {
  if (hash == HashKind::kSha1) return kSha1Constants[t / 20];
  return hash == HashKind::kSha256 ? kSha512Constants[t] >> 32 : kSha512Constants[t];
}

// The rotations of SHA-2 (FIPS 180-4, 4.1.2 and 4.1.3). The last of the small sigmas is a shift.
struct Sha2Rotations {
  int big0[3], big1[3], small0[3], small1[3];
};
inline constexpr Sha2Rotations kSha256Rotations = {
    {2, 13, 22}, {6, 11, 25}, {7, 18, 3}, {17, 19, 10}};
inline constexpr Sha2Rotations kSha512Rotations = {
    {28, 34, 39}, {14, 18, 41}, {1, 8, 7}, {19, 61, 6}};

template <class Ops>
class HashTemplate {
 public:
  using Word = typename Ops::Word;
  using Words = absl::InlinedVector<Word, 6>;

  HashTemplate(HashKind hash, Ops& ops) : hash_(hash), ops_(ops) {}

  // W_16 and on from the block's 16 words, which stand at the beginning of `words`.
  void Expand(absl::Span<Word> words) {
    for (size_t t = 16; t < words.size(); ++t) {
      words[t] = hash_ == HashKind::kSha1 ? Sha1Expand(words, t) : Sha2Expand(words, t);
    }
  }

  // One compression: the state's words are replaced by the new ones. `v` is room for as many.
  // `kw(t)` gives the summands of K_t + W_t, and is called once for each t in order.
  template <class Kw>
  void Compress(absl::Span<Word> state, absl::Span<Word> v, Kw kw) {
    std::copy(state.begin(), state.end(), v.begin());
    for (size_t t = 0; t < HashSteps(hash_); ++t) {
      if (hash_ == HashKind::kSha1) {
        Sha1Step(v, t, kw(t));
      } else {
        Sha2Step(v, kw(t));
      }
    }
    for (size_t i = 0; i < v.size(); ++i) state[i] = Sum({state[i], v[i]});
  }

 private:
  Word Sum(const Words& words) { return ops_.Sum(absl::MakeConstSpan(words)); }
  Word Sum(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return Sum(words);
  }
  // Every word moves on by one.
  static void Shift(absl::Span<Word> v, const Word& first) {
    for (size_t i = v.size() - 1; i > 0; --i) v[i] = v[i - 1];
    v[0] = first;
  }
  Word RotateLeft(const Word& w, int n) {
    return ops_.RotateRight(w, static_cast<int>(Ops::kBits) - n);
  }
  Word Sigma(const Word& w, const int (&n)[3], bool shift) {
    return ops_.Xor(ops_.RotateRight(w, n[0]), ops_.RotateRight(w, n[1]),
                    shift ? ops_.ShiftRight(w, n[2]) : ops_.RotateRight(w, n[2]));
  }
  const Sha2Rotations& Rotations() const {
    return hash_ == HashKind::kSha256 ? kSha256Rotations : kSha512Rotations;
  }

  Word Sha1Expand(absl::Span<const Word> w, size_t t) {
    return RotateLeft(ops_.Xor(ops_.Xor(w[t - 3], w[t - 8], w[t - 14]), w[t - 16]), 1);
  }
  Word Sha2Expand(absl::Span<const Word> w, size_t t) {
    return Sum({Sigma(w[t - 2], Rotations().small1, true), w[t - 7],
                Sigma(w[t - 15], Rotations().small0, true), w[t - 16]});
  }

  // v is a..e.
  void Sha1Step(absl::Span<Word> v, size_t t, const Words& kw) {
    const Word f = t < 20 ? ops_.Choose(v[1], v[2], v[3])
                   : t >= 40 && t < 60 ? ops_.Majority(v[1], v[2], v[3])
                                       : ops_.Xor(v[1], v[2], v[3]);
    Word a = Sum({RotateLeft(v[0], 5), f, v[4]}, kw);
    Shift(v, a);
    v[2] = RotateLeft(v[2], 30);
  }

  // v is a..h. With T1 = h + S1(e) + Ch(e, f, g) + K + W the new e is d + T1 and the new a is
  // T1 + S0(a) + Maj(a, b, c). One T1 for both is the fewest additions. Without it, e takes all its
  // summands at once, which saves rounds where many are added as one, and a is made from the new e:
  // T1 = e - d = e + ~d + 1.
  void Sha2Step(absl::Span<Word> v, const Words& kw) {
    const Word s1 = Sigma(v[4], Rotations().big1, false), ch = ops_.Choose(v[4], v[5], v[6]);
    const Word s0 = Sigma(v[0], Rotations().big0, false), maj = ops_.Majority(v[0], v[1], v[2]);
    Word a, e;
    if (ops_.share_sum()) {
      const Word t1 = Sum({v[7], s1, ch}, kw);
      e = Sum({v[3], t1});
      a = Sum({t1, s0, maj});
    } else {
      e = Sum({v[3], v[7], s1, ch}, kw);
      a = Sum({e, ops_.Not(v[3]), s0, maj, ops_.Constant(1)});
    }
    Shift(v, a);
    v[4] = e;
  }

  const HashKind hash_;
  Ops& ops_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_KEY_HASH_TEMPLATE_H_
