// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/health_service.h"

#include <string>

#include "mpc-server/service/proto_convert.h"
#include "mpc-server/service/log.h"
#include "mpc-server/wire/front_door.h"

namespace mpckdc {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr char kCall[] = "Health.Check";
constexpr char kLogins[] = "mpckdc.v1.KeyService";

}  // namespace

grpc::Status HealthService::Answer(const grpc::CallbackServerContext& context,
                                   const HealthCheckRequest& request, HealthCheckResponse* reply) {
  const absl::StatusOr<Caller> caller =
      tools_.doorkeeper->Admit(*context.auth_context(), kCall, {"kdc", "admin", "peer"});
  if (!caller.ok()) {
    tools_.refusals->Note(kCall, {{"from", context.peer()}, {"reason", Text(caller.status())}});
    return ToGrpc(caller.status());
  }
  if (tools_.known != nullptr) tools_.known->Meet(context.peer());
  if (request.service().empty()) {
    reply->set_status(HealthCheckResponse::SERVING);
  } else if (request.service() == kLogins) {
    reply->set_status(tools_.serves() ? HealthCheckResponse::SERVING
                                      : HealthCheckResponse::NOT_SERVING);
  } else {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such service");
  }
  return grpc::Status::OK;
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(Answer(*context, *request, reply));
  return reactor;
}

}  // namespace mpckdc
