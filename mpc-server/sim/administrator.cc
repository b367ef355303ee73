// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/administrator.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/enroll/two_phase.h"

namespace mpckdc::sim {
namespace {

// Shorter than mpc-admin's, so that a run has time for several changes.
enroll::TransactionTimeouts Timeouts() {
  enroll::TransactionTimeouts timeouts;
  timeouts.stage = absl::Seconds(1);
  timeouts.draw = absl::Seconds(5);  // behind a login of 17 to 20, and some 1,000 rounds itself
  timeouts.commit = timeouts.cleanup = absl::Seconds(1);
  return timeouts;
}

// Faults last eight seconds, and one disk may be down as long.
constexpr absl::Duration kUntilOneEpoch = absl::Seconds(20);

}  // namespace

Administrator::Administrator(Scheduler* scheduler, Dice* dice, Journal* journal, Servers* servers,
                             Invariants* invariants, Kdc* kdc, int keys_made)
    : scheduler_(scheduler),
      dice_(dice),
      journal_(journal),
      servers_(servers),
      invariants_(invariants),
      kdc_(kdc),
      links_(scheduler, dice),
      keys_made_(keys_made) {}

// ---- Calls ----

// A call whose server dies ends as its connection does; one whose messages vanish, at its deadline.
template <typename Result>
Result Administrator::Call(int p, const char* arrives, const char* answered,
                           absl::Duration timeout, Body<Result> body) {
  if (!servers_->Up(p)) {
    scheduler_->Sleep(absl::Milliseconds(1));
    return absl::UnavailableError("connection refused");
  }
  struct State {
    std::optional<Result> result;
    Fiber* waiter = nullptr;
  };
  auto state = std::make_shared<State>();
  state->waiter = scheduler_->current();
  const uint64_t incarnation = servers_->process(p)->incarnation;
  const auto answer = [this, p, answered, incarnation, state](Result result) {
    if (servers_->Step(p, incarnation, answered)) return;
    auto shared = std::make_shared<Result>(std::move(result));
    scheduler_->At(links_.FromServer(p), [this, p, state, shared] {
      if (links_.BlockedFrom(p)) return;
      state->result = std::move(*shared);
      scheduler_->Wake(state->waiter);
    });
  };
  if (!links_.BlockedTo(p)) {
    scheduler_->At(links_.ToServer(p), [this, p, arrives, incarnation, body, answer] {
      if (!servers_->Alive(p, incarnation)) return;  // the message was for a process that is gone
      servers_->Message(p, [this, p, arrives, incarnation, body, answer](Process& process) {
        if (servers_->Step(p, incarnation, arrives)) return;
        body(process, answer);
      });
    });
  }
  const absl::Time limit = scheduler_->now() + timeout;
  while (!state->result.has_value() && scheduler_->now() < limit &&
         servers_->Alive(p, incarnation)) {
    scheduler_->Wait(std::min(limit, scheduler_->now() + absl::Milliseconds(100)));
  }
  state->waiter = nullptr;
  if (state->result.has_value()) return *std::move(state->result);
  if (scheduler_->now() < limit) return absl::UnavailableError("connection closed");
  return absl::DeadlineExceededError("no answer");
}

class Administrator::Change : public enroll::TransactionServers {
 public:
  explicit Change(Administrator* admin) : admin_(admin) {
    admin_->kdc_->random().Fill(absl::MakeSpan(id_));
  }

  const TransactionId& id() const { return id_; }
  std::vector<Handle> handles;
  std::array<bool, 3> clean{};  // the server has said that nothing of the change is left

  std::array<absl::Status, 3> OnAll(
      const std::function<absl::Status(int party)>& call) override {
    std::array<absl::Status, 3> results;
    int left = kParties;
    Fiber* const waiter = admin_->scheduler_->current();
    for (int p = 0; p < kParties; ++p) {
      admin_->scheduler_->Spawn("admin call", [&, p] {
        results[p] = call(p);
        --left;
        admin_->scheduler_->Wake(waiter);
      });
    }
    while (left > 0) admin_->scheduler_->Wait(absl::InfiniteFuture());
    return results;
  }

