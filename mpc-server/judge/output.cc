// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/output.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace mpckdc {
namespace {

// An output's number under its job's hash: field (1) | index (1).
enum class Field : uint32_t { kOpen = 1, kSeal = 2, kMakeMac = 3 };
uint32_t OutputNumber(Field field, size_t index) {
  return static_cast<uint32_t>(field) << 8 | static_cast<uint32_t>(index);
}

// "mpc-kdc output v1" 00 | job digest (32) | batch (4). The batch's number makes it unique within
// the session, whose keys it meets.
Digest OutputContext(uint32_t batch, const Digest& job) {
  std::string bytes("mpc-kdc output v1");
  bytes.push_back('\0');
  bytes.append(reinterpret_cast<const char*>(job.data()), job.size());
  for (int i = 3; i >= 0; --i) bytes.push_back(static_cast<char>(batch >> (8 * i)));
  return Sha256(bytes);
}

// The a components of `size` bytes of keystream from the part's lane `first` on.
std::string KeystreamA(const BatchWork& batch, const Lanes& lanes, size_t first, size_t size) {
  std::string out(size, '\0');
  for (size_t at = 0; at < size; at += kBlockBytes) {
    const Block& a = batch.Output(lanes, first + at / kBlockBytes).a;
    std::memcpy(out.data() + at, a.data(), std::min(kBlockBytes, size - at));
  }
  return out;
}

// The a components of bytes [from, from + size) of blocks.
std::string BytesA(absl::Span<const SharedBlock> blocks, size_t from, size_t size) {
  std::string out(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    out[i] = static_cast<char>(blocks[(from + i) / kBlockBytes].a[(from + i) % kBlockBytes]);
  }
  return out;
}

std::string MacA(const CtsWork& cts, CtsWork::Part part) {
  return BytesA(cts.mac(part), 0, cts.mac_bytes(part));
}

absl::Span<uint8_t> Writable(std::string& text) {
  return {reinterpret_cast<uint8_t*>(text.data()), text.size()};
}

}  // namespace

TagMaskKeys DrawTagMaskKeys(PartyContext& party) {
  // A random share is (F(k_i) + F(k_{i+1}), F(k_{i+1})): a is shared with the next party alone,
  // x + a with the previous one alone.
  SecretVector<SharedBlock> random(1);
  party.DrawRandom(absl::MakeSpan(random));
  return TagMaskKeys(XorBlocks(random[0].x, random[0].a), random[0].a);
}

OpenResult OutputOfOpen(OutputMasks& masks, uint32_t number, const BatchWork& batch,
                        const OpenWork& open) {
  OpenResult out;
  if (open.key.is_gcm()) {
    out.keystream_share = KeystreamA(batch, open.lanes, 2, open.PlaintextBytes());
    masks.Xor(number, Writable(out.keystream_share));
  } else {
    out.plaintext_share =
        BytesA(batch.cts().text(open.part), kConfounderBytes, open.PlaintextBytes());
    masks.Xor(number, Writable(out.plaintext_share));
  }
  return out;
}

SealResult OutputOfSeal(OutputMasks& masks, uint32_t number, const BatchWork& batch,
                        const SealWork& seal) {
  if (seal.key.is_gcm()) {
    SealResult out{seal.nonce, seal.header,
                   KeystreamA(batch, seal.lanes, 1, kZeroBytes + seal.max_plaintext), {}};
    masks.Xor(number, Writable(out.keystream_share));
    return out;
  }
  SealResult out;
  out.message_share =
      BytesA(batch.cts().ciphertext(seal.part), 0, kConfounderBytes + seal.max_plaintext);
  out.message_share += MacA(batch.cts(), seal.part);
  masks.Xor(number, Writable(out.message_share));
  return out;
}

MakeMacResult OutputOfMac(OutputMasks& masks, uint32_t number, const BatchWork& batch,
                          const MakeMacWork& mac) {
  MakeMacResult out;
  if (mac.key.is_gcm()) {
    const std::vector<Block> blocks = GhashBlocks(AsBytes(mac.data), {});
    const Block share = XorBlocks(GhashLinearA(blocks, batch.PowersOf(mac.key).powers),
                                  batch.Output(mac.lanes, 0).a);
    out = {mac.nonce, std::string(share.begin(), share.end())};
  } else {
    out.tag_share = MacA(batch.cts(), mac.part);
  }
  masks.Xor(number, Writable(out.tag_share));
  return out;
}

JobResult OutputOf(OutputMasks& masks, uint32_t number, const BatchWork& batch,
                   const JobWork& work) {
  masks.SetHash(OutputContext(number, work.received->digest));
  JobResult result{work.received->job.id, Ok(), {}, {}, {}};
  for (size_t i = 0; i < work.opens.size(); ++i) {
    result.opens.push_back(
        OutputOfOpen(masks, OutputNumber(Field::kOpen, i), batch, work.opens[i]));
  }
  for (size_t i = 0; i < work.seals.size(); ++i) {
    result.seals.push_back(
        OutputOfSeal(masks, OutputNumber(Field::kSeal, i), batch, work.seals[i]));
  }
  for (size_t i = 0; i < work.make_macs.size(); ++i) {
    result.make_macs.push_back(
        OutputOfMac(masks, OutputNumber(Field::kMakeMac, i), batch, work.make_macs[i]));
  }
  return result;
}

PendingJob PendingOf(const BatchWork& batch, const JobWork& work, SealBatch& seals) {
  PendingJob pending;
  pending.digest = work.received->digest;
  for (const SealWork& seal : work.seals) {
    if (!seal.key.is_gcm()) {  // complete; in the list for the others' numbers
      pending.seals.emplace_back();
      continue;
    }
    pending.waiting = true;
    const auto mask = static_cast<uint32_t>(seals.masks_a.size());
    seals.masks_a.push_back(batch.Output(seal.lanes, 0).a);
    pending.seals.push_back(
        {seal.header, seal.nonce, seal.max_plaintext, mask, batch.PowersOf(seal.key)});
  }
  return pending;
}

}  // namespace mpckdc
