// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/message_circuits.h"

#include <algorithm>
#include <vector>

#include "mpc-server/circuit/hash/hash_programs.h"
#include "mpc-server/garble/aes_rounds.h"
#include "mpc-server/garble/check_program.h"
#include "mpc-server/key/hash_plain.h"
#include "mpc-server/key/hash_template.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc::garble {
namespace {

// Sums of words one after the other: few gates, and a stage's depth costs nothing here.
constexpr Adder kAdder = Adder::kRipple;

const BitProgram& Compression(const Enctype& enctype, MessageKind kind) {
  return HashProgram(enctype.hash, kind, kAdder);
}

// What is hashed behind an HMAC's state: `bytes`, padded.
size_t PaddedBytes(HashKind hash, size_t bytes) {
  return HmacInnerBlocks(hash, bytes) * HashBlockBytes(hash);
}

// 0x80, zeros, the number of bits: of `bytes` behind the block of the key. FIPS 180-4 section 5.1.
std::vector<uint8_t> PaddingOf(HashKind hash, size_t bytes) {
  std::vector<uint8_t> padding(PaddedBytes(hash, bytes) - bytes);
  padding[0] = 0x80;
  size_t bits = 8 * (HashBlockBytes(hash) + bytes);
  for (size_t i = padding.size(); bits != 0; bits >>= 8) padding[--i] = static_cast<uint8_t>(bits);
  return padding;
}

std::vector<uint8_t> ForEachLane(const std::vector<uint8_t>& bytes, size_t lanes) {
  std::vector<uint8_t> all;
  for (size_t lane = 0; lane < lanes; ++lane) all.insert(all.end(), bytes.begin(), bytes.end());
  return all;
}

// A lane's bytes as bits 0 and 1 in rows.
std::vector<uint8_t> RowsOf(absl::Span<const uint8_t> bytes, size_t lanes) {
  const size_t each = bytes.size() / lanes;
  std::vector<uint8_t> rows(8 * bytes.size());
  for (size_t lane = 0; lane < lanes; ++lane) {
    for (size_t i = 0; i < 8 * each; ++i) {
      rows[i * lanes + lane] = bytes[lane * each + i / 8] >> i % 8 & 1;
    }
  }
  return rows;
}

}  // namespace

Wires MessageCircuits::Public(absl::Span<const uint8_t> bytes) const {
  const size_t lanes = run_.lanes();
  Wires wires(8 * bytes.size() / lanes, lanes);
  run_.SetPublic(RowsOf(bytes, lanes), wires.labels().data());
  return wires;
}

// ---- AES ----

Wires MessageCircuits::Block(const Wires& round_keys, Wires state, bool encrypt) {
  const size_t rounds = enctype_.round_keys() - 1;
  const auto key = [&](size_t i) { return round_keys.Rows(128 * (encrypt ? i : rounds - i), 128); };
  state.Add(key(0));
  for (size_t i = 1; i <= rounds; ++i) {
    const bool last = i == rounds;
    const AesRound round = encrypt ? (last ? AesRound::kEncryptLast : AesRound::kEncrypt)
                                   : (last ? AesRound::kDecryptLast : AesRound::kDecrypt);
    state.Append(key(i));
    Wires next(128, state.lanes());
    run_.Run(AesRoundProgram(round), state.labels(), {}, next.labels().data());
    state = std::move(next);
  }
  return state;
}

Wires MessageCircuits::Encrypt(const Wires& round_keys, const Wires& text) {
  const size_t bytes = text.bytes(), blocks = BlocksOf(bytes), tail = bytes - 16 * (blocks - 1);
  std::vector<Wires> chain;
  for (size_t k = 0; k < blocks; ++k) {
    Wires block = text.Bytes(16 * k, k + 1 < blocks ? 16 : tail);
    if (k + 1 == blocks && tail < 16) {
      block.Append(Public(std::vector<uint8_t>((16 - tail) * run_.lanes())));
    }
    if (k > 0) block.Add(chain.back());
    chain.push_back(Block(round_keys, std::move(block), true));
  }
  if (blocks > 1) {
    std::swap(chain[blocks - 2], chain[blocks - 1]);
    chain.back() = chain.back().Bytes(0, tail);
  }
  Wires message;
  for (const Wires& block : chain) message.Append(block);
  return message;
}

