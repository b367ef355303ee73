// SPDX-License-Identifier: Apache-2.0
//
// One round in which every party tells both neighbours the hash of what it believes was agreed. It
// is merged with the batch's first round, so it costs 32 bytes and no time. A party that told its
// neighbours different things, or a neighbour with other facts about a key, ends the session here,
// after one round of masked values and before any second one. (What garblers send in it, and ahead
// of it, is not masked: their keys follow from the view, see DrawNeighbourKeys().) The votes have
// shown already that the records of the keys are the same (record_tags.h), so this is a deviation.
#ifndef MPC_SERVER_AGREE_CONFIRM_VIEW_H_
#define MPC_SERVER_AGREE_CONFIRM_VIEW_H_

#include <algorithm>
#include <string>

#include "mpc-server/job/digest.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/deviation.h"

namespace mpckdc {

class ConfirmView : public Circuit {
 public:
  ConfirmView(int party, const Digest& view) : party_(party), view_(view) {}

  bool Done() const override { return done_; }
  RoundShape NextRound() const override { return {view_.size(), view_.size(), "confirm"}; }
  void Produce(ZeroShares&, RoundOut out) override {
    std::copy(view_.begin(), view_.end(), out.to_next.begin());
    std::copy(view_.begin(), view_.end(), out.to_prev.begin());
  }
  absl::Status Consume(RoundIn in) override {
    done_ = true;
    if (!Same(in.from_prev)) return Differs("previous");
    if (!Same(in.from_next)) return Differs("next");
    return absl::OkStatus();
  }
  Cost DeclaredCost() const override { return {1, view_.size(), view_.size()}; }

 private:
  bool Same(absl::Span<const uint8_t> other) const {
    return std::equal(view_.begin(), view_.end(), other.begin(), other.end());
  }
  // It lies, or the other neighbour told it another story.
  absl::Status Differs(const char* neighbour) const {
    return Deviation(Suspects::Neighbours(party_),
                     std::string("agreement: the ") + neighbour +
                         " party believes in another batch than this server");
  }

  const int party_;
  const Digest view_;
  bool done_ = false;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_CONFIRM_VIEW_H_
