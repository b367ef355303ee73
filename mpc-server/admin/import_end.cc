// SPDX-License-Identifier: Apache-2.0
//
// import-realm: how it ends, one way or the other.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/enroll.h"
#include "mpc-server/admin/import.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;

constexpr size_t kAtOnce = 4096;

std::vector<std::string> NamesOf(const std::vector<Scanned>& principals,
                                 absl::Span<const ImportState> states) {
  std::vector<std::string> names;
  for (const Scanned& one : principals) {
    if (one.place == Place::kProtected && absl::c_linear_search(states, one.state)) {
      names.push_back(one.principal);
    }
  }
  return names;
}

// ---- Back ----

// Users with keys in the database get no ticket under a key that the servers drew.
absl::Status CheckRollback(Session& session, const ImportScan& scan) {
  if (!scan.converts) return absl::OkStatus();
  ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdb());
  const std::string tgs = absl::StrCat("krbtgt/", session.config.realm, "@", session.config.realm);
  if (entries->count(tgs) == 0) return absl::OkStatus();
  return Advise(absl::FailedPreconditionError(
                    "krbtgt's key has been drawn by the servers: who goes back could not log in"),
                "mpc-admin import-realm --commit ends what was begun");
}

}  // namespace

absl::StatusOr<ExitCode> RollbackImport(Session& session, const ImportKdb& kdb,
                                        const ImportScan& scan) {
  RETURN_IF_ERROR(CheckRollback(session, scan));
  ASSIGN_OR_RETURN(const std::vector<Scanned> chosen, Chosen(session, scan));
  const bool named = !session.options.operands.empty();
  const std::vector<std::string> names =
      named ? NamesOf(chosen,
                      {ImportState::kImported, ImportState::kChanged, ImportState::kPresent})
            : NamesOf(chosen, {ImportState::kImported});
  if (!named) {
    RETURN_IF_ERROR(session.Confirm(
        absl::StrCat("All ", names.size(), " imported principals go back. Go on?")));
  }
  size_t back = 0;
  json failed = json::array();
  for (size_t start = 0; start < names.size(); start += kAtOnce) {
    const auto some = absl::MakeConstSpan(names).subspan(start, kAtOnce);
    ASSIGN_OR_RETURN(const auto results, kdb.Rollback(some));
    std::vector<v1::NamedKey> unused;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].ok()) {
        session.console.Say(Colour::kWarning, "  ", some[i], ": ", results[i].status().message());
        failed.push_back({{"principal", some[i]},
                          {"reason", std::string(results[i].status().message())}});
        continue;
      }
      ++back;
      for (v1::NamedKey& key : Named(some[i], *results[i])) unused.push_back(std::move(key));
    }
    if (!unused.empty()) RETURN_IF_ERROR(session.DeleteKeys(unused, enroll::Deletion::kNow));
    session.console.Progress(start + some.size(), names.size(), "");
  }
  session.console.EndProgress();
  // Of a rollback that was killed between the database and the servers.
  std::set<std::string> old;
  for (const Scanned& one : chosen) {
    if (one.place == Place::kProtected && one.state == ImportState::kOld) old.insert(one.principal);
  }
  RETURN_IF_ERROR(DeleteLeftovers(session, old));
  session.console.Say(back, " principals are as they were, ", failed.size(), " are not");
  session.console.Print(json{{"rolled_back", back}, {"failed", failed}});
  return failed.empty() ? ExitCode::kOk : ExitCode::kFindings;
}

namespace {

// ---- Forward ----

absl::Status CheckComplete(Session& session, const ImportScan& scan) {
  const ImportReport report = ImportReport::Of(scan);
  if (report.to_import > 0) {
    return Advise(absl::FailedPreconditionError(absl::StrCat(
                      report.to_import, " principals that can be imported are not")),
                  "mpc-admin import-realm without --commit imports them");
  }
  if (report.left.empty() || !scan.converts) return absl::OkStatus();
  report.Say(session.console);
  return session.Confirm(absl::StrCat(report.left.size(),
                                      " principals have no key that can be moved. After the commit "
                                      "they cannot log in until they get new passwords. Go on?"));
}

// Keys of kadmin/* that the old realm's database had are replaced by drawn ones.
absl::Status DrawKadmin(Session& session, const ImportScan& scan) {
  if (!scan.converts) return absl::OkStatus();
  for (const Scanned& one : scan.principals) {
    if (one.place != Place::kKadmin || one.state != ImportState::kOld) continue;
    RETURN_IF_ERROR(DrawNext(session, one.principal, OldKeys::kAsOptionsSay).status());
  }
  return absl::OkStatus();
}

absl::Status RemoveRecords(Session& session, const ImportKdb& kdb,
                           const std::vector<std::string>& names) {
  for (size_t start = 0; start < names.size(); start += kAtOnce) {
    const auto some = absl::MakeConstSpan(names).subspan(start, kAtOnce);
    ASSIGN_OR_RETURN(const std::vector<absl::Status> results, kdb.Commit(some));
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].ok() || absl::IsNotFound(results[i])) continue;  // deleted meanwhile
      return Advise(absl::Status(results[i].code(),
                                 absl::StrCat(some[i], ": ", results[i].message())),
                    kImportAgain);
    }
    session.console.Progress(start + some.size(), names.size(), "");
  }
  session.console.EndProgress();
  return absl::OkStatus();
}

}  // namespace

