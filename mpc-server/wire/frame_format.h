// SPDX-License-Identifier: Apache-2.0
// The 16 bytes before every message between two servers. Constants and (de)serialisation only;
// doc/frame_format.md draws them.
//
//   0        1        2                 4                 8                 12                16
//   +--------+--------+--------+--------+--------+--------+--------+--------+--------+--------+
//   | version|  type  |      round      |     session     |      batch      |  payload length |
//   +--------+--------+--------+--------+--------+--------+--------+--------+--------+--------+
//
// All numbers are big-endian. Session, batch and round are zero in control frames sent before the
// session has a number.
#ifndef MPC_SERVER_WIRE_FRAME_FORMAT_H_
#define MPC_SERVER_WIRE_FRAME_FORMAT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mpckdc {

inline constexpr uint8_t kFrameVersion = 1;
inline constexpr size_t kFrameHeaderSize = 16;
inline constexpr uint32_t kMaxRoundPayload = 1u << 28;    // 256 MiB: 16 M blocks in one round
inline constexpr uint32_t kMaxControlPayload = 1u << 24;  // 16 MiB: an agreement over many jobs

enum class FrameType : uint8_t {
  kHello = 1,      // session opening: versions, realm, party, greeting
  kSeed = 2,       // session opening: a pairwise seed
  kRound = 3,      // one protocol round's payload
  kAgreement = 4,  // what agree/ says: opaque here
  // 5 was never sent.
  kAbort = 6,      // the sender gives up; payload is a reason in UTF-8
  kConfirm = 7,    // session opening: hash of the hellos and of a seed
};
bool IsKnownFrameType(uint8_t type);
absl::string_view FrameTypeName(FrameType type);

struct FrameHeader {
  FrameType type = FrameType::kRound;
  uint16_t round = 0;
  uint32_t session = 0;
  uint32_t batch = 0;
  uint32_t length = 0;  // of the payload

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

void WriteFrameHeader(const FrameHeader& header, uint8_t out[kFrameHeaderSize]);
// Refuses another version, an unknown type and a length above the type's limit.
absl::Status ReadFrameHeader(const uint8_t in[kFrameHeaderSize], FrameHeader* out);
// Error that names the first field in which a received header differs from the expected one.
absl::Status CheckFrameHeader(const FrameHeader& expected, const FrameHeader& received);
// That it is a control frame's. Before anything is taken from a header that nothing vouches for
// yet: a round's length may be large.
absl::Status CheckNotRound(const FrameHeader& received);
// That it is a control frame's, in this session. An abort is heard whatever its sender's session
// is: it may not have one yet.
absl::Status CheckControlHeader(uint32_t session, const FrameHeader& received);

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_FRAME_FORMAT_H_
