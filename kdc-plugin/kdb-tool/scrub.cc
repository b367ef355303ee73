// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/kdb-tool/scrub.h"

#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kdc-plugin/kdb-tool/import_record.h"
#include "kdc-plugin/kdb-tool/import_session.h"
#include "kdc-plugin/kdb-tool/lines.h"
#include "kdc-plugin/kdb-tool/scratch_db.h"
#include "kdc-plugin/kdb-tool/stored_in.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::kdbtool {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kOldSuffix[] = ".scrub-old";

// An entry that still has a record may yet be rolled back.
absl::Status CheckCommitted(KdbSession& target) {
  size_t records = 0;
  const krb5_error_code code = krb5_db_iterate(
      target.context(), nullptr,
      +[](krb5_pointer arg, krb5_db_entry* entry) -> int {
        *static_cast<size_t*>(arg) += ReadRecord(entry).has_value() ? 1 : 0;
        return 0;
      },
      &records, 0);
  if (code != 0) return target.Error(code, "reading the database: nothing was overwritten");
  if (records == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(records, " principals are imported and not committed: nothing was overwritten"));
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

absl::Status Errno(const std::string& what) {
  return absl::FailedPreconditionError(absl::StrCat(what, ": ", strerror(errno)));
}

bool SameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
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

// What an interrupted run has left. db2: until the load is done both names are those of the
// database's own file. klmdb: UndoScrub() was here.
absl::Status TidyUp(const Stored& stored, const std::string& dump) {
  for (const std::string& file : stored.Files()) {
    const std::string aside = file + kOldSuffix;
    if (!Exists(aside)) continue;
    if (stored.module == "klmdb") return absl::FailedPreconditionError(aside + " is there");
    if (SameFile(aside, file)) {
      if (unlink(aside.c_str()) != 0) return Errno(aside);
    } else {
      RETURN_IF_ERROR(OverwriteFiles({aside}));
    }
  }
  return OverwriteFiles({dump});
}

std::string DumpOf(const Stored& stored) { return stored.name + ".scrub-dump"; }

// A context and a realm's configuration, without its database.
class Configuration {
 public:
  explicit Configuration(const std::string& realm) {
    if (kadm5_init_krb5_context(&context_) != 0) return;
    kadm5_config_params wanted = {};
    if (!realm.empty()) {
      if (krb5_set_default_realm(context_, realm.c_str()) != 0) return;
      wanted.mask = KADM5_CONFIG_REALM;
      wanted.realm = const_cast<char*>(realm.c_str());
    }
    good_ = kadm5_get_config_params(context_, 1, &wanted, &params_) == 0;
  }
  ~Configuration() {
    if (context_ == nullptr) return;
    if (good_) kadm5_free_config_params(context_, &params_);
    krb5_free_context(context_);
  }
  Configuration(const Configuration&) = delete;
  Configuration& operator=(const Configuration&) = delete;

  bool good() const { return good_; }
  krb5_context context() const { return context_; }
  std::string realm() const { return params_.realm; }

  // The stored key of K/M, encrypted; "" with an error of krb5.
  krb5_error_code MasterEntry(std::string* key) {
    krb5_principal name = nullptr;
    krb5_db_entry* entry = nullptr;
    krb5_error_code code =
        krb5_db_setup_mkey_name(context_, params_.mkey_name, params_.realm, nullptr, &name);
    if (code == 0) {
      code = krb5_db_open(context_, nullptr, KRB5_KDB_OPEN_RO | KRB5_KDB_SRV_TYPE_ADMIN);
    }
    if (code == 0) {
      code = krb5_db_get_principal(context_, name, 0, &entry);
      if (code == 0 && entry->n_key_data > 0) {
        const krb5_key_data& data = entry->key_data[0];
        key->assign(reinterpret_cast<const char*>(data.key_data_contents[0]),
                    data.key_data_length[0]);
      }
      krb5_db_free_principal(context_, entry);
      (void)krb5_db_fini(context_);
    }
    krb5_free_principal(context_, name);
    return code;
  }

 private:
  krb5_context context_ = nullptr;
  kadm5_config_params params_ = {};
  bool good_ = false;
};

bool HasText(const std::string& file, const std::string& text) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.find(text) != std::string::npos) return true;
  }
  return false;
}

// The dump has handles, and the real keys of services.
absl::Status Rewrite(const Stored& stored, const std::string& realm) {
  const char* profile = getenv("KRB5_KDC_PROFILE");
  const std::string here = profile == nullptr ? "" : profile;
  const std::string dump = DumpOf(stored);
  RETURN_IF_ERROR(TidyUp(stored, dump));
  RETURN_IF_ERROR(RunKrb5("kdb5_util", {"-r", realm, "dump", dump}, here));
  RETURN_IF_ERROR(SetAside(stored));
  if (const absl::Status s = RunKrb5("kdb5_util", {"-r", realm, "load", dump}, here); !s.ok()) {
    RETURN_IF_ERROR(UndoScrub(realm));
    return s;
  }
  // The dump last: it tells UndoScrub() what the new file is.
  std::vector<std::string> old;
  for (const std::string& file : stored.Files()) old.push_back(file + kOldSuffix);
  old.insert(old.end(), {dump, dump + ".dump_ok"});
  return OverwriteFiles(old);
}

