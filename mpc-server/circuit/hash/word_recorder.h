// SPDX-License-Identifier: Apache-2.0
// Words of recorded bits: the operations that hash_template.h asks for, and addition.
//
//   kRipple   c[i+1] = maj(a[i], b[i], c[i]): one bit and one round for each position
//   prefix    G(i..j): a carry arises in positions i to j and leaves j; P(i..j): one would pass
//             P(i..j) = P(k..j) P(i..k-1),  G(i..j) = G(k..j) + P(k..j) G(i..k-1)
//
// Blocks of 1, 2, 4, 8, 16 positions follow each other, and each halves again. The carry out of
// position j of the block from k is one opened sum, here for a block of 8 and its sixth position:
//
//                       k                                   j
//      ... carry in --> | 0   1   2   3  |  4   5  |  6  |
//                         G(0..3)           G(4..5)   g(6)     known, or a product: g = ab
//      c = g(6) + P(6..6) G(4..5) + P(4..6) G(0..3) + P(0..6) c_in
//
// Since sums of products are opened as one bit, a block of 2^r takes one round more than one of
// 2^(r-1): five rounds for 32-bit words, six for 64-bit words.
//
// Carry-save: three words become two of the same sum, for a bit in each position and one round.
#ifndef MPC_SERVER_CIRCUIT_HASH_WORD_RECORDER_H_
#define MPC_SERVER_CIRCUIT_HASH_WORD_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/circuit/hash/adder.h"
#include "mpc-server/circuit/hash/bit_recorder.h"

namespace mpckdc {

template <size_t N>
class WordRecorder {
 public:
  static constexpr size_t kBits = N;
  struct Word {
    Bit bits[N];  // the lowest first
  };

  WordRecorder(BitRecorder& bits, Adder adder) : bits_(bits), adder_(adder) {}

  // Where sums are cheap in rounds only one by one, one sum is made for both.
  bool share_sum() const { return adder_ == Adder::kRipple; }

  Word Constant(uint64_t v) const;
  Word Not(const Word& a) const;
  Word Xor(const Word& a, const Word& b) { return Xor(a, b, Word{}); }
  Word Xor(const Word& a, const Word& b, const Word& c);
  Word RotateRight(const Word& a, int n) const;
  Word ShiftRight(const Word& a, int n) const;
  Word Choose(const Word& x, const Word& y, const Word& z);
  Word Majority(const Word& x, const Word& y, const Word& z);
  Word Sum(absl::Span<const Word> words);

 private:
  using Words = std::vector<Word>;  // by level, the earliest first
  class PrefixAdder;

  uint32_t Level(const Word& a) const;
  void Insert(Words& words, const Word& w) const;
  Word RippleSum(Words words);
  Word PrefixSum(Words words, bool carry);
  Word FastestSum(const Words& words, bool carry);
  void CarrySave(Words& words, bool* carry);
  void AddFirstTwo(Words& words);
  Word RippleAdd(const Word& a, const Word& b);
  Word PrefixAdd(const Word& a, const Word& b);

  BitRecorder& bits_;
  const Adder adder_;
};

extern template class WordRecorder<32>;
extern template class WordRecorder<64>;

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_HASH_WORD_RECORDER_H_
