// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/fault_analysis.h"

#include <algorithm>
#include <cmath>

#include "mpc-server/circuit/aes/tower_field.h"
#include "mpc-server/circuit/bitslice/slices.h"

namespace mpckdc {
namespace {

using tower::Mul16;

constexpr tower::Matrix kToTower = tower::ToTower(), kTowerToSbox = tower::TowerToSbox();
constexpr int kOmega5 = 6;  // w^5, of GF(4)

int Power16(int x, int exponent) {
  int r = 1;
  for (; exponent > 0; --exponent) r = Mul16(r, x);
  return r;
}

// Of 256 inputs, how many give each output.
std::array<int, 256> OutputCounts(const SboxFault& fault) {
  std::array<int, 256> counts{};
  for (int x = 0; x < 256; ++x) ++counts[FaultySbox(fault, static_cast<uint8_t>(x))];
  return counts;
}

}  // namespace

// ---- The S-box ----

// The stages of circuit/aes/sbox.h, on one byte.
uint8_t FaultySbox(const SboxFault& fault, uint8_t x) {
  const int v = kToTower(x), a = v & 15, b = v >> 4;
  const int n = Mul16(a, a) ^ Mul16(a, b) ^ Mul16(tower::Nu16(), Mul16(b, b)) ^ fault.norm;
  int low, high;
  if (fault.sbox == Sbox::kThroughput) {
    const int n0 = n & 1, n1 = n >> 1 & 1, n3 = n >> 3 & 1, n2 = n >> 2 & 1;
    // What an error in q does to M = q*L(N) + Q'(N).
    const int helper_error = fault.helper * ((n1 ^ n2) | n3 << 1 | n0 << 2 | n1 << 3);
    const int m = Power16(n, 14) ^ helper_error ^ fault.inverse;
    low = Mul16(a ^ b, m);
    high = Mul16(b, m);
  } else {
    const int u = Power16(n, 10) ^ (fault.tenth & 1) ^ (fault.tenth >> 1) * kOmega5;
    const int n4 = Power16(n, 4);
    low = Mul16(u, Mul16(a ^ b, n4));
    high = Mul16(u, Mul16(b, n4));
  }
  return static_cast<uint8_t>(kTowerToSbox(low | high << 4) ^ tower::kSboxConstant);
}

double BitsPerByte(const SboxFault& fault) {
  double bits = 8;
  for (const int count : OutputCounts(fault)) {
    if (count > 0) bits += count / 256.0 * std::log2(count / 256.0);
  }
  return bits;
}

SboxFault BestFault(Sbox sbox) {
  const bool four_rounds = sbox == Sbox::kThroughput;
  SboxFault best{.sbox = sbox};
  double most = 0;
  for (int bits = 0; bits < 512; ++bits) {
    SboxFault fault{.sbox = sbox, .norm = static_cast<uint8_t>(bits & 15)};
    if (four_rounds) {
      fault.inverse = static_cast<uint8_t>(bits >> 4 & 15);
      fault.helper = static_cast<uint8_t>(bits >> 8);
    } else {
      fault.tenth = static_cast<uint8_t>(bits >> 4 & 3);
    }
    const double told = BitsPerByte(fault);
    if (told > most) {
      most = told;
      best = fault;
    }
  }
  return best;
}

// ---- Messages ----

namespace {

// `error` in each S-box's rows of a stage that opens `rows` bits of each byte.
std::vector<Flip> StageErrors(unsigned error, size_t rows, size_t lanes, size_t first,
                              size_t count) {
  std::vector<Flip> flips;
  const size_t width = WireRowBytes(lanes);
  for (size_t byte = 0; byte < sizeof(Block); ++byte) {
    for (size_t k = 0; k < rows; ++k) {
      if ((error >> k & 1) == 0) continue;
      for (size_t lane = first; lane < first + count; ++lane) {
        flips.push_back(
            {(rows * byte + k) * width + lane / 8, static_cast<uint8_t>(1 << lane % 8)});
      }
    }
  }
  return flips;
}

}  // namespace

std::vector<std::vector<Flip>> FaultOfLanes(const SboxFault& fault, size_t lanes, size_t first,
                                            size_t count) {
  const auto stage = [&](unsigned error, size_t rows) {
    return StageErrors(error, rows, lanes, first, count);
  };
  if (fault.sbox == Sbox::kLatency) return {stage(fault.norm, 4), stage(fault.tenth, 10)};
  return {stage(fault.norm, 4), stage(fault.helper, 1), stage(fault.inverse, 4)};
}

// ---- Keys from ciphertexts ----

RoundKeyScores::RoundKeyScores(const SboxFault& fault) {
  const std::array<int, 256> counts = OutputCounts(fault);
  for (size_t y = 0; y < counts.size(); ++y) log_probability_[y] = std::log(counts[y] / 256.0);
}

void RoundKeyScores::Add(const Block& block) {
  ++blocks_;
  for (size_t i = 0; i < block.size(); ++i) {
    for (size_t k = 0; k < 256; ++k) scores_[i][k] += log_probability_[block[i] ^ k];
  }
}

std::optional<Block> RoundKeyScores::Best() const {
  Block best{};
  double doubt = 0;
  for (size_t i = 0; i < best.size(); ++i) {
    const auto top = std::max_element(scores_[i].begin(), scores_[i].end());
    best[i] = static_cast<uint8_t>(top - scores_[i].begin());
    double others = -1;  // the best itself
    for (const double score : scores_[i]) others += std::exp(score - *top);
    doubt += others;
  }
  // Impossible for every candidate: these blocks were not faulted so. (A sum of NaN.)
  if (!(doubt < 0.001)) return std::nullopt;
  return best;
}

// ---- AES backwards ----

namespace {

uint8_t Sub(uint8_t x) { return FaultySbox({}, x); }

uint8_t InverseSub(uint8_t y) {
  static const std::array<uint8_t, 256> table = [] {
    std::array<uint8_t, 256> t{};
    for (int x = 0; x < 256; ++x) t[Sub(static_cast<uint8_t>(x))] = static_cast<uint8_t>(x);
    return t;
  }();
  return table[y];
}

Block MultiplyColumns(const Block& in, const std::array<int, 4>& row) {
  Block out{};
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t column = i / 4 * 4;
    int sum = 0;
    for (size_t k = 0; k < 4; ++k) sum ^= tower::Mul256(row[(k + 4 - i % 4) % 4], in[column + k]);
    out[i] = static_cast<uint8_t>(sum);
  }
  return out;
}

using Word = std::array<uint8_t, 4>;

Word WordOf(const Block& block, size_t i) {
  return {block[4 * i], block[4 * i + 1], block[4 * i + 2], block[4 * i + 3]};
}

// FIPS 197, 5.2, from the last words back: w[i - n] = w[i] + g(w[i - 1]). `words`: the last n of
// 4 * (rounds + 1).
std::vector<uint8_t> ExpandBackwards(std::vector<Word> words, size_t total) {
  const size_t n = words.size();
  for (size_t i = total - 1; i >= n; --i) {
    // words = w[i - n + 1] .. w[i]
    Word g = words[n - 2];
    if (i % n == 0) {
      std::rotate(g.begin(), g.begin() + 1, g.end());
      for (uint8_t& byte : g) byte = Sub(byte);
      g[0] ^= static_cast<uint8_t>(tower::Power(2, static_cast<int>(i / n) - 1));
    } else if (n == 8 && i % n == 4) {
      for (uint8_t& byte : g) byte = Sub(byte);
    }
    for (size_t k = 0; k < 4; ++k) g[k] ^= words[n - 1][k];
    words.pop_back();
    words.insert(words.begin(), g);
  }
  std::vector<uint8_t> key;
  for (const Word& word : words) key.insert(key.end(), word.begin(), word.end());
  return key;
}

}  // namespace

