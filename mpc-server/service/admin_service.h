// SPDX-License-Identifier: Apache-2.0
//
// AdminService of proto/admin.proto: what administrators do to one server. Each call is checked for
// its role, runs on a worker thread of its own, and leaves one line in the audit log.
#ifndef MPC_SERVER_SERVICE_ADMIN_SERVICE_H_
#define MPC_SERVER_SERVICE_ADMIN_SERVICE_H_

#include <string>
#include <vector>

#include "mpc-server/agree/job_engine.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/package/package_open.h"
#include "mpc-server/service/caller.h"
#include "mpc-server/service/epoch_keeper.h"
#include "mpc-server/service/key_history.h"
#include "mpc-server/service/metrics.h"
#include "mpc-server/service/refusal_log.h"
#include "mpc-server/service/retired_keys.h"
#include "mpc-server/service/serial_worker.h"
#include "mpc-server/store/share_store.h"
#include "proto/admin.grpc.pb.h"

namespace mpckdc {

class Acquaintances;
class IdentityKeeper;

struct AdminServiceTools {  // not owned; must outlive the service
  ShareStore* store = nullptr;
  JobEngine* engine = nullptr;
  const Doorkeeper* doorkeeper = nullptr;
  const PackageKey* package_key = nullptr;
  const Authority* authority = nullptr;
  AuditLog* audit = nullptr;
  Metrics* metrics = nullptr;
  Clock* clock = nullptr;
  std::string isa;
  std::string security;  // SecurityName()
  std::string protocol;  // SettingName()
  const IdentityKeeper* identity = nullptr;  // may be null
  RefusalLog* refusals = nullptr;
  Acquaintances* known = nullptr;  // may be null
  RetiredCollector* collector = nullptr;
  absl::Duration max_renewable_life;
  const EpochKeeper* epochs = nullptr;  // may be null
  uint32_t triple = 0;
  absl::Duration clock_skew;
  ComparedRates compared{};
};

class AdminService final : public v1::AdminService::CallbackService {
 public:
  explicit AdminService(const AdminServiceTools& tools);
  ~AdminService() override;

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::StatusRequest* request,
                                      v1::StatusReply* reply) override;
  grpc::ServerUnaryReactor* InitRealm(grpc::CallbackServerContext* context,
                                      const v1::InitRealmRequest* request,
                                      v1::InitRealmReply* reply) override;
  grpc::ServerUnaryReactor* StageKeys(grpc::CallbackServerContext* context,
                                      const v1::StageKeysRequest* request,
                                      v1::StageKeysReply* reply) override;
  grpc::ServerUnaryReactor* DrawKey(grpc::CallbackServerContext* context,
                                    const v1::DrawKeyRequest* request,
                                    v1::DrawKeyReply* reply) override;
  grpc::ServerUnaryReactor* RenameKeys(grpc::CallbackServerContext* context,
                                       const v1::RenameKeysRequest* request,
                                       v1::RenameKeysReply* reply) override;
  grpc::ServerUnaryReactor* CommitKeys(grpc::CallbackServerContext* context,
                                       const v1::CommitKeysRequest* request,
                                       v1::CommitKeysReply* reply) override;
  grpc::ServerUnaryReactor* AbortKeys(grpc::CallbackServerContext* context,
                                      const v1::AbortKeysRequest* request,
                                      v1::AbortKeysReply* reply) override;
  grpc::ServerUnaryReactor* DeleteKeys(grpc::CallbackServerContext* context,
                                       const v1::DeleteKeysRequest* request,
                                       v1::DeleteKeysReply* reply) override;
  grpc::ServerUnaryReactor* RestoreKeys(grpc::CallbackServerContext* context,
                                        const v1::RestoreKeysRequest* request,
                                        v1::RestoreKeysReply* reply) override;
  grpc::ServerUnaryReactor* CollectKeys(grpc::CallbackServerContext* context,
                                        const v1::CollectKeysRequest* request,
                                        v1::CollectKeysReply* reply) override;
  grpc::ServerWriteReactor<v1::ListKeysReply>* ListKeys(
      grpc::CallbackServerContext* context, const v1::ListKeysRequest* request) override;
  grpc::ServerUnaryReactor* VerifyKeys(grpc::CallbackServerContext* context,
                                       const v1::VerifyKeysRequest* request,
                                       v1::VerifyKeysReply* reply) override;
  grpc::ServerUnaryReactor* CompareKeys(grpc::CallbackServerContext* context,
                                        const v1::CompareKeysRequest* request,
                                        v1::CompareKeysReply* reply) override;
  grpc::ServerUnaryReactor* SetPolicy(grpc::CallbackServerContext* context,
                                      const v1::SetPolicyRequest* request,
                                      v1::SetPolicyReply* reply) override;
  grpc::ServerUnaryReactor* Refresh(grpc::CallbackServerContext* context,
                                    const v1::RefreshRequest* request,
                                    v1::RefreshReply* reply) override;
  grpc::ServerUnaryReactor* Replace(grpc::CallbackServerContext* context,
                                    const v1::ReplaceRequest* request,
                                    v1::ReplaceReply* reply) override;
  grpc::ServerUnaryReactor* CatchUp(grpc::CallbackServerContext* context,
                                    const v1::CatchUpRequest* request,
                                    v1::CatchUpReply* reply) override;
  grpc::ServerUnaryReactor* Readmit(grpc::CallbackServerContext* context,
                                    const v1::ReadmitRequest* request,
                                    v1::ReadmitReply* reply) override;

