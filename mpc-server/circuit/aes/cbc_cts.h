// SPDX-License-Identifier: Apache-2.0
// AES in CBC mode with ciphertext stealing on shares, as enctypes 17 to 20 have it (RFC 3962
// section 5, RFC 8009 section 5): the IV is zero, the last two blocks stand in exchanged order and
// the last one of the message is cut to what the text's last block has (1 to 16 bytes). A text of
// one whole block is encrypted as it is.
//
//     text        P1 | .. | Pn-1 | Pn (t bytes, then zeros)
//     chain       Ck = AES(Pk + Ck-1), C0 = 0
//     message     C1 | .. | Cn-2 | Cn | first t bytes of Cn-1
//
// Encryption is a chain: a lane's blocks go one after the other, all lanes side by side. A lane of
// n blocks takes n times the rounds of one AES and has ended when they have; longer lanes go on.
//
// Decryption reads a public message and has all of its blocks at once, but for one: AES^-1 of Cn
// ends with the bytes that were stolen from Cn-1, so with t < 16 the block Cn-1 becomes known, on
// shares, after the others, and costs a second AES in a row.
#ifndef MPC_SERVER_CIRCUIT_AES_CBC_CTS_H_
#define MPC_SERVER_CIRCUIT_AES_CBC_CTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes/aes_circuit.h"
#include "mpc-server/share/flow.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

inline constexpr size_t CtsBlocks(size_t bytes) {
  return (bytes + sizeof(Block) - 1) / sizeof(Block);
}

// The round keys stay the caller's until the circuit is done; the text is copied.
struct CtsEncryptLane {
  const SharedBlock* round_keys = nullptr;  // AesRoundKeys(bits) blocks
  const SharedBlock* text = nullptr;        // CtsBlocks(bytes); behind `bytes` nothing is read
  size_t bytes = 0;                         // at least 16
};

class CtsEncrypt : public Flow {
 public:
  explicit CtsEncrypt(AesBits bits, Isa isa = BestIsa());

  void Reset(absl::Span<const CtsEncryptLane> lanes, Sbox sbox = Sbox::kThroughput);
  // After Done(): the message of `bytes` bytes in CtsBlocks(bytes) blocks; behind it zeros.
  absl::Span<const SharedBlock> ciphertext(size_t lane) const;
  Cost DeclaredCost() const override;

 private:
  struct Lane {
    const SharedBlock* round_keys;
    size_t bytes;
    size_t first;  // of its blocks in blocks_
    size_t blocks() const { return CtsBlocks(bytes); }
  };
  void StartStep(size_t step);
  void EndStep(size_t step);
  void Steal(const Lane& lane);

  const AesBits bits_;
  Sbox sbox_ = Sbox::kThroughput;
  AesEncrypt aes_;
  std::vector<Lane> lanes_;
  std::vector<size_t> active_;  // the lanes that are long enough for this step
  std::vector<AesLane> aes_lanes_;
  SecretVector<SharedBlock> blocks_;  // lane after lane: text, and in its place the ciphertext
};

struct CtsDecryptLane {
  const SharedBlock* round_keys = nullptr;  // AesRoundKeys(bits) blocks, the caller's until done
  absl::Span<const uint8_t> ciphertext;     // at least 16 bytes; copied
};

class CtsDecrypt : public Flow {
 public:
  explicit CtsDecrypt(AesBits bits, Isa isa = BestIsa());

  void Reset(absl::Span<const CtsDecryptLane> lanes, Sbox sbox = Sbox::kThroughput);
  // After Done(): the text in CtsBlocks(ciphertext.size()) blocks; behind it zeros.
  absl::Span<const SharedBlock> text(size_t lane) const;
  Cost DeclaredCost() const override;

 private:
  struct Lane {
    const SharedBlock* round_keys;
    size_t bytes;
    size_t first;   // of its blocks in public_ and text_
    size_t stolen;  // bytes of Cn-1 that the message does not have
    size_t blocks() const { return CtsBlocks(bytes); }
  };
  void EndBlocks();
  void StartStolen();

  const AesBits bits_;
  Sbox sbox_ = Sbox::kThroughput;
  AesDecrypt aes_;
  std::vector<Lane> lanes_;
  std::vector<AesLane> aes_lanes_;
  std::vector<Block> public_;         // lane after lane: C1 .. Cn, of Cn-1 what the message has
  SecretVector<SharedBlock> text_;    // lane after lane
  SecretVector<SharedBlock> stolen_;  // Cn-1 of the lanes that have it on shares
};

// What texts and ciphertexts of these lengths cost.
Cost CostOfCtsEncrypt(AesBits bits, absl::Span<const size_t> bytes, Sbox sbox);
Cost CostOfCtsDecrypt(AesBits bits, absl::Span<const size_t> bytes, Sbox sbox);

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_CBC_CTS_H_
