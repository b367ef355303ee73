// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/run_format.h"

#include <sodium.h>

#include <algorithm>

namespace mpckdc::garble {

void PackColours(absl::Span<const Label> labels, Label* packed) {
  std::fill_n(packed, PackedLabels(labels.size()), Label{});
  auto* const bytes = reinterpret_cast<uint8_t*>(packed);
  for (size_t i = 0; i < labels.size(); ++i) {
    bytes[i / 8] |= static_cast<uint8_t>((labels[i].low & 1) << i % 8);
  }
}

void UnpackColours(const Label* packed, absl::Span<uint8_t> colours) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(packed);
  for (size_t i = 0; i < colours.size(); ++i) colours[i] = bytes[i / 8] >> i % 8 & 1;
}

LabelsHash HashOfLabels(absl::Span<const Label> labels) {
  LabelsHash hash;
  static_assert(hash.size() == crypto_hash_sha256_BYTES);
  crypto_hash_sha256(hash.data(), reinterpret_cast<const uint8_t*>(labels.data()),
                     labels.size() * sizeof(Label));
  return hash;
}

}  // namespace mpckdc::garble
