// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/kdb-tool/kadm_data.h"

#include <utility>

namespace mpckdc::kdbtool {
namespace {

constexpr uint32_t kVersion = 0x12345C01;
constexpr uint32_t kMaxCount = 4096;  // of old passwords, and of one's keys

class XdrReader {
 public:
  explicit XdrReader(absl::string_view bytes) : left_(bytes) {}

  uint32_t Number() {
    if (left_.size() < 4) return Fail();
    uint32_t number = 0;
    for (int i = 0; i < 4; ++i) number = number << 8 | static_cast<uint8_t>(left_[i]);
    left_.remove_prefix(4);
    return number;
  }

  std::string Bytes() {
    const uint32_t size = Number();
    const size_t padded = (size_t{size} + 3) / 4 * 4;
    if (padded > left_.size()) return std::string(Fail(), '\0');
    std::string bytes(left_.substr(0, size));
    left_.remove_prefix(padded);
    return bytes;
  }

  uint32_t Count() {
    const uint32_t count = Number();
    return count > kMaxCount ? Fail() : count;
  }

  bool ok() const { return ok_; }

 private:
  uint32_t Fail() {
    ok_ = false;
    left_ = {};
    return 0;
  }

  absl::string_view left_;
  bool ok_ = true;
};

OldKey ReadKey(XdrReader& in) {
  OldKey key;
  key.version = in.Number();
  key.kvno = in.Number();
  key.enctype = static_cast<int32_t>(in.Number());
  key.salt_type = static_cast<int32_t>(in.Number());
  in.Number();  // both lengths, which come again
  in.Number();
  key.contents = in.Bytes();
  key.salt = in.Bytes();
  return key;
}

void PutNumber(uint32_t number, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(number >> shift));
}

void PutBytes(absl::string_view bytes, std::string* out) {
  PutNumber(static_cast<uint32_t>(bytes.size()), out);
  out->append(bytes.data(), bytes.size());
  out->append((4 - bytes.size() % 4) % 4, '\0');
}

void PutKey(const OldKey& key, std::string* out) {
  PutNumber(key.version, out);
  PutNumber(key.kvno, out);
  PutNumber(static_cast<uint32_t>(key.enctype), out);
  PutNumber(static_cast<uint32_t>(key.salt_type), out);
  PutNumber(static_cast<uint32_t>(key.contents.size()), out);
  PutNumber(static_cast<uint32_t>(key.salt.size()), out);
  PutBytes(key.contents, out);
  PutBytes(key.salt, out);
}

}  // namespace

std::optional<KadmData> ParseKadmData(absl::string_view bytes) {
  KadmData data;
  if (bytes.empty()) return data;
  XdrReader in(bytes);
  if (in.Number() != kVersion) return std::nullopt;
  data.policy = in.Bytes();  // with its terminating zero, if there is one
  if (!data.policy.empty() && data.policy.back() == '\0') data.policy.pop_back();
  data.attributes = in.Number();
  data.next = in.Number();
  data.history_kvno = in.Number();
  for (uint32_t passwords = in.Count(); passwords > 0 && in.ok(); --passwords) {
    OldPassword& password = data.old.emplace_back();
    for (uint32_t keys = in.Count(); keys > 0 && in.ok(); --keys) password.push_back(ReadKey(in));
  }
  if (!in.ok()) return std::nullopt;
  return data;
}

std::string SerializeKadmData(const KadmData& data) {
  std::string out;
  PutNumber(kVersion, &out);
  if (data.policy.empty()) {
    PutNumber(0, &out);
  } else {
    PutBytes(data.policy + '\0', &out);
  }
  PutNumber(data.attributes, &out);
  PutNumber(data.next, &out);
  PutNumber(data.history_kvno, &out);
  PutNumber(static_cast<uint32_t>(data.old.size()), &out);
  for (const OldPassword& password : data.old) {
    PutNumber(static_cast<uint32_t>(password.size()), &out);
    for (const OldKey& key : password) PutKey(key, &out);
  }
  return out;
}

}  // namespace mpckdc::kdbtool