Wires MessageCircuits::Decrypt(const Wires& round_keys, absl::Span<const uint8_t> ciphertext) {
  const Wires message = Public(ciphertext);
  const size_t bytes = message.bytes(), blocks = BlocksOf(bytes), tail = bytes - 16 * (blocks - 1);
  if (blocks == 1) return Block(round_keys, message, false);
  Wires text;
  for (size_t k = 0; k + 2 < blocks; ++k) {
    Wires block = Block(round_keys, message.Bytes(16 * k, 16), false);
    if (k > 0) block.Add(message.Bytes(16 * (k - 1), 16));
    text.Append(block);
  }
  // Of the last block of the text and of the one before it: see circuit/aes/cbc_cts.h.
  const Wires last = Block(round_keys, message.Bytes(16 * (blocks - 2), 16), false);
  Wires before = message.Bytes(16 * (blocks - 1), tail);
  const Wires end = last.Bytes(0, tail) ^ before;
  before.Append(last.Bytes(tail, 16 - tail));
  Wires block = Block(round_keys, std::move(before), false);
  if (blocks > 2) block.Add(message.Bytes(16 * (blocks - 3), 16));
  text.Append(block);
  text.Append(end);
  return text;
}

// ---- HMAC ----

Wires MessageCircuits::Compress(const Wires& state, const Wires& block) {
  Wires in = state;
  in.Append(block);
  Wires out(StateRows(enctype_.hash), run_.lanes());
  run_.Run(Compression(enctype_, MessageKind::kShared), in.labels(), {}, out.labels().data());
  return out;
}

Wires MessageCircuits::Padding(size_t message_bytes) const {
  return Public(ForEachLane(PaddingOf(enctype_.hash, message_bytes), run_.lanes()));
}

Wires MessageCircuits::Outer(const Wires& states, const Wires& inner) {
  const size_t rows = StateRows(enctype_.hash), digest = HashDigestBytes(enctype_.hash);
  Wires block = inner.Bytes(0, digest);
  block.Append(Padding(digest));
  return Compress(states.Rows(rows, rows), block).Bytes(0, enctype_.mac_bytes);
}

Wires MessageCircuits::Hmac(const Wires& states, const Wires& message) {
  Wires padded = message;
  padded.Append(Padding(message.bytes()));
  Wires state = states.Rows(0, StateRows(enctype_.hash));
  const size_t block = HashBlockBytes(enctype_.hash);
  for (size_t at = 0; at < padded.bytes(); at += block) {
    state = Compress(state, padded.Bytes(at, block));
  }
  return Outer(states, state);
}

Wires MessageCircuits::HmacOfPublic(const Wires& states, absl::Span<const uint8_t> message) {
  const HashKind hash = enctype_.hash;
  const size_t lanes = run_.lanes(), bytes = message.size() / lanes, block = HashBlockBytes(hash);
  const std::vector<uint8_t> padding = PaddingOf(hash, bytes);
  const size_t schedule = HashSteps(hash) * HashWordBits(hash) / 8;
  Wires state = states.Rows(0, StateRows(hash));
  for (size_t at = 0; at < PaddedBytes(hash, bytes); at += block) {
    std::vector<uint8_t> publics(schedule * lanes);
    for (size_t lane = 0; lane < lanes; ++lane) {
      std::vector<uint8_t> padded(message.begin() + static_cast<ptrdiff_t>(lane * bytes),
                                  message.begin() + static_cast<ptrdiff_t>((lane + 1) * bytes));
      padded.insert(padded.end(), padding.begin(), padding.end());
      PublicSchedule(hash, &padded[at], &publics[lane * schedule]);
    }
    Wires next(StateRows(hash), lanes);
    run_.Run(Compression(enctype_, MessageKind::kPublic), state.labels(), RowsOf(publics, lanes),
             next.labels().data());
    state = std::move(next);
  }
  return Outer(states, state);
}

// ---- Verdict ----

MessageCircuits::Checked MessageCircuits::Check(const Wires& mac, absl::Span<const uint8_t> given,
                                                const Wires& gated) {
  Wires in = mac;
  in.Append(Public(given));
  in.Append(gated);
  Wires out(1 + gated.rows(), run_.lanes());
  run_.Run(CheckProgram(mac.rows(), gated.rows()), in.labels(), {}, out.labels().data());
  return {out.Rows(0, 1), out.Rows(1, gated.rows())};
}

// ---- Gates ----

size_t MessageGates::Encrypt(const Enctype& enctype, size_t bytes) {
  return BlocksOf(bytes) * (enctype.round_keys() - 1) * 16 * kSboxGates;
}
size_t MessageGates::Decrypt(const Enctype& enctype, size_t bytes) {
  return Encrypt(enctype, bytes);
}
size_t MessageGates::Hmac(const Enctype& enctype, size_t bytes) {
  return (HmacInnerBlocks(enctype.hash, bytes) + 1) *
         AndGatesOf(Compression(enctype, MessageKind::kShared));
}
size_t MessageGates::HmacOfPublic(const Enctype& enctype, size_t bytes) {
  return HmacInnerBlocks(enctype.hash, bytes) *
             AndGatesOf(Compression(enctype, MessageKind::kPublic)) +
         AndGatesOf(Compression(enctype, MessageKind::kShared));
}
size_t MessageGates::Check(const Enctype& enctype, size_t gated_rows) {
  return CheckGates(8 * enctype.mac_bytes, gated_rows);
}

}  // namespace mpckdc::garble
