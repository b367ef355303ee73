// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/hash/word_recorder.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

namespace mpckdc {

template <size_t N>
auto WordRecorder<N>::Constant(uint64_t v) const -> Word {
  Word w;
  for (size_t i = 0; i < N; ++i) w.bits[i] = {static_cast<uint32_t>(v >> i & 1)};
  return w;
}
template <size_t N>
auto WordRecorder<N>::Not(const Word& a) const -> Word {
  Word w;
  for (size_t i = 0; i < N; ++i) w.bits[i] = bits_.Not(a.bits[i]);
  return w;
}
template <size_t N>
auto WordRecorder<N>::Xor(const Word& a, const Word& b, const Word& c) -> Word {
  Word w;
  for (size_t i = 0; i < N; ++i) w.bits[i] = bits_.Xor(a.bits[i], b.bits[i], c.bits[i]);
  return w;
}
template <size_t N>
auto WordRecorder<N>::RotateRight(const Word& a, int n) const -> Word {
  Word w;
  for (size_t i = 0; i < N; ++i) w.bits[i] = a.bits[(i + static_cast<size_t>(n)) % N];
  return w;
}
template <size_t N>
auto WordRecorder<N>::ShiftRight(const Word& a, int n) const -> Word {
  Word w;
  for (size_t i = static_cast<size_t>(n); i < N; ++i) {
    w.bits[i - static_cast<size_t>(n)] = a.bits[i];
  }
  return w;
}
template <size_t N>
auto WordRecorder<N>::Choose(const Word& x, const Word& y, const Word& z) -> Word {
  Word w;
  for (size_t i = 0; i < N; ++i) w.bits[i] = bits_.Choose(x.bits[i], y.bits[i], z.bits[i]);
  return w;
}
template <size_t N>
auto WordRecorder<N>::Majority(const Word& x, const Word& y, const Word& z) -> Word {
  Word w;
  for (size_t i = 0; i < N; ++i) w.bits[i] = bits_.Majority(x.bits[i], y.bits[i], z.bits[i]);
  return w;
}

template <size_t N>
uint32_t WordRecorder<N>::Level(const Word& a) const {
  uint32_t level = 0;
  for (Bit b : a.bits) level = std::max(level, bits_.level(b));
  return level;
}
template <size_t N>
void WordRecorder<N>::Insert(Words& words, const Word& w) const {
  const uint32_t level = Level(w);
  auto at = words.begin();
  while (at != words.end() && Level(*at) <= level) ++at;
  words.insert(at, w);
}

// Constants become one word, or a carry into the lowest position when they are 1.
template <size_t N>
auto WordRecorder<N>::Sum(absl::Span<const Word> all) -> Word {
  uint64_t constant = 0;
  Words words;
  for (const Word& w : all) {
    uint64_t value = 0;
    bool constants_only = true;
    for (size_t i = 0; i < N; ++i) {
      constants_only = constants_only && w.bits[i].id < 2;
      value |= uint64_t{w.bits[i].id & 1} << i;
    }
    if (constants_only) {
      constant += value;
    } else {
      Insert(words, w);
    }
  }
  const bool carry = constant == 1 && words.size() > 2 && adder_ != Adder::kRipple;
  if (constant != 0 && !carry) Insert(words, Constant(constant));
  if (adder_ == Adder::kRipple) return RippleSum(std::move(words));
  if (adder_ == Adder::kPrefix) return PrefixSum(std::move(words), carry);
  return FastestSum(words, carry);
}

template <size_t N>
auto WordRecorder<N>::RippleSum(Words words) -> Word {
  Word sum = words[0];
  for (size_t i = 1; i < words.size(); ++i) sum = RippleAdd(sum, words[i]);
  return sum;
}

template <size_t N>
auto WordRecorder<N>::PrefixSum(Words words, bool carry) -> Word {
  while (words.size() > 2) CarrySave(words, &carry);
  assert(!carry);
  if (words.size() == 2) AddFirstTwo(words);
  return words[0];
}

// Tries every order of carry-save and addition; of those with the fewest rounds the one with the
// fewest bits.
template <size_t N>
auto WordRecorder<N>::FastestSum(const Words& words, bool carry) -> Word {
  if (words.size() == 1) return words[0];
  if (words.size() == 2) return PrefixAdd(words[0], words[1]);
  const auto with = [&](bool save) {
    Words rest = words;
    bool rest_carry = carry;
    if (save) {
      CarrySave(rest, &rest_carry);
    } else {
      AddFirstTwo(rest);
    }
    return FastestSum(rest, rest_carry);
  };
  const BitRecorder::Mark before = bits_.mark();
  const auto cost = [&](const Word& w) {
    return std::make_pair(Level(w), bits_.opened() - before.opened);
  };
  const auto saved = cost(with(true));
  bits_.Rewind(before);
  if (carry) return with(true);  // it needs a place in a carry-save
  const auto added = cost(with(false));
  bits_.Rewind(before);
  return with(saved <= added);
}

template <size_t N>
void WordRecorder<N>::CarrySave(Words& words, bool* carry) {
  const Word x = words[0], y = words[1], z = words[2];
  words.erase(words.begin(), words.begin() + 3);
  Word carries = Constant(*carry ? 1 : 0);
  *carry = false;
  for (size_t i = 0; i + 1 < N; ++i) {
    carries.bits[i + 1] = bits_.Majority(x.bits[i], y.bits[i], z.bits[i]);
  }
  Insert(words, Xor(x, y, z));
  Insert(words, carries);
}

template <size_t N>
void WordRecorder<N>::AddFirstTwo(Words& words) {
  const Word sum = PrefixAdd(words[0], words[1]);
  words.erase(words.begin(), words.begin() + 2);
  Insert(words, sum);
}

template <size_t N>
auto WordRecorder<N>::RippleAdd(const Word& a, const Word& b) -> Word {
  Word sum;
  Bit carry = kZeroBit;
  for (size_t i = 0; i < N; ++i) {
    sum.bits[i] = bits_.Xor(a.bits[i], b.bits[i], carry);
    if (i + 1 < N) carry = bits_.Majority(a.bits[i], b.bits[i], carry);
  }
  return sum;
}

// One addition's blocks; what several carries need is opened once.
template <size_t N>
class WordRecorder<N>::PrefixAdder {
 public:
  PrefixAdder(BitRecorder& bits, const Word& a, const Word& b) : bits_(bits), a_(a), b_(b) {
    for (size_t i = 0; i < N; ++i) sum_.bits[i] = bits.Xor(a.bits[i], b.bits[i]);
    half_ = sum_;
  }

