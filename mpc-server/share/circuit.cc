// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/circuit.h"

namespace mpckdc {
namespace {

// All circuits as one chunk.
class OneChunk : public ChunkSource {
 public:
  explicit OneChunk(absl::Span<Circuit* const> circuits) : circuits_(circuits) {}
  size_t chunks() const override { return 1; }
  size_t slots() const override { return 1; }
  absl::Span<Circuit* const> Begin(size_t, size_t) override { return circuits_; }
  void End(size_t, size_t) override {}

 private:
  const absl::Span<Circuit* const> circuits_;
};

}  // namespace

absl::Status RunTogether(PartyContext& party, absl::Span<Circuit* const> circuits,
                         Cost* counted) {
  OneChunk all(circuits);
  return party.Run(all, counted);
}

absl::Status RunOverlapped(PartyContext& party, ChunkSource& source, Cost* counted) {
  return party.Run(source, counted);
}

}  // namespace mpckdc
