// SPDX-License-Identifier: Apache-2.0
//
// rotate-krbtgt: the next key of the realm's ticket-granting service, and the end of the old one.
//
//     servers: draw and commit version n + 1        KDB names n
//     KDB: set handles, keep n                      KDB names n and n + 1: new tickets under n + 1
//     (wait until no ticket under n can be good)
//     KDB: purge n                                  KDB names n + 1
//     servers: delete n                             it stays for the grace time, named by nobody
//
// Where a run stands is what the KDB names and since when, so a run that was killed leaves nothing
// to remember: the next one reads that and does what is left. What a killed run left on the servers
// and no database names is deleted by the next, unless it is newer than all the KDB names: then
// somebody may be about to name it, and the step that makes the KDB as new decides.
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/enroll.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/key_info.h"

namespace mpckdc::admin {

using nlohmann::json;

namespace {

// What the KDC's database says of one principal's keys.
struct Rotation {
  std::string principal;
  std::set<uint32_t> versions;  // not empty
  absl::Time changed;           // when the newest came; InfinitePast: unknown
  absl::Time due;               // when no ticket under the old ones can be good any more

  uint32_t newest() const { return *versions.rbegin(); }
  bool under_way() const { return versions.size() > 1; }
};

void to_json(json& out, const Rotation& rotation) {
  out = {{"principal", rotation.principal},
         {"versions", rotation.versions},
         {"changed", absl::ToUnixSeconds(rotation.changed)},
         {"under_way", rotation.under_way()}};
  if (rotation.under_way()) out["due"] = absl::ToUnixSeconds(rotation.due);
}

absl::Status CheckOptions(const Options& options) {
  absl::string_view problem;
  if (options.kadmin && !options.operands.empty()) problem = "a PRINCIPAL or --kadmin, not both";
  if (options.finish + options.show_state + options.if_older.has_value() > 1) {
    problem = "one of --finish, --status and --if-older";
  }
  if (options.force && (options.show_state || options.if_older.has_value())) {
    problem = "--force goes with --finish, or alone";
  }
  return problem.empty() ? absl::OkStatus() : BadUsage("rotate-krbtgt", problem);
}

absl::Status CheckPrincipal(const std::string& principal) {
  if (IsOwnTgt(principal) || IsKadmin(principal)) return absl::OkStatus();
  if (absl::StartsWith(principal, "krbtgt/")) {
    return Advise(absl::InvalidArgumentError(absl::StrCat(
                      principal, ": a key that servers draw cannot be given to the other realm")),
                  "both realms' administrators set the next one, with kadmin cpw -keepold: "
                  "deploy/runbooks/rotate-krbtgt.md");
  }
  return Advise(absl::InvalidArgumentError(
                    absl::StrCat(principal, " is neither krbtgt of the realm nor kadmin/*")),
                absl::StrCat("mpc-admin randkey ", principal));
}

// The operand; every protected kadmin/* principal; else the realm's krbtgt.
absl::StatusOr<std::vector<std::string>> Principals(Session& session) {
  if (session.options.kadmin) {
    ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdb());
    std::vector<std::string> principals;
    for (const auto& [principal, keys] : *entries) {
      if (IsKadmin(principal)) principals.push_back(principal);
    }
    return principals;
  }
  ASSIGN_OR_RETURN(std::string principal, session.Principal());
  const std::string& realm = session.config.realm;
  if (principal.empty()) principal = absl::StrCat("krbtgt/", realm, "@", realm);
  RETURN_IF_ERROR(CheckPrincipal(principal));
  return std::vector<std::string>{principal};
}

// The servers open no ticket that is older than max_renewable_life, whatever the database allows;
// clocks differ, and a KDC may have read the database a moment before it changed.
absl::Time DueAfter(const KdbTickets& tickets, const Policies& policies) {
  if (tickets.changed == absl::InfinitePast()) return absl::InfiniteFuture();  // who knows
  return tickets.changed + std::min(tickets.longest, policies.max_renewable_life) +
         limits::kDefaultClockSkew;
}

absl::StatusOr<Rotation> ReadRotation(Session& session, const std::string& principal) {
  ASSIGN_OR_RETURN(const KdbTickets tickets, session.kdb.Tickets(principal));
  ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdbAgain());
  ASSIGN_OR_RETURN(const Policies policies, ReadPolicies(session));
  Rotation rotation{tickets.principal, {}, tickets.changed, DueAfter(tickets, policies)};
  const auto found = entries->find(tickets.principal);
  if (found != entries->end()) {
    for (const v1::KeyInfo& key : found->second) rotation.versions.insert(key.kvno());
  }
  if (!rotation.versions.empty()) return rotation;
  return Advise(
      absl::FailedPreconditionError(absl::StrCat(tickets.principal, " has no protected keys")),
      absl::StrCat("mpc-admin randkey ", tickets.principal, " gives it some"));
}

