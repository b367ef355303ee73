// SPDX-License-Identifier: Apache-2.0
//
// Servers that begin with an empty store beside others that have the realm's keys: their disks were
// lost, or they were started with the wrong data directory. Making the realm once more would give
// nobody a key back, so whoever connects hears which way leads out.
#ifndef MPC_SERVER_ENROLL_LOST_STORES_H_
#define MPC_SERVER_ENROLL_LOST_STORES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "proto/admin.pb.h"

namespace mpckdc::enroll {

struct LostStores {
  std::vector<uint32_t> empty;  // parties, ascending; none: nothing is lost
  std::vector<uint32_t> good;
  uint64_t keys = 0, epoch = 0;  // of the best of the good

  bool any() const { return !empty.empty(); }
  std::string What() const;
  std::string WayOut() const;
};

// From the servers that answered, in any order. None of them has keys, or all have a realm: a realm
// that is being made, or is well.
LostStores FindLostStores(absl::Span<const v1::StatusReply> replies);

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_ENROLL_LOST_STORES_H_
