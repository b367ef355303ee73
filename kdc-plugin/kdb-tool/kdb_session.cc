// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/kdb-tool/kdb_session.h"

#include <krb5/remote_key_plugin.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kdc-plugin/kdb-tool/source_db.h"
#include "mpc-server/base/status_macros.h"

extern "C" {
#include "kdc-plugin/kdb-module/handles.h"
#include "kdc-plugin/kdb-module/history.h"
}

namespace mpckdc::kdbtool {
namespace {

constexpr char kClientName[] = "root/admin";  // in the log and as "last modified by"

// One key as the database stores it. The default salt is not written down.
bool FillKeyData(const KeyForm& key, uint32_t kvno, krb5_key_data* data) {
  data->key_data_ver = key.salt_type > 0 ? 2 : 1;
  data->key_data_kvno = static_cast<krb5_ui_2>(kvno);
  data->key_data_type[0] = static_cast<krb5_int16>(key.enctype);
  if (handle_put(data, reinterpret_cast<const uint8_t*>(key.handle.data())) != 0) return false;
  if (key.salt_type <= 0) return true;
  data->key_data_type[1] = static_cast<krb5_int16>(key.salt_type);
  data->key_data_length[1] = static_cast<krb5_ui_2>(key.salt.size());
  data->key_data_contents[1] = static_cast<krb5_octet*>(malloc(key.salt.size() + 1));
  if (data->key_data_contents[1] == nullptr) return false;
  memcpy(data->key_data_contents[1], key.salt.data(), key.salt.size());
  return true;
}

}  // namespace

absl::Status KdbSession::Error(long code, const std::string& what) {
  const char* text = krb5_get_error_message(context_, static_cast<krb5_error_code>(code));
  const std::string message = absl::StrCat(what, ": ", text);
  krb5_free_error_message(context_, text);
  return code == KADM5_UNK_PRINC ? absl::NotFoundError(message)
                                 : absl::FailedPreconditionError(message);
}

absl::StatusOr<std::unique_ptr<KdbSession>> KdbSession::Open(const std::string& realm) {
  auto session = std::unique_ptr<KdbSession>(new KdbSession);
  long code = kadm5_init_krb5_context(&session->context_);
  if (code != 0) return absl::FailedPreconditionError("cannot read krb5.conf and kdc.conf");
  kadm5_config_params wanted = {};
  if (!realm.empty()) {
    wanted.mask = KADM5_CONFIG_REALM;
    wanted.realm = const_cast<char*>(realm.c_str());
    code = krb5_set_default_realm(session->context_, realm.c_str());
    if (code != 0) return session->Error(code, realm);
  }
  code = kadm5_get_config_params(session->context_, 1, &wanted, &session->params_);
  if (code != 0) return session->Error(code, "reading the realm's configuration");
  code = kadm5_init_with_password(session->context_, const_cast<char*>(kClientName), nullptr,
                                  const_cast<char*>(KADM5_ADMIN_SERVICE), &wanted,
                                  KADM5_STRUCT_VERSION, KADM5_API_VERSION_4, nullptr,
                                  &session->handle_);
  if (code != 0) return session->Error(code, "opening the database");
  // With iprop_enable, what mpc-kdb changes is in the update log, for replicas, as with kadmin.local.
  code = kadm5_init_iprop(session->handle_, nullptr);
  if (code != 0) return session->Error(code, "opening the update log (iprop_enable)");
  return session;
}

KdbSession::~KdbSession() {
  if (handle_ != nullptr) kadm5_destroy(handle_);
  if (context_ == nullptr) return;
  kadm5_free_config_params(context_, &params_);
  krb5_free_context(context_);
}

absl::StatusOr<krb5_principal> KdbSession::Parse(const std::string& name) {
  krb5_principal principal = nullptr;
  const krb5_error_code code = krb5_parse_name(context_, name.c_str(), &principal);
  if (code != 0) return Error(code, name);
  return principal;
}

absl::StatusOr<std::string> KdbSession::Unparse(krb5_const_principal principal) {
  char* text = nullptr;
  const krb5_error_code code = krb5_unparse_name(context_, principal, &text);
  if (code != 0) return Error(code, "unparsing a name");
  std::string name = text;
  krb5_free_unparsed_name(context_, text);
  return name;
}

absl::StatusOr<uint32_t> KdbSession::Lookup(krb5_principal principal, std::string* policy) {
  kadm5_principal_ent_rec entry = {};
  const long code = kadm5_get_principal(handle_, principal, &entry,
                                        KADM5_PRINCIPAL_NORMAL_MASK | KADM5_KEY_DATA);
  if (code != 0) return Error(code, "reading the principal");
  uint32_t kvno = 0;
  for (int i = 0; i < entry.n_key_data; ++i) {
    kvno = std::max<uint32_t>(kvno, entry.key_data[i].key_data_kvno);
  }
  if (entry.policy != nullptr) *policy = entry.policy;
  kadm5_free_principal_ent(handle_, &entry);
  return kvno;
}

// supported_enctypes, or those that the principal's password policy allows.
absl::StatusOr<std::vector<krb5_key_salt_tuple>> KdbSession::KeySalts(const std::string& policy) {
  std::vector<krb5_key_salt_tuple> list(params_.keysalts, params_.keysalts + params_.num_keysalts);
  if (policy.empty()) return list;
  kadm5_policy_ent_rec entry = {};
  const long code = kadm5_get_policy(handle_, const_cast<char*>(policy.c_str()), &entry);
  if (code != 0) return list;  // a policy that is only a name restricts nothing
  absl::Cleanup release = [&] { kadm5_free_policy_ent(handle_, &entry); };
  if (entry.allowed_keysalts == nullptr) return list;
  return ParseKeySalts(entry.allowed_keysalts);
}

absl::StatusOr<std::string> KdbSession::SaltFor(krb5_const_principal principal,
                                                int32_t salt_type) {
  krb5_data salt = {};
  krb5_error_code code = 0;
  switch (salt_type) {
    case KRB5_KDB_SALTTYPE_NORMAL:
      code = krb5_principal2salt(context_, principal, &salt);
      break;
    case KRB5_KDB_SALTTYPE_NOREALM: {
      std::string text;
      for (int i = 0; i < principal->length; ++i) {
        text.append(principal->data[i].data, principal->data[i].length);
      }
      return text;
    }
    case KRB5_KDB_SALTTYPE_ONLYREALM:
      return std::string(principal->realm.data, principal->realm.length);
    case KRB5_KDB_SALTTYPE_SPECIAL: {
      unsigned char random[8];
      char hex[2 * sizeof(random) + 1];
      randombytes_buf(random, sizeof(random));
      return std::string(sodium_bin2hex(hex, sizeof(hex), random, sizeof(random)));
    }
    default:
      return absl::InvalidArgumentError(absl::StrCat("salt type ", salt_type, " is not known"));
  }
  if (code != 0) return Error(code, "computing a salt");
  std::string text(salt.data, salt.length);
  krb5_free_data_contents(context_, &salt);
  return text;
}

absl::StatusOr<Plan> KdbSession::MakePlan(const std::string& name, bool create) {
  ASSIGN_OR_RETURN(krb5_principal principal, Parse(name));
  absl::Cleanup release = [&] { krb5_free_principal(context_, principal); };
  Plan plan;
  ASSIGN_OR_RETURN(plan.principal, Unparse(principal));
  std::string policy;
  absl::StatusOr<uint32_t> kvno = Lookup(principal, &policy);
  plan.exists = kvno.ok();
  if (!kvno.ok() && !(create && absl::IsNotFound(kvno.status()))) return kvno.status();
  if (kvno.ok()) plan.kvno_next = *kvno + 1;
  ASSIGN_OR_RETURN(std::vector<krb5_key_salt_tuple> tuples, KeySalts(policy));
  for (const krb5_key_salt_tuple& tuple : tuples) {
    absl::StatusOr<std::string> salt = SaltFor(principal, tuple.ks_salttype);
    if (!salt.ok()) continue;  // a kind of salt that no key of ours has
    plan.keys.push_back({tuple.ks_enctype, tuple.ks_salttype, *std::move(salt), ""});
  }
  return plan;
}

absl::Status KdbSession::Set(const NewHandles& handles, bool at_once) {
  ASSIGN_OR_RETURN(krb5_principal principal, Parse(handles.principal));
  absl::Cleanup release = [&] { krb5_free_principal(context_, principal); };
  std::string policy;
  absl::StatusOr<uint32_t> present = Lookup(principal, &policy);
  if (absl::IsNotFound(present.status()) && handles.expected.has_value() &&
      handles.expected->exists) {
    return absl::NotFoundError("it was deleted meanwhile: nothing was written");
  }
  if (present.ok()) return WriteKeys(principal, handles, PasswordLife(policy));
  if (!absl::IsNotFound(present.status())) return present.status();
  return at_once ? CreateWithKeys(principal, handles) : CreateThenKeys(principal, handles);
}

// Pre-authentication is required, as the servers will (gate "timestamp").
absl::Status KdbSession::CreateThenKeys(krb5_principal principal, const NewHandles& handles) {
  kadm5_principal_ent_rec entry = {};
  entry.principal = principal;
  entry.attributes = params_.flags | KRB5_KDB_REQUIRES_PRE_AUTH;
  const long code = kadm5_create_principal_3(
      handle_, &entry, KADM5_PRINCIPAL | KADM5_ATTRIBUTES | KADM5_KEY_DATA, 0, nullptr, nullptr);
  if (code != 0) return Error(code, "creating the principal");
  NewHandles of_new = handles;
  of_new.expected.reset();  // nobody; now there is the entry that was just made
  absl::Status written = WriteKeys(principal, of_new, 0);
  if (!written.ok()) (void)kadm5_delete_principal(handle_, principal);
  return written;
}

// The entry as kadm5_create_principal_3 makes it: the realm's defaults, no policy, no key.
absl::Status KdbSession::CreateWithKeys(krb5_const_principal principal, const NewHandles& handles) {
  auto* entry = static_cast<krb5_db_entry*>(calloc(1, sizeof(krb5_db_entry)));
  if (entry == nullptr) return absl::ResourceExhaustedError("out of memory");
  absl::Cleanup release = [&] { krb5_db_free_principal(context_, entry); };
  entry->len = KRB5_KDB_V1_BASE_LENGTH;
  entry->attributes = params_.flags | KRB5_KDB_REQUIRES_PRE_AUTH;
  entry->max_life = params_.max_life;
  entry->max_renewable_life = params_.max_rlife;
  entry->expiration = params_.expiration;
  entry->mask = KADM5_PRINCIPAL | KADM5_MAX_LIFE | KADM5_MAX_RLIFE | KADM5_PRINC_EXPIRE_TIME;
  const krb5_error_code code = krb5_copy_principal(context_, principal, &entry->princ);
  return code == 0 ? PutWithKeys(entry, handles, 0) : Error(code, "copying a name");
}

uint32_t KdbSession::PasswordLife(const std::string& policy) {
  kadm5_policy_ent_rec entry = {};
  if (policy.empty() ||
      kadm5_get_policy(handle_, const_cast<char*>(policy.c_str()), &entry) != 0) {
    return 0;
  }
  const uint32_t life = static_cast<uint32_t>(entry.pw_max_life);
  kadm5_free_policy_ent(handle_, &entry);
  return life;
}

// kadm5_setkey_principal_4 of krb5 1.20.1 loses the old keys that it is asked to keep, so this
// works on the entry itself, as a change of password does.
absl::Status KdbSession::WriteKeys(krb5_principal principal, const NewHandles& handles,
                                   uint32_t password_life) {
  krb5_db_entry* entry = nullptr;
  krb5_error_code code = krb5_db_get_principal(context_, principal, 0, &entry);
  if (code != 0) return Error(code, "reading the entry");
  absl::Cleanup release = [&] { krb5_db_free_principal(context_, entry); };
  entry->mask = 0;
  RETURN_IF_ERROR(CheckExpected(entry, handles));
  return PutWithKeys(entry, handles, password_life);
}

// Somebody may have changed the keys, or deleted the principal and made it anew, since they were
// planned: what would be written now is the older word, and would drop keys that nobody has seen.
absl::Status KdbSession::CheckExpected(krb5_db_entry* entry, const NewHandles& handles) {
  if (!handles.expected.has_value()) return absl::OkStatus();
  uint32_t kvno = 0;
  for (int i = 0; i < entry->n_key_data; ++i) {
    kvno = std::max<uint32_t>(kvno, entry->key_data[i].key_data_kvno);
  }
  std::set<std::string> present;
  const auto note = [&](const StoredHandle& stored) {
    if (!stored.history) present.insert(stored.handle);
  };
  const krb5_error_code code = VisitEntry(entry, note, [](const std::string&) {});
  if (code != 0) return Error(code, "reading the entry's keys");
  const Expected& expected = *handles.expected;
  if (expected.exists && expected.kvno == kvno && expected.handles == present) {
    return absl::OkStatus();
  }
  return absl::AbortedError(
      "its keys were changed meanwhile: nothing was written; run the same command again. If it "
      "says so each time, a directory has two entries of this name: deploy/ldap.md");
}

std::vector<absl::Status> KdbSession::SetHandlesOfMany(absl::Span<const NewHandles> principals) {
  const bool locked = krb5_db_lock(context_, KRB5_DB_LOCKMODE_EXCLUSIVE) == 0;
  std::vector<absl::Status> results;
  results.reserve(principals.size());
  for (const NewHandles& principal : principals) results.push_back(Set(principal, true));
  if (!locked || krb5_db_unlock(context_) == 0) return results;
  const absl::Status unsynced = absl::UnavailableError("the database could not be unlocked");
  results.assign(principals.size(), unsynced);
  return results;
}

absl::Status KdbSession::PutWithKeys(krb5_db_entry* entry, const NewHandles& handles,
                                     uint32_t password_life) {
  // Two who planned the same version at once: the second is refused, whatever becomes of old keys.
  for (int i = 0; i < entry->n_key_data; ++i) {
    const uint32_t kvno = entry->key_data[i].key_data_kvno;
    if (kvno < handles.kvno) continue;
    return absl::AlreadyExistsError(absl::StrCat("it has keys of version ", kvno, " already"));
  }
  RETURN_IF_ERROR(ReplaceKeyData(entry, handles));
  krb5_timestamp now = 0;
  krb5_principal modifier = nullptr;
  krb5_error_code code = krb5_timeofday(context_, &now);
  if (code == 0) code = krb5_parse_name(context_, kClientName, &modifier);
  if (code == 0) code = krb5_dbe_update_last_pwd_change(context_, entry, now);
  if (code == 0) code = krb5_dbe_update_mod_princ_data(context_, entry, now, modifier);
  krb5_free_principal(context_, modifier);
  if (code != 0) return Error(code, "preparing the entry");
  entry->attributes &= ~KRB5_KDB_REQUIRES_PWCHANGE;
  entry->fail_auth_count = 0;
  const uint32_t expiration = static_cast<uint32_t>(now) + password_life;
  entry->pw_expiration = password_life == 0 ? 0 : static_cast<krb5_timestamp>(expiration);
  entry->mask |= KADM5_KEY_DATA | KADM5_ATTRIBUTES | KADM5_FAIL_AUTH_COUNT | KADM5_PW_EXPIRATION |
                KADM5_TL_DATA | MPC_MASK_SET_HANDLES;
  code = krb5_db_put_principal(context_, entry);
  return code == 0 ? absl::OkStatus() : Error(code, "writing the entry");
}

absl::Status KdbSession::ReplaceKeyData(krb5_db_entry* entry, const NewHandles& handles) {
  const std::vector<KeyForm>& keys = handles.keys;
  const size_t old = handles.keep_old ? static_cast<size_t>(entry->n_key_data) : 0;
  auto* data = static_cast<krb5_key_data*>(calloc(keys.size() + old, sizeof(krb5_key_data)));
  if (data == nullptr) return absl::ResourceExhaustedError("out of memory");
  bool complete = true;
  for (size_t i = 0; i < keys.size(); ++i) {
    complete = FillKeyData(keys[i], handles.kvno, &data[i]) && complete;
  }
  if (!complete) {
    for (size_t i = 0; i < keys.size(); ++i) krb5_dbe_free_key_data_contents(context_, &data[i]);
    free(data);
    return absl::ResourceExhaustedError("out of memory");
  }
  if (old > 0) memcpy(data + keys.size(), entry->key_data, old * sizeof(krb5_key_data));
  for (int i = 0; i < entry->n_key_data && !handles.keep_old; ++i) {
    krb5_dbe_free_key_data_contents(context_, &entry->key_data[i]);
  }
  free(entry->key_data);
  entry->key_data = data;
  entry->n_key_data = static_cast<krb5_int16>(keys.size() + old);
  krb5_dbe_sort_key_data(entry->key_data, entry->n_key_data);
  return absl::OkStatus();
}

namespace {

// Visits the handles of one entry; what is told of each is in `common`.
class EntryVisit {
 public:
  EntryVisit(krb5_context context, krb5_db_entry* entry, const std::string& name,
             absl::FunctionRef<void(const StoredHandle&)> visit)
      : context_(context), entry_(entry), visit_(visit) {
    common_.principal = name;
    common_.renamed_from = OtherName(RENAMED_FROM_ATTRIBUTE);
    common_.renamed_to = OtherName(RENAMED_TO_ATTRIBUTE);
  }

