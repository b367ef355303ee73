// SPDX-License-Identifier: Apache-2.0
//
// What libkadm5 keeps in KRB5_TL_KADM_DATA: the policy's name and the old passwords' keys. The
// layout is drawn in kdb-module/history_data.c.
#ifndef KDC_PLUGIN_KDB_TOOL_KADM_DATA_H_
#define KDC_PLUGIN_KDB_TOOL_KADM_DATA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace mpckdc::kdbtool {

struct OldKey {
  uint32_t version = 1;
  uint32_t kvno = 0;
  int32_t enctype = 0;
  int32_t salt_type = 0;
  std::string contents;  // encrypted under kadmin/history, or a handle as in key data
  std::string salt;
};
using OldPassword = std::vector<OldKey>;

struct KadmData {
  std::string policy;
  uint32_t attributes = 0;
  uint32_t next = 0;  // the old passwords are a ring
  uint32_t history_kvno = 0;
  std::vector<OldPassword> old;
};

// nullopt: not understood. Empty bytes are empty data.
std::optional<KadmData> ParseKadmData(absl::string_view bytes);
std::string SerializeKadmData(const KadmData& data);

}  // namespace mpckdc::kdbtool

#endif  // KDC_PLUGIN_KDB_TOOL_KADM_DATA_H_
