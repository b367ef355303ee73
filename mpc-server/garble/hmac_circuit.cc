// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/hmac_circuit.h"

#include <vector>

#include "mpc-server/garble/hash_tape.h"
#include "mpc-server/garble/hmac_padding.h"
#include "mpc-server/key/hash_plain.h"

namespace mpckdc::garble {

Plan::Reg HmacCircuit::Compress(Reg state, Reg block) {
  return plan_.Run(HashTape(hash_, MessageKind::kShared), {state, block});
}

Plan::Reg HmacCircuit::Padding(size_t message_bytes) {
  return plan_.Constant(HmacPadding(hash_, message_bytes));
}

Plan::Reg HmacCircuit::StateOfPad(Reg key, uint8_t pad) {
  const size_t bytes = plan_.bytes(key), rest = HashBlockBytes(hash_) - bytes;
  const absl::Span<const uint8_t> first = HashInitialState(hash_);
  std::vector<uint8_t> initial(first.begin(), first.end());
  initial.resize(StateRows(hash_) / 8);
  const Reg padded = plan_.Xor(key, plan_.Constant(std::vector<uint8_t>(bytes, pad)));
  const Reg block = plan_.Join({padded, plan_.Constant(std::vector<uint8_t>(rest, pad))});
  return Compress(plan_.Constant(std::move(initial)), block);
}

Plan::Reg HmacCircuit::States(Reg key) {
  const Reg inner = StateOfPad(key, 0x36), outer = StateOfPad(key, 0x5C);
  return plan_.Join({inner, outer});
}

Plan::Reg HmacCircuit::Outer(Reg states, Reg inner) {
  const size_t rows = StateRows(hash_), digest = HashDigestBytes(hash_);
  const Reg block = plan_.Join({plan_.Bytes(inner, 0, digest), Padding(digest)});
  return Compress(plan_.Rows(states, rows, rows), block);
}

Plan::Reg HmacCircuit::Digest(Reg states, Reg message) {
  const Reg padded = plan_.Join({message, Padding(plan_.bytes(message))});
  Reg state = plan_.Rows(states, 0, StateRows(hash_));
  const size_t block = HashBlockBytes(hash_);
  for (size_t at = 0; at < plan_.bytes(padded); at += block) {
    state = Compress(state, plan_.Bytes(padded, at, block));
  }
  return Outer(states, state);
}

Plan::Reg HmacCircuit::DigestOfPublic(Reg states, String message) {
  const Tape& tape = HashTape(hash_, MessageKind::kPublic);
  Reg state = plan_.Rows(states, 0, StateRows(hash_));
  for (size_t block = 0; block < HmacInnerBlocks(hash_, plan_.strings()[message]); ++block) {
    Plan::PublicRows schedule{message};
    schedule.schedule = hash_;
    schedule.block = block;
    state = plan_.Run(tape, {state}, 1, schedule);
  }
  return Outer(states, state);
}

}  // namespace mpckdc::garble
