// SPDX-License-Identifier: Apache-2.0
//
// enroll and randkey: how one principal gets keys, and where they come from.
#include "mpc-server/admin/enroll.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/enroll/strictest_gate.h"
#include "mpc-server/enroll/transaction.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/string_to_key.h"

namespace mpckdc::admin {

namespace {

// A key that is in use says it better than one that was deleted.
bool SaysLess(const v1::KeyInfo& a, const v1::KeyInfo& b) {
  return std::pair(a.retired_us() == 0, a.kvno()) < std::pair(b.retired_us() == 0, b.kvno());
}

// Of one that is kept for the password history the class is forgotten, and what follows an imported
// krbtgt is drawn.
v1::KeyClass ClassOfNext(const std::string& principal, const std::optional<v1::KeyInfo>& newest) {
  if (!newest.has_value() || newest->key_class() == v1::KEY_CLASS_HISTORY ||
      newest->key_class() == v1::KEY_CLASS_TGS_OLD) {
    return KeyClassOf(principal);
  }
  return newest->key_class();
}

}  // namespace

absl::StatusOr<NewestByPrincipal> ListNewest(Session& session, const std::string& principal,
                                             const std::set<std::string>& but) {
  ASSIGN_OR_RETURN(enroll::AdminServers * servers, session.Connect());
  const absl::Duration timeout = session.config.timeout;
  std::array<size_t, 3> most = {};
  if (principal.empty()) {
    ASSIGN_OR_RETURN(most, servers->MostKeys(timeout));
  }
  std::array<NewestByPrincipal, 3> of_server;
  for (const absl::Status& s : servers->OnAll([&](int party, enroll::AdminClient& server) {
         const auto listed = enroll::Listed::kCommitted;
         ASSIGN_OR_RETURN(std::vector<v1::KeyInfo> keys,
                          principal.empty() ? server.ListAllKeys(listed, most[party], timeout)
                                            : server.ListKeys(principal, listed, timeout));
         for (v1::KeyInfo& key : keys) {
           if (but.contains(key.handle())) continue;
           std::optional<v1::KeyInfo>& newest = of_server[party][key.principal()][party];
           if (!newest.has_value() || SaysLess(*newest, key)) newest = std::move(key);
         }
         return absl::OkStatus();
       })) {
    RETURN_IF_ERROR(s);
  }
  NewestByPrincipal all = std::move(of_server[0]);
  for (int party = 1; party < 3; ++party) {
    for (auto& [name, newest] : of_server[party]) all[name][party] = std::move(newest[party]);
  }
  return all;
}

Powers PowersFor(const Options& options, const std::string& principal, const NewestKeys& present) {
  std::set<v1::Gate> gates;
  std::set<v1::KeyClass> classes;
  for (const std::optional<v1::KeyInfo>& newest : present) {
    gates.insert(newest.has_value() ? newest->gate() : v1::GATE_TIMESTAMP);
    classes.insert(ClassOfNext(principal, newest));
  }
  Powers powers{enroll::StrictestGate(gates),
                classes.size() == 1 ? *classes.begin() : KeyClassOf(principal)};
  powers.differ = (gates.size() > 1 && !options.gate.has_value()) ||
                  (classes.size() > 1 && !options.key_class.has_value());
  powers.gate = options.gate.value_or(powers.gate);
  if (powers.key_class != v1::KEY_CLASS_TGS) {
    powers.key_class = options.key_class.value_or(powers.key_class);
  }
  return powers;
}

void RemarkDifference(Session& session, const std::string& principal, const Powers& powers) {
  if (!powers.differ) return;
  session.console.Remark("the servers do not agree on gate or class of the keys of ", principal,
                         ": the new ones get gate ", GateName(powers.gate), ", class ",
                         KeyClassName(powers.key_class),
                         " (mpc-admin list shows them, mpc-admin policy changes the gate)");
}

void GiveHandles(const Powers& powers, NewKeys* keys, KdbNewKeys* fresh) {
  for (auto& [info, base] : *keys) {
    info.set_handle(enroll::RandomIdentifier());
    info.set_principal(fresh->principal);
    info.set_kvno(fresh->kvno);
    info.set_key_class(powers.key_class);
    info.set_gate(powers.gate);
    fresh->keys.push_back(info);
  }
}

std::vector<std::string> HandlesOf(const KdbEntries& entries, const std::string& principal) {
  const auto found = entries.find(principal);
  if (found == entries.end()) return {};
  std::vector<std::string> handles;
  for (const v1::KeyInfo& key : found->second) {
    if (!key.for_history()) handles.push_back(key.handle());
  }
  return handles;
}

KdbNewKeys::Expected ExpectedOf(const KdbPlan& plan, std::vector<std::string> handles) {
  return {plan.exists, plan.kvno_next - 1, std::move(handles)};
}

void KeepInUse(Session& session, const std::string& principal,
               const std::set<std::string>& handles) {
  const absl::StatusOr<size_t> restored = RestoreNamed(session, principal, handles);
  if (!restored.ok()) {
    session.console.Remark("whether somebody deleted new keys meanwhile cannot be seen: ",
                           restored.status().message(), "; see mpc-admin gc within the grace time");
  } else if (*restored > 0) {
    session.console.Remark(*restored,
                           " of the new keys were deleted before the KDC's database named them, "
                           "and are in use again");
  }
}

absl::StatusOr<std::vector<absl::Status>> Settle(Session& session,
                                                 absl::Span<const KdbNewKeys> principals, bool bulk,
                                                 const absl::Status& why) {
  absl::StatusOr<const KdbEntries*> entries = session.ReadKdbAgain();
  if (!entries.ok()) {
    return Advise(
        absl::DataLossError(absl::StrCat("the KDC's database may or may not have the ",
                                         bulk ? "last" : "new", " keys: ", why.message(),
                                         "; and it cannot be read: ", entries.status().message())),
        bulk ? absl::StrCat("when the KDC's host answers again ", kAgain, "; then mpc-admin doctor")
             : "when the KDC's host answers again run mpc-admin doctor, then this command");
  }
  std::vector<absl::Status> results;
  for (const KdbNewKeys& fresh : principals) {
    const std::vector<std::string> present = HandlesOf(**entries, fresh.principal);
    const size_t there = absl::c_count_if(fresh.keys, [&](const v1::KeyInfo& key) {
      return absl::c_linear_search(present, key.handle());
    });
    if (there > 0 && there < fresh.keys.size()) {
      return absl::DataLossError(absl::StrCat("the KDC's database has only some of the new keys",
                                              bulk ? " of " : "", bulk ? fresh.principal : "", ": ",
                                              why.message()));
    }
    results.push_back(there == fresh.keys.size() ? absl::OkStatus() : why);
  }
  return results;
}

void to_json(nlohmann::json& out, const KdbNewKeys& fresh) {
  nlohmann::json keys = nlohmann::json::array();
  for (const v1::KeyInfo& key : fresh.keys) {
    keys.push_back({{"enctype", EnctypeName(key.enctype())}, {"handle", Hex(key.handle())}});
  }
  out = {{"principal", fresh.principal}, {"kvno", fresh.kvno}, {"keys", keys}};
}

absl::Status RefuseKrbtgt(const std::string& principal) {
  if (KeyClassOf(principal) != v1::KEY_CLASS_TGS) return absl::OkStatus();
  if (!IsOwnTgt(principal)) {
    return Advise(absl::InvalidArgumentError(
                      absl::StrCat(principal, ": keys between realms are not enrolled here")),
                  "kadmin addprinc -pw in both realms, with one long random password and the same "
                  "-e: kdc-plugin/README.md, \"Keys between realms\"");
  }
  return Advise(absl::InvalidArgumentError(
                    absl::StrCat(principal,
                                 ": a ticket-granting key that somebody has seen would "
                                 "be no secret; the servers draw it")),
                absl::StrCat("mpc-admin randkey ", principal));
}

absl::StatusOr<NewKeys> KeysOfKeytab(const std::vector<v1::KeyInfo>& planned,
                                     const std::string& principal, enroll::KeytabKeys keytab) {
  NewKeys keys;
  for (const v1::KeyInfo& key : planned) {
    const auto found = keytab.keys.find(key.enctype());
    if (found != keytab.keys.end()) keys.push_back({key, found->second});
  }
  if (keys.empty()) {
    return Advise(absl::FailedPreconditionError(absl::StrCat(
                      principal, ": the keytab has no key of an enctype that the KDC plans")),
                  "klist -ke shows the keytab's enctypes; keys of 17 (aes128-cts) and 18 "
                  "(aes256-cts) are taken for aes128-gcm and aes256-gcm too, any other only for "
                  "what it is");
  }
  return keys;
}

namespace {

absl::Status CheckAsked(const Session& session, const std::string& principal) {
  for (const int32_t enctype : session.options.enctypes) {
    const absl::Status s = CheckTicketEnctype(principal, enctype);
    if (!s.ok()) return Advise(s, "leave --enctype out, or ask for aes256-gcm");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<v1::KeyInfo>> PlannedKeys(const Session& session, const KdbPlan& plan) {
  const std::vector<int32_t>& asked = session.options.enctypes;
  RETURN_IF_ERROR(CheckAsked(session, plan.principal));
  const bool only_gcm =
      KeyClassOf(plan.principal) == v1::KEY_CLASS_TGS || IsKadmin(plan.principal);
  std::vector<v1::KeyInfo> keys;
  for (const v1::KeyInfo& key : plan.keys) {
    const Enctype* enctype = FindEnctype(key.enctype());
    if (enctype == nullptr) continue;
    const bool wanted = asked.empty() ? !only_gcm || enctype->is_gcm()
                                      : absl::c_linear_search(asked, enctype->number);
    // One key per enctype, as kadmin does: a second salt could never be used.
    const bool first = absl::c_none_of(
        keys, [&](const v1::KeyInfo& other) { return other.enctype() == enctype->number; });
    if (wanted && first) keys.push_back(key);
  }
  if (keys.empty()) {
    return Advise(
        absl::FailedPreconditionError(absl::StrCat(
            "the KDC plans no key that the servers can hold",
            asked.empty() ? "" : ", of the enctypes asked for,", " for ", plan.principal)),
        absl::StrCat("add some of these, as in aes256-gcm:normal, to supported_enctypes "
                     "in kdc.conf: ",
                     only_gcm ? "aes256-gcm, aes128-gcm" : EnctypeNames()));
  }
  return keys;
}

// ---- The commands ----

absl::StatusOr<enroll::PackageSigner> LoadSigner(const Session& session) {
  const enroll::AdminIdentity& identity = session.config.identity;
  return Advise(enroll::PackageSigner::FromPemFiles(identity.certificate_file, identity.key_file),
                "correct [identity] in the configuration");
}

namespace {

// Refused when the principal has protected keys and `replace` is false.
absl::StatusOr<KdbPlan> PlanFor(Session& session, const std::string& principal, bool replace) {
  ASSIGN_OR_RETURN(KdbPlan plan, session.kdb.Plan(principal, !session.options.no_create));
  const std::string& realm = session.config.realm;
  if (!IsOfRealm(plan.principal, realm) && !IsTgtFromOtherRealm(plan.principal, realm)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the KDB command planned for ", plan.principal, ", a principal of another realm"));
  }
  if (!plan.exists) return plan;
  ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdb());
  const auto found = entries->find(plan.principal);
  if (!replace && found != entries->end() && !found->second.empty()) {
    uint32_t kvno = 0;
    for (const v1::KeyInfo& entry : found->second) kvno = std::max(kvno, entry.kvno());
    return Advise(absl::AlreadyExistsError(
                      absl::StrCat(plan.principal, " has protected keys already, version ", kvno)),
                  "repeat with --replace to give it new keys");
  }
  return plan;
}

struct ReplacedKeys {
  KdbNewKeys now;
  size_t old_keys = 0;  // handles that the KDB referred to before
  bool old_deleted = false;
};

// Replaced keys keep their gate and class unless others were asked for.
absl::StatusOr<Powers> PowersOfNext(Session& session, const KdbPlan& plan) {
  NewestByPrincipal present;
  if (plan.exists) {
    ASSIGN_OR_RETURN(present, ListNewest(session, plan.principal));
  }
  const Powers powers = PowersFor(session.options, plan.principal, present[plan.principal]);
  RemarkDifference(session, plan.principal, powers);
  return powers;
}

// As kadmind does: an administrator who has narrowed the gate meanwhile did so with the keys that
// he saw.
absl::Status CheckGateHolds(Session& session, const KdbPlan& plan, const KdbNewKeys& fresh,
                            v1::Gate given) {
  if (!plan.exists || session.options.gate.has_value()) return absl::OkStatus();
  const std::vector<std::string> handles = HandlesOf(fresh.keys);
  ASSIGN_OR_RETURN(NewestByPrincipal present,
                   ListNewest(session, plan.principal,
                              std::set<std::string>(handles.begin(), handles.end())));
  const Powers now = PowersFor(session.options, plan.principal, present[plan.principal]);
  if (now.gate == given) return absl::OkStatus();
  return Advise(absl::AbortedError(absl::StrCat("the gate of the keys of ", plan.principal,
                                                " was changed meanwhile")),
                "run the same command again");
}

void DeleteOld(Session& session, const std::vector<std::string>& old, ReplacedKeys* result) {
  const absl::Status s =
      session.DeleteKeys(Named(result->now.principal, old), enroll::Deletion::kRetire);
  result->old_deleted = s.ok();
  if (!s.ok()) {
    session.console.Remark("the new keys are in use, but old ones could not be deleted: ",
                           s.message(), "; later: mpc-admin delete --old ", result->now.principal);
  }
}

absl::StatusOr<ReplacedKeys> ReplaceKeys(Session& session, const enroll::PackageSigner& signer,
                                         const KdbPlan& plan, uint32_t kvno, NewKeys keys,
                                         OldKeys old_keys) {
  ASSIGN_OR_RETURN(enroll::AdminServers * servers, session.Connect());
  ASSIGN_OR_RETURN(Powers powers, PowersOfNext(session, plan));
  std::vector<std::string> old;
  if (plan.exists) {
    ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdb());
    old = HandlesOf(*entries, plan.principal);
  }

  // Tickets under the old krbtgt key live on, unless they are to end: the KDB must go on referring
  // to it.
  const bool stay = old_keys == OldKeys::kStayInUse;
  const bool delete_old = !stay && (session.options.delete_old || session.options.kadmin);
  const bool keep_old = stay || (KeyClassOf(plan.principal) == v1::KEY_CLASS_TGS && !delete_old);
  ReplacedKeys result{
      {plan.principal, kvno, {}, keep_old, ExpectedOf(plan, old)}, old.size(), false};
  const absl::Duration timeout = session.config.timeout;
  enroll::KeyTransaction transaction(servers, {.stage = timeout, .commit = timeout});
  GiveHandles(powers, &keys, &result.now);
  for (const enroll::KeyToShare& key : keys) {
    RETURN_IF_ERROR(key.base.empty() ? transaction.AddDrawn(key.info)
                                     : transaction.Add({&key, 1}, signer));
  }
  keys.clear();  // wipes them
  RETURN_IF_ERROR(transaction.Run());
  const absl::Status holds = CheckGateHolds(session, plan, result.now, powers.gate);
  if (!holds.ok()) {
    return Advise(transaction.RollbackAfter(holds), AdviceOf(holds));
  }

  if (const absl::Status why = session.kdb.SetHandles(result.now); !why.ok()) {
    ASSIGN_OR_RETURN(auto settled, Settle(session, {&result.now, 1}, /*bulk=*/false, why));
    if (!settled[0].ok()) return Advise(transaction.RollbackAfter(why), AdviceOf(why));
  }
  const std::vector<std::string> fresh = HandlesOf(result.now.keys);
  KeepInUse(session, plan.principal, std::set<std::string>(fresh.begin(), fresh.end()));
  if (delete_old && !old.empty()) DeleteOld(session, old, &result);
  return result;
}

std::string Describe(const ReplacedKeys& result, absl::string_view how) {
  const auto enctype = [](std::string* out, const v1::KeyInfo& key) {
    *out += EnctypeName(key.enctype());
  };
  std::string text = absl::StrCat(result.now.principal, ": version ", result.now.kvno, " ", how,
                                  " (", absl::StrJoin(result.now.keys, ", ", enctype), ")");
  if (result.old_keys == 0) return text;
  if (result.old_deleted) {
    return text +
           ", the old keys are deleted (usable for the grace time where a database still "
           "names them; mpc-admin gc)";
  }
  if (result.now.keep_old && KeyClassOf(result.now.principal) != v1::KEY_CLASS_TGS) {
    return text + ", tickets under the old keys stay good";
  }
  if (result.now.keep_old) {
    return text +
           ", tickets under the old keys stay good until mpc-admin rotate-krbtgt --finish";
  }
  return text + ", the old keys stay on the servers until mpc-admin delete --old";
}

// Of the planned ones; may raise `kvno`.
using MakeKeys = std::function<absl::StatusOr<NewKeys>(
    const std::string& principal, const std::vector<v1::KeyInfo>& planned, uint32_t* kvno)>;

// What enroll and randkey do for one principal; they differ in where the keys come from.
absl::StatusOr<nlohmann::json> GiveKeysTo(const std::string& principal, Session& session,
                                          const enroll::PackageSigner& signer, bool replace,
                                          absl::string_view how, const MakeKeys& make,
                                          OldKeys old_keys = OldKeys::kAsOptionsSay) {
  ASSIGN_OR_RETURN(KdbPlan plan, PlanFor(session, principal, replace));
  ASSIGN_OR_RETURN(std::vector<v1::KeyInfo> planned, PlannedKeys(session, plan));
  uint32_t kvno = plan.kvno_next;
  ASSIGN_OR_RETURN(NewKeys keys, make(plan.principal, planned, &kvno));
  ASSIGN_OR_RETURN(ReplacedKeys result,
                   ReplaceKeys(session, signer, plan, kvno, std::move(keys), old_keys));
  nlohmann::json told = result.now;
  told.update({{"old_keys", result.old_keys}, {"old_deleted", result.old_deleted}});
  session.console.Say(Describe(result, how));
  return told;
}

absl::StatusOr<ExitCode> GiveKeys(Session& session, const enroll::PackageSigner& signer,
                                  const std::string& principal, bool replace, absl::string_view how,
                                  const MakeKeys& make) {
  ASSIGN_OR_RETURN(nlohmann::json told, GiveKeysTo(principal, session, signer, replace, how, make));
  session.console.Print(told);
  return ExitCode::kOk;
}

constexpr char kSeeKeytab[] = "klist -k shows what a keytab holds";

absl::StatusOr<std::map<std::string, enroll::KeytabKeys>> LoadKeytab(const Session& session) {
  auto entries = enroll::ReadKeytab(session.options.keytab);
  if (entries.ok()) return enroll::EnrollableKeys(*std::move(entries));
  return Advise(absl::InvalidArgumentError(entries.status().message()), kSeeKeytab);
}

absl::StatusOr<ExitCode> EnrollOneOfKeytab(Session& session, const enroll::PackageSigner& signer) {
  ASSIGN_OR_RETURN(std::string principal, session.Principal());
  ASSIGN_OR_RETURN(auto keytab, LoadKeytab(session));
  const auto found = keytab.find(principal);
  if (found == keytab.end()) {
    return Advise(
        absl::NotFoundError(absl::StrCat(session.options.keytab, " has no key of ", principal)),
        kSeeKeytab);
  }
  RETURN_IF_ERROR(RefuseKrbtgt(principal));
  // A keytab's version is kept when the database has not gone past it.
  const MakeKeys make = [&](const std::string& name, const auto& planned, uint32_t* kvno) {
    const uint32_t told = found->second.kvno;
    if (*kvno > told) {
      session.console.Remark(name, ": version ", told, " in the keytab, enrolled as version ",
                             *kvno);
    }
    *kvno = std::max(*kvno, told);
    return KeysOfKeytab(planned, name, std::move(found->second));
  };
  return GiveKeys(session, signer, principal, session.options.replace, "enrolled from the keytab",
                  make);
}

absl::StatusOr<ExitCode> EnrollPassword(Session& session, const enroll::PackageSigner& signer) {
  ASSIGN_OR_RETURN(std::string principal, session.Principal());
  RETURN_IF_ERROR(RefuseKrbtgt(principal));
  const MakeKeys make = [&](const std::string& name, const auto& planned,
                            uint32_t*) -> absl::StatusOr<NewKeys> {
    ASSIGN_OR_RETURN(SecretBytes password,
                     session.Password(absl::StrCat("Password for ", name), /*again=*/true));
    NewKeys keys;
    for (const v1::KeyInfo& key : planned) {
      ASSIGN_OR_RETURN(SecretBytes base, StringToKey(key.enctype(), password, AsBytes(key.salt())));
      keys.push_back({key, std::move(base)});
    }
    return keys;
  };
  return GiveKeys(session, signer, principal, session.options.replace, "enrolled", make);
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
  const Options& options = session.options;
  RETURN_IF_ERROR(CheckCombination(options));
  ASSIGN_OR_RETURN(enroll::PackageSigner signer, LoadSigner(session));
  // Before a password is asked for: are the servers there?
  RETURN_IF_ERROR(session.Connect().status());
  if (options.all) {
    ASSIGN_OR_RETURN(auto keytab, LoadKeytab(session));
    return EnrollMany(session, signer, std::move(keytab));
  }
  return options.keytab.empty() ? EnrollPassword(session, signer)
                                : EnrollOneOfKeytab(session, signer);
}

namespace {

constexpr char kDrawn[] = "drawn by the servers";

absl::StatusOr<NewKeys> KeysToDraw(const std::string&, const std::vector<v1::KeyInfo>& planned,
                                   uint32_t*) {
  NewKeys keys;
  for (const v1::KeyInfo& key : planned) keys.push_back({key, {}});
  return keys;
}

}  // namespace

absl::StatusOr<nlohmann::json> DrawNext(Session& session, const std::string& principal,
                                        OldKeys old_keys, uint32_t at_least) {
  ASSIGN_OR_RETURN(enroll::PackageSigner signer, LoadSigner(session));
  const MakeKeys make = [&](const std::string& name, const auto& planned, uint32_t* kvno) {
    *kvno = std::max(*kvno, at_least);
    return KeysToDraw(name, planned, kvno);
  };
  return GiveKeysTo(principal, session, signer, /*replace=*/true, kDrawn, make, old_keys);
}

namespace {

// Keys of kadmin/* older than those that the database has: a run that was killed may have left
// them. A key that somebody is making just now is newer than those.
absl::StatusOr<KeyListing> ReplacedKadminKeys(Session& session) {
  KeyListing replaced;
  ASSIGN_OR_RETURN(const KdbEntries* before, session.ReadKdb());
  for (const auto& [principal, keys] : *before) {
    if (!IsKadmin(principal)) continue;
    ASSIGN_OR_RETURN(KeyListing listing, ListOnAll(session, principal, enroll::Listed::kCommitted));
    replaced.merge(listing);
  }
  ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdbAgain());
  replaced = WithoutRetired(Unreferenced(replaced, *entries));
  std::erase_if(replaced, [entries](const auto& listed) {
    const v1::KeyInfo& key = listed.second.info;
    const auto found = entries->find(key.principal());
    return found == entries->end() || absl::c_none_of(found->second, [&](const v1::KeyInfo& now) {
             return now.kvno() > key.kvno();
           });
  });
  return replaced;
}

absl::Status DeleteReplacedKadminKeys(Session& session) {
  ASSIGN_OR_RETURN(KeyListing replaced, ReplacedKadminKeys(session));
  if (replaced.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(session.DeleteKeys(Named(replaced), enroll::Deletion::kRetire));
  for (const ListedKey& key : Sorted(replaced)) {
    session.console.Say(admin::Describe(key.info),
                        ": left by an earlier run, deleted from the servers");
  }
  return absl::OkStatus();
}

// One after the other. After an error, or when it was killed, the same command does what is left.
absl::StatusOr<ExitCode> RandkeyKadmin(Session& session, const enroll::PackageSigner& signer) {
  ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdb());
  const std::vector<std::string> principals = KadminOfStandardEnctypes(*entries);
  nlohmann::json all = nlohmann::json::array();
  for (const std::string& principal : principals) {
    ASSIGN_OR_RETURN(nlohmann::json told,
                     GiveKeysTo(principal, session, signer, /*replace=*/true, kDrawn, KeysToDraw));
    all.push_back(std::move(told));
  }
  if (const absl::Status s = DeleteReplacedKadminKeys(session); !s.ok()) {
    session.console.Remark("old keys of kadmin/* may still be on the servers: ", s.message(),
                           "; later: mpc-admin randkey --kadmin once more");
  }
  session.console.Print(nlohmann::json{{"principals", all}});
  if (principals.empty()) session.console.Say("every kadmin/* principal has gcm keys alone");
  return ExitCode::kOk;
}

}  // namespace

absl::StatusOr<ExitCode> RandkeyCommand(Session& session) {
  const bool kadmin = session.options.kadmin;
  if (kadmin != session.options.operands.empty()) {
    return BadUsage("randkey", "name a PRINCIPAL, or say --kadmin");
  }
  ASSIGN_OR_RETURN(std::string principal, session.Principal());
  ASSIGN_OR_RETURN(enroll::PackageSigner signer, LoadSigner(session));
  RETURN_IF_ERROR(session.Connect().status());
  if (kadmin) return RandkeyKadmin(session, signer);
  return GiveKeys(session, signer, principal, /*replace=*/true, kDrawn, KeysToDraw);
}

}  // namespace mpckdc::admin
