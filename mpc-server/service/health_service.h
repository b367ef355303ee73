// SPDX-License-Identifier: Apache-2.0
//
// The health service of proto/health.proto. It says one bit, and to nobody who has no certificate
// of the realm: whether this server serves is also when an attack on it succeeded.
#ifndef MPC_SERVER_SERVICE_HEALTH_SERVICE_H_
#define MPC_SERVER_SERVICE_HEALTH_SERVICE_H_

#include <functional>

#include "mpc-server/service/caller.h"
#include "mpc-server/service/refusal_log.h"
#include "proto/health.grpc.pb.h"

namespace mpckdc {

class Acquaintances;

struct HealthServiceTools {  // not owned; must outlive the service
  const Doorkeeper* doorkeeper = nullptr;
  RefusalLog* refusals = nullptr;
  Acquaintances* known = nullptr;  // may be null
  std::function<bool()> serves;    // the logins of a KDC
};

class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  explicit HealthService(HealthServiceTools tools) : tools_(std::move(tools)) {}

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* reply) override;

 private:
  grpc::Status Answer(const grpc::CallbackServerContext& context,
                      const grpc::health::v1::HealthCheckRequest& request,
                      grpc::health::v1::HealthCheckResponse* reply);

  const HealthServiceTools tools_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_HEALTH_SERVICE_H_
