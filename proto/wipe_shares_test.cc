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
  job->set_keys("keys of an answer");
  message.mutable_tags(0)->set_keys("keys of a tag's answer");
  job->add_opens()->set_plaintext_share("a share of a plaintext");
  job->add_seals()->set_message_share(std::string(300, 'm'));
  WipeShares(message);
  for (const std::string& share :
       {job->opens(0).keystream_share(), job->seals(0).keystream_share(),
        job->make_macs(0).tag_share(), message.tags(0).tag_share(), job->opens(1).plaintext_share(),
        job->seals(1).message_share(), job->keys(), message.tags(0).keys()}) {
    EXPECT_EQ(share, std::string(share.size(), '\0'));
    EXPECT_GE(share.size(), 7u);
  }
  EXPECT_EQ(job->seals(0).nonce(), "public nonce");
}

TEST(WipeShares, LeavesZerosOfAPlaintextThatIsSealed) {
  v1::KdcMessage message;
  v1::Seal* seal = message.add_jobs()->add_seals();
  seal->set_own_component(std::string(200, 'p'));
  seal->set_before_component(std::string(200, 'b'));
  seal->set_component_hashes("public hashes");
  seal->set_handle("a public handle");
  message.mutable_jobs(0)->add_seals()->set_max_plaintext(7);
  WipeShares(message);
  for (const std::string& component : {seal->own_component(), seal->before_component()}) {
    EXPECT_EQ(component, std::string(component.size(), '\0'));
    EXPECT_GE(component.size(), 200u);
  }
  EXPECT_EQ(seal->component_hashes(), "public hashes");
  EXPECT_EQ(seal->handle(), "a public handle");
  EXPECT_EQ(message.jobs(0).seals(1).own_component(), "");
}

}  // namespace
}  // namespace mpckdc
