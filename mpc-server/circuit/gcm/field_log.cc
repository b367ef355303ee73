// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/gcm/field_log.h"

#include <cassert>
#include <cstring>

namespace mpckdc {

void FieldLog::Begin(ProofLog& log, size_t items, size_t pairs, const ZeroHalves& halves) {
  if (items == 0) return;
  log_ = &log;
  section_ = log.OpenField(items, pairs);
  item_ = pair_ = 0;
  halves_ = halves;
}

void FieldLog::Pair(const SharedBlock& s, const SharedBlock& t) {
  section_.S(kProofOwn)[pair_] = s.a;
  section_.S(kProofLeft)[pair_] = XorBlocks(s.x, s.a);
  section_.T(kProofOwn)[pair_] = t.a;
  section_.T(kProofLeft)[pair_] = XorBlocks(t.x, t.a);
  ++pair_;
}

void FieldLog::EndItem() {
  const size_t at = item_ * sizeof(Block);
  std::memcpy(section_.Sum(kProofOwn)[item_].data(), halves_.next + at, sizeof(Block));
  std::memcpy(section_.Sum(kProofLeft)[item_].data(), halves_.own + at, sizeof(Block));
  section_.ends[item_++] = static_cast<uint32_t>(pair_);
}

void FieldLog::Receive(absl::Span<const uint8_t> message) {
  if (log_ == nullptr) return;
  assert(item_ == section_.items && message.size() == item_ * sizeof(Block));
  for (size_t i = 0; i < item_; ++i) {
    Block& sum = section_.Sum(kProofLeft)[i];
    for (size_t b = 0; b < sizeof(Block); ++b) sum[b] ^= message[i * sizeof(Block) + b];
  }
  log_->CloseField(section_);
  log_ = nullptr;
}

}  // namespace mpckdc
