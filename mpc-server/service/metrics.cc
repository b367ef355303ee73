// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/service/metrics_port.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

std::map<std::string, std::string> SuspectLabel(int party) {
  return {{"suspect", absl::StrCat("p", party)}};
}

// Seconds: from a lone job on a local network to a job that waited out its deadline.
const Histogram::BucketBoundaries kSeconds = {0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                              0.5,   1,     2,    5,    10};
const Histogram::BucketBoundaries kJobs = {1,   2,   5,    10,   20,   50,   100,
                                           200, 500, 1000, 2000, 5000, 10000};

const char* OperationLabel(Operation operation) {
  constexpr const char* kLabels[] = {"unknown",      "login",          "open_preauth",
                                     "seal_granted", "open_ticket",    "reissue_ticket",
                                     "make_checksum", "verify_checksum"};
  const auto index = static_cast<size_t>(operation);
  return index < std::size(kLabels) ? kLabels[index] : kLabels[0];
}

std::string VerdictLabel(Verdict verdict) {
  return absl::AsciiStrToLower(VerdictName(verdict));
}

}  // namespace

// Series that were used, by the numbers of their labels. To find one by its labels in the family
// takes longer than all else that a job's end takes.
template <class Series>
class SeriesTable {
 public:
  template <class Make>
  Series& Get(std::pair<size_t, size_t> at, Make make) {
    if (at.first >= kRows || at.second >= kColumns) return make();
    std::atomic<Series*>& slot = slots_[at.first][at.second];
    Series* series = slot.load(std::memory_order_acquire);
    if (series == nullptr) slot.store(series = &make(), std::memory_order_release);
    return *series;  // a family gives the same object for the same labels
  }

 private:
  static constexpr size_t kRows = 16, kColumns = 32;
  std::array<std::array<std::atomic<Series*>, kColumns>, kRows> slots_{};
};

struct Metrics::Families {
  SeriesTable<Counter> job_counters, tag_counters;
  SeriesTable<Histogram> job_histograms, key_histograms;
  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();

  template <template <class> class Builder, class T>
  Family<T>& Make(Builder<T> builder, const char* name, const char* help) {
    return builder.Name(name).Help(help).Register(*registry);
  }

  Family<Counter>& jobs = Make(prometheus::BuildCounter(), "mpckdc_jobs_total",
                               "Jobs answered, by operation and verdict");
  Family<Counter>& tags =
      Make(prometheus::BuildCounter(), "mpckdc_tags_total", "Tag requests answered, by verdict");
  Family<Histogram>& job_seconds = Make(prometheus::BuildHistogram(), "mpckdc_job_seconds",
                                        "From a job's receipt to its answer");
  Family<Counter>& batch_counts =
      Make(prometheus::BuildCounter(), "mpckdc_batch_work_total",
           "Batches, failed batches, rounds, bytes, AES blocks; of keys of "
           "types 17 to 20: garbled and replicated batches");
  Family<Histogram>& batch_jobs =
      Make(prometheus::BuildHistogram(), "mpckdc_batch_jobs", "Jobs in one batch");
  Family<Histogram>& batch_seconds =
      Make(prometheus::BuildHistogram(), "mpckdc_batch_seconds", "Time of one batch, by phase");
  Family<Histogram>& key_seconds =
      Make(prometheus::BuildHistogram(), "mpckdc_key_seconds",
           "Agreement and rounds of the batch that computed a job, by operation and enctype of the "
           "job's first key");
  Family<Counter>& admin = Make(prometheus::BuildCounter(), "mpckdc_admin_calls_total",
                                "Administrative calls, by call and result");
  Family<Gauge>& gauges =
      Make(prometheus::BuildGauge(), "mpckdc_state", "State of the server, by kind");
  Family<Counter>& over_quota = Make(prometheus::BuildCounter(), "mpckdc_quota_refusals_total",
                                     "Jobs that this server refused by a quota, by quota");
  Family<Gauge>& quota_rates = Make(prometheus::BuildGauge(), "mpckdc_quota_per_minute",
                                    "Rate of each quota in force; 0: unlimited");
  Family<Gauge>& deviations = Make(prometheus::BuildGauge(), "mpckdc_deviation",
                                   "1: this server is quarantined because this one, or another "
                                   "that has 1 too, deviated");
  Family<Counter>& deviated = Make(prometheus::BuildCounter(), "mpckdc_deviations_total",
                                   "Deviations that this server saw, by server that it may have "
                                   "been");
  Family<Gauge>& security = Make(prometheus::BuildGauge(), "mpckdc_security_info",
                                 "1, labelled with the mode: active or semi-honest");
  Family<Gauge>& callers =
      Make(prometheus::BuildGauge(), "mpckdc_caller_certificate_expires_seconds",
           "When the newest certificate of a KDC or administrator ends that came in the last day");
  std::map<std::string, Gauge*> shown_callers;  // by name; of one thread
  Family<Gauge>& skews = Make(prometheus::BuildGauge(), "mpckdc_peer_clock_skew_seconds",
                              "A peer's clock minus this server's, at its last message");
  Family<Gauge>& distances =
      Make(prometheus::BuildGauge(), "mpckdc_peer_distance_seconds",
           "One way to a peer: half of the shortest round trip of the last minutes");
  Family<Gauge>& rates = Make(prometheus::BuildGauge(), "mpckdc_peer_bytes_per_second",
                              "What the line to a peer carried when it was full; 0: unknown");

