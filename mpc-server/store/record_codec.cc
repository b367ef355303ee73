// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/record_codec.h"

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/record_format.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

// What stands among the facts and is none of KeyInfo's.
struct Counts {
  size_t base_blocks = 0;
  size_t usages = 0;
  std::optional<CopiedFrom> copied;
};

// Whether a usage ends with H (gcm), or with the states of an HMAC.
bool HasH(const KeyRecord& record) {
  const Enctype* enctype = FindEnctype(record.info.enctype);
  return enctype != nullptr && enctype->is_gcm();
}

// How a share is written: both of a party's values, or one component of the three (epochs.h).
struct ShareForm {
  size_t bytes;
  void (*append)(SecretBytes& out, const SharedBlock& share);
  void (*read)(ByteReader& in, SharedBlock& share);
};

constexpr ShareForm kWhole = {rf::kShareBytes,
                              [](SecretBytes& out, const SharedBlock& share) {
                                AppendBytes(out, share.x);
                                AppendBytes(out, share.a);
                              },
                              [](ByteReader& in, SharedBlock& share) {
                                in.Into(share.x);
                                in.Into(share.a);
                              }};
constexpr ShareForm kOwnComponent = {
    sizeof(Block), [](SecretBytes& out, const SharedBlock& share) { AppendBytes(out, share.a); },
    [](ByteReader& in, SharedBlock& share) { in.Into(share.a); }};
constexpr ShareForm kPrevsComponent = {
    sizeof(Block),
    [](SecretBytes& out, const SharedBlock& share) {
      AppendBytes(out, XorBlocks(share.x, share.a));
    },
    [](ByteReader& in, SharedBlock& share) { in.Into(share.a); }};

size_t EncodedSize(const KeyRecord& record, const ShareForm& form) {
  size_t size = rf::kKeyFixedBytes + record.info.principal.size() + record.info.salt.size() +
                (record.copied ? rf::kCopiedBytes : 0) + record.base.size() * form.bytes;
  for (const UsageKey& usage : record.usages) {
    size += rf::kUsageFixedBytes + usage.round_keys.size() * form.bytes;
    size += HasH(record) ? form.bytes : rf::kMacCountBytes + usage.mac_states.size() * form.bytes;
  }
  return size;
}

void AppendInfo(SecretBytes& out, const KeyRecord& record) {
  const KeyInfo& info = record.info;
  AppendUint(out, info.kvno, 4);
  AppendUint(out, static_cast<uint32_t>(info.enctype), 4);
  AppendUint(out, static_cast<uint32_t>(info.salt_type), 4);
  AppendUint(out, static_cast<uint8_t>(info.key_class) | (record.copied ? rf::kCopyBits : 0), 1);
  AppendUint(out, static_cast<uint8_t>(info.gate), 1);
  AppendUint(out, info.principal.size(), 2);
  AppendUint(out, info.salt.size(), 2);
  AppendUint(out, record.base.size(), 1);
  AppendUint(out, record.usages.size(), 1);
  AppendBytes(out, AsBytes(info.principal));
  AppendBytes(out, AsBytes(info.salt));
  if (!record.copied) return;
  AppendBytes(out, record.copied->handle);
  AppendBytes(out, record.copied->lineage);
  AppendBytes(out, record.copied->first);
}

// The version before wrote whose the first of the copies was, and not which key.
CopiedFrom ReadCopied(ByteReader& in, bool has_lineage) {
  CopiedFrom copied;
  in.Into(copied.handle);
  in.Into(copied.lineage);
  copied.first = copied.handle;
  if (has_lineage) {
    in.Into(copied.first);
  } else {
    copied.lineage = LineageOf(copied.lineage);
  }
  return copied;
}

KeyInfo ReadInfo(const Handle& handle, ByteReader& in, Counts& counts) {
  KeyInfo info;
  info.handle = handle;
  info.kvno = static_cast<uint32_t>(in.Uint(4));
  info.enctype = static_cast<int32_t>(in.Uint(4));
  info.salt_type = static_cast<int32_t>(in.Uint(4));
  const auto class_and_bits = static_cast<uint8_t>(in.Uint(1));
  const bool has_lineage = (class_and_bits & rf::kLineageBit) != 0;
  info.key_class = static_cast<KeyClass>(class_and_bits & ~rf::kCopyBits);
  info.gate = static_cast<Gate>(in.Uint(1));
  const size_t principal_bytes = in.Uint(2);
  const size_t salt_bytes = in.Uint(2);
  counts.base_blocks = in.Uint(1);
  counts.usages = in.Uint(1);
  info.principal = std::string(AsText(in.Bytes(principal_bytes)));
  info.salt = std::string(AsText(in.Bytes(salt_bytes)));
  if ((class_and_bits & rf::kCopiedBit) != 0) {
    counts.copied = ReadCopied(in, has_lineage);
  } else if (has_lineage) {
    info.key_class = static_cast<KeyClass>(class_and_bits);  // there is none: it is damaged
  }
  info.principal_id = PrincipalIdOf(info.principal);
  info.before_cammac = counts.usages < UsagesOf(info.key_class).size();
  return info;
}