  // The messages outlive this object: they hold copies.
  // The shares are of `epoch`.
  absl::Status StageKeys(int p, const std::vector<KeyRecord>& records, uint64_t epoch) {
    return OnStore(p, "admin: stage", "admin: staged", Timeouts().stage,
                   [id = id_, &clock = admin_->servers_->clock(p), records, epoch](
                       ShareStore& store) { return store.Stage(id, records, epoch, clock.Now()); });
  }
  absl::Status DrawKey(int p, const KeyInfo& info) {
    return admin_->Call<absl::Status>(
        p, "admin: draw", "admin: drawn", Timeouts().draw,
        [id = id_, info](Process& process, const std::function<void(absl::Status)>& answer) {
          process.engine->DrawKey(id, info, answer);
        });
  }
  absl::StatusOr<uint32_t> CommitKeys(int p, absl::Duration timeout) override {
    return OnStore(p, "admin: commit", "admin: committed", timeout,
                   [id = id_, &clock = admin_->servers_->clock(p)](ShareStore& store) {
                     return store.Commit(id, clock.Now());
                   });
  }
  absl::Status AbortKeys(int p, absl::Duration timeout) override {
    const auto aborted = OnStore(p, "admin: abort", "admin: aborted", timeout,
                                 [id = id_](ShareStore& store) { return store.Abort(id); });
    // One that was committed already is deleted next.
    clean[p] = aborted.ok() || absl::IsFailedPrecondition(aborted.status());
    return aborted.status();
  }
  absl::Status DeleteKeys(int p, absl::Duration timeout) override {
    const auto deleted =
        OnStore(p, "admin: delete", "admin: deleted", timeout,
                [keys = handles](ShareStore& store) { return store.Delete(keys); });
    clean[p] = clean[p] && deleted.ok();
    return deleted.status();
  }
  std::string Name(int p) override { return absl::StrCat("P", p); }
  void Pause(absl::Duration d) override { admin_->scheduler_->Sleep(d); }

 private:
  template <typename Operation, typename Result = std::invoke_result_t<Operation, ShareStore&>>
  Result OnStore(int p, const char* arrives, const char* answered, absl::Duration timeout,
                 Operation operation) {
    return admin_->Call<Result>(
        p, arrives, answered, timeout,
        [operation](Process& process, const auto& answer) { answer(operation(*process.store)); });
  }