// krbtgt first: from then on nobody can go back, and whoever is killed here says --commit again.
absl::StatusOr<ExitCode> CommitImport(Session& session, const ImportKdb& kdb,
                                      const ImportScan& scan) {
  RETURN_IF_ERROR(CheckComplete(session, scan));
  ASSIGN_OR_RETURN(const std::string krbtgt, ImportKrbtgt(session, kdb, scan));
  RETURN_IF_ERROR(DrawKadmin(session, scan));
  const std::vector<std::string> names =
      NamesOf(scan.principals, {ImportState::kImported, ImportState::kChanged});
  RETURN_IF_ERROR(RemoveRecords(session, kdb, names));
  if (!scan.converts) RETURN_IF_ERROR(kdb.CommitRest());
  const size_t gone = ImportReport::Of(scan).gone;
  if (gone > 0) {
    session.console.Say(gone, " principals were deleted or renamed here since their import, and "
                              "stay so");
  }
  session.console.Say(names.size(), " principals committed. krbtgt: ", krbtgt);
  session.console.Say("  next: restart kadmind; mpc-admin import-realm --scrub overwrites the old "
                      "keys on this host");
  session.console.Print(json{{"committed", names.size()}, {"gone", gone}, {"krbtgt", krbtgt}});
  return ExitCode::kOk;
}

namespace {

// ---- What is left of the old keys ----

constexpr const char* kElsewhere[] = {
    "backups and snapshots of the old KDC's disk, and dumps (kdb5_util dump) that were kept",
    "replica KDCs: their databases, and what kprop leaves beside them (from_master, "
    "replica_datatrans)",
    "copies of the stash file, and the master password if it was ever written down",
    "disks: journals, copy-on-write file systems and flash memory keep overwritten blocks",
    "keytabs of users who had one: as good as their passwords, as before",
};

// What is overwritten must be on the servers. A scrub that was interrupted has left enough to be
// read until all keys are gone (scrub.h).
absl::Status CheckScrub(const Options& options, ImportKdb& kdb) {
  const std::string scratch = ScratchOf(options);
  absl::Status loaded;
  kdb.Use(options.source);
  if (!options.dump.empty()) {
    kdb.Use(scratch + "/kdc.conf");
    loaded = kdb.Load(scratch, options.dump, options.stash);
  }
  absl::StatusOr<ImportScan> scan = kdb.Scan();
  if (!scan.ok()) {
    return Advise(absl::Status(scan.status().code(),
                               absl::StrCat("nothing was overwritten: what was imported cannot be "
                                            "read (",
                                            (loaded.ok() ? scan.status() : loaded).message(), ")")),
                  "if an earlier --scrub has overwritten it in part, shred what is left of it");
  }
  const size_t to_import = ImportReport::Of(*scan).to_import;
  const size_t open =
      NamesOf(scan->principals, {ImportState::kImported, ImportState::kChanged}).size();
  const size_t done = NamesOf(scan->principals, {ImportState::kPresent}).size();
  if (to_import == 0 && open == 0 && done > 0) return absl::OkStatus();
  return Advise(absl::FailedPreconditionError(absl::StrCat(
                    "nothing was overwritten: ", to_import, " principals that can be imported are "
                    "not, ", open, " are imported and not committed, ", done, " are committed")),
                "mpc-admin import-realm imports them, then --commit");
}

}  // namespace

absl::StatusOr<ExitCode> ScrubImport(Session& session, ImportKdb& kdb) {
  const Options& options = session.options;
  RETURN_IF_ERROR(CheckScrub(options, kdb));
  RETURN_IF_ERROR(session.Confirm(
      "The old realm's keys on the KDC's host are overwritten: its database, the dump and the "
      "stash that you named. There is no way back. krb5kdc and kadmind must be stopped. Go on?"));
  ASSIGN_OR_RETURN(json answer,
                   kdb.Scrub(ScratchOf(options), options.source, options.dump, options.stash));
  for (const json& file : answer["overwritten"]) {
    session.console.Say(Colour::kGood, "overwritten: ", file.get<std::string>());
  }
  for (const json& what : answer["left"]) {
    session.console.Say(Colour::kWarning, "left: ", what.get<std::string>());
  }
  session.console.Say("still as dangerous as the old database, wherever they are:");
  json elsewhere = json::array();
  for (const char* what : kElsewhere) {
    session.console.Say("  ", what);
    elsewhere.push_back(what);
  }
  session.console.Say("who may have one of these logs in as every user until the password is "
                      "changed: destroy them, or let passwords expire");
  answer["elsewhere"] = std::move(elsewhere);
  session.console.Print(answer);
  return ExitCode::kOk;
}

}  // namespace mpckdc::admin
