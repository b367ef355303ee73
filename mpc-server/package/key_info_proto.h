// SPDX-License-Identifier: Apache-2.0
//
// Between the KeyInfo of proto/admin.proto and the one of key/. Sizes of fields are checked here, so
// that nothing else meets a handle that is not 16 bytes long.
#ifndef MPC_SERVER_PACKAGE_KEY_INFO_PROTO_H_
#define MPC_SERVER_PACKAGE_KEY_INFO_PROTO_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mpc-server/key/key_info.h"
#include "proto/admin.pb.h"

namespace mpckdc {

// 16 bytes, or an error that says whose (`what`).
absl::StatusOr<std::array<uint8_t, 16>> Bytes16(absl::string_view bytes, absl::string_view what);

// Checks everything that a server may know about a key before it has shares of it.
absl::StatusOr<KeyInfo> KeyInfoFromProto(const v1::KeyInfo& in, absl::string_view realm);
void KeyInfoToProto(const KeyInfo& in, v1::KeyInfo* out);
absl::StatusOr<Gate> GateFromProto(v1::Gate gate);

}  // namespace mpckdc

#endif  // MPC_SERVER_PACKAGE_KEY_INFO_PROTO_H_
