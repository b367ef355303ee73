// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/epoch_agreement.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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
    "must be replaced (mpc-admin replace-party; deploy/runbooks/epochs.md)";

// The one that is empty beside two that are not; -1: there is none.
int NewcomerOf(const std::array<EpochClaim, 3>& claims) {
  int newcomer = -1, empty = 0;
  for (int p = 0; p < 3; ++p) {
    if (!claims[p].empty) continue;
    newcomer = p;
    ++empty;
  }
  return empty == 1 ? newcomer : -1;
}

bool MayReplace(const std::array<EpochClaim, 3>& claims, int newcomer) {
  if (newcomer < 0) return false;
  const EpochClaim& one = claims[(newcomer + 1) % 3];
  const EpochClaim& other = claims[(newcomer + 2) % 3];
  const bool same = one.epoch == other.epoch && one.began_by == other.began_by;
  const bool all_want = absl::c_all_of(
      claims, [=](const EpochClaim& claim) { return claim.replace == newcomer + 1; });
  return same && all_want && !one.busy && !other.busy && !one.receiving && !other.receiving;
}

const EpochClaim& NewestOf(const std::array<EpochClaim, 3>& claims) {
  return *std::max_element(claims.begin(), claims.end(), [](const auto& a, const auto& b) {
    return a.epoch < b.epoch;
  });
}

// It has prepared what the newest have entered.
bool CanFollow(const EpochClaim& claim, const EpochClaim& newest) {
  return claim.prepared == newest.began_by && (claim.empty || claim.epoch + 1 == newest.epoch);
}

// The triple whose turn it is may be amid this very change: who took over at once would end its
// session.
absl::StatusOr<EpochStep> TakeOverInTime(const std::array<EpochClaim, 3>& claims) {
  if (absl::c_any_of(claims, [](const EpochClaim& c) { return c.insists; })) {
    return EpochStep::kTakeOver;
  }
  return absl::UnavailableError(
      "the servers of another triple are going into the next share epoch");
}

}  // namespace

EpochClaim ClaimOf(const EpochState& state, bool refresh) {
  EpochClaim claim;
  claim.epoch = state.epoch;
  claim.began_by = state.began_by;
  claim.prepared = state.prepared;
  claim.refresh = refresh && !state.rewriting && !state.receiving;
  claim.busy = state.rewriting;
  claim.receiving = state.receiving;
  claim.steward = static_cast<uint8_t>(state.steward);
  return claim;
}

absl::Status CheckSettled(const std::array<EpochClaim, 3>& claims) {
  std::vector<std::string> empty;
  for (int p = 0; p < 3; ++p) {
    if (claims[p].empty) empty.push_back(absl::StrCat("server ", p));
  }
  // All three are before init-realm.
  if (empty.empty() || empty.size() == 3) return absl::OkStatus();
  const int newcomer = NewcomerOf(claims);
  const EpochClaim& newest = NewestOf(claims);
  if (newcomer >= 0 && (claims[newcomer].receiving || MayReplace(claims, newcomer) ||
                        CanFollow(claims[newcomer], newest))) {
    return absl::OkStatus();
  }
  const std::string way_out =
      newcomer < 0 ? "see deploy/runbooks/epochs.md"
                   : absl::StrCat("run mpc-admin replace-party ", newcomer,
                                  " (deploy/runbooks/server-lost.md)");
  return absl::FailedPreconditionError(absl::StrCat(
      "the store of ", absl::StrJoin(empty, " and "), " is empty, and the realm is in share epoch ",
      newest.epoch, newest.epoch == 1 ? ": if it is being made run mpc-admin init-realm again; if "
                                      : ": if ",
      "data is lost ", way_out));
}

bool IsSteward(const std::array<EpochClaim, 3>& claims, int triple) {
  return absl::c_all_of(claims, [=](const EpochClaim& c) { return c.steward == triple; });
}

absl::StatusOr<EpochStep> ChooseEpochStep(const std::array<EpochClaim, 3>& claims, int own,
                                          int triple) {
  const int newcomer = NewcomerOf(claims);
  const EpochClaim& newest = NewestOf(claims);
  const bool steward = IsSteward(claims, triple);
  if (MayReplace(claims, newcomer)) return steward ? EpochStep::kReplace : EpochStep::kTakeOver;
  bool all_newest = true;
  for (int p = 0; p < 3; ++p) {
    const EpochClaim& claim = claims[p];
    const bool is_newest = claim.epoch == newest.epoch;
    all_newest &= is_newest;
    if (is_newest && claim.began_by == newest.began_by) continue;
    if (is_newest) {
      return absl::FailedPreconditionError(absl::StrCat("the servers came into share epoch ",
                                                        newest.epoch, " by different refreshes",
                                                        kWhatToDo));
    }
    // The two others come together first; CheckSettled() says the rest.
    if (CanFollow(claim, newest) || p == newcomer) continue;
    return absl::FailedPreconditionError(absl::StrCat(EpochsText(claims), kWhatToDo));
  }
  if (!all_newest) {
    const auto follows = [&](const EpochClaim& claim) {
      return claim.epoch != newest.epoch && CanFollow(claim, newest);
    };
    if (!steward && absl::c_any_of(claims, follows)) return TakeOverInTime(claims);
    return follows(claims[own]) ? EpochStep::kCatchUp : EpochStep::kWait;
  }
  const bool refresh = absl::c_all_of(claims, [](const EpochClaim& c) { return c.refresh; });
  const bool catch_up = absl::c_any_of(claims, [](const EpochClaim& c) { return c.catch_up; });
  if (!steward) return refresh || catch_up ? EpochStep::kTakeOver : EpochStep::kWait;
  return refresh ? EpochStep::kRefresh : EpochStep::kStay;
}

std::optional<int> Receiver(const std::array<EpochClaim, 3>& claims) {
  for (int p = 0; p < 3; ++p) {
    if (claims[p].receiving) return p;
  }
  const int newcomer = NewcomerOf(claims);
  if (newcomer < 0) return std::nullopt;
  const bool joins = MayReplace(claims, newcomer) ||
                     (claims[newcomer].prepared.has_value() &&
                      claims[newcomer].epoch != claims[(newcomer + 1) % 3].epoch) ||
                     (claims[newcomer].prepared.has_value() &&
                      claims[newcomer].epoch != claims[(newcomer + 2) % 3].epoch);
  return joins ? std::optional<int>(newcomer) : std::nullopt;
}

std::string EncodePrepared(const RefreshId& id, uint64_t into) {
  std::string out;
  AppendUint(out, kPreparedMessage, 1);
  absl::StrAppend(&out, AsText(id));
  AppendUint(out, into, 8);
  return out;
}

}  // namespace mpckdc
