// SPDX-License-Identifier: Apache-2.0
//
// The commands of mpc-kdb that import-realm uses (kdc-plugin/README.md has the formats).
#ifndef MPC_SERVER_ADMIN_IMPORT_KDB_H_
#define MPC_SERVER_ADMIN_IMPORT_KDB_H_

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/admin/kdb.h"
#include "mpc-server/package/package.h"
#include "proto/admin.pb.h"

namespace mpckdc::admin {

// Where a principal's keys are to be.
enum class Place {
  kMaster,     // K/M: never anywhere else
  kHistory,    // kadmin/history: in the database
  kKrbtgt,     // the realm's own
  kKadmin,     // kadmin/*: drawn
  kProtected,  // on the servers
  kLocal,      // in the database
};

// import_session.h of kdc-plugin has the states.
enum class ImportState { kOld, kImported, kChanged, kPresent, kGone };

struct ScannedKey {
  uint32_t kvno = 0;
  int32_t enctype = 0;
};

// One principal of the realm that is imported. No key was decrypted for it.
struct Scanned {
  std::string principal;
  Place place = Place::kLocal;
  ImportState state = ImportState::kOld;
  uint32_t kvno = 0;             // 0: it has no keys
  std::vector<int32_t> planned;  // types that its keys will have on the servers
  std::vector<ScannedKey> weak;  // of the newest version, of types that the servers do not hold
  std::vector<ScannedKey> old;   // of earlier versions
  size_t history = 0;            // old passwords
};

struct ImportScan {
  bool converts = false;  // the database that is imported into is the imported one
  std::vector<Scanned> principals;
};

// What mpc-kdb has sealed of one principal: public, but for the packages.
struct SealedPrincipal {
  std::string principal;
  absl::Status status;             // not OK: it is left, and why
  nlohmann::json line;             // for Write()
  std::vector<v1::KeyInfo> keys;   // that it will have
  std::vector<v1::KeyInfo> past;   // of its old passwords
};

struct SealedKeys {
  std::vector<SealedPrincipal> principals;
  // Each with the keys in it, in the order of the principals' `keys` and `past`.
  std::vector<std::pair<std::vector<v1::KeyInfo>, enroll::SealedBytes>> packages;
};

struct SealRequest {
  std::string principal;
  v1::KeyClass key_class = v1::KEY_CLASS_USER;
  v1::Gate gate = v1::GATE_TIMESTAMP;
};

class ImportKdb {
 public:
  explicit ImportKdb(const Kdb* kdb) : kdb_(*kdb) {}

  // From here on the source is that dump, in a database of its own.
  absl::Status Load(const std::string& scratch, const std::string& dump, const std::string& stash);
  // Or what this kdc.conf says.
  void Use(const std::string& profile) { profile_ = profile; }

  absl::StatusOr<ImportScan> Scan() const;
  // Names of policies that differ from those that are there.
  absl::StatusOr<std::vector<std::string>> CopyPolicies() const;
  absl::StatusOr<SealedKeys> Seal(const enroll::PackageTarget& target,
                                  const std::string& transaction,
                                  absl::Span<const SealRequest> requests) const;

  // Each principal with a result of its own, in their order; an error of the whole says that
  // nothing is known about any of them.
  using Results = absl::StatusOr<std::vector<absl::Status>>;
  Results Write(absl::Span<const SealedPrincipal> principals) const;
  struct ToCopy {
    std::string principal;
    bool bare = false;  // without its keys
  };
  Results Copy(absl::Span<const ToCopy> principals) const;
  Results Commit(absl::Span<const std::string> principals) const;
  // Whoever else has an import's record: renamed since.
  absl::Status CommitRest() const;
  // The handles that each had.
  absl::StatusOr<std::vector<absl::StatusOr<std::vector<std::string>>>> Rollback(
      absl::Span<const std::string> principals) const;
  // {"overwritten": [...], "left": [...]}; any of them may be empty.
  absl::StatusOr<nlohmann::json> Scrub(const std::string& scratch, const std::string& source,
                                       const std::string& dump, const std::string& stash) const;

 private:
  std::vector<std::string> Command(const char* name) const { return {name, "--source", profile_}; }

  const Kdb& kdb_;
  std::string profile_;
};

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_IMPORT_KDB_H_
