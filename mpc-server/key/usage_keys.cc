// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/usage_keys.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/key/cts_keys.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc::enroll {
namespace {

constexpr size_t kBlock = 16;
constexpr uint8_t kGcmConstant = 0x47;  // RFC 3961 uses 0x99, 0xAA and 0x55

struct CipherContextFree {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

absl::Status CheckKeySize(absl::Span<const uint8_t> key) {
  if (key.size() == 16 || key.size() == 32) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("an AES key has 16 or 32 bytes here, not ", key.size()));
}

// One block, in place allowed.
absl::Status AesBlock(absl::Span<const uint8_t> key, const uint8_t* in, uint8_t* out) {
  std::unique_ptr<EVP_CIPHER_CTX, CipherContextFree> context(EVP_CIPHER_CTX_new());
  const EVP_CIPHER* cipher = key.size() == 16 ? EVP_aes_128_ecb() : EVP_aes_256_ecb();
  int written = 0;
  if (context == nullptr ||
      EVP_EncryptInit_ex(context.get(), cipher, nullptr, key.data(), nullptr) != 1 ||
      EVP_CIPHER_CTX_set_padding(context.get(), 0) != 1 ||
      EVP_EncryptUpdate(context.get(), out, &written, in, kBlock) != 1 ||
      written != static_cast<int>(kBlock)) {
    return absl::InternalError("AES failed");
  }
  return absl::OkStatus();
}

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

std::vector<uint8_t> NFold(absl::Span<const uint8_t> input, size_t output_bytes) {
  std::vector<uint8_t> output(output_bytes, 0);
  if (input.empty() || output_bytes == 0) return output;
  const size_t in_bits = input.size() * 8;
  const size_t total = std::lcm(input.size(), output_bytes);
  // Copy number c of the input is rotated right by 13*c bits; the copies, one after the other, are
  // cut into outputs that are added with end-around carry, from the last byte to the first.
  auto byte_at = [&](size_t position) -> unsigned {
    const size_t copy = position / input.size();
    const size_t bit = (position % input.size()) * 8 + in_bits - (13 * copy) % in_bits;
    unsigned value = 0;
    for (size_t i = 0; i < 8; ++i) {
      const size_t source = (bit + i) % in_bits;
      value = value << 1 | ((input[source / 8] >> (7 - source % 8)) & 1u);
    }
    return value;
  };
  unsigned carry = 0;
  for (size_t position = total; position-- > 0;) {
    uint8_t& sum = output[position % output_bytes];
    carry += sum + byte_at(position);
    sum = static_cast<uint8_t>(carry);
    carry >>= 8;
  }
  for (size_t i = output_bytes; carry != 0; i = i == 0 ? output_bytes : i) {
    --i;
    carry += output[i];
    output[i] = static_cast<uint8_t>(carry);
    carry >>= 8;
  }
  return output;
}

absl::StatusOr<SecretBytes> DeriveKey(absl::Span<const uint8_t> base,
                                      absl::Span<const uint8_t> constant) {
  if (absl::Status s = CheckKeySize(base); !s.ok()) return s;
  if (constant.empty()) return absl::InvalidArgumentError("a derivation constant is empty");
  const std::vector<uint8_t> folded = NFold(constant, kBlock);
  SecretBytes derived(base.size());
  const uint8_t* previous = folded.data();
  for (size_t offset = 0; offset < derived.size(); offset += kBlock) {
    if (absl::Status s = AesBlock(base, previous, derived.data() + offset); !s.ok()) return s;
    previous = derived.data() + offset;
  }
  return derived;
}

absl::StatusOr<SecretBytes> GcmUsageKey(absl::Span<const uint8_t> base, uint32_t usage) {
  const uint8_t constant[] = {
      static_cast<uint8_t>(usage >> 24), static_cast<uint8_t>(usage >> 16),
      static_cast<uint8_t>(usage >> 8), static_cast<uint8_t>(usage), kGcmConstant};
  return DeriveKey(base, constant);
}

absl::StatusOr<SecretBytes> ExpandAesKey(absl::Span<const uint8_t> key) {
  if (absl::Status s = CheckKeySize(key); !s.ok()) return s;
  const size_t nk = key.size() / 4;  // words of the key
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

absl::StatusOr<SecretBytes> GhashKey(absl::Span<const uint8_t> key) {
  if (absl::Status s = CheckKeySize(key); !s.ok()) return s;
  const uint8_t zero[kBlock] = {};
  SecretBytes h(kBlock);
  if (absl::Status s = AesBlock(key, zero, h.data()); !s.ok()) return s;
  return h;
}

absl::Span<const uint32_t> UsagesOf(v1::KeyClass key_class) {
  static constexpr uint32_t kUser[] = {1, 3, 56};  // PA-ENC-TIMESTAMP, AS-REP, AS-REQ checksum
  static constexpr uint32_t kTicket[] = {2, 17};   // ticket, PAC checksums
  switch (key_class) {
    case v1::KEY_CLASS_USER:
      return kUser;
    case v1::KEY_CLASS_TGS:
    case v1::KEY_CLASS_SERVICE:
      return kTicket;
    default:
      return {};
  }
}

namespace {

absl::StatusOr<ExpandedUsage> ExpandGcm(absl::Span<const uint8_t> base, uint32_t usage) {
  absl::StatusOr<SecretBytes> key = GcmUsageKey(base, usage);
  if (!key.ok()) return key.status();
  absl::StatusOr<SecretBytes> round_keys = ExpandAesKey(*key);
  if (!round_keys.ok()) return round_keys.status();
  absl::StatusOr<SecretBytes> h = GhashKey(*key);
  if (!h.ok()) return h.status();
  return ExpandedUsage{.usage = usage, .round_keys = *std::move(round_keys), .h = *std::move(h)};
}

absl::StatusOr<ExpandedUsage> ExpandCts(const Enctype& enctype, absl::Span<const uint8_t> base,
                                        uint32_t usage) {
  ExpandedUsage expanded{.usage = usage};
  const bool encrypts = IsEncryptionUsage(usage);
  absl::StatusOr<SecretBytes> mac_key =
      DeriveSubkey(enctype, base, usage, encrypts ? Subkey::kKi : Subkey::kKc);
  if (!mac_key.ok()) return mac_key.status();
  absl::StatusOr<SecretBytes> states = HmacStates(enctype.hash, *mac_key);
  if (!states.ok()) return states.status();
  expanded.mac_states = *std::move(states);
  if (!encrypts) return expanded;
  absl::StatusOr<SecretBytes> key = DeriveSubkey(enctype, base, usage, Subkey::kKe);
  if (!key.ok()) return key.status();
  absl::StatusOr<SecretBytes> round_keys = ExpandAesKey(*key);
  if (!round_keys.ok()) return round_keys.status();
  expanded.round_keys = *std::move(round_keys);
  return expanded;
}

}  // namespace

absl::StatusOr<std::vector<ExpandedUsage>> ExpandUsages(int32_t enctype,
                                                        absl::Span<const uint8_t> base,
                                                        v1::KeyClass key_class) {
  const Enctype* found = FindEnctype(enctype);
  if (found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("keys of enctype ", enctype, " are not held on shares"));
  }
  std::vector<ExpandedUsage> expanded;
  for (const uint32_t usage : UsagesOf(key_class)) {
    absl::StatusOr<ExpandedUsage> one =
        found->is_gcm() ? ExpandGcm(base, usage) : ExpandCts(*found, base, usage);
    if (!one.ok()) return one.status();
    expanded.push_back(*std::move(one));
  }
  return expanded;
}

}  // namespace mpckdc::enroll
