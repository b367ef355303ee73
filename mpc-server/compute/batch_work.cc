// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/batch_work.h"

#include <algorithm>
#include <cassert>

#include "mpc-server/base/limits.h"
#include "mpc-server/circuit/checks.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/share/reveal.h"

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

Block LaneInput(const Nonce& nonce, size_t i) {
  return CounterBlock(nonce, static_cast<uint32_t>(1 + i));
}

Block FirstBlock(absl::string_view bytes) {
  Block block{};
  std::copy_n(bytes.begin(), block.size(), block.begin());
  return block;
}

}  // namespace

AesBits KeyUse::bits() const {
  return enctype().key_bytes == 16 ? AesBits::k128 : AesBits::k256;
}

Nonce OpenWork::ReplayId() const {
  if (key.is_gcm()) return message.nonce;
  Nonce id;
  std::copy_n(cts.mac.begin(), id.size(), id.begin());
  return id;
}

const SharedPowers* PowersCache::Find(const Handle& handle, uint32_t usage, const SharedBlock& h,
                                      size_t count) const {
  const auto it = entries_.find({handle, usage});
  if (it == entries_.end() || it->second.powers.powers.size() < count) return nullptr;
  const SharedBlock& kept = it->second.h.Get();
  return kept.x == h.x && kept.a == h.a ? &it->second.powers : nullptr;
}

const SharedPowers& PowersCache::Put(const Handle& handle, uint32_t usage, const SharedBlock& h,
                                     absl::Span<const SharedBlock> powers) {
  if (entries_.size() >= kMaxCachedKeys && !entries_.contains({handle, usage})) entries_.clear();
  Entry& entry = entries_[{handle, usage}];
  auto owner = std::make_shared<const SecretVector<SharedBlock>>(powers.begin(), powers.end());
  const absl::Span<const SharedBlock> all(*owner);
  entry = {Secret<SharedBlock>(h), {std::move(owner), all}};
  return entry.powers;
}

BatchWork::BatchWork(Rings& rings, AesBatch& blocks, PowersCache& cache, CtsCircuits& circuits,
                     std::vector<JobWork>& work, const FixedChoices& fixed)
    : rings_(rings),
      party_(rings.first()),
      blocks_(blocks),
      cache_(cache),
      cts_(party_, circuits),
      work_(work),
      fixed_(fixed) {
  Plan();
}

Lanes BatchWork::AddLanes(const KeyUse& key, const Nonce& nonce, size_t count) {
  std::vector<AesLane>& all = key.bits() == AesBits::k128 ? lanes128_ : lanes256_;
  const Lanes lanes{key.bits(), all.size(), count};
  assert(key.key->round_keys.size() == AesRoundKeys(key.bits()));
  for (size_t i = 0; i < count; ++i) {
    AesLane lane;
    lane.round_keys = key.key->round_keys.data();
    lane.public_input = LaneInput(nonce, i);
    all.push_back(lane);
  }
  return lanes;
}

void BatchWork::NeedPowers(KeyUse& key, size_t count) {
  const auto [it, first] =
      need_of_.try_emplace({key.info->handle, key.key->usage}, static_cast<uint32_t>(needs_.size()));
  key.powers = it->second;
  if (first) needs_.push_back({key, 0});
  needs_[key.powers].count = std::max(needs_[key.powers].count, count);
}

void BatchWork::Plan() {
  for (JobWork& job : work_) {
    for (OpenWork& open : job.opens) {
      if (!open.key.is_gcm()) continue;
      const size_t bytes = open.message.ciphertext.size();
      open.lanes = AddLanes(open.key, open.message.nonce, 1 + BlocksOf(bytes));
      NeedPowers(open.key, GhashBlockCount(1 + open.message.header.size(), bytes));
    }
    for (SealWork& seal : job.seals) {
      if (!seal.key.is_gcm()) continue;
      const size_t bytes = kZeroBytes + seal.max_plaintext;
      seal.lanes = AddLanes(seal.key, seal.nonce, 1 + BlocksOf(bytes));
      NeedPowers(seal.key, GhashBlockCount(1 + seal.header.size(), bytes));
    }
    for (MakeMacWork& mac : job.make_macs) {
      if (!mac.key.is_gcm()) continue;
      mac.lanes = AddLanes(mac.key, mac.nonce, 1);
      NeedPowers(mac.key, GhashBlockCount(mac.data.size(), 0));
    }
    for (VerifyMacWork& mac : job.verify_macs) {
      if (!mac.key.is_gcm()) continue;
      mac.lanes = AddLanes(mac.key, mac.checksum.nonce, 1);
      NeedPowers(mac.key, GhashBlockCount(mac.data.size(), 0));
    }
    PlanCts(job);
  }
}

