// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/output.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "mpc-server/base/bytes.h"

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
std::string KeystreamA(const GcmWork& work, const GcmPart& part, size_t first, size_t size) {
  std::string out(size, '\0');
  for (size_t at = 0; at < size; at += kBlockBytes) {
    const Block& a = work.Output(part, first + at / kBlockBytes).a;
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

std::string MacA(const CtsWork& work, const CtsPart& part) {
  return BytesA(work.mac(part), 0, part.key.enctype().mac_bytes);
}

// ---- What leaves of a part, before it is masked ----

GcmOpenResult OutputOfPart(const GcmWork& work, const GcmOpen& open) {
  return {KeystreamA(work, open, 2, open.message.PlaintextBytes())};
}
CtsOpenResult OutputOfPart(const CtsWork& work, const CtsOpen& open) {
  return {BytesA(work.text(open), kConfounderBytes, open.message.PlaintextBytes())};
}

GcmSealResult OutputOfPart(const GcmWork& work, const GcmSeal& seal) {
  return {seal.nonce, seal.header, KeystreamA(work, seal, 1, kZeroBytes + seal.max_plaintext)};
}
CtsSealResult OutputOfPart(const CtsWork& work, const CtsSeal& seal) {
  const size_t bytes = kConfounderBytes + seal.text_share.size();
  return {BytesA(work.ciphertext(seal), 0, bytes) + MacA(work, seal)};
}

GcmMacResult OutputOfPart(const GcmWork& work, const GcmMac& mac) {
  const std::vector<Block> blocks = GhashBlocks(AsBytes(mac.data), {});
  const Block share =
      XorBlocks(GhashLinearA(blocks, work.PowersOf(mac).powers), work.Output(mac, 0).a);
  return {mac.nonce, std::string(share.begin(), share.end())};
}
CtsMacResult OutputOfPart(const CtsWork& work, const CtsMac& mac) { return {MacA(work, mac)}; }

template <class Result, class Form>
Result Masked(OutputMasks& masks, uint32_t number, const BatchWork& batch, const Form& form) {
  return std::visit(
      [&](const auto& part) -> Result {
        auto result = OutputOfPart(batch.FamilyOf(part), part);
        masks.Xor(number, {reinterpret_cast<uint8_t*>(result.share.data()), result.share.size()});
        return result;
      },
      form);
}

}  // namespace

TagMaskKeys DrawTagMaskKeys(PartyContext& party) {
  // A random share is (F(k_i) + F(k_{i+1}), F(k_{i+1})): a is shared with the next party alone,
  // x + a with the previous one alone.
  SecretVector<SharedBlock> random(1);
  party.DrawRandom(absl::MakeSpan(random));
  return TagMaskKeys(XorBlocks(random[0].x, random[0].a), random[0].a);
}

JobResult OutputOf(OutputMasks& masks, uint32_t number, const BatchWork& batch,
                   const JobWork& work) {
  masks.SetHash(OutputContext(number, work.received->digest));
  JobResult result{work.received->job.id, Ok(), {}, {}, {}};
  for (size_t i = 0; i < work.opens.size(); ++i) {
    result.opens.push_back(Masked<OpenResult>(masks, OutputNumber(Field::kOpen, i), batch,
                                              work.opens[i].form));
  }
  for (size_t i = 0; i < work.seals.size(); ++i) {
    result.seals.push_back(
        Masked<SealResult>(masks, OutputNumber(Field::kSeal, i), batch, work.seals[i]));
  }
  for (size_t i = 0; i < work.make_macs.size(); ++i) {
    result.make_macs.push_back(
        Masked<MakeMacResult>(masks, OutputNumber(Field::kMakeMac, i), batch, work.make_macs[i]));
  }
  return result;
}

PendingJob PendingOf(const BatchWork& batch, const JobWork& work, SealBatch& seals) {
  PendingJob pending;
  pending.digest = work.received->digest;
  for (const SealWork& work_of_seal : work.seals) {
    const auto* seal = std::get_if<GcmSeal>(&work_of_seal);
    if (seal == nullptr) {  // complete; in the list for the others' numbers
      pending.seals.emplace_back();
      continue;
    }
    pending.waiting = true;
    const auto mask = static_cast<uint32_t>(seals.masks_a.size());
    const GcmWork& gcm = batch.FamilyOf(*seal);
    seals.masks_a.push_back(gcm.Output(*seal, 0).a);
    pending.seals.push_back(
        {seal->header, seal->nonce, seal->max_plaintext, mask, gcm.PowersOf(*seal)});
  }
  return pending;
}

}  // namespace mpckdc
