// SPDX-License-Identifier: Apache-2.0
#include "proto/wipe_shares.h"

#include <gtest/gtest.h>

#include <string>

namespace mpckdc {
namespace {

TEST(WipeShares, LeavesZerosAndWhatIsPublic) {
  v1::ServerMessage message;
  v1::JobAnswer* job = message.add_jobs();
  job->add_opens()->set_keystream_share("a share");
  job->add_seals()->set_keystream_share(std::string(300, 'k'));
  job->mutable_seals(0)->set_nonce("public nonce");
  job->add_make_macs()->set_tag_share("a tag share");
  message.add_tags()->set_tag_share("another tag share");
  WipeShares(message);
  for (const std::string& share :
       {job->opens(0).keystream_share(), job->seals(0).keystream_share(),
        job->make_macs(0).tag_share(), message.tags(0).tag_share()}) {
    EXPECT_EQ(share, std::string(share.size(), '\0'));
    EXPECT_GE(share.size(), 7u);
  }
  EXPECT_EQ(job->seals(0).nonce(), "public nonce");
}

}  // namespace
}  // namespace mpckdc
