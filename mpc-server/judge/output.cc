// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/output.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "mpc-server/base/bytes.h"

namespace mpckdc {
namespace {

// "mpc-kdc output v1" 00 | job digest (32) | batch (4). The batch's number makes it unique within
// the session, whose keys it meets.
Digest OutputContext(uint32_t batch, const Digest& job) {
  std::string bytes("mpc-kdc output v1");
  bytes.push_back('\0');
  bytes.append(reinterpret_cast<const char*>(job.data()), job.size());
  for (int i = 3; i >= 0; --i) bytes.push_back(static_cast<char>(batch >> (8 * i)));
  return Sha256(bytes);
}

// Of a value of the batch this server's component a_i, and a_{i-1} = x_i + a_i.
struct Components {
  explicit Components(size_t size) : own(size, '\0'), before(size, '\0') {}
  // Bytes [at, at + n) from the beginning of `block`.
  void Set(size_t at, size_t n, const SharedBlock& block, size_t from = 0) {
    for (size_t k = 0; k < n; ++k) {
      own[at + k] = static_cast<char>(block.a[from + k]);
      before[at + k] = static_cast<char>(block.x[from + k] ^ block.a[from + k]);
    }
  }
  std::string own, before;
};

// `size` bytes of keystream from the part's lane `first` on.
Components Keystream(const GcmWork& work, const GcmPart& part, size_t first, size_t size) {
  Components out(size);
  for (size_t at = 0; at < size; at += kBlockBytes) {
    out.Set(at, std::min(kBlockBytes, size - at), work.Output(part, first + at / kBlockBytes));
  }
  return out;
}

// Bytes [from, from + size) of blocks, behind the first `at` bytes of `out`.
void SetBytes(absl::Span<const SharedBlock> blocks, size_t from, size_t size, size_t at,
              Components& out) {
  for (size_t i = 0; i < size; ++i) {
    out.Set(at + i, 1, blocks[(from + i) / kBlockBytes], (from + i) % kBlockBytes);
  }
}

// ---- What leaves of a part, before it is masked: the result without its share, and the share ----

Components SharesOf(const GcmWork& work, const GcmOpen& open, GcmOpenResult*) {
  return Keystream(work, open, 2, open.message.PlaintextBytes());
}
Components SharesOf(const CtsWork& work, const CtsOpen& open, CtsOpenResult*) {
  Components out(open.message.PlaintextBytes());
  SetBytes(work.text(open), kConfounderBytes, out.own.size(), 0, out);
  return out;
}

Components SharesOf(const GcmWork& work, const GcmSeal& seal, GcmSealResult* result) {
  result->nonce = seal.nonce;
  result->header = seal.header;
  return Keystream(work, seal, 1, kZeroBytes + seal.max_plaintext);
}
Components SharesOf(const CtsWork& work, const CtsSeal& seal, CtsSealResult*) {
  const size_t bytes = kConfounderBytes + seal.text.bytes();
  Components out(bytes + seal.key.enctype().mac_bytes);
  SetBytes(work.ciphertext(seal), 0, bytes, 0, out);
  SetBytes(work.mac(seal), 0, seal.key.enctype().mac_bytes, bytes, out);
  return out;
}

Components SharesOf(const GcmWork& work, const GcmMac& mac, GcmMacResult* result) {
  result->nonce = mac.nonce;
  const std::vector<Block> blocks = GhashBlocks(AsBytes(mac.data), {});
  Components out(kBlockBytes);
  out.Set(0, kBlockBytes, GhashLinear(blocks, work.PowersOf(mac).powers) ^ work.Output(mac, 0));
  return out;
}
Components SharesOf(const CtsWork& work, const CtsMac& mac, CtsMacResult*) {
  Components out(mac.key.enctype().mac_bytes);
  SetBytes(work.mac(mac), 0, out.own.size(), 0, out);
  return out;
}

GcmOpenResult ResultOf(const GcmOpen&) { return {}; }
CtsOpenResult ResultOf(const CtsOpen&) { return {}; }
GcmSealResult ResultOf(const GcmSeal&) { return {}; }
CtsSealResult ResultOf(const CtsSeal&) { return {}; }
GcmMacResult ResultOf(const GcmMac&) { return {}; }
CtsMacResult ResultOf(const CtsMac&) { return {}; }

absl::Span<uint8_t> Writable(std::string& bytes) {
  return {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()};
}

template <class Result, class Form>
Result Masked(OutputMasks& masks, uint32_t number, const BatchWork& batch, const Form& form) {
  return std::visit(
      [&](const auto& part) -> Result {
        auto result = ResultOf(part);
        Components shares = SharesOf(batch.FamilyOf(part), part, &result);
        masks.Mask(number, Writable(shares.own), Writable(shares.before));
        result.share = std::move(shares.own);
        return result;
      },
      form);
}

}  // namespace

OutputKeys TagKeysOf(const PartyContext& party) {
  ByteWriter bytes("mpc-kdc tag keys v1");
  bytes.Uint(0, 1);
  bytes.Uint(party.batch(), 4);
  return party.output_keys().For(Sha256(bytes.Take()));
}

JobResult OutputOf(OutputMasks& masks, uint32_t number, const BatchWork& batch,
                   const JobWork& work) {
  masks.SetHash(OutputContext(number, work.received->digest));
  JobResult result{work.received->job.id, Ok(), {}, {}, {}, {}};
  for (size_t i = 0; i < work.opens.size(); ++i) {
    result.opens.push_back(
        Masked<OpenResult>(masks, OutputNumber(OutputField::kOpen, i), batch, work.opens[i].form));
  }
  for (size_t i = 0; i < work.seals.size(); ++i) {
    result.seals.push_back(
        Masked<SealResult>(masks, OutputNumber(OutputField::kSeal, i), batch, work.seals[i]));
  }
  for (size_t i = 0; i < work.make_macs.size(); ++i) {
    result.make_macs.push_back(Masked<MakeMacResult>(masks, OutputNumber(OutputField::kMakeMac, i),
                                                     batch, work.make_macs[i]));
  }
  result.keys = masks.Finish();
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
    const auto mask = static_cast<uint32_t>(seals.masks.size());
    const GcmWork& gcm = batch.FamilyOf(*seal);
    seals.masks.push_back(gcm.Output(*seal, 0));
    pending.seals.push_back(
        {seal->header, seal->nonce, seal->max_plaintext, mask, gcm.PowersOf(*seal)});
  }
  return pending;
}

}  // namespace mpckdc
