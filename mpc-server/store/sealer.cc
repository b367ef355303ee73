// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/sealer.h"

#include <sodium.h>

#include <array>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

static_assert(rf::kNonceBytes == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES);
static_assert(rf::kTagBytes == crypto_aead_xchacha20poly1305_ietf_ABYTES);
static_assert(rf::kKeyBytes == crypto_aead_xchacha20poly1305_ietf_KEYBYTES);

std::string Header(rf::Kind kind, uint64_t epoch) {
  std::string header;
  AppendUint(header, rf::kFormatVersion, 1);
  AppendUint(header, static_cast<uint8_t>(kind), 1);
  AppendUint(header, 0, 2);
  AppendUint(header, epoch, 8);
  assert(header.size() == rf::kHeaderBytes);
  return header;
}

uint8_t* Raw(std::string& text) { return reinterpret_cast<uint8_t*>(text.data()); }

// Appends nonce | ciphertext | tag to `out`.
void AppendSealed(std::string& out, const SecretBytes& key, RandomSource& random,
                  const std::string& additional, absl::Span<const uint8_t> plain) {
  std::array<uint8_t, rf::kNonceBytes> nonce;
  random.Fill(absl::MakeSpan(nonce));
  AppendBytes(out, nonce);
  const size_t at = out.size();
  out.resize(at + plain.size() + rf::kTagBytes);
  crypto_aead_xchacha20poly1305_ietf_encrypt(
      Raw(out) + at, nullptr, plain.data(), plain.size(), AsBytes(additional).data(),
      additional.size(), nullptr, nonce.data(), key.data());
}

// Opens nonce | ciphertext | tag into `plain`, which has the ciphertext's size.
bool OpenSealed(absl::Span<const uint8_t> sealed, const SecretBytes& key,
                const std::string& additional, absl::Span<uint8_t> plain) {
  assert(sealed.size() == rf::kNonceBytes + plain.size() + rf::kTagBytes);
  return crypto_aead_xchacha20poly1305_ietf_decrypt(
             plain.data(), nullptr, nullptr, sealed.data() + rf::kNonceBytes,
             sealed.size() - rf::kNonceBytes, AsBytes(additional).data(), additional.size(),
             sealed.data(), key.data()) == 0;
}

}  // namespace

Sealer::Sealer(StoreKeys keys, StoreIdentity identity, RandomSource* random)
    : keys_(std::move(keys)), identity_(std::move(identity)), random_(random) {
  assert(identity_.party >= 0 && identity_.party < 3);
  assert(identity_.realm.size() <= limits::kMaxRealmBytes);
}

std::string Sealer::AdditionalData(absl::Span<const uint8_t> header, absl::string_view name) const {
  std::string data(AsText(header));
  AppendUint(data, identity_.realm.size(), 2);
  data += identity_.realm;
  AppendUint(data, static_cast<uint64_t>(identity_.party), 1);
  AppendUint(data, identity_.cluster, 2);
  absl::StrAppend(&data, name);
  return data;
}

std::string Sealer::Seal(rf::Kind kind, uint64_t epoch, absl::string_view name,
                         absl::Span<const uint8_t> plain) const {
  const std::shared_ptr<const SecretBytes> key = keys_.ForEpoch(epoch);
  assert(key != nullptr);
  std::string out = Header(kind, epoch);
  const std::string additional = AdditionalData(AsBytes(out), name);
  out.reserve(rf::kOverheadBytes + plain.size());
  AppendSealed(out, *key, *random_, additional, plain);
  assert(out.size() == rf::kOverheadBytes + plain.size());
  return out;
}

