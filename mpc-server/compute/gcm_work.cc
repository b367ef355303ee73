// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/gcm_work.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <string>
#include <utility>

#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"

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
  part.number = parts_.size();
  parts_.push_back({&part, nonce});
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
  parts_.back().open = &open;
}

void GcmWork::Add(GcmSeal& seal) {
  const size_t bytes = kZeroBytes + seal.max_plaintext;
  AddLanes(seal, seal.nonce, 1 + BlocksOf(bytes));
  NeedPowers(seal, GhashBlockCount(1 + seal.header.size(), bytes));
  PowersNeed& need = needs_[seal.powers];
  need.for_seal = true;
  need.for_tags = std::max(need.for_tags, GhashBlockCount(1 + seal.header.size(), bytes));
}

void GcmWork::AddMac(GcmMac& mac) {
  AddLanes(mac, mac.nonce, 1);
  NeedPowers(mac, GhashBlockCount(mac.data.size(), 0));
}
void GcmWork::Add(GcmMac& mac) {
  AddMac(mac);
  size_t& for_tags = needs_[mac.powers].for_tags;
  for_tags = std::max(for_tags, GhashBlockCount(mac.data.size(), 0));
}
void GcmWork::Add(GcmVerify& mac) {
  AddMac(mac);
  parts_.back().verify = &mac;
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
void GcmWork::KeepPowers(const std::vector<absl::Span<const SharedBlock>>& spans,
                         std::shared_ptr<const SecretVector<SharedBlock>> all,
                         const std::vector<size_t>& missing) {
  size_t size = 0;
  const auto is_kept = [](const PowersNeed& need) { return need.for_seal && !need.cached(); };
  for (size_t i = 0; i < missing.size(); ++i) {
    if (is_kept(needs_[missing[i]])) size += spans[i].size();
  }
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

// ---- Running ----

absl::Status GcmWork::Run(Rings& rings, Circuit& first, absl::Span<Circuit* const> last, Sbox sbox,
                          Cost* cost) {
  SecretVector<GhashPowersRequest> requests;
  const std::vector<size_t> missing = RequestMissingPowers(&requests);
  GhashPowers powers;
  powers.Reset(requests);
  std::vector<Circuit*> others = {&first, &powers};
  others.insert(others.end(), last.begin(), last.end());
  const absl::Status status = blocks_.Run(rings, lanes128_, lanes256_, sbox, others, cost);
  if (!status.ok()) return status;
  std::vector<absl::Span<const SharedBlock>> spans;
  for (size_t i = 0; i < missing.size(); ++i) spans.push_back(powers.powers(i));
  KeepPowers(spans, std::make_shared<const SecretVector<SharedBlock>>(powers.TakePowers()),
             missing);
  return status;
}

// ---- By garbled circuits ----

GarbledGcmPart GcmWork::GarbledPartOf(const Part& p) const {
  GarbledGcmPart garbled;
  garbled.key = &p.part->key;
  garbled.nonce = p.nonce;
  garbled.lanes = p.part->lanes;
  std::vector<Block> blocks;
  if (p.open != nullptr) {
    const MessageView& m = p.open->message;
    const std::string aad = HeaderAad(m.header);
    blocks = GhashBlocks(AsBytes(aad), AsBytes(m.ciphertext));
    garbled.tag = m.tag;
    garbled.zero_block = FirstBlock(m.ciphertext);
    if (p.open->is_preauth) garbled.ciphertext = std::string(m.ciphertext.substr(kZeroBytes));
  } else if (p.verify != nullptr) {
    blocks = GhashBlocks(AsBytes(p.verify->data), {});
    garbled.tag = p.verify->tag;
  } else {
    return garbled;
  }
  garbled.judged = true;
  const PowersNeed& need = needs_[p.part->powers];
  const SharedPowers* kept = need.cached() ? cache_.Find(need.key, blocks.size()) : nullptr;
  if (kept != nullptr) {
    garbled.ghash = GhashLinear(blocks, kept->powers);
  } else {
    garbled.ghash_blocks = std::move(blocks);
  }
  return garbled;
}

// Powers of tags that are made here or later, unless they are in the cache.
std::vector<size_t> GcmWork::MissingForTags(SecretVector<GarbledPowers>* wanted) {
  std::vector<size_t> missing;
  powers_.resize(needs_.size());
  for (size_t i = 0; i < needs_.size(); ++i) {
    const PowersNeed& need = needs_[i];
    const SharedPowers* kept = need.cached() ? cache_.Find(need.key, need.for_tags) : nullptr;
    if (kept != nullptr) powers_[i] = *kept;
    if (kept != nullptr || need.for_tags == 0) continue;
    const size_t count = need.cached() ? CachedCount(need.for_tags) : need.for_tags;
    wanted->push_back({need.key.key->h, count});
    missing.push_back(i);
  }
  return missing;
}

void GcmWork::BeginGarbled(PartyContext& party, const Digest& agreed, garble::RunQueue& queue) {
  garbled_.clear();
  for (const Part& part : parts_) garbled_.push_back(GarbledPartOf(part));
  garbled_powers_.clear();
  missing_powers_ = MissingForTags(&garbled_powers_);
  garbled_circuits_.emplace(party);
  garbled_circuits_->Begin(absl::MakeSpan(garbled_), absl::MakeSpan(garbled_powers_), agreed,
                           queue);
}

void GcmWork::EndGarbled() {
  garbled_circuits_.reset();
  auto joined = std::make_shared<SecretVector<SharedBlock>>();
  for (const GarbledPowers& p : garbled_powers_) {
    joined->insert(joined->end(), p.powers.begin(), p.powers.end());
  }
  std::vector<absl::Span<const SharedBlock>> spans;
  size_t at = 0;
  for (const GarbledPowers& p : garbled_powers_) {
    spans.push_back(absl::MakeConstSpan(*joined).subspan(at, p.powers.size()));
    at += p.powers.size();
  }
  KeepPowers(spans, joined, missing_powers_);
}

// ---- What comes of it ----

const SharedBlock& GcmWork::Output(const GcmPart& part, size_t lane) const {
  assert(lane < part.lanes);
  if (judged()) return garbled_[part.number].blocks[lane];
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
