// SPDX-License-Identifier: Apache-2.0
// What a login under a key of 17 to 20 computes, as steps of a plan.
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

#include "mpc-server/garble/aes_circuit.h"
#include "mpc-server/garble/hmac_circuit.h"
#include "mpc-server/garble/plan.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc::garble {

class MessageCircuits {
 public:
  using Reg = Plan::Reg;
  using String = Plan::String;

  MessageCircuits(Plan& plan, const Enctype& enctype)
      : plan_(plan),
        enctype_(enctype),
        aes_(plan, enctype.round_keys()),
        hmac_(plan, enctype.hash) {}

  // Of a usage, as records keep them: the schedule of Ke; the HMAC's states, inner and outer.
  Reg RoundKeys() { return aes_.KeyInput(); }
  Reg MacStates() { return plan_.Input(128 * enctype_.mac_state_blocks()); }

  Reg Encrypt(Reg round_keys, Reg text);
  // Of the string from byte `first` on.
  Reg Decrypt(Reg round_keys, String ciphertext, size_t first);

  // The HMAC as the enctype cuts it.
  Reg Hmac(Reg states, Reg message);
  Reg HmacOfPublic(Reg states, String message);

  struct Checked {
    Reg ok;     // a row
    Reg gated;  // each row AND ok
  };
  Checked Check(Reg mac, String given, Reg gated);

 private:
  Plan& plan_;
  const Enctype& enctype_;
  AesCircuit aes_;
  HmacCircuit hmac_;
};

// Makes all tapes, so that no batch waits for them. From any thread.
void PrepareTapes();

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_MESSAGE_CIRCUITS_H_
