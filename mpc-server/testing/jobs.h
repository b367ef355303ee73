// SPDX-License-Identifier: Apache-2.0
//
// For the tests of JobEngine: a realm on three engines in this process, the jobs that a KDC sends,
// and what is expected of their results.
#ifndef MPC_SERVER_TESTING_JOBS_H_
#define MPC_SERVER_TESTING_JOBS_H_

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/agree/nonce_sequencer.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/job/preauth_timestamp.h"
#include "mpc-server/job/ticket_header.h"
#include "mpc-server/key/message_format.h"
#include "mpc-server/testing/engines.h"
#include "mpc-server/testing/gcm_plain.h"

namespace mpckdc {

// For the messages of failed expectations.
inline std::ostream& operator<<(std::ostream& out, Verdict verdict) {
  return out << VerdictName(verdict);
}
inline std::ostream& operator<<(std::ostream& out, const JobResult& result) {
  return out << result.judgement.verdict << " (" << result.judgement.detail << ")";
}
inline std::ostream& operator<<(std::ostream& out, const TagResult& result) {
  return out << result.judgement.verdict << " (" << result.judgement.detail << ")";
}

// A server that refuses gives nothing.
inline bool NoOutput(const JobResult& result) {
  return result.opens.empty() && result.seals.empty() && result.make_macs.empty();
}
inline bool NoOutput(const TagResult& result) { return result.tag_share == Tag{}; }

constexpr auto SameVerdict = [](const auto& result, Verdict want) {
  return result.judgement.verdict == want && (result.judgement.ok() || NoOutput(result));
};
#define EXPECT_VERDICT(result, want) EXPECT_PRED2(SameVerdict, result, want)
#define ASSERT_VERDICT_OK(result) ASSERT_PRED2(SameVerdict, result, Verdict::kOk)

// `text` is in the sentence for the administrator.
inline void ExpectRefused(const JobResult& result, Verdict want, const std::string& text) {
  EXPECT_VERDICT(result, want);
  EXPECT_THAT(result.judgement.detail, ::testing::HasSubstr(text));
}

inline int CountGood(const std::vector<JobResult>& results) {
  int good = 0;
  for (const JobResult& result : results) good += result.judgement.ok();
  return good;
}

// Waits until it is so, a while.
template <typename Condition>
bool Eventually(Condition condition, absl::Duration limit = absl::Seconds(20)) {
  const absl::Time end = absl::Now() + limit;
  while (!condition()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

// Whatever the three measure: for what must be the same by either protocol.
inline EngineOptions Forced(ProtocolSetting protocol, EngineOptions options = {}) {
  options.protocol = protocol;
  return options;
}
// For what is about the rounds of long batches, which short messages would have none of.
inline EngineOptions InRounds() { return Forced(ProtocolSetting::kReplicated); }

constexpr ProtocolSetting kForcedProtocols[] = {ProtocolSetting::kReplicated,
                                                ProtocolSetting::kGarbled};

// A type of users' keys and what computes their jobs; the name of a test's instance.
struct KeyAndProtocol {
  int32_t enctype;
  ProtocolSetting protocol;
};
constexpr KeyAndProtocol kGcmAndStock[] = {{kEnctypeAes128Gcm, ProtocolSetting::kReplicated},
                                           {kEnctypeAes128Gcm, ProtocolSetting::kGarbled},
                                           {kEnctypeAes256Sha1, ProtocolSetting::kReplicated},
                                           {kEnctypeAes256Sha1, ProtocolSetting::kGarbled}};
inline void PrintTo(const KeyAndProtocol& of, std::ostream* out) {
  *out << of.enctype << " " << SettingName(of.protocol);
}
inline std::string NameOf(const ::testing::TestParamInfo<KeyAndProtocol>& info) {
  const auto& [enctype, protocol] = info.param;
  return absl::StrCat(FindEnctype(enctype)->is_gcm() ? "Gcm" : absl::StrCat("Type", enctype),
                      protocol == ProtocolSetting::kGarbled ? "Garbled" : "InRounds");
}

inline PlainKey WrongPassword(PlainKey key) {
  key.base[0] ^= 1;
  return key;
}

struct Realm : ThreeEngines {
  explicit Realm(int32_t enctype = kEnctypeAes128Gcm, const EngineOptions& options = {},
                 size_t rings = 1)
      : ThreeEngines(options) {
    hub().SetRings(rings);
    AddKeys(enctype);
    StartAll();
    EXPECT_TRUE(WaitConnected());
  }
  explicit Realm(const EngineOptions& options) : Realm(kEnctypeAes128Gcm, options) {}
  // The first triple of a realm of several.
  explicit Realm(const SharedStores& stores) : ThreeEngines({}, 1, stores, 0) { AddKeys(); }
  // Another triple of the realm.
  Realm(const Realm& first, const SharedStores& stores, int triple)
      : ThreeEngines({}, 1 + triple, stores, triple),
        alice(first.alice),
        bob(first.bob),
        guest(first.guest),
        otp(first.otp),
        tgt(first.tgt),
        kadmin(first.kadmin) {}

  void AddKeys(int32_t enctype = kEnctypeAes128Gcm) {
    alice = AddKey("alice@EXAMPLE.COM", KeyClass::kUser, enctype);
    bob = AddKey("bob@EXAMPLE.COM", KeyClass::kUser, enctype);
    guest = AddKey("guest@EXAMPLE.COM", KeyClass::kUser, enctype, Gate::kNone);
    otp = AddKey("otp@EXAMPLE.COM", KeyClass::kUser, enctype, Gate::kKdcTrusted);
    tgt = AddKey("krbtgt/EXAMPLE.COM@EXAMPLE.COM", KeyClass::kTgs, kEnctypeAes256Gcm, Gate::kNone);
    kadmin = AddKey("kadmin/admin@EXAMPLE.COM", KeyClass::kService, kEnctypeAes256Gcm, Gate::kNone);
  }

  void RestartAll() {
    StopAll();
    StartAll();
    ASSERT_TRUE(WaitConnected());
  }

  std::string Preauth(const PlainKey& key, absl::Duration off = absl::ZeroDuration()) {
    return SealPreauth(key, absl::Now() + off, random());
  }
  std::string AlteredPreauth(const PlainKey& key) {
    std::string preauth = Preauth(key);
    preauth.back() ^= 1;
    return preauth;
  }

  Job NewJob(Operation operation) {
    Job job;
    job.id = NextId();
    job.operation = operation;
    return job;
  }
  Job Login(const PlainKey& key) { return Login(key, Preauth(key)); }
  Job Login(const PlainKey& key, const std::string& preauth) {
    return LoginJob(NextId(), key, tgt, preauth);
  }
  Job OpenPreauth(const PlainKey& key, const std::string& preauth) {
    Job job = NewJob(Operation::kOpenPreauth);
    job.client = key.info.handle;
    job.opens.push_back({key.info.handle, kUsagePreauth, preauth});
    return job;
  }
  Job Granted(JobId grant) { return Granted(grant, alice, {tgt.info.handle, kUsageTicket, 100}); }
  Job Granted(JobId grant, const PlainKey& client, const SealPart& seal) {
    Job job = NewJob(Operation::kSealGranted);
    job.client = client.info.handle;
    job.grant = grant;
    job.seals.push_back(seal);
    return job;
  }
  Job OpenTicket(const std::string& ticket) { return OpenTicket(ticket, tgt); }
  Job OpenTicket(const std::string& ticket, const PlainKey& key) {
    Job job = NewJob(Operation::kOpenTicket);
    job.opens.push_back({key.info.handle, kUsageTicket, ticket});
    return job;
  }
  Job Reissue(const std::string& parent) { return Reissue(parent, tgt); }
  Job Reissue(const std::string& parent, const PlainKey& under, uint32_t size = 120) {
    Job job = NewJob(Operation::kReissueTicket);
    job.opens.push_back({tgt.info.handle, kUsageTicket, parent});
    job.seals.push_back({under.info.handle, kUsageTicket, size});
    return job;
  }
  Job MakeChecksums(std::vector<MakeMacPart> macs) {
    Job job = NewJob(Operation::kMakeChecksum);
    job.make_macs = std::move(macs);
    return job;
  }
  Job VerifyChecksum(const PlainKey& key, const std::string& data, const std::string& checksum,
                     uint32_t usage = kUsagePacChecksum) {
    Job job = NewJob(Operation::kVerifyChecksum);
    job.verify_macs.push_back({key.info.handle, usage, data, checksum});
    return job;
  }

  // A TGT for alice as a KDC makes it: login, ticket sealed, tag asked for.
  std::string Tgt(const std::string& inside) {
    const JobResult result = Run(Login(alice));
    EXPECT_VERDICT(result, Verdict::kOk);
    return FinishSeal(result, 0, inside);
  }

  PlainKey alice, bob, guest, otp, tgt, kadmin;
};

// That no batch was computed by the other one since the realm began, and some by this one. Of gcm
// parts in rounds reports say nothing.
inline void ExpectComputedBy(Realm& realm, ProtocolSetting forced) {
  const bool garbled = forced == ProtocolSetting::kGarbled;
  size_t by_this = 0;
  for (const BatchReport& report : realm.recorder(0).Batches()) {
    const auto computed = [](const BatchJob& job) { return job.computed; };
    if (std::none_of(report.jobs.begin(), report.jobs.end(), computed)) continue;
    const bool was_garbled = report.protocol == CtsProtocol::kGarbled;
    by_this += was_garbled == garbled;
    if (report.protocol.has_value()) {
      EXPECT_EQ(was_garbled, garbled) << "batch " << report.batch;
    }
  }
  EXPECT_GT(by_this, 0u);
}

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_JOBS_H_
