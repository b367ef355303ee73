// SPDX-License-Identifier: Apache-2.0
//
// catch-up: a party's store that was put back receives what it lacks. replace-party: one that lost
// everything is rebuilt from the two others, its records verified, and all shares refreshed.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/one_line.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/enroll/lost_stores.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;

constexpr size_t kServers = 3;
constexpr absl::Duration kLook = absl::Milliseconds(500);
// Keys that are handed over in a second, at least, and so many calls' time besides.
constexpr double kSlowest = 10;
constexpr int kPatience = 10;

// By party; there is one server of each.
using Statuses = std::array<v1::StatusReply, kServers>;

absl::StatusOr<Statuses> SurveyByParty(Session& session) {
  ASSIGN_OR_RETURN(const auto survey, SurveyServers(session));
  Statuses found;
  std::array<bool, kServers> seen = {};
  for (const SurveyedServer& server : survey) {
    if (!server.error.ok()) return server.error;
    const uint32_t party = server.status.party();
    if (party >= kServers || seen[party]) {
      return absl::FailedPreconditionError("the servers are not parties 0, 1 and 2");
    }
    seen[party] = true;
    found[party] = server.status;
  }
  return found;
}

absl::StatusOr<uint32_t> PartyOperand(Session& session, absl::string_view command) {
  uint32_t party = 0;
  if (absl::SimpleAtoi(session.options.operands.at(0), &party) && party < kServers) return party;
  return BadUsage(command, "PARTY is 0, 1 or 2");
}

absl::Status CheckSurvey(const Statuses& survey, uint32_t party) {
  const v1::StatusReply& lost = survey[party];
  if (lost.receiving() || lost.handed_over() > 0) return absl::OkStatus();  // begun before
  if (lost.initialised() || lost.keys() > 0 || lost.staged() > 0) {
    return Advise(
        absl::FailedPreconditionError(absl::StrCat("party ", party, " has ", lost.keys(),
                                                   " keys: what is replaced must be empty")),
        "if its store is good only start it; if it was replaced, and its refresh is still to be "
        "done: mpc-admin refresh; if its store is bad, stop it, move its data directory away and "
        "start it again");
  }
  if (const enroll::LostStores lost = enroll::FindLostStores(survey); lost.empty.size() > 1) {
    return Advise(absl::FailedPreconditionError(lost.What()), lost.WayOut());
  }
  for (uint32_t other = 0; other < kServers; ++other) {
    if (other == party) continue;
    if (!survey[other].initialised()) {
      return absl::FailedPreconditionError(
          absl::StrCat("party ", other, " is not initialised: there is nothing to rebuild from"));
    }
    const std::string& waits = survey[other].refresh_waits();
    if (survey[other].refreshing() && !waits.empty()) {
      return Advise(absl::FailedPreconditionError(absl::StrCat(
                        "party ", other, ": the last refresh has not ended: ", OnOneLine(waits))),
                    kStartThoseMachines);
    }
    if (survey[other].refreshing()) {
      return Advise(absl::FailedPreconditionError(absl::StrCat(
                        "party ", other, " still writes the records of the last refresh")),
                    "wait until mpc-admin status says that it is written, then run it again");
    }
  }
  return absl::OkStatus();
}

absl::Status AskAll(Session& session, uint32_t party) {
  ASSIGN_OR_RETURN(enroll::AdminServers * servers, session.Dial());
  v1::ReplaceRequest request;
  request.set_party(party);
  const absl::Duration timeout = std::max(session.config.timeout, limits::kRefreshTimeout * 1.2);
  absl::Status result;
  for (const absl::Status& status : servers->OnAll([&](int, enroll::AdminClient& server) {
         return server.Call("Replace", &enroll::AdminStub::Replace, request, timeout).status();
       })) {
    result.Update(status);
  }
  return result;
}

