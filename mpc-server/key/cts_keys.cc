// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/cts_keys.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/key/hash_plain.h"
#include "mpc-server/key/usage_keys.h"

namespace mpckdc::enroll {
namespace {

constexpr uint8_t kIpad = 0x36;  // RFC 2104
constexpr uint8_t kOpad = 0x5c;

void AppendNumber(uint32_t number, std::vector<uint8_t>* out) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<uint8_t>(number >> shift));
}

const EVP_MD* Sha2(HashKind hash) {
  return hash == HashKind::kSha384 ? EVP_sha384() : EVP_sha256();
}

// Appends the state after the one block of key ^ pad.
void AppendState(HashKind hash, absl::Span<const uint8_t> key, uint8_t pad, SecretBytes* states) {
  SecretBytes block(HashBlockBytes(hash), pad);
  for (size_t i = 0; i < key.size(); ++i) block[i] ^= key[i];
  const absl::Span<const uint8_t> first = HashInitialState(hash);
  SecretBytes state(first.begin(), first.end());
  CompressPlain(hash, absl::MakeSpan(state), block.data());
  states->insert(states->end(), state.begin(), state.end());
  states->insert(states->end(), 16 * HashStateBlocks(hash) - state.size(), 0);
}

}  // namespace

absl::StatusOr<SecretBytes> KdfHmacSha2(HashKind hash, absl::Span<const uint8_t> key,
                                        absl::Span<const uint8_t> label, size_t bytes) {
  if (hash == HashKind::kSha1 || bytes == 0 || bytes > HashDigestBytes(hash)) {
    return absl::InvalidArgumentError(absl::StrCat("KDF-HMAC-SHA2 makes no key of ", bytes,
                                                   " bytes here"));
  }
  std::vector<uint8_t> input;
  AppendNumber(1, &input);
  input.insert(input.end(), label.begin(), label.end());
  input.push_back(0);
  AppendNumber(static_cast<uint32_t>(8 * bytes), &input);
  SecretBytes digest(HashDigestBytes(hash));
  if (HMAC(Sha2(hash), key.data(), static_cast<int>(key.size()), input.data(), input.size(),
           digest.data(), nullptr) == nullptr) {
    return absl::InternalError("HMAC failed");
  }
  digest.resize(bytes);
  return digest;
}

absl::StatusOr<SecretBytes> DeriveSubkey(const Enctype& enctype, absl::Span<const uint8_t> base,
                                         uint32_t usage, Subkey subkey) {
  if (enctype.is_gcm() || base.size() != enctype.key_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a base key of ", base.size(),
                                                   " bytes has no Kc, Ke and Ki of ", enctype.name));
  }
  std::vector<uint8_t> constant;
  AppendNumber(usage, &constant);
  constant.push_back(static_cast<uint8_t>(subkey));
  if (enctype.family == EnctypeFamily::kRfc3962) return DeriveKey(base, constant);
  return KdfHmacSha2(enctype.hash, base, constant,
                     subkey == Subkey::kKe ? enctype.key_bytes : enctype.mac_key_bytes);
}

absl::StatusOr<SecretBytes> HmacStates(HashKind hash, absl::Span<const uint8_t> key) {
  if (key.size() > HashBlockBytes(hash)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a key of ", key.size(), " bytes is longer than the hash's block"));
  }
  SecretBytes states;
  states.reserve(2 * 16 * HashStateBlocks(hash));
  AppendState(hash, key, kIpad, &states);
  AppendState(hash, key, kOpad, &states);
  return states;
}

}  // namespace mpckdc::enroll
