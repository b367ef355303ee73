// SPDX-License-Identifier: Apache-2.0
//
// refresh: makes all shares anew, and watches while the servers write their records.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/one_line.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;

constexpr size_t kServers = 3;
constexpr absl::Duration kLook = absl::Milliseconds(500);
// Of a server that still writes when the two others have written: so many records in a second, and
// so many calls' time besides.
constexpr double kSlowest = 100;
constexpr int kPatience = 10;

struct Written {
  std::array<v1::StatusReply, kServers> status;

  // What a machine that is down still needs is not waited for.
  static bool Writes(const v1::StatusReply& s) {
    return s.refreshing() && s.refresh_waits().empty();
  }
  ptrdiff_t writing() const { return std::count_if(status.begin(), status.end(), Writes); }
  bool done() const { return writing() == 0; }
  // How long the last one is waited for, by what the two others had to write. One that was
  // restarted since does not say that any more.
  absl::Duration Patience(absl::Duration timeout) const {
    uint64_t most = 0;
    for (const v1::StatusReply& s : status) {
      if (!Writes(s)) most = std::max({most, s.refresh_written(), s.keys()});
    }
    return kPatience * timeout + absl::Seconds(static_cast<double>(most) / kSlowest);
  }
  std::string Waits() const {
    for (const v1::StatusReply& s : status) {
      if (s.refreshing() && !s.refresh_waits().empty()) return OnOneLine(s.refresh_waits());
    }
    return "";
  }
  size_t Sum(uint64_t (v1::StatusReply::*of)() const) const {
    size_t sum = 0;
    for (const v1::StatusReply& s : status) sum += (s.*of)();
    return sum;
  }
};

absl::StatusOr<Written> Look(Session& session) {
  Written now;
  RETURN_IF_ERROR(session.OnAll([&](int party, enroll::AdminClient& server) -> absl::Status {
    ASSIGN_OR_RETURN(now.status[party], server.GetStatus(session.config.timeout));
    const std::string& trouble = now.status[party].refresh_trouble();
    if (trouble.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("server ", server.name(), ": ", OnOneLine(trouble)));
  }));
  return now;
}

absl::Status AskAll(Session& session, uint64_t epoch) {
  v1::RefreshRequest request;
  request.set_epoch(epoch);
  const absl::Duration timeout = std::max(session.config.timeout, limits::kRefreshTimeout * 1.2);
  return session.OnAll([&](int, enroll::AdminClient& server) {
    return server.Call("Refresh", &enroll::AdminStub::Refresh, request, timeout).status();
  });
}

// While a party keeps an old key for a machine that is down no refresh begins, however long one
// asks.
absl::Status CheckNobodyIsAwaited(Session& session) {
  Written now;
  RETURN_IF_ERROR(session.OnAll([&](int party, enroll::AdminClient& server) -> absl::Status {
    ASSIGN_OR_RETURN(now.status[party], server.GetStatus(session.config.timeout));
    return absl::OkStatus();
  }));
  const std::string waits = now.Waits();
  if (waits.empty()) return absl::OkStatus();
  return Advise(
      absl::FailedPreconditionError(absl::StrCat("the last refresh has not ended: ", waits)),
      kStartThoseMachines);
}

// Until the key of the old epoch is erased at all three. One that says for ever that it writes is
// not waited for for ever.
absl::StatusOr<Written> Watch(Session& session) {
  Written now;
  absl::Time until = absl::InfiniteFuture();
  do {
    absl::SleepFor(kLook);
    ASSIGN_OR_RETURN(now, Look(session));
    if (now.writing() != 1) until = absl::InfiniteFuture();
    if (now.writing() == 1) {
      until = std::min(until, absl::Now() + now.Patience(session.config.timeout));
    }
    if (absl::Now() >= until) break;
    session.console.Progress(now.Sum(&v1::StatusReply::refresh_written),
                             now.Sum(&v1::StatusReply::refresh_to_write), "records written");
  } while (!now.done());
  session.console.EndProgress();
  return now;
}

}  // namespace

absl::StatusOr<ExitCode> RefreshCommand(Session& session) {
  ASSIGN_OR_RETURN(const enroll::AdminServers* servers, session.Connect());
  const uint64_t epoch = servers->target().epoch;
  RETURN_IF_ERROR(CheckNobodyIsAwaited(session));
  const absl::Time start = absl::Now();
  if (const absl::Status asked = AskAll(session, epoch); !asked.ok()) {
    return Advise(asked,
                  "see mpc-admin status; run mpc-admin refresh again when all three servers are "
                  "connected and not refreshing: what was begun ends in one epoch by itself");
  }
  const absl::Duration entered = absl::Now() - start;
  session.console.Say("share epoch ", epoch + 1, ": shares of epoch ", epoch,
                      " are worth nothing beside those of now");
  json result = {{"epoch", epoch + 1}, {"entered_seconds", absl::ToDoubleSeconds(entered)}};
  if (session.options.no_wait) {
    session.console.Say("  the servers write their records in the background: mpc-admin status");
    session.console.Print(result);
    return ExitCode::kOk;
  }
  ASSIGN_OR_RETURN(const Written written, Watch(session));
  const size_t damaged = written.Sum(&v1::StatusReply::refresh_damaged);
  result.update({{"records", written.Sum(&v1::StatusReply::refresh_written)},
                 {"damaged", damaged},
                 {"seconds", absl::ToDoubleSeconds(absl::Now() - start)}});
  result["waits"] = written.Waits();
  session.console.Print(result);
  if (!written.done()) {
    ASSIGN_OR_RETURN(enroll::AdminServers * three, session.Dial());
    for (uint32_t party = 0; party < kServers; ++party) {
      if (!Written::Writes(written.status[party])) continue;
      session.console.Remark("server ", three->at(static_cast<int>(party)).name(),
                             " says that it still writes its records, long after the two others: "
                             "is its disk slow, or does it lie? mpc-admin status shows how far it "
                             "is");
    }
    return ExitCode::kInconsistent;
  }
  const std::string took = absl::FormatDuration(absl::Trunc(absl::Now() - start, absl::Seconds(1)));
  if (written.Waits().empty()) {
    session.console.Say("the records are written and the keys of epoch ", epoch, " erased (", took,
                        ")");
  } else {
    session.console.Say("the records are written (", took, ")");
    session.console.Remark(written.Waits());
  }
  if (damaged == 0) return ExitCode::kOk;
  session.console.Remark(damaged, " records could not be read: mpc-admin verify names them");
  return ExitCode::kFindings;
}

}  // namespace mpckdc::admin
