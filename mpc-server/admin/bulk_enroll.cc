// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/enroll.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/admin/terminal.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/enroll/strictest_gate.h"
#include "mpc-server/enroll/transaction.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;

using KeytabEntries = std::vector<std::pair<std::string, enroll::KeytabKeys>>;

// Principals that get their keys together.
struct Chunk {
  std::vector<KdbNewKeys> principals;
  NewKeys keys;                               // of all; wiped when they are packaged
  std::vector<std::vector<std::string>> old;  // by principal: the handles that it had before
  std::unique_ptr<enroll::KeyTransaction> transaction;
};

// ---- What became of everybody ----

struct Tally {
  // The names of those enrolled are for the JSON output alone.
  void Enrolled(const KdbNewKeys& principal, const Console& console) {
    ++enrolled;
    for (const v1::KeyInfo& key : principal.keys) handles.insert(key.handle());
    if (console.json()) details.push_back(principal);
  }
  size_t done() const { return enrolled + failed.size(); }
  ExitCode Report(Console& console) const;

  size_t enrolled = 0;
  size_t other_realms = 0;
  size_t renumbered = 0;
  json details = json::array();
  std::set<std::string> handles;  // of those enrolled
  std::vector<std::string> already;
  std::vector<std::pair<std::string, absl::Status>> failed;
};

ExitCode Tally::Report(Console& console) const {
  console.Say(enrolled, " enrolled, ", already.size(), " had protected keys already, ",
              failed.size(), " failed, ", other_realms, " of other realms left out");
  if (renumbered > 0) {
    console.Say("  ", renumbered, " got a higher key version than the keytab's, as ",
                "the database had that one already");
  }
  json errors = json::array();
  for (const auto& [principal, why] : failed) {
    console.Say(Colour::kBad, "  ", principal, ": ", why.message());
    errors.push_back({{"principal", principal}, {"error", std::string(why.message())}});
  }
  console.Print(json{{"enrolled", details},
                     {"already", already},
                     {"failed", errors},
                     {"other_realms", other_realms}});
  if (!already.empty()) console.Say("  next: repeat with --replace to give those new keys");
  return failed.empty() ? ExitCode::kOk : ExitCode::kFindings;
}

// ---- The work ----

class BulkEnroll {
 public:
  BulkEnroll(Session* session, enroll::AdminServers* servers, const enroll::PackageSigner* signer)
      : session_(*session), servers_(*servers), signer_(*signer) {}

  absl::StatusOr<ExitCode> Run(std::map<std::string, enroll::KeytabKeys> keytab);

 private:
  using Results = absl::StatusOr<std::vector<absl::Status>>;

  absl::StatusOr<KeytabEntries> Choose(std::map<std::string, enroll::KeytabKeys> keytab);
  absl::StatusOr<Chunk> Plan(absl::Span<std::pair<std::string, enroll::KeytabKeys>> some);
  absl::Status PlanOne(const std::string& principal, absl::StatusOr<KdbPlan> plan,
                       enroll::KeytabKeys keytab, Chunk* chunk);
  absl::StatusOr<Powers> PowersOf(const std::string& principal, bool has_old);
  absl::Status ToServers(Chunk* chunk);
  void StartWriting(Chunk chunk);
  absl::Status FinishWriting();
  void Withdraw(const std::vector<v1::NamedKey>& keys, enroll::Deletion how);
  absl::Status WorkOff(KeytabEntries entries);
  void ShowProgress();
  void NarrowGates();

  Session& session_;
  enroll::AdminServers& servers_;
  const enroll::PackageSigner& signer_;
  Tally tally_;
  std::vector<KdbNewKeys> replaced_;  // those enrolled that had keys, if their gate was taken over
  std::optional<NewestByPrincipal> present_;  // the servers' keys by principal, if any is replaced
  size_t total_ = 0;
  absl::Time start_ = absl::Now();
  InterruptGuard interrupt_;
  Chunk writing_;  // what the database is being told
  std::future<Results> written_;
};

// Leaves out other realms' principals and those that have protected keys.
absl::StatusOr<KeytabEntries> BulkEnroll::Choose(
    std::map<std::string, enroll::KeytabKeys> keytab) {
  ASSIGN_OR_RETURN(const KdbEntries* entries, session_.ReadKdb());
  const std::string realm = absl::StrCat("@", session_.config.realm);
  const bool replace = session_.options.replace;
  KeytabEntries chosen;
  for (auto& [principal, keys] : keytab) {
    if (!absl::EndsWith(principal, realm)) {
      ++tally_.other_realms;
    } else if (!replace && entries->count(principal) != 0) {
      tally_.already.push_back(principal);
    } else {
      chosen.emplace_back(principal, std::move(keys));
    }
  }
  return chosen;
}

// ---- Planning: what the keys should look like, and the keys ----

