// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/replace_keys.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/enroll/transaction.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/string_to_key.h"

namespace mpckdc::admin {
namespace {

// Replaced keys keep their gate and class unless others were asked for.
absl::StatusOr<Powers> PowersOfNext(Session& session, enroll::AdminServers* servers,
                                    const KdbPlan& plan) {
  std::vector<v1::KeyInfo> present;
  if (plan.exists) {
    ASSIGN_OR_RETURN(present, servers->at(0).ListKeys(plan.principal, /*staged=*/false,
                                                      session.config().timeout));
  }
  return PowersFor(session.options(), plan.principal, present);
}

// After the KDB command failed: OK when the database has the new handles all the same.
absl::Status SettleFailedWrite(Session& session, const std::string& principal, absl::Status why,
                               enroll::KeyTransaction* transaction) {
  absl::StatusOr<const KdbEntries*> entries = session.ReadKdbAgain();
  if (!entries.ok()) {
    return Advise(absl::DataLossError(absl::StrCat(
                      "the KDC's database may or may not have the new keys: ", why.message(),
                      "; and it cannot be read: ", entries.status().message())),
                  "when the KDC's host answers again run mpc-admin doctor, then this command");
  }
  const std::vector<std::string>& wanted = transaction->handles();
  const size_t there = CountThere(wanted, HandlesOf(**entries, principal));
  if (there == wanted.size()) return absl::OkStatus();
  if (there > 0) {
    return absl::DataLossError(absl::StrCat("the KDC's database has only some of the new keys: ",
                                            why.message()));
  }
  const absl::Status undone = transaction->Rollback();
  return Advise(absl::Status(why.code(),
                             absl::StrCat(why.message(), "; no key was changed",
                                          undone.ok() ? "" : ", but ",
                                          undone.ok() ? "" : undone.message())),
                AdviceOf(why));
}

void DeleteOld(Session& session, const std::vector<std::string>& old, ReplacedKeys* result) {
  const absl::Status s = session.DeleteKeys(old);
  result->old_deleted = s.ok();
  if (!s.ok()) {
    session.console().Remark(
        absl::StrCat("the new keys are in use, but old ones could not be deleted: ", s.message(),
                     "; later: mpc-admin delete --old ", result->now.principal));
  }
}

}  // namespace

Powers PowersFor(const Options& options, const std::string& principal,
                 absl::Span<const v1::KeyInfo> present) {
  Powers powers{v1::GATE_TIMESTAMP, KeyClassOf(principal)};
  const auto latest = absl::c_max_element(
      present, [](const auto& a, const auto& b) { return a.kvno() < b.kvno(); });
  if (latest != present.end()) powers = {latest->gate(), latest->key_class()};
  powers.gate = options.gate.value_or(powers.gate);
  if (powers.key_class != v1::KEY_CLASS_TGS) {
    powers.key_class = options.key_class.value_or(powers.key_class);
  }
  return powers;
}

v1::KeyInfo InfoOf(const std::string& principal, uint32_t kvno, const Powers& powers,
                   const KdbKey& key) {
  v1::KeyInfo info;
  info.set_handle(key.handle);
  info.set_principal(principal);
  info.set_kvno(kvno);
  info.set_enctype(key.enctype);
  info.set_salt_type(key.salt_type);
  info.set_salt(key.salt);
  info.set_key_class(powers.key_class);
  info.set_gate(powers.gate);
  return info;
}

std::vector<std::string> HandlesOf(const KdbEntries& entries, const std::string& principal) {
  std::vector<std::string> handles;
  const auto found = entries.find(principal);
  if (found == entries.end()) return handles;
  for (const KdbEntry& entry : found->second) handles.push_back(entry.handle);
  return handles;
}

size_t CountThere(const std::vector<std::string>& wanted, const std::vector<std::string>& present) {
  return absl::c_count_if(
      wanted, [&](const std::string& handle) { return absl::c_linear_search(present, handle); });
}

nlohmann::json ToJson(const KdbNewKeys& fresh) {
  nlohmann::json keys = nlohmann::json::array();
  for (const KdbKey& key : fresh.keys) {
    keys.push_back({{"enctype", EnctypeName(key.enctype)}, {"handle", Hex(key.handle)}});
  }
  return {{"principal", fresh.principal}, {"kvno", fresh.kvno}, {"keys", keys}};
}

absl::Status RefuseKrbtgt(const std::string& principal) {
  if (KeyClassOf(principal) != v1::KEY_CLASS_TGS) return absl::OkStatus();
  return Advise(absl::InvalidArgumentError(
                    absl::StrCat(principal, ": a ticket-granting key that somebody has seen would "
                                            "be no secret; the servers draw it")),
                absl::StrCat("mpc-admin randkey ", principal));
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
                  "klist -ke shows the keytab's enctypes; keys of 17 (aes128-cts) and 18 "
                  "(aes256-cts) are taken for aes128-gcm and aes256-gcm too, any other only for "
                  "what it is");
  }
  return keys;
}

