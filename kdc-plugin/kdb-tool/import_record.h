// SPDX-License-Identifier: Apache-2.0
//
// What an import leaves in an entry until `mpc-admin import-realm --commit`: how the principal was
// before, so that it can be so again. It is tagged data of the entry, so one write of the entry
// makes a principal whole old or whole new, and dump, load and kprop carry it.
//
//   version (1) | how (1) | fingerprint of the keys that the import wrote (16)
//   | converted: what was there before
//       number of keys (2), for each: key data version (2) | kvno (2)
//           | for each of the version's parts: type (2) | length (2) | bytes
//       length of KRB5_TL_KADM_DATA (4) | bytes
//
// Numbers are big-endian. The old keys are as they were, encrypted under the realm's master key: a
// database with such records is worth as much to a thief as it was before the import.
#ifndef KDC_PLUGIN_KDB_TOOL_IMPORT_RECORD_H_
#define KDC_PLUGIN_KDB_TOOL_IMPORT_RECORD_H_

#include <krb5/krb5.h>

extern "C" {
#include <kdb.h>
}

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mpckdc::kdbtool {

// Below 256: no caller of kadmind can read or write tagged data of such a type.
inline constexpr int kImportTlType = 0x00ca;
// In krbtgt's entry, for ever: its old keys were imported. One byte, 1.
inline constexpr int kImportedTgsTlType = 0x00cb;

struct KeyPart {
  int32_t type = 0;
  std::string bytes;
};

// A krb5_key_data, by value.
struct StoredKey {
  uint32_t kvno = 0;
  std::vector<KeyPart> parts;  // the key; the salt, if there is one
};

struct ImportRecord {
  bool converted = false;  // its keys were in this database before, and are in `keys`
  std::string written;     // fingerprint
  std::vector<StoredKey> keys;
  std::string kadm_data;
};

// 16 bytes; of ciphertext and handles, so it tells nothing of the keys.
std::string FingerprintOf(const krb5_db_entry* entry);

std::vector<StoredKey> KeysOf(const krb5_db_entry* entry);
// Replaces the entry's keys.
absl::Status PutKeys(const std::vector<StoredKey>& keys, krb5_db_entry* entry);

// The bytes of the entry's tagged data of this type; empty: none.
std::string TlDataOf(const krb5_db_entry* entry, int type);
absl::Status PutTlData(krb5_context context, int type, absl::string_view bytes,
                       krb5_db_entry* entry);
void RemoveTlData(int type, krb5_db_entry* entry);

// nullopt: the entry has none. One that is not understood is an error of ReadRecord's caller: it
// has an empty `written`.
std::optional<ImportRecord> ReadRecord(const krb5_db_entry* entry);
std::string SerializeRecord(const ImportRecord& record);

}  // namespace mpckdc::kdbtool

#endif  // KDC_PLUGIN_KDB_TOOL_IMPORT_RECORD_H_
