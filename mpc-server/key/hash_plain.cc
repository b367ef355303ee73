// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/hash_plain.h"

#include <cassert>

#include "mpc-server/base/secret.h"
#include "mpc-server/key/hash_template.h"

namespace mpckdc {
namespace {

// Words of the machine.
template <class Unsigned>
struct PlainOps {
  using Word = Unsigned;
  static constexpr size_t kBits = 8 * sizeof(Word);
  bool share_sum() const { return true; }

  Word Constant(uint64_t v) { return static_cast<Word>(v); }
  Word Sum(absl::Span<const Word> words) {
    Word sum = 0;
    for (Word w : words) sum += w;
    return sum;
  }
  Word Xor(Word a, Word b) { return a ^ b; }
  Word Xor(Word a, Word b, Word c) { return a ^ b ^ c; }
  Word Not(Word a) { return ~a; }
  Word RotateRight(Word a, int n) { return a >> n | a << (static_cast<int>(kBits) - n); }
  Word ShiftRight(Word a, int n) { return a >> n; }
  Word Choose(Word x, Word y, Word z) { return (x & (y ^ z)) ^ z; }
  Word Majority(Word x, Word y, Word z) { return ((x ^ z) & (y ^ z)) ^ z; }
};

template <class Word>
Word GetWord(const uint8_t* p) {
  Word w = 0;
  for (size_t i = 0; i < sizeof(Word); ++i) w = static_cast<Word>(w << 8 | p[i]);
  return w;
}
template <class Word>
void PutWord(Word w, uint8_t* p) {
  for (size_t i = sizeof(Word); i-- > 0; w >>= 8) p[i] = static_cast<uint8_t>(w);
}

// K_t + W_t of one block.
template <class Word>
void Schedule(HashKind hash, const uint8_t* block, Word* kw) {
  PlainOps<Word> ops;
  for (size_t i = 0; i < 16; ++i) kw[i] = GetWord<Word>(block + i * sizeof(Word));
  HashTemplate<PlainOps<Word>>(hash, ops).Expand(absl::MakeSpan(kw, HashSteps(hash)));
  for (size_t t = 0; t < HashSteps(hash); ++t) {
    kw[t] += static_cast<Word>(HashConstant(hash, t));
  }
}

template <class Word>
struct Workspace {
  Word kw[80], state[8], v[8];
};

template <class Word>
void Compress(HashKind hash, absl::Span<uint8_t> state, const uint8_t* block) {
  using Template = HashTemplate<PlainOps<Word>>;
  PlainOps<Word> ops;
  Secret<Workspace<Word>> secret;
  Workspace<Word>& w = secret.Get();
  Schedule(hash, block, w.kw);
  const size_t words = HashStateWords(hash);
  for (size_t i = 0; i < words; ++i) w.state[i] = GetWord<Word>(&state[i * sizeof(Word)]);
  Template(hash, ops).Compress(absl::MakeSpan(w.state, words), absl::MakeSpan(w.v, words),
                               [&](size_t t) { return typename Template::Words{w.kw[t]}; });
  for (size_t i = 0; i < words; ++i) PutWord(w.state[i], &state[i * sizeof(Word)]);
}

template <class Word>
void PutSchedule(HashKind hash, const uint8_t* block, uint8_t* out) {
  Word kw[80];
  Schedule(hash, block, kw);
  for (size_t t = 0; t < HashSteps(hash); ++t) PutWord(kw[t], out + t * sizeof(Word));
}

// 32-bit words of SHA-1 and SHA-256, 64-bit words of SHA-384 (FIPS 180-4, 5.3).
constexpr uint8_t kSha1[] = {0x67, 0x45, 0x23, 0x01, 0xef, 0xcd, 0xab, 0x89, 0x98, 0xba,
                             0xdc, 0xfe, 0x10, 0x32, 0x54, 0x76, 0xc3, 0xd2, 0xe1, 0xf0};
constexpr uint8_t kSha256[] = {
    0x6a, 0x09, 0xe6, 0x67, 0xbb, 0x67, 0xae, 0x85, 0x3c, 0x6e, 0xf3, 0x72, 0xa5, 0x4f, 0xf5, 0x3a,
    0x51, 0x0e, 0x52, 0x7f, 0x9b, 0x05, 0x68, 0x8c, 0x1f, 0x83, 0xd9, 0xab, 0x5b, 0xe0, 0xcd, 0x19,
};
constexpr uint8_t kSha384[] = {
    0xcb, 0xbb, 0x9d, 0x5d, 0xc1, 0x05, 0x9e, 0xd8, 0x62, 0x9a, 0x29, 0x2a, 0x36, 0x7c, 0xd5, 0x07,
    0x91, 0x59, 0x01, 0x5a, 0x30, 0x70, 0xdd, 0x17, 0x15, 0x2f, 0xec, 0xd8, 0xf7, 0x0e, 0x59, 0x39,
    0x67, 0x33, 0x26, 0x67, 0xff, 0xc0, 0x0b, 0x31, 0x8e, 0xb4, 0x4a, 0x87, 0x68, 0x58, 0x15, 0x11,
    0xdb, 0x0c, 0x2e, 0x0d, 0x64, 0xf9, 0x8f, 0xa7, 0x47, 0xb5, 0x48, 0x1d, 0xbe, 0xfa, 0x4f, 0xa4,
};

}  // namespace

absl::Span<const uint8_t> HashInitialState(HashKind hash) {
  switch (hash) {
    case HashKind::kSha1: return kSha1;
    case HashKind::kSha256: return kSha256;
    case HashKind::kSha384: return kSha384;
  }
  return {};
}

void CompressPlain(HashKind hash, absl::Span<uint8_t> state, const uint8_t* block) {
  assert(state.size() == HashStateBytes(hash));
  if (hash == HashKind::kSha384) return Compress<uint64_t>(hash, state, block);
  Compress<uint32_t>(hash, state, block);
}

void PublicSchedule(HashKind hash, const uint8_t* block, uint8_t* out) {
  if (hash == HashKind::kSha384) return PutSchedule<uint64_t>(hash, block, out);
  PutSchedule<uint32_t>(hash, block, out);
}

}  // namespace mpckdc
