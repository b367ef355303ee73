// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/package/package.h"

#include <sodium.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/string_to_key.h"
#include "mpc-server/key/usage_keys.h"
#include "mpc-server/package/key_info_proto.h"
#include "mpc-server/package/share_package_encoder.h"
#include "mpc-server/package/share_split.h"

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

std::array<KeyShareParts, 3> SplitKey(const KeyToShare& key,
                                      const std::vector<ExpandedUsage>& usages) {
  std::array<KeyShareParts, 3> parts;
  std::array<SplitShare, 3> base_shares = Split(key.base);
  for (int party = 0; party < 3; ++party) {
    parts[party] = {&key.info, std::move(base_shares[party]), {}};
  }
  for (const ExpandedUsage& usage : usages) {
    std::array<SplitShare, 3> round_keys = Split(usage.round_keys);
    std::array<SplitShare, 3> h = Split(usage.h);
    std::array<SplitShare, 3> mac_states = Split(usage.mac_states);
    for (int party = 0; party < 3; ++party) {
      parts[party].usages.push_back({usage.usage, std::move(round_keys[party]),
                                     std::move(h[party]), std::move(mac_states[party])});
    }
  }
  return parts;
}

}  // namespace

std::string RandomIdentifier() {
  if (sodium_init() < 0) std::abort();
  std::string identifier(kHandleBytes, '\0');
  randombytes_buf(identifier.data(), identifier.size());
  return identifier;
}

absl::Status CheckKeyInfo(const v1::KeyInfo& info, absl::string_view realm) {
  absl::Status status = KeyInfoFromProto(info, realm).status();
  if (info.kvno() == 0) status.Update(absl::InvalidArgumentError("key version 0"));
  if (status.ok() || absl::StartsWith(status.message(), info.principal())) return status;
  return absl::Status(status.code(), absl::StrCat(info.principal(), ": ", status.message()));
}

absl::StatusOr<SealedTriple> BuildPackages(absl::Span<const KeyToShare> keys,
                                           const PackageTarget& target,
                                           absl::string_view transaction,
                                           const PackageSigner& signer) {
  if (keys.empty() || keys.size() > limits::kMaxKeysPerPackage) {
    return absl::InvalidArgumentError(absl::StrCat("1 to ", limits::kMaxKeysPerPackage,
                                                   " keys in one package, not ", keys.size()));
  }
  RETURN_IF_ERROR(CheckTarget(target, transaction));
  std::array<SharePackageParts, 3> parts;
  for (int party = 0; party < 3; ++party) {
    parts[party] = {target.realm, party, target.epoch, std::string(transaction), {}};
  }
  for (const KeyToShare& key : keys) {
    RETURN_IF_ERROR(CheckKeyToShare(key, target));
    ASSIGN_OR_RETURN(
        std::vector<ExpandedUsage> usages,
        ExpandUsages(key.info.enctype(), key.base, static_cast<KeyClass>(key.info.key_class())));
    std::array<KeyShareParts, 3> split = SplitKey(key, usages);
    for (int party = 0; party < 3; ++party) parts[party].keys.push_back(std::move(split[party]));
  }
  SealedTriple packages;
  for (int party = 0; party < 3; ++party) {
    ASSIGN_OR_RETURN(std::string sealed,
                     Seal(EncodeSharePackage(parts[party]), target.package_keys[party]));
    ASSIGN_OR_RETURN(std::string signature, signer.Sign(sealed));
    packages[party].set_sealed(std::move(sealed));
    packages[party].set_signature(std::move(signature));
    packages[party].set_signer(signer.certificate_der());
  }
  return packages;
}

absl::StatusOr<SealedTriple> BuildPackages(const v1::KeyInfo& info,
                                           absl::Span<const uint8_t> base,
                                           const PackageTarget& target,
                                           absl::string_view transaction,
                                           const PackageSigner& signer) {
  const KeyToShare key = {info, SecretBytes(base.begin(), base.end())};
  return BuildPackages(absl::MakeConstSpan(&key, 1), target, transaction, signer);
}

}  // namespace mpckdc::enroll
