// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/kdb-tool/import_record.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <utility>

namespace mpckdc::kdbtool {
namespace {

constexpr uint8_t kVersion = 1;
constexpr uint8_t kCopied = 1;
constexpr uint8_t kConverted = 2;
constexpr size_t kFingerprintBytes = 16;
constexpr size_t kMaxParts = 2;

void PutNumber(uint64_t number, int bytes, std::string* out) {
  for (int i = bytes - 1; i >= 0; --i) out->push_back(static_cast<char>(number >> (8 * i)));
}

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : left_(bytes) {}
  uint64_t Number(size_t bytes) {
    uint64_t number = 0;
    for (const char c : Bytes(bytes)) number = number << 8 | static_cast<uint8_t>(c);
    return number;
  }
  absl::string_view Bytes(size_t size) {
    if (size > left_.size()) {
      ok_ = false;
      left_ = {};
      return {};
    }
    const absl::string_view bytes = left_.substr(0, size);
    left_.remove_prefix(size);
    return bytes;
  }
  bool ok() const { return ok_; }

 private:
  absl::string_view left_;
  bool ok_ = true;
};

void PutKey(const StoredKey& key, std::string* out) {
  PutNumber(key.parts.size(), 2, out);
  PutNumber(key.kvno, 2, out);
  for (const KeyPart& part : key.parts) {
    PutNumber(static_cast<uint16_t>(part.type), 2, out);
    PutNumber(part.bytes.size(), 2, out);
    *out += part.bytes;
  }
}

std::string SerializeKeys(const std::vector<StoredKey>& keys) {
  std::string out;
  PutNumber(keys.size(), 2, &out);
  for (const StoredKey& key : keys) PutKey(key, &out);
  return out;
}

StoredKey ReadKey(Reader& in) {
  StoredKey key;
  const uint64_t parts = std::min<uint64_t>(in.Number(2), kMaxParts);
  key.kvno = static_cast<uint32_t>(in.Number(2));
  for (uint64_t i = 0; i < parts && in.ok(); ++i) {
    KeyPart& part = key.parts.emplace_back();
    part.type = static_cast<int16_t>(in.Number(2));
    part.bytes = std::string(in.Bytes(in.Number(2)));
  }
  return key;
}

const krb5_tl_data* FindTl(const krb5_db_entry* entry, int type) {
  const krb5_tl_data* tl = entry->tl_data;
  while (tl != nullptr && tl->tl_data_type != type) tl = tl->tl_data_next;
  return tl;
}

void FreeKeys(krb5_key_data* data, size_t count) {
  for (size_t i = 0; i < count && data != nullptr; ++i) {
    for (size_t part = 0; part < kMaxParts; ++part) {
      krb5_octet* contents = data[i].key_data_contents[part];
      if (contents == nullptr) continue;
      sodium_memzero(contents, data[i].key_data_length[part]);
      free(contents);
    }
  }
  free(data);
}

bool FillKey(const StoredKey& key, krb5_key_data* data) {
  data->key_data_ver = static_cast<krb5_int16>(key.parts.size());
  data->key_data_kvno = static_cast<krb5_ui_2>(key.kvno);
  for (size_t i = 0; i < key.parts.size() && i < kMaxParts; ++i) {
    const std::string& bytes = key.parts[i].bytes;
    data->key_data_type[i] = static_cast<krb5_int16>(key.parts[i].type);
    data->key_data_length[i] = static_cast<krb5_ui_2>(bytes.size());
    if (bytes.empty()) continue;
    data->key_data_contents[i] = static_cast<krb5_octet*>(malloc(bytes.size()));
    if (data->key_data_contents[i] == nullptr) return false;
    memcpy(data->key_data_contents[i], bytes.data(), bytes.size());
  }
  return true;
}

}  // namespace

std::vector<StoredKey> KeysOf(const krb5_db_entry* entry) {
  std::vector<StoredKey> keys;
  for (int i = 0; i < entry->n_key_data; ++i) {
    const krb5_key_data& data = entry->key_data[i];
    StoredKey& key = keys.emplace_back();
    key.kvno = data.key_data_kvno;
    for (size_t part = 0; part < kMaxParts && part < static_cast<size_t>(data.key_data_ver);
         ++part) {
      key.parts.push_back({data.key_data_type[part],
                           std::string(reinterpret_cast<char*>(data.key_data_contents[part]),
                                       data.key_data_length[part])});
    }
  }
  return keys;
}