// Gate and class of the keys that are replaced; all of them are read once.
absl::StatusOr<Powers> BulkEnroll::PowersOf(const std::string& principal, bool has_old) {
  if (!has_old) return PowersFor(session_.options, principal, {});
  if (!present_.has_value()) {
    ASSIGN_OR_RETURN(present_, ListNewest(session_, ""));
  }
  const Powers powers = PowersFor(session_.options, principal, (*present_)[principal]);
  RemarkDifference(session_, principal, powers);
  return powers;
}

// An error is this principal's alone, or Unavailable.
absl::Status BulkEnroll::PlanOne(const std::string& principal, absl::StatusOr<KdbPlan> plan,
                                 enroll::KeytabKeys keytab, Chunk* chunk) {
  RETURN_IF_ERROR(RefuseKrbtgt(principal));
  if (!plan.ok()) return plan.status();
  if (plan->principal != principal) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the KDC's database spells it ", plan->principal, ": enrol it by that name, alone"));
  }
  ASSIGN_OR_RETURN(const KdbEntries* entries, session_.ReadKdb());
  const std::vector<std::string> old = HandlesOf(*entries, principal);
  ASSIGN_OR_RETURN(Powers powers, PowersOf(principal, !old.empty()));
  ASSIGN_OR_RETURN(std::vector<v1::KeyInfo> planned, PlannedKeys(session_, *plan));
  KdbNewKeys fresh = {principal, std::max(keytab.kvno, plan->kvno_next), {}, false,
                      ExpectedOf(*plan, old)};
  if (fresh.kvno != keytab.kvno) ++tally_.renumbered;
  ASSIGN_OR_RETURN(NewKeys keys, KeysOfKeytab(planned, principal, std::move(keytab)));
  GiveHandles(powers, &keys, &fresh);
  for (const enroll::KeyToShare& key : keys) {
    RETURN_IF_ERROR(enroll::CheckKeyInfo(key.info, servers_.realm()));
  }
  std::move(keys.begin(), keys.end(), std::back_inserter(chunk->keys));
  chunk->old.push_back(old);
  chunk->principals.push_back(std::move(fresh));
  return absl::OkStatus();
}

absl::StatusOr<Chunk> BulkEnroll::Plan(
    absl::Span<std::pair<std::string, enroll::KeytabKeys>> some) {
  std::vector<std::string> names;
  for (const auto& [principal, keys] : some) names.push_back(principal);
  ASSIGN_OR_RETURN(Kdb::Plans plans, session_.kdb.PlanMany(names, !session_.options.no_create));
  Chunk chunk;
  for (size_t i = 0; i < some.size(); ++i) {
    absl::Status s = PlanOne(names[i], std::move(plans[i]), std::move(some[i].second), &chunk);
    if (ExitCodeOf(s) == ExitCode::kUnavailable) return s;
    if (!s.ok()) tally_.failed.emplace_back(names[i], std::move(s));
  }
  return chunk;
}

// ---- The servers ----

absl::Status BulkEnroll::ToServers(Chunk* chunk) {
  const absl::Duration timeout = session_.config.timeout;
  chunk->transaction = std::make_unique<enroll::KeyTransaction>(
      &servers_, enroll::TransactionTimeouts{.stage = timeout, .commit = timeout});
  absl::Status s = chunk->transaction->Add(chunk->keys, signer_);
  chunk->keys.clear();
  return s.ok() ? chunk->transaction->Run() : s;
}

void BulkEnroll::Withdraw(const std::vector<v1::NamedKey>& keys, enroll::Deletion how) {
  if (keys.empty()) return;
  const absl::Status s = session_.DeleteKeys(keys, how);
  if (s.ok()) return;
  session_.console.Remark("keys to which nothing refers may be left on the servers (", s.message(),
                          "); mpc-admin doctor --fix deletes them");
}

// ---- The KDC's database ----

void BulkEnroll::StartWriting(Chunk chunk) {
  writing_ = std::move(chunk);
  written_ = std::async(std::launch::async,
                        [this] { return session_.kdb.SetHandlesOfMany(writing_.principals); });
}

