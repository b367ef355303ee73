// SPDX-License-Identifier: Apache-2.0
//
// What the services ask of the job engine (agree/job_engine.h says what each call promises). An
// interface, so that the services can be tested without three servers.
#ifndef MPC_SERVER_SERVICE_ENGINE_API_H_
#define MPC_SERVER_SERVICE_ENGINE_API_H_

#include <array>
#include <cstdint>
#include <vector>

#include "mpc-server/agree/job_engine.h"

namespace mpckdc {

class EngineApi {
 public:
  virtual ~EngineApi() = default;
  virtual void Submit(const KdcIdentity& kdc, Job job, JobEngine::JobCallback done) = 0;
  virtual TagResult FinishTag(const KdcIdentity& kdc, const TagRequest& request) = 0;
  virtual void DrawKey(const TransactionId& txn, const KeyInfo& info,
                       JobEngine::DrawCallback done) = 0;
  virtual void VerifyKeys(const std::array<uint8_t, 16>& request, std::vector<Handle> handles,
                          JobEngine::VerifyCallback done) = 0;
  virtual EngineStatus Status() const = 0;
};

class EngineAdapter : public EngineApi {
 public:
  explicit EngineAdapter(JobEngine* engine) : engine_(engine) {}

  void Submit(const KdcIdentity& kdc, Job job, JobEngine::JobCallback done) override {
    engine_->Submit(kdc, std::move(job), std::move(done));
  }
  TagResult FinishTag(const KdcIdentity& kdc, const TagRequest& request) override {
    return engine_->FinishTag(kdc, request);
  }
  void DrawKey(const TransactionId& txn, const KeyInfo& info,
               JobEngine::DrawCallback done) override {
    engine_->DrawKey(txn, info, std::move(done));
  }
  void VerifyKeys(const std::array<uint8_t, 16>& request, std::vector<Handle> handles,
                  JobEngine::VerifyCallback done) override {
    engine_->VerifyKeys(request, std::move(handles), std::move(done));
  }
  EngineStatus Status() const override { return engine_->Status(); }

 private:
  JobEngine* const engine_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_ENGINE_API_H_
