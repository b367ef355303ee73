/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests under FAST armor that this process has seen. Armor tells which host made a request,
 * not who sent it: who saw one on its way can send it again. So each counts as its host's once, and
 * once more if it comes again by stream from the same address, which is what a client does that was
 * told to use TCP, or to try again.
 *
 * A request is remembered for longer than its armor is valid. What there is no room for does not
 * count as its host's; nothing is forgotten early, so nobody can use a ticket of his own to make
 * room for a copy of another's request.
 */
#ifndef KDC_PLUGIN_PROVIDER_ARMORED_H_
#define KDC_PLUGIN_PROVIDER_ARMORED_H_

#include <stdint.h>

typedef enum armored_copy {
    ARMORED_PROVED,  /* its host sent it */
    ARMORED_CLAIMED, /* a datagram with the address that it came from first */
    ARMORED_COPIED   /* anybody may have sent it */
} armored_copy;

#ifdef __cplusplus
extern "C" {
#endif

/* `host`, `request` and `address` are keyed hashes. One call for each request that arrives; one
 * thread at a time. */
armored_copy armored_see(uint64_t host, uint64_t request, uint64_t address, int is_stream);

#ifdef __cplusplus
}

#include <cstddef>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace mpckdc {

// Twice the clock skew that krb5 allows by default: a client's clock may be ahead.
inline constexpr absl::Duration kArmoredLife = absl::Minutes(10);
inline constexpr size_t kMaxArmored = 131072;      // requests, some 10 MB; 218 a second
inline constexpr size_t kMaxArmoredOfHost = 8192;  // of those; 13 a second

class ArmoredRequests {
 public:
  explicit ArmoredRequests(size_t max = kMaxArmored, size_t max_of_host = kMaxArmoredOfHost)
      : max_(max), max_of_host_(max_of_host) {}

  armored_copy See(uint64_t host, uint64_t request, uint64_t address, bool is_stream,
                   absl::Duration now);
  size_t size() const { return requests_.size(); }

 private:
  struct First {
    uint64_t address = 0;
    bool again = false;  // by stream, from there
  };
  struct Arrival {
    absl::Duration when;
    uint64_t host, request;
  };

  void Forget(absl::Duration now);

  const size_t max_, max_of_host_;
  absl::flat_hash_map<uint64_t, First> requests_;
  absl::flat_hash_map<uint64_t, size_t> of_host_;
  std::deque<Arrival> arrivals_;  // oldest first
};

}  // namespace mpckdc
#endif

#endif /* KDC_PLUGIN_PROVIDER_ARMORED_H_ */
