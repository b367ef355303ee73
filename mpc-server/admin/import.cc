// SPDX-License-Identifier: Apache-2.0
//
// import-realm: users of an MIT realm come here with the keys of their passwords.
#include "mpc-server/admin/import.h"

#include <algorithm>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/enroll.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/admin/terminal.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/enroll/transaction.h"
#include "mpc-server/key/key_info.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;

constexpr size_t kCopiedAtOnce = 4096;

// Principals that get their keys together.
struct Chunk {
  SealedKeys sealed;
  std::unique_ptr<enroll::KeyTransaction> transaction;
};

std::vector<v1::NamedKey> NamedOf(const std::vector<v1::KeyInfo>& keys, bool for_history) {
  std::vector<v1::NamedKey> named;
  for (const v1::KeyInfo& key : keys) {
    named.push_back(Named(key.principal(), key.handle()));
    named.back().set_for_history(for_history);
  }
  return named;
}

void Append(std::vector<v1::NamedKey> more, std::vector<v1::NamedKey>* to) {
  std::move(more.begin(), more.end(), std::back_inserter(*to));
}

// One call of mpc-kdb, and a transaction of its own for what it seals.
absl::StatusOr<Chunk> SealChunk(const ImportKdb& kdb, enroll::AdminServers& servers,
                                const std::vector<SealRequest>& requests,
                                const enroll::PackageSigner& signer, absl::Duration timeout) {
  Chunk chunk;
  chunk.transaction = std::make_unique<enroll::KeyTransaction>(
      &servers, enroll::TransactionTimeouts{.stage = timeout, .commit = timeout});
  ASSIGN_OR_RETURN(chunk.sealed, kdb.Seal(servers.target(), chunk.transaction->id(), requests));
  for (auto& [keys, packages] : chunk.sealed.packages) {
    RETURN_IF_ERROR(chunk.transaction->AddSealed(keys, std::move(packages), signer));
  }
  return chunk;
}

// ---- Many principals ----

class Importer {
 public:
  Importer(Session* session, const ImportKdb* kdb, enroll::AdminServers* servers,
           const enroll::PackageSigner* signer, ImportReport* report)
      : session_(*session), kdb_(*kdb), servers_(*servers), signer_(*signer), report_(*report) {}

  absl::Status Run(const std::vector<SealRequest>& requests);

 private:
  using Sealing = std::future<absl::StatusOr<Chunk>>;

  Sealing StartSealing(const std::vector<SealRequest>& requests, size_t start);
  absl::Status WorkOff(const std::vector<SealRequest>& requests);
  void StartWriting(Chunk chunk);
  absl::Status FinishWriting();
  void Settled(const std::vector<absl::Status>& results, bool told);
  absl::StatusOr<std::vector<absl::Status>> LookUp(const absl::Status& why);
  void Delete(const std::vector<v1::NamedKey>& keys, enroll::Deletion how);
  void ShowProgress();

  Session& session_;
  const ImportKdb& kdb_;
  enroll::AdminServers& servers_;
  const enroll::PackageSigner& signer_;
  ImportReport& report_;
  size_t total_ = 0;
  const absl::Time start_ = absl::Now();
  InterruptGuard interrupt_;
  Chunk writing_;
  std::future<ImportKdb::Results> written_;
};

Importer::Sealing Importer::StartSealing(const std::vector<SealRequest>& requests, size_t start) {
  if (start >= requests.size()) return {};
  const size_t end = std::min(requests.size(), start + limits::kBulkPrincipals);
  std::vector<SealRequest> some(requests.begin() + static_cast<ptrdiff_t>(start),
                                requests.begin() + static_cast<ptrdiff_t>(end));
  return std::async(std::launch::async, [this, some = std::move(some)] {
    return SealChunk(kdb_, servers_, some, signer_, session_.config.timeout);
  });
}

void Importer::Delete(const std::vector<v1::NamedKey>& keys, enroll::Deletion how) {
  if (keys.empty()) return;
  const absl::Status s = session_.DeleteKeys(keys, how);
  if (s.ok()) return;
  session_.console.Remark("old or unused keys may be left on the servers (", s.message(),
                          "); the next run, or mpc-admin doctor --fix, deletes them");
}

void Importer::StartWriting(Chunk chunk) {
  std::erase_if(chunk.sealed.principals, [&](const SealedPrincipal& one) {
    if (!one.status.ok()) report_.failed.emplace_back(one.principal, one.status.message());
    return !one.status.ok();
  });
  writing_ = std::move(chunk);
  written_ = std::async(std::launch::async, [this]() -> ImportKdb::Results {
    return kdb_.Write(writing_.sealed.principals);
  });
}

