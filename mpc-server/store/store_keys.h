// SPDX-License-Identifier: Apache-2.0
//
// The keys that seal a share store at rest, one per share epoch, read from a key file or a systemd
// credential. Removing an epoch's line makes that epoch's records, backups included, unreadable.
//
// The file: one line per epoch, `EPOCH KEY`, the key as 64 hexadecimal digits; empty lines and
// lines that start with '#' are skipped.
#ifndef MPC_SERVER_STORE_STORE_KEYS_H_
#define MPC_SERVER_STORE_STORE_KEYS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/base/secret.h"

namespace mpckdc {

class StoreKeys {
 public:
  // Refuses a file that anybody but its owner may read or write, or that another user owns.
  static absl::StatusOr<StoreKeys> Load(const std::string& path);
  // For a file in $CREDENTIALS_DIRECTORY, whose access systemd has set.
  static absl::StatusOr<StoreKeys> LoadCredential(const std::string& name);
  // Creates the file (mode 0600, durable) with a fresh key for epoch 1. AlreadyExists if it exists.
  static absl::Status Create(const std::string& path, RandomSource& random);
  // `origin` names the text in errors.
  static absl::StatusOr<StoreKeys> Parse(absl::Span<const uint8_t> text, absl::string_view origin);

  // The epoch's key of 32 bytes, or nullptr.
  const SecretBytes* ForEpoch(uint64_t epoch) const;
  const std::string& origin() const { return origin_; }

 private:
  std::string origin_;
  std::map<uint64_t, SecretBytes> keys_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_STORE_KEYS_H_
