// SPDX-License-Identifier: Apache-2.0
//
// Opens a sealed share package, or says why not. In this order: the signer's certificate comes from
// our authority, and whoever calls admits it; the signature; the seal, with this server's package
// key; the contents; and that they are for this realm, party, epoch and transaction.
#ifndef MPC_SERVER_PACKAGE_PACKAGE_OPEN_H_
#define MPC_SERVER_PACKAGE_PACKAGE_OPEN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/store/share_store.h"
#include "proto/admin.pb.h"

typedef struct x509_store_st X509_STORE;

namespace mpckdc {

// This server's X25519 key pair. The secret key lives in the share store, sealed.
class PackageKey {
 public:
  // Makes the pair at the first start.
  static absl::StatusOr<PackageKey> LoadOrCreate(ShareStore& store, RandomSource& random);

  const std::string& public_key() const { return public_key_; }
  // InvalidArgument unless `sealed` was sealed to this key and is unchanged.
  absl::StatusOr<SecretBytes> Unseal(absl::string_view sealed) const;

 private:
  SecretBytes secret_key_;
  std::string public_key_;
};

// The authority whose certificates are trusted, from a PEM file. It may be several, as while one
// takes over from another; those between it and the certificates that it issued belong there too.
// Copies are one and the same.
class Authority {
 public:
  static absl::StatusOr<Authority> Load(const std::string& ca_file);
  static absl::StatusOr<Authority> FromPem(absl::string_view pem, absl::string_view who);
  // The certificate's chain to the authority, and its dates, at `now`.
  absl::Status Verify(absl::string_view certificate_der, absl::Time now) const;
  // The same, and until when all that vouch for the certificate are good.
  absl::StatusOr<absl::Time> VouchesUntil(absl::string_view certificate_der, absl::Time now) const;
  // From now on this is `newer`. Beside Verify() on other threads.
  void Become(const Authority& newer);

 private:
  struct Trusted {
    absl::Mutex mutex;
    std::shared_ptr<X509_STORE> store ABSL_GUARDED_BY(mutex);
  };

  std::shared_ptr<X509_STORE> Store() const;

  std::shared_ptr<Trusted> trusted_ = std::make_shared<Trusted>();
};

struct SharePackageContents {
  uint32_t version = 0;
  std::string realm;
  uint32_t party = 0;
  uint64_t epoch = 0;
  std::string transaction;
  std::vector<KeyRecord> records;  // at least one
};

// InvalidArgument for anything but one well-formed package of version 1 or 2 for keys of `realm`.
// What the package is bound to is the caller's to compare.
absl::StatusOr<SharePackageContents> DecodeSharePackage(absl::Span<const uint8_t> plain,
                                                        absl::string_view realm);

struct PackageOpener {  // not owned; must outlive the opener
  const PackageKey* key = nullptr;
  const Authority* authority = nullptr;
  Clock* clock = nullptr;

  // `admit` says of the signer's certificate, once the authority vouches for it, whether its holder
  // may sign packages here: the role, and that nobody has barred it.
  // The shares may be of the epoch before that of `meta`: whether that still goes is the store's to
  // say, which may be amid a refresh (ShareStore::Stage).
  absl::StatusOr<SharePackageContents> Open(
      const v1::SealedPackage& package, const StoreMeta& meta, const TransactionId& txn,
      absl::FunctionRef<absl::Status(absl::string_view certificate_der)> admit) const;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_PACKAGE_PACKAGE_OPEN_H_
