// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/admin_service.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/service/deviations.h"
#include "mpc-server/service/log.h"
#include "mpc-server/service/proto_convert.h"
#include "mpc-server/service/rename_keys.h"
#include "mpc-server/wire/front_door.h"

namespace mpckdc {
namespace {

absl::StatusOr<std::vector<Handle>> HandlesOf(
    const google::protobuf::RepeatedPtrField<std::string>& in) {
  if (in.size() == 0) return absl::InvalidArgumentError("no handle is given");
  if (static_cast<size_t>(in.size()) > limits::kMaxKeysPerCall) {
    return absl::InvalidArgumentError(
        absl::StrCat("at most ", limits::kMaxKeysPerCall, " handles in one call"));
  }
  std::vector<Handle> handles;
  for (const std::string& bytes : in) {
    ASSIGN_OR_RETURN(Handle handle, Bytes16(bytes, "a key handle"));
    handles.push_back(handle);
  }
  return handles;
}

absl::Status WrongKeyCount(size_t count) {
  return absl::InvalidArgumentError(
      absl::StrCat("1 to ", limits::kMaxKeysPerCall, " keys in one call, not ", count));
}

AuditLog::Fields HandleTexts(const std::vector<Handle>& handles) {
  AuditLog::Fields texts = AuditLog::Fields::array();
  for (const Handle& handle : handles) texts.push_back(HandleText(handle));
  return texts;
}

AuditLog::Fields KeyFields(const KeyInfo& info) {
  return {{"handle", HandleText(info.handle)},
          {"principal", info.principal},
          {"kvno", info.kvno},
          {"enctype", info.enctype},
          {"class", static_cast<int>(info.key_class)},
          {"gate", static_cast<int>(info.gate)}};
}

// Writes messages one after the other, then the status.
class ListReactor final : public grpc::ServerWriteReactor<v1::ListKeysReply> {
 public:
  void Send(absl::StatusOr<std::vector<v1::ListKeysReply>> replies) {
    status_ = replies.status();
    if (replies.ok()) replies_ = *std::move(replies);
    Next();
  }
  void OnWriteDone(bool ok) override {
    if (!ok) replies_.clear();
    Next();
  }
  void OnDone() override { delete this; }

 private:
  void Next() {
    if (next_ >= replies_.size()) {
      Finish(ToGrpc(status_));
      return;
    }
    StartWrite(&replies_[next_++]);
  }

