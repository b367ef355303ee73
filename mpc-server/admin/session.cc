// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/session.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/admin/exit_code.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/enroll/strictest_gate.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/key/string_to_key.h"

namespace mpckdc::admin {
namespace {

bool IsOutage(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

std::string ConnectAdvice(const absl::Status& status) {
  if (IsOutage(status)) {
    return "is the server running, and the address in the configuration right? mpc-admin status "
           "asks all of them";
  }
  if (absl::StrContains(status.message(), "init-realm")) return "run mpc-admin init-realm";
  return "compare the servers' configuration with mpc-admin's; mpc-admin doctor shows all three";
}

}  // namespace

absl::StatusOr<std::vector<enroll::AdminServers>*> Session::DialAll() {
  if (triples_.has_value()) return &*triples_;
  std::vector<enroll::AdminServers> dialled;
  for (size_t i = 0; i < config.triples.size(); ++i) {
    ASSIGN_OR_RETURN(enroll::AdminServers servers,
                     Advise(environment_.dial(config, i),
                            "correct [identity] in the configuration; the certificate "
                            "needs the role admin, see deploy/ca/README.md"));
    dialled.push_back(std::move(servers));
  }
  return &triples_.emplace(std::move(dialled));
}

absl::StatusOr<enroll::AdminServers*> Session::Dial() {
  ASSIGN_OR_RETURN(std::vector<enroll::AdminServers> * triples, DialAll());
  return &triples->at(triple_);
}

absl::StatusOr<enroll::AdminServers*> Session::Use(size_t triple, bool allow_uninitialised) {
  triple_ = triple;
  ASSIGN_OR_RETURN(enroll::AdminServers * servers, Dial());
  const absl::Status s = servers->Check(config.timeout, config.cluster, allow_uninitialised);
  if (s.ok()) return servers;
  return Advise(s, servers->lost().any() ? servers->lost().WayOut() : ConnectAdvice(s));
}

absl::StatusOr<enroll::AdminServers*> Session::Connect(bool allow_uninitialised) {
  std::optional<size_t> answers;
  std::string outages;
  for (size_t triple = 0; triple < config.triples.size(); ++triple) {
    const auto servers = Use(triple, allow_uninitialised);
    if (servers.ok() && (*servers)->Ready()) return *servers;
    if (servers.ok() && !answers.has_value()) answers = triple;
    if (servers.ok()) continue;
    if (!IsOutage(servers.status()) || config.triples.size() == 1) return servers;
    absl::StrAppend(&outages, outages.empty() ? "" : "; ", servers.status().message());
  }
  if (!answers.has_value()) {
    const absl::Status none = absl::UnavailableError(
        absl::StrCat("of no triple do all three machines answer: ", outages));
    return Advise(none, ConnectAdvice(none));
  }
  Choose(*answers);
  return Dial();
}

absl::StatusOr<const KdbEntries*> Session::ReadKdb() {
  if (kdb_entries_.has_value()) return &*kdb_entries_;
  return ReadKdbAgain();
}

absl::StatusOr<const KdbEntries*> Session::ReadKdbAgain() {
  std::set<std::string> keyless;
  ASSIGN_OR_RETURN(std::vector<v1::KeyInfo> list, kdb.List(&keyless));
  kdb_keyless_ = std::move(keyless);
  KdbEntries& entries = kdb_entries_.emplace();
  for (v1::KeyInfo& entry : list) entries[entry.principal()].push_back(std::move(entry));
  return &entries;
}

absl::StatusOr<std::string> Session::Principal() const {
  if (options.operands.empty()) return "";
  return QualifyPrincipal(options.operands[0], config.realm);
}

absl::StatusOr<SecretBytes> Session::Password(const std::string& prompt, bool again) {
  return options.password_stdin ? environment_.read_password()
                                : environment_.ask_password(prompt, again);
}

// "a server: first line; b server: ..." of those that are not OK; with the first one's code.
absl::Status Session::OnAll(
    const std::function<absl::Status(int party, enroll::AdminClient&)>& call) {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string text;
  for (const absl::Status& s : triples_->at(triple_).OnAll(call)) {
    if (s.ok()) continue;
    if (code == absl::StatusCode::kOk) code = s.code();
    absl::StrAppend(&text, text.empty() ? "" : "; ", s.message());
  }
  return absl::Status(code, text);
}

absl::Status Session::DeleteKeys(absl::Span<const v1::NamedKey> keys, enroll::Deletion how) {
  return OnAll([&](int, enroll::AdminClient& server) {
    return server.DeleteKeys(keys, how, config.timeout);
  });
}

absl::Status Session::RestoreKeys(absl::Span<const v1::NamedKey> keys) {
  return OnAll(
      [&](int, enroll::AdminClient& server) { return server.RestoreKeys(keys, config.timeout); });
}

absl::Status Session::Confirm(const std::string& question) {
  if (options.yes) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool yes, environment_.confirm(question));
  if (yes) return absl::OkStatus();
  return Advise(absl::CancelledError("given up"), "nothing was changed");
}

absl::Status BadUsage(absl::string_view command, absl::string_view problem) {
  return Advise(absl::InvalidArgumentError(problem),
                absl::StrCat("see mpc-admin ", command, " --help"));
}

// ---- The keys on the servers ----

std::string ListedKey::Parties() const {
  std::string text;
  for (int party = 0; party < 3; ++party) text += present[party] ? "012"[party] : '-';
  return text;
}

std::string ListedKey::Gates() const {
  std::set<v1::Gate> said;
  std::vector<std::string> of_each;
  for (int party = 0; party < 3; ++party) {
    if (present[party]) said.insert(gates[party]);
    of_each.push_back(present[party] ? GateName(gates[party]) : "-");
  }
  return said.size() == 1 ? GateName(*said.begin()) : absl::StrJoin(of_each, "/");
}

bool ListedKey::retired_somewhere() const {
  return absl::c_any_of(retired_us, [](int64_t us) { return us != 0; });
}

bool ListedKey::retired() const {
  for (int party = 0; party < 3; ++party) {
    if (present[party] && retired_us[party] == 0) return false;
  }
  return retired_somewhere();
}

bool ListedKey::kept() const {
  for (int party = 0; party < 3; ++party) {
    if (present[party] && !for_history[party]) return false;
  }
  return retired();
}

absl::Time ListedKey::retired_since() const {
  absl::Time since = absl::InfiniteFuture();
  for (const int64_t us : retired_us) {
    if (us != 0) since = std::min(since, absl::FromUnixMicros(us));
  }
  return since;
}

namespace {

// Servers reduce a key that is kept for the history each at its own time.
bool SameFacts(v1::KeyInfo a, v1::KeyInfo b) {
  if (a.key_class() == v1::KEY_CLASS_HISTORY || b.key_class() == v1::KEY_CLASS_HISTORY) {
    a.clear_key_class();
    b.clear_key_class();
  }
  return a.SerializeAsString() == b.SerializeAsString();
}

}  // namespace

absl::StatusOr<KeyListing> ListOnAll(Session& session, const std::string& principal,
                                     enroll::Listed listed) {
  const absl::Duration timeout = session.config.timeout;
  std::array<size_t, 3> most = {};
  if (principal.empty()) {
    ASSIGN_OR_RETURN(enroll::AdminServers * servers, session.Dial());
    ASSIGN_OR_RETURN(most, servers->MostKeys(timeout));
  }
  std::array<std::vector<v1::KeyInfo>, 3> lists;
  RETURN_IF_ERROR(session.OnAll([&](int party, enroll::AdminClient& server) -> absl::Status {
    ASSIGN_OR_RETURN(lists[party], principal.empty()
                                       ? server.ListAllKeys(listed, most[party], timeout)
                                       : server.ListKeys(principal, listed, timeout));
    return absl::OkStatus();
  }));
  KeyListing listing;
  for (int party = 0; party < 3; ++party) {
    for (v1::KeyInfo& info : lists[party]) {
      ListedKey& key = listing[info.handle()];
      key.present[party] = true;
      key.retired_us[party] = info.retired_us();
      key.for_history[party] = info.for_history();
      key.reduced[party] = info.key_class() == v1::KEY_CLASS_HISTORY;
      key.gates[party] = info.gate();
      const uint32_t kvno = info.kvno();
      info.clear_retired_us();
      info.clear_for_history();
      if (key.info.handle().empty()) {
        key.info = std::move(info);
      } else if (!SameFacts(key.info, info)) {
        key.same = false;
      }
      // As new as any says: what is older than the database's may be deleted.
      key.info.set_kvno(std::max(key.info.kvno(), kvno));
      if (key.gates[party] != key.info.gate()) {
        key.info.set_gate(enroll::StrictestGate({key.info.gate(), key.gates[party]}));
      }
      // One that a server has reduced already counts as that.
      if (key.reduced[party]) key.info.set_key_class(v1::KEY_CLASS_HISTORY);
    }
  }
  return listing;
}

absl::Time Policies::Collected(const ListedKey& key) const {
  absl::Time first = absl::InfiniteFuture();
  for (int party = 0; party < 3; ++party) {
    if (key.retired_us[party] == 0 || key.for_history[party]) continue;
    first = std::min(first, absl::FromUnixMicros(key.retired_us[party]) + delete_grace[party]);
  }
  return first;
}

absl::StatusOr<Policies> ReadPolicies(Session& session) {
  Policies policies;
  std::array<absl::Duration, 3> lives;
  RETURN_IF_ERROR(session.OnAll([&](int party, enroll::AdminClient& server) -> absl::Status {
    ASSIGN_OR_RETURN(const v1::StatusReply status, server.GetStatus(session.config.timeout));
    policies.delete_grace[party] = absl::Microseconds(status.delete_grace_us());
    lives[party] = absl::Microseconds(status.max_renewable_life_us());
    return absl::OkStatus();
  }));
  std::sort(lives.begin(), lives.end());
  policies.max_renewable_life = lives[1];
  return policies;
}

KeyListing Unreferenced(const KeyListing& listing, const KdbEntries& entries) {
  KeyListing unreferenced = listing;
  for (const auto& [principal, keys] : entries) {
    for (const v1::KeyInfo& key : keys) unreferenced.erase(key.handle());
  }
  return unreferenced;
}

std::vector<std::string> HandlesOf(const KeyListing& keys) {
  std::vector<std::string> handles;
  for (const auto& [handle, key] : keys) handles.push_back(handle);
  return handles;
}

v1::NamedKey Named(const std::string& principal, const std::string& handle) {
  v1::NamedKey key;
  key.set_principal(principal);
  key.set_handle(handle);
  return key;
}

std::vector<v1::NamedKey> Named(const std::string& principal,
                                absl::Span<const std::string> handles) {
  std::vector<v1::NamedKey> keys;
  for (const std::string& handle : handles) keys.push_back(Named(principal, handle));
  return keys;
}

std::vector<v1::NamedKey> Named(const KeyListing& listing) {
  std::vector<v1::NamedKey> keys;
  for (const auto& [handle, key] : listing) keys.push_back(Named(key.info.principal(), handle));
  return keys;
}

KeyListing WithoutRetired(KeyListing listing) {
  std::erase_if(listing, [](const auto& listed) { return listed.second.retired(); });
  return listing;
}

absl::Status CheckDatabaseBelongs(const KeyListing& everything, const KdbEntries& entries) {
  const size_t unused = Unreferenced(everything, entries).size();
  if (everything.empty() || unused < everything.size()) return absl::OkStatus();
  return Advise(absl::FailedPreconditionError(
                    "the KDC's database refers to none of the servers' keys: nothing was deleted"),
                "is kdb_command in the configuration that of this realm's primary KDC?");
}

std::set<std::string> SpareKeyless(const std::set<std::string>& keyless, KeyListing* listing) {
  std::set<std::string> spared;
  std::erase_if(*listing, [&](const auto& listed) {
    const std::string& principal = listed.second.info.principal();
    if (!keyless.contains(principal)) return false;
    spared.insert(principal);
    return true;
  });
  return spared;
}

size_t SpareNewer(const KdbEntries& entries, KeyListing* listing) {
  return std::erase_if(*listing, [&](const auto& listed) {
    const auto found = entries.find(listed.second.info.principal());
    return found != entries.end() && !found->second.empty() &&
           absl::c_all_of(found->second, [&](const v1::KeyInfo& named) {
             return named.kvno() < listed.second.info.kvno();
           });
  });
}

absl::StatusOr<size_t> RestoreNamed(Session& session, const std::string& principal,
                                    const std::set<std::string>& handles) {
  ASSIGN_OR_RETURN(KeyListing retired, ListOnAll(session, principal, enroll::Listed::kRetired));
  std::erase_if(retired, [&](const auto& listed) {
    return !handles.contains(listed.first) || !listed.second.retired_somewhere();
  });
  if (retired.empty()) return 0;
  ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdbAgain());
  // As the database says whose they are: a server that lies must not have a refusal called success.
  std::vector<v1::NamedKey> named;
  for (const auto& [name, keys] : *entries) {
    for (const v1::KeyInfo& key : keys) {
      if (!key.for_history() && retired.contains(key.handle())) {
        named.push_back(Named(name, key.handle()));
      }
    }
  }
  if (named.empty()) return 0;
  RETURN_IF_ERROR(session.RestoreKeys(named));
  return named.size();
}

std::vector<std::string> KadminOfStandardEnctypes(const KdbEntries& entries) {
  std::vector<std::string> principals;
  for (const auto& [principal, keys] : entries) {
    const bool ageless =
        IsKadmin(principal) && absl::c_any_of(keys, [&](const v1::KeyInfo& key) {
          return !key.for_history() && !CheckTicketEnctype(principal, key.enctype()).ok();
        });
    if (ageless) principals.push_back(principal);
  }
  return principals;
}

std::string Describe(const v1::KeyInfo& info) {
  return absl::StrCat(info.principal(), " version ", info.kvno(), " ", EnctypeName(info.enctype()));
}

std::vector<ListedKey> Sorted(const KeyListing& listing) {
  std::vector<ListedKey> keys;
  for (const auto& [handle, key] : listing) keys.push_back(key);
  using Rank = std::tuple<const std::string&, uint32_t, int32_t>;  // then by handle, as they are
  std::ranges::stable_sort(keys, {}, [](const ListedKey& key) {
    return Rank(key.info.principal(), key.info.kvno(), key.info.enctype());
  });
  return keys;
}

}  // namespace mpckdc::admin
