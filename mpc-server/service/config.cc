// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/config.h"

#include <errno.h>
#include <stdlib.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/base/table_reader.h"
#include "mpc-server/store/postgres_connection.h"

namespace mpckdc {
namespace {

constexpr const char* kBackends[] = {"lmdb", "postgresql"};
constexpr const char* kModes[] = {"work-conserving", "fixed"};
constexpr const char* kLevels[] = {"debug", "info", "warning", "error"};
constexpr const char* kFormats[] = {"text", "json"};
constexpr const char* kSyncs[] = {"batch", "interval", "never"};
constexpr const char* kRecords[] = {"auto", "aead", "tls"};
constexpr const char* kRandomness[] = {"keyed", "exchanged"};
constexpr const char* kSecurities[] = {"active", "semi-honest"};
constexpr const char* kProtocols[] = {"auto", "replicated", "garbled"};
constexpr const char* kEkus[] = {"kpClientAuth", "scLogin", "none"};
constexpr const char* kIsas[] = {"auto", "avx512", "avx2", "portable"};

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

template <class T>
void ReadNumber(TableReader& in, const char* key, Need need, T low, T high, T* out) {
  int64_t value = static_cast<int64_t>(*out);
  in.Integer(key, need, static_cast<int64_t>(low), static_cast<int64_t>(high), &value);
  *out = static_cast<T>(value);
}

void ReadTop(TableReader& in, const std::string& folder, Config* config) {
  in.String("realm", Need::kRequired, &config->realm);
  if (config->realm.size() > limits::kMaxRealmBytes) in.Complain("realm", "is too long");
  ReadNumber<int>(in, "party", Need::kRequired, 0, 2, &config->party);
  ReadNumber<uint16_t>(in, "cluster", Need::kRequired, 0, 65535, &config->cluster);
  ReadNumber<int>(in, "triple", Need::kOptional, 0, limits::kMaxTriples - 1, &config->triple);
  if (config->cluster + config->triple > std::numeric_limits<uint16_t>::max()) {
    in.Complain("triple", "and cluster together are more than 65535");
  }
  in.File("data_dir", Need::kRequired, folder, &config->data_dir);
}

// The private key is a file of the server's user, or a systemd credential: one of root's that systemd
// copies to where only this run may read it. Outside of the unit there is none, which matters to the
// server itself and not to --backup or --migrate.
void ReadPrivateKey(TableReader& in, const std::string& folder, std::string* key) {
  std::string credential;
  in.File("key", Need::kOptional, folder, key);
  in.String("credential", Need::kOptional, &credential);
  if (!in.Has("key") && !in.Has("credential")) {
    in.Complain("key",
                "is missing: add it, or credential (deploy/config/mpc-server.toml explains)");
  } else if (in.Has("key") && in.Has("credential")) {
    in.Complain("key", "or credential: give exactly one of the two");
  }
  const char* given = getenv("CREDENTIALS_DIRECTORY");
  if (in.Has("credential") && given != nullptr) *key = absl::StrCat(given, "/", credential);
}

void ReadIdentity(TableReader in, const std::string& folder, Config::Identity* identity) {
  in.File("certificate", Need::kRequired, folder, &identity->certificate);
  ReadPrivateKey(in, folder, &identity->key);
  in.File("ca", Need::kRequired, folder, &identity->ca);
  in.File("deny_list", Need::kOptional, folder, &identity->deny_list);
  in.Finish();
}

void ReadListen(TableReader in, Config::Listen* listen) {
  in.HostPort("clients", Need::kRequired, &listen->clients);
  in.HostPort("peers", Need::kRequired, &listen->peers);
  in.Finish();
}

void ReadPeers(TableReader in, Config::Peers* peers) {
  constexpr const char* kKeys[] = {"p0", "p1", "p2"};
  for (size_t i = 0; i < peers->addresses.size(); ++i) {
    in.HostPort(kKeys[i], Need::kRequired, &peers->addresses[i]);
  }
  in.Strings("names", &peers->names);
  if (std::set<std::string>(peers->names.begin(), peers->names.end()).size() != 3) {
    in.Complain("names", "must be three different names");
  }
  in.Finish();
}

void ReadDatabase(TableReader& in, Config::Store* store) {
  std::string backend = kBackends[0];
  in.Choice("backend", kBackends, &backend);
  in.String("postgresql", Need::kOptional, &store->postgresql);
  ReadNumber<size_t>(in, "cache_mib", Need::kOptional, 1, limits::kMaxCacheMib, &store->cache_mib);
  if (backend == kBackends[0]) {
    for (const char* key : {"postgresql", "cache_mib"}) {
      if (in.Has(key)) in.Complain(key, "goes with backend = \"postgresql\"");
    }
    return;
  }
  if (in.Has("map_size_gib")) in.Complain("map_size_gib", "goes with backend = \"lmdb\"");
  if (!in.Has("postgresql")) {
    in.Complain("backend", "is \"postgresql\": say where it is, postgresql = \"host=...\"");
  } else if (absl::Status s = CheckConnectionString(store->postgresql); !s.ok()) {
    in.Complain("postgresql", s.message());
  }
}

void ReadStore(TableReader in, const std::string& folder, Config::Store* store) {
  in.File("key_file", Need::kOptional, folder, &store->key_file);
  in.String("credential", Need::kOptional, &store->credential);
  in.Bool("create_key", &store->create_key);
  ReadNumber<uint64_t>(in, "map_size_gib", Need::kOptional, 1, limits::kMaxMapGib,
                       &store->map_size_gib);
  ReadDatabase(in, store);
  if (in.Has("key_file") == in.Has("credential")) {
    in.Complain("key_file", "or credential: give exactly one of the two");
  }
  if (store->create_key && in.Has("credential")) {
    in.Complain("create_key", "goes with key_file: a credential is made by the administrator");
  }
  in.Finish();
}

void ReadBatch(TableReader in, Config::Batch* batch) {
  int64_t window_ms = absl::ToInt64Milliseconds(batch->window);
  in.Integer("window_ms", Need::kOptional, 1, absl::ToInt64Milliseconds(limits::kMaxBatchWindow),
             &window_ms);
  batch->window = absl::Milliseconds(window_ms);
  std::string mode = kModes[0];
  in.Choice("mode", kModes, &mode);
  batch->fixed = mode == kModes[1];
  ReadNumber<size_t>(in, "max_jobs", Need::kOptional, 1, limits::kMaxBatchJobs, &batch->max_jobs);
  in.Finish();
}

absl::StatusOr<absl::Duration> ParseRefreshEvery(absl::string_view text) {
  if (text == "never") return absl::InfiniteDuration();
  const absl::StatusOr<absl::Duration> every = ParseLife(text);
  if (every.ok() && *every >= absl::Seconds(1) && *every <= absl::Hours(24 * 366)) return every;
  return absl::InvalidArgumentError(
      "wants \"never\" or a time from \"1s\" to \"366d\", for example \"24h\"");
}

void ReadPolicy(TableReader in, Config::Policy* policy) {
  in.Life("max_renewable_life", absl::Seconds(1), absl::Hours(24 * 366),
          &policy->max_renewable_life);
  in.Life("clock_skew", absl::Seconds(1), absl::Hours(1), &policy->clock_skew);
  in.Parsed("refresh_every", ParseRefreshEvery, &policy->refresh_every);
  in.Life("delete_grace", absl::Seconds(1), limits::kMaxDeleteGrace, &policy->delete_grace);
  in.Finish();
}

void ReadPkinit(TableReader in, const std::string& folder, PkinitOptions* pkinit) {
  in.File("anchors", Need::kOptional, folder, &pkinit->anchors);
  in.File("pool", Need::kOptional, folder, &pkinit->pool);
  in.File("crls", Need::kOptional, folder, &pkinit->crls);
  in.Bool("crls_required", &pkinit->crls_required);
  std::string eku = kEkus[0];
  in.Choice("eku_checking", kEkus, &eku);
  pkinit->eku = eku == kEkus[0]   ? EkuRule::kPkinit
                : eku == kEkus[1] ? EkuRule::kSmartCard
                                  : EkuRule::kNone;
  in.Bool("allow_upn", &pkinit->allow_upn);
  in.Bool("allow_sha1", &pkinit->allow_sha1);
  for (const char* key : {"pool", "crls", "crls_required", "eku_checking", "allow_upn",
                          "allow_sha1"}) {
    if (in.Has(key) && !in.Has("anchors")) in.Complain(key, "goes with anchors");
  }
  in.Finish();
}

void ReadQuota(TableReader in, QuotaRates* quota, ComparedRates* compared) {
  for (size_t i = 0; i < kQuotaKinds; ++i) {
    const auto kind = static_cast<QuotaKind>(i);
    in.Parsed(QuotaName(kind), ParseRate, &(*quota)[kind]);
  }
  ReadNumber<uint32_t>(in, "compared_per_hour", Need::kOptional, 0, limits::kMaxCompared,
                       &compared->per_hour);
  ReadNumber<uint32_t>(in, "compared_per_day", Need::kOptional, 0, limits::kMaxCompared,
                       &compared->per_day);
  in.Finish();
}

void ReadLog(TableReader in, const std::string& folder, Config::Log* log) {
  in.Choice("level", kLevels, &log->level);
  std::string format = kFormats[0];
  in.Choice("format", kFormats, &format);
  log->json = format == kFormats[1];
  in.File("file", Need::kOptional, folder, &log->file);
  in.Finish();
}

void ReadAudit(TableReader in, const std::string& folder, Config::Audit* audit) {
  in.File("file", Need::kOptional, folder, &audit->file);
  std::string sync = kSyncs[static_cast<size_t>(audit->sync)];
  in.Choice("sync", kSyncs, &sync);
  audit->sync = sync == "batch"   ? AuditSync::kBatch
                : sync == "never" ? AuditSync::kNever
                                  : AuditSync::kInterval;
  ReadNumber<uint64_t>(in, "rotate_mib", Need::kOptional, 0, limits::kMaxAuditRotateMib,
                       &audit->rotate_mib);
  ReadNumber<size_t>(in, "keep_files", Need::kOptional, 0, limits::kMaxAuditFiles,
                     &audit->keep_files);
  in.Finish();
}

void ReadSmallSections(TableReader& top, Config* config) {
  TableReader metrics = top.Section("metrics", Need::kOptional);
  metrics.HostPort("listen", Need::kOptional, &config->metrics.listen);
  metrics.Finish();
  TableReader engine = top.Section("engine", Need::kOptional);
  engine.Choice("isa", kIsas, &config->engine.isa);
  ReadNumber<uint8_t>(engine, "workers", Need::kOptional, 1, limits::kMaxWorkers,
                      &config->engine.workers);
  engine.Choice("records", kRecords, &config->engine.records);
  std::string randomness = kRandomness[0];
  engine.Choice("randomness", kRandomness, &randomness);
  config->engine.exchanged_zeros = randomness == kRandomness[1];
  std::string security = kSecurities[0];
  engine.Choice("security", kSecurities, &security);
  config->engine.active = security == kSecurities[0];
  engine.Choice("protocol", kProtocols, &config->engine.protocol);
  if (config->engine.exchanged_zeros && config->engine.protocol == "garbled") {
    engine.Complain("protocol",
                    "is \"garbled\", which needs keys that two servers share: "
                    "randomness must be \"keyed\" then");
  }
  engine.Finish();
}

Config ReadAll(const toml::table& table, const std::string& path, ConfigErrors* errors) {
  const std::string folder = FolderOf(path);
  Config config;
  config.file = path;
  TableReader top(&table, "", errors);
  ReadTop(top, folder, &config);
  ReadIdentity(top.Section("identity", Need::kRequired), folder, &config.identity);
  ReadListen(top.Section("listen", Need::kRequired), &config.listen);
  ReadPeers(top.Section("peers", Need::kRequired), &config.peers);
  ReadStore(top.Section("store", Need::kRequired), folder, &config.store);
  if (config.triple != 0 && config.store.postgresql.empty()) {
    top.Complain("triple", "goes with [store] backend = \"postgresql\", which machines can share");
  }
  ReadBatch(top.Section("batch", Need::kOptional), &config.batch);
  ReadPolicy(top.Section("policy", Need::kOptional), &config.policy);
  ReadPkinit(top.Section("pkinit", Need::kOptional), folder, &config.pkinit);
  ReadQuota(top.Section("quota", Need::kOptional), &config.quota, &config.compared);
  ReadLog(top.Section("log", Need::kOptional), folder, &config.log);
  ReadAudit(top.Section("audit", Need::kOptional), folder, &config.audit);
  ReadSmallSections(top, &config);
  top.Finish();
  if (config.audit.file.empty()) config.audit.file = config.data_dir + "/audit.log";
  return config;
}

}  // namespace

absl::StatusOr<Config> LoadConfig(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  if (in) text << in.rdbuf();
  if (!in) {
    return absl::NotFoundError(
        absl::StrCat("cannot read the configuration ", path, ": ", strerror(errno)));
  }
  return ParseConfig(text.str(), path);
}

absl::StatusOr<Config> ParseConfig(absl::string_view text, const std::string& path) {
  toml::parse_result parsed = toml::parse(std::string_view(text.data(), text.size()), path);
  ConfigErrors errors{path, {}};
  Config config;
  if (parsed) {
    config = ReadAll(parsed.table(), path, &errors);
  } else {
    const std::string_view what = parsed.error().description();
    errors.Add(parsed.error().source(), absl::string_view(what.data(), what.size()));
  }
  if (errors.lines.empty()) return config;
  return absl::InvalidArgumentError(absl::StrJoin(errors.lines, "\n"));
}

}  // namespace mpckdc