  // From the next comparison on.
  void SetCompared(const ComparedRates& rates) { history_.SetRates(rates); }

 private:
  // One administrative act while it runs: who, what, and what the audit log shall say of it.
  struct Act;
  using ActPtr = std::shared_ptr<Act>;

  ActPtr Begin(grpc::CallbackServerContext* context, const char* call, bool kdc_may = false);
  // On the worker, if the caller is admitted: `body` either returns the result or keeps the act for
  // Complete() and returns nullopt.
  using Body = absl::AnyInvocable<std::optional<absl::Status>(const ActPtr&)>;
  grpc::ServerUnaryReactor* Run(ActPtr act, Body body);
  void Complete(const ActPtr& act, const absl::Status& status);
  void Record(const Act& act, const absl::Status& status);

  absl::Status RequireAudit(const Act& act) const;
  absl::Status RequireInitialised() const;
  // admin_status.cc.
  absl::Status FillStatus(const v1::StatusRequest& request, v1::StatusReply* reply) const;
  void FillIdentity(v1::StatusReply* reply) const;
  void FillCertificates(v1::StatusReply* reply) const;
  void FillEpoch(v1::StatusReply* reply) const;
  absl::Status FillCounts(v1::StatusReply* reply) const;
  void FillDatabase(const absl::Status& counted, v1::StatusReply* reply) const;
  void FillEngine(v1::StatusReply* reply) const;

  absl::Status DoInitRealm(const v1::InitRealmRequest& request, v1::InitRealmReply* reply);
  absl::Status DoStageKeys(Act& act, const v1::StageKeysRequest& request);
  std::optional<absl::Status> DoRefresh(const ActPtr& act, const v1::RefreshRequest& request,
                                        v1::RefreshReply* reply);
  std::optional<absl::Status> DoReplace(const ActPtr& act, const v1::ReplaceRequest& request,
                                        v1::ReplaceReply* reply);
  std::optional<absl::Status> DoDrawKey(const ActPtr& act, const v1::DrawKeyRequest& request);
  template <typename Reply, typename End>
  grpc::ServerUnaryReactor* EndTransaction(ActPtr act, const std::string& id, Reply* reply,
                                           End end);
  absl::Status DoReadmit(Act& act, v1::ReadmitReply* reply);
  absl::Status DoSetPolicy(Act& act, const v1::SetPolicyRequest& request);
  std::optional<absl::Status> DoVerifyKeys(const ActPtr& act, const v1::VerifyKeysRequest& request,
                                           v1::VerifyKeysReply* reply);
  std::optional<absl::Status> DoCompareKeys(const ActPtr& act,
                                            const v1::CompareKeysRequest& request,
                                            v1::CompareKeysReply* reply);
  absl::StatusOr<std::vector<v1::ListKeysReply>> CollectKeys(const v1::ListKeysRequest& request);

  const AdminServiceTools tools_;
  const PackageOpener opener_;
  const absl::Time started_;
  KeyHistory history_;
  SerialWorker worker_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_ADMIN_SERVICE_H_
