// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/batch/output.h"

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


absl::Span<uint8_t> Writable(std::string& text) {
  return {reinterpret_cast<uint8_t*>(text.data()), text.size()};
}

}  // namespace

TagMaskKeys DrawTagMaskKeys(PartyContext& party) {
  // A random share is (F(k_i) + F(k_{i+1}), F(k_{i+1})): a is shared with the next party alone,
  // x + a with the previous one alone.
  SecretVector<SharedBlock> random(2);
  party.DrawRandom(absl::MakeSpan(random));
  TagMaskKeys keys;
  for (const SharedBlock& r : random) {
    const Block own = XorBlocks(r.x, r.a);
    keys.own.insert(keys.own.end(), own.begin(), own.end());
    keys.next.insert(keys.next.end(), r.a.begin(), r.a.end());
  }
  return keys;
}

JobResult OutputOf(OutputMasks& masks, uint32_t number, const BatchWork& batch,
                   const JobWork& work) {
  masks.SetHash(OutputContext(number, work.waiting->digest));
  JobResult result{work.waiting->job.id, Ok(), {}, {}, {}};
  for (size_t i = 0; i < work.opens.size(); ++i) {
    const OpenWork& open = work.opens[i];
    OpenResult out{KeystreamA(batch, open.lanes, 2, open.message.PlaintextBytes())};
    masks.Xor(OutputNumber(Field::kOpen, i), Writable(out.keystream_share));
    result.opens.push_back(std::move(out));
  }
  for (size_t i = 0; i < work.seals.size(); ++i) {
    const SealWork& seal = work.seals[i];
    SealResult out{seal.nonce, seal.header,
                   KeystreamA(batch, seal.lanes, 1, kZeroBytes + seal.max_plaintext)};
    masks.Xor(OutputNumber(Field::kSeal, i), Writable(out.keystream_share));
    result.seals.push_back(std::move(out));
  }
  for (size_t i = 0; i < work.make_macs.size(); ++i) {
    const MakeMacWork& mac = work.make_macs[i];
    const std::vector<Block> blocks = GhashBlocks(AsBytes(mac.data), {});
    MakeMacResult out{mac.nonce, XorBlocks(GhashLinearA(blocks, batch.PowersOf(mac.key).powers),
                                           batch.Output(mac.lanes, 0).a)};
    masks.Xor(OutputNumber(Field::kMakeMac, i), absl::MakeSpan(out.tag_share));
    result.make_macs.push_back(out);
  }
  return result;
}

PendingJob PendingOf(const BatchWork& batch, const JobWork& work, SealBatch& seals) {
  PendingJob pending;
  pending.digest = work.waiting->digest;
  for (const SealWork& seal : work.seals) {
    const auto mask = static_cast<uint32_t>(seals.masks_a.size());
    seals.masks_a.push_back(batch.Output(seal.lanes, 0).a);
    pending.seals.push_back(
        {seal.header, seal.nonce, seal.max_plaintext, mask, batch.PowersOf(seal.key)});
  }
  return pending;
}

}  // namespace mpckdc
