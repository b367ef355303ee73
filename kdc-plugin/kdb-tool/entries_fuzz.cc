// SPDX-License-Identifier: Apache-2.0
//
// What lies in the KDC's database, or in a dump of another's that is imported, and is read by us:
// tagged data of libkadm5 and of an import, and lines of mpc-admin.
#include <krb5/krb5.h>

extern "C" {
#include <kdb.h>

#include "kdc-plugin/kdb-module/handles.h"
#include "kdc-plugin/kdb-module/history.h"
}

#include <cstring>
#include <string>

#include "kdc-plugin/kdb-tool/import_record.h"
#include "kdc-plugin/kdb-tool/kadm_data.h"
#include "kdc-plugin/kdb-tool/lines.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc::kdbtool {
namespace {

// An entry with one piece of tagged data, as the database returns it.
struct Entry {
  Entry(int type, absl::Span<const uint8_t> in) : bytes(in.begin(), in.end()) {
    tl.tl_data_type = static_cast<krb5_int16>(type);
    tl.tl_data_length = static_cast<krb5_ui_2>(bytes.size());
    tl.tl_data_contents = bytes.data();
    entry.tl_data = &tl;
    entry.n_tl_data = 1;
  }
  std::vector<uint8_t> bytes;
  krb5_tl_data tl{};
  krb5_db_entry entry{};
};

std::string Handle(char c) { return "remote-key:" + std::string(KRB5_REMOTE_KEY_HANDLE_LENGTH, c); }

FuzzSeeds KadmSeeds() {
  FuzzSeeds seeds;
  KadmData data;
  seeds.push_back(SerializeKadmData(data));
  data.policy = "default";
  data.attributes = 0x800;
  data.next = 1;
  data.history_kvno = 2;
  seeds.push_back(SerializeKadmData(data));
  data.old = {{{2, 1, -24002, 0, Handle('a'), "salt"}, {2, 1, 18, 0, Handle('b'), ""}},
              {{1, 1, 18, 0, "encrypted", ""}}};
  seeds.push_back(SerializeKadmData(data));
  return seeds;
}

struct Walked {
  size_t visits = 0;
  const Entry* entry = nullptr;
};
void Visit(void* arg, uint32_t, int32_t, const uint8_t* handle) {
  Walked& walked = *static_cast<Walked*>(arg);
  ++walked.visits;
  FUZZ_CHECK(handle >= walked.entry->bytes.data() &&
             handle + KRB5_REMOTE_KEY_HANDLE_LENGTH <=
                 walked.entry->bytes.data() + walked.entry->bytes.size());
}
const uint8_t* Same(void*, const uint8_t* handle) { return handle[0] == 0 ? handle : nullptr; }

// The tool's reader, the module's reader, and the tool's writer agree.
MPCKDC_FUZZ(kadm_data, KadmSeeds) {
  if (in.size() > 0xffff) return;
  Entry entry(KRB5_TL_KADM_DATA, in);
  Walked walked{0, &entry};
  const bool walks = history_walk(&entry.entry, Visit, &walked) == 0;
  handle_list list;
  const krb5_error_code listed = handles_of_all(&entry.entry, &list);
  FUZZ_CHECK((listed == 0) == walks && list.count <= walked.visits);
  handle_list_free(&list);
  FUZZ_CHECK((history_replace(&entry.entry, Same, nullptr) == 0) == walks);
  const auto data = ParseKadmData(AsText(in));
  if (!data) return;
  FUZZ_CHECK(walks);
  size_t handles = 0;
  for (const OldPassword& password : data->old) {
    for (const OldKey& key : password) {
      krb5_key_data one{};
      std::string contents = key.contents;
      if (contents.size() > UINT16_MAX) continue;
      one.key_data_contents[0] = reinterpret_cast<krb5_octet*>(contents.data());
      one.key_data_length[0] = static_cast<krb5_ui_2>(contents.size());
      handles += !contents.empty() && handle_in(&one) != nullptr;
    }
  }
  FUZZ_CHECK(handles == walked.visits);
  const std::string written = SerializeKadmData(*data);
  const auto again = ParseKadmData(written);
  FUZZ_CHECK(again.has_value() && SerializeKadmData(*again) == written);
}

FuzzSeeds RecordSeeds() {
  ImportRecord record;
  record.written = std::string(16, 'f');
  FuzzSeeds seeds = {SerializeRecord(record)};
  record.converted = true;
  record.kadm_data = KadmSeeds().back();
  record.keys = {{3, {{18, "encrypted key"}, {0, "salt"}}}, {2, {{17, "k"}}}, {1, {}}};
  seeds.push_back(SerializeRecord(record));
  return seeds;
}

MPCKDC_FUZZ(import_record, RecordSeeds) {
  if (in.size() > 0xffff) return;
  const Entry entry(kImportTlType, in);
  const auto record = ReadRecord(&entry.entry);
  FUZZ_CHECK(record.has_value());
  if (record->written.empty()) return;
  const std::string written = SerializeRecord(*record);
  FUZZ_CHECK(written.size() <= in.size());
  if (written.size() > 0xffff) return;
  const Entry other(kImportTlType, AsBytes(written));
  const auto again = ReadRecord(&other.entry);
  FUZZ_CHECK(again.has_value() && SerializeRecord(*again) == written);
  krb5_db_entry with_keys{};
  FUZZ_CHECK(PutKeys(record->keys, &with_keys).ok());
  FUZZ_CHECK(KeysOf(&with_keys).size() == record->keys.size());
  FUZZ_CHECK(FingerprintOf(&with_keys).size() == 16);
  FUZZ_CHECK(PutKeys({}, &with_keys).ok());
  free(with_keys.key_data);
}

FuzzSeeds LineSeeds() {
  return {
      R"({"kvno":3,"keep_old":true,"keys":[{"enctype":-24002,"salt_type":0,"salt":"616c","handle":"00"}]})",
      R"(["a",1,-1,1e9,18446744073709551615,null])", "\"616C\""};
}

MPCKDC_FUZZ(kdb_lines, LineSeeds) {
  const absl::string_view text = AsText(in);
  const nlohmann::json value = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  int64_t number = 0;
  if (GetNumber(value, "kvno", 1, 0xffff, &number)) FUZZ_CHECK(number >= 1 && number <= 0xffff);
  static_cast<void>(GetText(value, "principal"));
  std::string bytes;
  if (FromHex(value, &bytes)) FUZZ_CHECK(2 * bytes.size() == value.get<std::string>().size());
  if (value.is_discarded()) return;
  const std::string line = Line(value);
  FUZZ_CHECK(line.find('\n') == line.size() - 1);
  FUZZ_CHECK(!nlohmann::json::parse(line, nullptr, false).is_discarded());
}

}  // namespace
}  // namespace mpckdc::kdbtool
