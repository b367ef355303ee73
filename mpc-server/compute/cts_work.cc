// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/cts_work.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/garble/message_circuits.h"
#include "mpc-server/job/operation_table.h"

namespace mpckdc {
namespace {

constexpr AesBits kBothBits[] = {AesBits::k128, AesBits::k256};
constexpr HashKind kAllHashes[] = {HashKind::kSha1, HashKind::kSha256, HashKind::kSha384};
constexpr int32_t kCtsEnctypes[] = {17, 18, 19, 20};

// Zeros what lies behind the first `bytes` bytes of the blocks: linear, so shares stay shares.
void CutTo(size_t bytes, SecretVector<SharedBlock>& blocks) {
  blocks.resize(BlocksOf(bytes));
  const size_t rest = bytes % sizeof(Block);
  if (rest == 0) return;
  std::fill(blocks.back().x.begin() + rest, blocks.back().x.end(), uint8_t{0});
  std::fill(blocks.back().a.begin() + rest, blocks.back().a.end(), uint8_t{0});
}

}  // namespace

Nonce ReplayIdOf(const CtsMessageView& message) {
  Nonce id;
  std::copy_n(message.mac.begin(), id.size(), id.begin());
  return id;
}

void CtsWork::AddWork(CtsPart& part, CtsPartKind kind, absl::string_view public_bytes,
                      TextSharesView text) {
  part.number = parts_.size();
  parts_.push_back({.kind = kind,
                    .job = job_,
                    .enctype = &part.key.enctype(),
                    .key = part.key.key,
                    .public_bytes = public_bytes,
                    .text = text});
}

// With few lanes a batch's time is its rounds, with many its bytes. Only SHA-1 has an adder of
// fewer rounds than the prefix one.
Adder CtsWork::AdderOf(HashKind hash, size_t parts) {
  if (parts >= limits::kRippleAdderLanes) return Adder::kRipple;
  const bool few = hash == HashKind::kSha1 && parts < limits::kPrefixAdderLanes;
  return few ? Adder::kFewestRounds : Adder::kPrefix;
}

uint64_t CtsWork::RoundsOf(const Enctype& enctype, CtsPartKind kind, size_t bytes) {
  const HmacShape shape = {bytes, kind != CtsPartKind::kMac};
  const uint64_t mac = CostOfHmac(enctype.hash, Adder::kPrefix, {&shape, 1}).rounds;
  if (kind != CtsPartKind::kSeal) return mac;
  const AesBits bits = enctype.key_bytes == 16 ? AesBits::k128 : AesBits::k256;
  return mac + CostOfCtsEncrypt(bits, {&bytes, 1}, Sbox::kThroughput).rounds;
}

void CtsWork::PrepareAll() {
  for (const HashKind hash : kAllHashes) {
    for (const size_t parts : {size_t{0}, limits::kPrefixAdderLanes, limits::kRippleAdderLanes}) {
      PrepareHash(hash, AdderOf(hash, parts));
    }
  }
  garble::PrepareTapes();
}

template <class Is>
std::vector<CtsWork::PartWork*> CtsWork::Select(Is is) {
  std::vector<PartWork*> selected;
  for (PartWork& part : parts_) {
    if (is(part)) selected.push_back(&part);
  }
  return selected;
}

CtsLoad CtsWork::Load() const {
  CtsLoad load;
  load.jobs = job_;
  for (const PartWork& part : parts_) load.AddPart(*part.enctype, part.kind, part.bytes());
  return load;
}

void CtsWork::BeginGarbled(const Digest& agreed, garble::RunQueue& queue) {
  is_garbled_ = true;
  TakeTexts();
  garbled_.Begin(absl::MakeSpan(parts_), texts_, agreed, queue);
}

void CtsWork::Begin(Sbox sbox, std::optional<Adder> adder) {
  sbox_ = sbox;
  adder_ = adder;
  for (const int32_t number : kCtsEnctypes) opens_left_ += !Opens(*FindEnctype(number)).empty();
  before_times_ = 1;  // the check of the opens' HMACs; decryptions are added
  for (const AesBits bits : kBothBits) StartOpens(bits);
  for (const HashKind hash : kAllHashes) StartFirstMacs(hash);
  StartTexts();
}

// ---- Opens and macs ----

std::vector<CtsWork::PartWork*> CtsWork::Opens(const Enctype& enctype) {
  return Select(
      [&](const PartWork& p) { return p.kind == CtsPartKind::kOpen && p.enctype == &enctype; });
}

void CtsWork::StartOpens(AesBits bits) {
  const auto opens = Select(
      [bits](const PartWork& p) { return p.kind == CtsPartKind::kOpen && p.bits() == bits; });
  if (opens.empty()) return;
  std::vector<CtsDecryptLane> lanes;
  for (PartWork* part : opens) {
    part->cts_lane = lanes.size();
    lanes.push_back({part->key->round_keys.data(), AsBytes(part->public_bytes)});
  }
  CtsDecrypt& decrypt = circuits_.decrypt(bits);
  decrypt.Reset(lanes, sbox_);
  const bool wide = bits == AesBits::k256;
  ++before_times_;
  Start(decrypt, [this, wide] {
    StartOpenMacs(*FindEnctype(wide ? 18 : 17));
    BeforeTimes();
  });
  StartOpenMacs(*FindEnctype(wide ? 20 : 19));
}

// Of texts that were decrypted, or of IV | ciphertext.
void CtsWork::StartOpenMacs(const Enctype& enctype) {
  const std::vector<PartWork*> opens = Opens(enctype);
  for (PartWork* part : opens) {
    if (part->mac_of_text()) continue;
    part->iv_and_ciphertext.assign(sizeof(Block), '\0');
    part->iv_and_ciphertext.append(part->public_bytes.data(), part->public_bytes.size());
  }
  StartMacs(circuits_.open_mac(enctype), opens, [this] {
    if (--opens_left_ == 0) CheckOpens();
  });
}

void CtsWork::CheckOpens() {
  std::vector<SecretVector<SharedBlock>> differences;
  for (const PartWork& part : parts_) {
    if (part.kind == CtsPartKind::kOpen)
      AppendDifference(part, part.given_mac, &differences.emplace_back());
  }
  check_.emplace(party_, "tag check");
  const std::vector<absl::Span<const SharedBlock>> items(differences.begin(), differences.end());
  check_->Reset(items);
  Start(*check_, [this] { JudgeOpens(); });
}

void CtsWork::JudgeOpens() {
  const uint8_t* zero = check_->zero().data();
  absl::flat_hash_set<size_t> bad;
  for (PartWork& part : parts_) {
    if (part.kind != CtsPartKind::kOpen) continue;
    part.good = *zero++ != 0;
    if (!part.good) bad.insert(part.job);
  }
  AbandonMacs(bad);
  BeforeTimes();
}

bool CtsPartWork::preauth() const {
  return kind == CtsPartKind::kOpen && key->usage == kUsagePreauth;
}

// Under 19 and 20 decryption runs beside the HMAC that was checked.
void CtsWork::BeforeTimes() {
  if (--before_times_ == 0) OpenTimes();
}

void CtsWork::OpenTimes() {
  SecretVector<SharedBlock>& shares = circuits_.times;
  shares.clear();
  for (const PartWork& part : parts_) {
    if (!part.preauth() || !part.good) continue;
    const auto text = circuits_.decrypt(part.bits()).text(part.cts_lane).subspan(1);
    shares.insert(shares.end(), text.begin(), text.end());
  }
  if (shares.empty()) return;
  circuits_.opened_times.Reset(shares);
  Start(circuits_.opened_times, [this] { JudgeTimes(); });
}

void CtsWork::JudgeTimes() {
  const Block* block = circuits_.opened_times.values().data();
  absl::flat_hash_set<size_t> late;
  for (PartWork& part : parts_) {
    if (!part.preauth() || !part.good) continue;
    SecretBytes& text = part.opened.emplace(part.text_bytes());
    for (size_t i = 0; i < text.size(); ++i) text[i] = block[i / 16][i % 16];
    block += BlocksOf(text.size());
    if (!window_.Holds(AsText(text))) late.insert(part.job);
  }
  AbandonMacs(late);
}

void CtsWork::AbandonMacs(const absl::flat_hash_set<size_t>& jobs) {
  for (const PartWork& part : parts_) {
    if (part.kind != CtsPartKind::kMac || !jobs.contains(part.job)) continue;
    part.hmac->Abandon(part.mac_lane);
  }
}

void CtsWork::StartFirstMacs(HashKind hash) {
  StartMacs(circuits_.first_mac(hash), Select([hash](const PartWork& p) {
              return p.kind == CtsPartKind::kMac && p.enctype->hash == hash;
            }));
}

void CtsWork::StartMacs(Hmac& hmac, const std::vector<PartWork*>& parts,
                        std::function<void()> then) {
  if (parts.empty()) return;
  std::vector<HmacLane> lanes;
  for (PartWork* part : parts) {
    part->hmac = &hmac;
    part->mac_lane = lanes.size();
    HmacLane lane;
    lane.states = part->key->mac_states.data();
    lane.bytes = part->mac_input_bytes();
    if (!part->iv_and_ciphertext.empty()) {
      lane.public_message = AsBytes(part->iv_and_ciphertext);
    } else if (part->kind == CtsPartKind::kMac) {
      lane.public_message = AsBytes(part->public_bytes);
    } else if (part->kind == CtsPartKind::kOpen) {
      lane.shared_message = circuits_.decrypt(part->bits()).text(part->cts_lane).data();
    } else {
      lane.shared_message = &texts_[part->first_block];
    }
    lanes.push_back(lane);
  }
  hmac.Reset(lanes, adder(parts[0]->enctype->hash));
  Start(hmac, std::move(then));
}

// ---- Seals ----

// The confounder, drawn here, and the KDC's components, in whole blocks: x_i = a_{i-1} + a_i.
void CtsWork::TakeTexts() {
  for (PartWork* part : Select([](const PartWork& p) { return p.kind == CtsPartKind::kSeal; })) {
    part->first_block = texts_.size();
    texts_.resize(texts_.size() + BlocksOf(part->bytes()));
    party_.DrawRandom(absl::MakeSpan(&texts_[part->first_block], 1));
    for (size_t i = 0; i < part->text.bytes(); ++i) {
      SharedBlock& block = texts_[part->first_block + 1 + i / sizeof(Block)];
      block.a[i % sizeof(Block)] = part->text.own[i];
      block.x[i % sizeof(Block)] = part->text.own[i] ^ part->text.before[i];
    }
  }
}

void CtsWork::StartTexts() {
  TakeTexts();
  if (texts_.empty()) return;
  StartMacs(circuits_.text_mac(), Select([](const PartWork& p) {
              return p.kind == CtsPartKind::kSeal && p.mac_of_text();
            }));
  for (const AesBits bits : kBothBits) StartSeals(bits);
}

void CtsWork::StartSeals(AesBits bits) {
  const auto seals = Select(
      [bits](const PartWork& p) { return p.kind == CtsPartKind::kSeal && p.bits() == bits; });
  if (seals.empty()) return;
  std::vector<CtsEncryptLane> lanes;
  for (PartWork* part : seals) {
    part->cts_lane = lanes.size();
    lanes.push_back({part->key->round_keys.data(), &texts_[part->first_block], part->bytes()});
  }
  CtsEncrypt& encrypt = circuits_.encrypt(bits);
  encrypt.Reset(lanes, sbox_);
  Start(encrypt, [this, bits] { OpenCiphertexts(bits); });
}

// Under 19 and 20 what the HMAC reads becomes public among the servers, as it will be on the wire.
void CtsWork::OpenCiphertexts(AesBits bits) {
  const auto seals = Select([bits](const PartWork& p) {
    return p.kind == CtsPartKind::kSeal && p.bits() == bits && !p.mac_of_text();
  });
  if (seals.empty()) return;
  SecretVector<SharedBlock>& shares = circuits_.to_open[bits == AesBits::k256];
  shares.clear();
  for (const PartWork* part : seals) {
    const auto ciphertext = circuits_.encrypt(bits).ciphertext(part->cts_lane);
    shares.insert(shares.end(), ciphertext.begin(), ciphertext.end());
  }
  OpenToServers& open = circuits_.opened_ciphertext[bits == AesBits::k256];
  open.Reset(shares);
  Start(open, [this, bits, seals, &open] {
    const Block* block = open.values().data();
    for (PartWork* part : seals) {
      std::string& bytes = part->iv_and_ciphertext;
      bytes.assign(sizeof(Block), '\0');
      for (size_t i = 0; i < BlocksOf(part->bytes()); ++i, ++block) {
        bytes.append(block->begin(), block->end());
      }
      bytes.resize(sizeof(Block) + part->bytes());
    }
    StartMacs(circuits_.cipher_mac(bits), seals);
  });
}

// ---- Results ----

absl::Span<const SharedBlock> CtsWork::text(const CtsOpen& open) const {
  assert(Done());
  if (is_garbled_) return parts_[open.number].garbled_text;
  return circuits_.decrypt(open.key.bits()).text(parts_[open.number].cts_lane);
}

absl::Span<const SharedBlock> CtsWork::ciphertext(const CtsSeal& seal) const {
  assert(Done());
  if (is_garbled_) return parts_[seal.number].garbled_text;
  return circuits_.encrypt(seal.key.bits()).ciphertext(parts_[seal.number].cts_lane);
}

SecretVector<SharedBlock> CtsWork::mac(const CtsPart& part) const {
  assert(Done());
  return MacOf(parts_[part.number]);
}

SecretVector<SharedBlock> CtsWork::MacOf(const PartWork& part) const {
  if (is_garbled_) return part.garbled_mac;
  assert(part.hmac->Done());
  const auto digest = part.hmac->digest(part.mac_lane);
  SecretVector<SharedBlock> mac(digest.begin(), digest.end());
  CutTo(part.enctype->mac_bytes, mac);
  return mac;
}

void CtsWork::AppendDifference(const PartWork& part, absl::string_view mac,
                               SecretVector<SharedBlock>* out) const {
  for (const SharedBlock& computed : MacOf(part)) {
    Block given{};
    const absl::string_view piece = mac.substr(0, given.size());
    std::copy(piece.begin(), piece.end(), given.begin());
    out->push_back(AddPublic(computed, given));
    mac.remove_prefix(piece.size());
  }
}

// ---- Cost ----

Cost CtsWork::MacCost(HashKind hash, const std::vector<const PartWork*>& parts) const {
  std::vector<HmacShape> shapes;
  for (const PartWork* part : parts) {
    const bool shared = part->kind != CtsPartKind::kMac && part->mac_of_text();
    shapes.push_back({part->mac_input_bytes(), shared});
  }
  return CostOfHmac(hash, adder(hash), shapes);
}

Cost CtsWork::OpensCost(AesBits bits) const {
  std::vector<size_t> sizes;
  std::vector<const PartWork*> text_macs, cipher_macs;
  for (const PartWork& part : parts_) {
    if (part.kind != CtsPartKind::kOpen || part.bits() != bits) continue;
    sizes.push_back(part.bytes());
    (part.mac_of_text() ? text_macs : cipher_macs).push_back(&part);
  }
  const HashKind hash = bits == AesBits::k256 ? HashKind::kSha384 : HashKind::kSha256;
  return Together(CostOfCtsDecrypt(bits, sizes, sbox_) + MacCost(HashKind::kSha1, text_macs),
                  MacCost(hash, cipher_macs));
}

Cost CtsWork::AllOpensCost() const {
  size_t opens = 0, times = 0;
  for (const PartWork& part : parts_) {
    opens += part.kind == CtsPartKind::kOpen;
    if (part.preauth()) times += sizeof(Block) * BlocksOf(part.text_bytes());
  }
  if (opens == 0) return {};
  return Together(OpensCost(AesBits::k128), OpensCost(AesBits::k256)) + CostOfZeroCheck(opens) +
         (times == 0 ? Cost{} : Cost{1, times, times});
}

// Without the HMACs of 17 and 18, which run beside it.
Cost CtsWork::SealsCost(AesBits bits) const {
  std::vector<size_t> sizes;
  std::vector<const PartWork*> macs;
  size_t opened = 0;
  for (const PartWork& part : parts_) {
    if (part.kind != CtsPartKind::kSeal || part.bits() != bits) continue;
    sizes.push_back(part.bytes());
    if (part.mac_of_text()) continue;
    macs.push_back(&part);
    opened += sizeof(Block) * BlocksOf(part.bytes());
  }
  const HashKind hash = bits == AesBits::k256 ? HashKind::kSha384 : HashKind::kSha256;
  const Cost opening = opened == 0 ? Cost{} : Cost{1, opened, opened};
  return CostOfCtsEncrypt(bits, sizes, sbox_) + opening + MacCost(hash, macs);
}

Cost CtsWork::DeclaredCost() const {
  if (is_garbled_) return {};
  Cost cost = AllOpensCost();
  for (const HashKind hash : kAllHashes) {
    std::vector<const PartWork*> first;
    for (const PartWork& part : parts_) {
      if (part.kind == CtsPartKind::kMac && part.enctype->hash == hash) first.push_back(&part);
    }
    cost = Together(cost, MacCost(hash, first));
  }
  std::vector<const PartWork*> text_macs;
  for (const PartWork& part : parts_) {
    if (part.kind == CtsPartKind::kSeal && part.mac_of_text()) text_macs.push_back(&part);
  }
  Cost seals = MacCost(HashKind::kSha1, text_macs);
  for (const AesBits bits : kBothBits) seals = Together(seals, SealsCost(bits));
  return Together(cost, seals);
}

}  // namespace mpckdc
