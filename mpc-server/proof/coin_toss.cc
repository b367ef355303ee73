// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/coin_toss.h"

#include <algorithm>
#include <cassert>

#include "absl/strings/str_cat.h"
#include "mpc-server/proof/transcript.h"
#include "mpc-server/share/deviation.h"

namespace mpckdc::proof {
namespace {

std::array<uint8_t, 16> SessionId(absl::Span<const uint8_t> id) {
  std::array<uint8_t, 16> out{};
  assert(id.size() == out.size());
  std::copy(id.begin(), id.end(), out.begin());
  return out;
}

}  // namespace

CoinToss::CoinToss(int party, absl::Span<const uint8_t> session_id, RandomSource& random)
    : party_(party), session_id_(SessionId(session_id)), random_(random) {
  DrawNext();
}

Digest CoinToss::CommitmentTo(int party, uint64_t number, absl::Span<const uint8_t> secret) const {
  return Transcript("mpc-kdc coin commitment")
      .Add(session_id_)
      .Add(static_cast<uint64_t>(party))
      .Add(number)
      .Add(secret)
      .Hash();
}

void CoinToss::DrawNext() { random_.Fill(absl::MakeSpan(next_.Get())); }

void CoinToss::Commit(absl::Span<uint8_t> out) const {
  const Digest own = CommitmentTo(party_, number_, next_.Get());
  std::copy(own.begin(), own.end(), out.begin());
}

void CoinToss::TakeCommitments(absl::Span<const uint8_t> from_prev,
                               absl::Span<const uint8_t> from_next) {
  commitments_[party_] = CommitmentTo(party_, number_, next_.Get());
  std::copy(from_prev.begin(), from_prev.end(), commitments_[PrevParty(party_)].begin());
  std::copy(from_next.begin(), from_next.end(), commitments_[NextParty(party_)].begin());
  committed_ = true;
}

void CoinToss::Reveal(absl::Span<uint8_t> out) {
  assert(committed_ && out.size() == kRevealBytes);
  revealed_ = next_.Get();
  DrawNext();
  const Digest next = CommitmentTo(party_, number_ + 1, next_.Get());
  std::copy(revealed_.begin(), revealed_.end(), out.begin());
  std::copy(next.begin(), next.end(), out.begin() + sizeof(Coin));
}

absl::StatusOr<Coin> CoinToss::TakeReveals(absl::Span<const uint8_t> from_prev,
                                           absl::Span<const uint8_t> from_next) {
  Transcript coin("mpc-kdc coin"), log("mpc-kdc coins");
  coin.Add(session_id_).Add(number_);
  log.Add(transcript_);
  std::array<Digest, kParties> next;
  for (int p = 0; p < kParties; ++p) {
    const auto said = p == PrevParty(party_) ? from_prev : from_next;
    const auto secret = p == party_ ? absl::MakeConstSpan(revealed_) : said.first(sizeof(Coin));
    if (CommitmentTo(p, number_, secret) != commitments_[p]) {
      return Deviation(Suspects::One(p), absl::StrCat("P", p, " revealed another secret for coin ",
                                                      number_, " than it had committed to"));
    }
    if (p == party_) {
      next[p] = CommitmentTo(p, number_ + 1, next_.Get());
    } else {
      std::copy_n(said.begin() + sizeof(Coin), sizeof(Digest), next[p].begin());
    }
    coin.Add(secret);
    log.Add(commitments_[p]).Add(secret).Add(next[p]);
  }
  commitments_ = next;
  transcript_ = log.Hash();
  ++number_;
  return coin.Hash();
}

}  // namespace mpckdc::proof
