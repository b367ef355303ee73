// SPDX-License-Identifier: Apache-2.0
//
// The configuration file of mpc-server (TOML). Strict: an unknown key, a wrong type, a value out of
// range or a missing key is an error `FILE:LINE: message` that says what to do; all of them are
// reported at once. deploy/config/mpc-server.toml explains each key.
#ifndef MPC_SERVER_SERVICE_CONFIG_H_
#define MPC_SERVER_SERVICE_CONFIG_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "mpc-server/audit/sync.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/judge/quota_rates.h"
#include "mpc-server/pkinit/verifier.h"
#include "mpc-server/service/key_history.h"

namespace mpckdc {

struct Config {
  std::string file;  // whence it was read
  std::string realm;
  int party = 0;
  uint16_t cluster = 1;
  int triple = 0;  // of the party's machines on one database, each has its own
  std::string data_dir;

  struct Identity {
    std::string certificate;  // PEM, leaf first
    std::string key;          // PEM; empty: a credential that systemd did not pass
    std::string ca;           // PEM
    std::string deny_list;    // empty: none
  } identity;

  struct Listen {
    std::string clients;  // KDCs and administrators
    std::string peers;    // the previous party
  } listen;

  struct Peers {
    std::array<std::string, 3> addresses;
    std::array<std::string, 3> names = {"p0", "p1", "p2"};  // NAME in spiffe://REALM/mpc/peer/NAME
  } peers;

  struct Store {
    std::string key_file;  // one of the two
    std::string credential;
    bool create_key = false;
    uint64_t map_size_gib = limits::kDefaultMapGib;
    std::string postgresql;  // connection string; empty: LMDB in data_dir
    size_t cache_mib = limits::kDefaultCacheMib;
  } store;

  struct Batch {
    absl::Duration window = limits::kDefaultBatchWindow;
    bool fixed = false;
    size_t max_jobs = limits::kDefaultBatchJobs;
  } batch;

  struct Policy {
    absl::Duration max_renewable_life = limits::kDefaultMaxRenewableLife;
    absl::Duration clock_skew = limits::kDefaultClockSkew;
    absl::Duration refresh_every = limits::kDefaultRefreshEvery;  // infinite: only when asked for
    absl::Duration delete_grace = limits::kDefaultDeleteGrace;
  } policy;

  PkinitOptions pkinit;

  QuotaRates quota = DefaultQuotaRates();
  ComparedRates compared{};

  struct Log {
    std::string level = "info";
    bool json = false;
    std::string file;  // empty: standard error
  } log;

  struct Audit {
    std::string file;  // DATA_DIR/audit.log when none is given
    AuditSync sync = AuditSync::kInterval;
    uint64_t rotate_mib = limits::kDefaultAuditRotateMib;  // 0: never
    size_t keep_files = 0;                                 // 0: all
  } audit;

  struct Metrics {
    std::string listen;  // empty: none
  } metrics;

  struct Engine {
    std::string isa = "auto";
    uint8_t workers = limits::kDefaultWorkers;
    std::string records = "auto";   // of the peer connections: auto, aead or tls
    bool exchanged_zeros = false;   // Randomness::kExchanged
    bool active = true;             // Security::kActive
    std::string protocol = "auto";  // ProtocolSetting: auto, replicated or garbled
  } engine;
};

// Relative file names are taken from the folder of `path`.
absl::StatusOr<Config> LoadConfig(const std::string& path);
absl::StatusOr<Config> ParseConfig(absl::string_view text, const std::string& path);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_CONFIG_H_