// A party that says for ever that it receives is not waited for for ever, nor two others of whom
// one hands over nothing, or has more each time. `then`: what is to be done when it has them all.
absl::StatusOr<v1::StatusReply> Watch(Session& session, uint32_t party, const std::string& then) {
  std::optional<absl::Time> until;
  for (;;) {
    absl::SleepFor(kLook);
    ASSIGN_OR_RETURN(const Statuses now, SurveyByParty(session));
    if (!until.has_value()) {
      const uint64_t fewer =
          std::min(now[(party + 1) % kServers].keys(), now[(party + 2) % kServers].keys());
      until = absl::Now() + kPatience * session.config.timeout +
              absl::Seconds(static_cast<double>(fewer) / kSlowest);
    }
    if (now[party].receiving() && absl::Now() >= *until) {
      session.console.EndProgress();
      return Advise(
          absl::DataLossError(absl::StrCat("party ", party,
                                           " says that it still receives keys, and has ",
                                           now[party].keys(), ": longer than its keys take")),
          absl::StrCat("it goes on by itself: mpc-admin status shows how far it is", then,
                       ". If nothing comes any more, see the logs of the three: one of them may "
                       "lie"));
    }
    const uint64_t total =
        std::max(now[(party + 1) % kServers].keys(), now[(party + 2) % kServers].keys());
    session.console.Progress(now[party].keys(), std::max(total, now[party].keys()), "keys");
    if (now[party].receiving()) continue;
    session.console.EndProgress();
    return now[party];
  }
}

}  // namespace

absl::StatusOr<ExitCode> CatchUpCommand(Session& session) {
  ASSIGN_OR_RETURN(const uint32_t party, PartyOperand(session, "catch-up"));
  ASSIGN_OR_RETURN(const Statuses before, SurveyByParty(session));
  ASSIGN_OR_RETURN(enroll::AdminServers* servers, session.Connect());
  RETURN_IF_ERROR(servers->at(static_cast<int>(party))
                      .Call("CatchUp", &enroll::AdminStub::CatchUp, v1::CatchUpRequest(),
                            session.config.timeout)
                      .status());
  ASSIGN_OR_RETURN(const v1::StatusReply now, Watch(session, party, ""));
  const uint64_t received = now.handed_over() - before[party].handed_over();
  session.console.Print(json{{"party", party}, {"keys", now.keys()}, {"received", received}});
  session.console.Say("party ", party, " has ", now.keys(), " keys, ", received,
                      " of them new; mpc-admin doctor shows what it has and the others have not");
  return now.left_out() > before[party].left_out() ? ExitCode::kFindings : ExitCode::kOk;
}

absl::StatusOr<ExitCode> ReplacePartyCommand(Session& session) {
  ASSIGN_OR_RETURN(const uint32_t party, PartyOperand(session, "replace-party"));
  ASSIGN_OR_RETURN(const Statuses before, SurveyByParty(session));
  RETURN_IF_ERROR(CheckSurvey(before, party));
  const absl::Time start = absl::Now();
  if (!before[party].receiving() && before[party].handed_over() == 0) {
    if (const absl::Status asked = AskAll(session, party); !asked.ok()) {
      return Advise(asked,
                    "put that right, then run mpc-admin replace-party again: nothing is lost");
    }
  }
  session.console.Say("party ", party, " receives its keys; logins go on as they come in");
  json result = {{"party", party}};
  if (session.options.no_wait) {
    session.console.Print(result);
    return ExitCode::kOk;
  }
  const std::string then = absl::StrCat("; then run mpc-admin replace-party ", party,
                                        " again, which refreshes the shares: until that is done "
                                        "the lost store is still worth something");
  ASSIGN_OR_RETURN(const v1::StatusReply rebuilt, Watch(session, party, then));
  session.console.Say(
      "party ", party, " has ", rebuilt.keys(), " keys (",
      absl::FormatDuration(absl::Trunc(absl::Now() - start, absl::Milliseconds(100))),
      "), each verified on shares; now all shares are refreshed");
  if (rebuilt.left_out() > 0) {
    session.console.Remark(rebuilt.left_out(),
                           " times a key was left out: one of the two others does not have it, or "
                           "they do not fit together; mpc-admin doctor and verify name it");
  }
  RETURN_IF_ERROR(session.Connect().status());
  ASSIGN_OR_RETURN(const ExitCode refreshed, RefreshCommand(session));
  return rebuilt.left_out() > 0 ? ExitCode::kFindings : refreshed;
}

}  // namespace mpckdc::admin
