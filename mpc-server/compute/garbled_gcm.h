// SPDX-License-Identifier: Apache-2.0
//
// The parts under gcm keys of a batch of few jobs, by garbled circuits (garble/): one message there
// and one back instead of thirty rounds of AES, the powers of H and a check. What comes of it is
// what gcm_work.h's circuits give: AES blocks and powers on shares; of messages to open also
// whether they are good, and of a good pre-authentication its text.
#ifndef MPC_SERVER_COMPUTE_GARBLED_GCM_H_
#define MPC_SERVER_COMPUTE_GARBLED_GCM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/compute/key_use.h"
#include "mpc-server/garble/garbled_run.h"
#include "mpc-server/garble/plan.h"
#include "mpc-server/garble/run_queue.h"
#include "mpc-server/key/message_format.h"
#include "mpc-server/share/session.h"

namespace mpckdc {

// The blocks AES(J0), AES(counter 2), ... of a part, and what is to be judged of a message.
struct GarbledGcmPart {
  const KeyUse* key = nullptr;
  Nonce nonce{};
  size_t lanes = 0;

  bool judged = false;                 // what follows is there
  std::vector<Block> ghash_blocks{};   // of its tag,
  std::optional<SharedBlock> ghash{};  // or the sum, where powers are there
  Tag tag{};
  std::optional<Block> zero_block{};  // of the ciphertext: the second block's keystream
  std::string ciphertext{};           // behind it, of a text that is shown if all is good

  // Results.
  SecretVector<SharedBlock> blocks{};
  bool good = false;
  SecretBytes text{};
};

// H^1 .. H^count.
struct GarbledPowers {
  SharedBlock h;
  size_t count = 0;
  SecretVector<SharedBlock> powers{};  // the result
};

class GarbledGcm {
 public:
  explicit GarbledGcm(PartyContext& party) : party_(party) {}

  // All is the caller's, and gets its results. `agreed`: see NextGarbledRun(). `queue` runs them.
  void Begin(absl::Span<GarbledGcmPart> parts, absl::Span<GarbledPowers> powers,
             const Digest& agreed, garble::RunQueue& queue);

 private:
  struct Run {
    std::vector<GarbledGcmPart*> lanes;
    std::unique_ptr<garble::Plan> plan;
    std::vector<std::vector<std::string>> strings;
    std::unique_ptr<garble::GarbledRun> circuit;
  };

  void AddParts(std::vector<GarbledGcmPart*> lanes);
  void AddPowers(GarbledPowers& powers);
  void Keep(const Run& run);
  // `odd`: H^3, H^5, ...
  static void KeepPowers(const SecretVector<SharedBlock>& odd, GarbledPowers& powers);

  PartyContext& party_;
  Digest agreed_{};
  garble::RunQueue* queue_ = nullptr;
  absl::Span<GarbledGcmPart> parts_;
  absl::Span<GarbledPowers> powers_;
  std::vector<std::unique_ptr<Run>> runs_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_GARBLED_GCM_H_
