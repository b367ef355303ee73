// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/commands.h"

#include <stdlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/process.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;

constexpr absl::Duration kKinitTimeout = absl::Seconds(60);

struct KnownMessage {
  const char* text;
  LoginVerdict verdict;
};

constexpr LoginVerdict kWrongPassword = {ExitCode::kWrongPassword, "wrong-password",
                                         "the password is wrong",
                                         "try again; mpc-admin enroll --replace sets another one"};

constexpr KnownMessage kKnown[] = {
    {"Password incorrect", kWrongPassword},
    {"Preauthentication failed", kWrongPassword},
    {"Decrypt integrity check failed", kWrongPassword},
    {"A service is not available",
     {ExitCode::kUnavailable, "servers-unavailable",
      "the KDC works, but the MPC servers do not answer it", "mpc-admin doctor"}},
    {"Cannot contact any KDC",
     {ExitCode::kUnavailable, "kdc-unreachable", "the KDC does not answer",
      "start krb5kdc, or correct the realm's kdc in krb5.conf"}},
    {"Cannot find KDC",
     {ExitCode::kUnavailable, "kdc-unknown", "krb5.conf names no KDC for the realm",
      "correct [realms] in krb5.conf, or set KRB5_CONFIG"}},
    {"not found in Kerberos database",
     {ExitCode::kRefused, "unknown-principal", "the KDC does not know the principal",
      "mpc-admin enroll PRINCIPAL"}},
    {"have been revoked",
     {ExitCode::kRefused, "locked", "the principal is locked", "kadmin: modprinc -unlock"}},
    {"Password has expired",
     {ExitCode::kRefused, "password-expired", "the password is right and has expired", "kpasswd"}},
    {"Clock skew too great",
     {ExitCode::kFindings, "clock-skew", "the clocks differ too much", "mpc-admin doctor"}},
    {"no support for encryption type",
     {ExitCode::kFindings, "no-common-enctype", "client and KDC have no enctype in common",
      "mpc-admin list PRINCIPAL shows its keys' enctypes. For a key of aes256-gcm or aes128-gcm "
      "put permitted_enctypes = aes256-gcm aes128-gcm DEFAULT into krb5.conf, and use the patched "
      "kinit (--kinit); for any kinit enrol the password again with enctypes 17 to 20 in the KDC's "
      "supported_enctypes"}},
    {"KDC policy rejects request",
     {ExitCode::kRefused, "policy", "the KDC's or the servers' policy refuses the login",
      "mpc-admin policy PRINCIPAL shows the gate; the servers' audit logs say why"}},
};

// A directory that only we can enter, removed with what is in it.
class PrivateDirectory {
 public:
  PrivateDirectory() {
    std::error_code error;
    name_ = std::filesystem::temp_directory_path(error) / "mpc-admin-XXXXXX";
    if (error || mkdtemp(name_.data()) == nullptr) name_.clear();
  }
  ~PrivateDirectory() {
    std::error_code ignored;
    if (!name_.empty()) std::filesystem::remove_all(name_, ignored);
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

absl::StatusOr<ProcessResult> RunKinit(const std::string& kinit, const std::string& principal,
                                       SecretBytes password, const PrivateDirectory& directory) {
  password.push_back('\n');
  const std::string cache = absl::StrCat("FILE:", directory.name(), "/ccache");
  absl::StatusOr<ProcessResult> result =
      RunProcess({.arguments = {kinit, "-c", cache, principal},
                  .input = password,
                  .environment = {absl::StrCat("KRB5CCNAME=", cache), "LC_ALL=C", "LANGUAGE=C"},
                  .timeout = kKinitTimeout});
  if (absl::IsNotFound(result.status())) {
    return Advise(absl::InvalidArgumentError(result.status().message()),
                  "name the patched kinit with --kinit PROGRAM or kinit in the configuration");
  }
  return result;
}

}  // namespace

LoginVerdict JudgeKinit(int exit_code, absl::string_view errors) {
  if (exit_code == 0) return {ExitCode::kOk, "ok", "logged in", ""};
  for (const KnownMessage& known : kKnown) {
    if (absl::StrContains(errors, known.text)) return known.verdict;
  }
  return {ExitCode::kFindings, "failed", "kinit failed",
          "run it by hand with KRB5_TRACE set to /dev/stderr"};
}

absl::StatusOr<ExitCode> TestLoginCommand(Session& session) {
  ASSIGN_OR_RETURN(std::string principal, session.Principal());
  ASSIGN_OR_RETURN(SecretBytes password,
                   session.Password(absl::StrCat("Password for ", principal), /*again=*/false));
  const PrivateDirectory directory;
  if (directory.name().empty()) return absl::InternalError("cannot make a temporary directory");
  const std::string kinit =
      session.options.kinit.empty() ? session.config.kinit : session.options.kinit;
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(ProcessResult result,
                   RunKinit(kinit, principal, std::move(password), directory));
  const double milliseconds = absl::ToDoubleMilliseconds(absl::Now() - start);
  LoginVerdict verdict = JudgeKinit(result.exit_code, result.errors);
  const std::string said(absl::StripAsciiWhitespace(result.errors));
  session.console.Print(json{{"principal", principal},
                             {"result", verdict.name},
                             {"milliseconds", milliseconds},
                             {"kinit", said}});
  session.console.Say(verdict.code == ExitCode::kOk ? Colour::kGood : Colour::kBad,
                      absl::StrFormat("%s: %s, %.0f ms", principal, verdict.what, milliseconds));
  if (verdict.code != ExitCode::kOk) {
    session.console.Say("  ", said);
    session.console.Say("  next: ", verdict.next);
  }
  return verdict.code;
}

}  // namespace mpckdc::admin
