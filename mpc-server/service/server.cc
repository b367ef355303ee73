// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/server.h"

#include <errno.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <string.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "mpc-server/agree/job_engine.h"
#include "mpc-server/agree/quarantine.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/base/steady_wait.h"
#include "mpc-server/base/version.h"
#include "mpc-server/pkinit/desk.h"
#include "mpc-server/service/admin_service.h"
#include "mpc-server/service/config_parts.h"
#include "mpc-server/service/deny_list.h"
#include "mpc-server/service/epoch_keeper.h"
#include "mpc-server/service/key_service.h"
#include "mpc-server/service/log.h"
#include "mpc-server/service/metrics.h"
#include "mpc-server/service/observer.h"
#include "mpc-server/service/health_service.h"
#include "mpc-server/service/identity_keeper.h"
#include "mpc-server/service/own_identity.h"
#include "mpc-server/service/recorder.h"
#include "mpc-server/service/refusal_log.h"
#include "mpc-server/service/retired_keys.h"
#include "mpc-server/service/sd_notify.h"
#include "mpc-server/store/lmdb.h"
#include "mpc-server/store/postgres.h"
#include "mpc-server/store/postgres_schema.h"
#include "mpc-server/store/share_store.h"
#include "mpc-server/wire/front_door.h"
#include "mpc-server/wire/tls_channel.h"
#include "mpc-server/wire/tls_peer_link.h"

namespace mpckdc {
namespace {

constexpr int kKeepaliveMs = 10'000;
constexpr size_t kFewDescriptors = 4096;  // streams, strangers, and what the server itself opens
constexpr absl::Duration kTick = absl::Seconds(1);

}  // namespace

// Members are in the order of their construction: each uses only those above it.
class Server::Impl {
 public:
  explicit Impl(const Config& config)
      : config_(config),
        denied_(config.identity.deny_list),
        doorkeeper_(config.realm, &denied_, &SystemClock()) {}
  ~Impl() { Stop(); }

  absl::Status Start();
  void Reload();
  void Stop();
  int client_port() const { return door_->port(); }
  int peer_port() const { return connector_->port(); }

 private:
  absl::Status OpenStore();
  absl::Status OpenLogs();
  absl::Status StartEngine();
  absl::Status StartGrpc();
  absl::Status OpenDoor();
  void Housekeeping();
  void TellSystemd(const EngineStatus& status);
  bool ServesLogins() const;
  absl::Status ReloadQuotas();
  void UseRenewed(const IdentityKeeper::Found& found);
  void TidyStore();
  void Collect(const EngineStatus& status);
  void MeasureStore();
  void CheckLockedMemory();
  void WaitForJobs();

