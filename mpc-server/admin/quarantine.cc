// SPDX-License-Identifier: Apache-2.0
//
// readmit, and what the servers say together about one that deviated.
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/one_line.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;

constexpr uint32_t kServers = 3;

bool Accuses(const v1::Quarantine& quarantine, uint32_t party) {
  return absl::c_linear_search(quarantine.suspects(), party);
}

bool SawSomething(const SurveyedServer& server) {
  return server.error.ok() && server.status.has_quarantine();
}

// Those who saw something, and name others than this party.
size_t NamedByOthers(const Survey& survey, uint32_t party, bool but_itself) {
  return static_cast<size_t>(absl::c_count_if(survey, [=](const SurveyedServer& server) {
    return SawSomething(server) && !Accuses(server.status.quarantine(), party) &&
           !(but_itself && server.status.party() == party);
  }));
}

bool Answers(const Survey& survey, uint32_t party) {
  return absl::c_any_of(survey, [=](const SurveyedServer& server) {
    return server.error.ok() && server.status.party() == party;
  });
}

// Whether it was this party if one deviates. Where no server says that it is this party, one of those
// who accuse may be it, under the number of one that does not answer.
bool MayBe(const Survey& survey, uint32_t party) {
  const size_t not_by = NamedByOthers(survey, party, /*but_itself=*/true);
  return not_by == 0 || (not_by == 1 && !Answers(survey, party));
}

// One of them hides behind the other's number.
bool TwoAreOneParty(const Survey& survey) {
  std::set<uint32_t> parties;
  return absl::c_any_of(survey, [&](const SurveyedServer& server) {
    return server.error.ok() && !parties.insert(server.status.party()).second;
  });
}

std::string Parties(const std::vector<uint32_t>& parties) {
  return absl::StrCat("party ", absl::StrJoin(parties, " or party "));
}

}  // namespace

std::string TextOf(const v1::Quarantine& quarantine) {
  std::string who = absl::StrCat("party ", absl::StrJoin(quarantine.suspects(), " or party "));
  return absl::StrCat(
      who, " deviated on ",
      absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixMicros(quarantine.time_us()),
                       absl::UTCTimeZone()),
      ": ", OnOneLine(quarantine.text()));
}

Suspicion SuspicionOf(const Survey& survey) {
  Suspicion found;
  if (absl::c_none_of(survey, SawSomething)) return found;
  if (TwoAreOneParty(survey)) {
    found.possible = {0, 1, 2};
    return found;
  }
  for (uint32_t party = 0; party < kServers; ++party) {
    if (NamedByOthers(survey, party, /*but_itself=*/false) == 0) found.named.push_back(party);
    if (MayBe(survey, party)) found.possible.push_back(party);
  }
  return found;
}

std::string Suspicion::Text() const {
  if (possible.empty()) return "more than one server deviates: no one alone can be what they saw";
  if (named.empty()) {
    return absl::StrCat("they contradict each other: ", Parties(possible),
                        " deviated, and what it says that it saw is no evidence");
  }
  std::string text = absl::StrCat("what the servers saw fits ", Parties(named));
  if (named == possible) return text;
  std::vector<uint32_t> others;
  absl::c_set_difference(possible, named, std::back_inserter(others));
  return absl::StrCat(text, "; or it was ", Parties(others), ", which only says that it saw it");
}

// Of one triple: what was ended goes to `ended`.
static absl::Status Readmit(Session& session, size_t triple, json* ended) {
  ASSIGN_OR_RETURN(const enroll::AdminServers* servers,
                   session.Use(triple, /*allow_uninitialised=*/true));
  std::array<v1::ReadmitReply, kServers> replies;
  std::array<bool, kServers> asked = {};
  const absl::Status status =
      session.OnAll([&](int party, enroll::AdminClient& server) -> absl::Status {
        ASSIGN_OR_RETURN(replies[party], server.Call("Readmit", &enroll::AdminStub::Readmit,
                                                     v1::ReadmitRequest(), session.config.timeout));
        asked[party] = true;
        return absl::OkStatus();
      });
  for (uint32_t party = 0; party < kServers; ++party) {
    if (!asked[party] || !replies[party].has_ended()) continue;
    const std::string what = TextOf(replies[party].ended());
    ended->push_back({{"party", party}, {"triple", servers->triple()}, {"ended", what}});
    session.console.Say("party ", party, " ended its quarantine: ", what);
  }
  return Advise(status, "when that server answers run mpc-admin readmit again");
}

// A quarantine is each machine's own, so all triples are asked, whatever becomes of one.
absl::StatusOr<ExitCode> ReadmitCommand(Session& session) {
  json ended = json::array();
  absl::Status status;
  for (size_t triple = 0; triple < session.config.triples.size(); ++triple) {
    status.Update(Readmit(session, triple, &ended));
  }
  RETURN_IF_ERROR(status);
  session.console.Print(json{{"readmitted", ended}});
  if (!ended.empty()) return ExitCode::kOk;
  session.console.Say("nothing to readmit: none of the three servers is quarantined");
  return ExitCode::kRefused;
}

}  // namespace mpckdc::admin
