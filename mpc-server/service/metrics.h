// SPDX-License-Identifier: Apache-2.0
//
// Counters for Prometheus. They are always kept; serving them over HTTP is the configuration's
// choice.
#ifndef MPC_SERVER_SERVICE_METRICS_H_
#define MPC_SERVER_SERVICE_METRICS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpc-server/agree/batch_report.h"
#include "mpc-server/agree/engine_status.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/job/job.h"
#include "mpc-server/service/caller.h"
#include "mpc-server/service/epoch_keeper.h"
#include "mpc-server/service/identity_keeper.h"
#include "mpc-server/store/epochs.h"
#include "mpc-server/store/kv.h"
#include "mpc-server/store/record_cache.h"

namespace mpckdc {

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // Serves http://LISTEN/metrics until the object goes.
  absl::Status Serve(const std::string& listen);
  // What would be served, in Prometheus's text format.
  std::string Render() const;

  void JobDone(Operation operation, Verdict verdict, absl::Duration latency);
  void TagDone(Verdict verdict);
  void BatchDone(const BatchReport& report);
  void AdminDone(const std::string& call, bool ok);
  void Audit(const AuditStatus& audit);
  void Deviated(Suspects suspects);
  void SetSecurity(const char* mode);  // SecurityName()
  // Read from time to time: clock differences, queue, connections.
  void Epoch(const EpochState& state, const EpochProgress& progress);
  // Of a party's database, and what is kept of it in memory.
  void Database(const DatabaseState& state, const RecordCache::Use& cache);
  void Gauges(const EngineStatus& engine, size_t streams);
  // This server's own, and those of who comes to it.
  void Certificates(const CertificateState& own, const std::vector<SeenCaller>& callers);
  // Of a store in a file; a database is asked for its size by its own means.
  void Store(size_t keys, size_t retired, uint64_t disk_bytes);

 private:
  void KeyDone(const BatchJob& job, absl::Duration time);
  void QuotaGauges(const EngineStatus& engine);

  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_METRICS_H_
