// SPDX-License-Identifier: Apache-2.0
//
// What a server that adds constants to its messages learns of an AES key: fault analysis without a
// single pair of a right and a wrong ciphertext.
//
// The S-box is computed in stages (circuit/aes/sbox.h). What a stage opens is r_0 + r_1 + r_2, each
// from one server, so a server that sends r_i + e, and computes on with it, adds e to the value
// that all compute with. It knows e and not the value. With N = x^17 and e added to N, or to what
// follows, the S-box becomes another function f_e, and f_e is not a permutation: for e in the norm,
// f_e(x) = affine(x^16 * (N + e)^-1), whose norm is N / (N + e)^2, and t / (t + 1)^2 is the same
// for t and 1/t. Of 256 bytes 120 are possible, and one of them 18 times as likely as it ought to
// be.
//
// In the last round a byte of the ciphertext is f_e(x) + k with an x that nobody knows and that is
// as good as random; so each ciphertext rules out more than half of the candidates for the byte k
// of the last round key. Some 7 to 15 known ciphertexts of whatever plaintexts, all faulted alike,
// give the round key. With it the last round is taken off, and the same fault a round earlier gives
// the round key before: together AES-256's whole key; AES-128's is the last round key alone.
#ifndef MPC_SERVER_TESTING_FAULT_ANALYSIS_H_
#define MPC_SERVER_TESTING_FAULT_ANALYSIS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "mpc-server/circuit/aes/aes_circuit.h"
#include "mpc-server/share/replicated_share.h"
#include "mpc-server/testing/cancelling_errors.h"

namespace mpckdc {

// What is added to the bits that the stages of one S-box open, before the last stage, where an
// error only adds a constant to the output.
struct SboxFault {
  Sbox sbox = Sbox::kThroughput;
  uint8_t norm = 0;     // 4 bits
  uint8_t helper = 0;   // 1 bit; of kThroughput
  uint8_t inverse = 0;  // 4 bits; of kThroughput
  uint8_t tenth = 0;    // 2 bits of N^10; of kLatency
};
uint8_t FaultySbox(const SboxFault& fault, uint8_t x);
// The bits of the key byte that one known ciphertext byte tells on average, of 8.
double BitsPerByte(const SboxFault& fault);
// The fault that tells most.
SboxFault BestFault(Sbox sbox);

// The fault in all 16 S-boxes of an AES round and in the lanes from `first` on, `count` of them, as
// errors in the round's messages: one list for each stage (circuit/bitslice/slices.h).
//   message   row 0 | row 1 | ..      row: the lanes' bits, `lanes` in all, in whole bytes
//             norm     row 4*i + k      bit k of byte i        inverse alike
//             helper   row i
//             twist    row 10*i + k     u0, u1, then v
std::vector<std::vector<Flip>> FaultOfLanes(const SboxFault& fault, size_t lanes, size_t first,
                                            size_t count);

// Gathers what ciphertext bytes tell about a round key.
class RoundKeyScores {
 public:
  explicit RoundKeyScores(const SboxFault& fault);
  // A block f(x_0) + k_0 | .. | f(x_15) + k_15.
  void Add(const Block& block);
  size_t blocks() const { return blocks_; }
  // The most likely key; nullopt as long as it is not a thousand times as likely as all others.
  std::optional<Block> Best() const;

 private:
  std::array<double, 256> log_probability_{};  // of the faulty S-box's outputs
  std::array<std::array<double, 256>, 16> scores_{};
  size_t blocks_ = 0;
};

// ---- The rounds of AES at its end ----

// What came into the last round, without the last-but-one round key's part: its key is InvMix(k).
// `block` = a ciphertext under the last round key `last`.
Block BeforeLastRound(const Block& block, const Block& last);
Block MixColumnsOf(const Block& block);  // of what BeforeLastRound() gave: the round key itself

// The key from its last round key, or the last two (AES-256: the last but one first).
std::vector<uint8_t> KeyFromLastRoundKey(const Block& last);
std::vector<uint8_t> KeyFromLastRoundKeys(const Block& last_but_one, const Block& last);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_FAULT_ANALYSIS_H_
