// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/package/package_open.h"

#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <sodium.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/package/package_signer.h"
#include "mpc-server/package/share_package_decoder.h"

namespace mpckdc {
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
  if (package.epoch != meta.epoch) return wrong("epoch", package.epoch, meta.epoch);
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
    secret = SecretBytes(crypto_box_SECRETKEYBYTES);
    random.Fill(absl::MakeSpan(*secret));
    RETURN_IF_ERROR(store.WriteItem(kItemName, *secret));
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
  Authority authority;
  authority.store_ = std::shared_ptr<X509_STORE>(X509_STORE_new(), &X509_STORE_free);
  if (authority.store_ == nullptr ||
      X509_STORE_load_file(authority.store_.get(), ca_file.c_str()) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(ca_file, ": no PEM certificates of an authority in it"));
  }
  return authority;
}

absl::Status Authority::Verify(absl::string_view certificate_der, absl::Time now) const {
  const uint8_t* in = AsBytes(certificate_der).data();
  std::unique_ptr<X509, decltype(&X509_free)> certificate(
      d2i_X509(nullptr, &in, static_cast<long>(certificate_der.size())), &X509_free);
  std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(X509_STORE_CTX_new(),
                                                                          &X509_STORE_CTX_free);
  if (certificate == nullptr || context == nullptr ||
      X509_STORE_CTX_init(context.get(), store_.get(), certificate.get(), nullptr) != 1) {
    return absl::PermissionDeniedError("no certificate");
  }
  X509_STORE_CTX_set_time(context.get(), 0, absl::ToTimeT(now));
  if (X509_verify_cert(context.get()) == 1) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("the certificate is not trusted: ",
                   X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()))));
}

absl::StatusOr<std::vector<KeyRecord>> PackageOpener::Open(
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
  return std::move(contents.records);
}

}  // namespace mpckdc
