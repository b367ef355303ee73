// SPDX-License-Identifier: Apache-2.0
//
// init-realm and status: what the three servers say of themselves.
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::admin {

using nlohmann::json;

// nlohmann::json finds it by its name.
static void to_json(json& out, const SurveyedServer& server) {
  out = {{"address", server.address}, {"reachable", server.error.ok()}};
  if (!server.error.ok()) {
    out["error"] = std::string(server.error.message());
    return;
  }
  const v1::StatusReply& s = server.status;
  out.update({{"party", s.party()},
              {"certificate", server.certificate},
              {"software", s.software()},
              {"version", s.version()},
              {"peer_protocol", s.peer_protocol()},
              {"realm", s.realm()},
              {"cluster", s.cluster()},
              {"epoch", s.epoch()},
              {"initialised", s.initialised()},
              {"keys", s.keys()},
              {"staged", s.staged()},
              {"peers_connected", s.peers_connected()},
              {"peer_skew_us_prev", s.peer_skew_us_prev()},
              {"peer_skew_us_next", s.peer_skew_us_next()},
              {"started_us", s.started_us()},
              {"clock_difference_us", absl::ToInt64Microseconds(server.clock_difference)},
              {"round_trip_us", absl::ToInt64Microseconds(server.round_trip)},
              {"certificate_expires_us", s.certificate_expires_us()},
              {"isa", s.isa()},
              {"batches", s.batches()},
              {"jobs", s.jobs()},
              {"jobs_failed", s.jobs_failed()},
              {"quotas", s.quotas()},
              {"jobs_over_quota", s.jobs_over_quota()},
              {"degraded", s.degraded()},
              {"audit_seq", s.audit_seq()},
              {"audit_head", absl::BytesToHexString(s.audit_head())}});
}

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
  server->clock_difference =
      absl::FromUnixMicros(server->status.time_us()) - (start + server->round_trip / 2);
}

std::string State(const v1::StatusReply& status) {
  if (!status.initialised()) return "no realm yet";
  if (!status.degraded().empty()) return "degraded";
  return status.peers_connected() ? "ready" : "waits for peers";
}

}  // namespace

absl::StatusOr<std::array<SurveyedServer, 3>> SurveyServers(Session& session) {
  ASSIGN_OR_RETURN(enroll::AdminServers * servers, session.Dial());
  std::array<SurveyedServer, 3> survey;
  servers->OnAll([&](int index, enroll::AdminClient& client) {
    Ask(client, session.config.timeout, &survey[index]);
    return absl::OkStatus();
  });
  return survey;
}

absl::StatusOr<ExitCode> InitRealmCommand(Session& session) {
  RETURN_IF_ERROR(session.Connect(/*allow_uninitialised=*/true).status());
  v1::InitRealmRequest request;
  request.set_realm(session.config.realm);
  request.set_cluster(static_cast<uint32_t>(session.config.cluster));
  std::array<bool, 3> already = {};
  absl::Status s = session.OnAll([&](int party, enroll::AdminClient& server) -> absl::Status {
    ASSIGN_OR_RETURN(auto reply, server.Call("InitRealm", &enroll::AdminStub::InitRealm, request,
                                             session.config.timeout));
    already[party] = reply.already();
    return absl::OkStatus();
  });
  if (!s.ok()) return Advise(s, "nothing is lost by running mpc-admin init-realm again");
  const bool all = already[0] && already[1] && already[2];
  session.console.Print(
      json{{"realm", session.config.realm}, {"cluster", session.config.cluster}, {"already", all}});
  session.console.Say(
      "realm ", session.config.realm, ", cluster ", session.config.cluster,
      all ? ": the three servers were ready already"
          : ": the three servers are ready; now kdb5_util create makes the KDC's database");
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> StatusCommand(Session& session) {
  ASSIGN_OR_RETURN(auto survey, SurveyServers(session));
  Table table = {{"SERVER", "PARTY", "STATE", "KEYS", "STAGED", "JOBS", "FAILED", "CLOCK", "ANSWER",
                  "CERTIFICATE UNTIL", "SOFTWARE"}};
  bool all_there = true, all_ready = true;
  for (const SurveyedServer& server : survey) {
    if (!server.error.ok()) {
      all_there = false;
      table.push_back({server.address, "-", "UNREACHABLE"});
      continue;
    }
    const v1::StatusReply& s = server.status;
    all_ready &= s.initialised() && s.degraded().empty() && s.peers_connected();
    table.push_back(
        {server.address, absl::StrCat(s.party()), State(s), absl::StrCat(s.keys()),
         absl::StrCat(s.staged()), absl::StrCat(s.jobs()), absl::StrCat(s.jobs_failed()),
         absl::StrFormat("%+.1f ms", absl::ToDoubleMilliseconds(server.clock_difference)),
         absl::StrFormat("%.1f ms", absl::ToDoubleMilliseconds(server.round_trip)),
         Day(absl::FromUnixMicros(s.certificate_expires_us())),
         absl::StrCat(s.software(), " ", s.isa())});
  }
  session.console.Print(json{{"realm", session.config.realm}, {"servers", survey}});
  session.console.Print(table);
  for (const SurveyedServer& server : survey) {
    if (!server.error.ok()) session.console.Remark(server.error.message());
    const std::string& why = server.status.degraded();
    if (!why.empty()) session.console.Remark("server ", server.address, ": ", why);
  }
  if (!all_there || !all_ready) session.console.Remark("  next: mpc-admin doctor");
  if (!all_there) return ExitCode::kUnavailable;
  return all_ready ? ExitCode::kOk : ExitCode::kFindings;
}

}  // namespace mpckdc::admin