void ReadShares(ByteReader& in, const ShareForm& form, SecretVector<SharedBlock>& out,
                size_t count) {
  if (in.left() / form.bytes < count) {
    in.Bytes(in.left() + 1);  // fails: where none are due, no share would be missed
    return;
  }
  out.resize(count);
  for (SharedBlock& share : out) form.read(in, share);
}

void AppendUsage(SecretBytes& out, const ShareForm& form, const UsageKey& usage, bool has_h) {
  AppendUint(out, usage.usage, 4);
  AppendUint(out, usage.round_keys.size(), 1);
  for (const SharedBlock& share : usage.round_keys) form.append(out, share);
  if (has_h) return form.append(out, usage.h);
  AppendUint(out, usage.mac_states.size(), rf::kMacCountBytes);
  for (const SharedBlock& share : usage.mac_states) form.append(out, share);
}

void ReadUsage(ByteReader& in, const ShareForm& form, bool has_h, UsageKey& usage) {
  usage.usage = static_cast<uint32_t>(in.Uint(4));
  ReadShares(in, form, usage.round_keys, in.Uint(1));
  if (!has_h) return ReadShares(in, form, usage.mac_states, in.Uint(rf::kMacCountBytes));
  form.read(in, usage.h);
}

SecretBytes Encode(const KeyRecord& record, const ShareForm& form) {
  assert(CheckKeyRecord(record).ok());
  SecretBytes out;
  out.reserve(EncodedSize(record, form));
  AppendInfo(out, record);
  for (const SharedBlock& share : record.base) form.append(out, share);
  for (const UsageKey& usage : record.usages) AppendUsage(out, form, usage, HasH(record));
  assert(out.size() == EncodedSize(record, form));
  return out;
}

absl::StatusOr<KeyRecord> Decode(const Handle& handle, absl::Span<const uint8_t> plain,
                                 const ShareForm& form) {
  ByteReader in(plain);
  KeyRecord record;
  Counts counts;
  record.info = ReadInfo(handle, in, counts);
  record.copied = counts.copied;
  ReadShares(in, form, record.base, counts.base_blocks);
  record.usages.resize(counts.usages);
  for (UsageKey& usage : record.usages) ReadUsage(in, form, HasH(record), usage);
  if (!in.ok()) return absl::InvalidArgumentError("the record is too short");
  if (!in.AtEnd()) return absl::InvalidArgumentError("bytes are left after the record");
  RETURN_IF_ERROR(CheckKeyRecord(record));
  return record;
}

}  // namespace

SecretBytes EncodeKeyRecord(const KeyRecord& record) { return Encode(record, kWhole); }

absl::StatusOr<KeyRecord> DecodeKeyRecord(const Handle& handle, absl::Span<const uint8_t> plain) {
  return Decode(handle, plain, kWhole);
}

SecretBytes EncodeComponent(const KeyRecord& record, bool of_prev) {
  return Encode(record, of_prev ? kPrevsComponent : kOwnComponent);
}

absl::StatusOr<KeyRecord> JoinComponents(const Handle& handle, absl::Span<const uint8_t> own,
                                         absl::Span<const uint8_t> of_prev) {
  ASSIGN_OR_RETURN(KeyRecord record, Decode(handle, own, kOwnComponent));
  ASSIGN_OR_RETURN(KeyRecord other, Decode(handle, of_prev, kOwnComponent));
  if (record.info != other.info || record.copied != other.copied) {
    return absl::InvalidArgumentError("the two servers say different things about the key");
  }
  std::vector<SharedBlock*> blocks;
  ForEachBlock(record, [&](SharedBlock& block) { blocks.push_back(&block); });
  size_t k = 0;
  ForEachBlock(other, [&](SharedBlock& block) {
    blocks[k]->x = XorBlocks(blocks[k]->a, block.a);
    ++k;
  });
  return record;
}

absl::StatusOr<std::optional<CopiedFrom>> DecodeCopied(const Handle& handle,
                                                       absl::Span<const uint8_t> plain) {
  ByteReader in(plain);
  Counts counts;
  ReadInfo(handle, in, counts);
  if (!in.ok()) return absl::InvalidArgumentError("the record is too short");
  return counts.copied;
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
