// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/enroll/keytab.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/string_to_key.h"
#include "mpc-server/package/certificate.h"

namespace mpckdc::enroll {
namespace {

// file:  05 02, then entries
// entry: size (4, signed; negative: a hole of that size) and that many bytes:
//        number of components (2) | realm | components | name type (4) | time (4) | kvno (1) |
//        enctype (2, signed) | key | [kvno (4), overrides when not zero]
// realm, components and key: length (2) | bytes
constexpr uint8_t kMagic[] = {0x05, 0x02};
constexpr size_t kMaxComponents = 64;

absl::Span<const uint8_t> Counted(ByteReader& reader) { return reader.Bytes(reader.Uint(2)); }

std::string Text(ByteReader& reader) { return std::string(AsText(Counted(reader))); }

std::string Quoted(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"/", "\\/"}, {"@", "\\@"}, {"\\", "\\\\"}, {"\t", "\\t"},
                                    {"\n", "\\n"}, {"\b", "\\b"}, {{"\0", 1}, "\\0"}});
}

// Unquoted name parts joined as krb5_unparse_name joins them.
std::string UnparseName(const std::vector<std::string>& components, const std::string& realm) {
  const auto quoted = [](std::string* out, const std::string& part) { *out += Quoted(part); };
  return absl::StrCat(absl::StrJoin(components, "/", quoted), "@", Quoted(realm));
}

absl::StatusOr<KeytabEntry> ParseEntry(absl::Span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  const uint64_t count = reader.Uint(2);
  if (count == 0 || count > kMaxComponents) {
    return absl::InvalidArgumentError(absl::StrCat("a principal of ", count, " components"));
  }
  const std::string realm = Text(reader);
  std::vector<std::string> components;
  for (uint64_t i = 0; i < count; ++i) components.push_back(Text(reader));
  reader.Bytes(8);  // name type and time
  KeytabEntry entry;
  entry.kvno = static_cast<uint32_t>(reader.Uint(1));
  entry.enctype = static_cast<int16_t>(reader.Uint(2));
  const absl::Span<const uint8_t> key = Counted(reader);
  if (!reader.ok()) return absl::InvalidArgumentError("an entry ends too early");
  if (reader.left() >= 4) {
    const auto kvno = static_cast<uint32_t>(reader.Uint(4));
    if (kvno != 0) entry.kvno = kvno;
  }
  entry.principal = UnparseName(components, realm);
  entry.key.assign(key.begin(), key.end());
  return entry;
}

// The enctypes as whose base key a keytab's key can be enrolled; none for one that is not shared.
std::vector<int32_t> EnrolledAs(int32_t enctype) {
  if (enctype == kEnctypeAes128Sha1) return {enctype, kEnctypeAes128Gcm};
  if (enctype == kEnctypeAes256Sha1) return {enctype, kEnctypeAes256Gcm};
  if (FindEnctype(enctype) != nullptr) return {enctype};
  return {};
}

absl::Status AddKey(KeytabEntry entry, KeytabKeys* keys) {
  for (const int32_t enctype : EnrolledAs(entry.enctype)) {
    if (entry.key.size() != BaseKeyBytes(enctype)) {
      return absl::InvalidArgumentError(absl::StrCat(entry.principal, ": the key of enctype ",
                                                     entry.enctype, " has ", entry.key.size(),
                                                     " bytes"));
    }
    SecretBytes& slot = keys->keys[enctype];
    if (!slot.empty() && !ConstantTimeEqual(slot, entry.key)) {
      return absl::InvalidArgumentError(absl::StrCat(
          entry.principal, ": two different keys for ", EnctypeName(enctype), ", version ",
          entry.kvno));
    }
    slot = entry.key;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<KeytabEntry>> ParseKeytab(absl::Span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  const absl::Span<const uint8_t> magic = reader.Bytes(sizeof(kMagic));
  if (!std::equal(magic.begin(), magic.end(), std::begin(kMagic), std::end(kMagic))) {
    return absl::InvalidArgumentError("not a keytab of format 0x0502");
  }
  std::vector<KeytabEntry> entries;
  while (reader.left() > 0) {
    const int64_t size = static_cast<int32_t>(reader.Uint(4));
    if (size == 0 && reader.ok()) break;  // the rest was never written
    const absl::Span<const uint8_t> body = reader.Bytes(size < 0 ? -size : size);
    if (!reader.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the file is cut off in entry ", entries.size() + 1));
    }
    if (size < 0) continue;
    absl::StatusOr<KeytabEntry> entry = ParseEntry(body);
    if (!entry.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("entry ", entries.size() + 1, ": ", entry.status().message()));
    }
    entries.push_back(*std::move(entry));
  }
  return entries;
}

absl::StatusOr<std::vector<KeytabEntry>> ReadKeytab(const std::string& file) {
  absl::StatusOr<SecretBytes> bytes = ReadWholeFile(file, limits::kMaxKeytabBytes);
  if (absl::IsInvalidArgument(bytes.status())) {
    return absl::InvalidArgumentError(absl::StrCat(bytes.status().message(), ": split it"));
  }
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<std::vector<KeytabEntry>> entries = ParseKeytab(*bytes);
  if (entries.ok()) return entries;
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", entries.status().message()));
}

absl::StatusOr<std::map<std::string, KeytabKeys>> EnrollableKeys(
    std::vector<KeytabEntry> entries) {
  std::map<std::string, KeytabKeys> principals;
  for (const KeytabEntry& entry : entries) {
    uint32_t& kvno = principals[entry.principal].kvno;
    kvno = std::max(kvno, entry.kvno);
  }
  for (KeytabEntry& entry : entries) {
    KeytabKeys& keys = principals[entry.principal];
    if (entry.kvno != keys.kvno) continue;
    RETURN_IF_ERROR(AddKey(std::move(entry), &keys));
  }
  return principals;
}

}  // namespace mpckdc::enroll
