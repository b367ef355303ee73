// SPDX-License-Identifier: Apache-2.0
//
// Between proto/*.proto and the plain structs below the services. Sizes of fields are checked here,
// so that nothing below meets a handle that is not 16 bytes long.
#ifndef MPC_SERVER_SERVICE_PROTO_CONVERT_H_
#define MPC_SERVER_SERVICE_PROTO_CONVERT_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mpc-server/job/job.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/store/share_store.h"
#include "proto/admin.pb.h"
#include "proto/kdc_key.pb.h"

namespace grpc {
class Status;
}

namespace mpckdc {

// 16 bytes, or an error that says whose (`what`).
absl::StatusOr<std::array<uint8_t, 16>> Bytes16(absl::string_view bytes, absl::string_view what);

// Takes the byte strings out of `in`.
absl::StatusOr<Job> JobFromProto(v1::Job& in);
TagRequest TagRequestFromProto(v1::TagRequest& in);
void JobResultToProto(JobResult&& in, v1::JobAnswer* out);
void TagResultToProto(const TagResult& in, v1::TagAnswer* out);
v1::Verdict VerdictToProto(Verdict verdict);

// Checks everything that a server may know about a key before it has shares of it.
absl::StatusOr<KeyInfo> KeyInfoFromProto(const v1::KeyInfo& in, absl::string_view realm);
void KeyInfoToProto(const KeyInfo& in, v1::KeyInfo* out);
absl::StatusOr<Gate> GateFromProto(v1::Gate gate);

// The same code and text.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_PROTO_CONVERT_H_