struct Facts {
  Stored here;
  Stored there;
  bool converts = false;
  bool same = false;
  std::string realm;
  std::string stash;
  std::string stash_there;
  std::string update_log;  // of iprop
};

// Opens and closes both databases.
absl::StatusOr<Facts> Look(const std::string& realm, const std::string& profile) {
  Facts facts;
  if (!profile.empty()) {
    ASSIGN_OR_RETURN(std::unique_ptr<SourceDb> source, SourceDb::Open(profile, realm));
    ASSIGN_OR_RETURN(facts.there, StoredBy(source->context(), source->realm()));
    facts.stash_there = source->stash();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ImportSession> session, ImportSession::Open(realm, profile));
  KdbSession& target = session->target();
  RETURN_IF_ERROR(CheckCommitted(target));
  facts.converts = session->converts();
  facts.realm = target.params().realm;
  facts.stash = target.params().stash_file == nullptr ? "" : target.params().stash_file;
  ASSIGN_OR_RETURN(facts.here, StoredBy(target.context(), facts.realm));
  const char* log = target.params().iprop_logfile;
  facts.update_log = log == nullptr ? facts.here.name + ".ulog" : log;
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

// klmdb loads in one transaction: the new file has the dump's master key when it has everything,
// and before that nothing. Whoever has begun to use it must not get the old one back.
absl::Status UndoScrub(const std::string& realm) {
  Configuration configuration(realm);
  if (!configuration.good()) return absl::OkStatus();  // whoever opens the database says it
  ASSIGN_OR_RETURN(const Stored stored,
                   StoredBy(configuration.context(), configuration.realm()));
  if (stored.module != "klmdb") return absl::OkStatus();
  const std::string file = stored.Files()[0], aside = file + kOldSuffix;
  if (!Exists(aside)) return absl::OkStatus();
  std::error_code error;
  bool loaded = Exists(file) && fs::file_size(file, error) > 0;
  if (loaded) {
    std::string key;
    const krb5_error_code code = configuration.MasterEntry(&key);
    loaded = code != KRB5_KDB_NOENTRY;
    if (loaded && (code != 0 || key.empty() || !HasText(DumpOf(stored), ToHex(key)))) {
      return absl::FailedPreconditionError(absl::StrCat(
          "an interrupted --scrub has left ", aside, ", and whether ", file,
          " has all of it cannot be told. With krb5kdc and kadmind stopped look at both: if ", file,
          " is the realm's database, shred the other; if it is not, move the other in its place"));
    }
  }
  if (loaded) return OverwriteFiles({aside});
  return rename(aside.c_str(), file.c_str()) == 0 ? absl::OkStatus() : Errno(aside);
}

absl::StatusOr<json> ScrubRealm(const std::string& realm, const ImportedFrom& from) {
  RETURN_IF_ERROR(UndoScrub(realm));
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
  // Not ours to remove: replicas ask kadmind for what is in it.
  if (Exists(facts.update_log)) {
    scrubber.Left(facts.update_log +
                  ": the update log for replicas may have entries with the old keys, also after "
                  "kproplog -R, which leaves the bytes; with kadmind stopped overwrite and remove "
                  "it (shred -u), then start kadmind, which makes a new one, and let each replica "
                  "resynchronize in full; the replicas' logs too");
  }
  // The stash last: without it the rest is ciphertext. With --source it is that of its kdc.conf.
  const std::string stash = from.stash.empty() ? facts.stash_there : from.stash;
  const bool needed = facts.converts || SameFile(stash, facts.stash);
  if (needed) {
    scrubber.Left((stash.empty() ? facts.stash : stash) +
                  ": the realm's master key is still this one, and opens old dumps and backups; "
                  "change it (kdb5_util add_mkey, use_mkey, update_princ_encryption, purge_mkeys)");
  } else if (from.stash.empty() && facts.there.Files().empty() && Exists(stash)) {
    scrubber.Left(stash + ": it opens the keys that " + facts.there.module + " of " + from.source +
                  " still has; overwrite it when those are gone");
  } else if (!stash.empty()) {
    RETURN_IF_ERROR(scrubber.Files({stash}));
  }
  RETURN_IF_ERROR(scrubber.Folder(from.scratch));
  return scrubber.Answer();
}

}  // namespace mpckdc::kdbtool
