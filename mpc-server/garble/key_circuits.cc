// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/key_circuits.h"

#include <array>
#include <utility>

#include "mpc-server/circuit/aes/key_words.h"
#include "mpc-server/garble/aes_rounds.h"

namespace mpckdc::garble {
namespace {

constexpr size_t kWordBytes = 4, kWordRows = 8 * kWordBytes;

// Of the four bytes of a word, as four copies of the S-box have them: bit k of copy r.
using WordOrder = std::array<uint16_t, kWordRows>;
constexpr WordOrder PlanesOf(size_t rotated) {
  WordOrder order{};
  for (size_t k = 0; k < 8; ++k) {
    for (size_t r = 0; r < kWordBytes; ++r) {
      order[kWordBytes * k + r] = static_cast<uint16_t>(8 * ((r + rotated) % kWordBytes) + k);
    }
  }
  return order;
}
constexpr WordOrder BytesOf() {
  WordOrder order{};
  for (size_t i = 0; i < kWordRows; ++i) order[PlanesOf(0)[i]] = static_cast<uint16_t>(i);
  return order;
}
constexpr WordOrder kPlanesOfWord = PlanesOf(0), kPlanesOfRotated = PlanesOf(1),
                    kWordOfPlanes = BytesOf();

AesBits BitsOf(const Enctype& enctype) {
  return enctype.key_bytes == 16 ? AesBits::k128 : AesBits::k256;
}

}  // namespace

KeyCircuits::KeyCircuits(Plan& plan, const Enctype& enctype)
    : plan_(plan), enctype_(enctype), aes_(plan, enctype.round_keys()), hmac_(plan, enctype.hash) {
  const Reg base = plan.Input(8 * enctype.key_bytes);
  base_ = enctype.family == EnctypeFamily::kRfc8009 ? hmac_.States(base) : Expand(base);
}

Plan::Reg KeyCircuits::Expand(Reg key) {
  const KeyWordPlan layers(BitsOf(enctype_));
  const size_t key_words = layers.KeyWords();
  std::vector<Reg> words;
  for (size_t i = 0; i < key_words; ++i) words.push_back(plan_.Bytes(key, 4 * i, kWordBytes));
  for (size_t layer = 0; layer < layers.SboxWords(); ++layer) {
    const KeyWord at = layers.At(layer);
    const Reg planes =
        plan_.Permute(words[at.index - 1], at.rotate ? kPlanesOfRotated : kPlanesOfWord);
    Reg word = plan_.Permute(plan_.Run(SboxTape(true), {planes}, kWordBytes), kWordOfPlanes);
    if (at.rotate) {
      word = plan_.Xor(word, plan_.Constant({static_cast<uint8_t>(at.rcon), 0, 0, 0}));
    }
    for (size_t i = at.index; i < at.end; ++i) {
      word = plan_.Xor(word, words[i - key_words]);
      words.push_back(word);
    }
  }
  return plan_.Join(std::move(words));
}

// DK: a block of the constant, and blocks of the block before (circuit/derive/dk.h).
Plan::Reg KeyCircuits::DeriveDk(uint32_t usage, DerivedKeyKind kind) {
  const auto constant = UsageConstant(usage, kind);
  Reg block = plan_.Constant({constant.begin(), constant.end()});
  std::vector<Reg> key;
  for (size_t i = 0; i < enctype_.base_blocks(); ++i) {
    block = aes_.Block(base_, block, true);
    key.push_back(block);
  }
  return plan_.Join(std::move(key));
}

Plan::Reg KeyCircuits::DeriveHmac(uint32_t usage, DerivedKeyKind kind) {
  const size_t bytes = DerivedKeyBytes(enctype_, kind);
  const auto message = KdfMessage(usage, kind, bytes);
  strings_.emplace_back(message.begin(), message.end());
  const Reg digest = hmac_.DigestOfPublic(base_, plan_.AddString(message.size()));
  return plan_.Bytes(digest, 0, bytes);
}

Plan::Reg KeyCircuits::Derive(uint32_t usage, DerivedKeyKind kind) {
  return enctype_.family == EnctypeFamily::kRfc8009 ? DeriveHmac(usage, kind)
                                                    : DeriveDk(usage, kind);
}

std::vector<Plan::Reg> KeyCircuits::Usage(uint32_t usage) {
  if (enctype_.is_gcm()) {
    const Reg keys = Expand(Derive(usage, DerivedKeyKind::kKg));
    AesCircuit aes(plan_, enctype_.round_keys());
    const Reg zeros = plan_.Constant(std::vector<uint8_t>(16));
    return {keys, aes.Block(keys, zeros, true)};
  }
  std::vector<Reg> found;
  const bool encrypts = IsEncryptionUsage(usage);
  if (encrypts) found.push_back(Expand(Derive(usage, DerivedKeyKind::kKe)));
  found.push_back(
      hmac_.States(Derive(usage, encrypts ? DerivedKeyKind::kKi : DerivedKeyKind::kKc)));
  return found;
}

}  // namespace mpckdc::garble
