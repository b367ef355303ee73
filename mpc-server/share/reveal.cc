// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/reveal.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "mpc-server/share/deviation.h"

namespace mpckdc {

void OpenToServers::Reset(absl::Span<const SharedBlock> values) {
  shares_ = values;
  opened_.assign(values.size(), Block{});
  done_ = values.empty();
}

RoundShape OpenToServers::NextRound() const {
  return {sizeof(Block) * shares_.size(), sizeof(Block) * shares_.size(), what_};
}

void OpenToServers::Produce(ZeroShares&, RoundOut out) {
  for (size_t i = 0; i < shares_.size(); ++i) {
    std::memcpy(out.to_next.data() + sizeof(Block) * i, shares_[i].x.data(), sizeof(Block));
    std::memcpy(out.to_prev.data() + sizeof(Block) * i, shares_[i].a.data(), sizeof(Block));
  }
}

absl::Status OpenToServers::Consume(RoundIn in) {
  for (size_t i = 0; i < shares_.size(); ++i) {
    Block x_prev, a_next;
    std::memcpy(x_prev.data(), in.from_prev.data() + sizeof(Block) * i, sizeof(Block));
    std::memcpy(a_next.data(), in.from_next.data() + sizeof(Block) * i, sizeof(Block));
    opened_[i] = XorBlocks(x_prev, shares_[i].a);
    const Block from_next = XorBlocks(a_next, shares_[i].x);
    Declassify(opened_[i].data(), sizeof(Block));
    Declassify(from_next.data(), sizeof(Block));
    if (!ConstantTimeEqual(opened_[i], from_next)) {
      return Deviation(
          Suspects::Neighbours(party_),
          absl::StrCat("opening \"", what_, "\": what prev (P", PrevParty(party_), ") and next (P",
                       NextParty(party_), ") sent does not agree, value ", i, " of ",
                       shares_.size(),
                       ": one of these two servers, or an earlier round of theirs, is wrong"));
    }
  }
  done_ = true;
  return absl::OkStatus();
}

Cost OpenToServers::DeclaredCost() const {
  const uint64_t bytes = sizeof(Block) * shares_.size();
  return {shares_.empty() ? 0u : 1u, bytes, bytes};
}

}  // namespace mpckdc
