// SPDX-License-Identifier: Apache-2.0
// The stages of AES on one group of 512 lanes, as a table of functions: one table per instruction
// set, filled from aes_template.h. Internal to circuit/.
#ifndef MPC_SERVER_CIRCUIT_AES_AES_KERNELS_H_
#define MPC_SERVER_CIRCUIT_AES_AES_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/circuit/aes/sbox_variant.h"

namespace mpckdc {

struct ZeroSource;  // share/ctr_stream.h
template <class F>
class IsaTable;  // base/isa.h: not included, see the note on leaks in bitslice/CMakeLists.txt

// What the last stage of an S-box layer (product or scale) applies before sending.
enum class AesLinear {
  kMixColumns,    // a block: ShiftRows and MixColumns
  kShiftRows,     // a block's last round
  kInvShiftRows,  // a block that is decrypted; of the inverse S-box
  kWord,          // a word of the key schedule: neither
};

// The stages of one S-box layer (sbox.h), in order, and the slices that each opens per byte.
enum class SboxStage { kNorm, kHelper, kInverse, kProduct, kTwist, kScale };
inline constexpr size_t SlicesPerByte(SboxStage stage) {
  constexpr size_t kSlices[] = {4, 1, 4, 8, 10, 8};
  return kSlices[static_cast<size_t>(stage)];
}
inline constexpr size_t kMaxSlicesPerByte = 10;
inline constexpr size_t SboxStages(Sbox sbox) { return sbox == Sbox::kThroughput ? 4 : 3; }
inline constexpr SboxStage StageAt(Sbox sbox, size_t step) {
  constexpr SboxStage kThroughput[] = {SboxStage::kNorm, SboxStage::kHelper, SboxStage::kInverse,
                                       SboxStage::kProduct};
  constexpr SboxStage kLatency[] = {SboxStage::kNorm, SboxStage::kTwist, SboxStage::kScale};
  return sbox == Sbox::kThroughput ? kThroughput[step % 4] : kLatency[step % 3];
}

// Buffers are rows of 64 bytes; values have two planes (x, then a). `msg` holds the zero share on
// entry and the message on return; `sent` and `received` are the previous stage's messages. With
// makes_zeros and a whole group (width 64), `source` may say where the zero share comes from: then
// `msg` may hold anything on entry. Else `source` is null.
struct AesKernels {
  void (*start)(const uint8_t* input, const uint8_t* key, uint8_t* state, uint8_t* msg,
                size_t width, const ZeroSource* source);
  void (*next)(const uint8_t* sent, const uint8_t* received, const uint8_t* key, uint8_t* state,
               uint8_t* msg, size_t width, const ZeroSource* source);
  void (*finish)(const uint8_t* sent, const uint8_t* received, const uint8_t* key,
                 uint8_t* output, size_t width);
  // The same three of decryption.
  void (*decrypt_start)(const uint8_t* input, const uint8_t* key, uint8_t* state, uint8_t* msg,
                        size_t width, const ZeroSource* source);
  void (*decrypt_next)(const uint8_t* sent, const uint8_t* received, const uint8_t* key,
                       uint8_t* state, uint8_t* msg, size_t width, const ZeroSource* source);
  void (*decrypt_finish)(const uint8_t* sent, const uint8_t* received, const uint8_t* key,
                         uint8_t* output, size_t width);
  void (*helper)(size_t bytes, const uint8_t* sent, const uint8_t* received, uint8_t* norm,
                 uint8_t* msg, size_t width, const ZeroSource* source);
  void (*inverse)(size_t bytes, const uint8_t* norm, const uint8_t* sent, const uint8_t* received,
                  uint8_t* msg, size_t width, const ZeroSource* source);
  void (*product)(AesLinear linear, const uint8_t* state, const uint8_t* sent,
                  const uint8_t* received, uint8_t* msg, size_t width, const ZeroSource* source);
  void (*twist)(size_t bytes, const uint8_t* state, const uint8_t* sent, const uint8_t* received,
                uint8_t* msg, size_t width, const ZeroSource* source);
  void (*scale)(AesLinear linear, const uint8_t* sent, const uint8_t* received, uint8_t* msg,
                size_t width, const ZeroSource* source);
  void (*word_start)(const uint8_t* words, size_t plane, size_t i, bool rotate, uint8_t* state,
                     uint8_t* msg, size_t width, const ZeroSource* source);
  void (*word_finish)(uint8_t* words, size_t plane, size_t nk, size_t i, size_t end, int rcon,
                      const uint8_t* sent, const uint8_t* received, size_t width);
  bool makes_zeros;
};

extern const AesKernels kAesKernelsPortable, kAesKernelsAvx2, kAesKernelsAvx2Vaes,
    kAesKernelsAvx512;
const IsaTable<AesKernels>& AllAesKernels();

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_AES_KERNELS_H_