std::string FingerprintOf(const krb5_db_entry* entry) {
  // Of the keys alone, in an order of our own: a module may reorder keys, and fill in salts.
  std::vector<std::string> each;
  for (StoredKey& key : KeysOf(entry)) {
    key.parts.resize(std::min<size_t>(key.parts.size(), 1));
    PutKey(key, &each.emplace_back());
  }
  std::sort(each.begin(), each.end());
  std::string bytes;
  for (const std::string& one : each) bytes += one;
  std::string hash(kFingerprintBytes, '\0');
  crypto_generichash(reinterpret_cast<unsigned char*>(hash.data()), hash.size(),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr,
                     0);
  return hash;
}

absl::Status PutKeys(const std::vector<StoredKey>& keys, krb5_db_entry* entry) {
  auto* data = static_cast<krb5_key_data*>(calloc(keys.size() + 1, sizeof(krb5_key_data)));
  bool complete = data != nullptr;
  for (size_t i = 0; i < keys.size() && complete; ++i) complete = FillKey(keys[i], &data[i]);
  if (!complete) {
    FreeKeys(data, keys.size());
    return absl::ResourceExhaustedError("out of memory");
  }
  FreeKeys(entry->key_data, static_cast<size_t>(entry->n_key_data));
  entry->key_data = data;
  entry->n_key_data = static_cast<krb5_int16>(keys.size());
  krb5_dbe_sort_key_data(entry->key_data, static_cast<size_t>(entry->n_key_data));
  return absl::OkStatus();
}

std::string TlDataOf(const krb5_db_entry* entry, int type) {
  const krb5_tl_data* tl = FindTl(entry, type);
  if (tl == nullptr) return "";
  return std::string(reinterpret_cast<const char*>(tl->tl_data_contents), tl->tl_data_length);
}

absl::Status PutTlData(krb5_context context, int type, absl::string_view bytes,
                       krb5_db_entry* entry) {
  if (bytes.size() > UINT16_MAX) {
    return absl::FailedPreconditionError("its keys and password history are too long to be kept");
  }
  krb5_tl_data tl = {};
  tl.tl_data_type = static_cast<krb5_int16>(type);
  tl.tl_data_length = static_cast<krb5_ui_2>(bytes.size());
  tl.tl_data_contents = reinterpret_cast<krb5_octet*>(const_cast<char*>(bytes.data()));
  const krb5_error_code code = krb5_dbe_update_tl_data(context, entry, &tl);
  return code == 0 ? absl::OkStatus() : absl::ResourceExhaustedError("out of memory");
}

void RemoveTlData(int type, krb5_db_entry* entry) {
  krb5_tl_data** link = &entry->tl_data;
  while (*link != nullptr) {
    krb5_tl_data* tl = *link;
    if (tl->tl_data_type != type) {
      link = &tl->tl_data_next;
      continue;
    }
    *link = tl->tl_data_next;
    sodium_memzero(tl->tl_data_contents, tl->tl_data_length);
    free(tl->tl_data_contents);
    free(tl);
    --entry->n_tl_data;
  }
}

std::optional<ImportRecord> ReadRecord(const krb5_db_entry* entry) {
  const krb5_tl_data* tl = FindTl(entry, kImportTlType);
  if (tl == nullptr) return std::nullopt;
  const std::string bytes = TlDataOf(entry, kImportTlType);
  Reader in(bytes);
  ImportRecord record;
  const uint64_t version = in.Number(1);
  const uint64_t how = in.Number(1);
  record.converted = how == kConverted;
  record.written = std::string(in.Bytes(kFingerprintBytes));
  if (record.converted) {
    for (uint64_t keys = in.Number(2); keys > 0 && in.ok(); --keys) {
      record.keys.push_back(ReadKey(in));
    }
    record.kadm_data = std::string(in.Bytes(in.Number(4)));
  }
  if (!in.ok() || version != kVersion || (how != kCopied && how != kConverted)) {
    return ImportRecord{};
  }
  return record;
}

std::string SerializeRecord(const ImportRecord& record) {
  std::string out;
  PutNumber(kVersion, 1, &out);
  PutNumber(record.converted ? kConverted : kCopied, 1, &out);
  out += record.written;
  if (!record.converted) return out;
  out += SerializeKeys(record.keys);
  PutNumber(record.kadm_data.size(), 4, &out);
  out += record.kadm_data;
  return out;
}

}  // namespace mpckdc::kdbtool
