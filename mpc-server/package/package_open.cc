// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/package/package_open.h"

#include <google/protobuf/io/coded_stream.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <sodium.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/package/certificate.h"
#include "mpc-server/package/package.h"

namespace mpckdc {

// ---- The contents ----
//
// Read by hand because the generated class keeps its fields, here shares, in ordinary memory; only
// KeyInfo, which is not secret, goes through it.

namespace {

using enroll::kManyKeysVersion;
using enroll::kOneKeyVersion;

// One field of a protobuf message: a number or a byte string.
struct Field {
  uint32_t number = 0;
  bool is_bytes = false;
  uint64_t value = 0;
  absl::Span<const uint8_t> bytes;
};

// The two components of a shared byte string of `blocks` blocks, one per field.
struct Components {
  absl::Span<const uint8_t> x;
  absl::Span<const uint8_t> a;

  bool Into(size_t blocks, absl::Span<SharedBlock> out) const {
    if (x.size() != 16 * blocks || a.size() != 16 * blocks) return false;
    for (size_t i = 0; i < blocks; ++i) {
      std::copy_n(x.begin() + static_cast<ptrdiff_t>(16 * i), 16, out[i].x.begin());
      std::copy_n(a.begin() + static_cast<ptrdiff_t>(16 * i), 16, out[i].a.begin());
    }
    return true;
  }
};

struct UsageFields {
  uint64_t usage = 0;
  Components round_keys;
  Components h;
  Components mac_states;
};

// Fields 6 to 9 of a package of version 1, or of one of the keys of version 2.
struct KeyFields {
  absl::Span<const uint8_t> info;
  Components base;
  std::vector<absl::Span<const uint8_t>> usages;
};

struct PackageFields {
  uint64_t version = 0;
  uint64_t party = 0;
  uint64_t epoch = 0;
  absl::Span<const uint8_t> realm;
  absl::Span<const uint8_t> transaction;
  KeyFields one;
  bool has_one = false;
  std::vector<absl::Span<const uint8_t>> keys;
};

// Fields that may come more than once, by their numbers.
constexpr uint64_t kNone = 0, kUsages = uint64_t{1} << 9, kKeys = uint64_t{1} << 10;

// False unless `take` accepts every field of `in`. There are varints and byte strings; SharePackage
// has no other types. Any other field that comes twice is refused: protobuf would join messages, and
// here the last one would count. The stream reads `in` where it is, without a copy.
template <class Take>
bool ReadFields(absl::Span<const uint8_t> in, uint64_t repeated, Take take) {
  constexpr uint64_t kMaxFieldNumber = 63, kVarint = 0, kLengthDelimited = 2;
  uint64_t seen = 0;
  google::protobuf::io::CodedInputStream stream(in.data(), static_cast<int>(in.size()));
  const auto at = [&] { return static_cast<size_t>(stream.CurrentPosition()); };
  while (at() < in.size()) {
    uint64_t tag = 0;
    Field field;
    if (!stream.ReadVarint64(&tag) || !stream.ReadVarint64(&field.value)) return false;
    if (tag >> 3 == 0 || tag >> 3 > kMaxFieldNumber) return false;
    field.number = static_cast<uint32_t>(tag >> 3);
    const uint64_t bit = uint64_t{1} << field.number;
    if ((seen & bit & ~repeated) != 0) return false;
    seen |= bit;
    field.is_bytes = (tag & 7) == kLengthDelimited;
    if (field.is_bytes) {
      if (field.value > in.size() - at()) return false;
      field.bytes = in.subspan(at(), field.value);
      stream.Skip(static_cast<int>(field.value));
    } else if ((tag & 7) != kVarint) {
      return false;
    }
    if (!take(field)) return false;
  }
  return true;
}

bool TakeUsageField(const Field& field, UsageFields* out) {
  if (field.is_bytes != (field.number != 1)) return false;
  switch (field.number) {
    case 1: out->usage = field.value; break;
    case 2: out->round_keys.x = field.bytes; break;
    case 3: out->round_keys.a = field.bytes; break;
    case 4: out->h.x = field.bytes; break;
    case 5: out->h.a = field.bytes; break;
    case 6: out->mac_states.x = field.bytes; break;
    case 7: out->mac_states.a = field.bytes; break;
    default: return false;
  }
  return true;
}

bool TakeKeyField(const Field& field, KeyFields* out) {
  if (!field.is_bytes) return false;
  switch (field.number) {
    case 6: out->info = field.bytes; break;
    case 7: out->base.x = field.bytes; break;
    case 8: out->base.a = field.bytes; break;
    case 9: out->usages.push_back(field.bytes); break;
    default: return false;
  }
  return out->usages.size() <= limits::kMaxUsagesPerKey;
}

bool TakePackageField(const Field& field, PackageFields* out) {
  const bool number = field.number == 1 || field.number == 3 || field.number == 4;
  if (field.is_bytes == number) return false;
  switch (field.number) {
    case 1: out->version = field.value; break;
    case 2: out->realm = field.bytes; break;
    case 3: out->party = field.value; break;
    case 4: out->epoch = field.value; break;
    case 5: out->transaction = field.bytes; break;
    case 10: out->keys.push_back(field.bytes); break;
    default:
      out->has_one = true;
      return TakeKeyField(field, &out->one);
  }
  return out->keys.size() <= limits::kMaxKeysPerPackage;
}

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the share package is malformed: ", what));
}

absl::StatusOr<KeyInfo> ReadInfo(absl::Span<const uint8_t> bytes, absl::string_view realm) {
  v1::KeyInfo info;
  if (!info.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Malformed("its key description");
  }
  return KeyInfoFromProto(info, realm);
}

// Exactly what its enctype gives a usage: H, or the states of an HMAC, and neither in place of the
// other.
bool ReadUsage(const UsageFields& in, const Enctype& enctype, UsageKey* out) {
  out->usage = static_cast<uint32_t>(in.usage);
  out->round_keys.resize(RoundKeys(enctype.number, out->usage));
  out->mac_states.resize(enctype.mac_state_blocks());
  const bool sizes = in.round_keys.Into(out->round_keys.size(), absl::MakeSpan(out->round_keys)) &&
                     in.mac_states.Into(out->mac_states.size(), absl::MakeSpan(out->mac_states));
  if (!sizes) return false;
  return enctype.is_gcm() ? in.h.Into(1, absl::MakeSpan(&out->h, 1)) : in.h.Into(0, {});
}

absl::Status ReadShares(const KeyFields& fields, KeyRecord* record) {
  const Enctype* enctype = FindEnctype(record->info.enctype);
  if (enctype == nullptr) return Malformed("its enctype");
  record->base.resize(enctype->base_blocks());
  if (!fields.base.Into(record->base.size(), absl::MakeSpan(record->base))) {
    return Malformed("the base key's share has not the size of the enctype");
  }
  record->usages.resize(fields.usages.size());
  for (size_t i = 0; i < fields.usages.size(); ++i) {
    UsageFields in;
    const auto take = [&](const Field& f) { return TakeUsageField(f, &in); };
    if (!ReadFields(fields.usages[i], kNone, take)) {
      return Malformed("a usage's share");
    }
    if (!ReadUsage(in, *enctype, &record->usages[i])) {
      return Malformed("a usage's share has not the size of the enctype");
    }
  }
  RETURN_IF_ERROR(CheckKeyRecord(*record));
  if (absl::MakeConstSpan(record->UsageNumbers()) != UsagesOf(record->info.key_class)) {
    return Malformed("it lacks a usage that new keys of its class have");
  }
  return absl::OkStatus();
}

absl::StatusOr<KeyRecord> ReadKey(const KeyFields& fields, absl::string_view realm) {
  ASSIGN_OR_RETURN(KeyInfo info, ReadInfo(fields.info, realm));
  KeyRecord record;
  record.info = std::move(info);
  RETURN_IF_ERROR(ReadShares(fields, &record));
  return record;
}

// Each version has its own fields for keys: a package that mixes them is nobody's.
absl::Status CheckVersion(const PackageFields& fields) {
  if (fields.version != kOneKeyVersion && fields.version != kManyKeysVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("the share package has version ", fields.version, ", this server reads ",
                     kOneKeyVersion, " and ", kManyKeysVersion));
  }
  const bool many = fields.version == kManyKeysVersion;
  if (fields.has_one == many || fields.keys.empty() == many) return Malformed("its keys");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SharePackageContents> DecodeSharePackage(absl::Span<const uint8_t> plain,
                                                        absl::string_view realm) {
  PackageFields fields;
  const auto take = [&](const Field& f) { return TakePackageField(f, &fields); };
  if (!ReadFields(plain, kUsages | kKeys, take) || fields.party > 2) return Malformed("its fields");
  RETURN_IF_ERROR(CheckVersion(fields));
  SharePackageContents out;
  out.version = static_cast<uint32_t>(fields.version);
  out.realm = std::string(AsText(fields.realm));
  out.party = static_cast<uint32_t>(fields.party);
  out.epoch = fields.epoch;
  out.transaction = std::string(AsText(fields.transaction));
  std::vector<KeyFields> keys(fields.keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto take_key = [&](const Field& f) { return TakeKeyField(f, &keys[i]); };
    if (!ReadFields(fields.keys[i], kUsages, take_key)) return Malformed("one of its keys");
  }
  if (fields.has_one) keys.push_back(std::move(fields.one));
  for (const KeyFields& key : keys) {
    ASSIGN_OR_RETURN(KeyRecord record, ReadKey(key, realm));
    out.records.push_back(std::move(record));
  }
  return out;
}

// ---- The package around them ----

namespace {

constexpr char kItemName[] = "package-key";

// What a package must be for; the text says both values.
absl::Status CheckBinding(const SharePackageContents& package, const StoreMeta& meta,
                          const TransactionId& txn) {
  const auto wrong = [](absl::string_view what, auto have, auto want) {
    return absl::InvalidArgumentError(
        absl::StrCat("the share package is for ", what, " ", have, ", this server is ", want));
  };
  if (package.realm != meta.identity.realm) {
    return wrong("realm", package.realm, meta.identity.realm);
  }
  if (package.party != static_cast<uint32_t>(meta.identity.party)) {
    return wrong("party", package.party, meta.identity.party);
  }
  if (package.epoch != meta.epoch && package.epoch + 1 != meta.epoch) {
    return wrong("epoch", package.epoch, meta.epoch);
  }
  if (package.transaction != AsText(txn)) {
    return absl::InvalidArgumentError("the share package belongs to another transaction");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PackageKey> PackageKey::LoadOrCreate(ShareStore& store, RandomSource& random) {
  PackageKey key;
  absl::StatusOr<SecretBytes> secret = store.ReadItem(kItemName);
  if (absl::IsNotFound(secret.status())) {
    // Another machine of the party may do the same now: both get the one that was first.
    SecretBytes fresh(crypto_box_SECRETKEYBYTES);
    random.Fill(absl::MakeSpan(fresh));
    secret = store.ReadOrWriteItem(kItemName, fresh);
  }
  if (!secret.ok()) return secret.status();
  key.secret_key_ = *std::move(secret);
  key.public_key_.resize(crypto_box_PUBLICKEYBYTES);
  if (key.secret_key_.size() != crypto_box_SECRETKEYBYTES ||
      crypto_scalarmult_base(reinterpret_cast<uint8_t*>(key.public_key_.data()),
                             key.secret_key_.data()) != 0) {
    return absl::DataLossError("this server's package key is damaged");
  }
  return key;
}

absl::StatusOr<SecretBytes> PackageKey::Unseal(absl::string_view sealed) const {
  const absl::Span<const uint8_t> in = AsBytes(sealed);
  if (in.size() < crypto_box_SEALBYTES || in.size() > limits::kMaxPackageBytes) {
    return absl::InvalidArgumentError("the share package has an impossible size");
  }
  SecretBytes plain(in.size() - crypto_box_SEALBYTES);
  if (crypto_box_seal_open(plain.data(), in.data(), in.size(), AsBytes(public_key_).data(),
                           secret_key_.data()) != 0) {
    return absl::InvalidArgumentError(
        "the share package does not open: it was sealed to another server's package key, or altered");
  }
  return plain;
}

absl::StatusOr<Authority> Authority::Load(const std::string& ca_file) {
  ASSIGN_OR_RETURN(const std::string pem, enroll::ReadSmallFile(ca_file));
  return FromPem(pem, ca_file);
}

absl::StatusOr<Authority> Authority::FromPem(absl::string_view pem, absl::string_view who) {
  std::shared_ptr<X509_STORE> store(X509_STORE_new(), &X509_STORE_free);
  std::unique_ptr<BIO, decltype(&BIO_free)> in(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  int count = 0;
  ERR_clear_error();
  const auto no_password = [](char*, int, int, void*) { return -1; };  // as in certificate.cc
  while (store != nullptr && in != nullptr) {
    std::unique_ptr<X509, decltype(&X509_free)> one(
        PEM_read_bio_X509(in.get(), nullptr, no_password, nullptr), &X509_free);
    if (one == nullptr || X509_STORE_add_cert(store.get(), one.get()) != 1) break;
    ++count;
  }
  const unsigned long error = ERR_peek_last_error();
  const bool at_end = ERR_GET_LIB(error) == ERR_LIB_PEM &&
                      ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (count == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, ": no PEM certificates of an authority in it"));
  }
  if (!at_end) {  // half of a file that is being written, for example
    return absl::InvalidArgumentError(
        absl::StrCat(who, ": certificate ", count + 1, " in it is damaged"));
  }
  Authority authority;
  const absl::MutexLock lock(&authority.trusted_->mutex);
  authority.trusted_->store = std::move(store);
  return authority;
}

std::shared_ptr<X509_STORE> Authority::Store() const {
  const absl::MutexLock lock(&trusted_->mutex);
  return trusted_->store;
}

void Authority::Become(const Authority& newer) {
  std::shared_ptr<X509_STORE> store = newer.Store();
  const absl::MutexLock lock(&trusted_->mutex);
  trusted_->store = std::move(store);
}

absl::Status Authority::Verify(absl::string_view certificate_der, absl::Time now) const {
  return VouchesUntil(certificate_der, now).status();
}

absl::StatusOr<absl::Time> Authority::VouchesUntil(absl::string_view certificate_der,
                                                   absl::Time now) const {
  const std::shared_ptr<X509_STORE> store = Store();
  const uint8_t* in = AsBytes(certificate_der).data();
  std::unique_ptr<X509, decltype(&X509_free)> certificate(
      d2i_X509(nullptr, &in, static_cast<long>(certificate_der.size())), &X509_free);
  std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(X509_STORE_CTX_new(),
                                                                          &X509_STORE_CTX_free);
  if (certificate == nullptr || context == nullptr ||
      X509_STORE_CTX_init(context.get(), store.get(), certificate.get(), nullptr) != 1) {
    return absl::PermissionDeniedError("no certificate");
  }
  X509_STORE_CTX_set_time(context.get(), 0, absl::ToTimeT(now));
  if (X509_verify_cert(context.get()) != 1) {
    return absl::PermissionDeniedError(
        absl::StrCat("the certificate is not trusted: ",
                     X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()))));
  }
  absl::Time until = absl::InfiniteFuture();
  const STACK_OF(X509)* chain = X509_STORE_CTX_get0_chain(context.get());
  for (int i = 1; i < sk_X509_num(chain); ++i) {
    std::tm last = {};
    if (ASN1_TIME_to_tm(X509_get0_notAfter(sk_X509_value(chain, i)), &last) != 1) continue;
    until = std::min(until, absl::FromTM(last, absl::UTCTimeZone()));
  }
  return until;
}

absl::StatusOr<SharePackageContents> PackageOpener::Open(
    const v1::SealedPackage& package, const StoreMeta& meta, const TransactionId& txn,
    absl::FunctionRef<absl::Status(absl::string_view certificate_der)> admit) const {
  if (absl::Status s = authority->Verify(package.signer(), clock->Now()); !s.ok()) {
    return absl::PermissionDeniedError(
        absl::StrCat("the signer of the share package: ", s.message()));
  }
  RETURN_IF_ERROR(admit(package.signer()));
  RETURN_IF_ERROR(
      enroll::VerifyPackageSignature(package.signer(), package.sealed(), package.signature()));
  ASSIGN_OR_RETURN(SecretBytes plain, key->Unseal(package.sealed()));
  ASSIGN_OR_RETURN(SharePackageContents contents, DecodeSharePackage(plain, meta.identity.realm));
  RETURN_IF_ERROR(CheckBinding(contents, meta, txn));
  return contents;
}

}  // namespace mpckdc
