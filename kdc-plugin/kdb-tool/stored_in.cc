// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/kdb-tool/stored_in.h"

#include <kadm5/admin.h>
#include <profile.h>

#include "absl/strings/str_cat.h"

namespace mpckdc::kdbtool {
namespace {

std::string ProfileString(profile_t profile, const char* section, const std::string& middle,
                          const char* relation) {
  char* value = nullptr;
  if (profile_get_string(profile, section, middle.c_str(), relation, nullptr, &value) != 0 ||
      value == nullptr) {
    return "";
  }
  std::string text = value;
  profile_release_string(value);
  return text;
}

// That of [realms], or krb5's default; "": it cannot be told.
std::string NameOfRealms(krb5_context context, const std::string& realm) {
  kadm5_config_params wanted = {}, found = {};
  wanted.mask = KADM5_CONFIG_REALM;
  wanted.realm = const_cast<char*>(realm.c_str());
  if (kadm5_get_config_params(context, 1, &wanted, &found) != 0) return "";
  const std::string name = found.dbname == nullptr ? "" : found.dbname;
  kadm5_free_config_params(context, &found);
  return name;
}

}  // namespace

std::vector<std::string> Stored::Files() const {
  if (module == "db2") return {name, name + ".kadm5"};
  if (module == "klmdb") return {name + ".mdb"};
  return {};
}

absl::StatusOr<Stored> StoredBy(krb5_context context, const std::string& realm) {
  profile_t profile = nullptr;
  if (krb5_get_profile(context, &profile) != 0) {
    return absl::FailedPreconditionError("kdc.conf cannot be read");
  }
  std::string section = ProfileString(profile, "realms", realm, "database_module");
  if (section.empty()) section = realm;
  Stored stored;
  stored.module = ProfileString(profile, "dbmodules", section, "db_library");
  if (stored.module == "mpc") {
    stored.module = ProfileString(profile, "dbmodules", section, "mpc_wrapped");
  }
  if (stored.module.empty()) stored.module = "db2";
  stored.name = ProfileString(profile, "dbmodules", section, "database_name");
  profile_release(profile);
  if (stored.name.empty()) stored.name = NameOfRealms(context, realm);
  // Files called "" would be looked for, and written, where the command happens to run.
  if (stored.name.empty() && !stored.Files().empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "which file the database of ", realm, " is cannot be told: set database_name in kdc.conf"));
  }
  return stored;
}

}  // namespace mpckdc::kdbtool
