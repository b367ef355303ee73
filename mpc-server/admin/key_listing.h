// SPDX-License-Identifier: Apache-2.0
//
// What the three servers say of the keys.
#ifndef MPC_SERVER_ADMIN_KEY_LISTING_H_
#define MPC_SERVER_ADMIN_KEY_LISTING_H_

#include <array>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc-server/admin/session.h"
#include "mpc-server/enroll/admin_client.h"
#include "proto/admin.pb.h"

namespace mpckdc::admin {

// What the three servers say about one handle.
struct ListedKey {
  v1::KeyInfo info;  // the lowest party's that has it
  std::array<bool, 3> present = {};
  bool same = true;  // all that have it say the same about it

  bool complete() const { return present[0] && present[1] && present[2]; }
  std::string Parties() const;  // "012", "0-2"
};

using KeyListing = std::map<std::string, ListedKey>;  // by handle

// One principal's keys, or all when it is empty.
absl::StatusOr<KeyListing> ListOnAll(Session& session, const std::string& principal, bool staged);

// Before keys are deleted because the database does not refer to them: an error when it refers to
// none of the servers' keys at all, as another or an empty database would.
absl::Status CheckDatabaseBelongs(const KeyListing& everything, const KdbEntries& entries);

// "PRINCIPAL version N ENCTYPE"
std::string Describe(const std::string& principal, uint32_t kvno, int32_t enctype);
std::string Describe(const v1::KeyInfo& info);

// By principal, version and enctype, for people.
std::vector<const ListedKey*> Sorted(const KeyListing& listing);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_KEY_LISTING_H_
