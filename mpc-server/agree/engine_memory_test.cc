// SPDX-License-Identifier: Apache-2.0
//
// What a flood of long requests takes of locked memory. Where there is no more of it a server ends,
// so a batch must not take what it likes.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>

#include "gtest/gtest.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/testing/jobs.h"

namespace mpckdc {
namespace {

// The highest that the arena of this process reaches while it lives.
class PeakOfSecrets {
 public:
  PeakOfSecrets() : before_(InUse()), thread_([this] { Watch(); }) {}
  ~PeakOfSecrets() { Stop(); }

  size_t Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return peak_ - before_;
  }

 private:
  static size_t InUse() { return GetSecretArenaStats().bytes_in_use; }
  void Watch() {
    while (!stop_) {
      peak_ = std::max(peak_, InUse());
      absl::SleepFor(absl::Microseconds(200));
    }
  }

  const size_t before_;
  size_t peak_ = before_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// In one transaction of each server.
std::vector<PlainKey> AddUsers(Realm& realm, size_t count) {
  std::vector<PlainKey> users;
  PerParty<std::vector<KeyRecord>> records;
  for (size_t i = 0; i < count; ++i) {
    users.push_back(MakePlainKey(realm.random(), absl::StrCat("user", i, "@EXAMPLE.COM"),
                                 KeyClass::kUser, kEnctypeAes128Gcm));
    PerParty<KeyRecord> shares = ShareKey(users.back(), realm.random());
    for (int p = 0; p < kParties; ++p) records[p].push_back(std::move(shares[p]));
  }
  for (int p = 0; p < kParties; ++p) {
    EXPECT_TRUE(realm.store(p).Stage(TransactionId{1}, records[p], absl::Now()).ok());
    EXPECT_TRUE(realm.store(p).Commit(TransactionId{1}, absl::Now()).ok());
  }
  return users;
}

// No more address space than now and `more`: what does not fit ends the process.
void LimitAddressSpace(size_t more) {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + more;
  const struct rlimit limit = {most, most};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

constexpr size_t kLogins = 2048;
constexpr size_t kRequestBytes = 60 << 10;
// The batch's own, and of two rings the messages that are not proved yet, with as much again for
// the proof of them.
constexpr size_t kPerServer = (160 << 20) + 2 * 2 * limits::kProofLogBytes;

// In the worst case each takes 3,840 powers of H, 120 KiB: without a bound a batch takes 480 MiB at
// each server, and its proof as much again.
TEST(EngineMemory, LoginsOfManyUsersWithLongRequests) {
  Realm realm;
  LoginSizes sizes;
  sizes.as_req.assign(kRequestBytes, 'q');
  std::vector<Job> jobs;
  for (const PlainKey& user : AddUsers(realm, kLogins)) {
    jobs.push_back(LoginJob(realm.NextId(), user, realm.tgt, realm.Preauth(user), sizes));
    jobs.back().deadline_ms = 30'000;
  }
  // Jobs and answers on the heap, and the locked memory of three servers.
  LimitAddressSpace(3 * (kLogins * (kRequestBytes + 8192) + kPerServer) + (256 << 20));
  PeakOfSecrets secrets;
  const std::vector<JobResult> results = realm.RunAll(jobs);
  const size_t peak = secrets.Stop();
  EXPECT_EQ(CountGood(results), static_cast<int>(kLogins));
  std::printf(
      "%zu logins with requests of %zu KiB: at most %zu MiB of secrets at each server, "
      "%zu batches\n",
      kLogins, kRequestBytes >> 10, (peak >> 20) / kParties, realm.observer(0).Batches().size());
  EXPECT_LT(peak, kParties * kPerServer);
}

}  // namespace
}  // namespace mpckdc
