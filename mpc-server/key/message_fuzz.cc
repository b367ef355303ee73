// SPDX-License-Identifier: Apache-2.0
//
// Messages and checksums taken apart, the keys of an answer, names of principals.
#include <string>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/key/message_format.h"
#include "mpc-server/key/output_format.h"
#include "mpc-server/key/string_to_key.h"
#include "mpc-server/key/text_shares.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc {
namespace {

constexpr int32_t kNumbers[] = {17, 18, 19, 20, kEnctypeAes128Gcm, kEnctypeAes256Gcm};

FuzzSeeds MessageSeeds() {
  const std::string nonce(12, 'n'), tag(16, 't'), zeros(16, 'z');
  return {nonce + std::string(1, '\0') + zeros + tag,
          nonce + std::string(1, 33) + std::string(33, 'h') + zeros + "text" + tag,
          nonce + "\xff" + std::string(255, 'h') + zeros + tag, nonce + tag,
          std::string(16, 'c') + tag};
}

// The parts together are the message.
MPCKDC_FUZZ(message, MessageSeeds) {
  const absl::string_view text = AsText(in);
  if (const auto view = ParseMessage(text)) {
    FUZZ_CHECK(view->ciphertext.size() >= kZeroBytes);
    FUZZ_CHECK(absl::StrCat(AsText(view->nonce), HeaderAad(view->header), view->ciphertext,
                            AsText(view->tag)) == text);
  }
  if (const auto view = ParseChecksum(text)) {
    FUZZ_CHECK(absl::StrCat(AsText(view->nonce), AsText(view->tag)) == text);
  }
  for (const int32_t number : kNumbers) {
    const Enctype& enctype = *FindEnctype(number);
    if (enctype.is_gcm()) continue;
    const auto view = ParseCtsMessage(enctype, text);
    FUZZ_CHECK(view.has_value() == (text.size() >= 16 + enctype.mac_bytes));
    if (view) FUZZ_CHECK(absl::StrCat(view->ciphertext, view->mac) == text);
  }
  if (const auto keys = DecodeAnswerKeys(text)) FUZZ_CHECK(EncodeAnswerKeys(*keys) == text);
}

FuzzSeeds NameSeeds() {
  return {"alice@EXAMPLE.COM",
          "krbtgt/EXAMPLE.COM@EXAMPLE.COM",
          "krbtgt/EXAMPLE.COM@OTHER.ORG",
          "kadmin/admin@EXAMPLE.COM",
          "a\\@b/c\\/d@EXAMPLE.COM",
          "K/M@EXAMPLE.COM",
          "@",
          "x\\",
          "aes256-gcm",
          "-24002",
          "WELLKNOWN/ANONYMOUS@EXAMPLE.COM"};
}

// What is said of a name does not contradict itself.
MPCKDC_FUZZ(principal, NameSeeds) {
  const std::string name(AsText(in));
  const bool ours = IsOfRealm(name, "EXAMPLE.COM");
  FUZZ_CHECK(!IsTgtFromOtherRealm(name, "EXAMPLE.COM") || !ours);
  FUZZ_CHECK(!(IsOwnTgt(name) || IsKadmin(name)) || IsPowerful(name));
  if (const auto enctype = EnctypeFromName(name); enctype.ok()) {
    FUZZ_CHECK(EnctypeFromName(EnctypeName(*enctype)).value() == *enctype);
  }
  KeyInfo info;
  info.principal = name;
  info.principal_id = PrincipalIdOf(name);
  info.kvno = 1;
  for (const int32_t enctype : kNumbers) {
    info.enctype = enctype;
    FUZZ_CHECK(!CheckNewKeyInfo(info).ok() || CheckKeyInfo(info).ok());
  }
  static_cast<void>(CheckRename(info, "bob@EXAMPLE.COM", "EXAMPLE.COM"));
}

// party (1) | length of the first component (1) | that | hashes (96) | the other component
FuzzSeeds TextSeeds() {
  FuzzSeeds seeds;
  const std::string text = "a ticket's text of some length";
  const auto split = SplitText(AsBytes(text), SystemRandom());
  for (size_t p = 0; p < 3; ++p) {
    seeds.push_back(absl::StrCat(std::string(1, static_cast<char>(p)),
                                 std::string(1, static_cast<char>(split[p].own.size())),
                                 AsText(split[p].own), split[p].hashes, AsText(split[p].before)));
  }
  return seeds;
}

MPCKDC_FUZZ(text_shares, TextSeeds) {
  ByteReader reader(in);
  const int party = static_cast<int>(reader.Uint(1) % 3);
  TextShares shares;
  const absl::Span<const uint8_t> own = reader.Bytes(reader.Uint(1));
  shares.own.assign(own.begin(), own.end());
  shares.hashes = reader.Text(std::min<size_t>(reader.left(), kTextHashesBytes));
  const absl::Span<const uint8_t> before = reader.Bytes(reader.left());
  shares.before.assign(before.begin(), before.end());
  std::string why;
  const bool fit = TextSharesFit(shares, party, &why);
  FUZZ_CHECK(fit || !why.empty());
  FUZZ_CHECK(
      !fit || shares.empty() ||
      (shares.own.size() == shares.before.size() && shares.hashes.size() == kTextHashesBytes));
}

}  // namespace
}  // namespace mpckdc
