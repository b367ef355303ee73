// SPDX-License-Identifier: Apache-2.0
// The stages of aes_template.h in their order, without a network: what the plain oracle and the
// cost counter run. (The engine on shares runs the same stages cut into rounds: aes_circuit.cc.)
// Internal.
#ifndef MPC_SERVER_CIRCUIT_AES_PROGRAM_H_
#define MPC_SERVER_CIRCUIT_AES_PROGRAM_H_

#include <vector>

#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes_template.h"
#include "mpc-server/circuit/bitslice/slices.h"
#include "mpc-server/circuit/key_words.h"

namespace mpckdc {

// One group, kernels of AesStages<W, C>. Exchange::Message(rows) is called after each stage and is
// where C = 2 would talk to a neighbour.
template <class W, int C, class Exchange>
class AesProgram {
 public:
  using Stages = AesStages<W, C>;
  static constexpr size_t kWidth = W::kBytes;

  explicit AesProgram(Exchange& exchange, Sbox sbox = Sbox::kThroughput)
      : exchange_(exchange), sbox_(sbox) {}

  // input, key(k), output: C planes of 128 rows.
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

  // words: C planes of 32 rows per word, the first KeyWords() given.
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
    if (sbox_ == Sbox::kLatency) {
      Message(10 * bytes, [&](uint8_t* msg) {
        Stages::TwistStage(bytes, state_.data(), Sent(), Received(), msg, kWidth);
      });
      Message(8 * bytes, [&](uint8_t* msg) {
        Stages::ScaleStage(linear, Sent(), Received(), msg, kWidth);
      });
      return;
    }
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
    exchange_.Message(rows);
  }
  const uint8_t* Sent() const { return messages_[turn_].data(); }
  const uint8_t* Received() const { return nullptr; }

  Exchange& exchange_;
  const Sbox sbox_;
  SecretBytes state_ = SecretBytes(C * 128 * kRowBytes);
  SecretBytes norm_ = SecretBytes(C * 64 * kRowBytes);
  SecretBytes messages_[2];
  int turn_ = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_PROGRAM_H_
