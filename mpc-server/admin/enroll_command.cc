// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/admin/bulk_enroll.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/admin/replace_keys.h"
#include "mpc-server/enroll/keytab.h"
#include "mpc-server/key/string_to_key.h"

// enroll and randkey: where a principal's new keys come from.

namespace mpckdc::admin {
namespace {

using nlohmann::json;

json ToJson(const ReplacedKeys& result) {
  json keys = json::array();
  for (const KdbKey& key : result.keys) {
    keys.push_back({{"enctype", enroll::EnctypeName(key.enctype)}, {"handle", Hex(key.handle)}});
  }
  return {{"principal", result.principal},
          {"kvno", result.kvno},
          {"keys", keys},
          {"old_keys", result.old_keys},
          {"old_deleted", result.old_deleted}};
}

std::string Describe(const ReplacedKeys& result, absl::string_view how) {
  std::vector<std::string> enctypes;
  for (const KdbKey& key : result.keys) enctypes.push_back(enroll::EnctypeName(key.enctype));
  std::string text = absl::StrCat(result.principal, ": version ", result.kvno, " ", how, " (",
                                  absl::StrJoin(enctypes, ", "), ")");
  if (result.old_keys > 0) {
    absl::StrAppend(&text, result.old_deleted ? ", the old keys are deleted"
                                              : ", the old keys stay on the servers until "
                                                "mpc-admin delete --old");
  }
  return text;
}

void Report(Session& session, const ReplacedKeys& result, absl::string_view how) {
  if (session.console().json()) {
    session.console().Print(ToJson(result));
  } else {
    session.console().Say(Describe(result, how));
  }
}

absl::StatusOr<std::vector<NewKey>> KeysOfPassword(const std::vector<KdbKey>& planned,
                                                   const SecretBytes& password) {
  std::vector<NewKey> keys;
  for (const KdbKey& key : planned) {
    absl::StatusOr<SecretBytes> base = enroll::StringToKey(
        key.enctype, password,
        absl::MakeSpan(reinterpret_cast<const uint8_t*>(key.salt.data()), key.salt.size()));
    if (!base.ok()) return base.status();
    keys.push_back({key, *std::move(base)});
  }
  return keys;
}

absl::StatusOr<ReplacedKeys> EnrollPassword(Session& session, const std::string& principal,
                                            const enroll::PackageSigner& signer) {
  absl::StatusOr<KdbPlan> plan = PlanFor(session, principal, session.options().Has("--replace"));
  if (!plan.ok()) return plan.status();
  absl::StatusOr<std::vector<KdbKey>> planned = PlannedKeys(session, *plan);
  if (!planned.ok()) return planned.status();
  absl::StatusOr<SecretBytes> password =
      session.Password(absl::StrCat("Password for ", plan->principal), /*again=*/true);
  if (!password.ok()) return password.status();
  absl::StatusOr<std::vector<NewKey>> keys = KeysOfPassword(*planned, *password);
  if (!keys.ok()) return keys.status();
  return ReplaceKeys(session, signer, *plan, plan->kvno_next, *std::move(keys));
}

// A keytab's version is kept when the database has not gone past it.
absl::StatusOr<ReplacedKeys> EnrollFromKeytab(Session& session, const std::string& principal,
                                              enroll::KeytabKeys keytab,
                                              const enroll::PackageSigner& signer) {
  if (absl::Status s = RefuseKrbtgt(principal); !s.ok()) return s;
  absl::StatusOr<KdbPlan> plan = PlanFor(session, principal, session.options().Has("--replace"));
  if (!plan.ok()) return plan.status();
  absl::StatusOr<std::vector<KdbKey>> planned = PlannedKeys(session, *plan);
  if (!planned.ok()) return planned.status();
  const uint32_t kvno = std::max(keytab.kvno, plan->kvno_next);
  if (kvno != keytab.kvno) {
    session.console().Remark(absl::StrCat(principal, ": version ", keytab.kvno,
                                          " in the keytab, enrolled as version ", kvno));
  }
  absl::StatusOr<std::vector<NewKey>> keys =
      KeysOfKeytab(*planned, plan->principal, std::move(keytab));
  if (!keys.ok()) return keys.status();
  return ReplaceKeys(session, signer, *plan, kvno, *std::move(keys));
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
  absl::StatusOr<std::string> principal = session.Principal();
  if (!principal.ok()) return principal.status();
  absl::StatusOr<std::map<std::string, enroll::KeytabKeys>> keytab = LoadKeytab(session);
  if (!keytab.ok()) return keytab.status();
  const auto found = keytab->find(*principal);
  if (found == keytab->end()) {
    return Advise(absl::NotFoundError(absl::StrCat(session.options().keytab, " has no key of ",
                                                   *principal)),
                  "klist -k shows what a keytab holds");
  }
  absl::StatusOr<ReplacedKeys> result =
      EnrollFromKeytab(session, *principal, std::move(found->second), signer);
  if (!result.ok()) return result.status();
  Report(session, *result, "enrolled from the keytab");
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> EnrollAllOfKeytab(Session& session, const enroll::PackageSigner& signer) {
  absl::StatusOr<std::map<std::string, enroll::KeytabKeys>> keytab = LoadKeytab(session);
  if (!keytab.ok()) return keytab.status();
  return EnrollMany(session, signer, *std::move(keytab));
}

absl::Status CheckCombination(const Options& options) {
  const bool all = options.Has("--all");
  const bool keytab = !options.keytab.empty();
  absl::string_view problem;
  if (all && !keytab) problem = "--all goes with --keytab";
  if (all && !options.operands.empty()) problem = "--all goes without a principal";
  if (!all && options.operands.empty()) problem = "name a principal";
  if (keytab && options.Has("--password-stdin")) problem = "--keytab or --password-stdin, not both";
  if (problem.empty()) return absl::OkStatus();
  return Advise(absl::InvalidArgumentError(absl::StrCat("enroll: ", problem)),
                "see mpc-admin enroll --help");
}

}  // namespace

absl::StatusOr<ExitCode> EnrollCommand(Session& session) {
  const Options& options = session.options();
  if (absl::Status s = CheckCombination(options); !s.ok()) return s;
  absl::StatusOr<enroll::PackageSigner> signer = LoadSigner(session);
  if (!signer.ok()) return signer.status();
  // Before a password is asked for: are the servers there?
  if (auto servers = session.Connect(); !servers.ok()) return servers.status();
  if (options.Has("--all")) return EnrollAllOfKeytab(session, *signer);
  if (!options.keytab.empty()) return EnrollOneOfKeytab(session, *signer);
  absl::StatusOr<std::string> principal = session.Principal();
  if (!principal.ok()) return principal.status();
  if (absl::Status s = RefuseKrbtgt(*principal); !s.ok()) return s;
  absl::StatusOr<ReplacedKeys> result = EnrollPassword(session, *principal, *signer);
  if (!result.ok()) return result.status();
  Report(session, *result, "enrolled");
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RandkeyCommand(Session& session) {
  absl::StatusOr<std::string> principal = session.Principal();
  if (!principal.ok()) return principal.status();
  absl::StatusOr<enroll::PackageSigner> signer = LoadSigner(session);
  if (!signer.ok()) return signer.status();
  if (auto servers = session.Connect(); !servers.ok()) return servers.status();
  absl::StatusOr<KdbPlan> plan = PlanFor(session, *principal, /*replace=*/true);
  if (!plan.ok()) return plan.status();
  absl::StatusOr<std::vector<KdbKey>> planned = PlannedKeys(session, *plan);
  if (!planned.ok()) return planned.status();
  std::vector<NewKey> keys;
  for (KdbKey& key : *planned) keys.push_back({std::move(key), {}});
  absl::StatusOr<ReplacedKeys> result =
      ReplaceKeys(session, *signer, *plan, plan->kvno_next, std::move(keys));
  if (!result.ok()) return result.status();
  Report(session, *result, "drawn by the servers");
  return ExitCode::kOk;
}

}  // namespace mpckdc::admin
