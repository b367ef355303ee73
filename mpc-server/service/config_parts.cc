// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/config_parts.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/service/log.h"
#include "mpc-server/store/lmdb.h"
#include "mpc-server/store/postgres.h"

namespace mpckdc {

StoreIdentity IdentityOf(const Config& config) {
  return {config.realm, config.party, config.cluster};
}

absl::Status CheckDataDir(const std::string& path, bool create) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 && (!create || mkdir(path.c_str(), 0700) != 0)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the data directory ", path, ": ", strerror(errno)));
  }
  if (create && stat(path.c_str(), &info) != 0) return absl::UnavailableError(strerror(errno));
  if ((info.st_mode & 077) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrFormat("others may access the data directory %s (mode %04o): run chmod 0700 %s",
                      path, info.st_mode & 07777, path));
}

absl::StatusOr<std::shared_ptr<KvEngine>> OpenDatabase(const Config& config) {
  if (!config.store.postgresql.empty()) {
    if (LmdbEngine::Exists(config.data_dir)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the data directory ", config.data_dir,
                       " holds an LMDB store, and [store] backend is "
                       "\"postgresql\": give this server a data_dir of its own"));
    }
    return PostgresEngine::Open(config.store.postgresql, config.data_dir, SystemRandom());
  }
  if (PostgresEngine::Exists(config.data_dir)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the data directory ", config.data_dir,
                     " is of a store on PostgreSQL, and [store] backend is "
                     "\"lmdb\": give this server a data_dir of its own"));
  }
  return LmdbEngine::Open(config.data_dir, config.store.map_size_gib << 30);
}

// A missing key file is made only where no store would be orphaned by it.
absl::StatusOr<StoreKeys> LoadStoreKeys(const Config& config, bool create) {
  if (!config.store.credential.empty()) return StoreKeys::LoadCredential(config.store.credential);
  absl::StatusOr<StoreKeys> keys = StoreKeys::Load(config.store.key_file);
  if (!absl::IsNotFound(keys.status())) return keys;
  if (LmdbEngine::Exists(config.data_dir) || PostgresEngine::Exists(config.data_dir)) {
    return absl::FailedPreconditionError(
        absl::StrCat(keys.status().message(), "; the store in ", config.data_dir,
                     " cannot be read without it: restore the file"));
  }
  if (!config.store.create_key) {
    return absl::FailedPreconditionError(
        absl::StrCat(keys.status().message(),
                     "; set [store] create_key = true to have it made at the first start"));
  }
  if (!create) return keys;
  RETURN_IF_ERROR(StoreKeys::Create(config.store.key_file, SystemRandom()));
  Log().info("made the store key file {}: keep a copy apart from backups of the store",
             config.store.key_file);
  return StoreKeys::Load(config.store.key_file);
}

// Engine, randomness and circuits take their instruction set from BestIsa(), which the environment
// variable lowers: set here, before anything asks.
absl::StatusOr<Isa> ChooseIsa(const std::string& name) {
  absl::StatusOr<Isa> isa = ParseIsa(name);
  if (isa.ok() && name != "auto") setenv("MPCKDC_ISA", name.c_str(), 1);
  return isa;
}

TlsPeerOptions PeerOptionsOf(const Config& config, const DenyList* denied) {
  TlsPeerOptions options;
  options.party = config.party;
  options.realm = config.realm;
  options.certificate_file = config.identity.certificate;
  options.key_file = config.identity.key;
  options.ca_file = config.identity.ca;
  options.listen = config.listen.peers;
  options.peers = config.peers.addresses;
  options.peer_names = config.peers.names;
  options.rings = config.engine.workers + 1;  // and the long ring's
  options.records = config.engine.records == "aead"  ? PeerRecords::kAead
                    : config.engine.records == "tls" ? PeerRecords::kTls
                                                     : PeerRecords::kAuto;
  options.denied = [denied](const CertificateFingerprint& f) { return denied->Denies(f); };
  return options;
}

AuditLogOptions AuditOptionsOf(const Config& config) {
  return {config.audit.file,
          {config.realm, config.party},
          config.audit.sync,
          config.audit.rotate_mib << 20,
          config.audit.keep_files,
          [](const std::string& what) { Log().error("{}", what); }};
}

Security SecurityOf(const Config& config) {
  return config.engine.active ? Security::kActive : Security::kSemiHonest;
}

ProtocolSetting ProtocolOf(const Config& config) {
  const std::string& protocol = config.engine.protocol;
  return protocol == "garbled"      ? ProtocolSetting::kGarbled
         : protocol == "replicated" ? ProtocolSetting::kReplicated
                                    : ProtocolSetting::kAuto;
}

EngineOptions EngineOptionsOf(const Config& config) {
  EngineOptions options;
  options.batch_window = config.batch.window;
  options.mode = config.batch.fixed ? BatchMode::kFixed : BatchMode::kWorkConserving;
  options.max_jobs = config.batch.max_jobs;
  options.max_renewable_life = config.policy.max_renewable_life;
  options.clock_skew = config.policy.clock_skew;
  options.quotas = config.quota;
  if (config.engine.exchanged_zeros) options.randomness = Randomness::kExchanged;
  options.security = SecurityOf(config);
  options.protocol = ProtocolOf(config);
  return options;
}

}  // namespace mpckdc
