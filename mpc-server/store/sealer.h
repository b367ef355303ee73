// SPDX-License-Identifier: Apache-2.0
//
// Seals and opens the records of one store (record_format.h: envelope, additional data). Opening
// either returns exactly what was sealed under the same realm, party, cluster, epoch, kind and
// name, or fails.
#ifndef MPC_SERVER_STORE_SEALER_H_
#define MPC_SERVER_STORE_SEALER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/store/record_format.h"
#include "mpc-server/store/store_keys.h"

namespace mpckdc {

// What a store belongs to. It never changes once written.
struct StoreIdentity {
  std::string realm;
  int party = 0;  // 0, 1 or 2
  uint16_t cluster = 0;

  friend bool operator==(const StoreIdentity&, const StoreIdentity&) = default;
};

struct StoreMeta {
  StoreIdentity identity;
  uint64_t epoch = 1;        // share epoch: all three servers must have the same
  bool initialised = false;  // InitRealm was called
  uint32_t format_version = 0;
};

class Sealer {
 public:
  // `random` must outlive the sealer and be thread-safe.
  Sealer(StoreKeys keys, StoreIdentity identity, RandomSource* random);

  // A key for the epoch must exist.
  std::string Seal(record_format::Kind kind, uint64_t epoch, absl::string_view name,
                   absl::Span<const uint8_t> plain) const;
  // InvalidArgument says why the record does not open; the caller names the record.
  absl::StatusOr<SecretBytes> Open(record_format::Kind kind, absl::string_view name,
                                   absl::Span<const uint8_t> record) const;

  // The epoch whose key a sealed record names, which Open() authenticates.
  static uint64_t EpochOf(absl::Span<const uint8_t> record);

  // The identity record: authenticated, not encrypted.
  std::string SealIdentity(const StoreMeta& meta) const;
  absl::Status CheckIdentity(absl::Span<const uint8_t> record) const;
  // What the record claims, read without a key.
  static absl::StatusOr<StoreMeta> ReadIdentity(absl::Span<const uint8_t> record);

  bool HasKey(uint64_t epoch) const { return keys_.ForEpoch(epoch) != nullptr; }
  const StoreIdentity& identity() const { return identity_; }
  std::vector<uint64_t> KeyEpochs() const { return keys_.Epochs(); }
  const std::string& key_origin() const { return keys_.origin(); }

  absl::Status CheckKeysChangeable() const { return keys_.CheckChangeable(); }
  // A new epoch's key, before anything is sealed under it; the end of those of older epochs.
  // Durable.
  absl::Status AddKey(uint64_t epoch) { return keys_.Add(epoch, *random_); }
  // The same with a key that another machine of the party drew.
  absl::Status AdoptKey(uint64_t epoch, const SecretBytes& key) { return keys_.Adopt(epoch, key); }
  absl::Status EraseKeysBefore(uint64_t epoch) { return keys_.EraseBefore(epoch); }
  absl::Status EraseKeysAfter(uint64_t epoch) { return keys_.EraseAfter(epoch); }
  // One that nobody has yet; it is in no key file.
  std::shared_ptr<const SecretBytes> DrawKey() const {
    auto key = std::make_shared<SecretBytes>(record_format::kKeyBytes);
    random_->Fill(absl::MakeSpan(*key));
    return key;
  }

 private:
  std::string AdditionalData(absl::Span<const uint8_t> header, absl::string_view name) const;

  StoreKeys keys_;
  const StoreIdentity identity_;
  RandomSource* const random_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_SEALER_H_
