// SPDX-License-Identifier: Apache-2.0
// The stages of circuit/aes/aes_template.h in their order on plain bits, without a network. (On shares
// the same stages run cut into rounds: circuit/aes/aes_circuit.cc.)
#ifndef MPC_SERVER_TESTING_AES_PROGRAM_H_
#define MPC_SERVER_TESTING_AES_PROGRAM_H_

#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes/aes_template.h"
#include "mpc-server/circuit/aes/key_words.h"
#include "mpc-server/circuit/bitslice/slices.h"
#include "mpc-server/circuit/bitslice/word_portable.h"

namespace mpckdc {

// 64 lanes. A message is the opened value itself.
class AesProgram {
 public:
  using Stages = AesStages<WordPortable, 1>;
  static constexpr size_t kWidth = WordPortable::kBytes;

  // input, key(k), output: 128 rows.
  template <class KeyRows>
  void Encrypt(size_t rounds, const uint8_t* input, KeyRows key, uint8_t* output) {
    for (size_t r = 1; r <= rounds; ++r) {
      Message(64, [&](uint8_t* msg) {
        if (r == 1) {
          Stages::Start(input, key(0), state_.data(), msg, kWidth);
        } else {
          Stages::Next(Sent(), Received(), key(r - 1), state_.data(), msg, kWidth);
        }
      });
      Invert(16, r == rounds ? AesLinear::kShiftRows : AesLinear::kMixColumns);
    }
    Stages::Finish(Sent(), Received(), key(rounds), output, kWidth);
  }

  // The same under the same keys: key(rounds) is asked for first.
  template <class KeyRows>
  void Decrypt(size_t rounds, const uint8_t* input, KeyRows key, uint8_t* output) {
    for (size_t r = rounds; r >= 1; --r) {
      Message(64, [&](uint8_t* msg) {
        if (r == rounds) {
          Stages::DecryptStart(input, key(r), state_.data(), msg, kWidth);
        } else {
          Stages::DecryptNext(Sent(), Received(), key(r), state_.data(), msg, kWidth);
        }
      });
      Invert(16, AesLinear::kInvShiftRows);
    }
    Stages::DecryptFinish(Sent(), Received(), key(0), output, kWidth);
  }

  // words: 32 rows per word, the first KeyWords() given.
  void ExpandKey(const KeyWordPlan& plan, uint8_t* words) {
    const size_t plane = 32 * plan.Count() * kRowBytes;
    for (size_t layer = 0; layer < plan.SboxWords(); ++layer) {
      const KeyWord w = plan.At(layer);
      Message(16, [&](uint8_t* msg) {
        Stages::WordStart(words, plane, w.index, w.rotate, state_.data(), msg, kWidth);
      });
      Invert(4, AesLinear::kWord);
      Stages::WordFinish(words, plane, plan.KeyWords(), w.index, w.end, w.rcon, Sent(),
                         Received(), kWidth);
    }
  }

 private:
  // The stages after the norm.
  void Invert(size_t bytes, AesLinear linear) {
    Message(bytes, [&](uint8_t* msg) {
      Stages::HelperStage(bytes, Sent(), Received(), norm_.data(), msg, kWidth);
    });
    Message(4 * bytes, [&](uint8_t* msg) {
      Stages::InverseStage(bytes, norm_.data(), Sent(), Received(), msg, kWidth);
    });
    Message(8 * bytes, [&](uint8_t* msg) {
      Stages::ProductStage(linear, state_.data(), Sent(), Received(), msg, kWidth);
    });
  }

  template <class F>
  void Message(size_t rows, F stage) {
    SecretBytes& next = messages_[turn_ ^ 1];
    next.assign(rows * kRowBytes, 0);
    stage(next.data());
    turn_ ^= 1;
  }
  const uint8_t* Sent() const { return messages_[turn_].data(); }
  const uint8_t* Received() const { return nullptr; }

  SecretBytes state_ = SecretBytes(128 * kRowBytes);
  SecretBytes norm_ = SecretBytes(64 * kRowBytes);
  SecretBytes messages_[2];
  int turn_ = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_AES_PROGRAM_H_