Block MixColumnsOf(const Block& block) { return MultiplyColumns(block, {2, 3, 1, 1}); }

// ciphertext = ShiftRows(SubBytes(z)) + last;  z = MixColumns(y) + key, so what is wanted is
// y + InvMixColumns(key). (y: the S-boxes' outputs of the round before, their rows shifted.)
Block BeforeLastRound(const Block& block, const Block& last) {
  Block z{};
  for (size_t row = 0; row < 4; ++row) {
    for (size_t column = 0; column < 4; ++column) {
      const size_t from = 4 * column + row;
      z[4 * ((column + row) % 4) + row] = InverseSub(block[from] ^ last[from]);
    }
  }
  return MultiplyColumns(z, {14, 11, 13, 9});
}

std::vector<uint8_t> KeyFromLastRoundKey(const Block& last) {
  std::vector<Word> words;
  for (size_t i = 0; i < 4; ++i) words.push_back(WordOf(last, i));
  return ExpandBackwards(std::move(words), 44);
}

std::vector<uint8_t> KeyFromLastRoundKeys(const Block& last_but_one, const Block& last) {
  std::vector<Word> words;
  for (size_t i = 0; i < 4; ++i) words.push_back(WordOf(last_but_one, i));
  for (size_t i = 0; i < 4; ++i) words.push_back(WordOf(last, i));
  return ExpandBackwards(std::move(words), 60);
}

}  // namespace mpckdc