  const Config config_;
  Isa isa_ = Isa::kPortable;
  std::unique_ptr<IdentityKeeper> identity_;
  DenyList denied_;
  Doorkeeper doorkeeper_;
  Metrics metrics_;
  Acquaintances known_;
  std::unique_ptr<ShareStore> store_;
  absl::StatusOr<PackageKey> package_key_ = absl::UnavailableError("");
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<RefusalLog> refusals_;
  std::unique_ptr<ServiceObserver> observer_;
  std::unique_ptr<AuditRecorder> recorder_;
  std::unique_ptr<TlsPeerConnector> connector_;
  std::unique_ptr<TlsPeerLink> peers_;
  std::unique_ptr<ThreadExecutor> executor_, long_executor_;
  std::unique_ptr<EpochKeeper> epochs_;  // outlives the engine, which answers it
  std::unique_ptr<CertificateDesk> certificates_;
  std::unique_ptr<JobEngine> engine_;
  std::unique_ptr<RetiredCollector> collector_;
  std::unique_ptr<KeyService> key_service_;
  std::unique_ptr<AdminService> admin_service_;
  std::unique_ptr<HealthService> health_service_;
  std::unique_ptr<FrontDoor> door_;
  std::unique_ptr<grpc::Server> grpc_;
  SteadyNotification stopping_;
  std::thread housekeeper_;
  std::atomic<bool> stale_lines_ = false;  // the connector has not the newest certificate
  bool said_unlocked_ = false;  // these two are the housekeeper's
  std::string told_systemd_;
};

absl::Status Server::Impl::Start() {
  ASSIGN_OR_RETURN(identity_, IdentityKeeper::Open(&config_, &SystemClock()));
  ASSIGN_OR_RETURN(isa_, ChooseIsa(config_.engine.isa));
  RETURN_IF_ERROR(denied_.Load());
  RETURN_IF_ERROR(OpenStore());
  RETURN_IF_ERROR(OpenLogs());
  RETURN_IF_ERROR(StartEngine());
  RETURN_IF_ERROR(StartGrpc());
  housekeeper_ = std::thread([this] { Housekeeping(); });
  const StoreMeta meta = store_->Meta();
  Log().info(
      "mpc-server {} party {} of realm {}, cluster {}, triple {}, epoch {}, {}: clients on port {}",
      MPCKDC_VERSION, config_.party, config_.realm, config_.cluster, config_.triple, meta.epoch,
      Text(IsaName(isa_)), client_port());
  if (!config_.engine.active) {
    Log().warn(
        "[engine] security is SEMI-HONEST, for benchmarks alone: a server that deviates in a "
        "computation is not caught, and whoever owns one server can compute keys of the realm. "
        "Take security = \"semi-honest\" out of the three mpc-server.toml");
  }
  metrics_.SetSecurity(SecurityName(SecurityOf(config_)));
  if (const auto quarantine = engine_->Status().quarantine) {
    Log().error("{}; see deploy/runbooks/a-server-deviated.md", ReasonOf(*quarantine));
  }
  if (!meta.initialised) Log().warn("the realm is not initialised: run mpc-admin init-realm");
  return absl::OkStatus();
}

absl::Status Server::Impl::OpenStore() {
  RETURN_IF_ERROR(CheckDataDir(config_.data_dir, /*create=*/true));
  ASSIGN_OR_RETURN(StoreKeys keys, LoadStoreKeys(config_, /*create=*/true));
  ASSIGN_OR_RETURN(std::shared_ptr<KvEngine> database, OpenDatabase(config_));
  ASSIGN_OR_RETURN(
      std::unique_ptr<ShareStore> store,
      ShareStore::Open(std::move(database), {IdentityOf(config_), std::move(keys), &SystemRandom(),
                                             config_.store.cache_mib << 20, config_.triple}));
  store_ = std::move(store);
  RETURN_IF_ERROR(store_->NoteFellow(SystemClock().Now()));
  package_key_ = PackageKey::LoadOrCreate(*store_, SystemRandom());
  return package_key_.status();
}

absl::Status Server::Impl::OpenLogs() {
  ASSIGN_OR_RETURN(audit_, AuditLog::Open(AuditOptionsOf(config_), &SystemClock()));
  refusals_ = std::make_unique<RefusalLog>(audit_.get(), &SystemClock());
  observer_ = std::make_unique<ServiceObserver>(audit_.get(), &metrics_);
  recorder_ = std::make_unique<AuditRecorder>(audit_.get(), &SystemClock());
  AuditLog::Fields start = {{"software", "mpc-server " MPCKDC_VERSION},
                            {"cluster", config_.cluster},
                            {"triple", config_.triple},
                            {"epoch", store_->Meta().epoch}};
  start.update(AuditStartFields(config_.audit.sync));
  RETURN_IF_ERROR(audit_->Append("start", start));
  if (config_.metrics.listen.empty()) return absl::OkStatus();
  return metrics_.Serve(config_.metrics.listen);
}

absl::Status Server::Impl::StartEngine() {
  ASSIGN_OR_RETURN(connector_, TlsPeerConnector::Create(
                                   identity_->ForPeers(PeerOptionsOf(config_, &denied_))));
  peers_ = std::make_unique<TlsPeerLink>(connector_.get());
  executor_ = std::make_unique<ThreadExecutor>(&SystemClock());
  long_executor_ = std::make_unique<ThreadExecutor>(&SystemClock(), limits::kLongRingNiceness);
  certificates_ = std::make_unique<CertificateDesk>(config_.pkinit, &SystemClock());
  RETURN_IF_ERROR(certificates_->Load());
  engine_ =
      MakeJobEngine(EngineOptionsOf(config_),
                    {store_.get(), &SystemClock(), &SystemRandom(), peers_.get(), executor_.get(),
                     long_executor_.get(), observer_.get(), recorder_.get(),
                     certificates_.get()});
  RETURN_IF_ERROR(engine_->Start());
  epochs_ = std::make_unique<EpochKeeper>(store_.get(), engine_.get(), audit_.get(), &SystemClock(),
                                          config_.policy.refresh_every);
  return absl::OkStatus();
}

absl::Status Server::Impl::StartGrpc() {
  RETURN_IF_ERROR(OpenDoor());
  key_service_ = std::make_unique<KeyService>(KeyServiceTools{engine_.get(), store_.get(),
                                                              &doorkeeper_, refusals_.get(),
                                                              &metrics_, &SystemClock(), &known_});
  collector_ =
      std::make_unique<RetiredCollector>(store_.get(), audit_.get(), config_.policy.delete_grace);
  admin_service_ =
      std::make_unique<AdminService>(AdminServiceTools{store_.get(),
                                                       engine_.get(),
                                                       &doorkeeper_,
                                                       &*package_key_,
                                                       identity_->authority(),
                                                       audit_.get(),
                                                       &metrics_,
                                                       &SystemClock(),
                                                       std::string(IsaName(isa_)),
                                                       SecurityName(SecurityOf(config_)),
                                                       SettingName(ProtocolOf(config_)),
                                                       identity_.get(),
                                                       refusals_.get(),
                                                       &known_,
                                                       collector_.get(),
                                                       config_.policy.max_renewable_life,
                                                       epochs_.get(),
                                                       static_cast<uint32_t>(config_.triple),
                                                       config_.policy.clock_skew,
                                                       config_.compared});
  health_service_ = std::make_unique<HealthService>(HealthServiceTools{
      &doorkeeper_, refusals_.get(), &known_, [this] { return ServesLogins(); }});
  grpc::ServerBuilder builder;
  auto acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      identity_->Credentials());
  builder.AddChannelArgument(
      GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
      static_cast<int>(absl::ToInt64Milliseconds(limits::kHandshakeTimeout)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits::kMaxMessageBytes));
  builder.SetMaxSendMessageSize(static_cast<int>(limits::kMaxMessageBytes));
  builder.RegisterService(key_service_.get());
  builder.RegisterService(admin_service_.get());
  builder.RegisterService(health_service_.get());
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr) return absl::InternalError("gRPC does not start");
  door_->Start([acceptor = std::move(acceptor)](Fd connection, int listener) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters to_grpc;
    to_grpc.listener_fd = listener;
    to_grpc.fd = std::move(connection).Release();
    acceptor->HandleNewConnection(&to_grpc);
  });
  return absl::OkStatus();
}

