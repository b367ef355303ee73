// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/survey.h"

#include <thread>

#include "absl/time/clock.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::admin {
namespace {

void Ask(enroll::AdminClient& client, absl::Duration timeout, SurveyedServer* server) {
  server->address = client.name();
  // The first call makes the connection; the second one measures.
  absl::StatusOr<v1::StatusReply> reply = client.GetStatus(timeout);
  const absl::Time start = absl::Now();
  if (reply.ok()) reply = client.GetStatus(timeout);
  const absl::Time end = absl::Now();
  server->error = reply.status();
  if (!reply.ok()) return;
  server->status = *std::move(reply);
  server->certificate = client.certificate_name();
  server->round_trip = end - start;
  server->clock_difference = absl::FromUnixMicros(server->status.time_us()) -
                             (start + server->round_trip / 2);
}

}  // namespace

absl::StatusOr<std::array<SurveyedServer, 3>> SurveyServers(Session& session) {
  ASSIGN_OR_RETURN(enroll::AdminServers* servers, session.Dial());
  std::array<SurveyedServer, 3> survey;
  std::array<std::thread, 3> threads;
  for (int i = 0; i < 3; ++i) {
    threads[i] = std::thread([&, i] {
      Ask(servers->configured(i), session.config().timeout, &survey[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return survey;
}

}  // namespace mpckdc::admin
