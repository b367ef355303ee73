// SPDX-License-Identifier: Apache-2.0
//
// The parts of a batch under gcm keys: their AES blocks, 128- and 256-bit lanes side by side, and
// the powers of H of every key that needs a tag. A part's lanes are consecutive in the circuit of
// its key's size:
//
//   open, seal:            J0 (masks the tag) | counter 2 (zero block) | counter 3 | ...
//   make_mac, verify_mac:  J0
#ifndef MPC_SERVER_COMPUTE_GCM_WORK_H_
#define MPC_SERVER_COMPUTE_GCM_WORK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes/aes_batch.h"
#include "mpc-server/circuit/gcm/ghash.h"
#include "mpc-server/compute/garbled_gcm.h"
#include "mpc-server/compute/key_use.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc {

struct GcmPart {
  GcmKeyUse key;
  size_t first_lane = 0, lanes = 0;
  uint32_t powers = 0;  // which of GcmWork's powers of H are the key's
  size_t number = 0;    // GcmWork's
};
struct GcmOpen : GcmPart {
  MessageView message;    // into the job
  bool tag_only = false;  // without the keystream of the text: its lanes are the first two
  bool is_preauth = false;  // its text is opened to the servers, if it is good

  const Nonce& ReplayId() const { return message.nonce; }
};
struct GcmSeal : GcmPart {
  Nonce nonce{};
  std::string header;
  uint32_t max_plaintext = 0;
};
struct GcmMac : GcmPart {
  Nonce nonce{};
  absl::string_view data;
};
struct GcmVerify : GcmMac {
  Tag tag{};
};

// Powers of H that outlive a batch: those of krbtgt keys, which every login uses. Lives as long as
// the session between the servers, so that the three have the same ones.
class PowersCache {
 public:
  // nullptr unless at least `count` powers of this very share of H are kept.
  const SharedPowers* Find(const KeyUse& key, size_t count) const;
  const SharedPowers& Put(const KeyUse& key, absl::Span<const SharedBlock> powers);

 private:
  struct Entry {
    Secret<SharedBlock> h;
    SharedPowers powers;
  };
  absl::flat_hash_map<std::pair<Handle, uint32_t>, Entry> entries_;
};

class GcmWork {
 public:
  // `blocks` and `cache` are the caller's.
  GcmWork(AesBatch& blocks, PowersCache& cache) : blocks_(blocks), cache_(cache) {}

  // Keys and bytes that a part refers to stay the caller's.
  void Add(GcmOpen& open);
  void Add(GcmSeal& seal);
  void Add(GcmMac& mac);
  void Add(GcmVerify& mac);
  size_t lanes() const { return lanes128_.size() + lanes256_.size(); }

  // Between `first` and `last`, which are run together with the blocks.
  absl::Status Run(Rings& rings, Circuit& first, absl::Span<Circuit* const> last, Sbox sbox,
                   Cost* cost);

  // The same by garbled circuits: Begin, the queue to its end, End. Messages are judged then.
  void BeginGarbled(PartyContext& party, const Digest& agreed, garble::RunQueue& queue);
  void EndGarbled();
  bool judged() const { return !garbled_.empty(); }
  bool good(const GcmPart& part) const { return garbled_[part.number].good; }
  const SecretBytes& opened_text(const GcmOpen& open) const { return garbled_[open.number].text; }

  // ---- After Run ----
  const SharedBlock& Output(const GcmPart& part, size_t lane) const;
  const SharedPowers& PowersOf(const GcmPart& part) const { return powers_[part.powers]; }
  // Locked memory of the powers that seals may keep beyond the batch; the cache's are not counted.
  size_t kept_bytes() const { return kept_bytes_; }
  // What is zero if and only if the part's own tag is right and, of an open, its zero block.
  void AppendCheck(const GcmOpen& open, SecretVector<SharedBlock>* out) const;
  void AppendCheck(const GcmVerify& mac, SecretVector<SharedBlock>* out) const;
  // The keystream of the open's text; and the text, once that keystream is opened.
  void AppendText(const GcmOpen& open, SecretVector<SharedBlock>* out) const;
  static SecretBytes TextOf(const GcmOpen& open, absl::Span<const Block> opened);

 private:
  struct PowersNeed {
    GcmKeyUse key;
    size_t count = 0;
    bool for_seal = false;  // the tag is made after the batch
    size_t for_tags = 0;    // of them, those of tags that are made and not judged
    bool cached() const { return key.info->key_class == KeyClass::kTgs; }
  };

  // A part as a garbled run takes it: before Run.
  struct Part {
    const GcmPart* part;
    Nonce nonce;
    const GcmOpen* open = nullptr;
    const GcmVerify* verify = nullptr;
  };

  void AddLanes(GcmPart& part, const Nonce& nonce, size_t count);
  void NeedPowers(GcmPart& part, size_t count);
  void AddMac(GcmMac& mac);
  std::vector<size_t> RequestMissingPowers(SecretVector<GhashPowersRequest>* requests);
  void KeepPowers(const std::vector<absl::Span<const SharedBlock>>& spans,
                  std::shared_ptr<const SecretVector<SharedBlock>> all,
                  const std::vector<size_t>& missing);
  GarbledGcmPart GarbledPartOf(const Part& part) const;
  std::vector<size_t> MissingForTags(SecretVector<GarbledPowers>* wanted);
  SharedBlock TagDifference(const GcmPart& part, absl::string_view aad,
                            absl::string_view ciphertext, const Tag& tag) const;

  AesBatch& blocks_;
  PowersCache& cache_;
  std::vector<AesLane> lanes128_, lanes256_;
  std::vector<Part> parts_;
  // By garbled circuits.
  SecretVector<GarbledGcmPart> garbled_;
  SecretVector<GarbledPowers> garbled_powers_;
  std::vector<size_t> missing_powers_;
  std::optional<GarbledGcm> garbled_circuits_;
  // In the order of their first use, which is the same at the three.
  std::vector<PowersNeed> needs_;
  absl::flat_hash_map<std::pair<Handle, uint32_t>, uint32_t> need_of_;
  std::vector<SharedPowers> powers_;  // of needs_, after Run
  size_t kept_bytes_ = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_GCM_WORK_H_
