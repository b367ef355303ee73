// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/key_listing.h"

#include <algorithm>
#include <tuple>
#include <utility>


namespace mpckdc::admin {

std::string ListedKey::Parties() const {
  std::string text;
  for (int party = 0; party < 3; ++party) text += present[party] ? "012"[party] : '-';
  return text;
}

absl::StatusOr<KeyListing> ListOnAll(enroll::AdminServers* servers, const std::string& principal,
                                     bool staged, absl::Duration timeout) {
  std::array<std::vector<v1::KeyInfo>, 3> lists;
  absl::Status s = JoinErrors(servers->OnAll([&](int party, enroll::AdminClient& server) {
    absl::StatusOr<std::vector<v1::KeyInfo>> list = server.ListKeys(principal, staged, timeout);
    if (list.ok()) lists[party] = *std::move(list);
    return list.status();
  }));
  if (!s.ok()) return s;
  KeyListing listing;
  for (int party = 0; party < 3; ++party) {
    for (v1::KeyInfo& info : lists[party]) {
      ListedKey& key = listing[info.handle()];
      key.present[party] = true;
      if (key.info.handle().empty()) {
        key.info = std::move(info);
      } else if (info.SerializeAsString() != key.info.SerializeAsString()) {
        key.same = false;
      }
    }
  }
  return listing;
}

absl::Status CheckDatabaseBelongs(const KeyListing& everything, const KdbEntries& entries) {
  for (const auto& [principal, keys] : entries) {
    for (const KdbEntry& key : keys) {
      if (everything.count(key.handle) != 0) return absl::OkStatus();
    }
  }
  if (everything.empty()) return absl::OkStatus();
  return Advise(absl::FailedPreconditionError(
                    "the KDC's database refers to none of the servers' keys: nothing was deleted"),
                "is kdb_command in the configuration that of this realm's primary KDC?");
}

std::vector<const ListedKey*> Sorted(const KeyListing& listing) {
  std::vector<const ListedKey*> keys;
  for (const auto& [handle, key] : listing) keys.push_back(&key);
  std::sort(keys.begin(), keys.end(), [](const ListedKey* a, const ListedKey* b) {
    return std::forward_as_tuple(a->info.principal(), a->info.kvno(), a->info.enctype(),
                                 a->info.handle()) <
           std::forward_as_tuple(b->info.principal(), b->info.kvno(), b->info.enctype(),
                                 b->info.handle());
  });
  return keys;
}

}  // namespace mpckdc::admin
