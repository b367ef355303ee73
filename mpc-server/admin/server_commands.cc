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

// null: the store is a file of the server's own.
static json DatabaseJson(const v1::StatusReply& status) {
  if (!status.has_database()) return nullptr;
  const v1::DatabaseStatus& d = status.database();
  return {{"reachable", d.reachable()},
          {"trouble", d.trouble()},
          {"where", d.where()},
          {"system", d.system()},
          {"synchronous", d.synchronous()},
          {"answer_us", d.answer_us()},
          {"commit_us", d.commit_us()},
          {"commits", d.commits()},
          {"connections", d.connections()},
          {"cache",
           {{"keys", d.cache_keys()},
            {"bytes", d.cache_bytes()},
            {"max_bytes", d.cache_max_bytes()},
            {"found", d.cache_found()},
            {"missed", d.cache_missed()}}}};
}

static json CallersJson(const v1::StatusReply& status) {
  json callers = json::array();
  for (const v1::CallerCertificate& caller : status.callers()) {
    callers.push_back({{"name", caller.name()},
                       {"expires_us", caller.expires_us()},
                       {"seen_us", caller.seen_us()}});
  }
  return callers;
}

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
              {"triple", s.triple()},
              {"epoch", s.epoch()},
              {"epoch_began_us", s.epoch_began_us()},
              {"refreshing", s.refreshing()},
              {"refresh_to_write", s.refresh_to_write()},
              {"refresh_written", s.refresh_written()},
              {"refresh_damaged", s.refresh_damaged()},
              {"refresh_trouble", s.refresh_trouble()},
              {"refresh_waits", s.refresh_waits()},
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
              {"clock_skew_us", s.clock_skew_us()},
              {"database", DatabaseJson(s)},
              {"peers_connected", s.peers_connected()},
              {"peer_skew_us_prev", s.peer_skew_us_prev()},
              {"peer_skew_us_next", s.peer_skew_us_next()},
              {"started_us", s.started_us()},
              {"clock_difference_us", absl::ToInt64Microseconds(server.clock_difference)},
              {"round_trip_us", absl::ToInt64Microseconds(server.round_trip)},
              {"certificate_expires_us", s.certificate_expires_us()},
              {"authority_expires_us", s.authority_expires_us()},
              {"certificate_trouble", s.certificate_trouble()},
              {"callers", CallersJson(s)},
              {"isa", s.isa()},
              {"batches", s.batches()},
              {"jobs", s.jobs()},
              {"jobs_failed", s.jobs_failed()},
              {"jobs_waiting", s.jobs_waiting()},
              {"logins", s.logins()},
              {"batches_waited_us", s.batches_waited_us()},
              {"batches_agreed_us", s.batches_agreed_us()},
              {"batches_computed_us", s.batches_computed_us()},
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


std::string DistanceOf(const v1::StatusReply& status) {
  const int64_t us = std::max(status.peer_distance_us_prev(), status.peer_distance_us_next());
  return us <= 0 ? "-" : absl::StrFormat("%.2f ms", static_cast<double>(us) / 1e3);
}

std::string StateOf(const v1::StatusReply& status) {
  if (status.has_database() && !status.database().reachable()) return "NO DATABASE";
  if (!status.initialised()) return "no realm yet";
  if (status.has_quarantine()) return "QUARANTINED";
  if (status.receiving()) return "receiving keys";
  if (!status.degraded().empty()) return "degraded";
  return status.peers_connected() ? "ready" : "waits for peers";
}