  Word Run() {
    Bit carry = kZeroBit;  // into the block
    for (size_t size = 1, from = 0; from + 1 < N; from += size, size *= 2) {
      Bit out = kZeroBit;
      for (size_t j = from; j < from + size && j + 1 < N; ++j) {
        BitSum sum;
        Generate(from, size, j, sum);
        sum.products.push_back({Propagate(from, size, j), carry});
        // A carry that only its own sum needs is opened as that sum.
        const bool last = j + 1 == from + size && j + 2 < N;
        if (!last) sum.linear.push_back(half_.bits[j + 1]);
        out = bits_.Open(sum);
        sum_.bits[j + 1] = last ? bits_.Xor(out, half_.bits[j + 1]) : out;
      }
      carry = out;
    }
    return sum_;
  }

 private:
  // P(from..j) in the block of `size` positions from `from`.
  Bit Propagate(size_t from, size_t size, size_t j) {
    if (size == 1) return half_.bits[from];
    const size_t half = size / 2, middle = from + half;
    if (j < middle) return Propagate(from, half, j);
    const auto [at, is_new] = propagate_.insert({{from, j}, kZeroBit});
    if (is_new) {
      const Bit low = Propagate(from, half, middle - 1), high = Propagate(middle, half, j);
      at->second = bits_.And(low, high);
    }
    return at->second;
  }
  // Adds the terms of G(from..j).
  void Generate(size_t from, size_t size, size_t j, BitSum& sum) {
    if (size == 1) {
      sum.products.push_back({a_.bits[from], b_.bits[from]});
      return;
    }
    const size_t half = size / 2, middle = from + half;
    if (j < middle) return Generate(from, half, j, sum);
    Generate(middle, half, j, sum);
    sum.products.push_back({Propagate(middle, half, j), Generated(from, half)});
  }
  // G of a whole block.
  Bit Generated(size_t from, size_t size) {
    const auto [at, is_new] = generated_.insert({{from, size}, kZeroBit});
    if (is_new) {
      BitSum sum;
      Generate(from, size, from + size - 1, sum);
      at->second = bits_.Open(sum);
    }
    return at->second;
  }

  BitRecorder& bits_;
  const Word& a_;
  const Word& b_;
  Word half_, sum_;
  std::map<std::pair<size_t, size_t>, Bit> propagate_, generated_;
};

template <size_t N>
auto WordRecorder<N>::PrefixAdd(const Word& a, const Word& b) -> Word {
  return PrefixAdder(bits_, a, b).Run();
}

template class WordRecorder<32>;
template class WordRecorder<64>;

}  // namespace mpckdc
