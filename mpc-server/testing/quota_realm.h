// SPDX-License-Identifier: Apache-2.0
//
// A realm for tests of quotas: what its jobs are refused for.
#ifndef MPC_SERVER_TESTING_QUOTA_REALM_H_
#define MPC_SERVER_TESTING_QUOTA_REALM_H_

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/jobs.h"

namespace mpckdc {

inline constexpr Rate kTwo = {1, 2};  // two, and one a minute: longer than a test takes

inline EngineOptions With(QuotaKind kind, const Rate& rate) {
  EngineOptions options;
  options.quotas[kind] = rate;
  return options;
}

struct QuotaRealm : Realm {
  using Realm::Realm;

  Verdict LoginVerdict(const PlainKey& key) { return Run(Login(key)).judgement.verdict; }
  JobResult Guess(const PlainKey& key) { return Run(Login(key, AlteredPreauth(key))); }
  Verdict ChecksumsVerdict(size_t count) {
    const std::vector<MakeMacPart> macs(count, {tgt.info.handle, kUsagePacChecksum, "pac"});
    return Run(MakeChecksums(macs)).judgement.verdict;
  }
  uint64_t Refused(int party, QuotaKind kind) {
    return engine(party).Status().quota_refused[static_cast<size_t>(kind)];
  }
  // `key` under another name, on all servers, as a renaming leaves it before the old one is retired.
  PlainKey Copy(const PlainKey& key, const std::string& principal, const Handle& handle) {
    PlainKey copy = key;
    copy.info.handle = handle;
    copy.info.principal = principal;
    copy.info.principal_id = PrincipalIdOf(principal);
    const RenamedKey renamed{{key.info.handle, key.info.principal}, handle, 4, "salt"};
    for (int p = 0; p < kParties; ++p) {
      EXPECT_TRUE(store(p).StageRenamed(handle, {renamed}, principal, 1, absl::Now()).ok());
      EXPECT_TRUE(store(p).Commit(handle, absl::Now()).ok());
    }
    return copy;
  }
};

// Of whatever a user's key is, and by either protocol.
class KeyQuotaTest : public ::testing::TestWithParam<KeyAndProtocol> {
 protected:
  static EngineOptions Of(const EngineOptions& options) {
    return Forced(GetParam().protocol, options);
  }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_QUOTA_REALM_H_