namespace {

std::string Shown(const std::string& security) {
  return security.empty() ? "-" : security == "active" ? security : absl::AsciiStrToUpper(security);
}

// What the last batch was computed by, or what the server's administrator forces.
std::string ShownProtocol(const v1::StatusReply& status) {
  if (!status.protocol().empty() && status.protocol() != "auto") return status.protocol() + "!";
  return status.last_protocol().empty() ? "-" : status.last_protocol();
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
  if (s.has_database() && !s.database().reachable()) {
    console.Remark("server ", server.address, ": ", s.database().trouble());
  }
  if (!s.degraded().empty()) console.Remark("server ", server.address, ": ", s.degraded());
  if (s.has_quarantine()) {
    console.Remark("server ", server.address, " is quarantined: ", TextOf(s.quarantine()));
  }
  if (!s.refresh_trouble().empty()) {
    console.Remark("server ", server.address, ": ", s.refresh_trouble());
  }
  if (!s.refresh_waits().empty()) {
    console.Remark("server ", server.address, ": ", s.refresh_waits());
  } else if (s.refreshing()) {
    console.Remark("server ", server.address, " writes its records anew in share epoch ", s.epoch(),
                   ": ", s.refresh_written(), " of ", s.refresh_to_write());
  }
  if (s.different_records() > 0) {
    console.Remark("server ", server.address, ": ", s.different_records(),
                   " keys are refused: ", s.different_record());
  }
}

void RemarkOn(const Survey& survey, Console& console) {
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

bool AnySemiHonest(const Survey& survey) {
  return absl::c_any_of(
      survey, [](const SurveyedServer& s) { return s.status.security() == "semi-honest"; });
}

std::string DifferentSecurity(const Survey& survey) {
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

std::string DifferentProtocols(const Survey& survey) {
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

// The other machines of the parties share the databases in which it is written now; they are told,
// so that they need not find out. One that does not answer reads it at its start.
static void InitOthers(Session& session, const v1::InitRealmRequest& request) {
  const size_t done = session.triple();
  for (size_t i = 0; i < session.config.triples.size(); ++i) {
    if (i == done) continue;
    session.Choose(i);
    const absl::Status told = session.OnAll([&](int, enroll::AdminClient& server) {
      return server
          .Call("InitRealm", &enroll::AdminStub::InitRealm, request, session.config.timeout)
          .status();
    });
    if (!told.ok()) session.console.Remark(told.message());
  }
  session.Choose(done);
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
  InitOthers(session, request);
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

namespace {

bool IsReady(const v1::StatusReply& s) {
  return s.initialised() && s.degraded().empty() && s.peers_connected() && !s.has_quarantine() &&
         s.different_records() == 0 && s.refresh_trouble().empty() && !s.receiving() &&
         (!s.has_database() || s.database().reachable());
}

std::vector<std::string> RowOf(const SurveyedServer& server) {
  if (!server.error.ok()) return {server.address, "-", "-", "UNREACHABLE"};
  const v1::StatusReply& s = server.status;
  return {server.address,
          absl::StrCat(s.party()),
          absl::StrCat(s.triple()),
          StateOf(s),
          absl::StrCat(s.epoch()),
          absl::StrCat(s.keys()),
          absl::StrCat(s.retired()),
          absl::StrCat(s.staged()),
          absl::StrCat(s.jobs()),
          absl::StrCat(s.jobs_failed()),
          absl::StrFormat("%+.1f ms", absl::ToDoubleMilliseconds(server.clock_difference)),
          absl::StrFormat("%.1f ms", absl::ToDoubleMilliseconds(server.round_trip)),
          Day(absl::FromUnixMicros(s.certificate_expires_us())),
          Shown(s.security()),
          ShownProtocol(s),
          DistanceOf(s),
          ShownRate(s),
          absl::StrCat(s.software(), " ", s.isa())};
}

// Empty where all have their stores in files.
Table DatabaseTable(const std::vector<Survey>& triples) {
  Table table = {{"SERVER", "DATABASE", "STATE", "STANDBY", "READ", "COMMIT", "COMMITS",
                  "CONNECTIONS", "CACHED KEYS", "CACHE MB", "CACHE HITS"}};
  const auto ms = [](int64_t us) {
    return us == 0 ? "-" : absl::StrFormat("%.2f ms", static_cast<double>(us) / 1e3);
  };
  for (const Survey& survey : triples) {
    for (const SurveyedServer& server : survey) {
      if (!server.error.ok() || !server.status.has_database()) continue;
      const v1::DatabaseStatus& d = server.status.database();
      const uint64_t asked = d.cache_found() + d.cache_missed();
      table.push_back({server.address, d.where().empty() ? "-" : d.where(),
                       d.reachable() ? "reached" : "UNREACHABLE",
                       d.synchronous() ? "synchronous" : "-", ms(d.answer_us()), ms(d.commit_us()),
                       absl::StrCat(d.commits()), absl::StrCat(d.connections()),
                       absl::StrCat(d.cache_keys()),
                       absl::StrFormat("%.1f of %.0f", static_cast<double>(d.cache_bytes()) / 1e6,
                                       static_cast<double>(d.cache_max_bytes()) / 1e6),
                       asked == 0 ? "-" : absl::StrCat(d.cache_found() * 100 / asked, " %")});
    }
  }
  return table.size() > 1 ? table : Table();
}

Table TripleTable(const std::vector<Survey>& triples) {
  Table table = {{"TRIPLE", "P0", "P1", "P2", "STATE"}};
  for (const Survey& survey : triples) {
    std::vector<std::string> row = {TripleOf(survey), "-", "-", "-", "healthy"};
    for (const SurveyedServer& server : survey) {
      if (server.error.ok() && server.status.party() < 3) {
        row[1 + server.status.party()] = server.address;
      }
    }
    if (std::string why = WhyNotHealthy(survey); !why.empty()) row.back() = std::move(why);
    table.push_back(std::move(row));
  }
  return table;
}

json TriplesJson(const std::vector<Survey>& triples) {
  json list = json::array();
  for (const Survey& survey : triples) {
    const std::optional<uint32_t> number = TripleNumber(survey);
    const std::string why = WhyNotHealthy(survey);
    const Suspicion suspicion = SuspicionOf(survey);
    json triple = {{"triple", nullptr},
                   {"healthy", why.empty()},
                   {"why", why},
                   {"suspects", suspicion.named},
                   {"possible_suspects", suspicion.possible}};
    if (number.has_value()) triple["triple"] = *number;
    for (const SurveyedServer& server : survey) triple["servers"].push_back(server.address);
    list.push_back(std::move(triple));
  }
  return list;
}

json StatusJson(const Session& session, const std::vector<Survey>& triples) {
  json servers = json::array();
  for (const Survey& survey : triples) {
    for (const SurveyedServer& server : survey) servers.push_back(server);
  }
  // Of a realm with one triple these two were here first.
  const Suspicion suspicion = SuspicionOf(triples.front());
  return {{"realm", session.config.realm},
          {"servers", std::move(servers)},
          {"triples", TriplesJson(triples)},
          {"suspects", suspicion.named},
          {"possible_suspects", suspicion.possible}};
}

}  // namespace

absl::StatusOr<ExitCode> StatusCommand(Session& session) {
  ASSIGN_OR_RETURN(const std::vector<Survey> triples, SurveyTriples(session));
  Table table = {{"SERVER", "PARTY", "TRIPLE", "STATE", "EPOCH", "KEYS", "DELETED", "STAGED",
                  "JOBS", "FAILED", "CLOCK", "ANSWER", "CERTIFICATE UNTIL", "SECURITY", "PROTOCOL",
                  "DISTANCE", "RATE", "SOFTWARE"}};
  bool all_there = true, all_ready = true;
  for (const Survey& survey : triples) {
    for (const SurveyedServer& server : survey) {
      all_there &= server.error.ok();
      all_ready &= !server.error.ok() || IsReady(server.status);
      table.push_back(RowOf(server));
    }
  }
  const std::vector<std::string> wrong = WrongWithinParties(triples);
  all_ready &= wrong.empty();
  all_ready &= absl::c_all_of(triples, [](const Survey& s) { return WhyNotHealthy(s).empty(); });
  session.console.Print(StatusJson(session, triples));
  session.console.Print(table);
  if (triples.size() > 1) session.console.Print(TripleTable(triples));
  if (const Table databases = DatabaseTable(triples); !databases.empty()) {
    session.console.Print(databases);
  }
  for (const Survey& survey : triples) RemarkOn(survey, session.console);
  // Of several the table has said it. Where each is ready, it is that they are not the three.
  if (triples.size() == 1 && absl::c_all_of(triples.front(), [](const SurveyedServer& server) {
        return server.error.ok() && IsReady(server.status);
      })) {
    const std::string why = WhyNotHealthy(triples.front());
    if (!why.empty()) session.console.Remark(why);
  }
  for (const std::string& what : wrong) session.console.Remark(what);
  if (!all_there || !all_ready) session.console.Remark("  next: mpc-admin doctor");
  if (!all_there) return ExitCode::kUnavailable;
  return all_ready ? ExitCode::kOk : ExitCode::kFindings;
}

}  // namespace mpckdc::admin
