// SPDX-License-Identifier: Apache-2.0
// AES-128-GCM over the records of one direction of one connection, by libipsec-mb, whose VAES code
// takes a third of OpenSSL 3.0's time. Internal to wire/.
//
//   nonce    = iv XOR (0^32 | number of the record, 64 bits, big-endian)      as in TLS 1.3
//   record   = header (additional data) | payload encrypted | tag (16 bytes)
//   new key  = BLAKE2b keyed with the chain, before the first record behind 64 GiB of payload
#ifndef MPC_SERVER_WIRE_RECORD_CIPHER_H_
#define MPC_SERVER_WIRE_RECORD_CIPHER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"

namespace mpckdc {

inline constexpr size_t kRecordTagSize = 16;

struct RecordKey {
  uint8_t key[16];
  uint8_t iv[12];
  uint8_t chain[32];  // makes the next RecordKey and nothing else
};
static_assert(sizeof(RecordKey) == 60);

// 2^32 AES blocks: what an attacker gains from repeating counter blocks stays near 2^-65 per key.
inline constexpr uint64_t kBytesPerKey = uint64_t{1} << 36;

// For one direction, so it either seals or opens. Records follow each other: each is begun, worked
// on piece by piece, finished.
class RecordCipher {
 public:
  // Whether this build and this CPU have it and the library's self-test passed.
  static bool Available();

  // What is not the default is for tests.
  explicit RecordCipher(const Secret<RecordKey>& key, uint64_t first_record = 0,
                        uint64_t bytes_per_key = kBytesPerKey);
  ~RecordCipher();

  // ResourceExhausted when the number of the record would be used a second time.
  absl::Status Begin(absl::Span<const uint8_t> header);
  // Pieces are multiples of 16 bytes but for the last.
  void Seal(uint8_t* sealed, const uint8_t* plain, size_t size);
  void FinishSeal(uint8_t tag[kRecordTagSize]);
  // In place. Nothing may be used before FinishOpen() was true.
  void Open(absl::Span<uint8_t> piece);
  bool FinishOpen(const uint8_t tag[kRecordTagSize]);

 private:
  void UseKey();
  void NextKey();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_RECORD_CIPHER_H_