  Administrator* const admin_;
  TransactionId id_{};
};

// ---- Changes ----

// A user's key, or a drawn one of a service. Of 17 to 20 only the cheap ones: their usage keys are
// derived on shares when a key is drawn, and whenever it is verified.
PlainKey Administrator::NewKey(bool drawn) {
  const std::string number = absl::StrCat(++keys_made_);
  const bool cts = dice_->Chance(drawn ? 0.25 : 0.04);
  const int32_t enctype = cts ? (dice_->Chance(0.5) ? kEnctypeAes128Sha1 : kEnctypeAes256Sha1)
                              : (dice_->Chance(0.7) ? kEnctypeAes128Gcm : kEnctypeAes256Gcm);
  PlainKey key =
      drawn && cts
          ? MakePlainKey(kdc_->random(), absl::StrCat("host/www", number, "@EXAMPLE.COM"),
                         KeyClass::kService, enctype, Gate::kNone)
          : MakePlainKey(kdc_->random(), absl::StrCat("user", number, "@EXAMPLE.COM"),
                         KeyClass::kUser, enctype, Gate::kTimestamp);
  key.info.kvno = 2;
  return key;
}

// One or two keys, given or drawn. A key counts once all three have said that they committed it.
void Administrator::Enrol() {
  Change change(this);
  enroll::TwoPhase two_phase(&change, Timeouts());
  std::vector<PlainKey> keys;
  std::vector<bool> drawn;
  PerParty<std::vector<KeyRecord>> given;
  const uint64_t count = 1 + dice_->Below(2);
  for (uint64_t i = 0; i < count; ++i) {
    drawn.push_back(dice_->Chance(0.25));
    keys.push_back(NewKey(drawn.back()));
    change.handles.push_back(keys.back().info.handle);
    if (drawn.back()) continue;
    const PerParty<KeyRecord> records = ShareKey(keys.back(), kdc_->random());
    for (int p = 0; p < kParties; ++p) given[p].push_back(records[p]);
  }
  const bool settled = invariants_->recovered();
  journal_->Count("enrolments");
  absl::Status s = two_phase.Begin();
  const uint64_t epoch = Epoch();
  if (!given[0].empty()) {
    s = two_phase.Stage([&](int p) { return change.StageKeys(p, given[p], epoch); });
  }
  for (size_t i = 0; i < keys.size() && s.ok(); ++i) {
    if (drawn[i]) s = two_phase.Stage([&](int p) { return change.DrawKey(p, keys[i].info); });
  }
  if (s.ok()) s = two_phase.Commit(keys.size());
  if (s.ok()) return Acknowledge(keys, drawn);
  const bool left = absl::StrContains(s.message(), "may be left");
  journal_->Count(left ? "enrolments that may have left shares" : "enrolments taken back");
  for (int p = 0; p < kParties; ++p) {
    if (change.clean[p]) invariants_->TakenBack(p, change.handles);
  }
  if (settled) {
    journal_->Violation(
        absl::StrCat("an enrolment fails although the realm has recovered: ", s.message()));
  }
}

// As their states say; one that is behind will follow, one that is ahead takes shares of before.
uint64_t Administrator::Epoch() const {
  uint64_t epoch = 0;
  for (int p = 0; p < kParties; ++p) {
    if (!servers_->Up(p)) continue;
    const uint64_t own = servers_->process(p)->store->Epoch().epoch;
    epoch = epoch == 0 ? own : std::min(epoch, own);
  }
  return epoch;
}

// Records of different epochs do not belong together: somebody is about to follow.
bool Administrator::AwaitOneEpoch() {
  const absl::Time end = scheduler_->now() + kUntilOneEpoch;
  while (!servers_->InOneEpoch() && scheduler_->now() < end) {
    scheduler_->Sleep(absl::Milliseconds(20));
  }
  return servers_->InOneEpoch();
}

// What the three disks hold now is what has to stay. Of a drawn key nobody knows the password: the
// test joins its shares, as no production program can.
void Administrator::Acknowledge(const std::vector<PlainKey>& keys,
                                const std::vector<bool>& drawn) {
  if (!AwaitOneEpoch()) return journal_->Violation("the servers do not come to one share epoch");
  PerParty<std::unique_ptr<ShareStore>> disks;
  for (int p = 0; p < kParties; ++p) disks[p] = servers_->Disk(p);
  for (size_t i = 0; i < keys.size(); ++i) {
    const Handle& handle = keys[i].info.handle;
    journal_->Count(drawn[i] ? "drawn keys acknowledged" : "given keys acknowledged");
    PerParty<KeyRecord> records;
    bool complete = true;
    for (int p = 0; p < kParties; ++p) {
      absl::StatusOr<KeyRecord> record = disks[p]->Get(handle);
      if (record.ok()) {
        records[p] = *std::move(record);
        continue;
      }
      complete = false;
      if (p == servers_->restored()) continue;
      journal_->Violation(absl::StrCat("server ", p, " acknowledged key ", HandleText(handle),
                                       " and does not have it"));
    }
    if (!complete) {
      journal_->Count("keys that a restore lost before their acknowledgement");
      continue;
    }
    const absl::StatusOr<PlainKey> joined = JoinKey(records);
    if (!joined.ok() || (!drawn[i] && joined->base != keys[i].base)) {
      journal_->Violation(absl::StrCat("the shares of acknowledged key ", HandleText(handle),
                                       " are not those of one key"));
      continue;
    }
    invariants_->Acknowledged(handle, records);
    acknowledged_.push_back(handle);
    principals_.push_back(keys[i].info.principal);
    if (keys[i].info.key_class == KeyClass::kService) {
      journal_->Count("services' keys of 17 or 18 drawn");
      kdc_->AddService(*joined);
    } else {
      kdc_->AddUser(*joined);
    }
  }
}

// VerifyKeys may fail under faults; it may never call good keys inconsistent.
void Administrator::VerifyAll() {
  if (acknowledged_.empty()) return;
  std::array<uint8_t, 16> request;
  kdc_->random().Fill(absl::MakeSpan(request));
  const std::vector<Handle> handles = acknowledged_;
  using Results = absl::StatusOr<std::vector<VerifyResult>>;
  Change all(this);
  const auto statuses = all.OnAll([&](int p) {
    const Results results = Call<Results>(
        p, "admin: verify", "admin: verified", absl::Seconds(3),
        [request, handles](Process& process, const std::function<void(Results)>& answer) {
          process.engine->VerifyKeys(request, handles, answer);
        });
    if (!results.ok()) return results.status();
    for (const VerifyResult& result : *results) {
      if (result.consistent || invariants_->Lost(result.handle)) continue;
      journal_->Violation(absl::StrCat("VerifyKeys says of key ", HandleText(result.handle), ": ",
                                       result.detail));
    }
    return absl::OkStatus();
  });
  const bool all_ok = statuses[0].ok() && statuses[1].ok() && statuses[2].ok();
  journal_->Count(all_ok ? "verifications" : "verifications that failed");
}

void Administrator::DeleteOne() {
  if (acknowledged_.empty()) return;
  const uint64_t which = dice_->Below(acknowledged_.size());
  const NamedKey key = {acknowledged_[which], principals_[which]};
  const NamedKey wrong = {key.handle, "nobody@EXAMPLE.COM"};
  const bool restore = dice_->Chance(0.3), mistake = dice_->Chance(0.2);
  using Done = absl::StatusOr<NamedKeysDone>;
  Change change(this);
  const auto statuses = change.OnAll([&](int p) {
    const Done done = Call<Done>(
        p, "admin: delete", "admin: deleted", Timeouts().cleanup,
        [=, grace = grace_, &clock = servers_->clock(p)](Process& process, const auto& answer) {
          ShareStore& store = *process.store;
          (void)store.CollectRetired(clock.Now() - grace, limits::kCollectAtOnce);
          answer(mistake   ? store.DeleteNamed({wrong})
                 : restore ? store.Restore({key})
                           : store.Retire({key}, clock.Now()));
        });
    if (done.ok() && mistake && done->changed != 0) {
      journal_->Violation(absl::StrCat("server ", p, " deleted key ", HandleText(key.handle),
                                       " by the name of another principal"));
    }
    return done.status();
  });
  const bool all_ok = statuses[0].ok() && statuses[1].ok() && statuses[2].ok();
  journal_->Count(absl::StrCat(mistake   ? "mistaken deletions"
                               : restore ? "restorations"
                                         : "deletions",
                               all_ok ? "" : " that failed"));
}

void Administrator::Refresh() {
  const uint64_t from = Epoch();
  Change all(this);
  const auto statuses = all.OnAll([&](int p) {
    return Call<absl::Status>(
        p, "admin: refresh", "admin: refreshed", absl::Seconds(3),
        [from, &clock = servers_->clock(p)](Process& process,
                                            const std::function<void(absl::Status)>& answer) {
          process.engine->Refresh(from, clock.Now() + absl::Seconds(3), answer);
        });
  });
  const bool all_ok = statuses[0].ok() && statuses[1].ok() && statuses[2].ok();
  journal_->Count(all_ok ? "refreshes by an administrator"
                         : "refreshes by an administrator that failed");
}

void Administrator::StartRefresh() {
  ++running_;
  scheduler_->Spawn("refresh", [this] {
    Refresh();
    --running_;
  });
}

void Administrator::Work(const bool* done) {
  while (!*done && !journal_->violated()) {
    scheduler_->Sleep(dice_->Between(absl::Milliseconds(200), absl::Milliseconds(3500)));
    if (*done) return;
    ++running_;
    scheduler_->Spawn("administrator", [this] {
      if (dice_->Chance(0.12)) {
        VerifyAll();
      } else if (dice_->Chance(0.2)) {
        DeleteOne();
      } else {
        Enrol();
      }
      --running_;
    });
  }
}

}  // namespace mpckdc::sim