std::string VersionsText(const Rotation& rotation) {
  return absl::StrCat(rotation.principal, ": version", rotation.under_way() ? "s " : " ",
                      absl::StrJoin(rotation.versions, ", "), ", the newest of ",
                      Minute(rotation.changed), " UTC");
}

std::string DueText(const Rotation& rotation) {
  return absl::StrCat(
      "the old keys can go at ", Minute(rotation.due), " UTC (mpc-admin rotate-krbtgt --finish",
      IsOwnTgt(rotation.principal) ? ")" : absl::StrCat(" ", rotation.principal, ")"));
}

void SayState(Session& session, const Rotation& rotation) {
  session.console.Say(VersionsText(rotation),
                      rotation.under_way() ? absl::StrCat("; ", DueText(rotation)) : "");
}

// Keys of versions that the database has, or of older ones, which it does not name. The servers are
// listed before the database is read.
absl::Status DeleteUnnamed(Session& session, const std::string& principal) {
  ASSIGN_OR_RETURN(KeyListing listing, ListOnAll(session, principal, enroll::Listed::kCommitted));
  ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdbAgain());
  uint32_t newest = 0;
  const auto found = entries->find(principal);
  if (found != entries->end()) {
    for (const v1::KeyInfo& key : found->second) newest = std::max(newest, key.kvno());
  }
  KeyListing unnamed = WithoutRetired(Unreferenced(listing, *entries));
  std::erase_if(unnamed, [&](const auto& listed) { return listed.second.info.kvno() > newest; });
  if (unnamed.empty()) return absl::OkStatus();
  const absl::Status s = session.DeleteKeys(Named(unnamed), enroll::Deletion::kRetire);
  if (!s.ok()) {
    return Advise(s, absl::StrCat("the database is as it should be; when the server answers: "
                                  "mpc-admin delete --old ",
                                  principal));
  }
  for (const ListedKey& key : Sorted(unnamed)) {
    session.console.Say(Describe(key.info), ": named by no database, deleted from the servers");
  }
  return absl::OkStatus();
}

absl::StatusOr<Rotation> Rotate(Session& session, const Rotation& before) {
  RETURN_IF_ERROR(DrawNext(session, before.principal).status());
  RETURN_IF_ERROR(DeleteUnnamed(session, before.principal));
  ASSIGN_OR_RETURN(Rotation after, ReadRotation(session, before.principal));
  SayState(session, after);
  return after;
}

absl::StatusOr<Rotation> Finish(Session& session, const Rotation& before) {
  if (before.under_way()) {
    if (absl::Now() < before.due && !session.options.force) {
      return Advise(absl::FailedPreconditionError(absl::StrCat(
                        before.principal, ": tickets under the old keys can be good until ",
                        Minute(before.due), " UTC")),
                    "wait until then; --force ends them now, and everybody logs in again");
    }
    RETURN_IF_ERROR(session.kdb.Purge(before.principal, before.newest()));
  }
  RETURN_IF_ERROR(DeleteUnnamed(session, before.principal));
  ASSIGN_OR_RETURN(Rotation after, ReadRotation(session, before.principal));
  if (after.under_way()) {
    return absl::InternalError(
        absl::StrCat(before.principal, ": the database still names old versions"));
  }
  SayState(session, after);
  return after;
}

