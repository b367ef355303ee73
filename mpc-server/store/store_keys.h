// SPDX-License-Identifier: Apache-2.0
//
// The keys that seal a share store at rest, one per share epoch, read from a key file or a systemd
// credential. Removing an epoch's line makes that epoch's records, backups included, unreadable.
//
// The file: one line per epoch, `EPOCH KEY`, the key as 64 hexadecimal digits; empty lines and
// lines that start with '#' are skipped. A refresh (epochs.h) adds a line and, when no record needs
// it any more, removes the old one: the file is written anew, comments and all, under another name
// that then replaces it, and what the old file held is written over first. A copy-on-write file
// system or a flash disk may keep it all the same.
#ifndef MPC_SERVER_STORE_STORE_KEYS_H_
#define MPC_SERVER_STORE_STORE_KEYS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/base/secret.h"

namespace mpckdc {

class StoreKeys {
 public:
  StoreKeys(const StoreKeys& other) { *this = other; }
  StoreKeys& operator=(const StoreKeys& other);  // what either changes later the other does not see
  StoreKeys(StoreKeys&&) = default;
  StoreKeys& operator=(StoreKeys&&) = default;

  // Refuses a file that anybody but its owner may read or write, or that another user owns.
  static absl::StatusOr<StoreKeys> Load(const std::string& path);
  // For a file in $CREDENTIALS_DIRECTORY, whose access systemd has set.
  static absl::StatusOr<StoreKeys> LoadCredential(const std::string& name);
  // Creates the file (mode 0600, durable) with a fresh key for epoch 1. AlreadyExists if it exists.
  static absl::Status Create(const std::string& path, RandomSource& random);
  // `origin` names the text in errors.
  static absl::StatusOr<StoreKeys> Parse(absl::Span<const uint8_t> text, absl::string_view origin);

  // Where changed keys are written, durably; Load() sets it to the file. Without one they live in
  // memory only.
  using Saver = std::function<absl::Status(absl::Span<const uint8_t> text)>;
  void SetSaver(Saver saver) { saver_ = std::move(saver); }

  // Whether they can be changed, as far as can be told beforehand; the error says what to do.
  absl::Status CheckChangeable() const { return checker_ ? checker_() : absl::OkStatus(); }

  // The epoch's key of 32 bytes, or nullptr. What was returned stays good.
  std::shared_ptr<const SecretBytes> ForEpoch(uint64_t epoch) const;
  const std::string& origin() const { return origin_; }
  std::vector<uint64_t> Epochs() const;  // of which there is a key

  // Durable when they return. Thread-safe, as ForEpoch() is.
  absl::Status Add(uint64_t epoch, RandomSource& random);  // a fresh key; nothing if it has one
  // One that another machine of the party drew; it takes the place of one of this machine's, under
  // which nothing was sealed.
  absl::Status Adopt(uint64_t epoch, const SecretBytes& key);
  absl::Status EraseBefore(uint64_t epoch);
  absl::Status EraseAfter(uint64_t epoch);  // of epochs that were prepared and not entered

 private:
  using Keys = std::map<uint64_t, std::shared_ptr<const SecretBytes>>;
  // Whoever changes them holds `changing` until the new ones are on the disk; `mutex`, for which every
  // record that is opened or sealed waits, only to read them or to take the new ones over.
  struct Held {
    absl::Mutex changing ABSL_ACQUIRED_BEFORE(mutex);
    absl::Mutex mutex;
    Keys keys ABSL_GUARDED_BY(mutex);
  };
  StoreKeys() = default;
  Keys Copy() const;
  absl::Status EraseWhere(absl::FunctionRef<bool(uint64_t)> goes);
  absl::Status Replace(Keys keys) ABSL_EXCLUSIVE_LOCKS_REQUIRED(held_->changing);

  std::string origin_;
  Saver saver_;
  std::function<absl::Status()> checker_;
  std::unique_ptr<Held> held_ = std::make_unique<Held>();
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_STORE_KEYS_H_
