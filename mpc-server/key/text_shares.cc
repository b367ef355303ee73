// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/text_shares.h"

#include <sodium.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mpckdc {
namespace {

using Hash = std::array<uint8_t, kTextHashBytes>;

Hash HashOf(const SecretBytes& component) {
  static constexpr char kDomain[] = "mpc-kdc text share v1";
  crypto_generichash_state state;
  crypto_generichash_init(&state, component.data(), kTextSaltBytes, sizeof(Hash));
  crypto_generichash_update(&state, reinterpret_cast<const uint8_t*>(kDomain), sizeof(kDomain));
  crypto_generichash_update(&state, component.data() + kTextSaltBytes,
                            component.size() - kTextSaltBytes);
  Hash hash;
  crypto_generichash_final(&state, hash.data(), hash.size());
  Wipe(&state, sizeof(state));
  return hash;
}

bool IsHashOf(const SecretBytes& component, absl::string_view hashes, int number) {
  const Hash hash = HashOf(component);
  return std::equal(hash.begin(), hash.end(),
                    reinterpret_cast<const uint8_t*>(hashes.data()) + number * kTextHashBytes);
}

}  // namespace

bool TextSharesFit(const TextShares& shares, int party, std::string* why) {
  if (shares.own.size() <= kTextSaltBytes || shares.own.size() != shares.before.size() ||
      shares.hashes.size() != kTextHashesBytes) {
    *why = absl::StrCat("components of ", shares.own.size(), " and ", shares.before.size(),
                        " bytes, hashes of ", shares.hashes.size());
    return false;
  }
  const int before = (party + 2) % 3;
  for (const int number : {party, before}) {
    if (IsHashOf(number == party ? shares.own : shares.before, shares.hashes, number)) continue;
    *why = absl::StrCat("component ", number, " is not the one whose hash the job has");
    return false;
  }
  return true;
}

std::array<TextShares, 3> SplitText(absl::Span<const uint8_t> text, RandomSource& random) {
  std::array<TextShares, 3> out;
  if (text.empty()) return out;
  for (TextShares& shares : out) {
    shares.own.resize(kTextSaltBytes + text.size());
    random.Fill(absl::MakeSpan(shares.own));
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t at = kTextSaltBytes + i;
    out[2].own[at] = static_cast<uint8_t>(text[i] ^ out[0].own[at] ^ out[1].own[at]);
  }
  std::string hashes;
  for (const TextShares& shares : out) {
    const Hash hash = HashOf(shares.own);
    hashes.append(hash.begin(), hash.end());
  }
  for (size_t p = 0; p < out.size(); ++p) {
    out[p].before = out[(p + 2) % 3].own;
    out[p].hashes = hashes;
  }
  return out;
}

}  // namespace mpckdc
