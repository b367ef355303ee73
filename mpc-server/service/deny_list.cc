// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/deny_list.h"

#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/package/certificate.h"

namespace mpckdc {
namespace {

bool ParseFingerprint(absl::string_view text, Fingerprint* out) {
  const std::string hex = absl::StrReplaceAll(text, {{":", ""}});
  if (hex.size() != 2 * out->size() ||
      !std::all_of(hex.begin(), hex.end(), [](char c) { return absl::ascii_isxdigit(c); })) {
    return false;
  }
  const std::string bytes = absl::HexStringToBytes(hex);
  std::copy(bytes.begin(), bytes.end(), out->begin());
  return true;
}

}  // namespace

Fingerprint FingerprintOf(absl::string_view der) {
  Fingerprint fingerprint;
  SHA256(reinterpret_cast<const uint8_t*>(der.data()), der.size(), fingerprint.data());
  return fingerprint;
}

std::string FingerprintText(const Fingerprint& fingerprint) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(fingerprint.data()), fingerprint.size()));
}

absl::Status DenyList::Load() {
  std::set<Fingerprint> denied;
  if (!path_.empty()) {
    ASSIGN_OR_RETURN(std::string text, enroll::ReadSmallFile(path_));
    int number = 0;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number;
      line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
      if (line.empty()) continue;
      Fingerprint fingerprint;
      if (!ParseFingerprint(line, &fingerprint)) {
        return absl::InvalidArgumentError(absl::StrCat(
            path_, ":", number, ": not a SHA-256 fingerprint (64 hexadecimal digits)"));
      }
      denied.insert(fingerprint);
    }
  }
  absl::MutexLock lock(&mutex_);
  denied_ = std::move(denied);
  ++generation_;
  return absl::OkStatus();
}

bool DenyList::Denies(const Fingerprint& fingerprint) const {
  absl::MutexLock lock(&mutex_);
  return denied_.contains(fingerprint);
}

uint64_t DenyList::generation() const {
  absl::MutexLock lock(&mutex_);
  return generation_;
}

size_t DenyList::size() const {
  absl::MutexLock lock(&mutex_);
  return denied_.size();
}

}  // namespace mpckdc
