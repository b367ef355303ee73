// SPDX-License-Identifier: Apache-2.0
//
// The parts under keys of enctypes 17 to 20 of a batch of few jobs, by garbled circuits (garble/):
// two messages one after the other instead of thousands of rounds, and some megabytes.
//
//   first     messages to open: verdict, time of a good pre-authentication, text on shares;
//             and all of jobs that open none
//   second    what else belongs to the jobs whose messages are good and in time
//
// Parts of one shape (kind, enctype, length) are lanes of a run, up to sixteen.
#ifndef MPC_SERVER_COMPUTE_GARBLED_CTS_H_
#define MPC_SERVER_COMPUTE_GARBLED_CTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/compute/cts_part.h"
#include "mpc-server/garble/garbled_run.h"
#include "mpc-server/garble/plan.h"
#include "mpc-server/garble/run_queue.h"
#include "mpc-server/job/preauth_timestamp.h"
#include "mpc-server/share/session.h"

namespace mpckdc {

class GarbledCts {
 public:
  GarbledCts(PartyContext& party, const PreauthWindow& window) : party_(party), window_(window) {}

  // The parts are the caller's, and get their results: good, opened, garbled_text (of an open its
  // text, of a seal its ciphertext) and garbled_mac. `texts`: of seals, confounder | text in
  // blocks, from CtsPartWork::first_block on. `agreed`: see DrawNeighbourKeys(). `queue` runs them.
  void Begin(absl::Span<CtsPartWork> parts, const SecretVector<SharedBlock>& texts,
             const Digest& agreed, garble::RunQueue& queue);

  // What G1 sends for a part by itself: the part's kind, enctype, key and lengths alone count.
  static size_t TableBytesOf(const CtsPartWork& part);

 private:
  // Parts of one shape, the plan of their shape, and their run.
  struct Run {
    std::vector<CtsPartWork*> lanes;
    std::unique_ptr<garble::Plan> plan;
    std::vector<std::string> iv_and_ciphertext;
    std::unique_ptr<garble::GarbledRun> circuit;
  };

  void AddRuns(const std::vector<CtsPartWork*>& parts, const std::function<void()>& then = nullptr);
  void AddSecond();
  void AddRun(std::vector<CtsPartWork*> lanes, const std::function<void()>& then);
  static std::unique_ptr<garble::Plan> PlanOf(const CtsPartWork& part);
  garble::RunInput InputOf(Run& run) const;
  garble::SharedBits SharesOf(const Run& run) const;
  void Keep(const Run& run);
  void KeepShown(const Run& run);

  PartyContext& party_;
  const PreauthWindow window_;
  absl::Span<CtsPartWork> parts_;
  const SecretVector<SharedBlock>* texts_ = nullptr;
  Digest agreed_{};
  std::vector<std::unique_ptr<Run>> runs_;
  garble::RunQueue* queue_ = nullptr;
  size_t left_ = 0;  // of those that the second ones wait for
};

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_GARBLED_CTS_H_
