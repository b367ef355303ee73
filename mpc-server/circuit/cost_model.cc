// SPDX-License-Identifier: Apache-2.0
// Costs from the circuit templates themselves, run on a word that only counts what it stores into
// messages.
#include <cassert>

#include "mpc-server/circuit/aes_circuit.h"
#include "mpc-server/circuit/aes_program.h"
#include "mpc-server/circuit/key_schedule.h"

namespace mpckdc {
namespace {

// Holds nothing. Buffers are never read or written through it.
struct CountingWord {
  struct T {};
  static constexpr size_t kBytes = kRowBytes;
  static thread_local size_t messages_stored;
  static T Load(const uint8_t*) { return {}; }
  static void Store(uint8_t*, T) {}
  static void StoreMessage(uint8_t*, T) { ++messages_stored; }
  static T Zero() { return {}; }
  static T Not(T) { return {}; }
  static T Xor(T, T) { return {}; }
  static T Xor3(T, T, T) { return {}; }
  static T And(T, T) { return {}; }
  static T AndXor(T, T, T) { return {}; }
};
thread_local size_t CountingWord::messages_stored = 0;

struct CountingExchange {
  size_t slices = 0;
  size_t rounds = 0;
  void Message(size_t rows) {
    assert(CountingWord::messages_stored == rows);
    slices += CountingWord::messages_stored;
    CountingWord::messages_stored = 0;
    ++rounds;
  }
};
using CountingProgram = AesProgram<CountingWord, 2, CountingExchange>;

// Slices of `lanes` lanes, as cut in a message.
Cost CostOf(const CountingExchange& counted, size_t lanes) {
  if (lanes == 0) return {};
  return {counted.rounds, WireBytes(lanes, counted.slices), 0};
}

CountingExchange CountAes(AesDirection direction, AesBits bits, Sbox sbox) {
  CountingExchange counted;
  uint8_t nothing[1] = {};
  const auto key = [&](size_t) { return nothing; };
  CountingProgram program(counted, sbox);
  if (direction == AesDirection::kEncrypt) {
    program.Encrypt(AesRounds(bits), nothing, key, nothing);
  } else {
    program.Decrypt(AesRounds(bits), nothing, key, nothing);
  }
  return counted;
}

// Counted once for both sizes of key and both variants of the S-box.
struct CountedAes {
  explicit CountedAes(AesDirection d)
      : k128(CountAes(d, AesBits::k128, Sbox::kThroughput)),
        k256(CountAes(d, AesBits::k256, Sbox::kThroughput)),
        fast128(CountAes(d, AesBits::k128, Sbox::kLatency)),
        fast256(CountAes(d, AesBits::k256, Sbox::kLatency)) {}
  const CountingExchange& Of(AesBits bits, Sbox sbox) const {
    if (sbox == Sbox::kThroughput) return bits == AesBits::k128 ? k128 : k256;
    return bits == AesBits::k128 ? fast128 : fast256;
  }
  const CountingExchange k128, k256, fast128, fast256;
};

CountingExchange CountKeySchedule(AesBits bits) {
  CountingExchange counted;
  uint8_t nothing[1] = {};
  CountingProgram(counted).ExpandKey(KeyWordPlan(bits), nothing);
  return counted;
}

}  // namespace

Cost CostOfAes(AesBits bits, size_t blocks, Sbox sbox, AesDirection direction) {
  static const CountedAes encrypt(AesDirection::kEncrypt), decrypt(AesDirection::kDecrypt);
  const CountedAes& counted = direction == AesDirection::kEncrypt ? encrypt : decrypt;
  return CostOf(counted.Of(bits, sbox), blocks);
}

Cost CostOfKeySchedule(AesBits bits, size_t keys) {
  static const CountingExchange k128 = CountKeySchedule(AesBits::k128),
                                k256 = CountKeySchedule(AesBits::k256);
  return CostOf(bits == AesBits::k128 ? k128 : k256, keys);
}

}  // namespace mpckdc
