// SPDX-License-Identifier: Apache-2.0
//
// doctor: what the three servers and the KDC's database say of themselves, and whether it is good.
// Every check says what was found and, when it is not good, what to do next. It goes on after a
// check that fails, as far as the later ones make sense.
#ifndef MPC_SERVER_ADMIN_DOCTOR_H_
#define MPC_SERVER_ADMIN_DOCTOR_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "mpc-server/admin/commands.h"

namespace mpckdc::admin {

enum Level { kOk, kWarning, kBad };

// Pages of deploy/runbooks: whatever is not good has one, where a sysadmin reads on.
namespace runbook {
inline constexpr char kBackup[] = "backup-restore.md";
inline constexpr char kCapacity[] = "capacity.md";
inline constexpr char kCertificates[] = "certificates.md";
inline constexpr char kDeviated[] = "a-server-deviated.md";
inline constexpr char kEnrol[] = "enrol.md";
inline constexpr char kEpochs[] = "epochs.md";
inline constexpr char kInstall[] = "install.md";
inline constexpr char kKdcCompromised[] = "kdc-compromised.md";
inline constexpr char kKdcLost[] = "kdc-lost.md";
inline constexpr char kLoginsFail[] = "logins-fail.md";
inline constexpr char kRotate[] = "rotate-krbtgt.md";
inline constexpr char kServerCompromised[] = "server-compromised.md";
inline constexpr char kServerLost[] = "server-lost.md";
inline constexpr char kUpgrade[] = "upgrade.md";
}  // namespace runbook

struct Finding {
  Level level;
  std::string what;
  std::string next;
  std::string page;  // of the runbooks; empty: all is well
};

struct Findings {
  void Add(Level level, absl::string_view what, absl::string_view next, absl::string_view page) {
    all.push_back({level, std::string(what), std::string(next), std::string(page)});
  }
  void Ok(absl::string_view what) { Add(kOk, what, "", ""); }
  void Warn(absl::string_view page, absl::string_view what, absl::string_view next) {
    Add(kWarning, what, next, page);
  }
  void Bad(absl::string_view page, absl::string_view what, absl::string_view next) {
    Add(kBad, what, next, page);
  }
  void Bad(absl::string_view page, const absl::Status& status) {
    Bad(page, status.message(), AdviceOf(status));
  }

  std::vector<Finding> all;
};

// "alice, bob and 7 more"
std::string Some(const std::vector<std::string>& names);
std::string Some(const KeyListing& listing);

// ---- doctor_servers.cc ----
void CheckOwnCertificate(const AdminConfig& config, Findings* findings);
// True when there is a triple all of whose machines answered.
bool CheckServers(Session& session, Findings* findings);

// ---- doctor_keys.cc ----
void CheckStaged(Session& session, Findings* findings);
// Servers first, database second: a key in the making is then no orphan. A handle that seems to
// lead nowhere is looked for once more, since it may have been made in between.
void CheckStores(Session& session, Findings* findings);

// ---- doctor_principals.cc ----
// What is to be said of the principals that have keys.
void CheckPrincipals(const KeyListing& listing, const KdbEntries& entries, Findings* findings);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_DOCTOR_H_
