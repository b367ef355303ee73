// SPDX-License-Identifier: Apache-2.0
//
// What the three servers say.
#ifndef MPC_SERVER_ADMIN_SURVEY_H_
#define MPC_SERVER_ADMIN_SURVEY_H_

#include <array>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/admin/session.h"
#include "mpc-server/enroll/admin_client.h"
#include "proto/admin.pb.h"

namespace mpckdc::admin {

// ---- Of themselves ----

// One server's status and what was noticed while asking for it.
struct SurveyedServer {
  std::string address;
  std::string certificate;  // its name
  absl::Status error;       // not OK: no status
  v1::StatusReply status;
  absl::Duration round_trip;
  absl::Duration clock_difference;  // its clock minus ours, at the middle of the round trip
};

// Asks the three at once, in the order of the configuration; a server that does not answer is no
// error of the survey.
absl::StatusOr<std::array<SurveyedServer, 3>> SurveyServers(Session& session);

// ---- Of the keys ----

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

#endif  // MPC_SERVER_ADMIN_SURVEY_H_
