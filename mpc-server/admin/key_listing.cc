// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/key_listing.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/string_to_key.h"

namespace mpckdc::admin {
std::string ListedKey::Parties() const {
  std::string text;
  for (int party = 0; party < 3; ++party) text += present[party] ? "012"[party] : '-';
  return text;
}

absl::StatusOr<KeyListing> ListOnAll(Session& session, const std::string& principal, bool staged) {
  std::array<std::vector<v1::KeyInfo>, 3> lists;
  RETURN_IF_ERROR(session.OnAll([&](int party, enroll::AdminClient& server) -> absl::Status {
    ASSIGN_OR_RETURN(lists[party], server.ListKeys(principal, staged, session.config().timeout));
    return absl::OkStatus();
  }));
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

std::string Describe(const std::string& principal, uint32_t kvno, int32_t enctype) {
  return absl::StrCat(principal, " version ", kvno, " ", EnctypeName(enctype));
}

std::string Describe(const v1::KeyInfo& info) {
  return Describe(info.principal(), info.kvno(), info.enctype());
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
