// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/circuit.h"

#include "mpc-server/share/round_runner.h"

namespace mpckdc {
absl::Status RunTogether(PartyContext& party, absl::Span<Circuit* const> circuits,
                         Cost* counted) {
  OneChunk all(circuits);
  return party.Run(all, counted);
}

absl::Status RunOverlapped(PartyContext& party, ChunkSource& source, Cost* counted) {
  return party.Run(source, counted);
}

}  // namespace mpckdc
