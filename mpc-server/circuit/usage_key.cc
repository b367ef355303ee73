// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/usage_key.h"

#include "mpc-server/circuit/kdf_hmac_sha2.h"

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

}  // namespace

std::unique_ptr<UsageKeys> UsageKeysOf(const Enctype& enctype) {
  if (enctype.is_gcm()) return std::make_unique<DeriveUsageKeys>(BitsOf(enctype));
  return std::make_unique<DeriveHmacUsageKeys>(enctype);
}

// --- gcm -----------------------------------------------------------------------------------------

DeriveUsageKeys::DeriveUsageKeys(AesBits bits, Isa isa)
    : bits_(bits), derive_(bits, isa), schedule_(bits, isa), tag_key_(bits, isa) {}

void DeriveUsageKeys::Reset(absl::Span<const UsageKeyRequest> requests) {
  std::vector<DerivedKeyRequest> keys;
  results_.clear();
  for (const UsageKeyRequest& r : requests) {
    keys.push_back({r.base, r.usage, DerivedKeyKind::kKg});
    results_.push_back({r.usage, {}, {}, {}});
  }
  derive_.Reset(keys);
  current_ = &derive_;
  stage_ = requests.empty() ? Stage::kDone : Stage::kDerive;
}

absl::Status DeriveUsageKeys::Consume(RoundIn in) {
  if (absl::Status s = current_->Consume(in); !s.ok()) return s;
  if (current_->Done()) Advance();
  return absl::OkStatus();
}

void DeriveUsageKeys::Advance() {
  const size_t n = results_.size();
  switch (stage_) {
    case Stage::kDerive: {
      SecretVector<SharedBlock> keys;
      for (size_t i = 0; i < n; ++i) {
        keys.insert(keys.end(), derive_.key(i).begin(), derive_.key(i).end());
      }
      schedule_.Reset(keys);
      current_ = &schedule_;
      stage_ = Stage::kSchedule;
      return;
    }
    case Stage::kSchedule: {
      std::vector<AesLane> lanes;
      for (size_t i = 0; i < n; ++i) {
        const auto keys = schedule_.round_keys(i);
        results_[i].round_keys.assign(keys.begin(), keys.end());
        lanes.push_back({keys.data(), nullptr, Block{}});
      }
      tag_key_.Reset(lanes);
      current_ = &tag_key_;
      stage_ = Stage::kTagKey;
      return;
    }
    case Stage::kTagKey:
      for (size_t i = 0; i < n; ++i) results_[i].h = tag_key_.output(i);
      stage_ = Stage::kDone;
      return;
    case Stage::kDone:
      return;
  }
}

Cost DeriveUsageKeys::DeclaredCost() const {
  const size_t n = results_.size();
  return derive_.DeclaredCost() + CostOfKeySchedule(bits_, n) + CostOfAes(bits_, n);
}

// --- 17 to 20 ------------------------------------------------------------------------------------

DeriveHmacUsageKeys::DeriveHmacUsageKeys(const Enctype& enctype, Adder adder, Isa isa)
    : enctype_(enctype),
      adder_(adder),
      derive_(DerivationOf(enctype, adder, isa)),
      schedule_(BitsOf(enctype), isa),
      states_(enctype.hash, isa) {}

void DeriveHmacUsageKeys::Reset(absl::Span<const UsageKeyRequest> requests) {
  keys_.clear();
  results_.clear();
  cipher_keys_ = 0;
  for (const UsageKeyRequest& r : requests) {
    results_.push_back({r.usage, {}, {}, {}});
    if (IsEncryptionUsage(r.usage)) {
      keys_.push_back({r.base, r.usage, DerivedKeyKind::kKe});
      keys_.push_back({r.base, r.usage, DerivedKeyKind::kKi});
      ++cipher_keys_;
    } else {
      keys_.push_back({r.base, r.usage, DerivedKeyKind::kKc});
    }
  }
  derive_->Reset(keys_);
  current_ = derive_.get();
  stage_ = requests.empty() ? Stage::kDone : Stage::kDerive;
}

absl::Status DeriveHmacUsageKeys::Consume(RoundIn in) {
  if (absl::Status s = current_->Consume(in); !s.ok()) return s;
  if (stage_ == Stage::kDerive && derive_->Done()) BeginSchedule();
  if (stage_ == Stage::kSchedule && schedule_.Done()) BeginStates();  // there may be no Ke
  if (stage_ == Stage::kStates && states_.Done()) Finish();
  return absl::OkStatus();
}

void DeriveHmacUsageKeys::BeginSchedule() {
  SecretVector<SharedBlock> cipher_keys;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i].kind != DerivedKeyKind::kKe) continue;
    cipher_keys.insert(cipher_keys.end(), derive_->key(i).begin(), derive_->key(i).end());
  }
  schedule_.Reset(cipher_keys);
  current_ = &schedule_;
  stage_ = Stage::kSchedule;
}

void DeriveHmacUsageKeys::BeginStates() {
  std::vector<HmacKey> mac_keys;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i].kind == DerivedKeyKind::kKe) continue;
    mac_keys.push_back({derive_->key(i).data(), enctype_.mac_key_bytes});
  }
  states_.Reset(mac_keys, adder_);
  current_ = &states_;
  stage_ = Stage::kStates;
}

void DeriveHmacUsageKeys::Finish() {
  size_t cipher = 0;
  for (size_t i = 0; i < results_.size(); ++i) {
    UsageKeyShare& result = results_[i];
    const absl::Span<const SharedBlock> states = states_.states(i);
    result.mac_states.assign(states.begin(), states.end());
    if (!IsEncryptionUsage(result.usage)) continue;
    const absl::Span<const SharedBlock> keys = schedule_.round_keys(cipher++);
    result.round_keys.assign(keys.begin(), keys.end());
  }
  stage_ = Stage::kDone;
}

Cost DeriveHmacUsageKeys::DeclaredCost() const {
  return derive_->DeclaredCost() + CostOfKeySchedule(BitsOf(enctype_), cipher_keys_) +
         CostOfCompress(enctype_.hash, adder_, 2 * results_.size());
}

}  // namespace mpckdc