// mpc-kdb as a whole failed: what does the database say?
absl::StatusOr<std::vector<absl::Status>> Importer::LookUp(const absl::Status& why) {
  std::vector<KdbNewKeys> fresh;
  for (const SealedPrincipal& one : writing_.sealed.principals) {
    fresh.push_back({one.principal, one.keys[0].kvno(), one.keys, false});
  }
  return Settle(session_, fresh, /*bulk=*/true, why);
}

void Importer::Settled(const std::vector<absl::Status>& results, bool told) {
  std::vector<v1::NamedKey> never_used, past;
  for (size_t i = 0; i < results.size(); ++i) {
    const SealedPrincipal& one = writing_.sealed.principals[i];
    if (results[i].ok()) {
      ++report_.imported;
      Append(NamedOf(one.past, /*for_history=*/true), &past);
      continue;
    }
    Append(NamedOf(one.keys, false), &never_used);
    Append(NamedOf(one.past, false), &never_used);
    // When the run ends here it is not the principal's fault: the next run takes it up.
    if (told) report_.failed.emplace_back(one.principal, results[i].message());
  }
  Delete(never_used, enroll::Deletion::kNow);
  Delete(past, enroll::Deletion::kRetire);
}

absl::Status Importer::FinishWriting() {
  if (!written_.valid()) return absl::OkStatus();
  ImportKdb::Results results = written_.get();
  const absl::Status outcome = results.status();
  if (!outcome.ok()) results = LookUp(outcome);
  if (!results.ok()) return results.status();
  Settled(*results, outcome.ok());
  ShowProgress();
  return outcome;
}

void Importer::ShowProgress() {
  const double seconds = std::max(0.001, absl::ToDoubleSeconds(absl::Now() - start_));
  const double rate = static_cast<double>(report_.imported) / seconds;
  const size_t done = report_.imported + report_.failed.size();
  const double left = rate > 0 ? static_cast<double>(total_ - done) / rate : 0;
  session_.console.Progress(done, total_, absl::StrFormat("%.0f/s, %.0f s left", rate, left));
}

absl::Status Importer::WorkOff(const std::vector<SealRequest>& requests) {
  Sealing sealing = StartSealing(requests, 0);
  for (size_t start = 0; sealing.valid(); start += limits::kBulkPrincipals) {
    ASSIGN_OR_RETURN(Chunk chunk, sealing.get());
    if (interrupt_.requested()) return absl::OkStatus();
    sealing = StartSealing(requests, start + limits::kBulkPrincipals);
    const bool any = !chunk.sealed.packages.empty();
    const absl::Status sent = any ? chunk.transaction->Run() : absl::OkStatus();
    absl::Status s = sent.ok() ? FinishWriting() : sent;
    if (!s.ok()) {
      if (sent.ok() && any) chunk.transaction->Rollback().IgnoreError();
      if (sealing.valid()) sealing.wait();
      return s;
    }
    StartWriting(std::move(chunk));
  }
  return absl::OkStatus();
}

absl::Status Importer::Run(const std::vector<SealRequest>& requests) {
  total_ = requests.size();
  ShowProgress();
  absl::Status s = WorkOff(requests);
  const absl::Status last = FinishWriting();
  if (s.ok()) s = last;
  session_.console.EndProgress();
  const std::string so_far = absl::StrCat("stopped after ", report_.imported, " of ", total_);
  if (!s.ok()) {
    session_.console.Remark(so_far);
    return Advise(s, absl::StrCat("put that right, then ", kImportAgain));
  }
  if (interrupt_.requested()) return Advise(absl::CancelledError(so_far), kImportAgain);
  return absl::OkStatus();
}

// ---- A new database: what has no keys on the servers ----

// Everything but what the new realm has of its own; who has no key that can be moved comes without
// keys, so that a new password is all that is missing.
std::vector<ImportKdb::ToCopy> ToCopyOf(const std::vector<Scanned>& chosen, bool first_run) {
  std::vector<ImportKdb::ToCopy> copies;
  for (const Scanned& one : chosen) {
    const bool local = one.place == Place::kLocal;
    const bool bare = one.place == Place::kProtected && one.planned.empty();
    const bool history = one.place == Place::kHistory && first_run;
    if (history || ((local || bare) && one.state == ImportState::kOld)) {
      copies.push_back({one.principal, bare});
    }
  }
  return copies;
}

