// SPDX-License-Identifier: Apache-2.0
//
// Which module stores a realm's entries, and in which files, by the configuration of its KDC.
#ifndef KDC_PLUGIN_KDB_TOOL_STORED_IN_H_
#define KDC_PLUGIN_KDB_TOOL_STORED_IN_H_

#include <krb5/krb5.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mpckdc::kdbtool {

struct Stored {
  std::string module;  // "db2", "klmdb", ...
  std::string name;    // database_name

  // The files that hold keys, as they are called.
  std::vector<std::string> Files() const;
};

// Where nothing names the database it is krb5's own default, as for the modules. The context is one
// of kadm5_init_krb5_context().
absl::StatusOr<Stored> StoredBy(krb5_context context, const std::string& realm);

}  // namespace mpckdc::kdbtool

#endif  // KDC_PLUGIN_KDB_TOOL_STORED_IN_H_
