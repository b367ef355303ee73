// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/epochs.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/string_view.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/store/record_format.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

// One of the components of a refresh's sharing of zero, as a stream over the blocks of one record.
class ComponentStream {
 public:
  ComponentStream(const RefreshSeed& seed, uint64_t into, int component, const Handle& handle) {
    static_assert(crypto_stream_xchacha20_KEYBYTES == crypto_kdf_KEYBYTES);
    static_assert(crypto_stream_xchacha20_NONCEBYTES == sizeof(Handle) + 8);
    // The context names the purpose, the subkey the epoch and the component.
    crypto_kdf_derive_from_key(key_.Get().data(), key_.Get().size(),
                               2 * into + static_cast<uint64_t>(component), "mpckdc-r",
                               seed.Get().data());
    std::copy(handle.begin(), handle.end(), nonce_.begin());
  }

  void Fill(SecretVector<Block>& blocks) const {
    crypto_stream_xchacha20(reinterpret_cast<uint8_t*>(blocks.data()),
                            blocks.size() * sizeof(Block), nonce_.data(), key_.Get().data());
  }

 private:
  Secret<std::array<uint8_t, crypto_kdf_KEYBYTES>> key_;
  std::array<uint8_t, crypto_stream_xchacha20_NONCEBYTES> nonce_{};
};

}  // namespace

void RefreshRecord(const RefreshSeed& seed, uint64_t into, int party, KeyRecord& record) {
  size_t blocks = 0;
  ForEachBlock(record, [&](const SharedBlock&) { ++blocks; });
  std::array<SecretVector<Block>, 3> d;
  for (int i = 0; i < 2; ++i) {
    d[i].resize(blocks);
    ComponentStream(seed, into, i, record.info.handle).Fill(d[i]);
  }
  d[2].resize(blocks);
  for (size_t k = 0; k < blocks; ++k) d[2][k] = XorBlocks(d[0][k], d[1][k]);
  size_t k = 0;
  ForEachBlock(record, [&](SharedBlock& block) {
    block.a = XorBlocks(block.a, d[party][k]);
    block.x = XorBlocks(block.x, d[(party + 1) % 3][k]);
    ++k;
  });
}

SecretBytes EncodeRefresh(const StoredRefresh& refresh) {
  SecretBytes out;
  out.reserve(rf::kRefreshBytes + rf::kKeyBytes);
  AppendUint(out, refresh.key == nullptr ? rf::kRefreshVersion : rf::kRefreshWithKeyVersion, 1);
  AppendUint(out,
             refresh.joining   ? rf::kRefreshJoining
             : refresh.entered ? rf::kRefreshEntered
                               : rf::kRefreshPrepared,
             1);
  AppendUint(out, refresh.into, 8);
  AppendBytes(out, refresh.id);
  AppendBytes(out, refresh.seed->Get());
  if (refresh.key != nullptr) AppendBytes(out, *refresh.key);
  return out;
}

absl::StatusOr<StoredRefresh> DecodeRefresh(absl::Span<const uint8_t> plain) {
  ByteReader in(plain);
  StoredRefresh refresh;
  const uint64_t version = in.Uint(1), state = in.Uint(1);
  refresh.entered = state == rf::kRefreshEntered;
  refresh.joining = state == rf::kRefreshJoining;
  refresh.into = in.Uint(8);
  in.Into(refresh.id);
  auto seed = std::make_shared<RefreshSeed>();
  in.Into(seed->Get());
  refresh.seed = std::move(seed);
  const bool with_key = version == rf::kRefreshWithKeyVersion;
  if (with_key) {
    const absl::Span<const uint8_t> key = in.Bytes(rf::kKeyBytes);
    refresh.key = std::make_shared<const SecretBytes>(key.begin(), key.end());
  }
  if (!in.AtEnd() || (version != rf::kRefreshVersion && !with_key) ||
      state < rf::kRefreshPrepared || state > rf::kRefreshJoining) {
    return absl::DataLossError("the share store's note of a refresh is damaged");
  }
  return refresh;
}

SecretBytes EncodeEpochBegin(const EpochBegin& begin) {
  SecretBytes out;
  AppendUint(out, rf::kRefreshVersion, 1);
  AppendBytes(out, begin.began_by);
  AppendUint(out, static_cast<uint64_t>(std::max<int64_t>(0, absl::ToUnixMicros(begin.began))), 8);
  return out;
}

absl::StatusOr<EpochBegin> DecodeEpochBegin(absl::Span<const uint8_t> plain) {
  ByteReader in(plain);
  EpochBegin begin;
  const uint64_t version = in.Uint(1);
  in.Into(begin.began_by);
  begin.began = absl::FromUnixMicros(static_cast<int64_t>(in.Uint(8)));
  if (!in.AtEnd() || version != rf::kRefreshVersion) {
    return absl::DataLossError("the share store's note of its epoch is damaged");
  }
  return begin;
}

}  // namespace mpckdc
