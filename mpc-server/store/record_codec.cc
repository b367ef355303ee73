// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/record_codec.h"

#include <cassert>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/record_format.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

struct Counts {
  size_t base_blocks = 0;
  size_t usages = 0;
};

// Whether a usage ends with H (gcm), or with the states of an HMAC.
bool HasH(const KeyRecord& record) {
  const Enctype* enctype = FindEnctype(record.info.enctype);
  return enctype != nullptr && enctype->is_gcm();
}

size_t EncodedSize(const KeyRecord& record) {
  size_t size = rf::kKeyFixedBytes + record.info.principal.size() + record.info.salt.size() +
                record.base.size() * rf::kShareBytes;
  for (const UsageKey& usage : record.usages) {
    size += rf::kUsageFixedBytes + usage.round_keys.size() * rf::kShareBytes;
    size += HasH(record) ? rf::kShareBytes
                         : rf::kMacCountBytes + usage.mac_states.size() * rf::kShareBytes;
  }
  return size;
}

void AppendShare(SecretBytes& out, const SharedBlock& share) {
  AppendBytes(out, share.x);
  AppendBytes(out, share.a);
}

void AppendInfo(SecretBytes& out, const KeyRecord& record) {
  const KeyInfo& info = record.info;
  AppendUint(out, info.kvno, 4);
  AppendUint(out, static_cast<uint32_t>(info.enctype), 4);
  AppendUint(out, static_cast<uint32_t>(info.salt_type), 4);
  AppendUint(out, static_cast<uint8_t>(info.key_class), 1);
  AppendUint(out, static_cast<uint8_t>(info.gate), 1);
  AppendUint(out, info.principal.size(), 2);
  AppendUint(out, info.salt.size(), 2);
  AppendUint(out, record.base.size(), 1);
  AppendUint(out, record.usages.size(), 1);
  AppendBytes(out, AsBytes(info.principal));
  AppendBytes(out, AsBytes(info.salt));
}

KeyInfo ReadInfo(const Handle& handle, ByteReader& in, Counts& counts) {
  KeyInfo info;
  info.handle = handle;
  info.kvno = static_cast<uint32_t>(in.Uint(4));
  info.enctype = static_cast<int32_t>(in.Uint(4));
  info.salt_type = static_cast<int32_t>(in.Uint(4));
  info.key_class = static_cast<KeyClass>(in.Uint(1));
  info.gate = static_cast<Gate>(in.Uint(1));
  const size_t principal_bytes = in.Uint(2);
  const size_t salt_bytes = in.Uint(2);
  counts.base_blocks = in.Uint(1);
  counts.usages = in.Uint(1);
  info.principal = std::string(AsText(in.Bytes(principal_bytes)));
  info.salt = std::string(AsText(in.Bytes(salt_bytes)));
  info.principal_id = PrincipalIdOf(info.principal);
  return info;
}

void ReadShares(ByteReader& in, SecretVector<SharedBlock>& out, size_t count) {
  if (in.left() / rf::kShareBytes < count) return;  // the caller sees the wrong size
  out.resize(count);
  for (SharedBlock& share : out) {
    in.Into(share.x);
    in.Into(share.a);
  }
}

void AppendUsage(SecretBytes& out, const UsageKey& usage, bool has_h) {
  AppendUint(out, usage.usage, 4);
  AppendUint(out, usage.round_keys.size(), 1);
  for (const SharedBlock& share : usage.round_keys) AppendShare(out, share);
  if (has_h) return AppendShare(out, usage.h);
  AppendUint(out, usage.mac_states.size(), rf::kMacCountBytes);
  for (const SharedBlock& share : usage.mac_states) AppendShare(out, share);
}

void ReadUsage(ByteReader& in, bool has_h, UsageKey& usage) {
  usage.usage = static_cast<uint32_t>(in.Uint(4));
  ReadShares(in, usage.round_keys, in.Uint(1));
  if (!has_h) return ReadShares(in, usage.mac_states, in.Uint(rf::kMacCountBytes));
  in.Into(usage.h.x);
  in.Into(usage.h.a);
}

}  // namespace

SecretBytes EncodeKeyRecord(const KeyRecord& record) {
  assert(CheckKeyRecord(record).ok());
  SecretBytes out;
  out.reserve(EncodedSize(record));
  AppendInfo(out, record);
  for (const SharedBlock& share : record.base) AppendShare(out, share);
  for (const UsageKey& usage : record.usages) AppendUsage(out, usage, HasH(record));
  assert(out.size() == EncodedSize(record));
  return out;
}

absl::StatusOr<KeyRecord> DecodeKeyRecord(const Handle& handle, absl::Span<const uint8_t> plain) {
  ByteReader in(plain);
  KeyRecord record;
  Counts counts;
  record.info = ReadInfo(handle, in, counts);
  ReadShares(in, record.base, counts.base_blocks);
  record.usages.resize(counts.usages);
  for (UsageKey& usage : record.usages) ReadUsage(in, HasH(record), usage);
  if (!in.ok()) return absl::InvalidArgumentError("the record is too short");
  if (!in.AtEnd()) return absl::InvalidArgumentError("bytes are left after the record");
  RETURN_IF_ERROR(CheckKeyRecord(record));
  return record;
}

absl::StatusOr<KeyInfo> DecodeKeyInfo(const Handle& handle, absl::Span<const uint8_t> plain) {
  ByteReader in(plain);
  Counts counts;
  KeyInfo info = ReadInfo(handle, in, counts);
  if (!in.ok()) return absl::InvalidArgumentError("the record is too short");
  RETURN_IF_ERROR(CheckKeyInfo(info));
  return info;
}

}  // namespace mpckdc
