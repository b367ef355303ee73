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

}  // namespace
}  // namespace mpckdc
