// SPDX-License-Identifier: Apache-2.0
//
// From where each principal has logged in lately. Strangers' wrong guesses must not keep it out
// from there, so each of these places has a bucket of its own for failures (doc/jobs.md, "Quotas").
// Forgotten with the process. One thread at a time.
#ifndef MPC_SERVER_JUDGE_KNOWN_SOURCES_H_
#define MPC_SERVER_JUDGE_KNOWN_SOURCES_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/judge/token_bucket.h"
#include "mpc-server/key/key_info.h"

namespace mpckdc {

class KnownSources {
 public:
  explicit KnownSources(size_t max_principals = limits::kMaxKnownPrincipals)
      : max_principals_(max_principals) {}

  // The principal has shown from there that it has its key. A new place takes the bucket of the one
  // that is forgotten for it: who moves about gets no more failures by that.
  void Learn(const PrincipalId& principal, uint64_t source, absl::Duration now);
  // The bucket of a place; null unless the principal logged in from there lately.
  TokenBucket* Find(const PrincipalId& principal, uint64_t source, absl::Duration now);

  void ChangeRate(const Rate& from, const Rate& to, absl::Duration now);
  // Forgets what is too old; call it now and then.
  void Prune(absl::Duration now);
  size_t size() const { return principals_.size(); }

 private:
  struct Place {
    uint64_t source = 0;
    absl::Duration used;
    TokenBucket failures;
  };
  using Places = absl::InlinedVector<Place, 1>;  // most principals have one

  static absl::Duration LastUse(const Places& places);

  const size_t max_principals_;
  absl::flat_hash_map<PrincipalId, Places> principals_;
  absl::Duration pruned_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_JUDGE_KNOWN_SOURCES_H_