absl::Status Server::Impl::OpenDoor() {
  const size_t descriptors = RaiseDescriptorLimit();
  if (descriptors < kFewDescriptors) {
    Log().warn(
        "this process may have {} open files: raise the limit to {} or more "
        "(LimitNOFILE= in the unit, ulimit -Hn), or strangers who connect can use them up",
        descriptors, kFewDescriptors);
  }
  absl::StatusOr<std::unique_ptr<FrontDoor>> door =
      FrontDoor::Open(config_.listen.clients, &known_);
  if (!door.ok()) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen for clients on ", config_.listen.clients,
        ": the port is in use or the address is not here (", door.status().message(), ")"));
  }
  door_ = *std::move(door);
  return absl::OkStatus();
}

// For `systemctl status`; and that the server lives, for the unit's WatchdogSec=: who calls has just
// been through engine, logs and store, so a lock of theirs that nobody gives back ends that.
void Server::Impl::TellSystemd(const EngineStatus& status) {
  if (getenv("WATCHDOG_USEC") != nullptr) SdNotify("WATCHDOG=1").IgnoreError();
  std::string text = status.quarantine.has_value() ? ReasonOf(*status.quarantine)
                     : status.peers_connected      ? "serving"
                                                   : "waits for the other two servers";
  if (!config_.engine.active) text += "; SEMI-HONEST, for benchmarks alone";
  if (text == told_systemd_) return;
  told_systemd_ = text;
  SdNotify(absl::StrCat("STATUS=", text)).IgnoreError();
}

