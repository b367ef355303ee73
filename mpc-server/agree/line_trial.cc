// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/line_trial.h"

#include <algorithm>
#include <array>
#include <vector>

#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

constexpr size_t kFirstBytes = 8 << 10;
constexpr size_t kGrowth = 4;  // what follows a quick one takes no longer than peers may be silent
constexpr absl::Duration kLong = absl::Milliseconds(150);
constexpr int kDistances = 5;

// How long a filler took, in microseconds, four bytes; and whether that was long.
using Told = std::array<uint8_t, 5>;

Told Tell(absl::Duration took, bool was_long) {
  const auto us = static_cast<uint64_t>(
      std::clamp<int64_t>(absl::ToInt64Microseconds(took), 1, int64_t{UINT32_MAX}));
  Told told{};
  for (size_t i = 0; i < 4; ++i) told[i] = static_cast<uint8_t>(us >> 8 * i);
  told[4] = was_long ? 1 : 0;
  return told;
}
bool WasLong(const Told& told) { return told[4] != 0; }
// No filler is believed to have passed in no time.
uint64_t RateIfLong(size_t bytes, const Told& told) {
  if (!WasLong(told)) return 0;
  uint64_t us = 0;
  for (size_t i = 0; i < 4; ++i) us |= uint64_t{told[i]} << 8 * i;
  return std::max<uint64_t>(1, bytes * uint64_t{1'000'000} / std::max<uint64_t>(us, 1));
}

absl::StatusOr<absl::Duration> SendFiller(PeerChannel& channel, Clock& clock, const RoundId& id,
                                          size_t bytes) {
  std::vector<uint8_t> out(bytes), in(bytes);
  const absl::Time begin = clock.Now();
  RETURN_IF_ERROR(channel.Exchange(
      id, {.to_next = {}, .from_prev = {}, .to_prev = out, .from_next = absl::MakeSpan(in)},
      begin + limits::kPeerTimeout));
  return clock.Now() - begin;
}

}  // namespace

bool TookLong(absl::Duration took, absl::Duration distance) {
  return took > kLong + kDistances * distance;
}

// The whole time counts and no distance is taken off: the sender may have begun one distance
// earlier, and the rate shall be one that the line has at least.
absl::StatusOr<LineTrial> TryLines(PeerChannel& channel, Clock& clock, const RoundId& first,
                                   size_t most_bytes) {
  LineTrial trial;
  RoundId id = first;
  for (size_t bytes = std::min(kFirstBytes, most_bytes); bytes != 0 && bytes <= most_bytes;
       bytes *= kGrowth) {
    id.step = "line trial";
    ASSIGN_OR_RETURN(const absl::Duration took, SendFiller(channel, clock, id, bytes));
    ++id.round;
    const absl::Duration distance = channel.Line(Neighbour::kNext).distance;
    const Told own = Tell(took, TookLong(took, distance));
    Told prev, next;
    id.step = "line trial's time";
    RETURN_IF_ERROR(channel.Exchange(id,
                                     {.to_next = own,
                                      .from_prev = absl::MakeSpan(prev),
                                      .to_prev = own,
                                      .from_next = absl::MakeSpan(next)},
                                     clock.Now() + limits::kPeerTimeout));
    ++id.round;
    if (WasLong(own) || WasLong(prev) || WasLong(next)) {
      trial.any_slow = true;
      trial.rate_own = RateIfLong(bytes, prev);
      trial.rate_of_next = RateIfLong(bytes, own);
      trial.rate_of_prev = RateIfLong(bytes, next);
      return trial;
    }
    trial.quick_bytes = bytes;
  }
  return trial;
}

}  // namespace mpckdc
