// SPDX-License-Identifier: Apache-2.0
//
// The enctypes in libk5crypto: aes128-gcm and aes256-gcm, which are ours, beside 17 to 20, which
// share much of their code.
#include <krb5/krb5.h>

#include <cstring>
#include <string>
#include <vector>

#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc {
namespace {

constexpr krb5_enctype kEnctypes[] = {-24001, -24002, 17, 18, 19, 20};
constexpr krb5_keyusage kUsages[] = {1, 2, 3, 11};

struct Keys {
  Keys() {
    if (krb5_init_context(&context) != 0) std::abort();
    for (size_t i = 0; i < std::size(kEnctypes); ++i) {
      krb5_data password{KV5M_DATA, 8, const_cast<char*>("password")},
          salt{KV5M_DATA, 4, const_cast<char*>("salt")};
      if (krb5_c_string_to_key(context, kEnctypes[i], &password, &salt, &keys[i]) != 0)
        std::abort();
    }
  }
  krb5_context context = nullptr;
  krb5_keyblock keys[std::size(kEnctypes)] = {};
};
const Keys& TheKeys() {
  static const auto* const keys = new Keys;
  return *keys;
}

krb5_data Data(std::string& bytes) {
  return {KV5M_DATA, static_cast<unsigned>(bytes.size()), bytes.data()};
}

// The result, or nothing where it is refused.
bool Decrypt(const krb5_keyblock& key, krb5_keyusage usage, std::string ciphertext,
             std::string* plain) {
  krb5_enc_data enc{};
  enc.enctype = key.enctype;
  enc.ciphertext = Data(ciphertext);
  std::string out(ciphertext.size(), '\0');
  krb5_data result = Data(out);
  if (krb5_c_decrypt(TheKeys().context, &key, usage, nullptr, &enc, &result) != 0) return false;
  FUZZ_CHECK(result.length <= out.size());
  out.resize(result.length);
  *plain = out;
  return true;
}

std::string Encrypt(const krb5_keyblock& key, krb5_keyusage usage, std::string plain) {
  size_t length = 0;
  FUZZ_CHECK(krb5_c_encrypt_length(TheKeys().context, key.enctype, plain.size(), &length) == 0);
  std::string out(length, '\0');
  krb5_enc_data enc{};
  enc.ciphertext = Data(out);
  krb5_data in = Data(plain);
  FUZZ_CHECK(krb5_c_encrypt(TheKeys().context, &key, usage, nullptr, &in, &enc) == 0);
  FUZZ_CHECK(enc.ciphertext.length == length);
  return out;
}

// ---- Any bytes ----

// enctype (1) | usage (1) | ciphertext
FuzzSeeds CiphertextSeeds() {
  FuzzSeeds seeds;
  for (size_t i = 0; i < std::size(kEnctypes); ++i) {
    for (const size_t size : {0, 1, 16, 40}) {
      seeds.push_back(std::string{static_cast<char>(i), '\1'} +
                      Encrypt(TheKeys().keys[i], kUsages[1], std::string(size, 'p')));
    }
  }
  // With a header, as tickets have it; its tag is not right.
  seeds.push_back(std::string("\1\1", 2) + std::string(12, 'n') + "\x21" +
                  std::string(33 + 16 + 40 + 16, 'h'));
  return seeds;
}

MPCKDC_FUZZ(krb5_decrypt, CiphertextSeeds) {
  if (in.size() < 2) return;
  const krb5_keyblock& key = TheKeys().keys[in[0] % std::size(kEnctypes)];
  const std::string ciphertext(AsText(in.subspan(2)));
  std::string plain, again;
  if (!Decrypt(key, kUsages[in[1] % std::size(kUsages)], ciphertext, &plain)) return;
  // Under another usage, or with another byte, it is not good.
  FUZZ_CHECK(!Decrypt(key, 77, ciphertext, &again));
  for (const size_t at : {size_t{0}, ciphertext.size() / 2, ciphertext.size() - 1}) {
    std::string altered = ciphertext;
    altered[at] = static_cast<char>(altered[at] ^ 0x40);
    FUZZ_CHECK(!Decrypt(key, kUsages[in[1] % std::size(kUsages)], altered, &again));
  }
}

// ---- What is encrypted ----

// enctype (1) | at (2) | change (1) | plaintext
FuzzSeeds PlainSeeds() {
  FuzzSeeds seeds;
  for (char i = 0; i < static_cast<char>(std::size(kEnctypes)); ++i) {
    seeds.push_back(std::string{i, '\0', '\0', '\0'} + "plaintext");
    seeds.push_back(std::string{i, '\0', '\x0c', '\1'} + std::string(100, 'p'));
  }
  return seeds;
}

MPCKDC_FUZZ(krb5_encrypt, PlainSeeds) {
  if (in.size() < 4) return;
  const krb5_keyblock& key = TheKeys().keys[in[0] % std::size(kEnctypes)];
  const size_t at = size_t{in[1]} << 8 | in[2];
  const std::string plain(AsText(in.subspan(4)));
  std::string ciphertext = Encrypt(key, 2, plain), back;
  ciphertext[at % ciphertext.size()] =
      static_cast<char>(ciphertext[at % ciphertext.size()] ^ in[3]);
  const bool good = Decrypt(key, 2, ciphertext, &back);
  FUZZ_CHECK(good == (in[3] == 0));
  FUZZ_CHECK(!good || back == plain);
}

// ---- In pieces ----

// enctype (1) | four lengths (1 each) | data: sign-only, data, sign-only and data buffers in turn
MPCKDC_FUZZ(krb5_iov, PlainSeeds) {
  if (in.size() < 5) return;
  const krb5_context context = TheKeys().context;
  const krb5_keyblock& key = TheKeys().keys[in[0] % std::size(kEnctypes)];
  unsigned header = 0, trailer = 0;
  FUZZ_CHECK(krb5_c_crypto_length(context, key.enctype, KRB5_CRYPTO_TYPE_HEADER, &header) == 0);
  FUZZ_CHECK(krb5_c_crypto_length(context, key.enctype, KRB5_CRYPTO_TYPE_TRAILER, &trailer) == 0);
  ByteReader reader(in.subspan(5));
  std::vector<std::string> pieces = {std::string(header, '\0')};
  for (size_t i = 1; i < 5; ++i)
    pieces.push_back(reader.Text(std::min<size_t>(in[i], reader.left())));
  pieces.push_back("");
  pieces.push_back(std::string(trailer, '\0'));
  std::vector<krb5_crypto_iov> iov(pieces.size());
  const krb5_cryptotype types[] = {KRB5_CRYPTO_TYPE_HEADER, KRB5_CRYPTO_TYPE_SIGN_ONLY,
                                   KRB5_CRYPTO_TYPE_DATA,   KRB5_CRYPTO_TYPE_SIGN_ONLY,
                                   KRB5_CRYPTO_TYPE_DATA,   KRB5_CRYPTO_TYPE_PADDING,
                                   KRB5_CRYPTO_TYPE_TRAILER};
  for (size_t i = 0; i < iov.size(); ++i) iov[i] = {types[i], Data(pieces[i])};
  const std::vector<std::string> before = pieces;
  FUZZ_CHECK(krb5_c_encrypt_iov(context, &key, 2, nullptr, iov.data(), iov.size()) == 0);
  // Whole, if nothing was only signed.
  if (pieces[1].empty() && pieces[3].empty()) {
    std::string plain;
    FUZZ_CHECK(Decrypt(key, 2, pieces[0] + pieces[2] + pieces[4] + pieces[6], &plain));
    FUZZ_CHECK(plain == before[2] + before[4]);
  }
  FUZZ_CHECK(krb5_c_decrypt_iov(context, &key, 2, nullptr, iov.data(), iov.size()) == 0);
  for (const size_t i : {1, 2, 3, 4}) FUZZ_CHECK(pieces[i] == before[i]);
}

// ---- Checksums ----

// enctype (1) | length of the checksum (1) | that | data
FuzzSeeds ChecksumSeeds() {
  FuzzSeeds seeds;
  for (char i = 0; i < static_cast<char>(std::size(kEnctypes)); ++i) {
    for (const char length : {'\x1c', '\x0c', '\x10', '\x18', '\0'}) {
      seeds.push_back(std::string{i, length} + std::string(static_cast<size_t>(length), 'c') +
                      "data");
    }
  }
  return seeds;
}

MPCKDC_FUZZ(krb5_checksum, ChecksumSeeds) {
  ByteReader reader(in);
  const krb5_context context = TheKeys().context;
  const krb5_keyblock& key = TheKeys().keys[reader.Uint(1) % std::size(kEnctypes)];
  std::string given = reader.Text(reader.Uint(1)), data = reader.Text(reader.left());
  const krb5_data of = Data(data);
  krb5_checksum made{};
  FUZZ_CHECK(krb5_c_make_checksum(context, 0, &key, 17, &of, &made) == 0);
  krb5_boolean valid = 0;
  FUZZ_CHECK(krb5_c_verify_checksum(context, &key, 17, &of, &made, &valid) == 0 && valid);
  krb5_checksum other = made;
  other.length = static_cast<unsigned>(given.size());
  other.contents = reinterpret_cast<krb5_octet*>(given.data());
  // libFuzzer sees what is compared, so it finds the right one for a nonce of its own. It is no other
  // data's, and no other one is this data's.
  if (krb5_c_verify_checksum(context, &key, 17, &of, &other, &valid) == 0 && valid) {
    FUZZ_CHECK(given.size() == made.length);
    std::string longer = data + "x";
    const krb5_data of_longer = Data(longer);
    FUZZ_CHECK(krb5_c_verify_checksum(context, &key, 17, &of_longer, &other, &valid) == 0 && !valid);
    given.back() = static_cast<char>(given.back() ^ 1);
    FUZZ_CHECK(krb5_c_verify_checksum(context, &key, 17, &of, &other, &valid) == 0 && !valid);
  }
  krb5_free_checksum_contents(context, &made);
}

}  // namespace
}  // namespace mpckdc
