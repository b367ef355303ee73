// SPDX-License-Identifier: Apache-2.0
// The stages of circuit/aes/aes_template.h in their order on plain bits, without a network. (On
// shares the same stages run cut into rounds: circuit/aes/aes_circuit.cc.)
#ifndef MPC_SERVER_TESTING_AES_PROGRAM_H_
#define MPC_SERVER_TESTING_AES_PROGRAM_H_

#include <utility>
#include <vector>

#include "mpc-server/circuit/aes/aes_template.h"
#include "mpc-server/circuit/aes/key_words.h"
#include "mpc-server/circuit/bitslice/slices.h"
#include "mpc-server/circuit/bitslice/word_portable.h"

namespace mpckdc {

// 64 lanes, the first word of each row. There are no zero shares: a message is the opened value.
class AesProgram {
 public:
  AesProgram(AesBits bits, Sbox sbox) : bits_(bits), sbox_(sbox) {}

  // `words`: 32 rows for each word of the key schedule, of which the key's own are given.
  void ExpandKey(uint8_t* words) {
    const KeyWordPlan plan(bits_);
    for (size_t layer = 0; layer < plan.SboxWords(); ++layer) {
      const KeyWord w = plan.At(layer);
      SboxLayer(4, AesLinear::kWord, [&](uint8_t* msg) {
        kStages.word_start(words, 0, w.index, w.rotate, state_.data(), msg, kWidth, nullptr);
      });
      kStages.word_finish(words, 0, plan.KeyWords(), w.index, w.end, w.rcon, sent_.data(), nullptr,
                          kWidth);
    }
  }

  // `block`: 128 rows, the input and then the output.
  void Run(AesDirection direction, const uint8_t* words, uint8_t* block) {
    const bool decrypt = direction == AesDirection::kDecrypt;
    const size_t rounds = AesRounds(bits_);
    const auto key = [&](size_t k) {
      return words + (decrypt ? rounds - k : k) * kBlockRows * kRowBytes;
    };
    for (size_t r = 0; r < rounds; ++r) {
      const AesLinear forward = r + 1 < rounds ? AesLinear::kMixColumns : AesLinear::kShiftRows;
      SboxLayer(16, decrypt ? AesLinear::kInvShiftRows : forward, [&](uint8_t* msg) {
        if (r == 0) {
          const auto start = decrypt ? kStages.decrypt_start : kStages.start;
          start(block, key(0), state_.data(), msg, kWidth, nullptr);
        } else {
          const auto next = decrypt ? kStages.decrypt_next : kStages.next;
          next(sent_.data(), nullptr, key(r), state_.data(), msg, kWidth, nullptr);
        }
      });
    }
    const auto finish = decrypt ? kStages.decrypt_finish : kStages.finish;
    finish(sent_.data(), nullptr, key(rounds), block, kWidth);
  }

 private:
  static constexpr AesKernels kStages = AesStages<WordPortable, 1>::Kernels();
  static constexpr size_t kWidth = WordPortable::kBytes;

  // `norm` is the first stage.
  template <class Norm>
  void SboxLayer(size_t bytes, AesLinear linear, Norm norm) {
    for (size_t step = 0; step < SboxStages(sbox_); ++step) {
      const SboxStage stage = StageAt(sbox_, step);
      std::vector<uint8_t> message(bytes * SlicesPerByte(stage) * kRowBytes);
      uint8_t* const msg = message.data();
      const uint8_t *const sent = sent_.data(), *const none = nullptr;
      switch (stage) {
        case SboxStage::kNorm: norm(msg); break;
        case SboxStage::kHelper:
          kStages.helper(bytes, sent, none, norm_.data(), msg, kWidth, nullptr);
          break;
        case SboxStage::kInverse:
          kStages.inverse(bytes, norm_.data(), sent, none, msg, kWidth, nullptr);
          break;
        case SboxStage::kProduct:
          kStages.product(linear, state_.data(), sent, none, msg, kWidth, nullptr);
          break;
        case SboxStage::kTwist:
          kStages.twist(bytes, state_.data(), sent, none, msg, kWidth, nullptr);
          break;
        case SboxStage::kScale: kStages.scale(linear, sent, none, msg, kWidth, nullptr); break;
      }
      sent_ = std::move(message);
    }
  }

  const AesBits bits_;
  const Sbox sbox_;
  std::vector<uint8_t> state_ = std::vector<uint8_t>(kBlockRows * kRowBytes), norm_ = state_;
  std::vector<uint8_t> sent_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_AES_PROGRAM_H_
