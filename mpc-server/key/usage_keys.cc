// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/usage_keys.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/derivation.h"
#include "mpc-server/key/hash_plain.h"

namespace mpckdc {
namespace {

// ---- FIPS 197 section 5.2, without tables: byte operations in GF(2^8) modulo 0x11b ----

uint8_t Multiply(uint8_t x, uint8_t y) {
  uint8_t product = 0;
  for (int bit = 0; bit < 8; ++bit) {
    product ^= static_cast<uint8_t>(-((y >> bit) & 1)) & x;
    const uint8_t carry = static_cast<uint8_t>(-(x >> 7));
    x = static_cast<uint8_t>(x << 1) ^ (carry & 0x1b);
  }
  return product;
}

uint8_t RotateLeft(uint8_t x, int n) { return static_cast<uint8_t>((x << n) | (x >> (8 - n))); }

// x^254 by squarings and products, then the affine map.
uint8_t SubByte(uint8_t x) {
  uint8_t power = x;    // x^(2^k)
  uint8_t inverse = 1;  // x^(2 + 4 + ... + 2^k)
  for (int k = 1; k < 8; ++k) {
    power = Multiply(power, power);
    inverse = Multiply(inverse, power);
  }
  return inverse ^ RotateLeft(inverse, 1) ^ RotateLeft(inverse, 2) ^ RotateLeft(inverse, 3) ^
         RotateLeft(inverse, 4) ^ 0x63;
}

}  // namespace

absl::StatusOr<SecretBytes> ExpandAesKey(absl::Span<const uint8_t> key) {
  if (key.size() != 16 && key.size() != 32) {
    return absl::InvalidArgumentError(
        absl::StrCat("an AES key has 16 or 32 bytes here, not ", key.size()));
  }
  const size_t nk = key.size() / 4;   // words of the key
  const size_t words = 4 * (nk + 7);  // 44 or 60
  SecretBytes w(words * 4);
  std::copy(key.begin(), key.end(), w.data());
  uint8_t round_constant = 1;
  for (size_t i = nk; i < words; ++i) {
    uint8_t* word = w.data() + 4 * i;
    std::memcpy(word, word - 4, 4);
    if (i % nk == 0) std::rotate(word, word + 1, word + 4);
    if (i % nk == 0 || (nk == 8 && i % nk == 4)) {
      for (int b = 0; b < 4; ++b) word[b] = SubByte(word[b]);
    }
    if (i % nk == 0) {
      word[0] ^= round_constant;
      round_constant = Multiply(round_constant, 2);
    }
    for (int b = 0; b < 4; ++b) word[b] ^= *(word + b - 4 * nk);
  }
  return w;
}

absl::StatusOr<SecretBytes> HmacStatesOf(HashKind hash, absl::Span<const uint8_t> key) {
  if (key.size() > HashBlockBytes(hash)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a key of ", key.size(), " bytes is longer than the hash's block"));
  }
  const size_t each = 16 * HashStateBlocks(hash);
  SecretBytes states(2 * each);
  uint8_t* state = states.data();
  for (const uint8_t pad : {uint8_t{0x36}, uint8_t{0x5c}}) {  // ipad, opad
    SecretBytes block(HashBlockBytes(hash), pad);
    for (size_t i = 0; i < key.size(); ++i) block[i] ^= key[i];
    const absl::Span<const uint8_t> first = HashInitialState(hash);
    std::copy(first.begin(), first.end(), state);
    CompressPlain(hash, absl::MakeSpan(state, first.size()), block.data());
    state += each;
  }
  return states;
}

absl::StatusOr<ExpandedUsage> ExpandUsage(const Enctype& enctype, absl::Span<const uint8_t> base,
                                          uint32_t usage) {
  ExpandedUsage expanded{.usage = usage};
  const auto key = [&](DerivedKeyKind kind) { return DeriveKey(enctype, base, usage, kind); };
  if (enctype.is_gcm()) {
    ASSIGN_OR_RETURN(SecretBytes kg, key(DerivedKeyKind::kKg));
    ASSIGN_OR_RETURN(expanded.round_keys, ExpandAesKey(kg));
    ASSIGN_OR_RETURN(expanded.h, GhashKey(kg));
    return expanded;
  }
  const bool encrypts = IsEncryptionUsage(usage);
  ASSIGN_OR_RETURN(SecretBytes mac, key(encrypts ? DerivedKeyKind::kKi : DerivedKeyKind::kKc));
  ASSIGN_OR_RETURN(expanded.mac_states, HmacStatesOf(enctype.hash, mac));
  if (encrypts) {
    ASSIGN_OR_RETURN(SecretBytes ke, key(DerivedKeyKind::kKe));
    ASSIGN_OR_RETURN(expanded.round_keys, ExpandAesKey(ke));
  }
  return expanded;
}

absl::StatusOr<std::vector<ExpandedUsage>> ExpandUsages(int32_t enctype,
                                                        absl::Span<const uint8_t> base,
                                                        KeyClass key_class) {
  const Enctype* found = FindEnctype(enctype);
  if (found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("keys of enctype ", enctype, " are not held on shares"));
  }
  std::vector<ExpandedUsage> expanded;
  for (const uint32_t usage : UsagesOf(key_class)) {
    ASSIGN_OR_RETURN(ExpandedUsage one, ExpandUsage(*found, base, usage));
    expanded.push_back(std::move(one));
  }
  return expanded;
}

}  // namespace mpckdc
