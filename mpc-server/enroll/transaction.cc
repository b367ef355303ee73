// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/enroll/transaction.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace mpckdc::enroll {
namespace {

// Packages of one StageKeys call: about 3 KB each, gRPC messages are at most 4 MiB.
constexpr int kPackagesPerCall = 512;

}  // namespace

KeyTransaction::KeyTransaction(AdminServers* servers, TransactionTimeouts timeouts)
    : servers_(servers),
      timeouts_(timeouts),
      id_(RandomIdentifier()),
      calls_(this),
      two_phase_(&calls_, timeouts) {}

KeyTransaction::~KeyTransaction() = default;

// ---- The calls of a transaction over gRPC ----

std::array<absl::Status, 3> KeyTransaction::Calls::OnAll(
    const std::function<absl::Status(int party)>& call) {
  return txn_->servers_->OnAll([&call](int party, AdminClient&) { return call(party); });
}

absl::StatusOr<uint32_t> KeyTransaction::Calls::CommitKeys(int party, absl::Duration timeout) {
  return txn_->servers_->at(party).CommitKeys(txn_->id_, timeout);
}

absl::Status KeyTransaction::Calls::AbortKeys(int party, absl::Duration timeout) {
  return txn_->servers_->at(party).AbortKeys(txn_->id_, timeout).status();
}

absl::Status KeyTransaction::Calls::DeleteKeys(int party, absl::Duration timeout) {
  return txn_->servers_->at(party).DeleteKeys(txn_->handles_, timeout).status();
}

std::string KeyTransaction::Calls::Name(int party) { return txn_->servers_->at(party).name(); }

void KeyTransaction::Calls::Pause(absl::Duration d) { absl::SleepFor(d); }

// ---- Staging ----

absl::Status KeyTransaction::Check(const v1::KeyInfo& info) const {
  if (!two_phase_.open()) {
    return absl::FailedPreconditionError("the transaction was already staged");
  }
  if (std::find(handles_.begin(), handles_.end(), info.handle()) != handles_.end()) {
    return absl::InvalidArgumentError("a handle occurs twice in one transaction");
  }
  return CheckKeyInfo(info, servers_->realm());
}

absl::Status KeyTransaction::Add(const v1::KeyInfo& info, absl::Span<const uint8_t> base,
                                 const PackageSigner& signer) {
  if (absl::Status s = Check(info); !s.ok()) return s;
  absl::StatusOr<SealedTriple> packages =
      BuildPackages(info, base, servers_->target(), id_, signer);
  if (!packages.ok()) return packages.status();
  for (int party = 0; party < 3; ++party) {
    *stage_[party].add_packages() = std::move((*packages)[party]);
  }
  handles_.push_back(info.handle());
  return absl::OkStatus();
}

absl::Status KeyTransaction::AddDrawn(const v1::KeyInfo& info) {
  if (absl::Status s = Check(info); !s.ok()) return s;
  drawn_.push_back(info);
  handles_.push_back(info.handle());
  return absl::OkStatus();
}

absl::Status KeyTransaction::StageShared() {
  const int total = stage_[0].packages_size();
  for (int start = 0; start < total; start += kPackagesPerCall) {
    const int end = std::min(start + kPackagesPerCall, total);
    absl::Status s = two_phase_.Stage([&](int party) {
      v1::StageKeysRequest request;
      request.set_transaction(id_);
      for (int i = start; i < end; ++i) *request.add_packages() = stage_[party].packages(i);
      return servers_->at(party).StageKeys(request, timeouts_.stage);
    });
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status KeyTransaction::StageDrawn() {
  for (const v1::KeyInfo& info : drawn_) {
    v1::DrawKeyRequest request;
    request.set_transaction(id_);
    *request.mutable_info() = info;
    absl::Status s = two_phase_.Stage([&](int party) {
      return servers_->at(party).DrawKey(request, timeouts_.draw);
    });
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status KeyTransaction::Stage() {
  if (!two_phase_.open()) {
    return absl::FailedPreconditionError("the transaction was already staged");
  }
  if (handles_.empty()) return absl::InvalidArgumentError("the transaction has no keys");
  absl::Status s = two_phase_.Begin();
  if (s.ok()) s = StageShared();
  if (s.ok()) s = StageDrawn();
  return s;
}

absl::Status KeyTransaction::Commit() { return two_phase_.Commit(handles_.size()); }

absl::Status KeyTransaction::Run() {
  if (absl::Status s = Stage(); !s.ok()) return s;
  return Commit();
}

absl::Status KeyTransaction::Rollback() { return two_phase_.Rollback(); }

}  // namespace mpckdc::enroll
