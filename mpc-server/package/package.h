// SPDX-License-Identifier: Apache-2.0
//
// From a key in the clear to three sealed packages, one per server; bytes in
// doc/share_package_format.md. Splitting only: nothing here can join shares.
#ifndef MPC_SERVER_PACKAGE_PACKAGE_H_
#define MPC_SERVER_PACKAGE_PACKAGE_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/package/certificate.h"
#include "proto/admin.pb.h"

namespace mpckdc {

// ---- Between the KeyInfo of proto/admin.proto and the one of key/ ----
//
// Sizes of fields are checked here, so that nothing else meets a handle that is not 16 bytes long.

// 16 bytes, or an error that says whose (`what`).
absl::StatusOr<std::array<uint8_t, 16>> Bytes16(absl::string_view bytes, absl::string_view what);

// Checks everything that a server may know about a key before it has shares of it.
absl::StatusOr<KeyInfo> KeyInfoFromProto(const v1::KeyInfo& in, absl::string_view realm);
void KeyInfoToProto(const KeyInfo& in, v1::KeyInfo* out);
absl::StatusOr<Gate> GateFromProto(v1::Gate gate);

}  // namespace mpckdc

namespace mpckdc::enroll {

// The versions of SharePackage: that of one key every server reads.
inline constexpr uint32_t kOneKeyVersion = 1;
inline constexpr uint32_t kManyKeysVersion = 2;

inline constexpr size_t kHandleBytes = 16;
inline constexpr size_t kTransactionBytes = 16;
inline constexpr size_t kPackageKeyBytes = 32;  // X25519

// Where the packages go: what the three servers said about themselves.
struct PackageTarget {
  std::string realm;
  uint64_t epoch = 0;
  std::array<std::string, 3> package_keys;  // by party, kPackageKeyBytes each
};

using SealedTriple = std::array<v1::SealedPackage, 3>;  // by party

// A random handle, or transaction or request identifier: 16 bytes.
std::string RandomIdentifier();

// What every server will check of a KeyInfo; see the error texts.
absl::Status CheckKeyInfo(const v1::KeyInfo& info, absl::string_view realm);

// A key in the clear that is to be shared: `base` is 16 or 32 bytes, as info.enctype() says.
struct KeyToShare {
  v1::KeyInfo info;
  SecretBytes base;
};

// The three packages' sealed bytes, without a signature, by party.
using SealedBytes = std::array<std::string, 3>;

// Derives the usage keys of each base key for the class in its info, splits base keys and usage keys
// freshly, and seals them together: one package per server, of 1 to kMaxKeysPerPackage keys.
absl::StatusOr<SealedBytes> SealPackages(absl::Span<const KeyToShare> keys,
                                         const PackageTarget& target,
                                         absl::string_view transaction);
// The administrator's signature, which may be made on another machine than the sealing.
absl::StatusOr<SealedTriple> SignPackages(SealedBytes sealed, const PackageSigner& signer);
// Both.
absl::StatusOr<SealedTriple> BuildPackages(absl::Span<const KeyToShare> keys,
                                           const PackageTarget& target,
                                           absl::string_view transaction,
                                           const PackageSigner& signer);

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_PACKAGE_PACKAGE_H_
