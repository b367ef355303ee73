// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/string_to_key.h"
#include "mpc-server/package/package.h"

// list, verify, policy, delete: commands about keys that are there.

namespace mpckdc::admin {
namespace {

using nlohmann::json;

constexpr size_t kVerifyAtOnce = 32;  // keys of one VerifyKeys call

json ToJson(const ListedKey& key) {
  json parties = json::array();
  for (int party = 0; party < 3; ++party) {
    if (key.present[party]) parties.push_back(party);
  }
  return {{"principal", key.info.principal()},
          {"kvno", key.info.kvno()},
          {"enctype", EnctypeName(key.info.enctype())},
          {"class", KeyClassName(key.info.key_class())},
          {"gate", GateName(key.info.gate())},
          {"handle", Hex(key.info.handle())},
          {"parties", parties},
          {"same", key.same}};
}

std::string Plural(size_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// The listing of the operand, or of everybody without one.
absl::StatusOr<KeyListing> ListOperand(Session& session, bool staged = false) {
  RETURN_IF_ERROR(session.Connect().status());
  ASSIGN_OR_RETURN(std::string principal, session.Principal());
  ASSIGN_OR_RETURN(KeyListing listing, ListOnAll(session, principal, staged));
  if (listing.empty() && !principal.empty() && !staged) {
    return Advise(absl::NotFoundError(absl::StrCat("the servers hold no key of ", principal)),
                  "mpc-admin list shows whose keys they hold; mpc-admin enroll adds one");
  }
  return listing;
}

}  // namespace

absl::StatusOr<ExitCode> ListCommand(Session& session) {
  const bool staged = session.options().staged;
  ASSIGN_OR_RETURN(KeyListing listing, ListOperand(session, staged));
  Table table({"PRINCIPAL", "KVNO", "ENCTYPE", "CLASS", "GATE", "SERVERS", "HANDLE"});
  json keys = json::array();
  bool odd = false;
  for (const ListedKey* key : Sorted(listing)) {
    table.AddRow({key->info.principal(), absl::StrCat(key->info.kvno()),
                  EnctypeName(key->info.enctype()), KeyClassName(key->info.key_class()),
                  GateName(key->info.gate()), key->Parties() + (key->same ? "" : " differ"),
                  Hex(key->info.handle())});
    keys.push_back(ToJson(*key));
    odd |= !staged && (!key->complete() || !key->same);
  }
  session.console().Print(json{{"keys", keys}});
  if (listing.empty()) {
    session.console().Say(staged ? "no unfinished transactions" : "the servers hold no keys yet");
  } else {
    session.console().Print(table);
  }
  if (odd) session.console().Remark("the servers do not hold the same: run mpc-admin doctor");
  return odd ? ExitCode::kInconsistent : ExitCode::kOk;
}

namespace {

struct Verified {
  bool consistent = true;
  std::string detail;
};

// The three answers about one key: good only when all three say so.
absl::Status Merge(const std::array<v1::VerifyKeysReply, 3>& replies,
                   const std::vector<std::string>& handles,
                   std::map<std::string, Verified>* results) {
  for (int party = 0; party < 3; ++party) {
    std::set<std::string> answered;
    for (const v1::VerifyKeysReply::Result& result : replies[party].results()) {
      answered.insert(result.handle());
      if (result.consistent()) continue;
      Verified& verified = (*results)[result.handle()];
      verified.consistent = false;
      if (verified.detail.empty()) verified.detail = result.detail();
    }
    for (const std::string& handle : handles) {
      if (answered.count(handle) == 0) {
        return absl::InternalError(
            absl::StrCat("party ", party, " did not say whether key ", Hex(handle), " is good"));
      }
      (*results)[handle];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, Verified>> VerifyAll(Session& session,
                                                          std::vector<std::string> handles) {
  std::map<std::string, Verified> results;
  for (size_t start = 0; start < handles.size(); start += kVerifyAtOnce) {
    session.console().Progress(start, handles.size(), "keys verified");
    const std::vector<std::string> some(
        handles.begin() + start,
        handles.begin() + std::min(handles.size(), start + kVerifyAtOnce));
    v1::VerifyKeysRequest request;
    request.set_request(enroll::RandomIdentifier());
    for (const std::string& handle : some) request.add_handles(handle);
    std::array<v1::VerifyKeysReply, 3> replies;
    const absl::Duration timeout = 3 * session.config().timeout;
    RETURN_IF_ERROR(session.OnAll([&](int party, enroll::AdminClient& server) -> absl::Status {
      ASSIGN_OR_RETURN(replies[party], server.VerifyKeys(request, timeout));
      return absl::OkStatus();
    }));
    RETURN_IF_ERROR(Merge(replies, some, &results));
  }
  session.console().EndProgress();
  return results;
}

}  // namespace

absl::StatusOr<ExitCode> VerifyCommand(Session& session) {
  ASSIGN_OR_RETURN(KeyListing listing, ListOperand(session));
  std::map<std::string, Verified> results;
  std::vector<std::string> handles;
  for (const auto& [handle, key] : listing) {
    if (key.complete() && key.same) {
      handles.push_back(handle);
    } else {
      results[handle] = {false, key.complete() ? "the servers describe it differently"
                                               : "not on all three servers"};
    }
  }
  ASSIGN_OR_RETURN(auto verified, VerifyAll(session, std::move(handles)));
  results.merge(std::move(verified));
  json keys = json::array();
  size_t bad = 0;
  for (const ListedKey* key : Sorted(listing)) {
    const Verified& result = results[key->info.handle()];
    json entry = ToJson(*key);
    entry["consistent"] = result.consistent;
    entry["detail"] = result.detail;
    keys.push_back(std::move(entry));
    if (result.consistent) continue;
    ++bad;
    session.console().Say(absl::StrCat("BAD   ", Describe(key->info), " ",
                                       Hex(key->info.handle()), ": ", result.detail),
                          Colour::kBad);
  }
  session.console().Print(json{{"keys", keys}, {"bad", bad}});
  session.console().Say(absl::StrCat(Plural(listing.size() - bad, "key"),
                                     " good: all records of each belong together",
                                     bad == 0 ? "" : absl::StrCat(", ", bad, " bad")),
                        bad == 0 ? Colour::kGood : Colour::kBad);
  if (bad > 0) {
    session.console().Say("  next: give those principals new keys (enroll --replace, randkey); "
                          "mpc-admin doctor says more");
  }
  return bad == 0 ? ExitCode::kOk : ExitCode::kFindings;
}

namespace {

// All three or none: where one refuses, the others get their old gates back.
absl::Status SetGateOnAll(Session& session, const KeyListing& listing, v1::Gate gate) {
  std::vector<std::string> handles;
  std::map<v1::Gate, std::vector<std::string>> before;
  for (const auto& [handle, key] : listing) {
    handles.push_back(handle);
    before[key.info.gate()].push_back(handle);
  }
  const absl::Duration timeout = session.config().timeout;
  const absl::Status s = session.OnAll([&](int, enroll::AdminClient& server) {
    return server.SetPolicy(handles, gate, timeout);
  });
  if (s.ok()) return s;
  const absl::Status undone = session.OnAll([&](int, enroll::AdminClient& server) {
    absl::Status worst;
    for (const auto& [old_gate, some] : before) {
      worst.Update(server.SetPolicy(some, old_gate, timeout));
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

}  // namespace

absl::StatusOr<ExitCode> PolicyCommand(Session& session) {
  ASSIGN_OR_RETURN(KeyListing listing, ListOperand(session));
  if (session.options().gate.has_value()) {
    RETURN_IF_ERROR(SetGateOnAll(session, listing, *session.options().gate));
    ASSIGN_OR_RETURN(listing, ListOperand(session));
  }
  json keys = json::array();
  for (const ListedKey* key : Sorted(listing)) {
    keys.push_back(ToJson(*key));
    session.console().Say(
        absl::StrCat(Describe(key->info), ": gate ", GateName(key->info.gate())));
  }
  session.console().Print(json{{"keys", keys}});
  return ExitCode::kOk;
}

namespace {

// Keys that the database refers to no more. The servers were listed before the database is read: a
// key that was committed in between is in neither, or already referred to.
absl::StatusOr<std::vector<std::string>> Unreferenced(Session& session,
                                                      const KeyListing& listing, bool everybody) {
  ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdbAgain());
  if (everybody) RETURN_IF_ERROR(CheckDatabaseBelongs(listing, *entries));
  std::set<std::string> referred;
  for (const auto& [principal, keys] : *entries) {
    for (const KdbEntry& key : keys) referred.insert(key.handle);
  }
  std::vector<std::string> handles;
  for (const auto& [handle, key] : listing) {
    if (referred.count(handle) == 0) handles.push_back(handle);
  }
  return handles;
}

absl::Status CheckDelete(const Session& session) {
  const Options& options = session.options();
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
  if (RealmNeeds(principal) && !session.options().force) {
    return Advise(absl::PermissionDeniedError(
                      absl::StrCat("the realm does not work without ", principal)),
                  "to delete only keys no longer in use: mpc-admin delete --old; to delete it all "
                  "the same: --force");
  }
  const absl::Status s = session.kdb().Delete(principal);
  if (absl::IsNotFound(s)) return false;
  if (!s.ok()) return s;
  return true;
}

}  // namespace

absl::StatusOr<ExitCode> DeleteCommand(Session& session) {
  RETURN_IF_ERROR(CheckDelete(session));
  RETURN_IF_ERROR(session.Connect().status());
  ASSIGN_OR_RETURN(std::string principal, session.Principal());
  const bool only_old = session.options().old;
  ASSIGN_OR_RETURN(KeyListing listing, ListOnAll(session, principal, /*staged=*/false));
  ASSIGN_OR_RETURN(bool in_kdb, only_old ? false : DeleteFromKdb(session, principal));
  if (!only_old && !in_kdb && listing.empty()) {
    return Advise(absl::NotFoundError(absl::StrCat("neither the KDC nor the servers know ",
                                                   principal)),
                  "mpc-admin list shows whose keys there are");
  }
  ASSIGN_OR_RETURN(std::vector<std::string> handles,
                   Unreferenced(session, listing, session.options().all));
  const absl::Status s = session.DeleteKeys(handles);
  if (!s.ok()) return Advise(s, "when the server answers run mpc-admin delete --old --all");
  json deleted = json::array();
  for (const std::string& handle : handles) deleted.push_back(Hex(handle));
  session.console().Print(json{{"principal_deleted", in_kdb}, {"handles_deleted", deleted}});
  session.console().Say(absl::StrCat(
      in_kdb ? absl::StrCat(principal, " deleted from the KDC's database; ") : "",
      Plural(handles.size(), "key"), " deleted from the servers"));
  return ExitCode::kOk;
}

}  // namespace mpckdc::admin
