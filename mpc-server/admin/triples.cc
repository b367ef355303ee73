// SPDX-License-Identifier: Apache-2.0
//
// What the machines of several triples say, beside each other. A party's machines share its
// database, and with it all but their addresses, their certificates and their numbers.
#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/session.h"
#include "mpc-server/base/one_line.h"
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
  server->error = absl::Status(reply.status().code(), OnOneLine(reply.status().message()));
  if (!reply.ok()) return;
  server->status = *std::move(reply);
  server->certificate = client.certificate_name();
  server->round_trip = end - start;
  server->clock_difference =
      absl::FromUnixMicros(server->status.time_us()) - (start + server->round_trip / 2);
}

Survey AskTriple(enroll::AdminServers& servers, absl::Duration timeout) {
  Survey survey;
  servers.OnAll([&](int index, enroll::AdminClient& client) {
    Ask(client, timeout, &survey[index]);
    return absl::OkStatus();
  });
  return survey;
}

bool AllAnswer(const Survey& survey) {
  return absl::c_all_of(survey, [](const SurveyedServer& server) { return server.error.ok(); });
}

// What keeps a machine from working; the worst first, as it brings the others about.
constexpr struct {
  bool (*holds)(const SurveyedServer&);
  const char* says;
} kUnfit[] = {
    {[](const SurveyedServer& s) { return !s.error.ok(); }, "does not answer"},
    {[](const SurveyedServer& s) {
       return s.status.has_database() && !s.status.database().reachable();
     },
     "does not reach its database"},
    {[](const SurveyedServer& s) { return !s.status.initialised(); }, "has no realm yet"},
    {[](const SurveyedServer& s) { return s.status.has_quarantine(); }, "is quarantined"},
    {[](const SurveyedServer& s) { return s.status.receiving(); }, "has not all keys yet"},
    {[](const SurveyedServer& s) { return !s.status.degraded().empty(); }, "is degraded"},
    {[](const SurveyedServer& s) { return !s.status.peers_connected(); },
     "is not connected to both of its peers"},
};

// Of a party's machine, what must be the same as at its others; by what it is called.
std::map<std::string, std::string> SharedFacts(const v1::StatusReply& s) {
  return {{"realm", s.realm()},
          {"cluster", absl::StrCat(s.cluster())},
          {"[store] backend", s.has_database() ? "postgresql" : "a file of its own"},
          {"database (the cluster's identifier)",
           s.database().reachable() ? absl::StrCat(s.database().system()) : ""},
          {"[policy] clock_skew", absl::FormatDuration(absl::Microseconds(s.clock_skew_us()))},
          {"[policy] delete_grace", absl::FormatDuration(absl::Microseconds(s.delete_grace_us()))},
          {"[policy] max_renewable_life",
           absl::FormatDuration(absl::Microseconds(s.max_renewable_life_us()))},
          {"[quota]", s.quotas()},
          {"[engine] security", s.security()},
          {"[engine] protocol", s.protocol()}};
}

// One may be a moment ahead in a refresh; and one that does not reach its peers looks which epoch
// its party is in when it meets them again.
bool SameEpoch(const v1::StatusReply& a, const v1::StatusReply& b) {
  if (!(a.epoch() < b.epoch() ? a : b).peers_connected()) return true;
  const uint64_t older = std::min(a.epoch(), b.epoch()), newer = std::max(a.epoch(), b.epoch());
  return older == newer || (older + 1 == newer && (a.refreshing() || b.refreshing()));
}

// Of two machines of a party; `differ` collects sentences.
void CompareMachines(const SurveyedServer& one, const SurveyedServer& other,
                     std::vector<std::string>* differ) {
  const std::string whose =
      absl::StrCat("party ", one.status.party(), ": servers ", one.address, " and ", other.address);
  if (one.status.triple() == other.status.triple()) {
    differ->push_back(absl::StrCat(whose, " both have triple = ", one.status.triple(),
                                   ": give each of them a number of its own"));
  }
  const auto first = SharedFacts(one.status), second = SharedFacts(other.status);
  for (const auto& [what, value] : first) {
    const std::string& there = second.at(what);
    if (value == there || value.empty() || there.empty()) continue;
    differ->push_back(absl::StrCat(whose, " differ in ", what, ": ", value, " / ", there));
  }
  if (!SameEpoch(one.status, other.status)) {
    differ->push_back(absl::StrCat(whose, " are in share epochs ", one.status.epoch(), " and ",
                                   other.status.epoch()));
  }
  if (one.status.package_key() != other.status.package_key()) {
    differ->push_back(absl::StrCat(whose,
                                   " do not share one store: each has a key of its own "
                                   "for what is enrolled"));
  }
}

}  // namespace

absl::StatusOr<std::vector<Survey>> SurveyTriples(Session& session) {
  ASSIGN_OR_RETURN(std::vector<enroll::AdminServers> * triples, session.DialAll());
  std::vector<Survey> surveys(triples->size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < triples->size(); ++i) {
    threads.emplace_back([&, i] { surveys[i] = AskTriple((*triples)[i], session.config.timeout); });
  }
  for (std::thread& thread : threads) thread.join();
  return surveys;
}

absl::StatusOr<Survey> SurveyServers(Session& session) {
  ASSIGN_OR_RETURN(const std::vector<Survey> all, SurveyTriples(session));
  if (AllAnswer(all[session.triple()])) return all[session.triple()];
  const auto good = absl::c_find_if(all, AllAnswer);
  session.Choose(good == all.end() ? 0 : static_cast<size_t>(good - all.begin()));
  return all[session.triple()];
}

std::optional<uint32_t> TripleNumber(const Survey& survey) {
  for (const SurveyedServer& server : survey) {
    if (server.error.ok()) return server.status.triple();
  }
  return std::nullopt;
}

std::string TripleOf(const Survey& survey) {
  const std::optional<uint32_t> number = TripleNumber(survey);
  return number.has_value() ? absl::StrCat(*number) : "?";
}

std::string WhyNotHealthy(const Survey& survey) {
  for (const auto& unfit : kUnfit) {
    for (const SurveyedServer& server : survey) {
      if (unfit.holds(server)) return absl::StrCat("server ", server.address, " ", unfit.says);
    }
  }
  for (size_t i = 0; i < survey.size(); ++i) {
    const SurveyedServer &one = survey[i], &next = survey[(i + 1) % survey.size()];
    const std::string both = absl::StrCat("servers ", one.address, " and ", next.address);
    if (one.status.party() == next.status.party()) {
      return absl::StrCat(both, " are both of party ", one.status.party());
    }
    if (one.status.triple() != next.status.triple()) {
      return absl::StrCat(both, " are of triples ", one.status.triple(), " and ",
                          next.status.triple());
    }
  }
  return "";
}

std::vector<std::string> WrongWithinParties(const std::vector<Survey>& triples) {
  std::map<uint32_t, std::vector<const SurveyedServer*>> machines;
  for (const Survey& survey : triples) {
    for (const SurveyedServer& server : survey) {
      if (server.error.ok()) machines[server.status.party()].push_back(&server);
    }
  }
  std::vector<std::string> wrong;
  for (const auto& [party, servers] : machines) {
    for (size_t i = 1; i < servers.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        // One number twice is seen by any two; all else, by whoever is compared with the first.
        if (j == 0 || servers[i]->status.triple() == servers[j]->status.triple()) {
          CompareMachines(*servers[j], *servers[i], &wrong);
        }
      }
    }
  }
  return wrong;
}

}  // namespace mpckdc::admin
