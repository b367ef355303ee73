// SPDX-License-Identifier: Apache-2.0
// Which words of the AES key schedule pass through the S-box (FIPS 197, 5.2). Internal.
#ifndef MPC_SERVER_CIRCUIT_AES_KEY_WORDS_H_
#define MPC_SERVER_CIRCUIT_AES_KEY_WORDS_H_

#include <cstddef>

#include "mpc-server/circuit/aes/aes_circuit.h"
#include "mpc-server/circuit/aes/tower_field.h"

namespace mpckdc {

// w[index] = w[index-nk] ^ SubWord(w[index-1]) (with RotWord and rcon if `rotate`), and the words
// up to `end` follow by XOR alone.
struct KeyWord {
  size_t index;
  size_t end;
  bool rotate;
  int rcon;
};

class KeyWordPlan {
 public:
  explicit KeyWordPlan(AesBits bits) : bits_(bits) {}

  AesBits bits() const { return bits_; }
  size_t KeyWords() const { return 4 * AesKeyBlocks(bits_); }
  size_t Count() const { return 4 * AesRoundKeys(bits_); }
  // AES-128: every 4th word from 4 to 40. AES-256: every 4th from 8 to 56.
  size_t SboxWords() const { return (Count() - KeyWords()) / 4; }
  KeyWord At(size_t layer) const {
    const size_t index = KeyWords() + 4 * layer;
    const bool rotate = index % KeyWords() == 0;
    int rcon = 1;
    for (size_t i = KeyWords(); i < index; i += KeyWords()) rcon = tower::Mul256(rcon, 2);
    return {index, index + 4, rotate, rotate ? rcon : 0};
  }

 private:
  AesBits bits_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_KEY_WORDS_H_
