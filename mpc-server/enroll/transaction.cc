// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/enroll/transaction.h"

#include <algorithm>
#include <utility>

#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::enroll {

KeyTransaction::KeyTransaction(AdminServers* servers, TransactionTimeouts timeouts)
    : servers_(servers),
      timeouts_(timeouts),
      id_(RandomIdentifier()),
      two_phase_(this, timeouts) {}

std::array<absl::Status, 3> KeyTransaction::OnAll(
    const std::function<absl::Status(int party)>& call) {
  return servers_->OnAll([&call](int party, AdminClient&) { return call(party); });
}

absl::StatusOr<uint32_t> KeyTransaction::CommitKeys(int party, absl::Duration timeout) {
  v1::CommitKeysRequest request;
  request.set_transaction(id_);
  ASSIGN_OR_RETURN(
      v1::CommitKeysReply reply,
      servers_->at(party).Call("CommitKeys", &AdminStub::CommitKeys, request, timeout));
  return reply.keys();
}

absl::Status KeyTransaction::AbortKeys(int party, absl::Duration timeout) {
  v1::AbortKeysRequest request;
  request.set_transaction(id_);
  return servers_->at(party).Call("AbortKeys", &AdminStub::AbortKeys, request, timeout).status();
}

absl::Status KeyTransaction::Note(const v1::KeyInfo& info) {
  if (!two_phase_.open()) {
    return absl::FailedPreconditionError("the transaction was already staged");
  }
  if (handle_set_.contains(info.handle())) {
    return absl::InvalidArgumentError("a handle occurs twice in one transaction");
  }
  RETURN_IF_ERROR(CheckKeyInfo(info, servers_->realm()));
  handle_set_.insert(info.handle());
  v1::NamedKey& key = keys_.emplace_back();
  key.set_handle(info.handle());
  key.set_principal(info.principal());
  return absl::OkStatus();
}

// Into the last call, or a new one when that is full: packages stay in the order in which they came.
void KeyTransaction::Append(SealedTriple packages, size_t keys) {
  const auto full = [&] {
    if (last_call_keys_ + keys > limits::kMaxKeysPerCall) return true;
    return std::any_of(packages.begin(), packages.end(), [&](const v1::SealedPackage& package) {
      const size_t party = static_cast<size_t>(&package - packages.data());
      return stage_.back()[party].ByteSizeLong() + package.ByteSizeLong() >
             limits::kMaxStageCallBytes;
    });
  };
  if (stage_.empty() || full()) {
    stage_.emplace_back();
    for (v1::StageKeysRequest& request : stage_.back()) request.set_transaction(id_);
    last_call_keys_ = 0;
  }
  last_call_keys_ += keys;
  for (int party = 0; party < 3; ++party) {
    *stage_.back()[party].add_packages() = std::move(packages[party]);
  }
}

absl::Status KeyTransaction::Add(absl::Span<const KeyToShare> keys, const PackageSigner& signer) {
  for (; !keys.empty(); keys.remove_prefix(std::min(keys.size(), limits::kMaxKeysPerPackage))) {
    const absl::Span<const KeyToShare> some = keys.first(
        std::min(keys.size(), limits::kMaxKeysPerPackage));
    for (const KeyToShare& key : some) RETURN_IF_ERROR(Note(key.info));
    ASSIGN_OR_RETURN(SealedTriple packages, BuildPackages(some, servers_->target(), id_, signer));
    Append(std::move(packages), some.size());
  }
  return absl::OkStatus();
}

absl::Status KeyTransaction::AddSealed(absl::Span<const v1::KeyInfo> keys, SealedBytes sealed,
                                       const PackageSigner& signer) {
  for (const v1::KeyInfo& key : keys) RETURN_IF_ERROR(Note(key));
  ASSIGN_OR_RETURN(SealedTriple packages, SignPackages(std::move(sealed), signer));
  Append(std::move(packages), keys.size());
  return absl::OkStatus();
}

absl::Status KeyTransaction::AddDrawn(const v1::KeyInfo& info) {
  RETURN_IF_ERROR(Note(info));
  drawn_.push_back(info);
  return absl::OkStatus();
}

absl::Status KeyTransaction::AddRenamed(absl::Span<const v1::RenamedKey> keys,
                                        const std::string& principal) {
  if (!two_phase_.open() || renamed_.keys_size() > 0) {
    return absl::FailedPreconditionError("keys are renamed once in a transaction");
  }
  renamed_.set_transaction(id_);
  renamed_.set_principal(principal);
  renamed_.set_epoch(servers_->target().epoch);
  for (const v1::RenamedKey& key : keys) {
    if (!handle_set_.insert(key.to()).second) {
      return absl::InvalidArgumentError("a handle occurs twice in one transaction");
    }
    v1::NamedKey& named = keys_.emplace_back();
    named.set_handle(key.to());
    named.set_principal(principal);
    *renamed_.add_keys() = key;
  }
  return absl::OkStatus();
}

// A key that one server has and another one has not is no key that can be renamed.
absl::Status KeyTransaction::StageRenamed() {
  std::array<v1::RenameKeysReply, 3> replies;
  RETURN_IF_ERROR(two_phase_.Stage([&](int party) {
    ASSIGN_OR_RETURN(replies[party],
                     servers_->at(party).Call("RenameKeys", &AdminStub::RenameKeys, renamed_,
                                              timeouts_.stage));
    return absl::OkStatus();
  }));
  const absl::flat_hash_set<std::string> unknown(replies[0].unknown().begin(),
                                                 replies[0].unknown().end());
  for (const v1::RenameKeysReply& reply : replies) {
    if (absl::flat_hash_set<std::string>(reply.unknown().begin(), reply.unknown().end()) ==
        unknown) {
      continue;
    }
    return two_phase_.RollbackAfter(absl::UnavailableError(
        "an old key that the password history names is not on all three servers: see mpc-admin "
        "doctor"));
  }
  for (const v1::RenamedKey& key : renamed_.keys()) {
    if (!unknown.contains(key.from().handle())) continue;
    unknown_.insert(key.to());
    std::erase_if(keys_, [&](const v1::NamedKey& named) { return named.handle() == key.to(); });
  }
  return absl::OkStatus();
}

absl::Status KeyTransaction::Stage() {
  if (keys_.empty()) return absl::InvalidArgumentError("the transaction has no keys");
  RETURN_IF_ERROR(two_phase_.Begin());
  for (const std::array<v1::StageKeysRequest, 3>& call : stage_) {
    RETURN_IF_ERROR(two_phase_.Stage([&](int party) {
      return servers_->at(party)
          .Call("StageKeys", &AdminStub::StageKeys, call[party], timeouts_.stage)
          .status();
    }));
  }
  for (const v1::KeyInfo& info : drawn_) {
    v1::DrawKeyRequest request;
    request.set_transaction(id_);
    *request.mutable_info() = info;
    RETURN_IF_ERROR(two_phase_.Stage([&](int party) {
      return servers_->at(party)
          .Call("DrawKey", &AdminStub::DrawKey, request, timeouts_.draw)
          .status();
    }));
  }
  return renamed_.keys_size() > 0 ? StageRenamed() : absl::OkStatus();
}

absl::Status KeyTransaction::Run() {
  RETURN_IF_ERROR(Stage());
  return Commit();
}

}  // namespace mpckdc::enroll
