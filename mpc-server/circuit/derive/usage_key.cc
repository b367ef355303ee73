// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/derive/usage_key.h"

#include <algorithm>

#include "mpc-server/circuit/derive/kdf_hmac_sha2.h"

namespace mpckdc {
namespace {

AesBits BitsOf(const Enctype& enctype) {
  return enctype.key_bytes == 16 ? AesBits::k128 : AesBits::k256;
}

std::unique_ptr<KeyDerivation> DerivationOf(const Enctype& enctype, Adder adder, Isa isa) {
  if (enctype.family == EnctypeFamily::kRfc8009) {
    return std::make_unique<KdfHmacSha2>(enctype, adder, isa);
  }
  return std::make_unique<DeriveDk>(BitsOf(enctype), isa);
}

bool IsCipherKey(const DerivedKeyRequest& key) {
  return key.kind == DerivedKeyKind::kKg || key.kind == DerivedKeyKind::kKe;
}

}  // namespace

UsageKeys::UsageKeys(const Enctype& enctype, Adder adder, Isa isa)
    : enctype_(enctype),
      bits_(BitsOf(enctype)),
      adder_(adder),
      derive_(DerivationOf(enctype, adder, isa)),
      schedule_(bits_, isa) {
  if (enctype.is_gcm()) {
    tag_key_.emplace(bits_, isa);
  } else {
    mac_states_.emplace(enctype.hash, isa);
  }
}

void UsageKeys::Reset(absl::Span<const UsageKeyRequest> requests) {
  keys_.clear();
  results_.clear();
  for (const UsageKeyRequest& r : requests) {
    results_.push_back({r.usage, {}, {}, {}});
    if (enctype_.is_gcm()) {
      keys_.push_back({r.base, r.usage, DerivedKeyKind::kKg});
    } else if (IsEncryptionUsage(r.usage)) {
      keys_.push_back({r.base, r.usage, DerivedKeyKind::kKe});
      keys_.push_back({r.base, r.usage, DerivedKeyKind::kKi});
    } else {
      keys_.push_back({r.base, r.usage, DerivedKeyKind::kKc});
    }
  }
  cipher_keys_ = static_cast<size_t>(std::count_if(keys_.begin(), keys_.end(), IsCipherKey));
  Restart();
  derive_->Reset(keys_);
  Start(*derive_, [this] { StartSchedule(); });
}

void UsageKeys::StartSchedule() {
  SecretVector<SharedBlock> cipher_keys;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (!IsCipherKey(keys_[i])) continue;
    cipher_keys.insert(cipher_keys.end(), derive_->key(i).begin(), derive_->key(i).end());
  }
  schedule_.Reset(cipher_keys);
  Start(schedule_, [this] {
    KeepRoundKeys();
    enctype_.is_gcm() ? StartTagKeys() : StartMacStates();
  });
}

void UsageKeys::KeepRoundKeys() {
  size_t next = 0;
  for (UsageKeyShare& result : results_) {
    if (!enctype_.is_gcm() && !IsEncryptionUsage(result.usage)) continue;
    const absl::Span<const SharedBlock> keys = schedule_.round_keys(next++);
    result.round_keys.assign(keys.begin(), keys.end());
  }
}

void UsageKeys::StartTagKeys() {
  std::vector<AesLane> lanes;
  for (const UsageKeyShare& r : results_) lanes.push_back({r.round_keys.data(), nullptr, Block{}});
  tag_key_->Reset(lanes);
  Start(*tag_key_, [this] {
    for (size_t i = 0; i < results_.size(); ++i) results_[i].h = tag_key_->output(i);
  });
}

void UsageKeys::StartMacStates() {
  std::vector<HmacKey> mac_keys;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (IsCipherKey(keys_[i])) continue;
    mac_keys.push_back({derive_->key(i).data(), enctype_.mac_key_bytes});
  }
  mac_states_->Reset(mac_keys, adder_);
  Start(*mac_states_, [this] {
    for (size_t i = 0; i < results_.size(); ++i) {
      const absl::Span<const SharedBlock> states = mac_states_->states(i);
      results_[i].mac_states.assign(states.begin(), states.end());
    }
  });
}

uint64_t UsageKeys::RoundsOf(const Enctype& enctype, Adder adder) {
  const AesBits bits = BitsOf(enctype);
  const Cost schedule = CostOfKeySchedule(bits, 1), block = CostOfAes(bits, 1);
  Cost all = schedule;  // of what is derived
  if (enctype.family == EnctypeFamily::kRfc8009) {
    const HmacShape shape = {kKdfMessageBytes, false};
    all = all + CostOfHmacStates(enctype.hash, adder, 1) +
          CostOfHmac(enctype.hash, adder, {&shape, 1});
  } else {
    all = all + schedule;
    for (size_t i = 0; i < enctype.base_blocks(); ++i) all = all + block;
  }
  all = all + (enctype.is_gcm() ? block : CostOfHmacStates(enctype.hash, adder, 1));
  return all.rounds;
}

Cost UsageKeys::DeclaredCost() const {
  const size_t n = results_.size();
  return derive_->DeclaredCost() + CostOfKeySchedule(bits_, cipher_keys_) +
         (enctype_.is_gcm() ? CostOfAes(bits_, n) : CostOfHmacStates(enctype_.hash, adder_, n));
}

}  // namespace mpckdc