  absl::Status status_;
  std::vector<v1::ListKeysReply> replies_;
  size_t next_ = 0;
};

}  // namespace

struct AdminService::Act {
  grpc::CallbackServerContext* context;
  std::string call;
  Caller caller;
  absl::Status admitted;
  std::string from;
  AuditLog::Fields details = AuditLog::Fields::object();
  grpc::ServerUnaryReactor* reactor = nullptr;
};

AdminService::AdminService(const AdminServiceTools& tools)
    : tools_(tools),
      opener_{tools.package_key, tools.authority, tools.clock},
      started_(tools.clock->Now()),
      history_(tools.store, tools.compared) {}

AdminService::~AdminService() = default;

// ---- One act ----

AdminService::ActPtr AdminService::Begin(grpc::CallbackServerContext* context, const char* call,
                                         bool kdc_may) {
  auto act = std::make_shared<Act>();
  act->context = context;
  act->call = call;
  act->from = context->peer();
  const std::string what = absl::StrCat("AdminService.", call);
  absl::StatusOr<Caller> caller =
      kdc_may ? tools_.doorkeeper->Admit(*context->auth_context(), what, {"admin", "kdc"})
              : tools_.doorkeeper->Admit(*context->auth_context(), what, {"admin"});
  act->admitted = caller.status();
  if (caller.ok() && tools_.known != nullptr) tools_.known->Meet(act->from);
  if (caller.ok()) act->caller = *std::move(caller);
  return act;
}

grpc::ServerUnaryReactor* AdminService::Run(ActPtr act, Body body) {
  grpc::ServerUnaryReactor* reactor = act->reactor = act->context->DefaultReactor();
  if (!act->admitted.ok()) {
    Complete(act, act->admitted);
    return reactor;
  }
  worker_.Post([this, act = std::move(act), body = std::move(body)]() mutable {
    if (absl::Status s = RequireAudit(*act); !s.ok()) return Complete(act, s);
    if (std::optional<absl::Status> status = body(act)) Complete(act, *status);
  });
  return reactor;
}

void AdminService::Complete(const ActPtr& act, const absl::Status& status) {
  Record(*act, status);
  act->reactor->Finish(ToGrpc(status));
}

// Reading the status leaves no line: monitoring calls it all the time.
void AdminService::Record(const Act& act, const absl::Status& status) {
  tools_.metrics->AdminDone(act.call, status.ok());
  const bool refused = !act.admitted.ok();
  if (act.call == "GetStatus" && !refused) return;
  if (!status.ok()) Log().warn("{} of {}: {}", act.call, act.caller.Text(), Text(status));
  AuditLog::Fields line = {{refused ? "from" : "who", refused ? act.from : act.caller.Text()}};
  for (const auto& [key, value] : act.details.items()) line[key] = value;
  line["result"] = absl::StatusCodeToString(status.code());
  if (!status.ok()) line["reason"] = Text(status);
  if (refused) return tools_.refusals->Note("AdminService." + act.call, std::move(line));
  AuditLog::Fields full = {{"call", act.call}};
  full.update(line);
  absl::Status written = tools_.audit->Append("admin", std::move(full));
  if (!written.ok()) Log().error("{}", Text(written));
}

// No act goes unrecorded; the status tells the administrator why there is none.
absl::Status AdminService::RequireAudit(const Act& act) const {
  const absl::Status ready = tools_.audit->Ready();
  if (ready.ok() || act.call == "GetStatus") return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("this server does nothing that it cannot audit: ", ready.message()));
}

absl::Status AdminService::RequireInitialised() const {
  if (tools_.store->Meta().initialised) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the realm is not initialised on this server: run mpc-admin init-realm");
}

// ---- The calls ----

grpc::ServerUnaryReactor* AdminService::GetStatus(grpc::CallbackServerContext* context,
                                                  const v1::StatusRequest* request,
                                                  v1::StatusReply* reply) {
  return Run(Begin(context, "GetStatus", /*kdc_may=*/true),
             [=, this](const ActPtr&) { return FillStatus(*request, reply); });
}

grpc::ServerUnaryReactor* AdminService::InitRealm(grpc::CallbackServerContext* context,
                                                  const v1::InitRealmRequest* request,
                                                  v1::InitRealmReply* reply) {
  ActPtr act = Begin(context, "InitRealm");
  act->details = {{"named_realm", request->realm()}, {"cluster", request->cluster()}};
  return Run(std::move(act), [=, this](const ActPtr&) { return DoInitRealm(*request, reply); });
}

