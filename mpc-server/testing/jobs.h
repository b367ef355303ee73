// SPDX-License-Identifier: Apache-2.0
//
// For the tests of JobEngine: a realm on three engines in this process, the jobs that a KDC sends,
// and what is expected of their results.
#ifndef MPC_SERVER_TESTING_JOBS_H_
#define MPC_SERVER_TESTING_JOBS_H_

#include <ostream>
#include <string>

#include "gtest/gtest.h"
#include "mpc-server/agree/nonce_sequencer.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/job/preauth_timestamp.h"
#include "mpc-server/job/tgt_header.h"
#include "mpc-server/key/message_format.h"
#include "mpc-server/testing/engines.h"
#include "mpc-server/testing/gcm_plain.h"

namespace mpckdc {

// For the messages of failed expectations.
inline std::ostream& operator<<(std::ostream& out, const JobResult& result) {
  return out << VerdictName(result.judgement.verdict) << " (" << result.judgement.detail << ")";
}
inline std::ostream& operator<<(std::ostream& out, const TagResult& result) {
  return out << VerdictName(result.judgement.verdict) << " (" << result.judgement.detail << ")";
}
inline std::ostream& operator<<(std::ostream& out, Verdict verdict) {
  return out << VerdictName(verdict);
}

struct Realm {
  explicit Realm(int32_t enctype = kEnctypeAes128Gcm, const EngineOptions& options = {},
                 uint64_t seed = 1, size_t rings = 1)
      : three(options, seed) {
    three.hub().SetRings(rings);
    alice = three.AddKey("alice@EXAMPLE.COM", KeyClass::kUser, enctype);
    bob = three.AddKey("bob@EXAMPLE.COM", KeyClass::kUser, enctype);
    guest = three.AddKey("guest@EXAMPLE.COM", KeyClass::kUser, enctype, Gate::kNone);
    otp = three.AddKey("otp@EXAMPLE.COM", KeyClass::kUser, enctype, Gate::kKdcTrusted);
    tgt = three.AddKey("krbtgt/EXAMPLE.COM@EXAMPLE.COM", KeyClass::kTgs, kEnctypeAes256Gcm,
                       Gate::kNone);
    kadmin = three.AddKey("kadmin/admin@EXAMPLE.COM", KeyClass::kService, kEnctypeAes256Gcm,
                          Gate::kNone);
    three.StartAll();
    EXPECT_TRUE(three.WaitConnected());
  }

  std::string Preauth(const PlainKey& key, absl::Duration off = absl::ZeroDuration()) {
    return SealPreauth(key, absl::Now() + off, three.random());
  }
  Job Login(const PlainKey& key) { return LoginJob(three.NextId(), key, tgt, Preauth(key)); }

  // A TGT for alice as a KDC makes it: login, ticket sealed, tag asked for.
  std::string Tgt(const std::string& inside) {
    const JobResult result = three.Run(Login(alice));
    EXPECT_TRUE(result.judgement.ok()) << result.judgement.detail;
    return three.FinishSeal(result, 0, inside);
  }
  // A ticket sealed by the oracle under krbtgt with this header.
  std::string ForgeWithKey(const TgtHeader& header, const std::string& inside) {
    const std::string text = EncodeTgtHeader(header);
    GcmNonce nonce;
    three.random().Fill(absl::MakeSpan(nonce));
    return PlainSealText(tgt, kUsageTicket, nonce, text, inside);
  }

  ThreeEngines three;
  PlainKey alice, bob, guest, otp, tgt, kadmin;
};

inline Job OpenTicket(Realm& realm, const std::string& ticket) {
  Job job;
  job.id = realm.three.NextId();
  job.operation = Operation::kOpenTicket;
  job.opens.push_back({realm.tgt.info.handle, kUsageTicket, ticket});
  return job;
}

inline Job Granted(Realm& realm, JobId grant, uint32_t size = 100) {
  Job job;
  job.id = realm.three.NextId();
  job.operation = Operation::kSealGranted;
  job.client = realm.alice.info.handle;
  job.grant = grant;
  job.seals.push_back({realm.tgt.info.handle, kUsageTicket, size});
  return job;
}

constexpr auto SameVerdict = [](const auto& result, Verdict want) {
  return result.judgement.verdict == want;
};
#define EXPECT_VERDICT(result, want) EXPECT_PRED2(SameVerdict, result, want)
#define ASSERT_VERDICT_OK(result) ASSERT_PRED2(SameVerdict, result, Verdict::kOk)

inline void ExpectNoOutput(const JobResult& result) {
  EXPECT_TRUE(result.opens.empty());
  EXPECT_TRUE(result.seals.empty());
  EXPECT_TRUE(result.make_macs.empty());
}

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_JOBS_H_