absl::Status CopyAll(const ImportKdb& kdb, const std::vector<ImportKdb::ToCopy>& copies,
                     ImportReport* report) {
  for (size_t start = 0; start < copies.size(); start += kCopiedAtOnce) {
    const auto some = absl::MakeConstSpan(copies).subspan(start, kCopiedAtOnce);
    ASSIGN_OR_RETURN(const std::vector<absl::Status> results, kdb.Copy(some));
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].ok()) {
        ++report->copied;
      } else {
        report->failed.emplace_back(some[i].principal, results[i].message());
      }
    }
  }
  return absl::OkStatus();
}

std::vector<SealRequest> RequestsOf(const Session& session, const std::vector<Scanned>& chosen) {
  std::vector<SealRequest> requests;
  for (const Scanned& one : chosen) {
    const bool wanted = one.place == Place::kProtected && one.state == ImportState::kOld;
    if (!wanted || one.planned.empty()) continue;
    const Powers powers = PowersFor(session.options, one.principal, {});
    requests.push_back({one.principal, powers.key_class, powers.gate});
  }
  return requests;
}

absl::StatusOr<ExitCode> Import(Session& session, const ImportKdb& kdb, const ImportScan& scan) {
  ASSIGN_OR_RETURN(std::vector<Scanned> chosen, Chosen(session, scan));
  ImportReport report = ImportReport::Of({scan.converts, chosen});
  report.dry_run = session.options.dry_run;
  if (report.dry_run) {
    report.Say(session.console);
    session.console.Print(report.ToJson());
    return ExitCode::kOk;
  }
  ASSIGN_OR_RETURN(enroll::PackageSigner signer, LoadSigner(session));
  ASSIGN_OR_RETURN(enroll::AdminServers * servers, session.Connect());
  const auto touched = [](const Scanned& one) {
    return one.place == Place::kProtected && one.state != ImportState::kOld;
  };
  const bool first_run = absl::c_none_of(scan.principals, touched);
  if (!scan.converts) {
    ASSIGN_OR_RETURN(report.policies, kdb.CopyPolicies());
    RETURN_IF_ERROR(CopyAll(kdb, ToCopyOf(chosen, first_run), &report));
  }
  const std::vector<SealRequest> requests = RequestsOf(session, chosen);
  Importer importer(&session, &kdb, servers, &signer, &report);
  if (const absl::Status s = importer.Run(requests); !s.ok()) return s;
  std::set<std::string> principals;
  for (const SealRequest& request : requests) principals.insert(request.principal);
  if (!first_run) RETURN_IF_ERROR(DeleteLeftovers(session, principals));
  if (!scan.converts && session.options.operands.empty()) {
    ASSIGN_OR_RETURN(report.krbtgt, ImportKrbtgt(session, kdb, scan));
  }
  report.Say(session.console);
  session.console.Print(report.ToJson());
  session.console.Say("  next: users log in, with their old passwords; then mpc-admin import-realm "
                      "--commit, or --rollback");
  return report.failed.empty() ? ExitCode::kOk : ExitCode::kFindings;
}

absl::Status CheckOptions(const Options& options) {
  absl::string_view problem;
  if (options.dry_run + options.rollback + options.commit + options.scrub > 1) {
    problem = "one of --dry-run, --rollback, --commit and --scrub";
  }
  if (options.source.empty() == options.dump.empty()) problem = "--source, or --dump with --stash";
  if (options.dump.empty() != options.stash.empty()) problem = "--dump goes with --stash";
  if (options.dump.empty() && !options.scratch.empty()) problem = "--scratch goes with --dump";
  if ((options.commit || options.scrub) && !options.operands.empty()) {
    problem = "--commit and --scrub are for the whole realm";
  }
  return problem.empty() ? absl::OkStatus() : BadUsage("import-realm", problem);
}

}  // namespace

std::string ScratchOf(const Options& options) {
  if (options.dump.empty()) return "";
  return options.scratch.empty() ? "/var/lib/krb5kdc/mpc-import" : options.scratch;
}

absl::StatusOr<std::vector<Scanned>> Chosen(const Session& session, const ImportScan& scan) {
  const std::vector<std::string>& operands = session.options.operands;
  if (operands.empty()) return scan.principals;
  std::vector<Scanned> chosen;
  for (const std::string& operand : operands) {
    ASSIGN_OR_RETURN(const std::string name, QualifyPrincipal(operand, session.config.realm));
    const auto found = absl::c_find_if(
        scan.principals, [&](const Scanned& one) { return one.principal == name; });
    if (found == scan.principals.end()) {
      return absl::NotFoundError(absl::StrCat("the imported realm has no principal ", name));
    }
    chosen.push_back(*found);
    if (found->state == ImportState::kGone) chosen.back().state = ImportState::kOld;
  }
  return chosen;
}

