// SPDX-License-Identifier: Apache-2.0
//
// Between proto/*.proto and the plain structs below the services. Sizes of fields are checked here,
// so that nothing below meets a handle that is not 16 bytes long.
#ifndef MPC_SERVER_SERVICE_PROTO_CONVERT_H_
#define MPC_SERVER_SERVICE_PROTO_CONVERT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mpc-server/job/job.h"
#include "mpc-server/package/package.h"
#include "proto/kdc_key.pb.h"

namespace grpc {
class Status;
}

namespace mpckdc {

// Takes the byte strings out of `in`.
absl::StatusOr<Job> JobFromProto(v1::Job& in);
TagRequest TagRequestFromProto(v1::TagRequest& in);
void JobResultToProto(JobResult&& in, v1::JobAnswer* out);
void TagResultToProto(const TagResult& in, v1::TagAnswer* out);
v1::Verdict VerdictToProto(Verdict verdict);

// The same code and text.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_PROTO_CONVERT_H_