absl::Status AdminService::DoInitRealm(const v1::InitRealmRequest& request,
                                       v1::InitRealmReply* reply) {
  const StoreIdentity identity = tools_.store->Meta().identity;
  if (request.realm() != identity.realm || request.cluster() != identity.cluster) {
    return absl::FailedPreconditionError(absl::StrCat(
        "asked to initialise realm ", request.realm(), ", cluster ", request.cluster(),
        "; this server is configured for realm ", identity.realm, ", cluster ", identity.cluster));
  }
  ASSIGN_OR_RETURN(bool first, tools_.store->MarkInitialised());
  reply->set_already(!first);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AdminService::StageKeys(grpc::CallbackServerContext* context,
                                                  const v1::StageKeysRequest* request,
                                                  v1::StageKeysReply*) {
  return Run(Begin(context, "StageKeys"),
             [=, this](const ActPtr& act) { return DoStageKeys(*act, *request); });
}

absl::Status AdminService::DoStageKeys(Act& act, const v1::StageKeysRequest& request) {
  RETURN_IF_ERROR(RequireInitialised());
  ASSIGN_OR_RETURN(TransactionId txn, Bytes16(request.transaction(), "the transaction id"));
  act.details["transaction"] = absl::BytesToHexString(request.transaction());
  const auto packages = static_cast<size_t>(request.packages_size());
  if (packages == 0 || packages > limits::kMaxKeysPerCall) return WrongKeyCount(packages);
  const StoreMeta meta = tools_.store->Meta();
  std::string signer;
  const auto admit = [&](absl::string_view certificate_der) {
    absl::StatusOr<Caller> admitted =
        tools_.doorkeeper->AdmitDer(certificate_der, "signing a share package", {"admin"});
    if (admitted.ok()) signer = admitted->Text();
    return admitted.status();
  };
  std::vector<KeyRecord> records;
  std::set<uint64_t> epochs;
  for (const v1::SealedPackage& package : request.packages()) {
    ASSIGN_OR_RETURN(SharePackageContents opened, opener_.Open(package, meta, txn, admit));
    act.details["signer"] = signer;
    epochs.insert(opened.epoch);
    for (KeyRecord& record : opened.records) {
      act.details["keys"].push_back(KeyFields(record.info));
      records.push_back(std::move(record));
    }
    if (records.size() > limits::kMaxKeysPerCall) return WrongKeyCount(records.size());
  }
  if (epochs.size() > 1) {
    return absl::InvalidArgumentError("the call's packages are of two share epochs");
  }
  RETURN_IF_ERROR(tools_.store->Stage(txn, records, *epochs.begin(), tools_.clock->Now()));
  history_.NoteStager(txn, act.caller.Text());
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AdminService::DrawKey(grpc::CallbackServerContext* context,
                                                const v1::DrawKeyRequest* request,
                                                v1::DrawKeyReply*) {
  return Run(Begin(context, "DrawKey"),
             [=, this](const ActPtr& act) { return DoDrawKey(act, *request); });
}

std::optional<absl::Status> AdminService::DoDrawKey(const ActPtr& act,
                                                    const v1::DrawKeyRequest& request) {
  RETURN_IF_ERROR(RequireInitialised());
  ASSIGN_OR_RETURN(TransactionId txn, Bytes16(request.transaction(), "the transaction id"));
  act->details["transaction"] = absl::BytesToHexString(request.transaction());
  ASSIGN_OR_RETURN(KeyInfo info, KeyInfoFromProto(request.info(), tools_.doorkeeper->realm()));
  act->details["keys"].push_back(KeyFields(info));
  tools_.engine->DrawKey(txn, info, [this, act](absl::Status status) {
    worker_.Post([this, act, status] { Complete(act, status); });
  });
  return std::nullopt;
}

grpc::ServerUnaryReactor* AdminService::RenameKeys(grpc::CallbackServerContext* context,
                                                   const v1::RenameKeysRequest* request,
                                                   v1::RenameKeysReply* reply) {
  return Run(Begin(context, "RenameKeys"), [=, this](const ActPtr& act) -> absl::Status {
    RETURN_IF_ERROR(RequireInitialised());
    return RenameKeysCall(*tools_.store, &history_, tools_.clock->Now(), *request, reply,
                          &act->details);
  });
}

grpc::ServerUnaryReactor* AdminService::Refresh(grpc::CallbackServerContext* context,
                                                const v1::RefreshRequest* request,
                                                v1::RefreshReply* reply) {
  return Run(Begin(context, "Refresh"),
             [=, this](const ActPtr& act) { return DoRefresh(act, *request, reply); });
}

std::optional<absl::Status> AdminService::DoRefresh(const ActPtr& act,
                                                    const v1::RefreshRequest& request,
                                                    v1::RefreshReply* reply) {
  RETURN_IF_ERROR(RequireInitialised());
  act->details["epoch"] = request.epoch();
  tools_.engine->Refresh(request.epoch(), tools_.clock->Now() + limits::kRefreshTimeout,
                         [this, act, reply](absl::Status status) {
                           reply->set_epoch(tools_.store->Epoch().epoch);
                           worker_.Post([this, act, status] { Complete(act, status); });
                         });
  return std::nullopt;
}

grpc::ServerUnaryReactor* AdminService::Replace(grpc::CallbackServerContext* context,
                                                const v1::ReplaceRequest* request,
                                                v1::ReplaceReply* reply) {
  return Run(Begin(context, "Replace"),
             [=, this](const ActPtr& act) { return DoReplace(act, *request, reply); });
}

std::optional<absl::Status> AdminService::DoReplace(const ActPtr& act,
                                                    const v1::ReplaceRequest& request,
                                                    v1::ReplaceReply* reply) {
  act->details["party"] = request.party();
  if (request.party() >= kParties) {
    return absl::InvalidArgumentError(absl::StrCat("there is no party ", request.party()));
  }
  tools_.engine->Replace(static_cast<int>(request.party()),
                         tools_.clock->Now() + limits::kRefreshTimeout,
                         [this, act, reply](absl::Status status) {
                           reply->set_epoch(tools_.store->Epoch().epoch);
                           worker_.Post([this, act, status] { Complete(act, status); });
                         });
  return std::nullopt;
}

grpc::ServerUnaryReactor* AdminService::CatchUp(grpc::CallbackServerContext* context,
                                                const v1::CatchUpRequest*, v1::CatchUpReply*) {
  return Run(Begin(context, "CatchUp"), [this](const ActPtr&) -> absl::Status {
    RETURN_IF_ERROR(RequireInitialised());
    return tools_.engine->CatchUp();
  });
}

// What CommitKeys and AbortKeys have in common: `end` gives the number of keys that it concerned.
template <typename Reply, typename End>
grpc::ServerUnaryReactor* AdminService::EndTransaction(ActPtr act, const std::string& id,
                                                       Reply* reply, End end) {
  act->details = {{"transaction", absl::BytesToHexString(id)}};
  return Run(std::move(act), [&id, reply, end](const ActPtr& act) -> absl::Status {
    ASSIGN_OR_RETURN(TransactionId txn, Bytes16(id, "the transaction id"));
    ASSIGN_OR_RETURN(size_t keys, end(txn));
    reply->set_keys(static_cast<uint32_t>(keys));
    act->details["count"] = keys;
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::CommitKeys(grpc::CallbackServerContext* context,
                                                   const v1::CommitKeysRequest* request,
                                                   v1::CommitKeysReply* reply) {
  return EndTransaction(
      Begin(context, "CommitKeys"), request->transaction(), reply,
      [this](const TransactionId& txn) { return tools_.store->Commit(txn, tools_.clock->Now()); });
}

grpc::ServerUnaryReactor* AdminService::AbortKeys(grpc::CallbackServerContext* context,
                                                  const v1::AbortKeysRequest* request,
                                                  v1::AbortKeysReply* reply) {
  return EndTransaction(Begin(context, "AbortKeys"), request->transaction(), reply,
                        [this](const TransactionId& txn) { return tools_.store->Abort(txn); });
}

grpc::ServerUnaryReactor* AdminService::DeleteKeys(grpc::CallbackServerContext* context,
                                                   const v1::DeleteKeysRequest* request,
                                                   v1::DeleteKeysReply* reply) {
  return Run(Begin(context, "DeleteKeys"), [=, this](const ActPtr& act) {
    // A clock that was set back must not make them older than they are.
    const absl::Time now = std::max(tools_.clock->Now(), tools_.engine->Status().clock_confirmed);
    return DeleteKeysCall(*tools_.store, now, *request, reply, &act->details);
  });
}

grpc::ServerUnaryReactor* AdminService::RestoreKeys(grpc::CallbackServerContext* context,
                                                    const v1::RestoreKeysRequest* request,
                                                    v1::RestoreKeysReply* reply) {
  return Run(Begin(context, "RestoreKeys"), [=, this](const ActPtr& act) {
    return RestoreKeysCall(*tools_.store, *request, reply, &act->details);
  });
}

grpc::ServerUnaryReactor* AdminService::CollectKeys(grpc::CallbackServerContext* context,
                                                    const v1::CollectKeysRequest*,
                                                    v1::CollectKeysReply* reply) {
  return Run(Begin(context, "CollectKeys"), [=, this](const ActPtr& act) -> absl::Status {
    ASSIGN_OR_RETURN(size_t collected, tools_.collector->Collect(tools_.engine->Status()));
    reply->set_collected(static_cast<uint32_t>(collected));
    reply->set_more(collected == limits::kCollectAtOnce);
    act->details["count"] = collected;
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::SetPolicy(grpc::CallbackServerContext* context,
                                                  const v1::SetPolicyRequest* request,
                                                  v1::SetPolicyReply*) {
  return Run(Begin(context, "SetPolicy"),
             [=, this](const ActPtr& act) { return DoSetPolicy(*act, *request); });
}

absl::Status AdminService::DoSetPolicy(Act& act, const v1::SetPolicyRequest& request) {
  if (request.principal().empty()) {
    return absl::FailedPreconditionError(
        "this server sets the gate of keys by their handles and their principal; the caller is of "
        "an older version, which names the handles alone: upgrade it (mpc-admin)");
  }
  ASSIGN_OR_RETURN(std::vector<Handle> handles, HandlesOf(request.handles()));
  ASSIGN_OR_RETURN(Gate gate, GateFromProto(request.gate()));
  act.details["principal"] = request.principal();
  act.details["handles"] = HandleTexts(handles);
  act.details["gate"] = static_cast<int>(gate);
  return tools_.store->SetGate(request.principal(), handles, gate);
}

grpc::ServerUnaryReactor* AdminService::Readmit(grpc::CallbackServerContext* context,
                                                const v1::ReadmitRequest*,
                                                v1::ReadmitReply* reply) {
  return Run(Begin(context, "Readmit"),
             [=, this](const ActPtr& act) { return DoReadmit(*act, reply); });
}

absl::Status AdminService::DoReadmit(Act& act, v1::ReadmitReply* reply) {
  ASSIGN_OR_RETURN(const std::optional<DeviationReport> ended, tools_.engine->Readmit());
  act.details["ended"] = ended.has_value();
  if (!ended.has_value()) return absl::OkStatus();
  act.details.update(DeviationFields(*ended));
  *reply->mutable_ended() = ToProto(*ended);
  Log().warn("{} ended the quarantine of this server: {}", act.caller.Text(), ended->text);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AdminService::VerifyKeys(grpc::CallbackServerContext* context,
                                                   const v1::VerifyKeysRequest* request,
                                                   v1::VerifyKeysReply* reply) {
  return Run(Begin(context, "VerifyKeys"),
             [=, this](const ActPtr& act) { return DoVerifyKeys(act, *request, reply); });
}

std::optional<absl::Status> AdminService::DoVerifyKeys(const ActPtr& act,
                                                       const v1::VerifyKeysRequest& request,
                                                       v1::VerifyKeysReply* reply) {
  RETURN_IF_ERROR(RequireInitialised());
  ASSIGN_OR_RETURN(auto id, Bytes16(request.request(), "the request id"));
  ASSIGN_OR_RETURN(std::vector<Handle> handles, HandlesOf(request.handles()));
  act->details["handles"] = HandleTexts(handles);
  tools_.engine->VerifyKeys(
      id, std::move(handles),
      [this, act, reply](absl::StatusOr<std::vector<VerifyResult>> results) {
        size_t inconsistent = 0;
        if (results.ok()) {
          for (const VerifyResult& result : *results) {
            v1::VerifyKeysReply::Result* out = reply->add_results();
            out->set_handle(std::string(result.handle.begin(), result.handle.end()));
            out->set_consistent(result.consistent);
            out->set_detail(result.detail);
            inconsistent += !result.consistent;
          }
          act->details["inconsistent"] = inconsistent;
        }
        worker_.Post([this, act, status = results.status()] { Complete(act, status); });
      });
  return std::nullopt;
}

grpc::ServerUnaryReactor* AdminService::CompareKeys(grpc::CallbackServerContext* context,
                                                    const v1::CompareKeysRequest* request,
                                                    v1::CompareKeysReply* reply) {
  return Run(Begin(context, "CompareKeys"),
             [=, this](const ActPtr& act) { return DoCompareKeys(act, *request, reply); });
}

std::optional<absl::Status> AdminService::DoCompareKeys(const ActPtr& act,
                                                        const v1::CompareKeysRequest& request,
                                                        v1::CompareKeysReply* reply) {
  RETURN_IF_ERROR(RequireInitialised());
  ASSIGN_OR_RETURN(CompareRequest admitted,
                   history_.Admit(request, act->caller.Text(), &act->details));
  tools_.engine->CompareKeys(
      std::move(admitted), [this, act, reply](absl::StatusOr<std::vector<CompareResult>> results) {
        if (results.ok()) FillAnswers(*results, reply, &act->details);
        worker_.Post([this, act, status = results.status()] { Complete(act, status); });
      });
  return std::nullopt;
}

grpc::ServerWriteReactor<v1::ListKeysReply>* AdminService::ListKeys(
    grpc::CallbackServerContext* context, const v1::ListKeysRequest* request) {
  ActPtr act = Begin(context, "ListKeys");
  act->details = {{"principal", request->principal()}, {"staged", request->staged()}};
  auto* reactor = new ListReactor;
  if (!act->admitted.ok()) {
    Record(*act, act->admitted);
    reactor->Send(act->admitted);
    return reactor;
  }
  worker_.Post([this, act, reactor, request] {
    absl::StatusOr<std::vector<v1::ListKeysReply>> replies = CollectKeys(*request);
    Record(*act, replies.status());
    reactor->Send(std::move(replies));
  });
  return reactor;
}

namespace {

// The keys that are wanted, cut into messages. A damaged record is the call's error, which names
// it: a list that leaves it out would mislead.
class KeyCollector {
 public:
  // `limit`: of keys looked at; 0: none.
  KeyCollector(const std::string& principal, size_t limit)
      : principal_(principal), limit_(limit) {}

  bool Visit(const absl::StatusOr<KeyInfo>& info) {
    if (limit_ != 0 && seen_ == limit_) {
      next_ = info.ok() ? std::string(AsText(info->handle)) : "";
      damage_.Update(info.status());
      return false;
    }
    ++seen_;
    damage_.Update(info.status());
    if (!info.ok() || (!principal_.empty() && info->principal != principal_)) return true;
    if (replies_.empty() || static_cast<size_t>(replies_.back().keys_size()) >=
                                limits::kMaxListKeysPerMessage) {
      replies_.emplace_back();
    }
    KeyInfoToProto(*info, replies_.back().add_keys());
    return true;
  }

  absl::StatusOr<std::vector<v1::ListKeysReply>> Take(absl::Status status) {
    status.Update(damage_);
    if (!status.ok()) return status;
    if (!next_.empty()) {
      if (replies_.empty()) replies_.emplace_back();
      replies_.back().set_next(next_);
    }
    return std::move(replies_);
  }

 private:
  const std::string& principal_;
  const size_t limit_;
  size_t seen_ = 0;
  std::string next_;
  absl::Status damage_;
  std::vector<v1::ListKeysReply> replies_;
};

}  // namespace

// Staged keys are few (limits.h) and come at once. The committed ones come in as many calls as the
// caller likes, so that neither this server's memory nor a call's deadline grows with the realm.
absl::StatusOr<std::vector<v1::ListKeysReply>> AdminService::CollectKeys(
    const v1::ListKeysRequest& request) {
  Handle from{};
  if (!request.from().empty()) {
    ASSIGN_OR_RETURN(from, Bytes16(request.from(), "the handle to go on from"));
  }
  const size_t limit = std::min<size_t>(request.limit(), limits::kMaxListKeysPerCall);
  KeyCollector collector(request.principal(), request.staged() ? 0 : limit);
  const auto visit = [&](const absl::StatusOr<KeyInfo>& info) { return collector.Visit(info); };
  if (request.staged()) return collector.Take(tools_.store->ForEach(KeyState::kStaged, visit));
  const auto visit_retired = [&](const auto& info, const RetiredMark&) { return visit(info); };
  ASSIGN_OR_RETURN(
      std::vector<v1::ListKeysReply> replies,
      collector.Take(request.retired() ? tools_.store->ForEachRetired(from, visit_retired)
                                       : tools_.store->ForEachFrom(from, visit)));
  RETURN_IF_ERROR(FillRetired(*tools_.store, &replies));
  return replies;
}

}  // namespace mpckdc
