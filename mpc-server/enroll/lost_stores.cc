// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/enroll/lost_stores.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpckdc::enroll {
namespace {

constexpr char kRunbook[] = "deploy/runbooks/epochs.md";

// "party 1" or "parties 1 and 2"
std::string Parties(const std::vector<uint32_t>& parties) {
  return absl::StrCat(parties.size() == 1 ? "party " : "parties ", absl::StrJoin(parties, " and "));
}

}  // namespace

LostStores FindLostStores(absl::Span<const v1::StatusReply> replies) {
  LostStores stores;
  for (const v1::StatusReply& reply : replies) {
    const bool has_realm = reply.initialised() || reply.receiving() || reply.keys() > 0;
    if (!has_realm) {
      stores.empty.push_back(reply.party());
    } else if (reply.keys() > 0 || reply.epoch() > 1) {
      stores.good.push_back(reply.party());
      stores.keys = std::max(stores.keys, reply.keys());
      stores.epoch = std::max(stores.epoch, reply.epoch());
    }
  }
  if (stores.good.empty() || stores.empty.empty()) return {};
  std::sort(stores.empty.begin(), stores.empty.end());
  std::sort(stores.good.begin(), stores.good.end());
  return stores;
}

std::string LostStores::What() const {
  return absl::StrCat(empty.size() == 1 ? "the store of " : "the stores of ", Parties(empty),
                      empty.size() == 1 ? " is empty, while " : " are empty, while ", Parties(good),
                      good.size() == 1 ? " has " : " have ", keys,
                      " keys of the realm in share epoch ", epoch);
}

std::string LostStores::WayOut() const {
  const std::string wrong_directory =
      "if it began with the wrong data directory, start it with the right one; if its disk is "
      "lost: ";
  if (empty.size() == 1) {
    return absl::StrCat(wrong_directory, "mpc-admin replace-party ", empty[0],
                        ", which rebuilds it from the two others: ", kRunbook);
  }
  return absl::StrCat(
      "what one party has says nothing of a key. If they began with the wrong data directories, "
      "start them with the right ones. Else restore one of the two from its backup of share epoch ",
      epoch,
      ", store and key file, then mpc-admin replace-party rebuilds the other. Without such a "
      "backup the keys are gone, by design: make a new realm: ",
      kRunbook, ", \"Two servers lost their disks\"");
}

}  // namespace mpckdc::enroll
