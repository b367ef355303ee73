// SPDX-License-Identifier: Apache-2.0
//
// How a KDC gives the three servers the text of a message that they seal under a key of enctypes 17
// to 20. It draws the components of v = a_0 + a_1 + a_2; P_i gets a_i and a_{i-1}, each behind a
// salt of its own, and the job that all three get holds the hash of each component:
//
//   component    salt (16) | a_i
//   hash         BLAKE2b-256 under the salt of  "mpc-kdc text share v1" 00 | a_i
//
// A server that finds another component than the job's hash says does not take the job. Any two
// servers hold one component in common and agree on the job's digest, so no third one can make the
// text another one, and no KDC can tell three stories that do not fit together. What a server lacks
// it cannot guess from the hash, for want of the salt.
#ifndef MPC_SERVER_KEY_TEXT_SHARES_H_
#define MPC_SERVER_KEY_TEXT_SHARES_H_

#include <array>
#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/base/secret.h"

namespace mpckdc {

inline constexpr size_t kTextSaltBytes = 16;
inline constexpr size_t kTextHashBytes = 32;
inline constexpr size_t kTextHashesBytes = 3 * kTextHashBytes;

// What one server gets; empty, if the seal takes no text.
struct TextShares {
  SecretBytes own{};     // salt | a_i
  SecretBytes before{};  // salt | a_{i-1}
  std::string hashes{};  // of a_0, a_1, a_2: the same at the three servers

  bool empty() const { return own.empty() && before.empty() && hashes.empty(); }
  // Of the text.
  size_t bytes() const { return own.size() < kTextSaltBytes ? 0 : own.size() - kTextSaltBytes; }

  friend bool operator==(const TextShares&, const TextShares&) = default;
};

// Whether these are party `party`'s components of a text, and the hashes theirs. `why` names what
// is wrong.
bool TextSharesFit(const TextShares& shares, int party, std::string* why);

// The KDC's side: what each party gets. Empty for an empty text.
std::array<TextShares, 3> SplitText(absl::Span<const uint8_t> text, RandomSource& random);

}  // namespace mpckdc

#endif  // MPC_SERVER_KEY_TEXT_SHARES_H_