void BatchWork::PlanCts(JobWork& job) {
  for (OpenWork& open : job.opens) {
    if (open.key.is_gcm()) continue;
    open.part = cts_.AddOpen(open.key.enctype(), *open.key.key, open.cts.ciphertext);
  }
  for (SealWork& seal : job.seals) {
    if (seal.key.is_gcm()) continue;
    seal.part = cts_.AddSeal(seal.key.enctype(), *seal.key.key, seal.text_share);
  }
  for (MakeMacWork& mac : job.make_macs) {
    if (mac.key.is_gcm()) continue;
    mac.part = cts_.AddMac(mac.key.enctype(), *mac.key.key, mac.data);
  }
  for (VerifyMacWork& mac : job.verify_macs) {
    if (mac.key.is_gcm()) continue;
    mac.part = cts_.AddMac(mac.key.enctype(), *mac.key.key, mac.data);
  }
}

// Returns the needs that the cache does not fill.
std::vector<size_t> BatchWork::RequestMissingPowers(SecretVector<GhashPowersRequest>* requests) {
  std::vector<size_t> missing;
  powers_.resize(needs_.size());
  requests->reserve(needs_.size());
  for (size_t i = 0; i < needs_.size(); ++i) {
    const PowersNeed& need = needs_[i];
    const SharedBlock& h = need.key.key->h;
    if (need.cached()) {
      const SharedPowers* kept =
          cache_.Find(need.key.info->handle, need.key.key->usage, h, need.count);
      if (kept != nullptr) {
        powers_[i] = *kept;
        continue;
      }
    }
    const size_t count = need.cached() ? CachedCount(need.count) : need.count;
    requests->push_back({h, static_cast<uint32_t>(count)});
    missing.push_back(i);
  }
  return missing;
}

// One piece of memory for the powers of all keys: it lives as long as a seal needs some of them.
void BatchWork::KeepPowers(GhashPowers& circuit, const std::vector<size_t>& missing) {
  std::vector<absl::Span<const SharedBlock>> spans;
  for (size_t i = 0; i < missing.size(); ++i) spans.push_back(circuit.powers(i));
  const auto all = std::make_shared<const SecretVector<SharedBlock>>(circuit.TakePowers());
  for (size_t i = 0; i < missing.size(); ++i) {
    const KeyUse& key = needs_[missing[i]].key;
    powers_[missing[i]] =
        needs_[missing[i]].cached()
            ? cache_.Put(key.info->handle, key.key->usage, key.key->h, spans[i])
            : SharedPowers{all, spans[i]};
  }
}

// Below it the number of messages is a batch's time, above it their length.
Sbox BatchWork::SboxOf(size_t blocks) {
  return blocks < limits::kLatencySboxBlocks ? Sbox::kLatency : Sbox::kThroughput;
}

absl::Status BatchWork::ComputeBlocks(Circuit& first) {
  SecretVector<GhashPowersRequest> requests;
  const std::vector<size_t> missing = RequestMissingPowers(&requests);
  GhashPowers powers;
  powers.Reset(requests);
  const auto sbox = [this](size_t blocks) { return fixed_.sbox.value_or(SboxOf(blocks)); };
  cts_.Begin(sbox(cts_.parts()), fixed_.adder);  // one block of a part at a time
  Circuit* const others[] = {&first, &powers, &cts_};
  const absl::Status status =
      blocks_.Run(rings_, lanes128_, lanes256_, sbox(aes_blocks()), others, &cost_);
  if (status.ok()) KeepPowers(powers, missing);
  return status;
}

const SharedBlock& BatchWork::Output(const Lanes& lanes, size_t i) const {
  assert(i < lanes.count);
  return (lanes.bits == AesBits::k128 ? blocks_.outputs128()
                                      : blocks_.outputs256())[lanes.first + i];
}

// Zero if and only if `tag` is right.
SharedBlock BatchWork::TagDifference(const KeyUse& key, const Lanes& lanes, absl::string_view aad,
                                     absl::string_view ciphertext, const Tag& tag) const {
  const std::vector<Block> blocks = GhashBlocks(AsBytes(aad), AsBytes(ciphertext));
  return AddPublic(GhashLinear(blocks, PowersOf(key).powers) ^ Output(lanes, 0), tag);
}

