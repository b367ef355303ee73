// SPDX-License-Identifier: Apache-2.0
//
// The computation of one batch of jobs on shares. Its structure (lanes, rounds, message lengths)
// follows from the agreed jobs alone and is the same at the three servers; what each server thinks
// of the results is judge.h.
//
//   ComputeBlocks   all AES blocks of all jobs, 128- and 256-bit lanes side by side, and the
//                   powers of H of every key that needs a tag   (40 or 56 rounds; 30 or 42 in
//                   a batch of few blocks); beside them the parts of enctypes 17 to 20
//                   (cts_work.h), which take many more rounds
//   CheckTags       tags and zero blocks of opens, tags of verify_macs    (2 rounds, if any)
//   OpenTimestamps  plaintexts of the pre-auth messages whose tag is good  (1 round, if any)
//
// Lanes of a part under a gcm key are consecutive in the circuit of its key's size:
//
//   open, seal:            J0 (masks the tag) | counter 2 (zero block) | counter 3 | ...
//   make_mac, verify_mac:  J0
#ifndef MPC_SERVER_COMPUTE_BATCH_WORK_H_
#define MPC_SERVER_COMPUTE_BATCH_WORK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes_batch.h"
#include "mpc-server/circuit/ghash.h"
#include "mpc-server/compute/cts_work.h"
#include "mpc-server/job/message_format.h"
#include "mpc-server/job/received_job.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/store/key_record.h"

namespace mpckdc {

// A part's key, in the record that the batch keeps.
struct KeyUse {
  const KeyInfo* info = nullptr;
  const UsageKey* key = nullptr;
  uint32_t powers = 0;  // BatchWork's: which of its powers of H are this key's

  AesBits bits() const;
  const Enctype& enctype() const { return *FindEnctype(info->enctype); }
  bool is_gcm() const { return enctype().is_gcm(); }
};

struct Lanes {
  AesBits bits = AesBits::k128;
  size_t first = 0;
  size_t count = 0;
};

struct OpenWork {
  KeyUse key;
  MessageView message;    // into the job; of gcm
  CtsMessageView cts;     // into the job; of 17 to 20
  bool is_preauth = false;
  Lanes lanes{};
  CtsWork::Part part = 0;
  bool good = false;                      // after CheckTags: tag and zero block
  std::optional<SecretBytes> plaintext{};  // after OpenTimestamps, of a good pre-auth

  size_t PlaintextBytes() const {
    return key.is_gcm() ? message.PlaintextBytes() : cts.PlaintextBytes();
  }
  // No two messages of a client's have it in common: the nonce, or as much of the HMAC, which covers
  // a random confounder.
  Nonce ReplayId() const;
};
struct SealWork {
  KeyUse key;
  Nonce nonce{};
  std::string header;
  uint32_t max_plaintext = 0;
  absl::Span<const uint8_t> text_share{};  // of 17 to 20
  Lanes lanes{};
  CtsWork::Part part = 0;
};
struct MakeMacWork {
  KeyUse key;
  Nonce nonce{};
  absl::string_view data;
  Lanes lanes{};
  CtsWork::Part part = 0;
};
struct VerifyMacWork {
  KeyUse key;
  ChecksumView checksum;  // of gcm
  absl::string_view mac;  // of 17 to 20
  absl::string_view data;
  Lanes lanes{};
  CtsWork::Part part = 0;
  bool good = false;
};

struct JobWork {
  const ReceivedJob* received = nullptr;  // the caller's
  const KeyInfo* client = nullptr;
  std::vector<OpenWork> opens;
  std::vector<SealWork> seals;
  std::vector<MakeMacWork> make_macs;
  std::vector<VerifyMacWork> verify_macs;
};

// Powers of H that outlive a batch: those of krbtgt keys, which every login uses. Lives as long as
// the session between the servers, so that the three have the same ones.
class PowersCache {
 public:
  // nullptr unless at least `count` powers of this very share of H are kept.
  const SharedPowers* Find(const Handle& handle, uint32_t usage, const SharedBlock& h,
                           size_t count) const;
  const SharedPowers& Put(const Handle& handle, uint32_t usage, const SharedBlock& h,
                          absl::Span<const SharedBlock> powers);

 private:
  struct Entry {
    Secret<SharedBlock> h;
    SharedPowers powers;
  };
  absl::flat_hash_map<std::pair<Handle, uint32_t>, Entry> entries_;
};

inline constexpr AesCut kBatchCut = {limits::kPartBlocks, limits::kPartsUnderWay,
                                     limits::kRingBlocks};

// How a batch is computed, where its size is not to decide it: mpc-bench compares them. The same at
// the three servers.
struct FixedChoices {
  std::optional<Sbox> sbox;
  std::optional<Adder> adder;
};

class BatchWork {
 public:
  // `rings`, `blocks`, `cache`, `circuits` and `work` are the caller's.
  BatchWork(Rings& rings, AesBatch& blocks, PowersCache& cache, CtsCircuits& circuits,
            std::vector<JobWork>& work, const FixedChoices& fixed = {});

  // `first` is run together with the blocks (ConfirmView).
  absl::Status ComputeBlocks(Circuit& first);
  absl::Status CheckTags();
  absl::Status OpenTimestamps();

  // After ComputeBlocks. The share of a part's i-th lane.
  const SharedBlock& Output(const Lanes& lanes, size_t i) const;
  // The parts of enctypes 17 to 20.
  const CtsWork& cts() const { return cts_; }
  const SharedPowers& PowersOf(const KeyUse& key) const { return powers_[key.powers]; }

  uint64_t aes_blocks() const { return lanes128_.size() + lanes256_.size(); }
  const Cost& cost() const { return cost_; }
  // How the S-boxes of a batch of so many blocks are computed; the same at the three servers.
  static Sbox SboxOf(size_t blocks);

 private:
  struct PowersNeed {
    KeyUse key;
    size_t count = 0;
    bool cached() const { return key.info->key_class == KeyClass::kTgs; }
  };

  void Plan();
  Lanes AddLanes(const KeyUse& key, const Nonce& nonce, size_t count);
  void NeedPowers(KeyUse& key, size_t count);
  std::vector<size_t> RequestMissingPowers(SecretVector<GhashPowersRequest>* requests);
  void KeepPowers(GhashPowers& circuit, const std::vector<size_t>& missing);
  void PlanCts(JobWork& job);
  void AppendOpenCheck(const OpenWork& open, SecretVector<SharedBlock>* out) const;
  void AppendMacCheck(const VerifyMacWork& mac, SecretVector<SharedBlock>* out) const;
  void AppendCtsCheck(CtsWork::Part part, absl::string_view mac,
                      SecretVector<SharedBlock>* out) const;
  void AppendTimestamp(const OpenWork& open, SecretVector<SharedBlock>* out) const;
  SharedBlock TagDifference(const KeyUse& key, const Lanes& lanes, absl::string_view aad,
                            absl::string_view ciphertext, const Tag& tag) const;

  Rings& rings_;
  PartyContext& party_;  // ring 0
  AesBatch& blocks_;
  PowersCache& cache_;
  CtsWork cts_;
  std::vector<JobWork>& work_;
  const FixedChoices fixed_;
  std::vector<AesLane> lanes128_, lanes256_;
  // In the order of their first use, which is the same at the three.
  std::vector<PowersNeed> needs_;
  absl::flat_hash_map<std::pair<Handle, uint32_t>, uint32_t> need_of_;
  std::vector<SharedPowers> powers_;  // of needs_, after ComputeBlocks
  Cost cost_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_BATCH_WORK_H_