  std::unique_ptr<MetricsPort> port;  // last: it shows all of the others until it is gone

  void Count(const char* what, double value) {
    batch_counts.Add({{"what", what}}).Increment(value);
  }
  void Set(const char* what, double value) { gauges.Add({{"what", what}}).Set(value); }
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {}
Metrics::~Metrics() = default;

absl::Status Metrics::Serve(const std::string& listen) {
  absl::StatusOr<std::unique_ptr<MetricsPort>> port =
      MetricsPort::Open(listen, [this] { return Render(); });
  if (!port.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics on ", listen, ": ", port.status().message()));
  }
  families_->port = *std::move(port);
  return absl::OkStatus();
}

std::string Metrics::Render() const {
  return prometheus::TextSerializer().Serialize(families_->registry->Collect());
}

void Metrics::JobDone(Operation operation, Verdict verdict, absl::Duration latency) {
  const char* const label = OperationLabel(operation);
  Families& f = *families_;
  f.job_counters
      .Get({static_cast<size_t>(operation), static_cast<size_t>(verdict)},
           [&]() -> Counter& {
             return f.jobs.Add({{"operation", label}, {"verdict", VerdictLabel(verdict)}});
           })
      .Increment();
  f.job_histograms
      .Get({static_cast<size_t>(operation), 0},
           [&]() -> Histogram& { return f.job_seconds.Add({{"operation", label}}, kSeconds); })
      .Observe(absl::ToDoubleSeconds(latency));
}

void Metrics::TagDone(Verdict verdict) {
  Families& f = *families_;
  f.tag_counters
      .Get({0, static_cast<size_t>(verdict)},
           [&]() -> Counter& { return f.tags.Add({{"verdict", VerdictLabel(verdict)}}); })
      .Increment();
}

void Metrics::BatchDone(const BatchReport& report) {
  Families& f = *families_;
  f.Count("batches", 1);
  if (!report.status.ok()) f.Count("failed_batches", 1);
  f.Count("rounds", static_cast<double>(report.rounds));
  f.Count("bytes", static_cast<double>(report.bytes));
  f.Count("aes_blocks", static_cast<double>(report.aes_blocks));
  if (report.protocol == CtsProtocol::kGarbled) f.Count("garbled_batches", 1);
  if (report.protocol == CtsProtocol::kReplicated) f.Count("replicated_batches", 1);
  f.batch_jobs.Add({}, kJobs).Observe(static_cast<double>(report.jobs.size()));
  const auto phase = [&f](const char* name, absl::Duration time) {
    f.batch_seconds.Add({{"phase", name}}, kSeconds).Observe(absl::ToDoubleSeconds(time));
  };
  phase("waited", report.waited);
  phase("agreed", report.agreed);
  phase("computed", report.computed);
  for (const BatchJob& job : report.jobs) KeyDone(job, report.agreed + report.computed);
}

void Metrics::KeyDone(const BatchJob& job, absl::Duration time) {
  const Enctype* const enctype = job.keys.empty() ? nullptr : FindEnctype(job.keys[0].enctype);
  if (!job.computed || enctype == nullptr) return;
  families_->key_histograms
      .Get({static_cast<size_t>(job.operation), static_cast<size_t>(enctype - kEnctypes)},
           [&]() -> Histogram& {
             return families_->key_seconds.Add({{"operation", OperationLabel(job.operation)},
                                                {"enctype", std::string(enctype->name)}},
                                               kSeconds);
           })
      .Observe(absl::ToDoubleSeconds(time));
}

void Metrics::AdminDone(const std::string& call, bool ok) {
  families_->admin.Add({{"call", call}, {"result", ok ? "ok" : "error"}}).Increment();
}

void Metrics::Audit(const AuditStatus& audit) {
  Families& f = *families_;
  f.Set("audit_lines", static_cast<double>(audit.lines));
  f.Set("audit_failures", static_cast<double>(audit.failures));
  f.Set("audit_failing", audit.failing.empty() ? 0 : 1);
  f.Set("audit_seq", static_cast<double>(audit.head.seq));
}

void Metrics::Deviated(Suspects suspects) {
  for (int party = 0; party < kParties; ++party) {
    if (suspects.Has(party)) families_->deviated.Add(SuspectLabel(party)).Increment();
  }
}

void Metrics::SetSecurity(const char* mode) { families_->security.Add({{"mode", mode}}).Set(1); }

void Metrics::Gauges(const EngineStatus& engine, size_t streams) {
  Families& f = *families_;
  f.Set("peers_connected", engine.peers_connected ? 1 : 0);
  f.Set("degraded", engine.degraded.empty() && engine.unrecorded.empty() ? 0 : 1);
  f.Set("clock_suspect", engine.clock_suspect ? 1 : 0);
  f.Set("quarantined", engine.quarantine.has_value() ? 1 : 0);
  f.Set("different_records", static_cast<double>(engine.different_records));
  const Suspects suspects = engine.quarantine ? engine.quarantine->suspects : Suspects();
  for (const int party : {PrevParty(engine.party), NextParty(engine.party)}) {
    f.deviations.Add(SuspectLabel(party)).Set(suspects.Has(party) ? 1 : 0);
  }
  const auto skew = [&f](int party, absl::Duration d) {
    f.skews.Add({{"peer", absl::StrCat("p", party)}}).Set(absl::ToDoubleSeconds(d));
  };
  skew(PrevParty(engine.party), engine.skew_prev);
  skew(NextParty(engine.party), engine.skew_next);
  const auto line = [&f](int party, const LineState& l) {
    const std::map<std::string, std::string> label = {{"peer", absl::StrCat("p", party)}};
    f.distances.Add(label).Set(absl::ToDoubleSeconds(l.distance));
    f.rates.Add(label).Set(static_cast<double>(l.rate));
  };
  line(PrevParty(engine.party), engine.line_prev);
  line(NextParty(engine.party), engine.line_next);
  f.Set("jobs_waiting", static_cast<double>(engine.waiting));
  f.Set("pending_seals", static_cast<double>(engine.pending_seals));
  f.Set("grants", static_cast<double>(engine.grants));
  QuotaGauges(engine);
  f.Set("kdc_streams", static_cast<double>(streams));
}

// Of a caller that is gone for a day nothing is shown any more.
void Metrics::Certificates(const CertificateState& own, const std::vector<SeenCaller>& callers) {
  Families& f = *families_;
  const auto seconds = [](absl::Time t) { return absl::ToDoubleSeconds(t - absl::UnixEpoch()); };
  f.Set("certificate_expires_seconds", seconds(own.expires));
  f.Set("authority_expires_seconds", seconds(own.authority_expires));
  f.Set("certificate_trouble", own.trouble.empty() ? 0 : 1);
  std::map<std::string, Gauge*> shown;
  for (const SeenCaller& caller : callers) {
    Gauge& gauge = f.callers.Add({{"caller", caller.name}});
    gauge.Set(seconds(caller.expires));
    shown[caller.name] = &gauge;
  }
  for (const auto& [name, gauge] : f.shown_callers) {
    if (!shown.contains(name)) f.callers.Remove(gauge);
  }
  f.shown_callers = std::move(shown);
}

void Metrics::Epoch(const EpochState& state, const EpochProgress& progress) {
  families_->Set("share_epoch", static_cast<double>(state.epoch));
  families_->Set("share_epoch_began_seconds",
                 absl::ToDoubleSeconds(state.began - absl::UnixEpoch()));
  families_->Set("refreshing", state.rewriting ? 1 : 0);
  families_->Set(
      "refresh_records_left",
      static_cast<double>(progress.to_write - std::min(progress.to_write, progress.written)));
  families_->Set("refresh_trouble", progress.trouble.empty() ? 0 : 1);
}

void Metrics::Store(size_t keys, size_t retired, uint64_t disk_bytes) {
  families_->Set("keys", static_cast<double>(keys));
  families_->Set("retired", static_cast<double>(retired));
  families_->Set("store_bytes", static_cast<double>(disk_bytes));
}

void Metrics::Database(const DatabaseState& state, const RecordCache::Use& cache) {
  Families& f = *families_;
  f.Set("database_reachable", state.reachable ? 1 : 0);
  f.Set("database_synchronous", state.synchronous ? 1 : 0);
  f.Set("database_answer_seconds", absl::ToDoubleSeconds(state.answer_time));
  f.Set("database_commit_seconds", absl::ToDoubleSeconds(state.commit_time));
  f.Set("database_commits", static_cast<double>(state.commits));
  f.Set("database_connections", static_cast<double>(state.connections));
  f.Set("cache_keys", static_cast<double>(cache.records));
  f.Set("cache_bytes", static_cast<double>(cache.bytes));
  f.Set("cache_found", static_cast<double>(cache.found));
  f.Set("cache_missed", static_cast<double>(cache.missed));
}

void Metrics::QuotaGauges(const EngineStatus& engine) {
  families_->Set("quota_buckets", static_cast<double>(engine.quota_buckets));
  families_->Set("quota_known", static_cast<double>(engine.quota_known));
  for (size_t i = 0; i < kQuotaKinds; ++i) {
    const auto kind = static_cast<QuotaKind>(i);
    const std::map<std::string, std::string> label = {{"quota", QuotaName(kind)}};
    families_->quota_rates.Add(label).Set(engine.quotas[kind].per_minute);
    Counter& refused = families_->over_quota.Add(label);
    refused.Increment(static_cast<double>(engine.quota_refused[i]) - refused.Value());
  }
}

}  // namespace mpckdc
