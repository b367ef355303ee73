// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/kdb-tool/import_session.h"

#include <profile.h>

#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kdc-plugin/kdb-tool/import_record.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::kdbtool {

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

}  // namespace mpckdc::kdbtool
