// SPDX-License-Identifier: Apache-2.0
// A server's rings. Each ring is a session of its own over a channel of its own between the same
// three servers, with its own pairwise keys and counters:
//
//     ring 0   agreement, checks, openings, a share of the blocks     the engine's thread
//     ring 1   a share of the blocks                                  a thread of its own
//     ..
//
// While one ring waits for a message another one computes: the rings fill the cores and the wire.
#ifndef MPC_SERVER_SHARE_RINGS_H_
#define MPC_SERVER_SHARE_RINGS_H_

#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/base/sha256.h"
#include "mpc-server/share/session.h"

namespace mpckdc {

// Used by one thread at a time.
class Rings {
 public:
  // One ring at least; not owned, must outlive this.
  explicit Rings(std::vector<PartyContext*> rings);
  ~Rings();
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;

  size_t size() const { return rings_.size(); }
  PartyContext& first() { return *rings_[0]; }

  // The batch's number on every ring.
  void BeginBatch(uint32_t number);

  // What the three agreed on for the batch under way, for its proofs and its garblings.
  void SetContext(const Digest& context);
  const Digest& context() const { return context_; }
  // PartyContext::Verify() on every ring, at the same time.
  absl::Status Verify(Cost* counted = nullptr);
  bool verified() const;

  // Calls body(ring, party) for the first `count` rings at the same time, ring 0 on this thread.
  // Returns when all have returned; a deviation, else the first error by ring number, after which
  // the sessions of all rings are over.
  using Body = absl::FunctionRef<absl::Status(size_t ring, PartyContext& party)>;
  absl::Status Run(size_t count, Body body);

 private:
  struct Worker;
  void Serve(Worker& worker, size_t ring);

  const std::vector<PartyContext*> rings_;
  Digest context_{};
  std::vector<std::unique_ptr<Worker>> workers_;  // of ring 1 and up
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_RINGS_H_