// Waits for the database. Principals that it refused are this run's failures; the run ends when the
// database does not answer.
absl::Status BulkEnroll::FinishWriting() {
  if (!written_.valid()) return absl::OkStatus();
  Results results = written_.get();
  const absl::Status outcome = results.status();
  if (!outcome.ok()) results = Settle(session_, writing_.principals, /*bulk=*/true, outcome);
  if (!results.ok()) return results.status();
  const bool delete_old = session_.options.delete_old;
  std::vector<v1::NamedKey> replaced, never_used;
  for (size_t i = 0; i < results->size(); ++i) {
    const KdbNewKeys& principal = writing_.principals[i];
    const bool enrolled = (*results)[i].ok();
    const std::vector<v1::NamedKey> keys =
        Named(principal.principal, enrolled ? writing_.old[i] : HandlesOf(principal.keys));
    if (!enrolled) never_used.insert(never_used.end(), keys.begin(), keys.end());
    if (enrolled && delete_old) replaced.insert(replaced.end(), keys.begin(), keys.end());
    if (enrolled) {
      tally_.Enrolled(principal, session_.console);
      const bool taken_over = !writing_.old[i].empty() && !session_.options.gate.has_value();
      if (taken_over) replaced_.push_back(principal);
      continue;
    }
    // When the run ends here it is not the principal's fault: the next run takes it up.
    if (outcome.ok()) tally_.failed.emplace_back(principal.principal, std::move((*results)[i]));
  }
  Withdraw(never_used, enroll::Deletion::kNow);
  Withdraw(replaced, enroll::Deletion::kRetire);
  ShowProgress();
  return outcome;
}

// ---- Gates ----

// They were read before the first was replaced. Whoever has set one since did so with the keys that
// he saw. Only narrower: should the old keys be gone by now, a server that lies could list one.
void BulkEnroll::NarrowGates() {
  if (replaced_.empty()) return;
  absl::StatusOr<NewestByPrincipal> now = ListNewest(session_, "", tally_.handles);
  absl::Status s = now.status();
  for (const KdbNewKeys& fresh : replaced_) {
    if (!now.ok() || !now->contains(fresh.principal)) continue;
    const v1::Gate given = fresh.keys[0].gate();
    const v1::Gate gate = enroll::StrictestGate(
        {given, PowersFor(session_.options, fresh.principal, now->at(fresh.principal)).gate});
    if (gate == given) continue;
    s.Update(session_.OnAll([&](int, enroll::AdminClient& server) {
      return server.SetPolicy(fresh.principal, HandlesOf(fresh.keys), gate,
                              session_.config.timeout);
    }));
    session_.console.Remark("the gate of the keys of ", fresh.principal,
                            " was changed meanwhile: the new ones get it too, ", GateName(gate));
  }
  if (s.ok()) return;
  session_.console.Remark("gates that were changed meanwhile may be lost: ", s.message(),
                          "; mpc-admin list shows them, mpc-admin policy sets them");
}

// ---- All together ----

void BulkEnroll::ShowProgress() {
  const double seconds = std::max(0.001, absl::ToDoubleSeconds(absl::Now() - start_));
  const double rate = static_cast<double>(tally_.enrolled) / seconds;
  const double left = rate > 0 ? static_cast<double>(total_ - tally_.done()) / rate : 0;
  session_.console.Progress(tally_.done(), total_,
                            absl::StrFormat("%.0f/s, %.0f s left", rate, left));
}

absl::Status BulkEnroll::WorkOff(KeytabEntries entries) {
  for (size_t start = 0; start < entries.size(); start += limits::kBulkPrincipals) {
    if (interrupt_.requested()) return absl::OkStatus();
    ASSIGN_OR_RETURN(Chunk chunk,
                     Plan(absl::MakeSpan(entries).subspan(start, limits::kBulkPrincipals)));
    if (chunk.principals.empty()) continue;
    RETURN_IF_ERROR(ToServers(&chunk));
    if (absl::Status s = FinishWriting(); !s.ok()) {
      chunk.transaction->Rollback().IgnoreError();
      return s;
    }
    StartWriting(std::move(chunk));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> BulkEnroll::Run(std::map<std::string, enroll::KeytabKeys> keytab) {
  ASSIGN_OR_RETURN(KeytabEntries entries, Choose(std::move(keytab)));
  total_ = entries.size();
  ShowProgress();
  absl::Status s = WorkOff(std::move(entries));
  const absl::Status last = FinishWriting();
  if (s.ok()) s = last;
  session_.console.EndProgress();
  if (!tally_.handles.empty()) KeepInUse(session_, "", tally_.handles);
  NarrowGates();
  if (s.ok() && !interrupt_.requested()) return tally_.Report(session_.console);
  const std::string so_far = absl::StrCat("stopped after ", tally_.enrolled, " of ", total_);
  session_.console.Remark(so_far);
  if (s.ok()) return Advise(absl::CancelledError(so_far), kAgain);
  return Advise(s, absl::StrCat("put that right, then ", kAgain));
}

}  // namespace

absl::StatusOr<ExitCode> EnrollMany(Session& session, const enroll::PackageSigner& signer,
                                    std::map<std::string, enroll::KeytabKeys> keytab) {
  ASSIGN_OR_RETURN(enroll::AdminServers* servers, session.Connect());
  BulkEnroll bulk(&session, servers, &signer);
  return bulk.Run(std::move(keytab));
}

}  // namespace mpckdc::admin
