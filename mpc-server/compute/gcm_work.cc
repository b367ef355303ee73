// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/gcm_work.h"

#include <algorithm>
#include <cassert>
#include <memory>

#include "mpc-server/base/bytes.h"

namespace mpckdc {
namespace {

// Cached powers are computed in steps of powers of two, so that a slowly growing ticket does not
// compute them anew each time.
constexpr size_t kLeastCachedPowers = 64;
constexpr size_t kMaxCachedKeys = 64;

size_t CachedCount(size_t needed) {
  size_t count = kLeastCachedPowers;
  while (count < needed) count *= 2;
  return count;
}

std::pair<Handle, uint32_t> IdOf(const KeyUse& key) { return {key.info->handle, key.key->usage}; }

Block FirstBlock(absl::string_view bytes) {
  Block block{};
  std::copy_n(bytes.begin(), block.size(), block.begin());
  return block;
}

}  // namespace

const SharedPowers* PowersCache::Find(const KeyUse& key, size_t count) const {
  const auto it = entries_.find(IdOf(key));
  if (it == entries_.end() || it->second.powers.powers.size() < count) return nullptr;
  const SharedBlock& kept = it->second.h.Get();
  return kept.x == key.key->h.x && kept.a == key.key->h.a ? &it->second.powers : nullptr;
}

const SharedPowers& PowersCache::Put(const KeyUse& key, absl::Span<const SharedBlock> powers) {
  if (entries_.size() >= kMaxCachedKeys && !entries_.contains(IdOf(key))) entries_.clear();
  Entry& entry = entries_[IdOf(key)];
  auto owner = std::make_shared<const SecretVector<SharedBlock>>(powers.begin(), powers.end());
  const absl::Span<const SharedBlock> all(*owner);
  entry = {Secret<SharedBlock>(key.key->h), {std::move(owner), all}};
  return entry.powers;
}

// ---- The parts ----

void GcmWork::AddLanes(GcmPart& part, const Nonce& nonce, size_t count) {
  const AesBits bits = part.key.bits();
  std::vector<AesLane>& all = bits == AesBits::k128 ? lanes128_ : lanes256_;
  part.first_lane = all.size();
  part.lanes = count;
  assert(part.key.key->round_keys.size() == AesRoundKeys(bits));
  for (size_t i = 0; i < count; ++i) {
    AesLane lane;
    lane.round_keys = part.key.key->round_keys.data();
    lane.public_input = CounterBlock(nonce, static_cast<uint32_t>(1 + i));
    all.push_back(lane);
  }
}

void GcmWork::NeedPowers(GcmPart& part, size_t count) {
  const auto [it, first] =
      need_of_.try_emplace(IdOf(part.key), static_cast<uint32_t>(needs_.size()));
  part.powers = it->second;
  if (first) needs_.push_back({part.key, 0, false});
  needs_[part.powers].count = std::max(needs_[part.powers].count, count);
}

void GcmWork::Add(GcmOpen& open) {
  const size_t bytes = open.message.ciphertext.size();
  AddLanes(open, open.message.nonce, open.tag_only ? 2 : 1 + BlocksOf(bytes));
  NeedPowers(open, GhashBlockCount(1 + open.message.header.size(), bytes));
}

void GcmWork::Add(GcmSeal& seal) {
  const size_t bytes = kZeroBytes + seal.max_plaintext;
  AddLanes(seal, seal.nonce, 1 + BlocksOf(bytes));
  NeedPowers(seal, GhashBlockCount(1 + seal.header.size(), bytes));
  needs_[seal.powers].for_seal = true;
}

void GcmWork::Add(GcmMac& mac) {
  AddLanes(mac, mac.nonce, 1);
  NeedPowers(mac, GhashBlockCount(mac.data.size(), 0));
}

// ---- Powers of H ----

// Returns the needs that the cache does not fill.
std::vector<size_t> GcmWork::RequestMissingPowers(SecretVector<GhashPowersRequest>* requests) {
  std::vector<size_t> missing;
  powers_.resize(needs_.size());
  requests->reserve(needs_.size());
  for (size_t i = 0; i < needs_.size(); ++i) {
    const PowersNeed& need = needs_[i];
    if (need.cached()) {
      if (const SharedPowers* kept = cache_.Find(need.key, need.count)) {
        powers_[i] = *kept;
        continue;
      }
    }
    const size_t count = need.cached() ? CachedCount(need.count) : need.count;
    requests->push_back({need.key.key->h, static_cast<uint32_t>(count)});
    missing.push_back(i);
  }
  return missing;
}

// Two pieces of memory for the powers of all keys. That of the seals lives until the last of them
// has its tag; the other, with the thousands of powers of a long checksum, ends with the batch.
//
//   all    | key 1 | key 2 ............ | key 3 |
//   kept   | key 1 | key 3 |                          keys 1 and 3 seal something
void GcmWork::KeepPowers(GhashPowers& circuit, const std::vector<size_t>& missing) {
  std::vector<absl::Span<const SharedBlock>> spans;
  size_t size = 0;
  const auto is_kept = [](const PowersNeed& need) { return need.for_seal && !need.cached(); };
  for (size_t i = 0; i < missing.size(); ++i) {
    spans.push_back(circuit.powers(i));
    if (is_kept(needs_[missing[i]])) size += spans[i].size();
  }
  const auto all = std::make_shared<const SecretVector<SharedBlock>>(circuit.TakePowers());
  const auto kept = std::make_shared<SecretVector<SharedBlock>>();
  kept->reserve(size);
  kept_bytes_ = size * sizeof(SharedBlock);
  for (size_t i = 0; i < missing.size(); ++i) {
    const PowersNeed& need = needs_[missing[i]];
    SharedPowers& powers = powers_[missing[i]];
    if (need.cached()) {
      powers = cache_.Put(need.key, spans[i]);
    } else if (is_kept(need)) {
      const size_t at = kept->size();
      kept->insert(kept->end(), spans[i].begin(), spans[i].end());
      powers = {kept, absl::MakeConstSpan(*kept).subspan(at)};
    } else {
      powers = {all, spans[i]};
    }
  }
}

// ---- Running, and what comes of it ----

absl::Status GcmWork::Run(Rings& rings, Circuit& first, Circuit& last, Sbox sbox, Cost* cost) {
  SecretVector<GhashPowersRequest> requests;
  const std::vector<size_t> missing = RequestMissingPowers(&requests);
  GhashPowers powers;
  powers.Reset(requests);
  Circuit* const others[] = {&first, &powers, &last};
  const absl::Status status = blocks_.Run(rings, lanes128_, lanes256_, sbox, others, cost);
  if (status.ok()) KeepPowers(powers, missing);
  return status;
}

const SharedBlock& GcmWork::Output(const GcmPart& part, size_t lane) const {
  assert(lane < part.lanes);
  return (part.key.bits() == AesBits::k128 ? blocks_.outputs128()
                                           : blocks_.outputs256())[part.first_lane + lane];
}

SharedBlock GcmWork::TagDifference(const GcmPart& part, absl::string_view aad,
                                   absl::string_view ciphertext, const Tag& tag) const {
  const std::vector<Block> blocks = GhashBlocks(AsBytes(aad), AsBytes(ciphertext));
  return AddPublic(GhashLinear(blocks, PowersOf(part).powers) ^ Output(part, 0), tag);
}

void GcmWork::AppendCheck(const GcmOpen& open, SecretVector<SharedBlock>* out) const {
  const MessageView& m = open.message;
  out->push_back(TagDifference(open, HeaderAad(m.header), m.ciphertext, m.tag));
  out->push_back(AddPublic(Output(open, 1), FirstBlock(m.ciphertext)));
}

void GcmWork::AppendCheck(const GcmVerify& mac, SecretVector<SharedBlock>* out) const {
  out->push_back(TagDifference(mac, mac.data, "", mac.tag));
}

void GcmWork::AppendText(const GcmOpen& open, SecretVector<SharedBlock>* out) const {
  for (size_t i = 2; i < open.lanes; ++i) out->push_back(Output(open, i));
}

SecretBytes GcmWork::TextOf(const GcmOpen& open, absl::Span<const Block> opened) {
  const auto cipher = AsBytes(open.message.ciphertext.substr(kZeroBytes));
  SecretBytes text(cipher.begin(), cipher.end());
  for (size_t i = 0; i < text.size(); ++i) text[i] ^= opened[i / 16][i % 16];
  return text;
}

}  // namespace mpckdc
