// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/invariants.h"

#include "absl/strings/str_cat.h"
#include "mpc-server/job/operation_table.h"

namespace mpckdc::sim {

// Whatever leaves a server under a nonce belongs to one place of one job, and leaves it once.
void Invariants::Released(int p, const JobResult& result) {
  int place = 0;
  const auto note = [&](const Nonce& nonce) {
    NonceUse& use = nonces_.try_emplace(nonce, NonceUse{result.id, place, {}}).first->second;
    if (use.job != result.id || use.place != place || use.released[p]) {
      journal_->Violation(absl::StrCat("server ", p, " used a nonce for job ", result.id, " place ",
                                       place, " that was used for job ", use.job, " place ",
                                       use.place));
    }
    use.released[p] = true;
    ++place;
  };
  for (const SealResult& seal : result.seals) {
    const auto* gcm = std::get_if<GcmSealResult>(&seal);
    if (gcm != nullptr) note(gcm->nonce);  // messages of 17 to 20 have none: Sealed()
  }
  for (const MakeMacResult& mac : result.make_macs) {
    if (const auto* gcm = std::get_if<GcmMacResult>(&mac)) note(gcm->nonce);
  }
}

// As many as one grant has tickets, all for the KDC that came first.
void Invariants::LoggedIn(const std::string& preauth, const std::string& kdc) {
  Spent& spent = spent_.try_emplace(preauth, Spent{kdc, 0}).first->second;
  if (spent.kdc != kdc) {
    journal_->Violation("a replayed pre-auth succeeded: it bought logins at two KDCs");
  }
  if (++spent.logins > kGrantTickets) {
    journal_->Violation("a replayed pre-auth succeeded: it bought three logins");
  }
  if (spent.logins == 2) journal_->Count("pre-auths that bought a second login");
}

void Invariants::Replied(const std::string& preauth) {
  if (++replies_[preauth] <= kGrantReplies) return;
  journal_->Violation("the grant of a pre-auth paid for three replies");
}

// The first block is the confounder's encryption. A restarted server draws anew.
void Invariants::Sealed(const std::string& cts_message) {
  if (first_blocks_.insert(cts_message.substr(0, kConfounderBytes)).second) return;
  journal_->Violation("two messages begin with the same block: a confounder came twice");
}

// ---- Audit ----

void Invariants::Audited(int p, const BatchJob& job) {
  std::optional<AuditLine>& line = audit_[job.id][p];
  if (line.has_value()) {
    journal_->Violation(absl::StrCat("audit: server ", p, " has two lines on job ", job.id));
  }
  line = AuditLine{job.operation, job.principal, job.judgement.verdict};
}

void Invariants::Accused(int by, Suspects suspects) {
  if (by == liar_) return;
  const int restored = servers_->restored();
  if (liar_ >= 0 && suspects.Has(liar_)) return journal_->Count("accusations of the liar");
  if (restored >= 0 && suspects.Has(restored)) {
    return journal_->Count("accusations of a server with an old disk");
  }
  if (std::any_of(triples_.begin(), triples_.end(),
                  [](const Servers* triple) { return triple->network_lies() > 0; }))
    return journal_->Count("accusations of an altered network");
  journal_->Violation(
      absl::StrCat("server ", by, " accuses ", suspects.Text(), ", who did nothing"));
}

void Invariants::AnsweredOk(JobId id, Operation operation) { answered_[id] = operation; }

void Invariants::CheckAudit() {
  for (const auto& [id, operation] : answered_) {
    const auto& lines = audit_[id];
    for (int p = 0; p < kParties; ++p) {
      if (!lines[p].has_value() || lines[p]->verdict != Verdict::kOk ||
          lines[p]->operation != operation || lines[p] != lines[0]) {
        journal_->Violation(absl::StrCat("audit: job ", id, " was answered OK, and server ", p,
                                         lines[p].has_value() ? " tells of it otherwise"
                                                              : " has no line on it"));
      }
    }
  }
}

// ---- Keys ----

void Invariants::Acknowledged(const Handle& handle, const PerParty<KeyRecord>& records) {
  acknowledged_[handle] = {records, servers_->refreshes() ? servers_->Disk(0)->Epoch().epoch : 1};
}

void Invariants::TakenBack(int p, const std::vector<Handle>& handles) {
  taken_back_[p].insert(handles.begin(), handles.end());
}

void Invariants::DiskRestored() {
  ++restores_;
  const std::unique_ptr<ShareStore> disk = servers_->Disk(servers_->restored());
  lost_.clear();  // a second restore may be of a later time than the first
  for (const auto& [handle, records] : acknowledged_) {
    if (disk->Get(handle).ok()) continue;
    lost_.insert(handle);
    journal_->Count("keys lost with a restored disk");
  }
}

// The key as two thieves would have it who read P_i and the party after it: a_{i+1} + x_i.
static Block StolenBase(const KeyRecord& of_i, const KeyRecord& of_next) {
  return XorBlocks(of_next.base[0].a, of_i.base[0].x);
}

// Of one epoch the shares of any two are the key: without that the rest would show nothing.
void Invariants::CheckThieves(const Acknowledgement& then, const PerParty<KeyRecord>& now) {
  const Block key = StolenBase(now[0], now[1]);
  for (int i = 0; i < kParties; ++i) {
    const int next = NextParty(i);
    if (StolenBase(then.records[i], then.records[next]) != key ||
        StolenBase(now[i], now[next]) != key) {
      journal_->Violation("the shares of two servers are not the key");
    }
    if (StolenBase(then.records[i], now[next]) == key ||
        StolenBase(now[i], then.records[next]) == key) {
      journal_->Violation("shares of two epochs are the key");
    }
  }
  journal_->Count("keys whose shares of two epochs were tried");
}

// The shares are not what they were, and are those of the same key.
void Invariants::CheckRefreshedKeys(Servers& servers) {
  PerParty<std::unique_ptr<ShareStore>> disks;
  for (int p = 0; p < kParties; ++p) disks[p] = servers.Disk(p);
  for (const auto& [handle, then] : acknowledged_) {
    PerParty<KeyRecord> now;
    bool all = true;
    for (int p = 0; p < kParties; ++p) {
      absl::StatusOr<KeyRecord> record = disks[p]->Get(handle);
      all &= record.ok();
      if (record.ok()) now[p] = *std::move(record);
    }
    const absl::StatusOr<PlainKey> joined = all ? JoinKey(now) : absl::NotFoundError("lost");
    const absl::StatusOr<PlainKey> before = JoinKey(then.records);
    if (!joined.ok() || !before.ok() || joined->base != before->base) {
      journal_->Violation(absl::StrCat("acknowledged key ", HandleText(handle),
                                       all ? " has been torn apart" : " is lost"));
    } else if (disks[0]->Epoch().epoch != then.epoch) {
      CheckThieves(then, now);
    }
  }
}

void Invariants::CheckKeysOf(int p) {
  const std::unique_ptr<ShareStore> disk = servers_->Disk(p);
  for (const auto& [handle, then] : acknowledged_) {
    if (servers_->refreshes() || (p == servers_->restored() && Lost(handle))) continue;
    const absl::StatusOr<KeyRecord> record = disk->Get(handle);
    if (record.ok() && SameRecord(*record, then.records[p])) continue;
    journal_->Violation(
        absl::StrCat("server ", p, " has lost acknowledged key ", HandleText(handle)));
  }
  if (p == servers_->restored()) return;
  for (const Handle& handle : taken_back_[p]) {
    if (absl::IsNotFound(disk->Get(handle).status())) continue;
    journal_->Violation(absl::StrCat("server ", p, " has key ", HandleText(handle),
                                     " of a change that was taken back"));
  }
}

void Invariants::CheckKeys() {
  for (int p = 0; p < kParties; ++p) CheckKeysOf(p);
  if (!servers_->refreshes()) return;
  for (Servers* triple : triples_) CheckRefreshedKeys(*triple);
}

// ---- Recovery ----

void Invariants::LoginEnded(int triple, absl::Time sent, const JobResult& result) {
  std::optional<absl::Time>& first_ok = first_ok_[triple];
  if (!result.judgement.ok()) {
    if (first_ok.has_value() && sent >= *first_ok) {
      journal_->Violation(absl::StrCat(
          "login ", result.id, " fails although the realm has recovered: ",
          VerdictName(result.judgement.verdict), " ", result.judgement.detail));
    }
    return;
  }
  if (first_ok.has_value() || sent < healed_) return;
  first_ok = scheduler_->now();
  const absl::Duration took = *first_ok - healed_;
  journal_->Log(absl::StrCat("triple ", triple, " recovered after ", absl::FormatDuration(took)));
  if (took > recovery_) {
    journal_->Violation(
        absl::StrCat("the first login succeeds ", absl::FormatDuration(took), " after the faults"));
  }
}

bool Invariants::InOneEpoch() const {
  return std::all_of(triples_.begin(), triples_.end(),
                     [](Servers* triple) { return triple->AllFollowed(); });
}

void Invariants::CameTogether() {
  if (together_ || !quiet()) return;
  if (InOneEpoch()) {
    together_ = true;
  } else if (scheduler_->now() > healed_ + recovery_) {
    together_ = true;
    journal_->Violation(absl::StrCat("the servers are not in one share epoch ",
                                     absl::FormatDuration(recovery_), " after the faults"));
  }
}

void Invariants::AtEnd() {
  if (!recovered()) journal_->Violation("no login succeeds after the faults");
  if (!InOneEpoch()) return journal_->Violation("the servers end in different epochs");
  CheckAudit();
  CheckKeys();
}

}  // namespace mpckdc::sim
