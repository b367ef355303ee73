// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/admin/replace_keys.h"
#include "mpc-server/enroll/keytab.h"
#include "mpc-server/enroll/string_to_key.h"

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

absl::Status RefuseKrbtgt(const std::string& principal) {
  if (KeyClassOf(principal) != v1::KEY_CLASS_TGS) return absl::OkStatus();
  return Advise(absl::InvalidArgumentError(
                    absl::StrCat(principal, ": a ticket-granting key that somebody has seen would "
                                            "be no secret; the servers draw it")),
                absl::StrCat("mpc-admin randkey ", principal));
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

absl::StatusOr<std::vector<NewKey>> KeysOfKeytab(const std::vector<KdbKey>& planned,
                                                 const std::string& principal,
                                                 enroll::KeytabKeys keytab) {
  std::vector<NewKey> keys;
  for (const KdbKey& key : planned) {
    const auto found = keytab.keys.find(key.enctype);
    if (found != keytab.keys.end()) keys.push_back({key, found->second});
  }
  if (keys.empty()) {
    return Advise(absl::FailedPreconditionError(absl::StrCat(
                      principal, ": the keytab has no key of an enctype that the KDC plans")),
                  "the keytab needs aes128-gcm or aes256-gcm keys, or the equal ones of enctypes "
                  "17 (aes128-cts) and 18 (aes256-cts)");
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

struct BulkResult {
  std::vector<ReplacedKeys> enrolled;
  std::vector<std::string> already;
  std::vector<std::pair<std::string, absl::Status>> failed;
  size_t other_realms = 0;
};

ExitCode ReportBulk(Session& session, const BulkResult& result) {
  Console& console = session.console();
  if (console.json()) {
    json enrolled = json::array(), failed = json::array();
    for (const ReplacedKeys& one : result.enrolled) enrolled.push_back(ToJson(one));
    for (const auto& [principal, why] : result.failed) {
      failed.push_back({{"principal", principal}, {"error", std::string(why.message())}});
    }
    console.Print(json{{"enrolled", enrolled},
                       {"already", result.already},
                       {"failed", failed},
                       {"other_realms", result.other_realms}});
  }
  console.Say(absl::StrCat(result.enrolled.size(), " enrolled, ", result.already.size(),
                           " had protected keys already, ", result.failed.size(), " failed, ",
                           result.other_realms, " of other realms left out"));
  for (const auto& [principal, why] : result.failed) {
    console.Say(absl::StrCat("  ", principal, ": ", why.message()), Colour::kBad);
  }
  if (!result.already.empty()) console.Say("  next: repeat with --replace to give those new keys");
  return result.failed.empty() ? ExitCode::kOk : ExitCode::kFindings;
}

// Goes on after one principal's error, but not when servers or KDB do not answer.
absl::StatusOr<ExitCode> EnrollAllOfKeytab(Session& session, const enroll::PackageSigner& signer) {
  absl::StatusOr<std::map<std::string, enroll::KeytabKeys>> keytab = LoadKeytab(session);
  if (!keytab.ok()) return keytab.status();
  BulkResult result;
  size_t done = 0;
  for (auto& [principal, keys] : *keytab) {
    session.console().Progress(done++, keytab->size(), principal);
    if (!absl::EndsWith(principal, absl::StrCat("@", session.config().realm))) {
      ++result.other_realms;
      continue;
    }
    absl::StatusOr<ReplacedKeys> one =
        EnrollFromKeytab(session, principal, std::move(keys), signer);
    if (one.ok()) {
      result.enrolled.push_back(*std::move(one));
    } else if (absl::IsAlreadyExists(one.status())) {
      result.already.push_back(principal);
    } else if (ExitCodeOf(one.status()) == ExitCode::kUnavailable) {
      session.console().EndProgress();
      ReportBulk(session, result);
      return Advise(one.status(), "then run the same command again: it goes on where it stopped");
    } else {
      result.failed.emplace_back(principal, one.status());
    }
  }
  session.console().Progress(keytab->size(), keytab->size(), "done");
  session.console().EndProgress();
  return ReportBulk(session, result);
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
