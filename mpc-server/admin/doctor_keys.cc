// SPDX-License-Identifier: Apache-2.0
//
// What doctor finds when it compares the servers' keys with each other and with the KDC's database.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/admin/doctor.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/limits.h"

namespace mpckdc::admin {

std::string Some(const KeyListing& listing) {
  std::vector<std::string> names;
  for (const auto& [handle, key] : listing) {
    names.push_back(absl::StrCat(Describe(key.info), " on servers ", key.Parties()));
  }
  return Some(names);
}

void CheckStaged(Session& session, Findings* findings) {
  absl::StatusOr<KeyListing> staged = ListOnAll(session, "", enroll::Listed::kStaged);
  if (!staged.ok()) return findings->Bad(runbook::kLoginsFail, staged.status());
  if (staged->empty()) return findings->Ok("no unfinished transactions");
  findings->Warn(runbook::kEnrol,
                 absl::StrCat("unfinished transactions left staged keys: ", Some(*staged)),
                 absl::StrCat("nothing; nobody can use them and the servers drop them after ",
                              absl::ToInt64Minutes(limits::kStagedKeyLife),
                              " minutes. An interrupted command can be run again at once"));
}

namespace {

struct Comparison {
  KeyListing orphans;                   // not in the database
  std::vector<std::string> incomplete;  // not on all three, in the database
  std::vector<std::string> different;
  std::vector<std::string> dangling;    // in the database, on no server
  std::vector<std::string> deleted;     // in the database, and deleted
  absl::Time first_collected = absl::InfiniteFuture();  // of the deleted
  size_t waiting = 0;                                   // deleted, and not in the database
  std::vector<std::string> unkept;     // old, in a password history, and not kept for it
  std::vector<std::string> forgotten;  // kept for a history that does not name it
  size_t in_history = 0;               // old, in a password history, and on a server
  size_t past = 0;                     // in a password history, and on no server
};

// Of a key that only a password history names. Gone at all three it is a key from before they kept
// any, and is not compared.
void CompareHistory(const KeyListing& listing, const v1::KeyInfo& entry, Comparison* comparison) {
  const auto found = listing.find(entry.handle());
  if (found == listing.end()) {
    ++comparison->past;
    return;
  }
  ++comparison->in_history;
  if (!found->second.complete() || !found->second.kept()) {
    comparison->unkept.push_back(Describe(entry) + " on servers " + found->second.Parties());
  } else if (!found->second.same || found->second.info.principal() != entry.principal()) {
    comparison->different.push_back(Describe(entry));
  }
}

Comparison Compare(const KeyListing& listing, const KdbEntries& entries, const Policies& policies) {
  Comparison comparison;
  const KeyListing unused = Unreferenced(listing, entries);
  comparison.orphans = WithoutRetired(unused);
  for (const auto& [handle, key] : unused) {
    if (key.kept()) comparison.forgotten.push_back(Describe(key.info));
  }
  comparison.waiting = unused.size() - comparison.orphans.size() - comparison.forgotten.size();
  for (const auto& [principal, keys] : entries) {
    for (const v1::KeyInfo& entry : keys) {
      if (entry.for_history()) {
        CompareHistory(listing, entry, &comparison);
        continue;
      }
      const auto found = listing.find(entry.handle());
      const std::string name = Describe(entry);
      if (found == listing.end()) {
        comparison.dangling.push_back(name);
      } else if (!found->second.complete()) {
        comparison.incomplete.push_back(name + " on servers " + found->second.Parties());
      } else if (!found->second.same || found->second.info.principal() != principal) {
        comparison.different.push_back(name);
      } else if (found->second.retired_somewhere()) {
        comparison.deleted.push_back(name);
        comparison.first_collected =
            std::min(comparison.first_collected, policies.Collected(found->second));
      }
    }
  }
  return comparison;
}

void DeleteOrphans(Session& session, const KeyListing& listing, KeyListing orphans,
                   Findings* findings) {
  absl::StatusOr<const KdbEntries*> entries = session.ReadKdb();
  absl::Status s = entries.ok() ? CheckDatabaseBelongs(listing, **entries) : entries.status();
  if (!s.ok()) return findings->Bad(runbook::kLoginsFail, s);
  const std::set<std::string> spared = SpareKeyless(session.keyless(), &orphans);
  if (!spared.empty()) {
    findings->Warn(
        runbook::kEnrol,
        absl::StrCat("not deleted, since the database has these principals and shows no key of "
                     "theirs: ",
                     Some(std::vector<std::string>(spared.begin(), spared.end()))),
        "if they are in a directory, look whether ldap_kadmind_dn may read krbPrincipalKey "
        "(deploy/ldap.md); if their keys were purged: mpc-admin delete --old PRINCIPAL");
  }
  if (orphans.empty()) return;
  // Keys that are being made now are on the servers before the database names them.
  absl::StatusOr<const KdbEntries*> now = session.ReadKdbAgain();
  if (!now.ok()) return findings->Bad(runbook::kKdcLost, now.status());
  orphans = Unreferenced(orphans, **now);
  if (orphans.empty()) return;
  s = session.DeleteKeys(Named(orphans), enroll::Deletion::kRetire);
  const std::vector<std::string> gone = HandlesOf(orphans);
  const absl::StatusOr<size_t> restored =
      RestoreNamed(session, "", std::set<std::string>(gone.begin(), gone.end()));
  if (!restored.ok()) {
    findings->Bad(runbook::kLoginsFail,
                  absl::StrCat("could not see whether deleted keys are named meanwhile: ",
                               restored.status().message()),
                  "run mpc-admin gc before their grace time is over: it shows keys that the "
                  "database names, and gc --keep keeps them");
  } else if (*restored > 0) {
    findings->Ok(absl::StrCat(
        *restored, " keys that came into use meanwhile were deleted, and are in use again"));
  }
  if (s.ok()) {
    findings->Ok(absl::StrCat("deleted keys to which nothing refers: ", Some(orphans)));
  } else {
    findings->Bad(runbook::kLoginsFail, absl::StrCat("could not delete unused keys: ", s.message()),
                  "when the server answers run mpc-admin doctor --fix again");
  }
}

void Judge(Session& session, const KeyListing& listing, const Comparison& comparison,
           Findings* findings) {
  const struct {
    const std::vector<std::string>& keys;
    const char* what;
    const char* next;
  } faults[] = {
      {comparison.dangling, "the KDC refers to keys that no server has: ",
       "give those principals new keys: mpc-admin enroll --replace, or randkey. Are these the "
       "right servers, or was a store restored from an old backup?"},
      {comparison.incomplete, "keys in use are missing on a server: ",
       "mpc-admin catch-up PARTY has that server receive them from the two others; keys that one "
       "server alone has need new ones: mpc-admin enroll --replace, or randkey"},
      {comparison.different, "servers and KDC describe keys differently: ",
       "mpc-admin list shows where, and what each server says: one alone may lie. mpc-admin policy sets "
       "the gate that the principal is to have on all three again"}};
  if (!comparison.deleted.empty()) {
    findings->Bad(
        runbook::kBackup,
        absl::StrCat("the KDC's database names keys that were replaced or deleted, as a dump of "
                     "before or a replica does; they work until ",
                     Minute(comparison.first_collected), " UTC: ", Some(comparison.deleted)),
        "load the newest dump or propagate it; or, if this database is to stay: mpc-admin gc "
        "--keep");
  }
  if (comparison.waiting > 0) {
    findings->Ok(absl::StrCat(comparison.waiting,
                              " deleted keys wait for the end of their grace time (mpc-admin gc)"));
  }
  if (!comparison.unkept.empty()) {
    findings->Warn(runbook::kEnrol,
                   absl::StrCat("old keys that a password history names and the servers do not "
                                "keep for it: ",
                                Some(comparison.unkept)),
                   "they cannot be compared when they are gone; the next change of these "
                   "passwords may have failed half-way: see the log of kadmind");
  }
  if (!comparison.forgotten.empty()) {
    findings->Warn(runbook::kEnrol,
                   absl::StrCat("keys that are kept for a password history, and none names them: ",
                                Some(comparison.forgotten)),
                   "mpc-admin gc --now deletes them");
  }
  if (comparison.past > 0) {
    findings->Ok(absl::StrCat(comparison.past,
                              " old keys of password histories are on no server, and new passwords "
                              "are not compared with them"));
  }
  bool good = true;
  for (const auto& fault : faults) {
    if (fault.keys.empty()) continue;
    good = false;
    findings->Bad(runbook::kBackup, absl::StrCat(fault.what, Some(fault.keys)), fault.next);
  }
  if (!comparison.orphans.empty() && session.options.fix) {
    DeleteOrphans(session, listing, comparison.orphans, findings);
  } else if (!comparison.orphans.empty()) {
    findings->Warn(runbook::kEnrol,
                   absl::StrCat("keys to which the KDC does not refer: ", Some(comparison.orphans)),
                   "replaced keys stay until they are deleted: mpc-admin doctor --fix");
  }
  if (good) {
    findings->Ok(absl::StrCat("every handle of the KDC leads to a key on all three servers (",
                              listing.size() - comparison.orphans.size() - comparison.waiting -
                                  comparison.forgotten.size() - comparison.in_history,
                              " keys in use)"));
  }
}

void CheckGrace(const Policies& policies, Findings* findings) {
  const auto& grace = policies.delete_grace;
  if (grace[0] == grace[1] && grace[1] == grace[2]) return;
  findings->Warn(
      runbook::kInstall,
      absl::StrCat("the servers keep deleted keys for different times, the shortest counts: ",
                   absl::StrJoin(grace, ", ",
                                 [](std::string* out, absl::Duration d) {
                                   *out += absl::FormatDuration(d);
                                 })),
      "make [policy] delete_grace the same in the three mpc-server.toml and start them again");
}

}  // namespace

void CheckStores(Session& session, Findings* findings) {
  absl::StatusOr<KeyListing> listing = ListOnAll(session, "", enroll::Listed::kCommitted);
  if (!listing.ok()) return findings->Bad(runbook::kLoginsFail, listing.status());
  absl::StatusOr<const KdbEntries*> entries = session.ReadKdbAgain();
  if (!entries.ok()) return findings->Bad(runbook::kKdcLost, entries.status());
  absl::StatusOr<Policies> policies = ReadPolicies(session);
  if (!policies.ok()) return findings->Bad(runbook::kLoginsFail, policies.status());
  CheckGrace(*policies, findings);
  Comparison comparison = Compare(*listing, **entries, *policies);
  if (!comparison.dangling.empty()) {
    absl::StatusOr<KeyListing> newer = ListOnAll(session, "", enroll::Listed::kCommitted);
    if (newer.ok()) {
      Comparison again = Compare(*newer, **entries, *policies);
      again.orphans = std::move(comparison.orphans);
      comparison = std::move(again);
    }
  }
  Judge(session, *listing, comparison, findings);
  CheckPrincipals(*listing, **entries, findings);
}

}  // namespace mpckdc::admin
