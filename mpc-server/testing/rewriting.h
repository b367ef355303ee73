// SPDX-License-Identifier: Apache-2.0
//
// What EpochDuties does to a store after a refresh, at once.
#ifndef MPC_SERVER_TESTING_REWRITING_H_
#define MPC_SERVER_TESTING_REWRITING_H_

#include <vector>

#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

inline absl::StatusOr<ShareStore::Rewritten> RewriteAll(ShareStore& store) {
  ASSIGN_OR_RETURN(const auto places, store.PlacesFrom(Handle{}, SIZE_MAX));
  std::vector<Handle> handles;
  for (const auto& [place, handle] : places) handles.push_back(handle);
  return store.Rewrite(handles);
}

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_REWRITING_H_
