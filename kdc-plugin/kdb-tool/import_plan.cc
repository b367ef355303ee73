// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/kdb-tool/import_plan.h"

#include <algorithm>

extern "C" {
#include "kdc-plugin/kdb-module/handles.h"
}

namespace mpckdc::kdbtool {
namespace {

// Those of krb5.h and mpc-server/key/enctype.h; this program links neither of ours.
constexpr int32_t kAes128Gcm = -24001;
constexpr int32_t kAes256Gcm = -24002;

bool IsStandard(int32_t enctype) {
  return enctype >= ENCTYPE_AES128_CTS_HMAC_SHA1_96 &&
         enctype <= ENCTYPE_AES256_CTS_HMAC_SHA384_192;
}

uint32_t NewestVersion(const krb5_db_entry* entry) {
  uint32_t kvno = 0;
  for (int i = 0; i < entry->n_key_data; ++i) {
    kvno = std::max<uint32_t>(kvno, entry->key_data[i].key_data_kvno);
  }
  return kvno;
}

const krb5_key_data* FindKey(const krb5_db_entry* entry, uint32_t kvno, int32_t enctype) {
  for (int i = 0; i < entry->n_key_data; ++i) {
    const krb5_key_data& data = entry->key_data[i];
    if (data.key_data_kvno == kvno && data.key_data_type[0] == enctype) return &data;
  }
  return nullptr;
}

}  // namespace

int32_t BaseEnctype(int32_t enctype) {
  if (enctype == kAes256Gcm) return ENCTYPE_AES256_CTS_HMAC_SHA1_96;
  if (enctype == kAes128Gcm) return ENCTYPE_AES128_CTS_HMAC_SHA1_96;
  return IsStandard(enctype) ? enctype : 0;
}

ImportPlan PlanImport(const krb5_db_entry* entry, const std::vector<krb5_key_salt_tuple>& wanted) {
  ImportPlan plan;
  plan.kvno = NewestVersion(entry);
  for (const krb5_key_salt_tuple& tuple : wanted) {
    const int32_t enctype = tuple.ks_enctype;
    const bool again = std::any_of(plan.keys.begin(), plan.keys.end(),
                                   [&](const PlannedKey& key) { return key.enctype == enctype; });
    if (again || BaseEnctype(enctype) == 0) continue;
    // A realm that has known our types stores them as they are.
    const krb5_key_data* from = FindKey(entry, plan.kvno, enctype);
    if (from == nullptr) from = FindKey(entry, plan.kvno, BaseEnctype(enctype));
    if (from != nullptr) plan.keys.push_back({enctype, from});
  }
  for (int i = 0; i < entry->n_key_data; ++i) {
    const krb5_key_data& data = entry->key_data[i];
    const LeftKey key = {data.key_data_kvno, data.key_data_type[0]};
    if (key.kvno != plan.kvno) {
      plan.old.push_back(key);
    } else if (BaseEnctype(key.enctype) == 0) {
      plan.weak.push_back(key);
    }
  }
  return plan;
}

ImportPlan PlanOldTgs(const krb5_db_entry* entry) {
  ImportPlan plan;
  for (int i = 0; i < entry->n_key_data; ++i) {
    const krb5_key_data& data = entry->key_data[i];
    if (handle_in(&data) != nullptr) continue;  // drawn already
    plan.kvno = std::max<uint32_t>(plan.kvno, data.key_data_kvno);
    if (IsStandard(data.key_data_type[0])) {
      plan.keys.push_back({data.key_data_type[0], &data});
    } else {
      plan.weak.push_back({data.key_data_kvno, data.key_data_type[0]});
    }
  }
  return plan;
}

}  // namespace mpckdc::kdbtool