absl::StatusOr<enroll::PackageSigner> LoadSigner(const Session& session) {
  const enroll::AdminIdentity& identity = session.config().identity;
  absl::StatusOr<enroll::PackageSigner> signer =
      enroll::PackageSigner::FromPemFiles(identity.certificate_file, identity.key_file);
  if (!signer.ok()) return Advise(signer.status(), "correct [identity] in the configuration");
  return signer;
}

absl::StatusOr<KdbPlan> PlanFor(Session& session, const std::string& principal, bool replace) {
  ASSIGN_OR_RETURN(KdbPlan plan, session.kdb().Plan(principal, !session.options().no_create));
  if (!absl::EndsWith(plan.principal, absl::StrCat("@", session.config().realm))) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the KDB command planned for ", plan.principal, ", a principal of another realm"));
  }
  if (!plan.exists) return plan;
  ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdb());
  const auto found = entries->find(plan.principal);
  if (!replace && found != entries->end() && !found->second.empty()) {
    uint32_t kvno = 0;
    for (const KdbEntry& entry : found->second) kvno = std::max(kvno, entry.kvno);
    return Advise(absl::AlreadyExistsError(absl::StrCat(plan.principal,
                                                        " has protected keys already, version ",
                                                        kvno)),
                  "repeat with --replace to give it new keys");
  }
  return plan;
}

namespace {

// Only a gcm message has room for the header of a TGT.
absl::Status CheckAsked(const Session& session, const std::string& principal) {
  const std::string& realm = session.config().realm;
  if (principal != absl::StrCat("krbtgt/", realm, "@", realm)) return absl::OkStatus();
  for (const int32_t enctype : session.options().enctypes) {
    if (FindEnctype(enctype)->is_gcm()) continue;
    return Advise(absl::InvalidArgumentError(absl::StrCat(
                      principal, " seals TGTs, which have a header only in aes256-gcm and "
                                 "aes128-gcm, not in ", EnctypeName(enctype))),
                  "leave --enctype out, or ask for aes256-gcm");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<KdbKey>> PlannedKeys(const Session& session, const KdbPlan& plan) {
  const std::vector<int32_t>& asked = session.options().enctypes;
  RETURN_IF_ERROR(CheckAsked(session, plan.principal));
  const bool only_gcm = KeyClassOf(plan.principal) == v1::KEY_CLASS_TGS;
  std::vector<KdbKey> keys;
  for (const KdbKey& key : plan.keys) {
    const Enctype* enctype = FindEnctype(key.enctype);
    if (enctype == nullptr) continue;
    const bool wanted =
        asked.empty() ? !only_gcm || enctype->is_gcm() : absl::c_linear_search(asked, key.enctype);
    // One key per enctype, as kadmin does: a second salt could never be used.
    const bool first =
        absl::c_none_of(keys, [&](const KdbKey& other) { return other.enctype == key.enctype; });
    if (wanted && first) keys.push_back(key);
  }
  if (keys.empty()) {
    return Advise(absl::FailedPreconditionError(absl::StrCat(
                      "the KDC plans no key that the servers can hold",
                      asked.empty() ? "" : ", of the enctypes asked for,", " for ",
                      plan.principal)),
                  absl::StrCat("add some of these, as in aes256-gcm:normal, to supported_enctypes "
                               "in kdc.conf: ", EnctypeNames()));
  }
  return keys;
}

absl::StatusOr<ReplacedKeys> ReplaceKeys(Session& session, const enroll::PackageSigner& signer,
                                         const KdbPlan& plan, uint32_t kvno,
                                         std::vector<NewKey> keys) {
  ASSIGN_OR_RETURN(enroll::AdminServers* servers, session.Connect());
  ASSIGN_OR_RETURN(Powers powers, PowersOfNext(session, servers, plan));
  std::vector<std::string> old;
  if (plan.exists) {
    ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdb());
    old = HandlesOf(*entries, plan.principal);
  }

  // Tickets under the old krbtgt key live on: the KDB must go on referring to it.
  const bool keep_old = KeyClassOf(plan.principal) == v1::KEY_CLASS_TGS;
  ReplacedKeys result{{plan.principal, kvno, {}, keep_old}, old.size(), false};
  enroll::TransactionTimeouts timeouts;
  timeouts.stage = timeouts.commit = session.config().timeout;
  enroll::KeyTransaction transaction(servers, timeouts);
  for (NewKey& key : keys) {
    key.kdb.handle = enroll::RandomIdentifier();
    const v1::KeyInfo info = InfoOf(plan.principal, kvno, powers, key.kdb);
    RETURN_IF_ERROR(key.base.empty() ? transaction.AddDrawn(info)
                                     : transaction.Add(info, key.base, signer));
    result.now.keys.push_back(key.kdb);
  }
  RETURN_IF_ERROR(transaction.Run());

  absl::Status written = session.kdb().SetHandles(result.now);
  if (!written.ok()) {
    written = SettleFailedWrite(session, plan.principal, std::move(written), &transaction);
    if (!written.ok()) return written;
  }
  if (session.options().delete_old && !old.empty() && !keep_old) {
    DeleteOld(session, old, &result);
  }
  return result;
}

}  // namespace mpckdc::admin
