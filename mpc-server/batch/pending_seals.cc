// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/batch/pending_seals.h"

#include <sodium.h>

#include <cassert>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "mpc-server/circuit/ghash.h"
#include "mpc-server/defence/defence.h"
#include "mpc-server/job/message_format.h"
#include "mpc-server/limits.h"

namespace mpckdc {
namespace {

Block KeyedHash(const SecretBytes& key, const Digest& hash) {
  Block out;
  assert(key.size() == 32);
  crypto_generichash(out.data(), out.size(), hash.data(), hash.size(), key.data(), key.size());
  return out;
}

absl::Span<const uint8_t> Bytes(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// This server's additive share of the tag, before masking.
Block TagShare(const PendingSeal& seal, absl::string_view ciphertext) {
  const std::vector<Block> blocks =
      GhashBlocks(Bytes(HeaderAad(seal.header)), Bytes(ciphertext));
  assert(blocks.size() <= seal.powers->size());
  return XorBlocks(GhashLinearA(blocks, *seal.powers), seal.mask_a[0]);
}

}  // namespace

Block TagMaskKeys::Mask(const Digest& hash) const {
  if (!Upheld(Defence::kTagMask)) return Block{};
  return XorBlocks(KeyedHash(own, hash), KeyedHash(next, hash));
}

Digest SealContext(const Digest& job_digest, const Nonce& nonce) {
  std::string bytes("mpc-kdc seal v1");
  bytes.push_back('\0');
  bytes.append(reinterpret_cast<const char*>(job_digest.data()), job_digest.size());
  bytes.append(reinterpret_cast<const char*>(nonce.data()), nonce.size());
  return Sha256(bytes);
}

void PendingSeals::Add(const KdcIdentity& kdc, JobId job, std::vector<PendingSeal> seals,
                       absl::Time expires) {
  const absl::MutexLock lock(&mu_);
  while (!by_age_.empty() && seals_ + seals.size() > limits::kMaxPendingSeals) DropOldest();
  Entry entry;
  entry.expires = expires;
  for (PendingSeal& seal : seals) {
    entry.seals.push_back(std::make_unique<PendingSeal>(std::move(seal)));
  }
  seals_ += entry.seals.size();
  entries_[{kdc, job}] = std::move(entry);
  by_age_.push_back({expires, {kdc, job}});
}

void PendingSeals::DropOldest() {
  const auto it = entries_.find(by_age_.front().second);
  if (it != entries_.end()) {
    seals_ -= it->second.seals.size();
    entries_.erase(it);
  }
  by_age_.pop_front();
}

std::unique_ptr<PendingSeal> PendingSeals::Take(const KdcIdentity& kdc, const TagRequest& request,
                                                absl::Time now, Judgement* why) {
  const absl::MutexLock lock(&mu_);
  const auto it = entries_.find({kdc, request.job});
  if (it == entries_.end() || it->second.expires <= now ||
      request.seal >= it->second.seals.size()) {
    *why = Refuse(Verdict::kRefused, absl::StrCat("no seal ", request.seal, " of job ", request.job,
                                                  " is waiting for its tag"));
    return nullptr;
  }
  std::unique_ptr<PendingSeal>& waiting = it->second.seals[request.seal];
  if (!Upheld(Defence::kOneTag) && waiting != nullptr) {
    return std::make_unique<PendingSeal>(*waiting);
  }
  std::unique_ptr<PendingSeal> seal = std::move(waiting);
  if (seal == nullptr) {
    *why = Refuse(Verdict::kRefused, absl::StrCat("the tag of seal ", request.seal, " of job ",
                                                  request.job, " was already given"));
  }
  return seal;
}

TagResult PendingSeals::Finish(const KdcIdentity& kdc, const TagRequest& request, absl::Time now) {
  TagResult result{request.job, request.seal, Ok(), {}};
  const std::unique_ptr<PendingSeal> seal = Take(kdc, request, now, &result.judgement);
  if (seal == nullptr) return result;
  const size_t size = request.ciphertext.size();
  if (size < kZeroBytes || size > kZeroBytes + seal->max_plaintext) {
    result.judgement = Refuse(
        Verdict::kMalformed, absl::StrCat("ciphertext of ", size, " bytes for a seal of at most ",
                                          kZeroBytes + seal->max_plaintext));
    return result;
  }
  const Digest context = TagRequestDigest(seal->context, request);
  result.tag_share =
      XorBlocks(TagShare(*seal, request.ciphertext), seal->mask_keys->Mask(context));
  return result;
}

void PendingSeals::Prune(absl::Time now) {
  const absl::MutexLock lock(&mu_);
  while (!by_age_.empty() && by_age_.front().first <= now) DropOldest();
}

size_t PendingSeals::size() const {
  const absl::MutexLock lock(&mu_);
  return seals_;
}

}  // namespace mpckdc
