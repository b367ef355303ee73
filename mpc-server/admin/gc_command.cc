// SPDX-License-Identifier: Apache-2.0
//
// gc: keys that were deleted and still work for a grace time. Whoever loads yesterday's dump, or
// asks a replica that was not propagated to yet, needs them.
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/string_to_key.h"

namespace mpckdc::admin {

using nlohmann::json;

namespace {

absl::Status CheckOptions(const Options& options) {
  absl::string_view problem;
  if (options.collect + options.now + options.keep > 1) {
    problem = "one of --collect, --now and --keep";
  }
  if (options.force && !options.now) problem = "--force goes with --now only";
  if (options.collect && !options.operands.empty()) {
    problem = "--collect goes without a principal: it is for all whose time is up";
  }
  return problem.empty() ? absl::OkStatus() : BadUsage("gc", problem);
}

// Those of the keys to which the database refers.
std::set<std::string> NamedInDatabase(const KeyListing& keys, const KdbEntries& entries) {
  std::set<std::string> named;
  for (const auto& [principal, list] : entries) {
    for (const v1::KeyInfo& key : list) {
      if (keys.contains(key.handle())) named.insert(key.handle());
    }
  }
  return named;
}

// A key that the password history names is not to be used again.
KdbEntries WithoutHistory(KdbEntries entries) {
  for (auto& [principal, keys] : entries) {
    std::erase_if(keys, [](const v1::KeyInfo& key) { return key.for_history(); });
  }
  return entries;
}

absl::StatusOr<ExitCode> Show(Session& session, const KeyListing& keys) {
  ASSIGN_OR_RETURN(const Policies policies, ReadPolicies(session));
  // Without the database the rest is worth showing.
  const absl::StatusOr<const KdbEntries*> entries = session.ReadKdb();
  if (!entries.ok()) session.console.Remark("database unknown: ", entries.status().message());
  const std::set<std::string> named =
      entries.ok() ? NamedInDatabase(keys, **entries) : std::set<std::string>();
  Table table = {
      {"PRINCIPAL", "KVNO", "ENCTYPE", "DELETED", "USABLE UNTIL", "SERVERS", "DATABASE", "HANDLE"}};
  json list = json::array();
  size_t misnamed = 0;  // and not for the password history
  for (const ListedKey& key : Sorted(keys)) {
    const bool is_named = named.contains(key.info.handle());
    misnamed += is_named && !key.kept();
    const absl::Time until = policies.Collected(key);
    table.push_back({key.info.principal(), absl::StrCat(key.info.kvno()),
                     EnctypeName(key.info.enctype()), Minute(key.retired_since()),
                     key.kept() ? "history" : Minute(until), key.Parties(),
                     !entries.ok() ? "?"
                     : is_named    ? "NAMES IT"
                                   : "-",
                     Hex(key.info.handle())});
    list.push_back({{"principal", key.info.principal()},
                    {"kvno", key.info.kvno()},
                    {"enctype", EnctypeName(key.info.enctype())},
                    {"handle", Hex(key.info.handle())},
                    {"retired_us", key.retired_us},
                    {"usable_until_us", absl::ToUnixMicros(until)},
                    {"for_history", key.kept()},
                    {"in_database", entries.ok() ? json(is_named) : json(nullptr)}});
  }
  session.console.Print(json{{"keys", list}});
  if (keys.empty()) {
    session.console.Say("no deleted keys");
    return ExitCode::kOk;
  }
  session.console.Print(table);
  session.console.Remark("times are UTC; the first server to collect a key ends it");
  if (misnamed == 0) return ExitCode::kOk;
  session.console.Remark("the database names ", misnamed,
                         " of them: load the newest dump, or mpc-admin gc --keep");
  return ExitCode::kFindings;
}

absl::StatusOr<ExitCode> Collect(Session& session) {
  ASSIGN_OR_RETURN(enroll::AdminServers * servers, session.Dial());
  ASSIGN_OR_RETURN(const auto most, servers->MostKeys(session.config.timeout));
  std::array<size_t, 3> collected = {};
  RETURN_IF_ERROR(session.OnAll([&](int party, enroll::AdminClient& server) -> absl::Status {
    ASSIGN_OR_RETURN(collected[party], server.CollectKeys(most[party], session.config.timeout));
    return absl::OkStatus();
  }));
  session.console.Print(json{{"collected", collected}});
  session.console.Say("collected by the three servers: ", absl::StrJoin(collected, ", "));
  return ExitCode::kOk;
}

// What a database names is somebody's password: it goes only by force. Nor does one server's word
// end a key: it could name any, and by force nobody would look again.
absl::StatusOr<ExitCode> EndNow(Session& session, KeyListing keys) {
  size_t spared = 0;
  const size_t alone = std::erase_if(keys, [](const auto& listed) {
    return absl::c_count(listed.second.present, true) < 2;
  });
  if (alone > 0) {
    session.console.Remark(alone, " more are left, which one server alone has deleted: mpc-admin "
                                  "list shows them");
  }
  if (!session.options.force) {
    ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdb());
    for (const std::string& handle : NamedInDatabase(keys, *entries)) {
      keys.erase(handle);
      ++spared;
    }
    const size_t before = keys.size();
    const std::set<std::string> unseen = SpareKeyless(session.keyless(), &keys);
    if (!unseen.empty()) {
      session.console.Remark(before - keys.size(), " more are left, of ", unseen.size(),
                             " principals that show no key at all in the KDC's database: can it be "
                             "read whole? (deploy/ldap.md); --force deletes them too");
    }
  }
  if (!keys.empty()) {
    RETURN_IF_ERROR(
        session.Confirm(absl::StrCat("Delete ", keys.size(),
                                     " keys at once? A database that names them then locks its "
                                     "principals out.")));
    const absl::Status s = session.DeleteKeys(Named(keys), enroll::Deletion::kNow);
    if (!s.ok()) return Advise(s, "when the server answers run the same command again");
  }
  session.console.Print(json{{"deleted", keys.size()}, {"spared", spared}});
  session.console.Say(keys.size(), " keys deleted at once");
  if (spared > 0) {
    session.console.Remark(
        spared,
        " more are named by the KDC's database and were left: mpc-admin gc shows "
        "them, --force deletes them too");
  }
  return ExitCode::kOk;
}

// All servers' keys are read, not the deleted ones alone: one that a server has collected already
// cannot be kept.
absl::StatusOr<ExitCode> Keep(Session& session, const std::string& principal) {
  ASSIGN_OR_RETURN(KeyListing keys, ListOnAll(session, principal, enroll::Listed::kCommitted));
  ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdb());
  const std::set<std::string> named = NamedInDatabase(keys, WithoutHistory(*entries));
  std::vector<std::string> too_late;
  std::erase_if(keys, [&](const auto& listed) {
    const ListedKey& key = listed.second;
    if (!named.contains(listed.first) || !key.retired_somewhere()) return true;
    if (key.complete()) return false;
    too_late.push_back(absl::StrCat(Describe(key.info), " on servers ", key.Parties()));
    return true;
  });
  const absl::Status s = session.RestoreKeys(Named(keys));
  if (!s.ok()) return Advise(s, "when the server answers run the same command again");
  session.console.Print(json{{"kept", keys.size()}, {"too_late", too_late}});
  session.console.Say(keys.size(), " keys are in use again");
  if (too_late.empty()) return ExitCode::kOk;
  session.console.Remark("a server has collected these already: ", absl::StrJoin(too_late, ", "));
  session.console.Remark(
      "  next: give those principals new keys: mpc-admin enroll --replace, or "
      "randkey");
  return ExitCode::kFindings;
}

}  // namespace

absl::StatusOr<ExitCode> GcCommand(Session& session) {
  RETURN_IF_ERROR(CheckOptions(session.options));
  RETURN_IF_ERROR(session.Connect().status());
  if (session.options.collect) return Collect(session);
  ASSIGN_OR_RETURN(const std::string principal, session.Principal());
  if (session.options.keep) return Keep(session, principal);
  ASSIGN_OR_RETURN(KeyListing keys, ListOnAll(session, principal, enroll::Listed::kRetired));
  return session.options.now ? EndNow(session, std::move(keys)) : Show(session, keys);
}

}  // namespace mpckdc::admin
