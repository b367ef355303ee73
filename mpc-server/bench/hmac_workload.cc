// SPDX-License-Identifier: Apache-2.0
// A lane is the HMAC of a message under states of its own. Messages begin with their lane and batch
// (InputOf) added to the text that all have in common.
#include "mpc-server/bench/workload.h"
#include "mpc-server/compute/cts_work.h"
#include "mpc-server/key/usage_keys.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc::bench {
namespace {

constexpr size_t kKeyBytes = 32;

Adder AdderOf(const BenchSetup& s) { return s.adder.value_or(CtsWork::AdderOf(s.hash, s.lanes)); }
// SHA-384's fourth block of state is no part of the digest.
size_t DigestBlocks(HashKind hash) { return (HashDigestBytes(hash) + 15) / 16; }
Bytes Text(const BenchSetup& s) { return Draw(s, Stream::kText, 0, s.message_bytes); }

class HmacTeam : public TeamWork {
 public:
  HmacTeam(const BenchSetup& s, int party, size_t first, size_t lanes)
      : setup_(s),
        first_(first),
        hmac_(s.hash, s.isa),
        states_(lanes * 2 * HashStateBlocks(s.hash)),
        lanes_(lanes) {
    PrepareHash(s.hash, AdderOf(s));
    const std::vector<Block> text = BlocksOf(Text(s));
    std::vector<std::vector<Block>> states;
    for (size_t i = 0; i < std::min(lanes, kDistinctKeys); ++i) {
      states.push_back(BlocksOf(*HmacStatesOf(s.hash, KeyOf(s, first + i, kKeyBytes))));
    }
    (s.shared_messages ? shared_.resize(lanes * text.size()) : public_.resize(lanes * text.size()));
    for (size_t j = 0; j < lanes; ++j) {
      SharedBlock* own = &states_[j * 2 * HashStateBlocks(s.hash)];
      ShareInto(s, party, 2 * (first + j), states[j % kDistinctKeys], own);
      lanes_[j].states = own;
      if (s.shared_messages) {
        lanes_[j].shared_message = &shared_[j * text.size()];
        lanes_[j].bytes = s.message_bytes;
        ShareInto(s, party, 2 * (first + j) + 1, text, &shared_[j * text.size()]);
      } else {
        std::copy(text.begin(), text.end(), &public_[j * text.size()]);
        lanes_[j].public_message = absl::MakeConstSpan(public_[j * text.size()].data(),
                                                       s.message_bytes);
      }
    }
  }

  absl::Status Run(Rings& rings, uint32_t batch, Cost* cost) override {
    rings.BeginBatch(batch);
    for (size_t j = 0; j < lanes_.size(); ++j) SetBatch(j, batch);
    batch_ = batch;
    hmac_.Reset(lanes_, AdderOf(setup_));
    absl::Status s = RunTogether(rings.first(), {&hmac_}, cost);
    if (s.ok()) s = rings.Verify(cost);
    digests_.clear();
    for (size_t j = 0; s.ok() && j < lanes_.size(); ++j) {
      const auto digest = hmac_.digest(j).first(DigestBlocks(setup_.hash));
      digests_.insert(digests_.end(), digest.begin(), digest.end());
    }
    return s;
  }
  absl::Span<const SharedBlock> outputs() const override { return digests_; }
  size_t key_bytes() const override {
    return (states_.size() + shared_.size()) * sizeof(SharedBlock) +
           public_.size() * sizeof(Block) + lanes_.size() * sizeof(HmacLane);
  }

 private:
  // Batches differ by public bits, which a share takes into its a.
  void SetBatch(size_t j, uint32_t batch) {
    const Block before = batch_ == 0 ? Block{} : InputOf(first_ + j, batch_);
    const Block change = XorBlocks(before, InputOf(first_ + j, batch));
    if (setup_.shared_messages) {
      SharedBlock& begin = shared_[j * (shared_.size() / lanes_.size())];
      begin = AddPublic(begin, change);
    } else {
      Block& begin = public_[j * (public_.size() / lanes_.size())];
      begin = XorBlocks(begin, change);
    }
  }

  const BenchSetup setup_;
  const size_t first_;
  Hmac hmac_;
  SecretVector<SharedBlock> states_, shared_, digests_;
  std::vector<Block> public_;
  std::vector<HmacLane> lanes_;
  uint32_t batch_ = 0;  // whose numbers are in the messages
};

bool IsRight(const BenchSetup& s, size_t lane, uint32_t batch, absl::Span<const Block> outputs) {
  Bytes text = Text(s);
  const Block begin = InputOf(lane, batch);
  for (size_t i = 0; i < begin.size(); ++i) text[i] ^= begin[i];
  const Bytes digest = PlainHmac(s.hash, KeyOf(s, lane, kKeyBytes), text);
  return outputs == absl::MakeConstSpan(BlocksOf(digest));
}

}  // namespace

Workload HmacWorkload(const BenchSetup& s) {
  return {
      .outputs_per_lane = DigestBlocks(s.hash),
      .declared =
          [s](size_t lanes) {
            const std::vector<HmacShape> shapes(lanes, {s.message_bytes, s.shared_messages});
            DeclaredSends sends;
            sends.Add(s, CostOfHmac(s.hash, AdderOf(s), shapes), 0);
            return sends;
          },
      .make_team = [s](int party, size_t first,
                       size_t lanes) { return std::make_unique<HmacTeam>(s, party, first, lanes); },
      .is_right =
          [s](size_t lane, uint32_t batch, absl::Span<const Block> outputs) {
            return IsRight(s, lane, batch, outputs);
          }};
}

}  // namespace mpckdc::bench
