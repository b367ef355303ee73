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

struct Finding {
  Level level;
  std::string what;
  std::string next;
};

struct Findings {
  void Add(Level level, absl::string_view what, absl::string_view next) {
    all.push_back({level, std::string(what), std::string(next)});
  }
  void Ok(absl::string_view what) { Add(kOk, what, ""); }
  void Warn(absl::string_view what, absl::string_view next) { Add(kWarning, what, next); }
  void Bad(absl::string_view what, absl::string_view next) { Add(kBad, what, next); }
  void Bad(const absl::Status& status) { Bad(status.message(), AdviceOf(status)); }

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
