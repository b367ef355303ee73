// SPDX-License-Identifier: Apache-2.0
//
// init-realm and status: what the three servers say of themselves.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/one_line.h"
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
              {"epoch_began_us", s.epoch_began_us()},
              {"refreshing", s.refreshing()},
              {"refresh_to_write", s.refresh_to_write()},
              {"refresh_written", s.refresh_written()},
              {"refresh_damaged", s.refresh_damaged()},
              {"refresh_trouble", s.refresh_trouble()},
              {"refresh_every_us", s.refresh_every_us()},
              {"receiving", s.receiving()},
              {"handed_over", s.handed_over()},
              {"left_out", s.left_out()},
              {"initialised", s.initialised()},
              {"keys", s.keys()},
              {"staged", s.staged()},
              {"retired", s.retired()},
              {"delete_grace_us", s.delete_grace_us()},
              {"max_renewable_life_us", s.max_renewable_life_us()},
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
              {"audit_head", absl::BytesToHexString(s.audit_head())},
              {"security", s.security()},
              {"protocol", s.protocol()},
              {"last_protocol", s.last_protocol()},
              {"garbled_batches", s.garbled_batches()},
              {"replicated_batches", s.replicated_batches()},
              {"peer_distance_us_prev", s.peer_distance_us_prev()},
              {"peer_distance_us_next", s.peer_distance_us_next()},
              {"peer_rate_prev", s.peer_rate_prev()},
              {"peer_rate_next", s.peer_rate_next()},
              {"different_records", s.different_records()},
              {"different_record", s.different_record()},
              {"quarantine", nullptr}});
  if (!s.has_quarantine()) return;
  const v1::Quarantine& q = s.quarantine();
  out["quarantine"] = {
      {"suspects", std::vector<uint32_t>(q.suspects().begin(), q.suspects().end())},
      {"text", q.text()},
      {"session", absl::BytesToHexString(q.session())},
      {"batch", q.batch()},
      {"time_us", q.time_us()}};
}

namespace {

// A server that lies may write what it likes.
void KeepOnOneLine(v1::StatusReply& status) {
  for (std::string* text :
       {status.mutable_software(), status.mutable_realm(), status.mutable_isa(),
        status.mutable_degraded(), status.mutable_quotas(), status.mutable_security(),
        status.mutable_different_record(), status.mutable_protocol(),
        status.mutable_last_protocol(), status.mutable_refresh_trouble()}) {
    *text = OnOneLine(*text);
  }
  if (status.has_quarantine()) {
    status.mutable_quarantine()->set_text(OnOneLine(status.quarantine().text()));
  }
}

void Ask(enroll::AdminClient& client, absl::Duration timeout, SurveyedServer* server) {
  server->address = client.name();
  // The first call makes the connection; the second one measures.
  absl::StatusOr<v1::StatusReply> reply = client.GetStatus(timeout);
  const absl::Time start = absl::Now();
  if (reply.ok()) reply = client.GetStatus(timeout);
  const absl::Time end = absl::Now();
  server->error = absl::Status(reply.status().code(), OnOneLine(reply.status().message()));
  if (!reply.ok()) return;
  server->status = *std::move(reply);
  KeepOnOneLine(server->status);
  server->certificate = client.certificate_name();
  server->round_trip = end - start;
  server->clock_difference =
      absl::FromUnixMicros(server->status.time_us()) - (start + server->round_trip / 2);
}

std::string State(const v1::StatusReply& status) {
  if (!status.initialised()) return "no realm yet";
  if (status.has_quarantine()) return "QUARANTINED";
  if (status.receiving()) return "receiving keys";
  if (!status.degraded().empty()) return "degraded";
  return status.peers_connected() ? "ready" : "waits for peers";
}

std::string Shown(const std::string& security) {
  return security.empty() ? "-" : security == "active" ? security : absl::AsciiStrToUpper(security);
}

// What the last batch was computed by, or what the server's administrator forces.
std::string ShownProtocol(const v1::StatusReply& status) {
  if (!status.protocol().empty() && status.protocol() != "auto") return status.protocol() + "!";
  return status.last_protocol().empty() ? "-" : status.last_protocol();
}

// Of the two lines: the longer way, the slower one.
std::string ShownDistance(const v1::StatusReply& status) {
  const int64_t us = std::max(status.peer_distance_us_prev(), status.peer_distance_us_next());
  return us <= 0 ? "-" : absl::StrFormat("%.2f ms", static_cast<double>(us) / 1e3);
}
std::string ShownRate(const v1::StatusReply& status) {
  uint64_t slowest = 0;
  for (const uint64_t rate : {status.peer_rate_prev(), status.peer_rate_next()}) {
    if (rate != 0) slowest = slowest == 0 ? rate : std::min(slowest, rate);
  }
  const double mbit = static_cast<double>(slowest) * 8 / 1e6;
  if (slowest == 0) return "-";
  return mbit < 1 ? absl::StrFormat("%.0f kb/s", mbit * 1e3) : absl::StrFormat("%.0f Mb/s", mbit);
}

void RemarkOn(const SurveyedServer& server, Console& console) {
  if (!server.error.ok()) return console.Remark(server.error.message());
  const v1::StatusReply& s = server.status;
  if (!s.degraded().empty()) console.Remark("server ", server.address, ": ", s.degraded());
  if (s.has_quarantine()) {
    console.Remark("server ", server.address, " is quarantined: ", TextOf(s.quarantine()));
  }
  if (!s.refresh_trouble().empty()) {
    console.Remark("server ", server.address, ": ", s.refresh_trouble());
  }
  if (s.refreshing()) {
    console.Remark("server ", server.address, " writes its records anew in share epoch ", s.epoch(),
                   ": ", s.refresh_written(), " of ", s.refresh_to_write());
  }
  if (s.different_records() > 0) {
    console.Remark("server ", server.address, ": ", s.different_records(),
                   " keys are refused: ", s.different_record());
  }
}

void RemarkOn(const std::array<SurveyedServer, 3>& survey, Console& console) {
  for (const SurveyedServer& server : survey) RemarkOn(server, console);
  const std::string differ = DifferentSecurity(survey);
  if (!differ.empty()) console.Remark(differ);
  const std::string forced = DifferentProtocols(survey);
  if (!forced.empty()) console.Remark(forced);
  if (AnySemiHonest(survey)) {
    console.Remark(
        "security is SEMI-HONEST, for benchmarks alone: whoever owns one server can compute keys "
        "of the realm");
  }
  if (absl::c_any_of(survey, [](const SurveyedServer& s) { return s.status.has_quarantine(); })) {
    console.Remark(SuspicionOf(survey).Text());
  }
}

}  // namespace

