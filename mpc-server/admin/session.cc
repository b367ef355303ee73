// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/session.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/status_macros.h"

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

}  // namespace mpckdc::admin
