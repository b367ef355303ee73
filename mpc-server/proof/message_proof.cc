// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/message_proof.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/proof/transcript.h"
#include "mpc-server/share/deviation.h"

namespace mpckdc::proof {
namespace {

constexpr size_t kVerdictBytes = 1 + sizeof(Digest);
constexpr uint8_t kGood = 1;

template <class T>
absl::Span<uint8_t> BytesOf(SecretVector<T>& elements) {
  return {reinterpret_cast<uint8_t*>(elements.data()), elements.size() * sizeof(T)};
}

template <class T>
absl::Span<uint8_t> BytesOf(T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<uint8_t*>(&value), sizeof(value)};
}

void XorInto(absl::Span<uint8_t> out, const uint8_t* with) {
  for (size_t i = 0; i < out.size(); ++i) out[i] ^= with[i];
}

}  // namespace

MessageProof::MessageProof(PartyContext& party, CoinToss& coins, Isa isa)
    : party_(party),
      coins_(coins),
      level1_(AllLevel1Kernels().For(isa)),
      prover_(level1_),
      as_left_(Role::kOwn, level1_),
      as_right_(Role::kLeft, level1_) {}

void MessageProof::Reset(const ProofLog& log, const Digest& context, uint32_t number) {
  context_ = context;
  number_ = number;
  stream_position_ = 0;
  statement_.emplace(log);
  commits_ = !coins_.committed();
  step_ = commits_ ? Step::kCommit : Step::kWeights;
  good_ = false;
}

RoundShape MessageProof::NextRound() const { return ShapeOf(step_); }

RoundShape MessageProof::ShapeOf(Step step) const {
  const size_t to_left = (1 + statement_->Challenges()) * sizeof(Digest);
  switch (step) {
    case Step::kCommit:
      return {CoinToss::kCommitBytes, CoinToss::kCommitBytes, "proof/commit"};
    case Step::kWeights:
      return {CoinToss::kRevealBytes, CoinToss::kRevealBytes, "proof/weights"};
    case Step::kSums:
      return {statement_->FirstSums() * sizeof(K), 0, "proof/sums"};
    case Step::kPoint:
      return {CoinToss::kRevealBytes, CoinToss::kRevealBytes, "proof/point"};
    case Step::kLevels:
      return {statement_->LaterBytes(), to_left, "proof/levels"};
    case Step::kEnd:
      return {0, sizeof(End), "proof/end"};
    case Step::kVerdict:
      return {kVerdictBytes, kVerdictBytes, "proof/verdict"};
    case Step::kDone:
      break;
  }
  return {};
}

Cost MessageProof::DeclaredCost() const {
  Cost cost;
  for (int s = static_cast<int>(commits_ ? Step::kCommit : Step::kWeights);
       s < static_cast<int>(Step::kDone); ++s) {
    const RoundShape shape = ShapeOf(static_cast<Step>(s));
    cost = cost + Cost{1, shape.to_next, shape.to_prev};
  }
  return cost;
}

void MessageProof::Stream(absl::Span<uint8_t> own, absl::Span<uint8_t> next) {
  party_.streams().FillProof({party_.batch(), number_, stream_position_}, own, next);
  stream_position_ += static_cast<uint32_t>((own.size() + 15) / 16);
}

ChallengeChain MessageProof::ChainOf(int prover) const {
  return ChallengeChain(Transcript("mpc-kdc proof")
                            .Add(party_.session_id())
                            .Add(party_.batch())
                            .Add(number_)
                            .Add(context_)
                            .Add(coins_.transcript())
                            .Add(static_cast<uint64_t>(prover))
                            .Hash());
}

void MessageProof::Produce(ZeroShares&, RoundOut out) {
  switch (step_) {
    case Step::kCommit:
      coins_.Commit(out.to_next);
      coins_.Commit(out.to_prev);
      return;
    case Step::kWeights:
    case Step::kPoint:
      coins_.Reveal(out.to_next);
      std::copy(out.to_next.begin(), out.to_next.end(), out.to_prev.begin());
      return;
    case Step::kSums:
      return ProduceSums(out.to_next);
    case Step::kLevels:
      return ProduceLevels(out);
    case Step::kEnd: {
      const End end = {as_left_.u(), as_left_.v(), as_left_.claim(),
                       seen_[NextParty(party_.party())]};
      std::memcpy(out.to_prev.data(), &end, sizeof(end));
      return;
    }
    case Step::kVerdict:
      return ProduceVerdict(out);
    case Step::kDone:
      return;
  }
}

