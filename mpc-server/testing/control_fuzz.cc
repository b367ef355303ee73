// SPDX-License-Identifier: Apache-2.0
//
// Targets with a bug each, which `make fuzz` must find within seconds before it believes that there
// is none in the others: a read past the end, a number that overflows, a decoder that is not its
// encoder's inverse. The seeds are harmless; fuzz_replay must find one by the input that shows it.
#include <string>

#include "mpc-server/base/bytes.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc {
namespace {

FuzzSeeds Seeds() { return {std::string("MK\x01\x02xy", 6), std::string("MK\x02\0\0\x10\0", 7)}; }

// "MK" | kind (1) | ...; reads what its length byte says, which nobody compared with what is there.
MPCKDC_FUZZ(control_read, Seeds) {
  if (in.size() < 4 || in[0] != 'M' || in[1] != 'K' || in[2] != 1) return;
  volatile uint8_t sum = 0;
  for (size_t i = 0; i < in[3]; ++i) sum = sum ^ in.data()[4 + i];
}

// The same in the arena of secrets, whose memory is mapped all around.
MPCKDC_FUZZ(control_arena, Seeds) {
  if (in.size() < 4 || in[0] != 'M' || in[1] != 'K' || in[2] != 1) return;
  const SecretBytes secret(in.begin(), in.end());
  volatile uint8_t sum = 0;
  for (size_t i = 0; i < in[3]; ++i) sum = sum ^ secret.data()[4 + i];
}

MPCKDC_FUZZ(control_overflow, Seeds) {
  ByteReader reader(in);
  if (reader.Uint(2) != 0x4d4b || reader.Uint(1) != 2) return;
  const auto count = static_cast<int32_t>(reader.Uint(4));
  if (!reader.ok()) return;
  volatile int32_t size = count * 16;
  static_cast<void>(size);
}

// Leaves the highest bit out.
MPCKDC_FUZZ(control_inverse, Seeds) {
  ByteReader reader(in);
  if (reader.Uint(2) != 0x4d4b) return;
  const uint64_t value = reader.Uint(2) & 0x7fff;
  if (!reader.AtEnd()) return;
  std::string out("MK");
  AppendUint(out, value, 2);
  FUZZ_CHECK(out == AsText(in));
}

}  // namespace
}  // namespace mpckdc
