// SPDX-License-Identifier: Apache-2.0
// What a login under a key of 17 to 20 computes, from programs: garblers and evaluator call the
// same, in the same order. All lanes' messages have the same lengths, which are public; so are the
// bytes that are given as such, lane by lane behind each other.
//
//   CBC-CTS      RFC 3962 section 5, RFC 8009 section 5: zero IV, last two blocks exchanged
//   HMAC         from the states after key ^ ipad and key ^ opad
//   Check        AND of all "equal" bits, and what is shown only if they are
//
// A public byte is a wire like another; gates with two public inputs are garbled too, so a circuit
// depends on lengths alone.
#ifndef MPC_SERVER_GARBLE_MESSAGE_CIRCUITS_H_
#define MPC_SERVER_GARBLE_MESSAGE_CIRCUITS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "mpc-server/garble/program_run.h"
#include "mpc-server/garble/wires.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/hash_kind.h"

namespace mpckdc::garble {

class MessageCircuits {
 public:
  MessageCircuits(ProgramRun& run, const Enctype& enctype) : run_(run), enctype_(enctype) {}

  Wires Public(absl::Span<const uint8_t> bytes) const;

  // round_keys: the schedule of Ke, 128 rows for each.
  Wires Encrypt(const Wires& round_keys, const Wires& text);
  Wires Decrypt(const Wires& round_keys, absl::Span<const uint8_t> ciphertext);

  // The HMAC as the enctype cuts it. states: inner, outer, StateRows() each.
  Wires Hmac(const Wires& states, const Wires& message);
  Wires HmacOfPublic(const Wires& states, absl::Span<const uint8_t> message);

  struct Checked {
    Wires ok;     // a row
    Wires gated;  // each row AND ok
  };
  Checked Check(const Wires& mac, absl::Span<const uint8_t> given, const Wires& gated);

 private:
  Wires Block(const Wires& round_keys, Wires state, bool encrypt);
  Wires Compress(const Wires& state, const Wires& block);
  Wires Outer(const Wires& states, const Wires& inner);
  Wires Padding(size_t message_bytes) const;

  ProgramRun& run_;
  const Enctype& enctype_;
};

// AND gates of a lane, counted before anything is garbled: what a job's tables will take.
struct MessageGates {
  static size_t Encrypt(const Enctype& enctype, size_t bytes);
  static size_t Decrypt(const Enctype& enctype, size_t bytes);
  static size_t Hmac(const Enctype& enctype, size_t bytes);
  static size_t HmacOfPublic(const Enctype& enctype, size_t bytes);
  static size_t Check(const Enctype& enctype, size_t gated_rows);
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_MESSAGE_CIRCUITS_H_
