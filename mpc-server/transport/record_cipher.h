// SPDX-License-Identifier: Apache-2.0
// AES-128-GCM over the records of one direction of one connection, by libipsec-mb, whose VAES code
// takes a third of OpenSSL 3.0's time. Internal to transport/.
//
//   nonce    = iv XOR (0^32 | number of the record, 64 bits, big-endian)      as in TLS 1.3
//   record   = header (additional data) | payload encrypted | tag (16 bytes)
#ifndef MPC_SERVER_TRANSPORT_RECORD_CIPHER_H_
#define MPC_SERVER_TRANSPORT_RECORD_CIPHER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpc-server/secret/secret.h"

namespace mpckdc {

inline constexpr size_t kRecordTagSize = 16;

struct RecordKey {
  uint8_t key[16];
  uint8_t iv[12];
};

// For one direction, so it either seals or opens. Records follow each other: each is begun, worked
// on piece by piece, finished.
class RecordCipher {
 public:
  // Whether this build and this CPU have it and the library's self-test passed.
  static bool Available();

  // `first_record` is for tests.
  explicit RecordCipher(const Secret<RecordKey>& key, uint64_t first_record = 0);
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
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TRANSPORT_RECORD_CIPHER_H_