// What mpc-admin calls ready, as far as this server knows.
bool Server::Impl::ServesLogins() const {
  if (stopping_.HasBeenNotified() || !store_->Meta().initialised) return false;
  const EngineStatus status = engine_->Status();
  const auto database = store_->Database();
  return status.peers_connected && !status.quarantine.has_value() && status.degraded.empty() &&
         status.unrecorded.empty() && !store_->Epoch().receiving &&
         (!database.has_value() || database->reachable);
}

void Server::Impl::Housekeeping() {
  PrepareCircuits();
  absl::Time tidy = absl::InfinitePast(), collected = absl::InfinitePast();
  while (!stopping_.WaitFor(kTick)) {
    key_service_->Housekeeping();
    refusals_->Tick();
    audit_->Tick();
    const EngineStatus status = engine_->Status();
    UseRenewed(identity_->Tick());
    metrics_.Gauges(status, key_service_->streams());
    metrics_.Certificates(identity_->State(), doorkeeper_.Seen());
    metrics_.Epoch(store_->Epoch(), epochs_->Progress());
    if (const auto database = store_->Database()) {
      metrics_.Database(*database, store_->CacheUse().value_or(RecordCache::Use()));
    }
    metrics_.Audit(audit_->Status());
    TellSystemd(status);
    const absl::Time now = SystemClock().Now();
    if (now >= collected + limits::kCollectEvery || now < collected) {
      collected = now;
      Collect(status);
      MeasureStore();
    }
    if (now < tidy + limits::kHousekeeping && tidy <= now) continue;
    tidy = now;
    TidyStore();
    CheckLockedMemory();
  }
}

// Says once that secrets may reach the swap.
void Server::Impl::CheckLockedMemory() {
  const SecretArenaStats stats = GetSecretArenaStats();
  if (stats.all_locked() || said_unlocked_) return;
  said_unlocked_ = true;
  Log().warn("{} of {} KiB of secret memory could not be locked and may be swapped out: raise the "
             "limit (LimitMEMLOCK=infinity in the unit, ulimit -l) or turn swap off",
             (stats.bytes_mapped - stats.bytes_locked) >> 10, stats.bytes_mapped >> 10);
}

// Replay entries are the engine's to prune: it knows which of them a clock may still accept.
void Server::Impl::TidyStore() {
  absl::StatusOr<size_t> dropped =
      store_->ExpireStaged(SystemClock().Now() - limits::kStagedKeyLife);
  if (!dropped.ok()) {
    Log().error("cannot drop staged keys: {}", Text(dropped.status()));
  } else if (*dropped > 0) {
    Log().warn("dropped {} staged keys whose transaction was never committed", *dropped);
    (void)audit_->Append("admin", {{"call", "expire"}, {"count", *dropped}});
  }
}

// While the others are not there nothing is collected: no word about that, it is said elsewhere.
void Server::Impl::Collect(const EngineStatus& status) {
  const absl::Status collected = collector_->Collect(status).status();
  if (collected.ok() || absl::IsFailedPrecondition(collected)) return;
  Log().error("cannot collect retired keys: {}", Text(collected));
}

void Server::Impl::MeasureStore() {
  const std::optional<uint64_t> bytes = store_->DiskBytes();
  if (!bytes.has_value()) return;
  const absl::StatusOr<size_t> keys = store_->Count(KeyState::kCommitted);
  const absl::StatusOr<size_t> retired = store_->CountRetired();
  if (keys.ok() && retired.ok()) metrics_.Store(*keys, *retired, *bytes);
}

// Only [quota] is taken from the file; the rest of it needs a restart. A file with an error
// anywhere changes nothing.
absl::Status Server::Impl::ReloadQuotas() {
  if (config_.file.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Config config, LoadConfig(config_.file));
  admin_service_->SetCompared(config.compared);
  if (config.quota == engine_->Status().quotas) return absl::OkStatus();
  engine_->SetQuotas(config.quota);
  Log().info("quotas now: {}", config.quota.Text());
  return audit_->Append("quotas", {{"rates", config.quota.Text()}});
}

