// SPDX-License-Identifier: Apache-2.0
//
// Who was imported into a new database. Who of them is missing there was deleted or renamed since,
// and another run must not bring him back; an entry that is gone cannot say so itself.
//
//   # mpc-kdb import FINGERPRINT      of the database's K/M: another database begins anew
//   +PRINCIPAL
//   -PRINCIPAL                        taken back
//
// Lines are appended, and each counts from its line end on.
#ifndef KDC_PLUGIN_KDB_TOOL_IMPORT_NAMES_H_
#define KDC_PLUGIN_KDB_TOOL_IMPORT_NAMES_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mpckdc::kdbtool {

class ImportedNames {
 public:
  ImportedNames() = default;  // knows nobody
  static absl::StatusOr<ImportedNames> Read(const std::string& path, const std::string& database);

  bool Has(const std::string& name) const { return names_.count(name) > 0; }
  // Each is one durable write.
  absl::Status Add(const std::vector<std::string>& names) { return Append('+', names); }
  absl::Status Remove(const std::vector<std::string>& names) { return Append('-', names); }

 private:
  void Apply(char how, const std::string& name);
  absl::Status Append(char how, const std::vector<std::string>& names);

  std::string path_;
  std::string header_;
  bool good_ = false;  // the file can be appended to
  std::set<std::string> names_;
};

}  // namespace mpckdc::kdbtool

#endif  // KDC_PLUGIN_KDB_TOOL_IMPORT_NAMES_H_
