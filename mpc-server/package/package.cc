// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/package/package.h"

#include <sodium.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/string_to_key.h"
#include "mpc-server/key/usage_keys.h"

namespace mpckdc {

static_assert(static_cast<int>(KeyClass::kService) == v1::KEY_CLASS_SERVICE &&
              static_cast<int>(KeyClass::kTgsOld) == v1::KEY_CLASS_TGS_OLD &&
              static_cast<int>(Gate::kNone) == v1::GATE_NONE);

absl::StatusOr<std::array<uint8_t, 16>> Bytes16(absl::string_view bytes, absl::string_view what) {
  std::array<uint8_t, 16> out;
  if (bytes.size() != out.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", bytes.size(), " bytes instead of ", out.size()));
  }
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

absl::StatusOr<Gate> GateFromProto(v1::Gate gate) {
  if (gate < v1::GATE_TIMESTAMP || gate > v1::GATE_TIMESTAMP_OR_PKINIT) {
    return absl::InvalidArgumentError(
        "the gate must be timestamp, pkinit, timestamp-or-pkinit, kdc-trusted or none");
  }
  return static_cast<Gate>(gate);
}

absl::StatusOr<KeyClass> KeyClassFromProto(v1::KeyClass key_class) {
  const bool known = (key_class >= v1::KEY_CLASS_USER && key_class <= v1::KEY_CLASS_SERVICE) ||
                     key_class == v1::KEY_CLASS_TGS_OLD;
  if (!known) {
    return absl::InvalidArgumentError("unknown key class");
  }
  return static_cast<KeyClass>(key_class);
}

absl::StatusOr<KeyInfo> KeyInfoFromProto(const v1::KeyInfo& in, absl::string_view realm) {
  KeyInfo info;
  ASSIGN_OR_RETURN(info.handle, Bytes16(in.handle(), "a key handle"));
  info.principal = in.principal();
  info.principal_id = PrincipalIdOf(info.principal);
  info.kvno = in.kvno();
  info.enctype = in.enctype();
  info.salt_type = in.salt_type();
  info.salt = in.salt();
  ASSIGN_OR_RETURN(info.key_class, KeyClassFromProto(in.key_class()));
  ASSIGN_OR_RETURN(info.gate, GateFromProto(in.gate()));
  RETURN_IF_ERROR(CheckNewKeyInfo(info));
  if (!IsOfRealm(info.principal, realm) && !IsTgtFromOtherRealm(info.principal, realm)) {
    return absl::InvalidArgumentError(
        absl::StrCat(info.principal, " is not a principal of realm ", realm));
  }
  const bool is_tgs = absl::StartsWith(info.principal, "krbtgt/");
  if (is_tgs != IsTgsClass(info.key_class)) {
    return absl::InvalidArgumentError(
        absl::StrCat(info.principal, ": krbtgt principals, and only they, have the key class TGS"));
  }
  return info;
}

void KeyInfoToProto(const KeyInfo& in, v1::KeyInfo* out) {
  out->set_handle(std::string(AsText(in.handle)));
  out->set_principal(in.principal);
  out->set_kvno(in.kvno);
  out->set_enctype(in.enctype);
  out->set_salt_type(in.salt_type);
  out->set_salt(in.salt);
  out->set_key_class(static_cast<v1::KeyClass>(in.key_class));
  out->set_gate(static_cast<v1::Gate>(in.gate));
  if (in.before_cammac) out->set_before_cammac(true);
}

}  // namespace mpckdc

namespace mpckdc::enroll {
namespace {

static_assert(kPackageKeyBytes == crypto_box_PUBLICKEYBYTES);

absl::Status CheckTarget(const PackageTarget& target, absl::string_view transaction) {
  if (transaction.size() != kTransactionBytes) {
    return absl::InvalidArgumentError("a transaction identifier has 16 bytes");
  }
  for (int party = 0; party < 3; ++party) {
    if (target.package_keys[party].size() != kPackageKeyBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("party ", party, " gave no package key of ", kPackageKeyBytes, " bytes"));
    }
    if (target.package_keys[party] == target.package_keys[(party + 1) % 3]) {
      return absl::InvalidArgumentError("two parties gave the same package key");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Seal(const SecretBytes& plain, absl::string_view package_key) {
  std::string sealed(plain.size() + crypto_box_SEALBYTES, '\0');
  if (crypto_box_seal(reinterpret_cast<unsigned char*>(sealed.data()), plain.data(), plain.size(),
                      reinterpret_cast<const unsigned char*>(package_key.data())) != 0) {
    return absl::InvalidArgumentError("a party's package key is not a usable X25519 key");
  }
  return sealed;
}

absl::Status CheckKeyToShare(const KeyToShare& key, const PackageTarget& target) {
  RETURN_IF_ERROR(CheckKeyInfo(key.info, target.realm));
  if (key.base.size() == BaseKeyBytes(key.info.enctype())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      key.info.principal(), ": a key of ", EnctypeName(key.info.enctype()), " has ",
      BaseKeyBytes(key.info.enctype()), " bytes, not ", key.base.size()));
}

// The bytes of a share package, or of a message in it, for the three parties at once
// (proto/admin.proto, SharePackage). Not by the generated class, which would keep the shares in
// ordinary memory; a test compares with its bytes. A field is a varint (number << 3 | type), then
// its value.
class ShareWriter {
 public:
  // Absent when zero, as proto3 does.
  void Number(uint32_t field, const std::array<uint64_t, 3>& values) {
    for (int party = 0; party < 3; ++party) {
      if (values[party] == 0) continue;
      Varint(party, field << 3 | kVarint);
      Varint(party, values[party]);
    }
  }

  // Absent when empty.
  void Public(uint32_t field, absl::string_view value) {
    for (int party = 0; party < 3 && !value.empty(); ++party) Append(party, field, AsBytes(value));
  }

  // Each party's replicated share of `value` v: x in `field`, a in the next one, with
  // v = x_{i-1} ^ a_i and x_0 ^ x_1 ^ x_2 = 0. Fresh randomness for every call. Absent when empty.
  void Shared(uint32_t field, const SecretBytes& value) {
    if (value.empty()) return;
    std::array<SecretBytes, 3> x;
    for (SecretBytes& share : x) share.resize(value.size());
    randombytes_buf(x[0].data(), value.size());
    randombytes_buf(x[1].data(), value.size());
    for (size_t i = 0; i < value.size(); ++i) x[2][i] = x[0][i] ^ x[1][i];
    for (int party = 0; party < 3; ++party) {
      SecretBytes a = x[(party + 2) % 3];
      for (size_t i = 0; i < value.size(); ++i) a[i] ^= value[i];
      Append(party, field, x[party]);
      Append(party, field + 1, a);
    }
  }

  // A message of a repeated field is present even when empty.
  void Message(uint32_t field, const ShareWriter& message) {
    for (int party = 0; party < 3; ++party) Append(party, field, message.bytes(party));
  }

  const SecretBytes& bytes(int party) const { return bytes_[party]; }

 private:
  static constexpr uint32_t kVarint = 0;
  static constexpr uint32_t kLengthDelimited = 2;

  void Varint(int party, uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_[party].push_back(static_cast<uint8_t>(value | 0x80));
    bytes_[party].push_back(static_cast<uint8_t>(value));
  }

  void Append(int party, uint32_t field, absl::Span<const uint8_t> value) {
    Varint(party, field << 3 | kLengthDelimited);
    Varint(party, value.size());
    AppendBytes(bytes_[party], value);
  }

  std::array<SecretBytes, 3> bytes_;
};

void WriteKey(const KeyToShare& key, const std::vector<ExpandedUsage>& usages, ShareWriter* out) {
  out->Public(6, key.info.SerializeAsString());
  out->Shared(7, key.base);
  for (const ExpandedUsage& usage : usages) {
    ShareWriter message;
    message.Number(1, {usage.usage, usage.usage, usage.usage});
    message.Shared(2, usage.round_keys);
    message.Shared(4, usage.h);           // gcm
    message.Shared(6, usage.mac_states);  // 17 to 20
    out->Message(9, message);
  }
}

}  // namespace

std::string RandomIdentifier() {
  if (sodium_init() < 0) std::abort();
  std::string identifier(kHandleBytes, '\0');
  randombytes_buf(identifier.data(), identifier.size());
  return identifier;
}

absl::Status CheckKeyInfo(const v1::KeyInfo& info, absl::string_view realm) {
  if (info.principal().empty()) {
    return absl::InvalidArgumentError("a key without a principal: its name is empty");
  }
  absl::Status status = KeyInfoFromProto(info, realm).status();
  if (info.kvno() == 0) status.Update(absl::InvalidArgumentError("key version 0"));
  if (status.ok() || absl::StartsWith(status.message(), info.principal())) return status;
  return absl::Status(status.code(), absl::StrCat(info.principal(), ": ", status.message()));
}

absl::StatusOr<SealedBytes> SealPackages(absl::Span<const KeyToShare> keys,
                                         const PackageTarget& target,
                                         absl::string_view transaction) {
  if (keys.empty() || keys.size() > limits::kMaxKeysPerPackage) {
    return absl::InvalidArgumentError(absl::StrCat("1 to ", limits::kMaxKeysPerPackage,
                                                   " keys in one package, not ", keys.size()));
  }
  RETURN_IF_ERROR(CheckTarget(target, transaction));
  if (sodium_init() < 0) std::abort();  // no randomness: nothing may leave
  const bool one = keys.size() == 1;
  const uint64_t version = one ? kOneKeyVersion : kManyKeysVersion;
  ShareWriter out;
  out.Number(1, {version, version, version});
  out.Public(2, target.realm);
  out.Number(3, {0, 1, 2});  // the party
  out.Number(4, {target.epoch, target.epoch, target.epoch});
  out.Public(5, transaction);
  for (const KeyToShare& key : keys) {
    RETURN_IF_ERROR(CheckKeyToShare(key, target));
    ASSIGN_OR_RETURN(
        std::vector<ExpandedUsage> usages,
        ExpandUsages(key.info.enctype(), key.base, static_cast<KeyClass>(key.info.key_class())));
    ShareWriter message;
    WriteKey(key, usages, one ? &out : &message);
    if (!one) out.Message(10, message);
  }
  SealedBytes sealed;
  for (int party = 0; party < 3; ++party) {
    ASSIGN_OR_RETURN(sealed[party], Seal(out.bytes(party), target.package_keys[party]));
  }
  return sealed;
}

absl::StatusOr<SealedTriple> SignPackages(SealedBytes sealed, const PackageSigner& signer) {
  SealedTriple packages;
  for (int party = 0; party < 3; ++party) {
    ASSIGN_OR_RETURN(std::string signature, signer.Sign(sealed[party]));
    packages[party].set_sealed(std::move(sealed[party]));
    packages[party].set_signature(std::move(signature));
    packages[party].set_signer(signer.certificate_der());
  }
  return packages;
}

absl::StatusOr<SealedTriple> BuildPackages(absl::Span<const KeyToShare> keys,
                                           const PackageTarget& target,
                                           absl::string_view transaction,
                                           const PackageSigner& signer) {
  ASSIGN_OR_RETURN(SealedBytes sealed, SealPackages(keys, target, transaction));
  return SignPackages(std::move(sealed), signer);
}

}  // namespace mpckdc::enroll