// A newer version on the servers than this database names: this is a replica's, or yesterday's, and
// whoever made that version is right: another one would be drawn, and its deleted. Or a rotation
// was killed here, which a person who knows that goes on with.
absl::Status CheckNewest(Session& session, const Rotation& now) {
  std::array<std::vector<v1::KeyInfo>, 3> lists;
  RETURN_IF_ERROR(session.OnAll([&](int party, enroll::AdminClient& server) -> absl::Status {
    ASSIGN_OR_RETURN(lists[party], server.ListKeys(now.principal, enroll::Listed::kCommitted,
                                                   session.config.timeout));
    return absl::OkStatus();
  }));
  // Two must say so: one that lies would have a timer rotate no more.
  std::map<std::string, std::set<size_t>> newer;  // by handle, who says that it is
  uint32_t kvno = 0;
  for (size_t party = 0; party < lists.size(); ++party) {
    for (const v1::KeyInfo& key : lists[party]) {
      if (key.retired_us() != 0 || key.kvno() <= now.newest()) continue;
      std::set<size_t>& who = newer[key.handle()];
      who.insert(party);
      if (who.size() > 1) kvno = std::max(kvno, key.kvno());
    }
  }
  if (kvno == 0) return absl::OkStatus();
  return Advise(
      absl::FailedPreconditionError(
          absl::StrCat("the servers hold version ", kvno, " of ", now.principal,
                       ", and this database names none above ", now.newest())),
      absl::StrCat("a replica, or a database from a dump: let it catch up, and rotate at the "
                   "primary alone; at the primary, after a rotation that was killed: mpc-admin "
                   "rotate-krbtgt --force",
                   IsOwnTgt(now.principal) ? "" : absl::StrCat(" ", now.principal)));
}

// What is due is said by this machine's clock; if that leaps, tickets end that are good for days. Two of the
// servers' clocks must agree with it: one may be wrong, or lie.
absl::Status CheckOwnClock(Session& session) {
  std::array<absl::Duration, 3> ahead;
  RETURN_IF_ERROR(session.OnAll([&](int party, enroll::AdminClient& server) -> absl::Status {
    ASSIGN_OR_RETURN(const v1::StatusReply status, server.GetStatus(session.config.timeout));
    ahead[party] = absl::Now() - absl::FromUnixMicros(status.time_us());
    return absl::OkStatus();
  }));
  std::ranges::sort(ahead);
  if (absl::AbsDuration(ahead[1]) <= limits::kDefaultClockSkew) return absl::OkStatus();
  return Advise(absl::FailedPreconditionError(absl::StrCat(
                    "this machine's clock differs from the servers' by ",
                    absl::FormatDuration(absl::Trunc(ahead[1], absl::Seconds(1))),
                    ": what is due cannot be told")),
                "set the clocks (chrony); --force asks no clock");
}

// What a timer does, day by day.
absl::StatusOr<Rotation> DoWhatIsDue(Session& session, const Rotation& now, absl::Duration age) {
  const bool due = now.under_way() ? absl::Now() >= now.due : absl::Now() >= now.changed + age;
  if (due && now.under_way()) return Finish(session, now);
  if (due) {
    RETURN_IF_ERROR(CheckNewest(session, now));
    return Rotate(session, now);
  }
  RETURN_IF_ERROR(DeleteUnnamed(session, now.principal));
  SayState(session, now);
  if (!now.under_way()) {
    session.console.Say("  the next key comes after ", Minute(now.changed + age), " UTC");
  }
  return now;
}

absl::StatusOr<Rotation> RotateOne(Session& session, const std::string& principal) {
  const Options& options = session.options;
  const bool by_clock = options.if_older.has_value() || (options.finish && !options.force);
  if (by_clock) RETURN_IF_ERROR(CheckOwnClock(session));
  ASSIGN_OR_RETURN(const Rotation now, ReadRotation(session, principal));
  if (options.finish) return Finish(session, now);
  if (options.if_older.has_value()) return DoWhatIsDue(session, now, *options.if_older);
  if (!options.show_state && (!now.under_way() || options.force)) {
    if (!options.force) RETURN_IF_ERROR(CheckNewest(session, now));
    return Rotate(session, now);
  }
  if (!options.show_state) {
    RETURN_IF_ERROR(DeleteUnnamed(session, now.principal));
    session.console.Remark("rotated already; a second time before the old keys are gone: --force");
  }
  SayState(session, now);
  return now;
}

}  // namespace

absl::StatusOr<ExitCode> RotateCommand(Session& session) {
  RETURN_IF_ERROR(CheckOptions(session.options));
  RETURN_IF_ERROR(session.Connect().status());
  ASSIGN_OR_RETURN(const std::vector<std::string> principals, Principals(session));
  json all = json::array();
  for (const std::string& principal : principals) {
    ASSIGN_OR_RETURN(const Rotation rotation, RotateOne(session, principal));
    all.push_back(rotation);
  }
  session.console.Print(json{{"principals", all}});
  return ExitCode::kOk;
}

}  // namespace mpckdc::admin
