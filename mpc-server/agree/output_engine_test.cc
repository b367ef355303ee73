// SPDX-License-Identifier: Apache-2.0
//
// What goes to the KDC and comes from it, with three engines: an answer that a server altered, a
// text whose components do not fit.
#include <functional>

#include "mpc-server/testing/jobs.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

// Logins with all kinds of outputs; P1 alters one after the other.
TEST(OutputEngine, AServerThatAltersAnAnswerIsNamed) {
  Realm realm;
  const auto flip = [](std::string& share) { share.back() ^= 1; };
  const std::vector<std::function<void(JobResult&)>> changes = {
      [](JobResult&) {},
      [&](JobResult& r) { flip(std::get<GcmOpenResult>(r.opens[0]).share); },
      [&](JobResult& r) { flip(std::get<GcmSealResult>(r.seals[0]).share); },
      [&](JobResult& r) { flip(std::get<GcmSealResult>(r.seals[1]).share); },
      [&](JobResult& r) { flip(std::get<GcmMacResult>(r.make_macs[0]).share); },
      [](JobResult& r) { r.keys.key[3] ^= 1; },
      [](JobResult& r) { r.keys.salt[3] ^= 1; },
      [](JobResult& r) { r.keys.before_share[3] ^= 1; },
      [](JobResult& r) { r.keys.next_key[3] ^= 1; }};
  for (size_t i = 0; i < changes.size(); ++i) {
    PerParty<JobResult> answers = realm.RunEach(realm.Login(realm.alice));
    changes[i](answers[1]);
    const JobResult sum = Combine(answers);
    EXPECT_EQ(sum.judgement.verdict, i == 0 ? Verdict::kOk : Verdict::kInconsistent) << i;
    if (i > 0) {
      EXPECT_THAT(sum.judgement.detail, HasSubstr("P1")) << i;
    }
  }
}

TEST(OutputEngine, AServerThatAltersATagIsNamed) {
  Realm realm;
  for (const bool share : {true, false}) {
    const JobResult login = realm.Run(realm.Login(realm.alice));
    ASSERT_VERDICT_OK(login);
    const TagRequest request{login.id, 0, Encrypt(login.seals[0], "inside")};
    PerParty<TagResult> tags = realm.Tags(request);
    EXPECT_TRUE(Combine(tags).judgement.ok());
    (share ? tags[2].tag_share[0] : tags[2].keys.key[0]) ^= 1;
    EXPECT_THAT(Combine(tags).judgement.detail, HasSubstr("P2"));
  }
}

// The text's shares are inputs of rounds, or of a circuit.
class InputEngine : public ::testing::TestWithParam<ProtocolSetting> {
 protected:
  PerParty<Job> Replies(const std::string& text) {
    const JobResult login = realm_.Run(realm_.Login(realm_.alice));
    EXPECT_VERDICT(login, Verdict::kOk);
    return WithTexts(realm_.Granted(login.id, realm_.alice,
                                    {realm_.alice.info.handle, kUsageAsReply,
                                     static_cast<uint32_t>(text.size())}),
                     text, realm_.random());
  }

  Realm realm_{kEnctypeAes128Sha256, Forced(GetParam())};
};

TEST_P(InputEngine, TheTextComesOutAsItWasGiven) {
  const std::string text(60, 'r');
  const JobResult sealed = Combine(realm_.Run(Replies(text)));
  ASSERT_VERDICT_OK(sealed);
  EXPECT_EQ(OracleOpen(realm_.alice, kUsageAsReply, CtsOf(sealed.seals[0]).share), text);
}

// A byte of a component or its salt, at one of its two holders.
TEST_P(InputEngine, AComponentThatIsNotTheHashsIsMalformed) {
  for (const bool own : {true, false}) {
    for (const size_t at : {size_t{0}, kTextSaltBytes}) {
      PerParty<Job> jobs = Replies("the reply");
      TextShares& text = jobs[1].seals[0].text;
      (own ? text.own : text.before)[at] ^= 1;
      const PerParty<JobResult> results = realm_.Run(jobs);
      ExpectRefused(results[1], Verdict::kMalformed, "is not the one whose hash the job has");
      for (const JobResult& result : results) {
        EXPECT_FALSE(result.judgement.ok());
        EXPECT_TRUE(NoOutput(result));
      }
    }
  }
}

// Whoever gives a server other components with their own hashes gives it another job.
TEST_P(InputEngine, ContradictingTextsAreNotComputed) {
  PerParty<Job> jobs = Replies("the reply");
  jobs[2].seals[0].text = WithTexts(jobs[2], "not this.", realm_.random())[2].seals[0].text;
  for (const JobResult& result : realm_.Run(jobs)) {
    EXPECT_VERDICT(result, Verdict::kInconsistent);
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, InputEngine, ::testing::ValuesIn(kForcedProtocols));

TEST(InputEngineOfGcm, TakesNoText) {
  Realm gcm;
  Job job = gcm.Login(gcm.alice);
  const PerParty<Job> jobs = WithTexts(job, std::string(400, 't'), gcm.random());
  for (const JobResult& result : gcm.Run(jobs)) EXPECT_VERDICT(result, Verdict::kMalformed);
}

}  // namespace
}  // namespace mpckdc