absl::Status MessageProof::Consume(RoundIn in) {
  switch (step_) {
    case Step::kCommit:
      coins_.TakeCommitments(in.from_prev, in.from_next);
      break;
    case Step::kWeights: {
      ASSIGN_OR_RETURN(const Coin coin, coins_.TakeReveals(in.from_prev, in.from_next));
      DrawWeights(coin);
      break;
    }
    case Step::kSums:
      as_right_.sums().resize(statement_->FirstSums());
      if (!in.from_prev.empty()) {
        std::memcpy(as_right_.sums().data(), in.from_prev.data(), in.from_prev.size());
      }
      break;
    case Step::kPoint: {
      ASSIGN_OR_RETURN(const Coin coin, coins_.TakeReveals(in.from_prev, in.from_next));
      DrawPoint(coin);
      break;
    }
    case Step::kLevels:
      RETURN_IF_ERROR(ConsumeLevels(in));
      break;
    case Step::kEnd:
      ConsumeEnd(in.from_next);
      break;
    case Step::kVerdict:
      RETURN_IF_ERROR(ConsumeVerdicts(in));
      break;
    case Step::kDone:
      break;
  }
  step_ = static_cast<Step>(static_cast<int>(step_) + 1);
  return absl::OkStatus();
}

void MessageProof::DrawWeights(const Coin& coin) {
  statement_->DrawWeights(coin);
  SecretVector<WideK> points(kSumPoints), own(kProofNodes), left(kProofNodes);
  for (const SectionGroup& group : statement_->groups()) {
    level1_.Sums(group.all(), statement_->betas(group), /*corners=*/false,
                 {points.data(), {own.data(), left.data()}});
  }
  sums_.resize(kSumPoints);
  for (size_t p = 0; p < kSumPoints; ++p) sums_[p] = Reduce(points[p]);
  as_left_.Start(*statement_, own);
  as_right_.Start(*statement_, left);
}

// The values at the points that are no nodes; R's share is what the stream is not.
void MessageProof::ProduceSums(absl::Span<uint8_t> out) {
  SecretVector<K> mine(statement_->FirstSums());
  as_left_.sums().resize(statement_->FirstSums());
  Stream(BytesOf(mine), BytesOf(as_left_.sums()));
  for (size_t p = 0, at = 0; at < mine.size(); ++p) {
    if (!IsNode(kNodeVariables, p)) mine[at++] += sums_[p];
  }
  if (!out.empty()) std::memcpy(out.data(), mine.data(), out.size());
}

void MessageProof::DrawPoint(const Coin& coin) {
  statement_->DrawPoint(coin);
  if (statement_->has_bits()) prover_.FoldNodes(*statement_);
}

// Streams under k_i are known to L, those under k_{i+1} to R: of each a mask's half.
void MessageProof::DrawMasks() {
  AllMasks& m = masks_.Get();
  Stream(BytesOf(m.left_own), BytesOf(m.left_next));
  Stream(BytesOf(m.right_own), BytesOf(m.right_next));
  as_left_.SetMask(m.left_next.u, m.left_next.v);
  as_right_.SetMask(m.right_own.u, m.right_own.v);
}

void MessageProof::ProduceLevels(RoundOut out) {
  DrawMasks();
  SecretBytes mine(statement_->LaterBytes());
  as_left_.later().resize(mine.size());
  Stream(absl::MakeSpan(mine), absl::MakeSpan(as_left_.later()));
  if (!mine.empty()) std::memcpy(out.to_next.data(), mine.data(), mine.size());

  chain_.emplace(ChainOf(party_.party()));
  std::copy(chain_->state().begin(), chain_->state().end(), out.to_prev.begin());
  out.to_prev.remove_prefix(sizeof(Digest));
  std::vector<F> drawn;
  ProductChallenges products;
  if (statement_->has_bits()) {
    SecretVector<K> sums(statement_->ProductSums());
    prover_.ProductSums(*statement_, sums.data());
    ProduceLevel(reinterpret_cast<const uint8_t*>(sums.data()), sums.size() * sizeof(K), out);
    drawn = chain_->Draw(statement_->ProductDraws());
    products = ProductChallenges(drawn);
  }
  prover_.FoldProducts(*statement_, products);
  const AllMasks& m = masks_.Get();
  prover_.dot().SetMask(m.left_own.u + m.right_next.u, m.left_own.v + m.right_next.v);
  for (const DotLevel& level : statement_->levels()) {
    SecretVector<F> sums(level.points() - 1);
    prover_.dot().Values(sums.data());
    ProduceLevel(reinterpret_cast<const uint8_t*>(sums.data()), sums.size() * sizeof(F), out);
    prover_.dot().Fold(absl::MakeConstSpan(chain_->Draw(level.variables)));
  }
  seen_[party_.party()] = chain_->state();
}

