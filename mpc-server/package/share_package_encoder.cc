// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/package/share_package_encoder.h"

#include <utility>

namespace mpckdc::enroll {
namespace {

// Protocol buffers wire format: a field is a varint (number << 3 | type), then its value.
class WireWriter {
 public:
  explicit WireWriter(size_t reserve) { bytes_.reserve(reserve); }

  // Absent when zero, as proto3 does.
  void Number(uint32_t field, uint64_t value) {
    if (value == 0) return;
    Varint(field << 3 | kVarint);
    Varint(value);
  }

  template <class Bytes>
  void Field(uint32_t field, const Bytes& value) {
    if (value.size() == 0) return;
    Message(field, value);
  }

  // A message of a repeated field is present even when empty.
  template <class Bytes>
  void Message(uint32_t field, const Bytes& value) {
    Varint(field << 3 | kLengthDelimited);
    Varint(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }

  SecretBytes Take() { return std::move(bytes_); }

 private:
  static constexpr uint32_t kVarint = 0;
  static constexpr uint32_t kLengthDelimited = 2;

  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<uint8_t>(value | 0x80));
    bytes_.push_back(static_cast<uint8_t>(value));
  }

  SecretBytes bytes_;
};

constexpr size_t kFieldOverhead = 8;  // field number and length, generously

size_t SizeOf(const SplitShare& share) {
  return share.x.size() + share.a.size() + 2 * kFieldOverhead;
}

size_t SizeOf(const UsageShareParts& usage) {
  return SizeOf(usage.round_keys) + SizeOf(usage.h) + SizeOf(usage.mac_states) + kFieldOverhead;
}

SecretBytes EncodeUsage(const UsageShareParts& usage) {
  WireWriter writer(SizeOf(usage));
  writer.Number(1, usage.usage);
  writer.Field(2, usage.round_keys.x);
  writer.Field(3, usage.round_keys.a);
  writer.Field(4, usage.h.x);
  writer.Field(5, usage.h.a);
  writer.Field(6, usage.mac_states.x);
  writer.Field(7, usage.mac_states.a);
  return writer.Take();
}

// An upper bound of the bytes that a key's fields 6 to 9 take.
size_t UpperBound(const KeyShareParts& key, size_t info_bytes) {
  size_t bytes = info_bytes + kFieldOverhead + SizeOf(key.base);
  for (const UsageShareParts& usage : key.usages) {
    bytes += SizeOf(usage) + kFieldOverhead;
  }
  return bytes;
}

void AppendKey(const KeyShareParts& key, const std::string& info, WireWriter* writer) {
  writer->Message(6, info);
  writer->Field(7, key.base.x);
  writer->Field(8, key.base.a);
  for (const UsageShareParts& usage : key.usages) writer->Message(9, EncodeUsage(usage));
}

SecretBytes EncodeKey(const KeyShareParts& key) {
  const std::string info = key.info->SerializeAsString();
  WireWriter writer(UpperBound(key, info.size()));
  AppendKey(key, info, &writer);
  return writer.Take();
}

}  // namespace

SecretBytes EncodeSharePackage(const SharePackageParts& parts) {
  const bool one = parts.keys.size() == 1;
  size_t bytes = parts.realm.size() + parts.transaction.size() + 6 * kFieldOverhead;
  for (const KeyShareParts& key : parts.keys) {
    bytes += UpperBound(key, key.info->ByteSizeLong()) + kFieldOverhead;
  }
  WireWriter writer(bytes);
  writer.Number(1, one ? kOneKeyVersion : kManyKeysVersion);
  writer.Field(2, parts.realm);
  writer.Number(3, static_cast<uint64_t>(parts.party));
  writer.Number(4, parts.epoch);
  writer.Field(5, parts.transaction);
  if (one) {
    AppendKey(parts.keys[0], parts.keys[0].info->SerializeAsString(), &writer);
  } else {
    for (const KeyShareParts& key : parts.keys) writer.Message(10, EncodeKey(key));
  }
  return writer.Take();
}

}  // namespace mpckdc::enroll
