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

// Where one layer's S-boxes are in a section of the log (share/proof_log.h): the first one's rows,
// by role.
struct SboxRows {
  size_t bytes;  // S-boxes of the layer
  uint8_t* wires[2];
  uint8_t* t[2];
};
// The messages of the stage before, and the zero share of this one in its two parts.
struct SentRows {
  const uint8_t* sent;
  const uint8_t* received;
};
struct ZeroRows {
  const uint8_t* own;
  const uint8_t* next;
};

// The stages once more, as they are recorded (sbox_record.h). Whole rows, whatever the width.
struct SboxRecordKernels {
  void (*norm[2])(const SboxRows& to, const uint8_t* state, const ZeroRows& zero);  // by Sbox
  void (*helper)(const SboxRows& to, const SentRows& in, const ZeroRows& zero);
  void (*inverse)(const SboxRows& to, const SentRows& in, const ZeroRows& zero);
  void (*product)(const SboxRows& to, AesLinear linear, const SentRows& in, const ZeroRows& zero);
  void (*twist)(const SboxRows& to, const SentRows& in, const ZeroRows& zero);
  void (*scale)(const SboxRows& to, AesLinear linear, const SentRows& in, const ZeroRows& zero);
  void (*end[2])(const SboxRows& to, AesLinear linear, const uint8_t* received);  // by Sbox
};
// By where a section of the log is (share/proof_log.h).
struct SboxRecords {
  SboxRecordKernels near, far;
};
extern const SboxRecords kSboxRecordsPortable, kSboxRecordsAvx2, kSboxRecordsAvx512;
extern const SboxRecordKernels kSboxRecordFew;  // log rows of 8 bytes: at most 64 lanes
const IsaTable<SboxRecords>& AllSboxRecords();

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_AES_KERNELS_H_
