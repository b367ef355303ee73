// SPDX-License-Identifier: Apache-2.0
//
// Certificates that are refused although they are valid: SHA-256 fingerprints of the DER form, one
// per line, hexadecimal with or without colons, '#' starts a comment.
#ifndef MPC_SERVER_SERVICE_DENY_LIST_H_
#define MPC_SERVER_SERVICE_DENY_LIST_H_

#include <array>
#include <cstdint>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace mpckdc {

using Fingerprint = std::array<uint8_t, 32>;

Fingerprint FingerprintOf(absl::string_view der);
std::string FingerprintText(const Fingerprint& fingerprint);

class DenyList {
 public:
  // `path` empty: nothing is denied.
  explicit DenyList(std::string path) : path_(std::move(path)) {}

  // Reads the file. On an error (FILE:LINE) the list in force stays.
  absl::Status Load();
  bool Denies(const Fingerprint& fingerprint) const;
  // Rises with each successful Load().
  uint64_t generation() const;
  size_t size() const;

 private:
  const std::string path_;
  mutable absl::Mutex mutex_;
  std::set<Fingerprint> denied_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_DENY_LIST_H_
