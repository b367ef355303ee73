// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/wire/frame_format.h"

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

constexpr absl::string_view kUnknown = "unknown";

void Put16(uint8_t* p, uint16_t v) {
  p[0] = static_cast<uint8_t>(v >> 8);
  p[1] = static_cast<uint8_t>(v);
}
void Put32(uint8_t* p, uint32_t v) {
  Put16(p, static_cast<uint16_t>(v >> 16));
  Put16(p + 2, static_cast<uint16_t>(v));
}
uint16_t Get16(const uint8_t* p) { return static_cast<uint16_t>(p[0] << 8 | p[1]); }
uint32_t Get32(const uint8_t* p) { return uint32_t{Get16(p)} << 16 | Get16(p + 2); }

uint32_t MaxPayload(FrameType type) {
  return type == FrameType::kRound ? kMaxRoundPayload : kMaxControlPayload;
}

absl::Status Mismatch(absl::string_view field, uint32_t expected, uint32_t received) {
  return absl::DataLossError(
      absl::StrCat("frame header: ", field, " is ", received, ", expected ", expected));
}

}  // namespace

bool IsKnownFrameType(uint8_t type) {
  return FrameTypeName(static_cast<FrameType>(type)) != kUnknown;
}

absl::string_view FrameTypeName(FrameType type) {
  switch (type) {
    case FrameType::kHello:
      return "hello";
    case FrameType::kSeed:
      return "seed";
    case FrameType::kRound:
      return "round";
    case FrameType::kAgreement:
      return "agreement";
    case FrameType::kAbort:
      return "abort";
    case FrameType::kConfirm:
      return "confirm";
  }
  return kUnknown;
}

void WriteFrameHeader(const FrameHeader& h, uint8_t out[kFrameHeaderSize]) {
  out[0] = kFrameVersion;
  out[1] = static_cast<uint8_t>(h.type);
  Put16(out + 2, h.round);
  Put32(out + 4, h.session);
  Put32(out + 8, h.batch);
  Put32(out + 12, h.length);
}

absl::Status ReadFrameHeader(const uint8_t in[kFrameHeaderSize], FrameHeader* out) {
  if (in[0] != kFrameVersion) return Mismatch("version", kFrameVersion, in[0]);
  if (!IsKnownFrameType(in[1])) {
    return absl::DataLossError(absl::StrCat("frame header: unknown type ", in[1]));
  }
  out->type = static_cast<FrameType>(in[1]);
  out->round = Get16(in + 2);
  out->session = Get32(in + 4);
  out->batch = Get32(in + 8);
  out->length = Get32(in + 12);
  if (out->length > MaxPayload(out->type)) {
    return absl::DataLossError(absl::StrCat("frame header: ", FrameTypeName(out->type),
                                            " payload of ", out->length, " bytes, limit ",
                                            MaxPayload(out->type)));
  }
  return absl::OkStatus();
}

absl::Status CheckFrameHeader(const FrameHeader& expected, const FrameHeader& received) {
  if (expected.type != received.type) {
    return absl::DataLossError(absl::StrCat("frame header: type is ", FrameTypeName(received.type),
                                            ", expected ", FrameTypeName(expected.type)));
  }
  if (expected.session != received.session) {
    return Mismatch("session", expected.session, received.session);
  }
  if (expected.batch != received.batch) return Mismatch("batch", expected.batch, received.batch);
  if (expected.round != received.round) return Mismatch("round", expected.round, received.round);
  if (expected.length != received.length) {
    return Mismatch("payload length", expected.length, received.length);
  }
  return absl::OkStatus();
}

absl::Status CheckNotRound(const FrameHeader& received) {
  if (received.type != FrameType::kRound) return absl::OkStatus();
  return absl::DataLossError("frame header: type is round, expected a control frame");
}

absl::Status CheckControlHeader(uint32_t session, const FrameHeader& received) {
  if (received.type == FrameType::kAbort) return absl::OkStatus();
  RETURN_IF_ERROR(CheckNotRound(received));
  return CheckFrameHeader({received.type, 0, session, 0, received.length}, received);
}

}  // namespace mpckdc
