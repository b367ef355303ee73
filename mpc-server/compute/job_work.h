// SPDX-License-Identifier: Apache-2.0
//
// A job as a batch computes it: each part with its key, in the form of that key's family.
#ifndef MPC_SERVER_COMPUTE_JOB_WORK_H_
#define MPC_SERVER_COMPUTE_JOB_WORK_H_

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mpc-server/compute/cts_work.h"
#include "mpc-server/compute/gcm_work.h"
#include "mpc-server/job/received_job.h"

namespace mpckdc {

struct OpenWork {
  std::variant<GcmOpen, CtsOpen> form;
  bool is_preauth = false;
  bool judged = false;                     // before CheckTags: `good` tells
  bool good = false;                       // after CheckTags: tag and zero block
  std::optional<SecretBytes> plaintext{};  // after OpenTimestamps, of a good pre-auth
  bool late = false;                       // and its time is not the batch's: the rest was left out

  size_t PlaintextBytes() const {
    return std::visit([](const auto& open) { return open.message.PlaintextBytes(); }, form);
  }
  // No two messages of a client's have it in common.
  Nonce ReplayId() const {
    return std::visit([](const auto& open) -> Nonce { return open.ReplayId(); }, form);
  }
};
using SealWork = std::variant<GcmSeal, CtsSeal>;
using MakeMacWork = std::variant<GcmMac, CtsMac>;
struct VerifyMacWork {
  std::variant<GcmVerify, CtsVerify> form;
  bool judged = false;  // before CheckTags
  bool good = false;    // after CheckTags
};

struct JobWork {
  const ReceivedJob* received = nullptr;  // the caller's, as all that the parts refer to
  const KeyInfo* client = nullptr;
  std::vector<OpenWork> opens;
  std::vector<SealWork> seals;
  std::vector<MakeMacWork> make_macs;
  std::vector<VerifyMacWork> verify_macs;
  // Only its messages are opened, and of tickets only the tags are judged.
  bool opens_only = false;
  // They are good, and a later batch computes all of it.
  bool goes_on = false;

  bool HasCtsPart() const;
  bool HasGcmOpen() const;
  bool AllOpensGood() const;  // after CheckTags
  // A message that it opens was found bad, or late, before the rest of it began.
  bool Abandoned() const;

  // Parts that have passed CheckKeys.
  void AddOpen(const AnyKeyUse& key, const OpenPart& part);
  // Nonce and header are gcm's: the other family's messages have no room for them.
  void AddSeal(const AnyKeyUse& key, const SealPart& part, const Nonce& nonce, std::string header);
  void AddMakeMac(const AnyKeyUse& key, const MakeMacPart& part, const Nonce& nonce);
  void AddVerifyMac(const AnyKeyUse& key, const VerifyMacPart& part);
};

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_JOB_WORK_H_
