// SPDX-License-Identifier: Apache-2.0
//
// Three servers without faults of their own, for tests.
#ifndef MPC_SERVER_SIM_SMALL_REALM_H_
#define MPC_SERVER_SIM_SMALL_REALM_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/sim/servers.h"

namespace mpckdc::sim {

struct SmallRealm {
  SmallRealm() {
    guest =
        MakePlainKey(random, "guest@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm, Gate::kNone);
    tgt = MakePlainKey(random, "krbtgt/EXAMPLE.COM@EXAMPLE.COM", KeyClass::kTgs, kEnctypeAes128Gcm,
                       Gate::kNone);
    carol = MakePlainKey(random, "carol@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes256Sha1,
                         Gate::kTimestamp);
    for (const PlainKey& key : {guest, tgt, carol}) servers.Enrol(ShareKey(key, random));
  }
  ~SmallRealm() {
    for (int p = 0; p < kParties; ++p) servers.Kill(p, "the end");
    while (servers.ending() > 0) RunFor(absl::Seconds(1));
  }
  void Start(absl::Duration d = absl::Seconds(2)) {
    for (int p = 0; p < kParties; ++p) servers.Start(p);
    RunFor(d);
  }
  void RunFor(absl::Duration d) { scheduler.RunUntil(scheduler.now() + d); }
  void Submit(JobId id) {
    for (int p = 0; p < kParties; ++p) {
      servers.process(p)->engine->Submit(kdc, LoginJob(id, guest, tgt, ""), [this](JobResult r) {
        answers[r.id].push_back(r.judgement.verdict);
      });
    }
  }
  // Sends all three their message, lets eight seconds pass and adds the answers up; UNSPECIFIED:
  // not all have come.
  JobResult Ask(const PerParty<Job>& jobs) {
    struct Call {
      PerParty<JobResult> results;
      int got = 0;
    };
    const auto call = std::make_shared<Call>();
    for (int p = 0; p < kParties; ++p) {
      servers.process(p)->engine->Submit(kdc, jobs[p], [call, p](JobResult r) {
        call->results[p] = std::move(r);
        ++call->got;
      });
    }
    RunFor(absl::Seconds(8));
    return call->got == kParties ? Combine(call->results) : JobResult{};
  }
  JobResult LoginAsCarol(JobId id) {
    Job job = LoginJob(id, carol, tgt, SealPreauth(carol, scheduler.now(), random));
    job.deadline_ms = 5000;
    return Ask({job, job, job});
  }
  JobResult ReplyToCarol(JobId id, JobId grant) {
    Job job;
    job.id = id;
    job.deadline_ms = 5000;
    job.operation = Operation::kSealGranted;
    job.client = carol.info.handle;
    job.grant = grant;
    job.seals.push_back(
        {carol.info.handle, kUsageAsReply, static_cast<uint32_t>(reply_text.size())});
    return Ask(WithTexts(job, reply_text, random));
  }
  void ExpectReply(const JobResult& result) {
    ASSERT_EQ(result.judgement.verdict, Verdict::kOk) << result.judgement.detail;
    EXPECT_EQ(OracleOpen(carol, kUsageAsReply, CtsOf(result.seals[0]).share), reply_text);
  }

  const std::string reply_text = std::string(30, 'R');
  Scheduler scheduler{absl::FromUnixSeconds(1'800'000'000)};
  Dice dice{1};
  Journal journal{&scheduler};
  Network network{&scheduler, &dice};
  Servers servers{&scheduler, &network, &dice, &journal, {}};
  SeededRandomForTest random{2};
  PlainKey guest, tgt, carol;
  KdcIdentity kdc{"kdc1", {}};
  std::map<JobId, std::vector<Verdict>> answers;
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_SMALL_REALM_H_
