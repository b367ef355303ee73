// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/one_line.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/string_to_key.h"
#include "mpc-server/package/package.h"

// list, verify, policy, delete: commands about keys that are there.

namespace mpckdc::admin {

using nlohmann::json;

// nlohmann::json finds it by its name.
static void to_json(json& out, const ListedKey& key) {
  json parties = json::array(), gates = json::array();
  for (int party = 0; party < 3; ++party) {
    if (key.present[party]) parties.push_back(party);
    gates.push_back(key.present[party] ? json(GateName(key.gates[party])) : json(nullptr));
  }
  out = {{"principal", key.info.principal()},
         {"kvno", key.info.kvno()},
         {"enctype", EnctypeName(key.info.enctype())},
         {"class", KeyClassName(key.info.key_class())},
         {"gate", GateName(key.info.gate())},
         {"gates", gates},
         {"handle", Hex(key.info.handle())},
         {"parties", parties},
         {"retired", key.retired()},
         {"retired_us", key.retired_us},
         {"for_history", key.kept()},
         {"same", key.same}};
}

namespace {

// Keys of one VerifyKeys call: what the servers verify together (agree/agreement.h).
constexpr size_t kVerifyAtOnce = 128;
// From the first server that collects a deleted key to the last: three times kCollectEvery.
constexpr absl::Duration kBetweenServers = absl::Seconds(15);
constexpr absl::Duration kLookAgain = absl::Seconds(1);

constexpr int kPolicyAttempts = 5;

constexpr char kNotTheSame[] = "the servers do not hold the same: run mpc-admin doctor";

std::string Plural(size_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// The listing of the operand, or of everybody without one.
absl::StatusOr<KeyListing> ListOperand(Session& session,
                                       enroll::Listed listed = enroll::Listed::kCommitted) {
  RETURN_IF_ERROR(session.Connect().status());
  ASSIGN_OR_RETURN(std::string principal, session.Principal());
  ASSIGN_OR_RETURN(KeyListing listing, ListOnAll(session, principal, listed));
  if (listing.empty() && !principal.empty() && listed != enroll::Listed::kStaged) {
    return Advise(absl::NotFoundError(absl::StrCat("the servers hold no key of ", principal)),
                  "mpc-admin list shows whose keys they hold; mpc-admin enroll adds one");
  }
  return listing;
}

}  // namespace

absl::StatusOr<ExitCode> ListCommand(Session& session) {
  const bool staged = session.options.staged;
  ASSIGN_OR_RETURN(KeyListing listing, ListOperand(session, staged ? enroll::Listed::kStaged
                                                                   : enroll::Listed::kCommitted));
  const std::vector<ListedKey> keys = Sorted(listing);
  Table table = {{"PRINCIPAL", "KVNO", "ENCTYPE", "CLASS", "GATE", "SERVERS", "DELETED", "HANDLE"}};
  bool odd = false;
  for (const ListedKey& key : keys) {
    table.push_back({key.info.principal(), absl::StrCat(key.info.kvno()),
                     EnctypeName(key.info.enctype()), KeyClassName(key.info.key_class()),
                     key.Gates(), key.Parties() + (key.same ? "" : " differ"),
                     key.retired_somewhere() ? Minute(key.retired_since()) : "-",
                     Hex(key.info.handle())});
    odd |= !staged && !key.retired() && (!key.complete() || !key.same);
  }
  session.console.Print(json{{"keys", keys}});
  if (listing.empty()) {
    session.console.Say(staged ? "no unfinished transactions" : "the servers hold no keys yet");
  } else {
    session.console.Print(table);
  }
  if (odd) session.console.Remark(kNotTheSame);
  return odd ? ExitCode::kInconsistent : ExitCode::kOk;
}

namespace {

using Faults = std::map<std::string, std::string>;  // by handle: why a key is not good

// The three answers about each key: good only when all three say so.
absl::Status Merge(const std::array<v1::VerifyKeysReply, 3>& replies,
                   absl::Span<const std::string> handles, Faults* faults) {
  for (int party = 0; party < 3; ++party) {
    std::set<std::string> answered;
    for (const v1::VerifyKeysReply::Result& result : replies[party].results()) {
      if (!absl::c_linear_search(handles, result.handle())) {
        return absl::InternalError(absl::StrCat("party ", party, " speaks of key ",
                                                Hex(result.handle()),
                                                ", which it was not asked about"));
      }
      answered.insert(result.handle());
      if (result.consistent()) continue;
      std::string& fault = (*faults)[result.handle()];
      if (fault.empty()) fault = OnOneLine(result.detail());
    }
    for (const std::string& handle : handles) {
      if (answered.contains(handle)) continue;
      return absl::InternalError(
          absl::StrCat("party ", party, " did not say whether key ", Hex(handle), " is good"));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyAll(Session& session, absl::Span<const std::string> handles, Faults* faults) {
  for (size_t start = 0; start < handles.size(); start += kVerifyAtOnce) {
    session.console.Progress(start, handles.size(), "keys verified");
    const absl::Span<const std::string> some = handles.subspan(start, kVerifyAtOnce);
    v1::VerifyKeysRequest request;
    request.set_request(enroll::RandomIdentifier());
    request.mutable_handles()->Add(some.begin(), some.end());
    std::array<v1::VerifyKeysReply, 3> replies;
    // Stock clients' keys take long on a busy machine: 128 of them, what a batch has.
    const absl::Duration timeout = 8 * session.config.timeout;
    RETURN_IF_ERROR(session.OnAll([&](int party, enroll::AdminClient& server) -> absl::Status {
      ASSIGN_OR_RETURN(replies[party],
                       server.Call("VerifyKeys", &enroll::AdminStub::VerifyKeys, request, timeout));
      return absl::OkStatus();
    }));
    RETURN_IF_ERROR(Merge(replies, some, faults));
  }
  session.console.EndProgress();
  return absl::OkStatus();
}

absl::StatusOr<Faults> FaultsOf(Session& session, const KeyListing& listing) {
  Faults faults;
  std::vector<std::string> handles;
  for (const auto& [handle, key] : listing) {
    if (key.complete() && key.same) {
      handles.push_back(handle);
    } else {
      faults[handle] =
          key.complete() ? "the servers describe it differently" : "not on all three servers";
    }
  }
  RETURN_IF_ERROR(VerifyAll(session, handles, &faults));
  return faults;
}

// Deleted keys may be collected here sooner than there.
void EraseCollected(KeyListing* listing) {
  std::erase_if(*listing, [](const auto& listed) {
    return listed.second.retired() && !listed.second.complete();
  });
}

// A deleted key is collected, or reduced to what a password history needs, by each server by itself:
// what one has done and another is about to do is no fault.
absl::Status LookAgainAtDeleted(Session& session, KeyListing* listing, Faults* faults) {
  const absl::Time until = absl::Now() + kBetweenServers;
  while (true) {
    std::set<std::string> doubtful;
    for (const auto& [handle, fault] : *faults) {
      if (listing->at(handle).retired_somewhere()) doubtful.insert(handle);
    }
    if (doubtful.empty() || absl::Now() >= until) return absl::OkStatus();
    absl::SleepFor(kLookAgain);
    ASSIGN_OR_RETURN(const std::string principal, session.Principal());
    ASSIGN_OR_RETURN(KeyListing newer, ListOnAll(session, principal, enroll::Listed::kCommitted));
    EraseCollected(&newer);
    std::erase_if(newer, [&](const auto& key) { return !doubtful.contains(key.first); });
    ASSIGN_OR_RETURN(Faults again, FaultsOf(session, newer));
    for (const std::string& handle : doubtful) {
      faults->erase(handle);
      listing->erase(handle);
    }
    listing->merge(newer);
    faults->merge(again);
  }
}

}  // namespace

absl::StatusOr<ExitCode> VerifyCommand(Session& session) {
  ASSIGN_OR_RETURN(KeyListing listing, ListOperand(session));
  EraseCollected(&listing);
  ASSIGN_OR_RETURN(Faults faults, FaultsOf(session, listing));
  RETURN_IF_ERROR(LookAgainAtDeleted(session, &listing, &faults));
  size_t bad = 0;
  json keys = json::array();
  for (const ListedKey& key : Sorted(listing)) {
    const std::string& handle = key.info.handle();
    const bool good = !faults.contains(handle);
    const std::string fault = good ? "" : faults[handle];
    keys.push_back(key);
    keys.back().update({{"consistent", good}, {"detail", fault}});
    if (good) continue;
    ++bad;
    session.console.Say(Colour::kBad, "BAD   ", Describe(key.info), " ", Hex(handle), ": ", fault);
  }
  session.console.Print(json{{"keys", keys}, {"bad", bad}});
  session.console.Say(bad == 0 ? Colour::kGood : Colour::kBad, Plural(listing.size() - bad, "key"),
                      " good: all records of each belong together",
                      bad == 0 ? "" : absl::StrCat(", ", bad, " bad"));
  if (bad > 0) {
    session.console.Say(
        "  next: give those principals new keys (enroll --replace, randkey); "
        "mpc-admin doctor says more");
  }
  return bad == 0 ? ExitCode::kOk : ExitCode::kFindings;
}

namespace {

// All three or none: where one refuses, the others get their old gates back. A server that lies
// opens none: whose a key is all three say, and what its gate was each says for itself.
absl::Status SetGateOnAll(Session& session, const std::string& principal, v1::Gate gate) {
  const absl::Duration timeout = session.config.timeout;
  ASSIGN_OR_RETURN(KeyListing listing, ListOnAll(session, principal, enroll::Listed::kCommitted));
  // What one has collected already, and the others will soon, is left.
  std::erase_if(listing, [](const auto& listed) {
    return !listed.second.complete() && listed.second.retired();
  });
  std::array<std::map<v1::Gate, std::vector<std::string>>, 3> before;
  for (const auto& [handle, key] : listing) {
    if (!key.complete()) {
      return Advise(absl::DataLossError(
                        absl::StrCat("of some keys the three servers do not all say that they are ",
                                     principal, "'s: no gate was changed")),
                    "mpc-admin list shows them, mpc-admin doctor says what helps");
    }
    for (int party = 0; party < 3; ++party) before[party][key.gates[party]].push_back(handle);
  }
  const std::vector<std::string> all = HandlesOf(listing);
  const absl::Status s = session.OnAll([&](int, enroll::AdminClient& server) {
    return server.SetPolicy(principal, all, gate, timeout);
  });
  if (s.ok()) return s;
  const absl::Status undone = session.OnAll([&](int party, enroll::AdminClient& server) {
    absl::Status worst;
    for (const auto& [old_gate, some] : before[party]) {
      worst.Update(server.SetPolicy(principal, some, old_gate, timeout));
    }
    return worst;
  });
  if (undone.ok()) {
    return absl::Status(s.code(), absl::StrCat(s.message(), "; the policy is as before"));
  }
  return Advise(absl::DataLossError(absl::StrCat(s.message(), "; and not undone everywhere: ",
                                                 undone.message())),
                "when all three servers answer run the same command again; until then they differ "
                "and refuse the principal's logins");
}

// As two servers say; one alone may lie.
bool HasOtherGate(const ListedKey& key, v1::Gate gate) {
  return !key.retired() && absl::c_count_if(key.gates, [gate](v1::Gate said) {
                             return said != gate && said != v1::GATE_UNSPECIFIED;
                           }) > 1;
}

// A password that was being changed meanwhile has keys with the gate of before, and the old ones, whose
// gate was set, are deleted. So what there is afterwards is looked at, until all of it is as it should be.
absl::StatusOr<KeyListing> SetGate(Session& session, const std::string& principal, v1::Gate gate) {
  for (int attempt = 0; attempt < kPolicyAttempts; ++attempt) {
    RETURN_IF_ERROR(SetGateOnAll(session, principal, gate));
    ASSIGN_OR_RETURN(KeyListing listing, ListOperand(session));
    if (absl::c_none_of(listing, [gate](const auto& listed) {
          return HasOtherGate(listed.second, gate);
        })) {
      return listing;
    }
  }
  return Advise(absl::DataLossError(absl::StrCat(
                    "new keys of ", principal, " with another gate came each time that it was set")),
                "somebody changes this password again and again: mpc-admin audit show says who; lock "
                "the principal (kadmin modprinc -allow_tix) and run the same command again");
}

}  // namespace

absl::StatusOr<ExitCode> PolicyCommand(Session& session) {
  ASSIGN_OR_RETURN(KeyListing listing, ListOperand(session));
  if (session.options.gate.has_value()) {
    ASSIGN_OR_RETURN(const std::string principal, session.Principal());
    ASSIGN_OR_RETURN(listing, SetGate(session, principal, *session.options.gate));
  }
  const std::vector<ListedKey> keys = Sorted(listing);
  bool odd = false;
  for (const ListedKey& key : keys) {
    session.console.Say(Describe(key.info), ": gate ", key.Gates());
    odd |= !key.retired() && !key.same;
  }
  session.console.Print(json{{"keys", keys}});
  if (odd) session.console.Remark(kNotTheSame);
  return odd ? ExitCode::kInconsistent : ExitCode::kOk;
}

namespace {

absl::Status CheckDelete(const Session& session) {
  const Options& options = session.options;
  absl::string_view problem;
  if (options.all && !options.old) problem = "--all goes with --old only";
  if (options.all && !options.operands.empty()) problem = "--all goes without a principal";
  if (!options.all && options.operands.empty()) problem = "name a principal";
  return problem.empty() ? absl::OkStatus() : BadUsage("delete", problem);
}

bool RealmNeeds(const std::string& principal) {
  return absl::StartsWith(principal, "krbtgt/") || absl::StartsWith(principal, "kadmin/") ||
         absl::StartsWith(principal, "K/M@");
}

// The database first: handles that lead nowhere would be worse than keys that nobody refers to.
absl::StatusOr<bool> DeleteFromKdb(Session& session, const std::string& principal) {
  if (RealmNeeds(principal) && !session.options.force) {
    return Advise(absl::PermissionDeniedError(
                      absl::StrCat("the realm does not work without ", principal)),
                  "to delete only keys no longer in use: mpc-admin delete --old; to delete it all "
                  "the same: --force");
  }
  const absl::Status s = session.kdb.Delete(principal);
  if (absl::IsNotFound(s)) return false;
  if (!s.ok()) return s;
  return true;
}

}  // namespace

static absl::Status NothingToDelete(const std::string& principal, bool had_keys) {
  if (had_keys) {
    return Advise(absl::NotFoundError(absl::StrCat(principal, " was deleted already")),
                  "its keys stay usable for the grace time where a database still names them: "
                  "mpc-admin gc shows until when, mpc-admin delete --now ends them");
  }
  return Advise(
      absl::NotFoundError(absl::StrCat("neither the KDC nor the servers know ", principal)),
      "mpc-admin list shows whose keys there are");
}

absl::StatusOr<ExitCode> DeleteCommand(Session& session) {
  RETURN_IF_ERROR(CheckDelete(session));
  RETURN_IF_ERROR(session.Connect().status());
  ASSIGN_OR_RETURN(std::string principal, session.Principal());
  const bool only_old = session.options.old, now = session.options.now;
  ASSIGN_OR_RETURN(KeyListing listing, ListOnAll(session, principal, enroll::Listed::kCommitted));
  const bool had_keys = !listing.empty();
  if (!now) listing = WithoutRetired(std::move(listing));
  ASSIGN_OR_RETURN(bool in_kdb, only_old ? false : DeleteFromKdb(session, principal));
  if (!only_old && !in_kdb && listing.empty()) return NothingToDelete(principal, had_keys);
  // The servers were listed before the database is read: a key that was committed in between is in
  // neither, or already referred to.
  ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdbAgain());
  if (session.options.all) RETURN_IF_ERROR(CheckDatabaseBelongs(listing, *entries));
  KeyListing unused = Unreferenced(listing, *entries);
  const std::set<std::string> unseen =
      session.options.all ? SpareKeyless(session.keyless(), &unused) : std::set<std::string>();
  if (!unseen.empty()) {
    session.console.Remark("left: those of ", unseen.size(),
                           " principals that show no key at all in the KDC's database; name each if "
                           "it has none (deploy/ldap.md says what else it may be)");
  }
  const size_t newer = only_old ? SpareNewer(*entries, &unused) : 0;
  if (newer > 0) {
    session.console.Remark("left: ", Plural(newer, "key"),
                           " newer than what the KDC's database names: somebody is making them, or it is "
                           "a database of before (mpc-admin list)");
  }
  const absl::Status s =
      session.DeleteKeys(Named(unused), now ? enroll::Deletion::kNow : enroll::Deletion::kRetire);
  if (only_old && !now && !unused.empty()) {
    const std::vector<std::string> gone = HandlesOf(unused);
    const absl::StatusOr<size_t> restored = RestoreNamed(
        session, principal, std::set<std::string>(gone.begin(), gone.end()));
    if (!restored.ok()) {
      // The same command again does not look at keys that are deleted already.
      return Advise(
          absl::Status(restored.status().code(),
                       absl::StrCat(Plural(gone.size(), "key"), " deleted, and whether the KDC's "
                                    "database names one meanwhile cannot be seen: ",
                                    restored.status().message())),
          "when the server answers run mpc-admin delete --old --all again, and mpc-admin gc "
          "before the grace time is over: it shows keys that the database names, and gc --keep "
          "keeps them");
    }
    if (*restored > 0) {
      session.console.Remark(Plural(*restored, "key"),
                             " came into use meanwhile: deleted, and in use again");
    }
  }
  if (!s.ok()) return Advise(s, "when the server answers run mpc-admin delete --old --all");
  json deleted = json::array();
  for (const std::string& handle : HandlesOf(unused)) deleted.push_back(Hex(handle));
  session.console.Print(
      json{{"principal_deleted", in_kdb}, {"handles_deleted", deleted}, {"at_once", now}});
  session.console.Say(in_kdb ? absl::StrCat(principal, " deleted from the KDC's database; ") : "",
                      Plural(unused.size(), "key"), " deleted from the servers",
                      now || unused.empty()
                          ? ""
                          : ", usable for the grace time where a database still names them "
                            "(mpc-admin gc; to end them now: mpc-admin gc --now)");
  return ExitCode::kOk;
}

}  // namespace mpckdc::admin
