// SPDX-License-Identifier: Apache-2.0
//
// What a login that is garbled takes of locked memory while it is in flight: tables pass.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/testing/jobs.h"

namespace mpckdc {
namespace {

// The most that is in use while it lives, of this process: of three servers.
class PeakOfSecrets {
 public:
  PeakOfSecrets() : before_(InUse()), peak_(before_), thread_([this] { Watch(); }) {}
  ~PeakOfSecrets() { Stop(); }

  size_t OfAServer() {
    Stop();
    return (peak_ - before_) / kParties;
  }

 private:
  static size_t InUse() { return GetSecretArenaStats().bytes_in_use; }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void Watch() {
    while (!stop_) {
      peak_ = std::max(peak_, InUse());
      absl::SleepFor(absl::Microseconds(50));
    }
  }

  const size_t before_;
  size_t peak_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// Half of it may be messages on their way, which here are in this process too.
constexpr size_t kInFlight = 4 << 20;
// With what is kept from then on.
constexpr size_t kFirst = 8 << 20;
constexpr size_t kReplyBytes = 240;

class GarbledMemory : public testing::TestWithParam<int32_t> {};

// A login's first batch, with a checksum of the request, then its reply. What the servers keep from
// one to the next (buffers of messages, powers of krbtgt's H) is counted with the first.
TEST_P(GarbledMemory, OfALoneLogin) {
  EngineOptions options;
  options.protocol = ProtocolSetting::kGarbled;
  Realm realm(GetParam(), options);
  for (const char* which : {"first", "second", "third"}) {
    const size_t most = which == std::string("first") ? kFirst : kInFlight;
    PeakOfSecrets login;
    EXPECT_VERDICT(realm.Run(realm.Login(realm.alice)), Verdict::kOk);
    const size_t of_login = login.OfAServer();
    Job reply = realm.Granted(0, realm.otp, {realm.otp.info.handle, kUsageAsReply, kReplyBytes});
    reply.operation = Operation::kLogin;
    PeakOfSecrets seal;
    EXPECT_VERDICT(
        Combine(realm.Run(WithTexts(reply, std::string(kReplyBytes, 'r'), realm.random()))),
        Verdict::kOk);
    const size_t of_seal = seal.OfAServer();
    std::printf("type %d, %s login: %zu KiB, its reply: %zu KiB at a server\n", GetParam(), which,
                of_login >> 10, of_seal >> 10);
    EXPECT_LE(of_login, most);
    EXPECT_LE(of_seal, most);
  }
}

INSTANTIATE_TEST_SUITE_P(Enctypes, GarbledMemory, testing::Values(17, 18, 19, 20));

}  // namespace
}  // namespace mpckdc