// gRPC and the check of share packages use it already.
void Server::Impl::UseRenewed(const IdentityKeeper::Found& found) {
  if (!found.status.ok()) {
    Log().error("the certificate in the files of [identity] is not used, the one of before is: {}",
                Text(found.status));
  }
  if (found.renewed || stale_lines_) {  // again until it succeeds
    const absl::Status lines = connector_->Reload();
    stale_lines_ = !lines.ok();
    if (!lines.ok()) Log().error("the renewed certificate, for the peers: {}", Text(lines));
  }
  if (!found.renewed) return;
  const CertificateState own = identity_->State();
  Log().info("certificate renewed, good until {}; its authority until {}",
             absl::FormatTime(absl::RFC3339_sec, own.expires, absl::UTCTimeZone()),
             absl::FormatTime(absl::RFC3339_sec, own.authority_expires, absl::UTCTimeZone()));
  (void)audit_->Append("certificate",
                       {{"fingerprint", own.fingerprint},
                        {"expires", absl::ToUnixSeconds(own.expires)},
                        {"authority_expires", absl::ToUnixSeconds(own.authority_expires)}});
}

void Server::Impl::Reload() {
  UseRenewed(identity_->Read());
  for (const absl::Status& status :
       {ReopenLog(), audit_->Reopen(), denied_.Load(), ReloadQuotas(), certificates_->Load()}) {
    if (!status.ok()) Log().error("reload: {}", Text(status));
  }
  Log().info("reloaded; {} certificates on the deny list", denied_.size());
  key_service_->Housekeeping();
}

void Server::Impl::WaitForJobs() {
  const absl::Time end = absl::Now() + limits::kShutdownGrace;
  while (engine_->Status().waiting > 0 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(20));
}

void Server::Impl::Stop() {
  if (stopping_.HasBeenNotified()) return;
  stopping_.Notify();
  if (housekeeper_.joinable()) housekeeper_.join();
  if (key_service_ != nullptr) key_service_->Drain();
  if (door_ != nullptr) door_->Stop();
  if (epochs_ != nullptr) epochs_->Stop();
  if (engine_ != nullptr) {
    WaitForJobs();
    certificates_->Stop();
    engine_->Stop();  // answers what is left
  }
  if (key_service_ != nullptr) key_service_->CloseAll();
  if (grpc_ != nullptr) {
    grpc_->Shutdown(absl::ToChronoTime(absl::Now() + limits::kShutdownGrace));
    grpc_->Wait();
  }
  if (audit_ != nullptr) (void)audit_->Append("stop", AuditLog::Fields::object());
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

absl::Status Server::Backup(const Config& config, const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::UnavailableError(absl::StrCat("cannot make ", folder, ": ", strerror(errno)));
  }
  return LmdbEngine::Backup(config.data_dir, config.store.map_size_gib << 30, folder);
}

absl::Status Server::Check(const Config& config) {
  RETURN_IF_ERROR(CheckOwnIdentity(config, SystemClock().Now()).status());
  if (absl::StatusOr<Isa> isa = ParseIsa(config.engine.isa); !isa.ok()) return isa.status();
  RETURN_IF_ERROR(DenyList(config.identity.deny_list).Load());
  if (!config.pkinit.anchors.empty()) {
    RETURN_IF_ERROR(PkinitVerifier::Load(config.pkinit).status());
  }
  if (absl::Status s = CheckDataDir(config.data_dir, /*create=*/false);
      absl::IsPermissionDenied(s)) {
    return s;
  }
  absl::Status keys = LoadStoreKeys(config, /*create=*/false).status();
  return absl::IsNotFound(keys) ? absl::OkStatus() : keys;  // it would be made
}

absl::StatusOr<std::string> Server::Migrate(const Config& config, const std::string& owner) {
  const std::string& server = config.store.postgresql;
  if (server.empty()) {
    return absl::FailedPreconditionError(
        "[store] backend is \"lmdb\", which has no schema: --migrate is for \"postgresql\"");
  }
  if (absl::Status s = CheckConnectionString(owner.empty() ? server : owner); !s.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--migrate-as ", s.message()));
  }
  ASSIGN_OR_RETURN(const int applied,
                   mpckdc::Migrate(owner.empty() ? server : owner, UserOf(server)));
  return absl::StrCat("applied ", applied, " migrations: the schema has version ",
                      Migrations().size());
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Config& config) {
  auto impl = std::make_unique<Impl>(config);
  RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::Reload() { impl_->Reload(); }
void Server::Stop() { impl_->Stop(); }
int Server::client_port() const { return impl_->client_port(); }
int Server::peer_port() const { return impl_->peer_port(); }

}  // namespace mpckdc
