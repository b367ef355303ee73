// SPDX-License-Identifier: Apache-2.0
//
// What GetStatus says (proto/admin.proto).
#include <algorithm>
#include <numeric>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/base/version.h"
#include "mpc-server/service/admin_service.h"
#include "mpc-server/service/deviations.h"
#include "mpc-server/service/identity_keeper.h"
#include "mpc-server/service/proto_convert.h"
#include "mpc-server/share/session.h"

namespace mpckdc {
namespace {

constexpr uint32_t kMinVersion = limits::kMinClientVersion;
constexpr uint32_t kMaxVersion = limits::kMaxClientVersion;

}  // namespace

void AdminService::FillEpoch(v1::StatusReply* reply) const {
  const EpochState state = tools_.store->Epoch();
  reply->set_epoch_began_us(absl::ToUnixMicros(state.began));
  reply->set_refreshing(state.rewriting);
  reply->set_receiving(state.receiving);
  if (tools_.epochs == nullptr) return;
  const EpochProgress progress = tools_.epochs->Progress();
  reply->set_refresh_to_write(progress.to_write);
  reply->set_refresh_written(progress.written);
  reply->set_refresh_damaged(progress.damaged);
  reply->set_refresh_trouble(progress.trouble);
  reply->set_refresh_waits(progress.waits);
  const absl::Duration every = tools_.epochs->every();
  if (every < absl::InfiniteDuration()) {
    reply->set_refresh_every_us(absl::ToInt64Microseconds(every));
  }
}

absl::Status AdminService::FillCounts(v1::StatusReply* reply) const {
  ASSIGN_OR_RETURN(const size_t keys, tools_.store->Count(KeyState::kCommitted));
  ASSIGN_OR_RETURN(const size_t staged, tools_.store->Count(KeyState::kStaged));
  ASSIGN_OR_RETURN(const size_t retired, tools_.store->CountRetired());
  reply->set_keys(keys);
  reply->set_staged(staged);
  reply->set_retired(retired);
  return absl::OkStatus();
}

// A server without its database still says that, and all else that it knows. Called after the
// counts, which are what finds out.
void AdminService::FillDatabase(const absl::Status& counted, v1::StatusReply* reply) const {
  const std::optional<DatabaseState> state = tools_.store->Database();
  if (!state.has_value()) return;
  v1::DatabaseStatus& database = *reply->mutable_database();
  database.set_reachable(state->reachable && counted.ok());
  database.set_trouble(state->reachable ? std::string(counted.message()) : state->trouble);
  database.set_where(state->where);
  database.set_system(state->system);
  database.set_synchronous(state->synchronous);
  database.set_answer_us(absl::ToInt64Microseconds(state->answer_time));
  database.set_commit_us(absl::ToInt64Microseconds(state->commit_time));
  database.set_commits(state->commits);
  database.set_connections(static_cast<uint32_t>(state->connections));
  const std::optional<RecordCache::Use> cache = tools_.store->CacheUse();
  if (!cache.has_value()) return;
  database.set_cache_keys(cache->records);
  database.set_cache_bytes(cache->bytes);
  database.set_cache_max_bytes(cache->max_bytes);
  database.set_cache_found(cache->found);
  database.set_cache_missed(cache->missed);
}

// What this server is, and how it was set up.
void AdminService::FillIdentity(v1::StatusReply* reply) const {
  const StoreMeta meta = tools_.store->Meta();
  reply->set_software("mpc-server " MPCKDC_VERSION);
  reply->set_isa(tools_.isa);
  reply->set_peer_protocol(kPeerProtocolMax);
  reply->set_party(static_cast<uint32_t>(meta.identity.party));
  reply->set_realm(meta.identity.realm);
  reply->set_cluster(meta.identity.cluster);
  reply->set_triple(tools_.triple);
  reply->set_epoch(meta.epoch);
  reply->set_initialised(meta.initialised);
  reply->set_time_us(absl::ToUnixMicros(tools_.clock->Now()));
  reply->set_started_us(absl::ToUnixMicros(started_));
  reply->set_package_key(tools_.package_key->public_key());
  reply->set_delete_grace_us(absl::ToInt64Microseconds(tools_.collector->grace()));
  reply->set_max_renewable_life_us(absl::ToInt64Microseconds(tools_.max_renewable_life));
  reply->set_clock_skew_us(absl::ToInt64Microseconds(tools_.clock_skew));
  reply->set_security(tools_.security);
  reply->set_protocol(tools_.protocol);
  const AuditStatus audit = tools_.audit->Status();
  reply->set_audit_seq(audit.head.seq);
  reply->set_audit_head(absl::HexStringToBytes(audit.head.hash));
}

void AdminService::FillCertificates(v1::StatusReply* reply) const {
  for (const SeenCaller& seen : tools_.doorkeeper->Seen()) {
    v1::CallerCertificate& caller = *reply->add_callers();
    caller.set_name(seen.name);
    caller.set_expires_us(absl::ToUnixMicros(seen.expires));
    caller.set_seen_us(absl::ToUnixMicros(seen.last));
  }
  if (tools_.identity == nullptr) return;
  const CertificateState own = tools_.identity->State();
  reply->set_certificate_expires_us(absl::ToUnixMicros(own.expires));
  reply->set_authority_expires_us(absl::ToUnixMicros(own.authority_expires));
  reply->set_certificate_trouble(own.trouble);
}

void AdminService::FillEngine(v1::StatusReply* reply) const {
  const EngineStatus engine = tools_.engine->Status();
  reply->set_peers_connected(engine.peers_connected);
  reply->set_peer_skew_us_prev(absl::ToInt64Microseconds(engine.skew_prev));
  reply->set_peer_skew_us_next(absl::ToInt64Microseconds(engine.skew_next));
  reply->set_peer_distance_us_prev(absl::ToInt64Microseconds(engine.line_prev.distance));
  reply->set_peer_distance_us_next(absl::ToInt64Microseconds(engine.line_next.distance));
  reply->set_peer_rate_prev(engine.line_prev.rate);
  reply->set_peer_rate_next(engine.line_next.rate);
  reply->set_batches(engine.batches);
  reply->set_garbled_batches(engine.garbled_batches);
  reply->set_replicated_batches(engine.replicated_batches);
  if (engine.protocol.has_value()) reply->set_last_protocol(ProtocolName(*engine.protocol));
  reply->set_jobs(engine.jobs);
  reply->set_jobs_failed(engine.jobs_failed);
  reply->set_jobs_waiting(engine.waiting);
  reply->set_logins(engine.logins);
  const auto us = [](absl::Duration d) {
    return static_cast<uint64_t>(absl::ToInt64Microseconds(d));
  };
  reply->set_batches_waited_us(us(engine.waited));
  reply->set_batches_agreed_us(us(engine.agreed));
  reply->set_batches_computed_us(us(engine.computed));
  reply->set_quotas(engine.quotas.Text());
  reply->set_jobs_over_quota(
      std::accumulate(engine.quota_refused.begin(), engine.quota_refused.end(), uint64_t{0}));
  reply->set_degraded(engine.unrecorded.empty() ? engine.degraded : engine.unrecorded);
  if (engine.quarantine.has_value()) *reply->mutable_quarantine() = ToProto(*engine.quarantine);
  reply->set_different_records(engine.different_records);
  reply->set_different_record(engine.different_record);
  reply->set_handed_over(engine.handed_over);
  reply->set_left_out(engine.left_out);
}

absl::Status AdminService::FillStatus(const v1::StatusRequest& request,
                                      v1::StatusReply* reply) const {
  if (request.min_version() > kMaxVersion || request.max_version() < kMinVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no common version: the caller speaks ", request.min_version(), " to ",
        request.max_version(), ", this server ", kMinVersion, " to ", kMaxVersion));
  }
  reply->set_version(std::min(request.max_version(), kMaxVersion));
  const absl::Status counted = FillCounts(reply);
  FillDatabase(counted, reply);
  if (!counted.ok() && !reply->has_database()) return counted;
  FillIdentity(reply);
  FillCertificates(reply);
  FillEpoch(reply);
  FillEngine(reply);
  return absl::OkStatus();
}

}  // namespace mpckdc