absl::Status DeleteLeftovers(Session& session, const std::set<std::string>& principals) {
  if (principals.empty()) return absl::OkStatus();
  const std::string only = principals.size() == 1 ? *principals.begin() : "";
  ASSIGN_OR_RETURN(KeyListing listing, ListOnAll(session, only, enroll::Listed::kCommitted));
  ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdbAgain());
  KeyListing unnamed = Unreferenced(listing, *entries);
  std::erase_if(unnamed, [&](const auto& listed) {
    return principals.count(listed.second.info.principal()) == 0;
  });
  SpareNewer(*entries, &unnamed);
  if (unnamed.empty()) return absl::OkStatus();
  const absl::Status s = session.DeleteKeys(Named(unnamed), enroll::Deletion::kNow);
  if (s.ok()) {
    session.console.Remark(unnamed.size(), " keys that an interrupted run had left on the servers ",
                           "are deleted");
  }
  return s;
}

// ---- krbtgt ----

namespace {

const Scanned* FindKrbtgt(const ImportScan& scan) {
  for (const Scanned& one : scan.principals) {
    if (one.place == Place::kKrbtgt) return &one;
  }
  return nullptr;
}

uint32_t NewestHandle(const KdbEntries& entries, const std::string& principal) {
  uint32_t newest = 0;
  const auto found = entries.find(principal);
  if (found == entries.end()) return newest;
  for (const v1::KeyInfo& key : found->second) newest = std::max(newest, key.kvno());
  return newest;
}

absl::Status ImportOldTgs(Session& session, const ImportKdb& kdb, const std::string& principal) {
  ASSIGN_OR_RETURN(enroll::PackageSigner signer, LoadSigner(session));
  ASSIGN_OR_RETURN(enroll::AdminServers * servers, session.Connect());
  const std::vector<SealRequest> requests = {
      {principal, v1::KEY_CLASS_TGS_OLD, v1::GATE_TIMESTAMP}};
  ASSIGN_OR_RETURN(Chunk chunk,
                   SealChunk(kdb, *servers, requests, signer, session.config.timeout));
  RETURN_IF_ERROR(chunk.sealed.principals[0].status);
  RETURN_IF_ERROR(chunk.transaction->Run());
  ImportKdb::Results results = kdb.Write(chunk.sealed.principals);
  if (!results.ok()) return results.status();  // the next run deletes what nothing names
  if (!(*results)[0].ok()) return chunk.transaction->RollbackAfter((*results)[0]);
  return absl::OkStatus();
}

}  // namespace

// The old key stands beside the drawn one from then on: drawn first, as what was imported seals
// nothing.
absl::StatusOr<std::string> ImportKrbtgt(Session& session, const ImportKdb& kdb,
                                         const ImportScan& scan) {
  const Scanned* krbtgt = FindKrbtgt(scan);
  if (krbtgt == nullptr) return "the imported realm has none";
  ASSIGN_OR_RETURN(const KdbEntries* entries, session.ReadKdbAgain());
  const uint32_t newest = NewestHandle(*entries, krbtgt->principal);
  // After rotate-krbtgt --finish the old versions are gone, and stay so.
  if (krbtgt->state == ImportState::kImported) return "was imported before";
  if (newest <= krbtgt->kvno) {
    RETURN_IF_ERROR(DrawNext(session, krbtgt->principal, OldKeys::kStayInUse, krbtgt->kvno + 1)
                        .status());
  }
  if (krbtgt->planned.empty()) return "drawn; the old one has no AES key: old tickets end now";
  RETURN_IF_ERROR(ImportOldTgs(session, kdb, krbtgt->principal));
  RETURN_IF_ERROR(DeleteLeftovers(session, {krbtgt->principal}));
  return absl::StrCat("the next key is drawn by the servers; the old one opens the ",
                      "tickets that there are, until mpc-admin rotate-krbtgt --finish");
}

absl::StatusOr<ExitCode> ImportCommand(Session& session) {
  const Options& options = session.options;
  RETURN_IF_ERROR(CheckOptions(options));
  ImportKdb kdb(&session.kdb);
  if (options.scrub) return ScrubImport(session, kdb);
  // Before anything is changed: are the servers there?
  if (!options.dry_run) RETURN_IF_ERROR(session.Connect().status());
  if (options.dump.empty()) {
    kdb.Use(options.source);
  } else {
    RETURN_IF_ERROR(kdb.Load(ScratchOf(options), options.dump, options.stash));
  }
  ASSIGN_OR_RETURN(const ImportScan scan, kdb.Scan());
  if (options.rollback) return RollbackImport(session, kdb, scan);
  if (options.commit) return CommitImport(session, kdb, scan);
  return Import(session, kdb, scan);
}

}  // namespace mpckdc::admin
