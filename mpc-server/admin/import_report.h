// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_IMPORT_REPORT_H_
#define MPC_SERVER_ADMIN_IMPORT_REPORT_H_

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "mpc-server/admin/console.h"
#include "mpc-server/admin/import_kdb.h"

namespace mpckdc::admin {

// Why a principal whose keys belong on the servers has none that can go there; "": it has some.
std::string WhyLeft(const Scanned& principal);

// What an import does, and what it leaves.
struct ImportReport {
  // What can be told from a scan alone.
  static ImportReport Of(const ImportScan& scan);

  void Say(Console& console) const;
  nlohmann::json ToJson() const;

  bool dry_run = false;
  bool converts = false;
  size_t to_import = 0;   // principals that have not been imported yet and can be
  size_t imported = 0;    // by this run
  size_t before = 0;      // imported, or with protected keys, before this run
  size_t copied = 0;      // with keys in the database (copy)
  size_t local = 0;       // of these, or that stay so (convert)
  size_t gone = 0;        // imported before, and deleted or renamed here since: stay away
  size_t changed = 0;     // have got new keys since their import
  std::vector<std::pair<std::string, std::string>> left;    // and why
  std::vector<std::pair<std::string, std::string>> failed;  // and why
  std::map<std::string, size_t> weak;  // keys that stay behind, by type
  size_t old_versions = 0;             // keys of earlier versions that stay behind
  size_t old_passwords = 0;            // of password histories, which come along
  std::vector<std::string> policies;   // that differ from those here
  std::string krbtgt;                  // what became of it
};

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_IMPORT_REPORT_H_
