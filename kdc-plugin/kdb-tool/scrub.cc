// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/kdb-tool/scrub.h"

#include <profile.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kdc-plugin/kdb-tool/import_record.h"
#include "kdc-plugin/kdb-tool/import_session.h"
#include "kdc-plugin/kdb-tool/scratch_db.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::kdbtool {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kOldSuffix[] = ".scrub-old";

// Which module stores a realm's entries, and where.
struct Stored {
  std::string module;  // "db2", "klmdb", ...
  std::string name;    // database_name

  // The files that hold keys, as they are called.
  std::vector<std::string> Files() const {
    if (module == "db2") return {name, name + ".kadm5"};
    if (module == "klmdb") return {name + ".mdb"};
    return {};
  }
};

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
  if (stored.name.empty()) {
    stored.name = ProfileString(profile, "realms", realm, "database_name");
  }
  profile_release(profile);
  return stored;
}

// An entry that still has a record may yet be rolled back.
absl::Status CheckCommitted(krb5_context context) {
  size_t records = 0;
  (void)krb5_db_iterate(
      context, nullptr,
      +[](krb5_pointer arg, krb5_db_entry* entry) -> int {
        *static_cast<size_t*>(arg) += ReadRecord(entry).has_value() ? 1 : 0;
        return 0;
      },
      &records, 0);
  if (records == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(records, " principals are imported and not committed: nothing was overwritten"));
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

absl::Status Errno(const std::string& what) {
  return absl::FailedPreconditionError(absl::StrCat(what, ": ", strerror(errno)));
}

// db2: a load puts new files in place of the old ones, which another name keeps. klmdb loads into
// its file, so that must go first; KDCs have been stopped.
absl::Status SetAside(const Stored& stored) {
  for (const std::string& file : stored.Files()) {
    const std::string aside = file + kOldSuffix;
    const int done = stored.module == "klmdb" ? rename(file.c_str(), aside.c_str())
                                              : link(file.c_str(), aside.c_str());
    if (done != 0) return Errno(file);
  }
  return absl::OkStatus();
}

// What an interrupted run has left. klmdb: the old file is the database until the new one is whole,
// which the missing dump tells.
absl::Status TidyUp(const Stored& stored, const std::string& dump) {
  for (const std::string& file : stored.Files()) {
    const std::string aside = file + kOldSuffix;
    if (!Exists(aside)) continue;
    if (stored.module == "klmdb" && Exists(dump)) {
      if (rename(aside.c_str(), file.c_str()) != 0) return Errno(aside);
    } else {
      RETURN_IF_ERROR(OverwriteFiles({aside}));
    }
  }
  return OverwriteFiles({dump});
}

// The dump has handles, and the real keys of services.
absl::Status Rewrite(const Stored& stored, const std::string& realm) {
  const char* profile = getenv("KRB5_KDC_PROFILE");
  const std::string here = profile == nullptr ? "" : profile;
  const std::string dump = stored.name + ".scrub-dump";
  RETURN_IF_ERROR(TidyUp(stored, dump));
  RETURN_IF_ERROR(RunKrb5("kdb5_util", {"-r", realm, "dump", dump}, here));
  RETURN_IF_ERROR(SetAside(stored));
  RETURN_IF_ERROR(RunKrb5("kdb5_util", {"-r", realm, "load", dump}, here));
  std::vector<std::string> old = {dump, dump + ".dump_ok"};
  for (const std::string& file : stored.Files()) old.push_back(file + kOldSuffix);
  return OverwriteFiles(old);
}

bool SameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

struct Facts {
  Stored here;
  Stored there;
  bool converts = false;
  bool same = false;
  std::string realm;
  std::string stash;
};

// Opens and closes both databases.
absl::StatusOr<Facts> Look(const std::string& realm, const std::string& profile) {
  Facts facts;
  if (!profile.empty()) {
    ASSIGN_OR_RETURN(std::unique_ptr<SourceDb> source, SourceDb::Open(profile, realm));
    ASSIGN_OR_RETURN(facts.there, StoredBy(source->context(), source->realm()));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ImportSession> session, ImportSession::Open(realm, profile));
  KdbSession& target = session->target();
  RETURN_IF_ERROR(CheckCommitted(target.context()));
  facts.converts = session->converts();
  facts.realm = target.params().realm;
  facts.stash = target.params().stash_file == nullptr ? "" : target.params().stash_file;
  ASSIGN_OR_RETURN(facts.here, StoredBy(target.context(), facts.realm));
  for (const std::string& file : facts.there.Files()) {
    for (const std::string& own : facts.here.Files()) facts.same |= SameFile(file, own);
  }
  return facts;
}

class Scrubber {
 public:
  absl::Status Database(const Facts& facts) {
    if (facts.here.Files().empty()) {
      Left(facts.here.module + " of the realm: its server keeps deleted values as it pleases");
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(Rewrite(facts.here, facts.realm));
    for (const std::string& file : facts.here.Files()) Done(file + " (rewritten)");
    return absl::OkStatus();
  }
  absl::Status Files(const std::vector<std::string>& files) {
    for (const std::string& file : files) {
      if (file.empty() || !Exists(file)) continue;
      RETURN_IF_ERROR(OverwriteFiles({file}));
      Done(file);
    }
    return absl::OkStatus();
  }
  absl::Status Folder(const std::string& folder) {
    if (folder.empty() || !Exists(folder)) return absl::OkStatus();
    RETURN_IF_ERROR(ScrubScratch(folder));
    Done(folder);
    return absl::OkStatus();
  }
  void Done(const std::string& what) { overwritten_.push_back(what); }
  void Left(const std::string& what) { left_.push_back(what); }
  json Answer() const { return {{"overwritten", overwritten_}, {"left", left_}}; }

 private:
  json overwritten_ = json::array();
  json left_ = json::array();
};

}  // namespace

absl::StatusOr<json> ScrubRealm(const std::string& realm, const ImportedFrom& from) {
  // A folder that an earlier run has overwritten is no source any more.
  const std::string scratch = from.scratch.empty() ? "" : from.scratch + "/kdc.conf";
  const std::string profile = !from.source.empty() ? from.source : Exists(scratch) ? scratch : "";
  ASSIGN_OR_RETURN(const Facts facts, Look(realm, profile));
  Scrubber scrubber;
  RETURN_IF_ERROR(scrubber.Database(facts));
  if (!from.source.empty() && !facts.same) {
    RETURN_IF_ERROR(scrubber.Files(facts.there.Files()));
    if (facts.there.Files().empty()) scrubber.Left(facts.there.module + " of " + from.source);
  }
  RETURN_IF_ERROR(scrubber.Files({from.dump, from.dump.empty() ? "" : from.dump + ".dump_ok"}));
  // The stash last: without it the rest is ciphertext.
  if (!from.stash.empty()) {
    const bool needed = facts.converts || SameFile(from.stash, facts.stash);
    if (needed) {
      scrubber.Left(from.stash + ": the realm's master key is still this one; roll it over "
                                 "(kdb5_util add_mkey) to make old dumps worthless without it");
    } else {
      RETURN_IF_ERROR(scrubber.Files({from.stash}));
    }
  }
  RETURN_IF_ERROR(scrubber.Folder(from.scratch));
  return scrubber.Answer();
}

}  // namespace mpckdc::kdbtool
