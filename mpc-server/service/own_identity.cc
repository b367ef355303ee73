// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/own_identity.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/package/certificate.h"
#include "mpc-server/service/deny_list.h"

namespace mpckdc {
namespace {

constexpr size_t kMaxKeyBytes = 64 << 10;

absl::Status CheckKeyAccess(const std::string& file) {
  struct stat info;
  if (stat(file.c_str(), &info) != 0) return absl::OkStatus();  // reading it says why
  if ((info.st_mode & 027) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrFormat("others may access the private key %s (mode %04o): run chmod 0600 %s", file,
                      info.st_mode & 07777, file));
}

absl::Status CheckKey(const OwnIdentity& own, const Config::Identity& files) {
  const absl::string_view key(reinterpret_cast<const char*>(own.key.data()), own.key.size());
  const absl::Status status = enroll::CheckKeyBelongs(own.certificate, key);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("the private key ", files.key,
                                                 " does not belong to the certificate ",
                                                 files.certificate, ": ", status.message()));
}

absl::Status CheckName(const enroll::CertificateFacts& facts, const Config& config) {
  absl::StatusOr<enroll::RoleName> name = enroll::ParseRoleName(facts.uri);
  if (!name.ok()) return name.status();
  const std::string& want = config.peers.names[static_cast<size_t>(config.party)];
  if (name->name == want) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      config.identity.certificate, " is the certificate of peer ", name->name, "; party ",
      config.party, " is configured as peer ", want));
}

}  // namespace

absl::StatusOr<OwnIdentity> CheckOwnIdentity(const Config& config, absl::Time now) {
  const Config::Identity& identity = config.identity;
  if (identity.key.empty()) {
    return absl::FailedPreconditionError(
        "[identity] names a credential, and systemd passed none (no $CREDENTIALS_DIRECTORY): start "
        "the server by its unit, which has LoadCredential= and checks the configuration first");
  }
  OwnIdentity own;
  ASSIGN_OR_RETURN(own.certificate, enroll::ReadSmallFile(identity.certificate));
  const absl::StatusOr<enroll::CertificateFacts> facts =
      enroll::ParseCertificate(own.certificate);
  if (!facts.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(identity.certificate, ": ", facts.status().message()));
  }
  RETURN_IF_ERROR(
      enroll::CheckCertificate(*facts, identity.certificate, config.realm, "peer", now));
  RETURN_IF_ERROR(CheckName(*facts, config));
  RETURN_IF_ERROR(CheckKeyAccess(identity.key));
  ASSIGN_OR_RETURN(own.key, enroll::ReadWholeFile(identity.key, kMaxKeyBytes));
  RETURN_IF_ERROR(CheckKey(own, identity));
  ASSIGN_OR_RETURN(own.ca, enroll::ReadSmallFile(identity.ca));
  ASSIGN_OR_RETURN(own.authority, Authority::FromPem(own.ca, identity.ca));
  const absl::StatusOr<absl::Time> until = own.authority.VouchesUntil(facts->der, now);
  if (!until.ok()) {
    return absl::PermissionDeniedError(
        absl::StrCat(identity.certificate, ": ", until.status().message(), " (authority: ",
                     identity.ca, "; the certificates between it and this one belong there, too)"));
  }
  own.fingerprint = FingerprintText(FingerprintOf(facts->der));
  own.expires = facts->not_after;
  own.authority_expires = *until;
  return own;
}

}  // namespace mpckdc
