// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/rings.h"

#include <pthread.h>

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/share/verifier.h"

namespace mpckdc {

// A thread and the one call that it serves at a time.
struct Rings::Worker {
  absl::Mutex mutex;
  const Body* body ABSL_GUARDED_BY(mutex) = nullptr;  // null: nothing to do
  bool ending ABSL_GUARDED_BY(mutex) = false;
  absl::Status result ABSL_GUARDED_BY(mutex);
  std::thread thread;
};

Rings::Rings(std::vector<PartyContext*> rings) : rings_(std::move(rings)) {
  for (size_t ring = 1; ring < rings_.size(); ++ring) {
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    worker.thread = std::thread([this, &worker, ring] { Serve(worker, ring); });
    pthread_setname_np(worker.thread.native_handle(), absl::StrCat("ring-", ring).c_str());
  }
}

Rings::~Rings() {
  for (const std::unique_ptr<Worker>& w : workers_) {
    {
      const absl::MutexLock lock(&w->mutex);
      w->ending = true;
    }
    w->thread.join();
  }
}

void Rings::Serve(Worker& worker, size_t ring) {
  const absl::MutexLock lock(&worker.mutex);
  const auto called = [&worker]() ABSL_SHARED_LOCKS_REQUIRED(worker.mutex) {
    return worker.body != nullptr || worker.ending;
  };
  while (true) {
    worker.mutex.Await(absl::Condition(&called));
    if (worker.body == nullptr) return;
    const Body* const body = worker.body;
    worker.mutex.Unlock();
    absl::Status result = (*body)(ring, *rings_[ring]);
    worker.mutex.Lock();
    worker.result = std::move(result);
    worker.body = nullptr;
  }
}

void Rings::BeginBatch(uint32_t number) {
  for (PartyContext* ring : rings_) ring->BeginBatch(number);
}

bool Rings::verified() const {
  return absl::c_all_of(rings_, [](const PartyContext* ring) { return ring->verified(); });
}

void Rings::SetContext(const Digest& context) {
  context_ = context;
  for (PartyContext* ring : rings_) {
    if (ring->verifier() != nullptr) ring->verifier()->SetContext(context);
  }
}

absl::Status Rings::Verify(Cost* counted) {
  if (verified()) return absl::OkStatus();
  std::vector<Cost> costs(rings_.size());
  const absl::Status status = Run(rings_.size(), [&costs](size_t ring, PartyContext& party) {
    return party.Verify(&costs[ring]);
  });
  Cost all;
  for (const Cost& cost : costs) all = Together(all, cost);
  if (counted != nullptr) *counted = *counted + all;
  return status;
}

absl::Status Rings::Run(size_t count, Body body) {
  const size_t others = std::min(count, rings_.size()) - 1;
  for (size_t i = 0; i < others; ++i) {
    const absl::MutexLock lock(&workers_[i]->mutex);
    workers_[i]->body = &body;
  }
  absl::Status status = body(0, *rings_[0]);
  for (size_t i = 0; i < others; ++i) {
    Worker& w = *workers_[i];
    const absl::MutexLock lock(&w.mutex);
    const auto done = [&w]() ABSL_SHARED_LOCKS_REQUIRED(w.mutex) { return w.body == nullptr; };
    w.mutex.Await(absl::Condition(&done));
    status = Weightier(status, w.result);
  }
  if (!status.ok()) {
    for (PartyContext* ring : rings_) ring->Abort(status.message());
  }
  return status;
}

}  // namespace mpckdc
