// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/pending_seals.h"

#include <cassert>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/circuit/gcm/ghash.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc {
namespace {

absl::Span<const uint8_t> Bytes(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// This server's share of the tag, before masking.
SharedBlock TagShare(const PendingSeal& seal, const SharedBlock& mask,
                     absl::string_view ciphertext) {
  const std::vector<Block> blocks =
      GhashBlocks(Bytes(HeaderAad(seal.header)), Bytes(ciphertext));
  assert(blocks.size() <= seal.powers.powers.size());
  return GhashLinear(blocks, seal.powers.powers) ^ mask;
}

// What leaves of it: a_i, masked under the hash of what was asked.
void MaskTag(const OutputKeys& keys, const Digest& hash, const SharedBlock& share,
             TagResult* result) {
  Block before = XorBlocks(share.x, share.a);
  result->tag_share = share.a;
  OutputMasks masks(keys);
  masks.SetHash(hash);
  masks.Mask(OutputNumber(OutputField::kTag, 0), absl::MakeSpan(result->tag_share),
             absl::MakeSpan(before));
  result->keys = masks.Finish();
}

}  // namespace

void PendingSeals::Add(const KdcIdentity& kdc, JobId id, PendingJob job, absl::Time expires) {
  static_assert(limits::kMaxPartsPerJob <= 32);  // Entry::answered
  const absl::MutexLock lock(&mu_);
  const SealBatch& batch = *job.batch;
  const bool first = ++jobs_of_[&batch] == 1;
  if (first) bytes_ += batch.powers_bytes;
  // Never the jobs of this batch, which is alone in the end.
  while (!by_age_.empty() && jobs_of_.size() > 1 && bytes_ > limits::kMaxPendingSealBytes) {
    DropOldest();
  }
  while (!by_age_.empty() && seals_ + job.seals.size() > limits::kMaxPendingSeals) DropOldest();
  seals_ += job.seals.size();
  Key key{kdc, id};
  by_age_.push_back({expires, key});
  entries_.insert_or_assign(std::move(key), Entry{std::move(job), 0, expires});
}

void PendingSeals::Erase(absl::flat_hash_map<Key, Entry>::iterator it) {
  const PendingJob& job = it->second.job;
  seals_ -= job.seals.size();
  const auto batch = jobs_of_.find(job.batch.get());
  if (--batch->second == 0) {
    bytes_ -= job.batch->powers_bytes;
    jobs_of_.erase(batch);
  }
  entries_.erase(it);
}

void PendingSeals::DropOldest() {
  const auto it = entries_.find(by_age_.front().second);
  if (it != entries_.end()) Erase(it);
  by_age_.pop_front();
}

Judgement PendingSeals::Take(const KdcIdentity& kdc, const TagRequest& request, absl::Time now,
                             Taken* out) {
  const absl::MutexLock lock(&mu_);
  const auto it = entries_.find({kdc, request.job});
  if (it == entries_.end() || it->second.expires <= now ||
      request.seal >= it->second.job.seals.size()) {
    return Refuse(Verdict::kRefused, absl::StrCat("no seal ", request.seal, " of job ",
                                                  request.job, " is waiting for its tag"));
  }
  Entry& entry = it->second;
  if (entry.job.seals[request.seal].powers.owner == nullptr) {
    return Refuse(Verdict::kRefused, absl::StrCat("seal ", request.seal, " of job ", request.job,
                                                  " was complete when it was answered"));
  }
  const uint32_t bit = 1u << request.seal;
  if ((entry.answered & bit) != 0) {
    return Refuse(Verdict::kRefused, absl::StrCat("the tag of seal ", request.seal, " of job ",
                                                  request.job, " was already given"));
  }
  entry.answered |= bit;
  *out = {entry.job.batch, entry.job.digest, entry.job.seals[request.seal]};
  const bool all = entry.answered == (1u << entry.job.seals.size()) - 1;
  if (all) Erase(it);
  return Ok();
}

TagResult PendingSeals::Finish(const KdcIdentity& kdc, const TagRequest& request, absl::Time now) {
  TagResult result{request.job, request.seal, Ok(), {}, {}};
  Taken taken;
  result.judgement = Take(kdc, request, now, &taken);
  if (!result.judgement.ok()) return result;
  const PendingSeal& seal = taken.seal;
  const size_t size = request.ciphertext.size();
  if (size < kZeroBytes || size > kZeroBytes + seal.max_plaintext) {
    result.judgement = Refuse(
        Verdict::kMalformed, absl::StrCat("ciphertext of ", size, " bytes for a seal of at most ",
                                          kZeroBytes + seal.max_plaintext));
    return result;
  }
  const Digest hash = TagRequestDigest(taken.digest, seal.nonce, request);
  MaskTag(taken.batch->keys, hash,
          TagShare(seal, taken.batch->masks[seal.mask], request.ciphertext), &result);
  return result;
}

void PendingSeals::Prune(absl::Time now) {
  const absl::MutexLock lock(&mu_);
  while (!by_age_.empty() && by_age_.front().first <= now) DropOldest();
}

size_t PendingSeals::bytes() const {
  const absl::MutexLock lock(&mu_);
  return bytes_;
}

size_t PendingSeals::size() const {
  const absl::MutexLock lock(&mu_);
  return seals_;
}

}  // namespace mpckdc
