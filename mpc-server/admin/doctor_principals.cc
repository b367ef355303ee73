// SPDX-License-Identifier: Apache-2.0
//
// What doctor says of principals by what keys they have.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/admin/doctor.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/key_info.h"

namespace mpckdc::admin {
namespace {

// Of 17 to 20: nothing tells the servers how old such a ticket is.
void CheckAgeless(const KdbEntries& entries, Findings* findings) {
  const std::vector<std::string> kadmin = KadminOfStandardEnctypes(entries);
  if (!kadmin.empty()) {
    findings->Bad(
        runbook::kRotate,
        absl::StrCat("keys of other types than gcm, whose tickets never grow old and which "
                     "the servers no longer use: ",
                     absl::StrJoin(kadmin, ", ")),
        "mpc-admin randkey --kadmin draws new ones for all of them");
  }
  std::vector<std::string> services, between;
  for (const auto& [principal, keys] : entries) {
    const bool ageless = absl::c_any_of(keys, [](const v1::KeyInfo& key) {
      const Enctype* enctype = FindEnctype(key.enctype());
      return enctype != nullptr && !enctype->is_gcm();
    });
    if (!ageless || IsKadmin(principal)) continue;
    if (KeyClassOf(principal) == v1::KEY_CLASS_SERVICE) services.push_back(principal);
    if (KeyClassOf(principal) == v1::KEY_CLASS_TGS && !IsOwnTgt(principal)) {
      between.push_back(principal);
    }
  }
  if (!between.empty()) {
    findings->Warn(
        runbook::kKdcCompromised,
        absl::StrCat("keys between realms of 17 to 20, under which a ticket that a KDC made, or "
                     "recorded, is good as long as the key: ",
                     Some(between)),
        "after a KDC was lost new keys, in both realms: kdc-plugin/README.md, \"Keys between "
        "realms\"; or aes256-gcm, if the other realm has MPC servers too");
  }
  if (services.empty()) return;
  findings->Warn(
      runbook::kKdcCompromised,
      absl::StrCat("protected services with keys of 17 to 20, under which a ticket that a "
                   "KDC made lives as long as the key: ",
                   Some(services)),
      "new keys after a KDC was lost: mpc-admin randkey PRINCIPAL; or gcm keys alone: "
      "--enctype aes256-gcm,aes128-gcm");
}

// Keys that were made before there were authentication indicators; old versions seal nothing more.
void CheckIndicators(const KeyListing& listing, const KdbEntries& entries, Findings* findings) {
  std::vector<std::string> without;
  for (const auto& [principal, keys] : entries) {
    uint32_t newest = 0;
    for (const v1::KeyInfo& key : keys) newest = std::max(newest, key.kvno());
    const bool lacks = absl::c_any_of(keys, [&](const v1::KeyInfo& key) {
      const auto found = listing.find(key.handle());
      return key.kvno() == newest && found != listing.end() && found->second.info.before_cammac();
    });
    if (lacks) without.push_back(principal);
  }
  if (without.empty()) return;
  findings->Warn(
      runbook::kRotate,
      absl::StrCat("keys from before authentication indicators: a login that sets one (OTP with "
                   "`indicator`) gets no ticket under them: ",
                   Some(without)),
      "mpc-admin rotate-krbtgt for krbtgt, randkey --kadmin and randkey PRINCIPAL for services; a "
      "key between realms is entered anew in both");
}

// A rotation that nobody finished is no fault; whoever reads this may have forgotten it.
void CheckRotations(const KdbEntries& entries, Findings* findings) {
  for (const auto& [principal, keys] : entries) {
    if (!IsOwnTgt(principal) && !IsKadmin(principal)) continue;
    std::set<uint32_t> versions;
    for (const v1::KeyInfo& key : keys) versions.insert(key.kvno());
    if (versions.size() < 2) continue;
    findings->Ok(absl::StrCat(principal, " has versions ", absl::StrJoin(versions, ", "),
                              ": when the old ones can go says mpc-admin rotate-krbtgt --status"));
  }
}

// What a crash left of a kadmin renprinc: two entries, of which one is in use.
void CheckRenamings(const KdbEntries& entries, Findings* findings) {
  for (const auto& [principal, keys] : entries) {
    if (keys.empty()) continue;
    const std::string& to = keys.front().renamed_to();
    const std::string& from = keys.front().renamed_from();
    const auto old = entries.find(from);
    if (!to.empty()) {
      findings->Warn(runbook::kEnrol, absl::StrCat(principal, " was renamed and is ", to,
                                  " now; its old entry is still there, and nobody finds it"),
                     absl::StrCat("mpc-admin delete ", principal, " ends it"));
    } else if (!from.empty() &&
               (old == entries.end() || old->second.empty() ||
                old->second.front().renamed_to() != principal)) {
      findings->Warn(runbook::kEnrol, absl::StrCat("renaming ", from, " to ", principal,
                                  " was interrupted; the old name holds, and nobody finds the "
                                  "new entry"),
                     absl::StrCat("rename it again, or mpc-admin delete ", principal));
    }
  }
}

}  // namespace

void CheckPrincipals(const KeyListing& listing, const KdbEntries& entries, Findings* findings) {
  CheckAgeless(entries, findings);
  CheckIndicators(listing, entries, findings);
  CheckRotations(entries, findings);
  CheckRenamings(entries, findings);
}

}  // namespace mpckdc::admin