// R's share of one level behind those before it, and its hash for L.
void MessageProof::ProduceLevel(const uint8_t* sums, size_t size, RoundOut& out) {
  const absl::Span<uint8_t> share = out.to_next.first(size);
  XorInto(share, sums);
  const Digest hash = ChallengeChain::HashOf(masks_.Get().right_next.salt, share);
  Declassify(hash.data(), hash.size());  // it leaves for L
  std::copy(hash.begin(), hash.end(), out.to_prev.begin());
  chain_->Absorb(hash);
  out.to_next.remove_prefix(size);
  out.to_prev.remove_prefix(sizeof(hash));
}

// As R of the previous one's proof: its shares. As L of the next one's: hashes of what its R got,
// if the two have the same coins: with others L's shares at the end would be masked by nothing.
absl::Status MessageProof::ConsumeLevels(RoundIn in) {
  as_right_.later().assign(in.from_prev.begin(), in.from_prev.end());
  ChallengeChain left = ChainOf(NextParty(party_.party()));
  if (!ConstantTimeEqual(in.from_next.first(sizeof(Digest)), left.state())) {
    return Deviation(Suspects::Neighbours(party_.party()),
                     absl::StrCat("P", NextParty(party_.party()),
                                  " proves under other coins than this server has"));
  }
  in.from_next.remove_prefix(sizeof(Digest));
  ChallengeChain right = ChainOf(PrevParty(party_.party()));
  std::vector<std::vector<F>> left_challenges, right_challenges;
  const auto take = [&](size_t bytes, size_t variables) {
    right.Absorb(ChallengeChain::HashOf(masks_.Get().right_own.salt, in.from_prev.first(bytes)));
    in.from_prev.remove_prefix(bytes);
    Digest hash;
    std::copy_n(in.from_next.begin(), hash.size(), hash.begin());
    in.from_next.remove_prefix(hash.size());
    left.Absorb(hash);
    left_challenges.push_back(left.Draw(variables));
    right_challenges.push_back(right.Draw(variables));
  };
  if (statement_->has_bits()) {
    take(statement_->ProductSums() * sizeof(K), statement_->ProductDraws());
  }
  for (const DotLevel& level : statement_->levels()) {
    take((level.points() - 1) * sizeof(F), level.variables);
  }
  seen_[NextParty(party_.party())] = left.state();
  seen_[PrevParty(party_.party())] = right.state();
  as_left_.Finish(*statement_, left_challenges);
  as_right_.Finish(*statement_, right_challenges);
  return absl::OkStatus();
}

// Of the previous one's proof, whose L is the next one.
void MessageProof::ConsumeEnd(absl::Span<const uint8_t> from_next) {
  End end;
  std::memcpy(&end, from_next.data(), sizeof(end));
  const F product = (end.u + as_right_.u()) * (end.v + as_right_.v());
  const F error = product + end.claim + as_right_.claim();
  Declassify(&error, sizeof(error));  // the verdict says whether it is zero; a liar knows it
  good_ = error == F{} && end.seen == seen_[PrevParty(party_.party())];
}

// Coins, commitments, what was agreed on before, and the chains of the three proofs.
Digest MessageProof::WhatAllSaw() const {
  Transcript all("mpc-kdc proofs");
  all.Add(party_.session_id()).Add(party_.batch()).Add(number_).Add(context_);
  all.Add(coins_.transcript());
  for (const Digest& seen : seen_) all.Add(seen);
  return all.Hash();
}

void MessageProof::ProduceVerdict(RoundOut out) const {
  const Digest all = WhatAllSaw();
  out.to_next[0] = good_ ? kGood : 0;
  std::copy(all.begin(), all.end(), out.to_next.begin() + 1);
  std::copy(out.to_next.begin(), out.to_next.end(), out.to_prev.begin());
}

absl::Status MessageProof::Finding() const {
  if (step_ != Step::kVerdict || good_) return absl::OkStatus();
  const int me = party_.party();
  return Deviation(Suspects::Neighbours(me),
                   absl::StrCat("the proof of P", PrevParty(me), "'s messages, checked with P",
                                NextParty(me), "'s part, is wrong"));
}

absl::Status MessageProof::ConsumeVerdicts(RoundIn in) {
  const int me = party_.party();
  const Suspects both = Suspects::Neighbours(me);
  RETURN_IF_ERROR(Finding());
  const Digest all = WhatAllSaw();
  for (const int other : {PrevParty(me), NextParty(me)}) {
    const auto said = other == PrevParty(me) ? in.from_prev : in.from_next;
    if (!ConstantTimeEqual(said.subspan(1), all)) {
      return Deviation(both, absl::StrCat("P", other, " saw other coins or other proofs"));
    }
    if (said[0] != kGood) {
      return Deviation(both, absl::StrCat("P", other, " finds the proof of P", PrevParty(other),
                                          "'s messages wrong"));
    }
  }
  return absl::OkStatus();
}

}  // namespace mpckdc::proof