  krb5_error_code Run() {
    for (int i = 0; i < entry_->n_key_data; ++i) {
      const krb5_key_data& key = entry_->key_data[i];
      if (handle_in(&key) == nullptr) continue;
      Tell(key.key_data_kvno, key.key_data_type[0], handle_in(&key), false);
    }
    uint8_t login[KRB5_REMOTE_KEY_HANDLE_LENGTH];
    if (login_handle_of(context_, entry_, login)) {
      Tell(LOGIN_KEY_KVNO, LOGIN_KEY_ENCTYPE, login, false);
    }
    return history_walk(
        entry_,
        +[](void* arg, uint32_t kvno, int32_t enctype, const uint8_t* handle) {
          auto* self = static_cast<EntryVisit*>(arg);
          if (!entry_has_handle(self->entry_, handle)) self->Tell(kvno, enctype, handle, true);
        },
        this);
  }

 private:
  void Tell(uint32_t kvno, int32_t enctype, const uint8_t* handle, bool history) {
    StoredHandle stored = common_;
    stored.kvno = kvno;
    stored.enctype = enctype;
    stored.handle.assign(reinterpret_cast<const char*>(handle), KRB5_REMOTE_KEY_HANDLE_LENGTH);
    stored.history = history;
    visit_(stored);
  }