// Zero if and only if the HMAC is right.
void BatchWork::AppendCtsCheck(CtsWork::Part part, absl::string_view mac,
                               SecretVector<SharedBlock>* out) const {
  const SecretVector<SharedBlock> computed = cts_.mac(part);
  for (size_t i = 0; i < computed.size(); ++i) {
    Block given{};
    const absl::string_view piece = mac.substr(i * given.size(), given.size());
    std::copy(piece.begin(), piece.end(), given.begin());
    out->push_back(AddPublic(computed[i], given));
  }
}

void BatchWork::AppendOpenCheck(const OpenWork& open, SecretVector<SharedBlock>* out) const {
  if (!open.key.is_gcm()) return AppendCtsCheck(open.part, open.cts.mac, out);
  const MessageView& m = open.message;
  out->push_back(TagDifference(open.key, open.lanes, HeaderAad(m.header), m.ciphertext, m.tag));
  out->push_back(AddPublic(Output(open.lanes, 1), FirstBlock(m.ciphertext)));
}

void BatchWork::AppendMacCheck(const VerifyMacWork& mac, SecretVector<SharedBlock>* out) const {
  if (!mac.key.is_gcm()) return AppendCtsCheck(mac.part, mac.mac, out);
  out->push_back(TagDifference(mac.key, mac.lanes, mac.data, "", mac.checksum.tag));
}

absl::Status BatchWork::CheckTags() {
  SecretVector<SharedBlock> blocks;
  std::vector<size_t> ends;
  std::vector<bool*> results;
  const auto checked = [&](bool* result) {
    ends.push_back(blocks.size());
    results.push_back(result);
  };
  for (JobWork& job : work_) {
    for (OpenWork& open : job.opens) {
      AppendOpenCheck(open, &blocks);
      checked(&open.good);
    }
    for (VerifyMacWork& mac : job.verify_macs) {
      AppendMacCheck(mac, &blocks);
      checked(&mac.good);
    }
  }
  if (ends.empty()) return absl::OkStatus();
  std::vector<absl::Span<const SharedBlock>> items;
  size_t at = 0;
  for (const size_t end : ends) {
    items.push_back(absl::MakeConstSpan(blocks).subspan(at, end - at));
    at = end;
  }
  ZeroCheck check(party_, "tag check");
  check.Reset(items);
  Circuit* const circuits[] = {&check};
  const absl::Status status = RunTogether(party_, circuits, &cost_);
  if (!status.ok()) return status;
  for (size_t i = 0; i < results.size(); ++i) *results[i] = check.zero()[i] != 0;
  return status;
}

// The blocks that, opened, give the text: of gcm the keystream, of 17 to 20 the text itself.
void BatchWork::AppendTimestamp(const OpenWork& open, SecretVector<SharedBlock>* out) const {
  if (open.key.is_gcm()) {
    for (size_t i = 2; i < open.lanes.count; ++i) out->push_back(Output(open.lanes, i));
  } else {
    const auto text = cts_.text(open.part).subspan(1);  // behind the confounder
    out->insert(out->end(), text.begin(), text.end());
  }
}

absl::Status BatchWork::OpenTimestamps() {
  SecretVector<SharedBlock> shares;
  std::vector<OpenWork*> opened;
  for (JobWork& job : work_) {
    for (OpenWork& open : job.opens) {
      if (!open.is_preauth || !open.good) continue;
      AppendTimestamp(open, &shares);
      opened.push_back(&open);
    }
  }
  if (opened.empty()) return absl::OkStatus();
  OpenToServers reveal(party_.party(), "pre-auth timestamp");
  reveal.Reset(shares);
  Circuit* const circuits[] = {&reveal};
  const absl::Status status = RunTogether(party_, circuits, &cost_);
  if (!status.ok()) return status;
  const Block* next = reveal.values().data();
  for (OpenWork* open : opened) {
    SecretBytes text(open->PlaintextBytes());
    if (open->key.is_gcm()) {
      const auto cipher = AsBytes(open->message.ciphertext.substr(kZeroBytes));
      std::copy(cipher.begin(), cipher.end(), text.begin());
    }
    for (size_t i = 0; i < text.size(); ++i) text[i] ^= next[i / 16][i % 16];
    next += BlocksOf(text.size());
    open->plaintext = std::move(text);
  }
  return status;
}

}  // namespace mpckdc
