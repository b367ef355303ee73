// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/epoch_agreement.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"

namespace mpckdc {
namespace {

constexpr uint8_t kPreparedMessage = 3;  // beside 1 and 2 of agreement.h

std::string EpochsText(const std::array<EpochClaim, 3>& claims) {
  std::string text;
  for (int p = 0; p < 3; ++p) {
    absl::StrAppend(&text, p == 0 ? "" : ", ", "server ", p, " is in share epoch ",
                    claims[p].epoch);
  }
  return text;
}

constexpr char kWhatToDo[] =
    ": what is older is a store that was put back from a backup, and shares of two epochs do not "
    "belong together. Start that server with its newest store and key file; if they are lost, it "
    "must be replaced (deploy/runbooks/epochs.md)";

}  // namespace

EpochClaim ClaimOf(const EpochState& state, bool refresh) {
  return {state.epoch, state.began_by, state.prepared, refresh && !state.rewriting};
}

absl::StatusOr<EpochStep> ChooseEpochStep(const std::array<EpochClaim, 3>& claims, int own) {
  uint64_t newest = 0;
  for (const EpochClaim& claim : claims) newest = std::max(newest, claim.epoch);
  const EpochClaim* first = nullptr;  // of those in the newest
  bool all_newest = true, all_refresh = true;
  for (const EpochClaim& claim : claims) {
    if (claim.epoch == newest && first == nullptr) first = &claim;
    all_newest &= claim.epoch == newest;
    all_refresh &= claim.refresh;
  }
  for (const EpochClaim& claim : claims) {
    if (claim.epoch == newest && claim.began_by != first->began_by) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the servers came into share epoch ", newest, " by different refreshes", kWhatToDo));
    }
    const bool can_follow = claim.epoch + 1 == newest && claim.prepared == first->began_by;
    if (claim.epoch != newest && !can_follow) {
      return absl::FailedPreconditionError(absl::StrCat(EpochsText(claims), kWhatToDo));
    }
  }
  if (!all_newest) return claims[own].epoch == newest ? EpochStep::kWait : EpochStep::kCatchUp;
  return all_refresh ? EpochStep::kRefresh : EpochStep::kStay;
}

std::string EncodePrepared(const RefreshId& id, uint64_t into) {
  std::string out;
  AppendUint(out, kPreparedMessage, 1);
  absl::StrAppend(&out, AsText(id));
  AppendUint(out, into, 8);
  return out;
}

}  // namespace mpckdc
