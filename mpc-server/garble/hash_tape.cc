// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/hash_tape.h"

#include <memory>
#include <mutex>

namespace mpckdc::garble {
namespace {

constexpr size_t kHashes = 3, kMessages = 2;

struct Made {
  std::once_flag once;
  std::unique_ptr<Tape> tape;
};

}  // namespace

const Tape& HashTape(HashKind hash, MessageKind message) {
  static Made all[kHashes][kMessages];
  Made& made = all[static_cast<size_t>(hash)][static_cast<size_t>(message)];
  std::call_once(made.once, [&] {
    made.tape = std::make_unique<Tape>(HashProgram(hash, message, Adder::kRipple), StateRows(hash));
  });
  return *made.tape;
}

}  // namespace mpckdc::garble
