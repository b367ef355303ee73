// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/store_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/sha256.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/lmdb.h"
#include "mpc-server/store/postgres.h"
#include "mpc-server/store/postgres_schema.h"
#include "mpc-server/testing/records.h"

namespace mpckdc::bench {
namespace {

constexpr size_t kKeysPerWrite = 4096;
constexpr absl::Duration kReplayLife = absl::Minutes(10);

Handle HandleOf(size_t number) {
  const Digest digest = Sha256(absl::StrCat("key ", number));
  Handle handle;
  std::copy_n(digest.begin(), handle.size(), handle.begin());
  return handle;
}

// Number 0 seals tickets and is krbtgt's; the others are users'.
KeyRecord RecordOf(size_t number, RandomSource& random) {
  KeyRecord record = number == 0 ? RecordForTest(random, "krbtgt/EXAMPLE.COM@EXAMPLE.COM",
                                                 kEnctypeAes128Gcm, KeyClass::kTgs)
                                 : RecordForTest(random, absl::StrCat("u", number, "@EXAMPLE.COM"));
  record.info.handle = HandleOf(number);
  return record;
}

// utime + stime of a process, and of its children that have ended, in seconds; 0: it is gone.
double CpuOfStat(const std::filesystem::path& file, int only_child_of) {
  std::string line;
  std::getline(std::ifstream(file), line);
  const size_t end = line.rfind(')');
  if (end == std::string::npos) return 0;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(line).substr(end + 1), ' ', absl::SkipEmpty());
  int parent = 0;
  double ticks = 0;
  if (fields.size() < 15 || !absl::SimpleAtoi(fields[1], &parent)) return 0;
  if (only_child_of != 0 && parent != only_child_of) return 0;
  for (size_t i = 11; i < (only_child_of == 0 ? 15 : 13); ++i) {
    double some = 0;
    if (absl::SimpleAtod(fields[i], &some)) ticks += some;
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double CpuOfDatabase(int postmaster) {
  if (postmaster == 0) return 0;
  double seconds = CpuOfStat(absl::StrCat("/proc/", postmaster, "/stat"), 0);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    seconds += CpuOfStat(entry.path() / "stat", postmaster);
  }
  return seconds;
}

double OwnCpu() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return absl::ToDoubleSeconds(absl::DurationFromTimeval(usage.ru_utime) +
                               absl::DurationFromTimeval(usage.ru_stime));
}

class Stopwatch {
 public:
  explicit Stopwatch(int database) : database_(database) {}
  LoginCost PerLogin(size_t logins) const {
    const double factor = 1e6 / static_cast<double>(logins);
    return {absl::ToDoubleSeconds(absl::Now() - start_) * factor, (OwnCpu() - own_) * factor,
            (CpuOfDatabase(database_) - theirs_) * factor};
  }

 private:
  const int database_;
  const double theirs_ = CpuOfDatabase(database_), own_ = OwnCpu();
  const absl::Time start_ = absl::Now();
};

// Each number once, in an order that is no order: as users come.
std::vector<size_t> DrawUsers(size_t keys, size_t logins) {
  std::mt19937_64 random(keys);
  std::uniform_int_distribution<size_t> draw(1, keys - 1);
  absl::flat_hash_set<size_t> seen;
  std::vector<size_t> users;
  while (users.size() < logins) {
    const size_t number = draw(random);
    if (seen.insert(number).second) users.push_back(number);
  }
  return users;
}

absl::Status ReadBatch(ShareStore& store, absl::Span<const size_t> users) {
  std::vector<Handle> handles = {HandleOf(0)};
  for (const size_t user : users) handles.push_back(HandleOf(user));
  for (const absl::StatusOr<KeyRecord>& record : store.GetMany(handles)) {
    RETURN_IF_ERROR(record.status());
  }
  return absl::OkStatus();
}

absl::Status ClaimBatch(ShareStore& store, absl::Span<const size_t> users) {
  std::vector<ReplayEntry> entries(users.size());
  for (size_t i = 0; i < users.size(); ++i) {
    entries[i].handle = HandleOf(users[i]);
    SystemRandom().Fill(absl::MakeSpan(entries[i].nonce));
    entries[i].expires = absl::Now() + kReplayLife;
  }
  ASSIGN_OR_RETURN(const auto there,
                   store.ClaimReplayEntries(entries, [](size_t, const ReplayClaim&) {
                     return std::optional<ReplayClaim>();
                   }));
  for (const auto& claim : there) {
    if (claim.has_value()) return absl::InternalError("a fresh replay entry was there already");
  }
  return absl::OkStatus();
}

using Batch = absl::Status (*)(ShareStore&, absl::Span<const size_t>);

absl::StatusOr<LoginCost> Measure(ShareStore& store, absl::Span<const size_t> users, size_t batch,
                                  int database, Batch run) {
  const Stopwatch watch(database);
  for (size_t at = 0; at < users.size(); at += batch) {
    RETURN_IF_ERROR(run(store, users.subspan(at, batch)));
  }
  return watch.PerLogin(users.size());
}

absl::StatusOr<std::shared_ptr<KvEngine>> OpenEngine(const StoreOptions& options) {
  if (options.connection.empty()) {
    ASSIGN_OR_RETURN(std::shared_ptr<KvEngine> lmdb,
                     LmdbEngine::Open(options.folder, options.map_bytes));
    return lmdb;
  }
  if (!options.owner.empty()) {
    RETURN_IF_ERROR(Migrate(options.owner, options.user).status());
  }
  ASSIGN_OR_RETURN(std::shared_ptr<KvEngine> postgres,
                   PostgresEngine::Open(options.connection, options.folder, SystemRandom()));
  return postgres;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShareStore>> OpenStore(const StoreOptions& options) {
  ASSIGN_OR_RETURN(std::shared_ptr<KvEngine> engine, OpenEngine(options));
  return ShareStore::Open(std::move(engine), {kIdentityForTest, StoreKeysForTest(), &SystemRandom(),
                                              options.cache_bytes});
}

// As a party that is rebuilt receives its keys: each is written once, none is staged.
absl::Status FillStore(ShareStore& store, size_t from, size_t to,
                       const std::function<void(size_t)>& progress) {
  SeededRandomForTest random(from);  // without a system call for each number
  RETURN_IF_ERROR(store.MarkInitialised().status());
  RETURN_IF_ERROR(store.BeginReceiving());
  for (size_t at = from; at < to;) {
    std::vector<ShareStore::Received> some;
    for (; at < to && some.size() < kKeysPerWrite; ++at) {
      some.push_back({RecordOf(at, random), std::nullopt});
    }
    RETURN_IF_ERROR(store.Receive(some));
    progress(at);
  }
  return store.EndReceiving();
}

absl::StatusOr<StoreCosts> MeasureStore(ShareStore& store, size_t keys, size_t logins, size_t batch,
                                        int database) {
  if (keys < 2 * logins) {
    return absl::InvalidArgumentError(absl::StrCat("a store of ", keys, " keys is too small for ",
                                                   logins,
                                                   " users: half of them "
                                                   "at most"));
  }
  const std::vector<size_t> users = DrawUsers(keys, logins);
  StoreCosts costs;
  ASSIGN_OR_RETURN(costs.first, Measure(store, users, batch, database, ReadBatch));
  ASSIGN_OR_RETURN(costs.again, Measure(store, users, batch, database, ReadBatch));
  ASSIGN_OR_RETURN(costs.claims, Measure(store, users, batch, database, ClaimBatch));
  return costs;
}

}  // namespace mpckdc::bench
