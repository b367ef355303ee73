// SPDX-License-Identifier: Apache-2.0
//
// What becomes of one entry of the realm that is imported, decided without any key.
#ifndef KDC_PLUGIN_KDB_TOOL_IMPORT_PLAN_H_
#define KDC_PLUGIN_KDB_TOOL_IMPORT_PLAN_H_

#include <string>
#include <vector>

#include "kdc-plugin/kdb-tool/source_db.h"

namespace mpckdc::kdbtool {

// A key that is to be shared: of which type, and from which stored one.
struct PlannedKey {
  int32_t enctype = 0;
  const krb5_key_data* from = nullptr;  // of the entry
};

// Keys that stay behind, for the report.
struct LeftKey {
  uint32_t kvno = 0;
  int32_t enctype = 0;
};

struct ImportPlan {
  uint32_t kvno = 0;  // the newest that the entry has; 0: it has no keys
  std::vector<PlannedKey> keys;
  std::vector<LeftKey> weak;  // of the newest version, and no type that the servers hold
  std::vector<LeftKey> old;   // of older versions
};

// For each wanted type, the first key of the newest version with the same base key: that of
// aes256-gcm is the one of 18, that of aes128-gcm the one of 17. Salts and versions stay.
ImportPlan PlanImport(const krb5_db_entry* entry, const std::vector<krb5_key_salt_tuple>& wanted);

// The realm's old krbtgt: every key of every version that the servers can hold, as it is.
ImportPlan PlanOldTgs(const krb5_db_entry* entry);

// The type whose base key one of `enctype` has; 0: the servers hold no such type.
int32_t BaseEnctype(int32_t enctype);

}  // namespace mpckdc::kdbtool

#endif  // KDC_PLUGIN_KDB_TOOL_IMPORT_PLAN_H_
