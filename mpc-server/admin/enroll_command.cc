// SPDX-License-Identifier: Apache-2.0
//
// enroll and randkey: where a principal's new keys come from.
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/replace_keys.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/enroll/keytab.h"
#include "mpc-server/key/string_to_key.h"

namespace mpckdc::admin {
namespace {

std::string Describe(const ReplacedKeys& result, absl::string_view how) {
  std::vector<std::string> enctypes;
  for (const KdbKey& key : result.now.keys) enctypes.push_back(EnctypeName(key.enctype));
  std::string text = absl::StrCat(result.now.principal, ": version ", result.now.kvno, " ", how,
                                  " (", absl::StrJoin(enctypes, ", "), ")");
  if (result.old_keys > 0) {
    absl::StrAppend(&text, result.old_deleted ? ", the old keys are deleted"
                                              : ", the old keys stay on the servers until "
                                                "mpc-admin delete --old");
  }
  return text;
}

using MakeKeys = std::function<absl::StatusOr<std::vector<NewKey>>(
    const KdbPlan& plan, const std::vector<KdbKey>& planned, uint32_t* kvno)>;

// What enroll and randkey do for one principal; they differ in where the keys come from.
absl::StatusOr<ExitCode> GiveKeys(Session& session, const enroll::PackageSigner& signer,
                                  const std::string& principal, bool replace,
                                  absl::string_view how, const MakeKeys& make) {
  ASSIGN_OR_RETURN(KdbPlan plan, PlanFor(session, principal, replace));
  ASSIGN_OR_RETURN(std::vector<KdbKey> planned, PlannedKeys(session, plan));
  uint32_t kvno = plan.kvno_next;
  ASSIGN_OR_RETURN(std::vector<NewKey> keys, make(plan, planned, &kvno));
  ASSIGN_OR_RETURN(ReplacedKeys result, ReplaceKeys(session, signer, plan, kvno, std::move(keys)));
  nlohmann::json told = ToJson(result.now);
  told["old_keys"] = result.old_keys;
  told["old_deleted"] = result.old_deleted;
  session.console().Print(told);
  session.console().Say(Describe(result, how));
  return ExitCode::kOk;
}

absl::StatusOr<std::vector<NewKey>> KeysOfPassword(const std::vector<KdbKey>& planned,
                                                   const SecretBytes& password) {
  std::vector<NewKey> keys;
  for (const KdbKey& key : planned) {
    const auto* salt = reinterpret_cast<const uint8_t*>(key.salt.data());
    ASSIGN_OR_RETURN(SecretBytes base, StringToKey(key.enctype, password,
                                                           {salt, key.salt.size()}));
    keys.push_back({key, std::move(base)});
  }
  return keys;
}

// A keytab's version is kept when the database has not gone past it.
absl::StatusOr<std::vector<NewKey>> KeysOfKeytabEntry(Session& session,
                                                      const std::string& principal,
                                                      const std::vector<KdbKey>& planned,
                                                      enroll::KeytabKeys keytab, uint32_t* kvno) {
  if (*kvno > keytab.kvno) {
    session.console().Remark(absl::StrCat(principal, ": version ", keytab.kvno,
                                          " in the keytab, enrolled as version ", *kvno));
  }
  *kvno = std::max(*kvno, keytab.kvno);
  return KeysOfKeytab(planned, principal, std::move(keytab));
}

absl::StatusOr<std::map<std::string, enroll::KeytabKeys>> LoadKeytab(const Session& session) {
  absl::StatusOr<std::vector<enroll::KeytabEntry>> entries =
      enroll::ReadKeytab(session.options().keytab);
  if (!entries.ok()) {
    return Advise(absl::InvalidArgumentError(entries.status().message()),
                  "klist -k shows what a keytab holds");
  }
  return enroll::EnrollableKeys(*std::move(entries));
}

absl::StatusOr<ExitCode> EnrollOneOfKeytab(Session& session, const enroll::PackageSigner& signer) {
  ASSIGN_OR_RETURN(std::string principal, session.Principal());
  ASSIGN_OR_RETURN(auto keytab, LoadKeytab(session));
  const auto found = keytab.find(principal);
  if (found == keytab.end()) {
    return Advise(absl::NotFoundError(absl::StrCat(session.options().keytab, " has no key of ",
                                                   principal)),
                  "klist -k shows what a keytab holds");
  }
  RETURN_IF_ERROR(RefuseKrbtgt(principal));
  return GiveKeys(session, signer, principal, session.options().replace,
                  "enrolled from the keytab",
                  [&](const KdbPlan& plan, const std::vector<KdbKey>& planned, uint32_t* kvno) {
                    return KeysOfKeytabEntry(session, plan.principal, planned,
                                             std::move(found->second), kvno);
                  });
}

absl::Status CheckCombination(const Options& options) {
  const bool all = options.all;
  const bool keytab = !options.keytab.empty();
  absl::string_view problem;
  if (all && !keytab) problem = "--all goes with --keytab";
  if (all && !options.operands.empty()) problem = "--all goes without a principal";
  if (!all && options.operands.empty()) problem = "name a principal";
  if (keytab && options.password_stdin) problem = "--keytab or --password-stdin, not both";
  return problem.empty() ? absl::OkStatus() : BadUsage("enroll", problem);
}

}  // namespace

absl::StatusOr<ExitCode> EnrollCommand(Session& session) {
  const Options& options = session.options();
  RETURN_IF_ERROR(CheckCombination(options));
  ASSIGN_OR_RETURN(enroll::PackageSigner signer, LoadSigner(session));
  // Before a password is asked for: are the servers there?
  RETURN_IF_ERROR(session.Connect().status());
  if (options.all) {
    ASSIGN_OR_RETURN(auto keytab, LoadKeytab(session));
    return EnrollMany(session, signer, std::move(keytab));
  }
  if (!options.keytab.empty()) return EnrollOneOfKeytab(session, signer);
  ASSIGN_OR_RETURN(std::string principal, session.Principal());
  RETURN_IF_ERROR(RefuseKrbtgt(principal));
  return GiveKeys(
      session, signer, principal, options.replace, "enrolled",
      [&](const KdbPlan& plan, const std::vector<KdbKey>& planned,
          uint32_t*) -> absl::StatusOr<std::vector<NewKey>> {
        ASSIGN_OR_RETURN(SecretBytes password,
                         session.Password(absl::StrCat("Password for ", plan.principal),
                                          /*again=*/true));
        return KeysOfPassword(planned, password);
      });
}

absl::StatusOr<ExitCode> RandkeyCommand(Session& session) {
  ASSIGN_OR_RETURN(std::string principal, session.Principal());
  ASSIGN_OR_RETURN(enroll::PackageSigner signer, LoadSigner(session));
  RETURN_IF_ERROR(session.Connect().status());
  return GiveKeys(session, signer, principal, /*replace=*/true, "drawn by the servers",
                  [](const KdbPlan&, const std::vector<KdbKey>& planned, uint32_t*) {
                    std::vector<NewKey> keys;
                    for (const KdbKey& key : planned) keys.push_back({key, {}});
                    return keys;
                  });
}

}  // namespace mpckdc::admin
