// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/session.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/key/string_to_key.h"

namespace mpckdc::admin {
namespace {

std::string ConnectAdvice(const absl::Status& status) {
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    return "is the server running, and the address in the configuration right? mpc-admin status "
           "asks all three";
  }
  if (absl::StrContains(status.message(), "init-realm")) return "run mpc-admin init-realm";
  return "compare the servers' configuration with mpc-admin's; mpc-admin doctor shows all three";
}

}  // namespace

Session::Session(AdminConfig config, Options options, Environment* environment, Console* console)
    : config_(std::move(config)),
      options_(std::move(options)),
      environment_(environment),
      console_(console),
      kdb_(environment->make_kdb(config_)) {}

absl::StatusOr<enroll::AdminServers*> Session::Dial() {
  if (servers_ == nullptr) {
    absl::StatusOr<enroll::AdminServers> servers = environment_->dial(config_);
    if (!servers.ok()) {
      return Advise(servers.status(),
                    "correct [identity] in the configuration; the certificate needs the role "
                    "admin, see deploy/ca/README.md");
    }
    servers_ = std::make_unique<enroll::AdminServers>(*std::move(servers));
  }
  return servers_.get();
}

absl::StatusOr<enroll::AdminServers*> Session::Connect(bool allow_uninitialised) {
  absl::StatusOr<enroll::AdminServers*> servers = Dial();
  if (!servers.ok()) return servers;
  absl::Status s = (*servers)->Check(config_.timeout, config_.cluster, allow_uninitialised);
  if (!s.ok()) return Advise(s, ConnectAdvice(s));
  return servers;
}

absl::StatusOr<const KdbEntries*> Session::ReadKdb() {
  return kdb_entries_.has_value() ? absl::StatusOr<const KdbEntries*>(&*kdb_entries_)
                                  : ReadKdbAgain();
}

absl::StatusOr<const KdbEntries*> Session::ReadKdbAgain() {
  ASSIGN_OR_RETURN(std::vector<KdbEntry> list, kdb_->List());
  KdbEntries entries;
  for (KdbEntry& entry : list) entries[entry.principal].push_back(std::move(entry));
  kdb_entries_ = std::move(entries);
  return &*kdb_entries_;
}

absl::StatusOr<std::string> Session::Principal() const {
  if (options_.operands.empty()) return "";
  return QualifyPrincipal(options_.operands[0], config_.realm);
}

absl::StatusOr<SecretBytes> Session::Password(const std::string& prompt, bool again) {
  return options_.password_stdin ? environment_->read_password()
                                          : environment_->ask_password(prompt, again);
}

// "a server: first line; b server: ..." of those that are not OK; with the first one's code.
absl::Status Session::OnAll(
    const std::function<absl::Status(int party, enroll::AdminClient&)>& call) {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string text;
  for (const absl::Status& s : servers_->OnAll(call)) {
    if (s.ok()) continue;
    if (code == absl::StatusCode::kOk) code = s.code();
    absl::StrAppend(&text, text.empty() ? "" : "; ", s.message());
  }
  return absl::Status(code, text);
}

absl::Status Session::DeleteKeys(absl::Span<const std::string> handles) {
  return OnAll([&](int, enroll::AdminClient& server) {
    return server.DeleteKeys(handles, config_.timeout);
  });
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

absl::StatusOr<KeyListing> ListOnAll(Session& session, const std::string& principal, bool staged) {
  std::array<std::vector<v1::KeyInfo>, 3> lists;
  RETURN_IF_ERROR(session.OnAll([&](int party, enroll::AdminClient& server) -> absl::Status {
    ASSIGN_OR_RETURN(lists[party], server.ListKeys(principal, staged, session.config().timeout));
    return absl::OkStatus();
  }));
  KeyListing listing;
  for (int party = 0; party < 3; ++party) {
    for (v1::KeyInfo& info : lists[party]) {
      ListedKey& key = listing[info.handle()];
      key.present[party] = true;
      if (key.info.handle().empty()) {
        key.info = std::move(info);
      } else if (info.SerializeAsString() != key.info.SerializeAsString()) {
        key.same = false;
      }
    }
  }
  return listing;
}

absl::Status CheckDatabaseBelongs(const KeyListing& everything, const KdbEntries& entries) {
  for (const auto& [principal, keys] : entries) {
    for (const KdbEntry& key : keys) {
      if (everything.count(key.handle) != 0) return absl::OkStatus();
    }
  }
  if (everything.empty()) return absl::OkStatus();
  return Advise(absl::FailedPreconditionError(
                    "the KDC's database refers to none of the servers' keys: nothing was deleted"),
                "is kdb_command in the configuration that of this realm's primary KDC?");
}

std::vector<std::string> KadminOfStandardEnctypes(const KdbEntries& entries) {
  std::vector<std::string> principals;
  for (const auto& [principal, keys] : entries) {
    const bool ageless = IsKadmin(principal) && absl::c_any_of(keys, [&](const KdbEntry& key) {
                           return !CheckTicketEnctype(principal, key.enctype).ok();
                         });
    if (ageless) principals.push_back(principal);
  }
  return principals;
}

std::string Describe(const std::string& principal, uint32_t kvno, int32_t enctype) {
  return absl::StrCat(principal, " version ", kvno, " ", EnctypeName(enctype));
}

std::string Describe(const v1::KeyInfo& info) {
  return Describe(info.principal(), info.kvno(), info.enctype());
}

std::vector<const ListedKey*> Sorted(const KeyListing& listing) {
  std::vector<const ListedKey*> keys;
  for (const auto& [handle, key] : listing) keys.push_back(&key);
  std::sort(keys.begin(), keys.end(), [](const ListedKey* a, const ListedKey* b) {
    return std::forward_as_tuple(a->info.principal(), a->info.kvno(), a->info.enctype(),
                                 a->info.handle()) <
           std::forward_as_tuple(b->info.principal(), b->info.kvno(), b->info.enctype(),
                                 b->info.handle());
  });
  return keys;
}

}  // namespace mpckdc::admin
