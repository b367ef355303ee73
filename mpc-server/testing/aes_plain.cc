// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/aes_plain.h"

#include <cassert>
#include <cstring>

#include "mpc-server/testing/aes_program.h"

namespace mpckdc {
namespace {

// Only lane 0 is used: bit k of byte b is bit 0 of row 8*b + k.
void PutBlock(const uint8_t* block, uint8_t* rows) {
  for (size_t s = 0; s < kBlockRows; ++s) rows[s * kRowBytes] = block[s / 8] >> s % 8 & 1;
}
Block GetBlock(const uint8_t* rows) {
  Block block{};
  for (size_t s = 0; s < kBlockRows; ++s) {
    block[s / 8] |= static_cast<uint8_t>((rows[s * kRowBytes] & 1) << s % 8);
  }
  return block;
}

Block RunCipher(AesDirection direction, absl::Span<const Block> round_keys, const Block& input) {
  SecretBytes in(kBlockRows * kRowBytes), out(in.size()), key(in.size());
  PutBlock(input.data(), in.data());
  const auto key_rows = [&](size_t r) {
    PutBlock(round_keys[r].data(), key.data());
    return key.data();
  };
  AesProgram program;
  if (direction == AesDirection::kEncrypt) {
    program.Encrypt(round_keys.size() - 1, in.data(), key_rows, out.data());
  } else {
    program.Decrypt(round_keys.size() - 1, in.data(), key_rows, out.data());
  }
  return GetBlock(out.data());
}

}  // namespace

SecretVector<Block> PlainKeySchedule(absl::Span<const uint8_t> key) {
  assert(key.size() == 16 || key.size() == 32);
  const AesBits bits = key.size() == 16 ? AesBits::k128 : AesBits::k256;
  const KeyWordPlan plan(bits);
  SecretBytes words(32 * plan.Count() * kRowBytes);
  for (size_t b = 0; b < AesKeyBlocks(bits); ++b) {
    PutBlock(key.data() + 16 * b, words.data() + b * kBlockRows * kRowBytes);
  }
  AesProgram().ExpandKey(plan, words.data());
  SecretVector<Block> round_keys;
  for (size_t r = 0; r < AesRoundKeys(bits); ++r) {
    round_keys.push_back(GetBlock(words.data() + r * kBlockRows * kRowBytes));
  }
  return round_keys;
}

Block PlainAes(absl::Span<const Block> round_keys, const Block& input) {
  return RunCipher(AesDirection::kEncrypt, round_keys, input);
}
Block PlainAesDecrypt(absl::Span<const Block> round_keys, const Block& input) {
  return RunCipher(AesDirection::kDecrypt, round_keys, input);
}

}  // namespace mpckdc
