// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/kdb-tool/import_session.h"

#include <krb5/remote_key_plugin.h>
#include <profile.h>
#include <string.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kdc-plugin/kdb-tool/import_plan.h"
#include "kdc-plugin/kdb-tool/import_record.h"
#include "kdc-plugin/kdb-tool/lines.h"
#include "mpc-server/base/status_macros.h"

extern "C" {
#include "kdc-plugin/kdb-module/classify.h"
#include "kdc-plugin/kdb-module/handles.h"
}

namespace mpckdc::kdbtool {
namespace {

using nlohmann::json;

constexpr char kOld[] = "old";
constexpr char kImported[] = "imported";
constexpr char kChanged[] = "changed";
constexpr char kPresent[] = "present";
constexpr char kGone[] = "gone";

bool HasHandles(const krb5_db_entry* entry) { return entry_has_handle(entry, nullptr) != 0; }

std::string StateOf(const krb5_db_entry* entry, bool converts) {
  if (!TlDataOf(entry, kImportedTgsTlType).empty()) return kImported;
  const std::optional<ImportRecord> record = ReadRecord(entry);
  if (record.has_value()) return record->written == FingerprintOf(entry) ? kImported : kChanged;
  return !converts || HasHandles(entry) ? kPresent : kOld;
}

// The contents of key data that name a handle, as handle_put() makes them.
std::string HandleContents(const std::string& handle) {
  krb5_key_data data = {};
  if (handle_put(&data, reinterpret_cast<const uint8_t*>(handle.data())) != 0) return "";
  std::string contents(reinterpret_cast<char*>(data.key_data_contents[0]),
                       data.key_data_length[0]);
  free(data.key_data_contents[0]);
  return contents;
}

// The default salt is not written down.
StoredKey ToStored(const ImportedKey& key) {
  StoredKey stored;
  stored.kvno = key.kvno;
  stored.parts.push_back({key.form.enctype, HandleContents(key.form.handle)});
  if (key.form.salt_type > 0) stored.parts.push_back({key.form.salt_type, key.form.salt});
  return stored;
}

json NumbersOf(const std::vector<LeftKey>& keys) {
  json list = json::array();
  for (const LeftKey& key : keys) list.push_back({key.kvno, key.enctype});
  return list;
}

size_t OldPasswordsOf(const krb5_db_entry* entry) {
  const std::optional<KadmData> data = ParseKadmData(TlDataOf(entry, KRB5_TL_KADM_DATA));
  return data.has_value() ? data->old.size() : 0;
}

const char* PlaceName(krb5_const_principal principal, placement place) {
  if (is_master_principal(principal)) return "master";
  if (is_history_principal(principal)) return "history";
  if (place == PLACE_DRAWN) return "krbtgt";
  if (needs_gcm(principal, place) != 0) return "kadmin";
  return place == PLACE_PROTECTED ? "protected" : "local";
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImportSession>> ImportSession::Open(const std::string& realm,
                                                                   const std::string& profile) {
  auto session = std::unique_ptr<ImportSession>(new ImportSession);
  std::string there;
  if (!profile.empty()) {
    ASSIGN_OR_RETURN(std::unique_ptr<SourceDb> source, SourceDb::Open(profile, realm));
    ASSIGN_OR_RETURN(EntryPtr master,
                     source->Get(UnparsedName(source->context(), source->master())));
    there = FingerprintOf(master.get());
  }
  ASSIGN_OR_RETURN(session->owned_target_, KdbSession::Open(realm));
  KdbSession* target = session->owned_target_.get();
  krb5_context context = target->context();
  profile_t relations = nullptr;
  char* section = nullptr;
  krb5_error_code code = krb5_get_profile(context, &relations);
  if (code == 0) {
    code = static_cast<krb5_error_code>(profile_get_string(
        relations, "realms", target->params().realm, "database_module", nullptr, &section));
  }
  if (code == 0 && section == nullptr) code = EINVAL;
  if (code == 0) code = config_read(context, section, &session->config_);
  profile_release_string(section);
  profile_release(relations);
  if (code != 0) {
    return target->Error(code, "reading the realm's database_module, which must be mpc's");
  }
  RETURN_IF_ERROR(session->DecideHow(there));
  if (profile.empty()) return session;
  if (session->converts_) return session;
  ASSIGN_OR_RETURN(session->source_, SourceDb::Open(profile, target->params().realm));
  return session;
}

// db2 has one lock for all databases of a process, which goes with the first library that is
// closed: ours wraps the other. So the source stays open until the process ends, which is soon.
ImportSession::~ImportSession() {
  if (source_ != nullptr) {
    source_->ForgetKeys();
    (void)source_.release();
  }
  if (config_ != nullptr) config_free(config_);
}

// Two databases with the same encrypted master key have the same master key. Names are kept beside
// the stash file, which every realm has, a directory's too.
absl::Status ImportSession::DecideHow(const std::string& there) {
  krb5_principal master = nullptr;
  const kadm5_config_params& params = target().params();
  const krb5_error_code code = krb5_db_setup_mkey_name(target().context(), params.mkey_name,
                                                       params.realm, nullptr, &master);
  if (code != 0) return target().Error(code, "naming the master key");
  const std::string name = UnparsedName(target().context(), master);
  krb5_free_principal(target().context(), master);
  ASSIGN_OR_RETURN(EntryPtr here, GetHere(name));
  const std::string master_key = FingerprintOf(here.get());
  converts_ = there == master_key;
  if (converts_ || params.stash_file == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(names_, ImportedNames::Read(absl::StrCat(params.stash_file, ".mpc-imported"),
                                               master_key));
  return absl::OkStatus();
}

absl::StatusOr<EntryPtr> ImportSession::GetHere(const std::string& name) {
  krb5_principal principal = nullptr;
  krb5_context context = target().context();
  krb5_error_code code = krb5_parse_name(context, name.c_str(), &principal);
  if (code != 0) return target().Error(code, name);
  absl::Cleanup release = [&] { krb5_free_principal(context, principal); };
  krb5_db_entry* entry = nullptr;
  code = krb5_db_get_principal(context, principal, 0, &entry);
  if (code == KRB5_KDB_NOENTRY) return absl::NotFoundError(absl::StrCat(name, ": not found"));
  if (code != 0) return target().Error(code, name);
  return EntryPtr(entry, FreeEntry{context});
}

absl::Status ImportSession::Lock() {
  locked_ = krb5_db_lock(target().context(), KRB5_DB_LOCKMODE_EXCLUSIVE) == 0;
  return absl::OkStatus();  // klmdb needs none
}

absl::Status ImportSession::Unlock() {
  if (!locked_) return absl::OkStatus();
  locked_ = false;
  const krb5_error_code code = krb5_db_unlock(target().context());
  return code == 0 ? absl::OkStatus() : target().Error(code, "unlocking the database");
}

// ---- Looking ----

absl::StatusOr<std::map<std::string, std::string>> ImportSession::StatesHere() {
  struct Walk {
    ImportSession* session;
    std::map<std::string, std::string> states;
  } walk = {this, {}};
  const krb5_error_code code = krb5_db_iterate(
      target().context(), nullptr,
      +[](krb5_pointer arg, krb5_db_entry* entry) -> int {
        auto* w = static_cast<Walk*>(arg);
        w->states[UnparsedName(w->session->target().context(), entry->princ)] =
            StateOf(entry, w->session->converts_);
        return 0;
      },
      &walk, 0);
  if (code != 0) return target().Error(code, "reading the database");
  return std::move(walk.states);
}

json ImportSession::LineOf(krb5_db_entry* entry, const KeySaltsByPolicy& policies,
                           const std::map<std::string, std::string>& states) {
  const std::string name = UnparsedName(target().context(), entry->princ);
  const KadmData data =
      ParseKadmData(TlDataOf(entry, KRB5_TL_KADM_DATA)).value_or(KadmData{});
  const auto& params = target().params();
  const KeySalts wanted = KeySaltsFor(
      policies, data, KeySalts(params.keysalts, params.keysalts + params.num_keysalts));
  const placement place = classify(config_, entry->princ);
  const ImportPlan plan =
      place == PLACE_DRAWN ? PlanOldTgs(entry) : PlanImport(entry, wanted);
  const auto state = states.find(name);
  json planned = json::array();
  for (const PlannedKey& key : plan.keys) planned.push_back(key.enctype);
  return {{"principal", name},
          {"place", PlaceName(entry->princ, place)},
          {"state", state != states.end() ? state->second : names_.Has(name) ? kGone : kOld},
          {"kvno", plan.kvno},
          {"planned", std::move(planned)},
          {"weak", NumbersOf(plan.weak)},
          {"old", NumbersOf(plan.old)},
          {"history", OldPasswordsOf(entry)}};
}

absl::Status ImportSession::Scan(absl::FunctionRef<void(const json&)> print) {
  using States = std::map<std::string, std::string>;
  ASSIGN_OR_RETURN(const States states, StatesHere());
  print({{"mode", converts_ ? "convert" : "copy"}, {"realm", target().params().realm}});
  if (source_ != nullptr) {
    return source_->ForEach([&](krb5_db_entry* entry) {
      print(LineOf(entry, source_->restricting(), states));
      return absl::OkStatus();
    });
  }
  struct Walk {
    ImportSession* session;
    const std::map<std::string, std::string>& states;
    const KeySaltsByPolicy policies;
    absl::FunctionRef<void(const json&)> print;
  } walk = {this, states, ReadKeySalts(target().context()), print};
  const krb5_error_code code = krb5_db_iterate(
      target().context(), nullptr,
      +[](krb5_pointer arg, krb5_db_entry* entry) -> int {
        auto* w = static_cast<Walk*>(arg);
        w->print(w->session->LineOf(entry, w->policies, w->states));
        return 0;
      },
      &walk, 0);
  return code == 0 ? absl::OkStatus() : target().Error(code, "reading the database");
}

namespace {

bool SamePolicy(const osa_policy_ent_rec& a, const osa_policy_ent_rec& b) {
  const auto text = [](const char* s) { return std::string(s == nullptr ? "" : s); };
  return a.pw_min_life == b.pw_min_life && a.pw_max_life == b.pw_max_life &&
         a.pw_min_length == b.pw_min_length && a.pw_min_classes == b.pw_min_classes &&
         a.pw_history_num == b.pw_history_num && a.pw_max_fail == b.pw_max_fail &&
         a.pw_failcnt_interval == b.pw_failcnt_interval &&
         a.pw_lockout_duration == b.pw_lockout_duration && a.attributes == b.attributes &&
         a.max_life == b.max_life && a.max_renewable_life == b.max_renewable_life &&
         text(a.allowed_keysalts) == text(b.allowed_keysalts);
}

}  // namespace

absl::StatusOr<json> ImportSession::CopyPolicies() {
  if (source_ == nullptr) return json{{"different", json::array()}};
  // Names first: db2 has one lock for all databases of a process.
  std::vector<std::string> names;
  RETURN_IF_ERROR(source_->ForEachPolicy(
      [&](osa_policy_ent_t policy) { names.emplace_back(policy->name); }));
  json different = json::array();
  for (std::string& name : names) {
    ASSIGN_OR_RETURN(const bool same, CopyPolicy(name.data()));
    if (!same) different.push_back(name);
  }
  return json{{"different", different}};
}

// False: there is another one of this name.
absl::StatusOr<bool> ImportSession::CopyPolicy(char* name) {
  osa_policy_ent_t there = nullptr, here = nullptr;
  krb5_error_code code = krb5_db_get_policy(source_->context(), name, &there);
  if (code != 0) return source_->Error(code, absl::StrCat("policy ", name));
  absl::Cleanup free_there = [&] { krb5_db_free_policy(source_->context(), there); };
  if (krb5_db_get_policy(target().context(), name, &here) == 0) {
    absl::Cleanup free_here = [&] { krb5_db_free_policy(target().context(), here); };
    return SamePolicy(*there, *here);
  }
  code = krb5_db_create_policy(target().context(), there);
  if (code != 0) return target().Error(code, absl::StrCat("policy ", name));
  return true;
}

// ---- Writing ----

namespace {

// kldap writes the policy and the old passwords, which it keeps in attributes of their own, only
// where the mask names them; a load that names no policy removes the one that there is. It takes a
// policy that is named and missing for an error, so this asks what `kdb5_util load` asks. It cannot
// write an old password without keys.
krb5_ui_4 MaskOfKadmData(const krb5_db_entry* entry) {
  const std::optional<KadmData> data = ParseKadmData(TlDataOf(entry, KRB5_TL_KADM_DATA));
  if (!data.has_value()) return 0;
  krb5_ui_4 mask = 0;
  if ((data->attributes & KADM5_POLICY) != 0 && !data->policy.empty()) mask |= KADM5_POLICY;
  const auto has_none = [](const OldPassword& password) { return password.empty(); };
  if (!data->old.empty() && std::none_of(data->old.begin(), data->old.end(), has_none)) {
    mask |= KADM5_KEY_HIST;
  }
  return mask;
}

}  // namespace

// As `kdb5_util load` does, which is believed to bring keys of any kind (kdb-module/guard.h):
// nothing is deleted on the servers, and nothing of the entry is changed on the way.
absl::Status ImportSession::Put(krb5_db_entry* entry, bool fresh) {
  entry->mask = KADM5_LOAD | KADM5_KEY_DATA | KADM5_TL_DATA | KADM5_ATTRIBUTES |
                MaskOfKadmData(entry);
  if (fresh) {
    entry->mask |= KADM5_PRINCIPAL | KADM5_PRINC_EXPIRE_TIME | KADM5_MAX_LIFE | KADM5_MAX_RLIFE |
                   KADM5_PW_EXPIRATION | KADM5_LAST_SUCCESS | KADM5_LAST_FAILED |
                   KADM5_FAIL_AUTH_COUNT;
  }
  const krb5_error_code code = krb5_db_put_principal(target().context(), entry);
  return code == 0 ? absl::OkStatus() : target().Error(code, "writing the entry");
}

// The old passwords, each with the handles of its keys; one that has none keeps its place, but in a
// directory, which takes none without keys. kldap reads passwords with the oldest first.
absl::Status ImportSession::PutHistory(const ImportedPrincipal& principal, krb5_db_entry* entry) {
  std::optional<KadmData> data = ParseKadmData(TlDataOf(entry, KRB5_TL_KADM_DATA));
  if (!data.has_value()) {
    return absl::FailedPreconditionError("its policy and password history are not understood");
  }
  if (data->old.empty()) return absl::OkStatus();
  for (size_t i = 0; i < data->old.size(); ++i) {
    data->old[i].clear();
    if (i >= principal.history.size()) continue;
    for (const ImportedKey& key : principal.history[i]) {
      OldKey& old = data->old[i].emplace_back();
      old.version = key.form.salt_type > 0 ? 2 : 1;
      old.kvno = key.kvno;
      old.enctype = key.form.enctype;
      old.contents = HandleContents(key.form.handle);
      if (key.form.salt_type <= 0) continue;
      old.salt_type = key.form.salt_type;
      old.salt = key.form.salt;
    }
  }
  if (strcmp(config_->wrapped, "kldap") == 0) {
    std::erase_if(data->old, [](const OldPassword& password) { return password.empty(); });
    data->next = static_cast<uint32_t>(data->old.size());
  }
  return PutTlData(target().context(), KRB5_TL_KADM_DATA, SerializeKadmData(*data), entry);
}

// Turns an entry with real keys into one with handles and a record of how it was.
absl::Status ImportSession::PutHandles(const ImportedPrincipal& principal, krb5_db_entry* entry) {
  if (FingerprintOf(entry) != principal.was) {
    return absl::AbortedError("its keys were changed just now: run the same command again");
  }
  ImportRecord record;
  record.converted = converts_;
  if (converts_) {
    record.keys = KeysOf(entry);
    record.kadm_data = TlDataOf(entry, KRB5_TL_KADM_DATA);
  }
  std::vector<StoredKey> keys;
  for (const ImportedKey& key : principal.keys) keys.push_back(ToStored(key));
  RETURN_IF_ERROR(PutKeys(keys, entry));
  RETURN_IF_ERROR(PutHistory(principal, entry));
  record.written = FingerprintOf(entry);
  return PutTlData(target().context(), kImportTlType, SerializeRecord(record), entry);
}

absl::Status ImportSession::Write(const ImportedPrincipal& principal) {
  if (principal.old_tgs) return WriteOldTgs(principal);
  absl::StatusOr<EntryPtr> here = GetHere(principal.principal);
  if (converts_) {
    RETURN_IF_ERROR(here.status());
    RETURN_IF_ERROR(PutHandles(principal, here->get()));
    return Put(here->get(), /*fresh=*/false);
  }
  if (here.ok()) return absl::AlreadyExistsError("it is in the new database already");
  if (!absl::IsNotFound(here.status())) return here.status();
  ASSIGN_OR_RETURN(EntryPtr entry, source_->Get(principal.principal));
  RETURN_IF_ERROR(PutHandles(principal, entry.get()));
  RemoveTlData(KRB5_TL_MKVNO, entry.get());
  RETURN_IF_ERROR(Put(entry.get(), /*fresh=*/true));
  to_remember_.push_back(principal.principal);
  return absl::OkStatus();
}

// Old keys beside the drawn one, which must be newer than all of them: it alone seals.
absl::Status ImportSession::WriteOldTgs(const ImportedPrincipal& principal) {
  ASSIGN_OR_RETURN(EntryPtr entry, GetHere(principal.principal));
  uint32_t newest_old = 0;
  for (const ImportedKey& key : principal.keys) newest_old = std::max(newest_old, key.kvno);
  std::vector<StoredKey> keys;
  for (StoredKey& key : KeysOf(entry.get())) {
    if (key.kvno > newest_old) keys.push_back(std::move(key));
  }
  if (keys.empty()) {
    return absl::FailedPreconditionError(
        "the servers have not drawn a key that is newer than the old ones");
  }
  for (const ImportedKey& key : principal.keys) keys.push_back(ToStored(key));
  RETURN_IF_ERROR(PutKeys(keys, entry.get()));
  RETURN_IF_ERROR(PutTlData(target().context(), kImportedTgsTlType, "\1", entry.get()));
  return Put(entry.get(), /*fresh=*/false);
}

// The one that is in use now.
absl::Status ImportSession::FindMasterKey(krb5_kvno* kvno, krb5_keyblock** key) {
  krb5_context context = target().context();
  krb5_principal name = nullptr;
  krb5_actkvno_node* list = nullptr;
  krb5_error_code code = krb5_db_setup_mkey_name(context, target().params().mkey_name,
                                                 target().params().realm, nullptr, &name);
  if (code == 0) code = krb5_dbe_fetch_act_key_list(context, name, &list);
  if (code == 0) code = krb5_dbe_find_act_mkey(context, list, kvno, key);
  krb5_dbe_free_actkvno_list(context, list);
  krb5_free_principal(context, name);
  return code == 0 ? absl::OkStatus() : target().Error(code, "finding the new master key");
}

absl::Status ImportSession::ReencryptKeys(const krb5_db_entry* source, krb5_db_entry* entry) {
  krb5_kvno mkvno = 0;
  krb5_keyblock* master = nullptr;
  RETURN_IF_ERROR(FindMasterKey(&mkvno, &master));
  krb5_error_code code = 0;
  for (int i = 0; i < source->n_key_data; ++i) {
    krb5_key_data& data = entry->key_data[i];
    ASSIGN_OR_RETURN(KeyblockPtr key, source_->Decrypt(source, source->key_data[i]));
    krb5_keysalt salt = {};
    const bool salted = data.key_data_ver > 1;
    salt.type = salted ? data.key_data_type[1] : static_cast<krb5_int16>(KRB5_KDB_SALTTYPE_NORMAL);
    const std::string bytes =
        salted ? std::string(reinterpret_cast<char*>(data.key_data_contents[1]),
                             data.key_data_length[1])
               : "";
    salt.data.data = const_cast<char*>(bytes.data());
    salt.data.length = static_cast<unsigned int>(bytes.size());
    code = krb5_dbe_def_encrypt_key_data(target().context(), master, key.get(), &salt,
                                         data.key_data_kvno, &data);
    if (code != 0) return target().Error(code, "encrypting a key");
  }
  code = krb5_dbe_update_mkvno(target().context(), entry, mkvno);
  return code == 0 ? absl::OkStatus() : target().Error(code, "naming the master key");
}

// kadmin/history is replaced: the old passwords of those who are not protected are under it.
absl::Status ImportSession::Copy(const std::string& principal, bool bare) {
  absl::StatusOr<EntryPtr> here = GetHere(principal);
  ASSIGN_OR_RETURN(EntryPtr source, source_->Get(principal));
  const bool replaces = is_history_principal(source->princ) != 0;
  if (here.ok() && !replaces) return absl::AlreadyExistsError("it is in the new database already");
  if (!here.ok() && !absl::IsNotFound(here.status())) return here.status();
  ASSIGN_OR_RETURN(EntryPtr entry, source_->Get(principal));
  if (bare) {
    RETURN_IF_ERROR(PutKeys({}, entry.get()));
    RemoveTlData(KRB5_TL_MKVNO, entry.get());
  } else {
    RETURN_IF_ERROR(ReencryptKeys(source.get(), entry.get()));
  }
  RETURN_IF_ERROR(Put(entry.get(), /*fresh=*/!here.ok()));
  to_remember_.push_back(principal);
  return absl::OkStatus();
}

// ---- The end of it ----

absl::Status ImportSession::Forget(const std::vector<std::string>& principals) {
  for (const std::string& name : principals) {
    if (names_.Has(name)) forgotten_.insert(name);
  }
  return names_.Remove({forgotten_.begin(), forgotten_.end()});
}

absl::Status ImportSession::Remember() {
  const std::vector<std::string> names = std::exchange(to_remember_, {});
  return names_.Add(names);
}

absl::StatusOr<json> ImportSession::Rollback(const std::string& principal) {
  absl::StatusOr<json> answer = RollBackEntry(principal);
  if (!answer.ok() && forgotten_.count(principal) > 0) to_remember_.push_back(principal);
  return answer;
}

absl::StatusOr<std::vector<std::string>> ImportSession::Uncommitted() {
  struct Walk {
    krb5_context context;
    std::vector<std::string> names;
  } walk = {target().context(), {}};
  const krb5_error_code code = krb5_db_iterate(
      target().context(), nullptr,
      +[](krb5_pointer arg, krb5_db_entry* entry) -> int {
        auto* w = static_cast<Walk*>(arg);
        if (ReadRecord(entry).has_value()) {
          w->names.push_back(UnparsedName(w->context, entry->princ));
        }
        return 0;
      },
      &walk, 0);
  if (code != 0) return target().Error(code, "reading the database");
  return std::move(walk.names);
}

absl::StatusOr<json> ImportSession::RollBackEntry(const std::string& principal) {
  ASSIGN_OR_RETURN(EntryPtr entry, GetHere(principal));
  const std::optional<ImportRecord> record = ReadRecord(entry.get());
  if (!record.has_value()) {
    return absl::FailedPreconditionError("it was not imported, or that was committed");
  }
  if (record->written != FingerprintOf(entry.get())) {
    return absl::FailedPreconditionError(
        "it has got new keys since it was imported, and keeps them");
  }
  json handles = json::array();
  handle_list list = {nullptr, 0};
  if (handle_list_of(entry.get(), nullptr, &list) != 0) {
    return absl::ResourceExhaustedError("out of memory");
  }
  absl::Cleanup release = [&] { handle_list_free(&list); };
  const auto add = [&](const uint8_t* handle) {
    handles.push_back(ToHex(std::string(reinterpret_cast<const char*>(handle), kHandleBytes)));
  };
  for (size_t i = 0; i < list.count; ++i) add(list.handles[i]);
  const std::optional<KadmData> data =
      ParseKadmData(TlDataOf(entry.get(), KRB5_TL_KADM_DATA));
  for (const OldPassword& password : data.value_or(KadmData{}).old) {
    for (const OldKey& old : password) {
      krb5_key_data form = {};
      form.key_data_length[0] = static_cast<krb5_ui_2>(old.contents.size());
      form.key_data_contents[0] =
          reinterpret_cast<krb5_octet*>(const_cast<char*>(old.contents.data()));
      if (handle_in(&form) != nullptr) add(handle_in(&form));
    }
  }
  const json answer = {{"handles", handles}};
  if (!record->converted) {
    const krb5_error_code code = krb5_db_delete_principal(target().context(), entry->princ);
    if (code != 0) return target().Error(code, "deleting the entry");
    return answer;
  }
  RETURN_IF_ERROR(PutKeys(record->keys, entry.get()));
  if (record->kadm_data.empty()) {
    RemoveTlData(KRB5_TL_KADM_DATA, entry.get());
  } else {
    RETURN_IF_ERROR(
        PutTlData(target().context(), KRB5_TL_KADM_DATA, record->kadm_data, entry.get()));
  }
  RemoveTlData(kImportTlType, entry.get());
  RETURN_IF_ERROR(Put(entry.get(), /*fresh=*/false));
  return answer;
}

absl::Status ImportSession::Commit(const std::string& principal) {
  ASSIGN_OR_RETURN(EntryPtr entry, GetHere(principal));
  if (!ReadRecord(entry.get()).has_value()) return absl::OkStatus();
  RemoveTlData(kImportTlType, entry.get());
  return Put(entry.get(), /*fresh=*/false);
}

}  // namespace mpckdc::kdbtool
