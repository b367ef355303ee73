// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/message_circuits.h"

#include <utility>
#include <vector>

#include "mpc-server/garble/aes_rounds.h"
#include "mpc-server/garble/check_program.h"
#include "mpc-server/garble/gf128_tape.h"
#include "mpc-server/garble/hash_tape.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc::garble {
// ---- AES ----

Plan::Reg MessageCircuits::Encrypt(Reg round_keys, Reg text) {
  const size_t bytes = plan_.bytes(text), blocks = BlocksOf(bytes);
  const size_t tail = bytes - 16 * (blocks - 1);
  std::vector<Reg> chain;
  for (size_t k = 0; k < blocks; ++k) {
    Reg block = plan_.Bytes(text, 16 * k, k + 1 < blocks ? 16 : tail);
    if (k + 1 == blocks && tail < 16) {
      block = plan_.Join({block, plan_.Constant(std::vector<uint8_t>(16 - tail))});
    }
    if (k > 0) block = plan_.Xor(block, chain.back());
    chain.push_back(aes_.Block(round_keys, block, true));
  }
  if (blocks > 1) {
    std::swap(chain[blocks - 2], chain[blocks - 1]);
    chain.back() = plan_.Bytes(chain.back(), 0, tail);
  }
  return plan_.Join(std::move(chain));
}

Plan::Reg MessageCircuits::Decrypt(Reg round_keys, String ciphertext, size_t first) {
  const size_t bytes = plan_.strings()[ciphertext] - first, blocks = BlocksOf(bytes);
  const size_t tail = bytes - 16 * (blocks - 1);
  const auto piece = [&](size_t k, size_t size) {
    return plan_.Public(ciphertext, first + 16 * k, size);
  };
  if (blocks == 1) return aes_.Block(round_keys, piece(0, 16), false);
  std::vector<Reg> text;
  for (size_t k = 0; k + 2 < blocks; ++k) {
    const Reg block = aes_.Block(round_keys, piece(k, 16), false);
    text.push_back(k == 0 ? block : plan_.Xor(block, piece(k - 1, 16)));
  }
  // Of the last block of the text and of the one before it: see circuit/aes/cbc_cts.h.
  const Reg last = aes_.Block(round_keys, piece(blocks - 2, 16), false);
  const Reg given = piece(blocks - 1, tail);
  Reg before = given;
  if (tail < 16) before = plan_.Join({given, plan_.Bytes(last, tail, 16 - tail)});
  const Reg block = aes_.Block(round_keys, before, false);
  text.push_back(blocks == 2 ? block : plan_.Xor(block, piece(blocks - 3, 16)));
  text.push_back(plan_.Xor(plan_.Bytes(last, 0, tail), given));
  return plan_.Join(std::move(text));
}

// ---- HMAC ----

Plan::Reg MessageCircuits::Hmac(Reg states, Reg message) {
  return plan_.Bytes(hmac_.Digest(states, message), 0, enctype_.mac_bytes);
}

Plan::Reg MessageCircuits::HmacOfPublic(Reg states, String message) {
  return plan_.Bytes(hmac_.DigestOfPublic(states, message), 0, enctype_.mac_bytes);
}

// ---- Verdict ----

MessageCircuits::Checked MessageCircuits::Check(Reg mac, String given, Reg gated) {
  const size_t bits = plan_.rows(mac), rows = plan_.rows(gated);
  const Reg out = plan_.Run(CheckTape(bits, rows), {mac, plan_.Public(given, 0, bits / 8), gated});
  return {plan_.Rows(out, 0, 1), plan_.Rows(out, 1, rows)};
}

void PrepareTapes() {
  for (const HashKind hash : {HashKind::kSha1, HashKind::kSha256, HashKind::kSha384}) {
    for (const MessageKind kind : {MessageKind::kPublic, MessageKind::kShared}) {
      HashTape(hash, kind);
    }
  }
  for (const bool encrypt : {false, true}) {
    SboxTape(encrypt);
    MixTape(encrypt);
  }
  Gf128MultiplyTape();
  Gf128SquareTape();
}

}  // namespace mpckdc::garble
