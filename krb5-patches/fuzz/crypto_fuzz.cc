// SPDX-License-Identifier: Apache-2.0
//
// The enctypes in libk5crypto: aes128-gcm and aes256-gcm, which are ours, beside 17 to 20, which
// share much of their code.
#include <krb5/krb5.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/fuzz.h"

// Of libk5crypto, for those who look at headers.
extern "C" krb5_error_code krb5int_c_message_header(krb5_enctype enctype,
                                                    const krb5_data* ciphertext,
                                                    krb5_data* header_out);

namespace mpckdc {
namespace {

constexpr krb5_enctype kEnctypes[] = {-24001, -24002, 17, 18, 19, 20};
constexpr krb5_keyusage kUsages[] = {1, 2, 3, 11};

// With what is derived of it, made once: an input says nothing about keys. Where there is no `made`, the
// functions of keyblocks are called, which derive all anew.
struct Key {
  krb5_keyblock block{};
  krb5_key made = nullptr;
};

struct Keys {
  Keys() {
    if (krb5_init_context(&context) != 0) std::abort();
    for (size_t i = 0; i < std::size(kEnctypes); ++i) {
      krb5_keyblock& block = keys[i].block;
      // Not from passwords, of which a sanitized build makes half a dozen in ten seconds.
      size_t bytes = 0, length = 0;
      if (krb5_c_keylengths(context, kEnctypes[i], &bytes, &length) != 0) std::abort();
      std::string seed(bytes, static_cast<char>('k' + i));
      krb5_data random{KV5M_DATA, static_cast<unsigned>(bytes), seed.data()};
      block.magic = KV5M_KEYBLOCK;
      block.enctype = kEnctypes[i];
      block.length = static_cast<unsigned>(length);
      block.contents = static_cast<krb5_octet*>(std::malloc(length));
      if (krb5_c_random_to_key(context, kEnctypes[i], &random, &block) != 0) std::abort();
      if (krb5_k_create_key(context, &block, &keys[i].made) != 0) std::abort();
      anew[i].block = block;
    }
  }
  krb5_context context = nullptr;
  Key keys[std::size(kEnctypes)], anew[std::size(kEnctypes)];
};
const Keys& TheKeys() {
  static const auto* const keys = new Keys;
  return *keys;
}

// The first byte of an input: which key, and behind that what is special. The last are derived anew.
constexpr size_t kAnewSpecial = 40;
constexpr uint8_t kAnew = kAnewSpecial * std::size(kEnctypes);
const Key& KeyOf(uint8_t first) {
  return (first >= kAnew ? TheKeys().anew : TheKeys().keys)[first % std::size(kEnctypes)];
}
size_t SpecialOf(uint8_t first, size_t count) { return first / std::size(kEnctypes) % count; }
char First(size_t key, size_t special) {
  return static_cast<char>(special * std::size(kEnctypes) + key);
}

// Keys that nothing may be done with: a reference without a provider, an enctype that is none.
std::string Reference() { return "remote-key:" + std::string(16, 'h'); }
Key KeyThatCannot(const Key& key, std::string& reference, bool unknown) {
  Key other{key.block};
  if (unknown) {
    other.block.enctype = 99;
    return other;
  }
  other.block.contents = reinterpret_cast<krb5_octet*>(reference.data());
  other.block.length = static_cast<unsigned>(reference.size());
  return other;
}

krb5_data Data(std::string& bytes) {
  return {KV5M_DATA, static_cast<unsigned>(bytes.size()), bytes.data()};
}

// ---- The functions of keys, or of keyblocks ----

krb5_error_code CallEncrypt(const Key& key, krb5_keyusage usage, krb5_data* state,
                            const krb5_data* plain, krb5_enc_data* out) {
  const krb5_context context = TheKeys().context;
  return key.made != nullptr ? krb5_k_encrypt(context, key.made, usage, state, plain, out)
                             : krb5_c_encrypt(context, &key.block, usage, state, plain, out);
}
krb5_error_code CallDecrypt(const Key& key, krb5_keyusage usage, krb5_data* state,
                            const krb5_enc_data* in, krb5_data* plain) {
  const krb5_context context = TheKeys().context;
  return key.made != nullptr ? krb5_k_decrypt(context, key.made, usage, state, in, plain)
                             : krb5_c_decrypt(context, &key.block, usage, state, in, plain);
}
krb5_error_code CallMakeChecksum(const Key& key, krb5_cksumtype type, const krb5_data* of,
                                 krb5_checksum* out) {
  const krb5_context context = TheKeys().context;
  return key.made != nullptr ? krb5_k_make_checksum(context, type, key.made, 17, of, out)
                             : krb5_c_make_checksum(context, type, &key.block, 17, of, out);
}
krb5_error_code CallVerifyChecksum(const Key& key, const krb5_data* of, const krb5_checksum* sum,
                                   krb5_boolean* valid) {
  const krb5_context context = TheKeys().context;
  return key.made != nullptr ? krb5_k_verify_checksum(context, key.made, 17, of, sum, valid)
                             : krb5_c_verify_checksum(context, &key.block, 17, of, sum, valid);
}
krb5_error_code CallPrf(const Key& key, krb5_data* in, krb5_data* out) {
  const krb5_context context = TheKeys().context;
  return key.made != nullptr ? krb5_k_prf(context, key.made, in, out)
                             : krb5_c_prf(context, &key.block, in, out);
}

// The result, or nothing where it is refused.
bool Decrypt(const Key& key, krb5_keyusage usage, std::string ciphertext,
             std::string* plain) {
  krb5_enc_data enc{};
  enc.enctype = key.block.enctype;
  enc.ciphertext = Data(ciphertext);
  std::string out(ciphertext.size(), '\0');
  krb5_data result = Data(out);
  if (CallDecrypt(key, usage, nullptr, &enc, &result) != 0) return false;
  FUZZ_CHECK(result.length <= out.size());
  out.resize(result.length);
  *plain = out;
  return true;
}

std::string Encrypt(const Key& key, krb5_keyusage usage, std::string plain) {
  size_t length = 0;
  FUZZ_CHECK(krb5_c_encrypt_length(TheKeys().context, key.block.enctype, plain.size(), &length) ==
             0);
  std::string out(length, '\0');
  krb5_enc_data enc{};
  enc.ciphertext = Data(out);
  krb5_data in = Data(plain);
  FUZZ_CHECK(CallEncrypt(key, usage, nullptr, &in, &enc) == 0);
  FUZZ_CHECK(enc.ciphertext.length == length);
  return out;
}

// ---- Any bytes ----

// enctype (1) | usage (1) | ciphertext
FuzzSeeds CiphertextSeeds() {
  FuzzSeeds seeds;
  for (size_t i = 0; i < std::size(kEnctypes); ++i) {
    for (const size_t size : {0, 1, 16, 40}) {
      for (const size_t special : {size_t{0}, kAnewSpecial}) {
        seeds.push_back(std::string{First(i, special), '\1'} +
                        Encrypt(TheKeys().keys[i], kUsages[1], std::string(size, 'p')));
      }
    }
  }
  seeds.push_back(std::string{First(1, 1), '\1'} + std::string(80, 'c'));
  seeds.push_back(std::string{First(2, 1), '\1'} + std::string(80, 'c'));
  // With a header, as tickets have it; its tag is not right.
  seeds.push_back(std::string("\1\1", 2) + std::string(12, 'n') + "\x21" +
                  std::string(33 + 16 + 40 + 16, 'h'));
  return seeds;
}

// A key that cannot decrypts nothing; nor does any, of an enctype that is another or into too little.
void NothingComesOf(const Key& key, const std::string& ciphertext) {
  std::string reference = Reference(), plain;
  FUZZ_CHECK(!Decrypt(KeyThatCannot(key, reference, false), 2, ciphertext, &plain));
  FUZZ_CHECK(!Decrypt(KeyThatCannot(key, reference, true), 2, ciphertext, &plain));
  std::string copy = ciphertext;
  krb5_enc_data enc{};
  enc.enctype = key.block.enctype == 17 ? 18 : 17;
  enc.ciphertext = Data(copy);
  krb5_data nowhere{KV5M_DATA, 0, nullptr};
  FUZZ_CHECK(CallDecrypt(key, 2, nullptr, &enc, &nowhere) != 0);
  // (libFuzzer sees what is compared, so it finds good messages: of nothing.)
  enc.enctype = key.block.enctype;
  FUZZ_CHECK(CallDecrypt(key, 2, nullptr, &enc, &nowhere) != 0 || nowhere.length == 0);
}

// A header lies within its message; enctypes of MIT's own have none.
void CheckHeader(const Key& key, std::string message) {
  const krb5_data whole = Data(message);
  krb5_data header{};
  FUZZ_CHECK(krb5int_c_message_header(99, &whole, &header) != 0);
  if (krb5int_c_message_header(key.block.enctype, &whole, &header) != 0 || header.length == 0) return;
  FUZZ_CHECK(key.block.enctype < 0 && header.data >= whole.data &&
             header.data + header.length <= whole.data + whole.length);
}

MPCKDC_FUZZ(krb5_decrypt, CiphertextSeeds) {
  if (in.size() < 2) return;
  const Key& key = KeyOf(in[0]);
  const std::string ciphertext(AsText(in.subspan(2)));
  std::string plain, again;
  if (SpecialOf(in[0], 2) == 1) return NothingComesOf(key, ciphertext);
  CheckHeader(key, ciphertext);
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
  for (size_t i = 0; i < std::size(kEnctypes); ++i) {
    for (size_t special = 0; special < 8; ++special) {
      seeds.push_back(std::string{First(i, special), '\0', '\0', '\0'} + "plaintext");
    }
    seeds.push_back(std::string{First(i, 0), '\0', '\x0c', '\1'} + std::string(100, 'p'));
    seeds.push_back(std::string{First(i, kAnewSpecial), '\0', '\0', '\0'} + "plaintext");
  }
  return seeds;
}

// Two messages in a row, whose cipher state is handed on: they open in this order alone.
void TryChain(const Key& key, std::string plain) {
  const krb5_context context = TheKeys().context;
  krb5_data state{}, other{};
  FUZZ_CHECK(krb5_c_init_state(context, &key.block, 2, &state) == 0);
  FUZZ_CHECK(krb5_c_init_state(context, &key.block, 2, &other) == 0);
  size_t length = 0;
  FUZZ_CHECK(krb5_c_encrypt_length(context, key.block.enctype, plain.size(), &length) == 0);
  std::string first(length, '\0'), second(length, '\0');
  krb5_data in = Data(plain);
  for (std::string* out : {&first, &second}) {
    krb5_enc_data enc{};
    enc.ciphertext = Data(*out);
    FUZZ_CHECK(CallEncrypt(key, 2, &state, &in, &enc) == 0);
  }
  for (std::string* message : {&first, &second}) {
    krb5_enc_data enc{};
    enc.enctype = key.block.enctype;
    enc.ciphertext = Data(*message);
    std::string back(length, '\0');
    krb5_data out = Data(back);
    FUZZ_CHECK(CallDecrypt(key, 2, &other, &enc, &out) == 0);
    FUZZ_CHECK(back.substr(0, out.length) == plain);
  }
  krb5_c_free_state(context, &key.block, &state);
  krb5_c_free_state(context, &key.block, &other);
}

// Nothing is encrypted by a key that cannot, into too little, or behind a state of another size (which MIT's
// own enctypes take for one of theirs).
bool MindsStates(const Key& key) { return key.block.enctype < 0; }
void NothingIsEncrypted(const Key& key, std::string plain) {
  std::string reference = Reference(), out(plain.size() + 200, '\0'), wrong = "state";
  krb5_data in = Data(plain), state = Data(wrong);
  krb5_enc_data enc{};
  for (const bool unknown : {false, true}) {
    const Key cannot = KeyThatCannot(key, reference, unknown);
    enc.ciphertext = Data(out);
    FUZZ_CHECK(CallEncrypt(cannot, 2, nullptr, &in, &enc) != 0);
  }
  enc.ciphertext = Data(out);
  enc.ciphertext.length = static_cast<unsigned>(plain.size());
  FUZZ_CHECK(CallEncrypt(key, 2, nullptr, &in, &enc) != 0);
  enc.ciphertext = Data(out);
  FUZZ_CHECK(!MindsStates(key) || CallEncrypt(key, 2, &state, &in, &enc) != 0);
}

// The PRF gives the same again, of its length.
void TryPrf(const Key& key, std::string seed) {
  size_t length = 0;
  FUZZ_CHECK(krb5_c_prf_length(TheKeys().context, key.block.enctype, &length) == 0);
  std::string one(length, '\0'), two = one;
  krb5_data in = Data(seed), out = Data(one), again = Data(two);
  FUZZ_CHECK(CallPrf(key, &in, &out) == 0);
  FUZZ_CHECK(CallPrf(key, &in, &again) == 0 && one == two);
}

MPCKDC_FUZZ(krb5_encrypt, PlainSeeds) {
  if (in.size() < 4) return;
  const Key& key = KeyOf(in[0]);
  switch (SpecialOf(in[0], 4)) {
    case 1:
      return TryChain(key, std::string(AsText(in.subspan(4))));
    case 2:
      return NothingIsEncrypted(key, std::string(AsText(in.subspan(4))));
    case 3:
      return TryPrf(key, std::string(AsText(in.subspan(4))));
    default:
      break;
  }
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

constexpr krb5_cryptotype kPieces[] = {KRB5_CRYPTO_TYPE_HEADER,    KRB5_CRYPTO_TYPE_SIGN_ONLY,
                                       KRB5_CRYPTO_TYPE_DATA,      KRB5_CRYPTO_TYPE_SIGN_ONLY,
                                       KRB5_CRYPTO_TYPE_DATA,      KRB5_CRYPTO_TYPE_PADDING,
                                       KRB5_CRYPTO_TYPE_TRAILER};
enum Piece : size_t { kHeader, kSigned, kData, kSignedToo, kDataToo, kPadding, kTrailer };

using Iov = std::vector<krb5_crypto_iov>;
Iov IovOf(std::vector<std::string>& pieces) {
  Iov iov(pieces.size());
  for (size_t i = 0; i < iov.size(); ++i) iov[i] = {kPieces[i], Data(pieces[i])};
  return iov;
}
bool Encrypts(const Key& key, Iov iov, krb5_data* state = nullptr) {
  const krb5_context context = TheKeys().context;
  return (key.made != nullptr
              ? krb5_k_encrypt_iov(context, key.made, 2, state, iov.data(), iov.size())
              : krb5_c_encrypt_iov(context, &key.block, 2, state, iov.data(), iov.size())) == 0;
}
// Where it lies: a stream is taken apart into its pieces.
bool Takes(const Key& key, Iov& iov, krb5_data* state = nullptr) {
  const krb5_context context = TheKeys().context;
  return (key.made != nullptr
              ? krb5_k_decrypt_iov(context, key.made, 2, state, iov.data(), iov.size())
              : krb5_c_decrypt_iov(context, &key.block, 2, state, iov.data(), iov.size())) == 0;
}
bool Decrypts(const Key& key, Iov iov, krb5_data* state = nullptr) {
  return Takes(key, iov, state);
}

// What has a wrong size, or a key that cannot, is refused, both ways.
void NothingInPieces(const Key& key, std::vector<std::string> pieces) {
  std::string reference = Reference(), wrong = "state";
  krb5_data state = Data(wrong);
  for (const bool unknown : {false, true}) {
    const Key cannot = KeyThatCannot(key, reference, unknown);
    FUZZ_CHECK(!Encrypts(cannot, IovOf(pieces)) && !Decrypts(cannot, IovOf(pieces)));
  }
  if (MindsStates(key))
    FUZZ_CHECK(!Encrypts(key, IovOf(pieces), &state) && !Decrypts(key, IovOf(pieces), &state));
  for (const Piece part : {kHeader, kTrailer}) {
    Iov iov = IovOf(pieces);
    --iov[part].data.length;
    FUZZ_CHECK(!Encrypts(key, iov) && !Decrypts(key, iov));
    iov[part].flags = KRB5_CRYPTO_TYPE_EMPTY;
    FUZZ_CHECK(!Encrypts(key, iov) && !Decrypts(key, iov));
  }
}

// A whole message as a stream, which is taken apart where it lies.
void TryStream(const Key& key, std::vector<std::string>& pieces,
               const std::string& plain) {
  std::string whole = pieces[kHeader] + pieces[kData] + pieces[kDataToo] + pieces[kTrailer];
  Iov iov = {{KRB5_CRYPTO_TYPE_STREAM, Data(whole)},
             {KRB5_CRYPTO_TYPE_SIGN_ONLY, Data(pieces[kSigned])},
             {KRB5_CRYPTO_TYPE_DATA, {KV5M_DATA, 0, nullptr}},
             {KRB5_CRYPTO_TYPE_SIGN_ONLY, Data(pieces[kSignedToo])}};
  FUZZ_CHECK(Takes(key, iov));
  FUZZ_CHECK(std::string(iov[2].data.data, iov[2].data.length) == plain);
}

// enctype (1) | four lengths (1 each) | data: sign-only, data, sign-only and data buffers in turn
MPCKDC_FUZZ(krb5_iov, PlainSeeds) {
  if (in.size() < 5) return;
  const krb5_context context = TheKeys().context;
  const Key& key = KeyOf(in[0]);
  const size_t special = SpecialOf(in[0], 4);
  unsigned header = 0, trailer = 0;
  FUZZ_CHECK(krb5_c_crypto_length(context, key.block.enctype, KRB5_CRYPTO_TYPE_HEADER, &header) == 0);
  FUZZ_CHECK(krb5_c_crypto_length(context, key.block.enctype, KRB5_CRYPTO_TYPE_TRAILER, &trailer) == 0);
  ByteReader reader(in.subspan(5));
  std::vector<std::string> pieces = {std::string(header, '\0')};
  for (size_t i = 1; i < 5; ++i)
    pieces.push_back(reader.Text(std::min<size_t>(in[i], reader.left())));
  pieces.push_back("");
  pieces.push_back(std::string(trailer, '\0'));
  if (special == 1) return NothingInPieces(key, pieces);
  const std::vector<std::string> before = pieces;
  krb5_data state{}, other{};
  const bool chained = special == 2;
  if (chained) FUZZ_CHECK(krb5_c_init_state(context, &key.block, 2, &state) == 0);
  if (chained) FUZZ_CHECK(krb5_c_init_state(context, &key.block, 2, &other) == 0);
  FUZZ_CHECK(Encrypts(key, IovOf(pieces), chained ? &state : nullptr));
  // Whole, if nothing was only signed.
  const std::string text = before[kData] + before[kDataToo];
  if (pieces[kSigned].empty() && pieces[kSignedToo].empty() && !chained) {
    std::string plain;
    FUZZ_CHECK(Decrypt(key, 2, pieces[kHeader] + pieces[kData] + pieces[kDataToo] + pieces[kTrailer],
                       &plain));
    FUZZ_CHECK(plain == text);
  }
  // One piece of data where there were two is not the same if something was signed between them.
  if (special == 3 && (before[kSignedToo].empty() || before[kDataToo].empty()))
    return TryStream(key, pieces, text);
  FUZZ_CHECK(Decrypts(key, IovOf(pieces), chained ? &other : nullptr));
  for (const Piece i : {kSigned, kData, kSignedToo, kDataToo}) FUZZ_CHECK(pieces[i] == before[i]);
  krb5_c_free_state(context, &key.block, &state);
  krb5_c_free_state(context, &key.block, &other);
}

// ---- Checksums ----

// enctype (1) | length of the checksum (1) | that | data
FuzzSeeds ChecksumSeeds() {
  FuzzSeeds seeds;
  for (size_t i = 0; i < std::size(kEnctypes); ++i) {
    for (const char length : {'\x1c', '\x0c', '\x10', '\x18', '\0'}) {
      seeds.push_back(std::string{First(i, 0), length} +
                      std::string(static_cast<size_t>(length), 'c') + "data");
    }
    seeds.push_back(std::string{First(i, 1), '\x04'} + "type" + "data");
    seeds.push_back(std::string{First(i, kAnewSpecial), '\x04'} + "type" + "data");
  }
  return seeds;
}

// None is made, or found right, by a key that cannot, or of a type that is none or without a key; one of
// type 0 is the enctype's.
void NoChecksums(const Key& key, std::string& data) {
  const krb5_context context = TheKeys().context;
  const krb5_data of = Data(data);
  std::string reference = Reference();
  krb5_checksum made{}, none{};
  krb5_boolean valid = 0;
  FUZZ_CHECK(CallMakeChecksum(key, 0, &of, &made) == 0);
  krb5_checksum untyped = made;
  untyped.checksum_type = 0;
  FUZZ_CHECK(CallVerifyChecksum(key, &of, &untyped, &valid) == 0 && valid);
  for (const bool unknown : {false, true}) {
    const Key cannot = KeyThatCannot(key, reference, unknown);
    FUZZ_CHECK(CallMakeChecksum(cannot, 0, &of, &none) != 0);
    FUZZ_CHECK(CallVerifyChecksum(cannot, &of, &untyped, &valid) != 0);
    FUZZ_CHECK(CallVerifyChecksum(cannot, &of, &made, &valid) != 0);
  }
  FUZZ_CHECK(krb5_c_verify_checksum(context, nullptr, 17, &of, &made, &valid) != 0);
  FUZZ_CHECK(CallMakeChecksum(key, 9999, &of, &none) != 0);
  untyped.checksum_type = 9999;
  FUZZ_CHECK(CallVerifyChecksum(key, &of, &untyped, &valid) != 0);
  krb5_free_checksum_contents(context, &made);
}

MPCKDC_FUZZ(krb5_checksum, ChecksumSeeds) {
  ByteReader reader(in);
  const krb5_context context = TheKeys().context;
  const auto first = static_cast<uint8_t>(reader.Uint(1));
  const Key& key = KeyOf(first);
  std::string given = reader.Text(reader.Uint(1)), data = reader.Text(reader.left());
  if (SpecialOf(first, 2) == 1) return NoChecksums(key, data);
  const krb5_data of = Data(data);
  krb5_checksum made{};
  FUZZ_CHECK(CallMakeChecksum(key, 0, &of, &made) == 0);
  krb5_boolean valid = 0;
  FUZZ_CHECK(CallVerifyChecksum(key, &of, &made, &valid) == 0 && valid);
  krb5_checksum other = made;
  other.length = static_cast<unsigned>(given.size());
  other.contents = reinterpret_cast<krb5_octet*>(given.data());
  // libFuzzer sees what is compared, so it finds the right one for a nonce of its own. It is no other
  // data's, and no other one is this data's.
  if (CallVerifyChecksum(key, &of, &other, &valid) == 0 && valid) {
    FUZZ_CHECK(given.size() == made.length);
    std::string longer = data + "x";
    const krb5_data of_longer = Data(longer);
    FUZZ_CHECK(CallVerifyChecksum(key, &of_longer, &other, &valid) == 0 && !valid);
    given.back() = static_cast<char>(given.back() ^ 1);
    FUZZ_CHECK(CallVerifyChecksum(key, &of, &other, &valid) == 0 && !valid);
  }
  krb5_free_checksum_contents(context, &made);
}

}  // namespace
}  // namespace mpckdc