absl::StatusOr<SecretBytes> Sealer::Open(rf::Kind kind, absl::string_view name,
                                         absl::Span<const uint8_t> record) const {
  if (record.size() < rf::kOverheadBytes) return absl::InvalidArgumentError("it is truncated");
  ByteReader in(record);
  const uint64_t version = in.Uint(1);
  if (version != rf::kFormatVersion) {
    return absl::InvalidArgumentError(absl::StrCat("its format version is ", version,
                                                   ", this program reads ", rf::kFormatVersion));
  }
  if (in.Uint(1) != static_cast<uint8_t>(kind)) {
    return absl::InvalidArgumentError("it is a record of another kind");
  }
  in.Bytes(2);  // authenticated below
  const uint64_t epoch = in.Uint(8);
  const std::shared_ptr<const SecretBytes> key = keys_.ForEpoch(epoch);
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("it says epoch ", epoch, ", for which ", keys_.origin(), " holds no key"));
  }
  SecretBytes plain(record.size() - rf::kOverheadBytes);
  if (!OpenSealed(record.subspan(rf::kHeaderBytes), *key,
                  AdditionalData(record.subspan(0, rf::kHeaderBytes), name),
                  absl::MakeSpan(plain))) {
    return absl::InvalidArgumentError("its authentication tag is wrong");
  }
  return plain;
}

uint64_t Sealer::EpochOf(absl::Span<const uint8_t> record) {
  ByteReader in(record);
  in.Bytes(rf::kHeaderBytes - sizeof(uint64_t));
  return in.Uint(sizeof(uint64_t));
}

std::string Sealer::SealIdentity(const StoreMeta& meta) const {
  const std::shared_ptr<const SecretBytes> key = keys_.ForEpoch(meta.epoch);
  assert(key != nullptr && meta.identity == identity_);
  std::string out;
  AppendUint(out, meta.format_version, 1);
  AppendUint(out, static_cast<uint64_t>(identity_.party), 1);
  AppendUint(out, identity_.cluster, 2);
  AppendUint(out, meta.epoch, 8);
  AppendUint(out, meta.initialised ? rf::kFlagInitialised : 0, 1);
  AppendUint(out, 0, 1);
  AppendUint(out, identity_.realm.size(), 2);
  out += identity_.realm;
  AppendSealed(out, *key, *random_, absl::StrCat(out, rf::kNameIdentity), {});
  return out;
}

absl::StatusOr<StoreMeta> Sealer::ReadIdentity(absl::Span<const uint8_t> record) {
  ByteReader in(record);
  StoreMeta meta;
  meta.format_version = static_cast<uint32_t>(in.Uint(1));
  meta.identity.party = static_cast<int>(in.Uint(1));
  meta.identity.cluster = static_cast<uint16_t>(in.Uint(2));
  meta.epoch = in.Uint(8);
  meta.initialised = (in.Uint(1) & rf::kFlagInitialised) != 0;
  in.Bytes(1);
  meta.identity.realm = std::string(AsText(in.Bytes(in.Uint(2))));
  if (in.ok() && (meta.format_version < rf::kOldestStoreVersion ||
                  meta.format_version > rf::kStoreVersion)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the share store has format version ", meta.format_version, ", this program reads version ",
        rf::kOldestStoreVersion, " to ", rf::kStoreVersion));
  }
  if (!in.ok() || in.left() != rf::kNonceBytes + rf::kTagBytes) {
    return absl::DataLossError("the share store's identity record is damaged");
  }
  return meta;
}

absl::Status Sealer::CheckIdentity(absl::Span<const uint8_t> record) const {
  ASSIGN_OR_RETURN(StoreMeta meta, ReadIdentity(record));
  const std::shared_ptr<const SecretBytes> key = keys_.ForEpoch(meta.epoch);
  if (key == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the share store is in epoch ", meta.epoch, ", for which ", keys_.origin(),
        " holds no key: they are of two backups, or of one from before a refresh. Put back the newest "
        "of both; if it is lost begin with an empty data directory and mpc-admin replace-party "
        "(deploy/runbooks/epochs.md)"));
  }
  const size_t fixed = record.size() - rf::kNonceBytes - rf::kTagBytes;
  const std::string additional = absl::StrCat(AsText(record.subspan(0, fixed)), rf::kNameIdentity);
  if (!OpenSealed(record.subspan(fixed), *key, additional, {})) {
    return absl::DataLossError(absl::StrCat(
        "the key of ", keys_.origin(),
        " does not fit the share store (or its identity record is damaged): restore the "
        "key file that belongs to this data directory"));
  }
  return absl::OkStatus();
}

}  // namespace mpckdc
