// SPDX-License-Identifier: Apache-2.0
#include "proto/wipe_shares.h"

#include <string>

#include "mpc-server/base/secret.h"

namespace mpckdc {
namespace {

void WipeString(std::string& text) {
  text.resize(text.capacity());  // what a longer string may have left there
  Wipe(text.data(), text.size());
}

}  // namespace

void WipeShares(v1::ServerMessage& message) {
  for (v1::JobAnswer& job : *message.mutable_jobs()) {
    for (v1::OpenAnswer& open : *job.mutable_opens()) {
      WipeString(*open.mutable_keystream_share());
      if (!open.plaintext_share().empty()) WipeString(*open.mutable_plaintext_share());
    }
    for (v1::SealAnswer& seal : *job.mutable_seals()) {
      WipeString(*seal.mutable_keystream_share());
      if (!seal.message_share().empty()) WipeString(*seal.mutable_message_share());
    }
    for (v1::MakeMacAnswer& mac : *job.mutable_make_macs()) WipeString(*mac.mutable_tag_share());
    if (!job.keys().empty()) WipeString(*job.mutable_keys());
  }
  for (v1::TagAnswer& tag : *message.mutable_tags()) {
    WipeString(*tag.mutable_tag_share());
    if (!tag.keys().empty()) WipeString(*tag.mutable_keys());
  }
}

void WipeShares(v1::Job& job) {
  for (v1::Seal& seal : *job.mutable_seals()) {
    if (!seal.own_component().empty()) WipeString(*seal.mutable_own_component());
    if (!seal.before_component().empty()) WipeString(*seal.mutable_before_component());
  }
}

void WipeShares(v1::KdcMessage& message) {
  for (v1::Job& job : *message.mutable_jobs()) WipeShares(job);
}

}  // namespace mpckdc