  // In an attribute of "WORD NAME".
  std::string OtherName(const char* attribute) {
    char* text = nullptr;
    if (krb5_dbe_get_string(context_, entry_, attribute, &text) != 0 || text == nullptr) return "";
    const char* space = strchr(text, ' ');
    std::string name = space == nullptr ? "" : space + 1;
    krb5_dbe_free_string(context_, text);
    return name;
  }

  const krb5_context context_;
  krb5_db_entry* const entry_;
  const absl::FunctionRef<void(const StoredHandle&)> visit_;
  StoredHandle common_;
};

}  // namespace

// Of one entry.
krb5_error_code KdbSession::VisitEntry(krb5_db_entry* entry,
                                       absl::FunctionRef<void(const StoredHandle&)> visit,
                                       absl::FunctionRef<void(const std::string&)> keyless) {
  absl::StatusOr<std::string> name = Unparse(entry->princ);
  if (!name.ok()) return EINVAL;
  if (entry->n_key_data == 0) keyless(*name);
  return EntryVisit(context_, entry, *name, visit).Run();
}

// kldap does not end its iteration when an entry cannot be visited; so the error is kept here.
absl::Status KdbSession::List(absl::FunctionRef<void(const StoredHandle&)> visit,
                              absl::FunctionRef<void(const std::string&)> keyless) {
  struct Walk {
    KdbSession* session;
    absl::FunctionRef<void(const StoredHandle&)> visit;
    absl::FunctionRef<void(const std::string&)> keyless;
    krb5_error_code first_error = 0;
    std::string last = {};  // whose entry could be read
  } walk = {this, visit, keyless};
  krb5_error_code code = krb5_db_iterate(
      context_, nullptr,
      +[](krb5_pointer arg, krb5_db_entry* entry) -> int {
        auto* w = static_cast<Walk*>(arg);
        if (w->first_error == 0) {
          w->first_error = w->session->VisitEntry(entry, w->visit, w->keyless);
          w->last = w->session->Unparse(entry->princ).value_or("");
        }
        return w->first_error;
      },
      &walk, 0);
  if (code == 0) code = walk.first_error;
  if (code == 0) return absl::OkStatus();
  // The back end does not say whose entry it cannot read.
  return Error(code, absl::StrCat("reading the database",
                                  walk.last.empty() ? "" : ", after the entry of ", walk.last));
}

namespace {

// Of two limits, of which 0 is none.
uint32_t Shorter(uint32_t a, uint32_t b) { return a == 0 || b == 0 ? a + b : std::min(a, b); }

struct Longest {
  uint32_t life = 1;
  uint32_t renewable = 0;
};

int NoteLives(krb5_pointer arg, krb5_db_entry* entry) {
  auto* longest = static_cast<Longest*>(arg);
  const auto life = static_cast<uint32_t>(entry->max_life);
  const bool unlimited = life == 0 || longest->life == 0;
  longest->life = unlimited ? 0 : std::max(longest->life, life);
  longest->renewable =
      std::max(longest->renewable, static_cast<uint32_t>(entry->max_renewable_life));
  return 0;
}

}  // namespace

absl::Status KdbSession::LongestOfAll(uint32_t* life, uint32_t* renewable) {
  Longest longest;
  const krb5_error_code code = krb5_db_iterate(context_, nullptr, NoteLives, &longest, 0);
  if (code != 0) return Error(code, "reading the database");
  *life = longest.life;
  *renewable = longest.renewable;
  return absl::OkStatus();
}

// krb5kdc takes the least of the client's, the service's and the realm's limit; a limit of 0 is
// none for lives, and no renewal for renewable lives.
absl::StatusOr<TicketLives> KdbSession::ReadTicketLives(const std::string& name) {
  ASSIGN_OR_RETURN(krb5_principal principal, Parse(name));
  absl::Cleanup release = [&] { krb5_free_principal(context_, principal); };
  kadm5_principal_ent_rec entry = {};
  const long code = kadm5_get_principal(handle_, principal, &entry, KADM5_PRINCIPAL_NORMAL_MASK);
  if (code != 0) return Error(code, "reading the principal");
  absl::Cleanup free_entry = [&] { kadm5_free_principal_ent(handle_, &entry); };
  uint32_t life = 0, renewable = 0;
  RETURN_IF_ERROR(LongestOfAll(&life, &renewable));
  TicketLives lives;
  ASSIGN_OR_RETURN(lives.principal, Unparse(entry.principal));
  // What kdb5_util create makes has no time of its key; it is not older than the entry's last
  // change.
  lives.changed =
      static_cast<uint32_t>(entry.last_pwd_change == 0 ? entry.mod_date : entry.last_pwd_change);
  life = Shorter(Shorter(life, static_cast<uint32_t>(entry.max_life)),
                 static_cast<uint32_t>(params_.max_life));
  renewable = std::min({renewable, static_cast<uint32_t>(entry.max_renewable_life),
                        static_cast<uint32_t>(params_.max_rlife)});
  lives.longest = life == 0 ? 0 : std::max(life, renewable);
  return lives;
}

absl::Status KdbSession::Purge(const std::string& name, uint32_t kvno) {
  ASSIGN_OR_RETURN(krb5_principal principal, Parse(name));
  absl::Cleanup release = [&] { krb5_free_principal(context_, principal); };
  const long code = kadm5_purgekeys(handle_, principal, static_cast<int>(kvno));
  return code == 0 ? absl::OkStatus() : Error(code, "removing old keys");
}

absl::Status KdbSession::Delete(const std::string& name) {
  ASSIGN_OR_RETURN(krb5_principal principal, Parse(name));
  absl::Cleanup release = [&] { krb5_free_principal(context_, principal); };
  long code = kadm5_delete_principal(handle_, principal);
  if (code == KADM5_UNK_PRINC) {
    // What an interrupted renaming left is found by nobody (kdb-module/renaming.h).
    const krb5_error_code left = krb5_db_delete_principal(context_, principal);
    if (left != KRB5_KDB_NOENTRY) code = left;
  }
  return code == 0 ? absl::OkStatus() : Error(code, "deleting the principal");
}

}  // namespace mpckdc::kdbtool