bool AnySemiHonest(const std::array<SurveyedServer, 3>& survey) {
  return absl::c_any_of(
      survey, [](const SurveyedServer& s) { return s.status.security() == "semi-honest"; });
}

std::string DifferentSecurity(const std::array<SurveyedServer, 3>& survey) {
  std::set<std::string> modes, texts;
  for (const SurveyedServer& server : survey) {
    const v1::StatusReply& s = server.status;
    if (!server.error.ok() || s.security().empty()) continue;
    modes.insert(s.security());
    texts.insert(absl::StrCat("party ", s.party(), " has ", s.security()));
  }
  if (modes.size() <= 1) return "";
  return absl::StrCat("the servers differ in [engine] security and do not work together: ",
                      absl::StrJoin(texts, ", "));
}

std::string DifferentProtocols(const std::array<SurveyedServer, 3>& survey) {
  std::set<std::string> forced, texts;
  for (const SurveyedServer& server : survey) {
    const v1::StatusReply& s = server.status;
    if (!server.error.ok() || s.protocol().empty() || s.protocol() == "auto") continue;
    forced.insert(s.protocol());
    texts.insert(absl::StrCat("party ", s.party(), " forces ", s.protocol()));
  }
  if (forced.size() <= 1) return "";
  return absl::StrCat("the servers differ in [engine] protocol and do not work together: ",
                      absl::StrJoin(texts, ", "));
}

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
  ASSIGN_OR_RETURN(const enroll::AdminServers* servers,
                   session.Connect(/*allow_uninitialised=*/true));
  if (const enroll::LostStores& lost = servers->lost(); lost.any()) {
    return Advise(absl::FailedPreconditionError(lost.What()), lost.WayOut());
  }
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
  const bool some = already[0] || already[1] || already[2];
  session.console.Print(
      json{{"realm", session.config.realm}, {"cluster", session.config.cluster}, {"already", all}});
  session.console.Say(
      "realm ", session.config.realm, ", cluster ", session.config.cluster,
      all    ? ": the three servers were ready already"
      : some ? ": the three servers are ready, some were already; mpc-admin doctor says which keys "
               "the others lack"
             : ": the three servers are ready; now kdb5_util create makes the KDC's database");
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> StatusCommand(Session& session) {
  ASSIGN_OR_RETURN(auto survey, SurveyServers(session));
  Table table = {{"SERVER", "PARTY", "STATE", "EPOCH", "KEYS", "DELETED", "STAGED", "JOBS",
                  "FAILED", "CLOCK", "ANSWER", "CERTIFICATE UNTIL", "SECURITY", "PROTOCOL",
                  "DISTANCE", "RATE", "SOFTWARE"}};
  bool all_there = true, all_ready = true;
  for (const SurveyedServer& server : survey) {
    if (!server.error.ok()) {
      all_there = false;
      table.push_back({server.address, "-", "UNREACHABLE"});
      continue;
    }
    const v1::StatusReply& s = server.status;
    all_ready &= s.initialised() && s.degraded().empty() && s.peers_connected() &&
                 !s.has_quarantine() && s.different_records() == 0 &&
                 s.refresh_trouble().empty() && !s.receiving();
    table.push_back(
        {server.address, absl::StrCat(s.party()), State(s), absl::StrCat(s.epoch()),
         absl::StrCat(s.keys()), absl::StrCat(s.retired()), absl::StrCat(s.staged()),
         absl::StrCat(s.jobs()), absl::StrCat(s.jobs_failed()),
         absl::StrFormat("%+.1f ms", absl::ToDoubleMilliseconds(server.clock_difference)),
         absl::StrFormat("%.1f ms", absl::ToDoubleMilliseconds(server.round_trip)),
         Day(absl::FromUnixMicros(s.certificate_expires_us())), Shown(s.security()),
         ShownProtocol(s), ShownDistance(s), ShownRate(s),
         absl::StrCat(s.software(), " ", s.isa())});
  }
  const Suspicion suspicion = SuspicionOf(survey);
  session.console.Print(json{{"realm", session.config.realm},
                             {"servers", survey},
                             {"suspects", suspicion.named},
                             {"possible_suspects", suspicion.possible}});
  session.console.Print(table);
  RemarkOn(survey, session.console);
  if (!all_there || !all_ready) session.console.Remark("  next: mpc-admin doctor");
  if (!all_there) return ExitCode::kUnavailable;
  return all_ready ? ExitCode::kOk : ExitCode::kFindings;
}

}  // namespace mpckdc::admin
