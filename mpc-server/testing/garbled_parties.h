// SPDX-License-Identifier: Apache-2.0
// A garbled run of three parties in one thread, round by round, and what each ends with. Whoever
// deviates does it to a message on its way.
#ifndef MPC_SERVER_TESTING_GARBLED_PARTIES_H_
#define MPC_SERVER_TESTING_GARBLED_PARTIES_H_

#include <array>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "mpc-server/garble/garbled_run.h"
#include "mpc-server/share/session.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc::garble {

// Rows of bytes' bits, the lowest one first, of lanes that lie behind each other; and back.
inline std::vector<uint8_t> ToRows(absl::Span<const uint8_t> bytes, size_t lanes) {
  const size_t each = bytes.size() / lanes;
  std::vector<uint8_t> rows(8 * bytes.size());
  for (size_t lane = 0; lane < lanes; ++lane) {
    for (size_t i = 0; i < 8 * each; ++i) {
      rows[i * lanes + lane] = bytes[lane * each + i / 8] >> i % 8 & 1;
    }
  }
  return rows;
}
inline std::vector<uint8_t> ToBytes(absl::Span<const uint8_t> rows, size_t lanes) {
  const size_t each = rows.size() / lanes / 8;
  std::vector<uint8_t> bytes(each * lanes);
  for (size_t lane = 0; lane < lanes; ++lane) {
    for (size_t i = 0; i < 8 * each; ++i) {
      bytes[lane * each + i / 8] |= static_cast<uint8_t>(rows[i * lanes + lane] << i % 8);
    }
  }
  return bytes;
}

class GarbledParties {
 public:
  // Of all messages: from, to, round.
  using Alter = std::function<void(int, int, size_t, std::vector<uint8_t>&)>;
  // Of what a party holds of the inputs.
  using Hold = std::function<void(int, SharedBits&)>;

  // `inputs`: bits [row][lane]. `alone`: only this party is there, as it would be among all.
  GarbledParties(const RunInput& input, const std::vector<uint8_t>& inputs, uint64_t seed,
                 int evaluator, const Hold& hold = nullptr, const Pace& pace = {}, int alone = -1)
      : random_(seed) {
    std::array<std::vector<uint8_t>, kParties> components;
    for (auto& c : components) c.resize(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      components[0][i] = random_() & 1;
      components[1][i] = random_() & 1;
      components[2][i] = inputs[i] ^ components[0][i] ^ components[1][i];
    }
    std::array<std::array<RunKey, 2>, kParties> keys;
    for (auto& pair : keys) {
      for (RunKey& key : pair) {
        for (uint8_t& b : key) b = static_cast<uint8_t>(random_());
      }
    }
    MarkSecret(keys.data(), sizeof(keys));
    for (int p = 0; p < kParties; ++p) {
      if (alone >= 0 && p != alone) continue;
      const auto& own = components[p];
      const auto& left = components[PrevParty(p)];
      SharedBits share = {{own.begin(), own.end()}, {left.begin(), left.end()}};
      if (hold) hold(p, share);
      MarkSecret(share.own.data(), share.own.size());
      MarkSecret(share.left.data(), share.left.size());
      runs_[p] = std::make_unique<GarbledRun>(p, evaluator,
                                              Secret<NeighbourKeys>({keys[p], keys[NextParty(p)]}),
                                              input, std::move(share), pace);
    }
  }

  // The parties' ends: a round is everybody's, and the first that has an error is the last.
  std::array<absl::Status, kParties> Run(const Alter& alter = nullptr) {
    std::array<absl::Status, kParties> ends;
    for (size_t round = 0; !runs_[0]->Done(); ++round) {
      std::array<std::vector<uint8_t>, kParties> to_next, to_prev;
      for (int p = 0; p < kParties; ++p) {
        const RoundShape shape = runs_[p]->NextRound();
        EXPECT_EQ(shape.opened(), 0u);
        EXPECT_EQ(shape.to_prove(), 0u);
        to_next[p].resize(shape.to_next);
        to_prev[p].resize(shape.to_prev);
        cost_[p] = cost_[p] + Cost{1, shape.to_next, shape.to_prev};
        ZeroShares none = NoZeros();
        runs_[p]->Produce(none, {absl::MakeSpan(to_next[p]), absl::MakeSpan(to_prev[p])});
        if (mark) MarkSecret(to_next[p].data(), to_next[p].size());
        if (mark) MarkSecret(to_prev[p].data(), to_prev[p].size());
      }
      for (int p = 0; alter && p < kParties; ++p) {
        alter(p, NextParty(p), round, to_next[p]);
        alter(p, PrevParty(p), round, to_prev[p]);
      }
      bool all = true;
      for (int p = 0; p < kParties; ++p) {
        const RoundShape shape = runs_[p]->ConsumedRound();
        const auto &from_prev = to_next[PrevParty(p)], &from_next = to_prev[NextParty(p)];
        EXPECT_EQ(shape.from_prev(), from_prev.size());
        EXPECT_EQ(shape.from_next(), from_next.size());
        ends[p] = runs_[p]->Consume({from_prev, from_next});
        all = all && ends[p].ok();
      }
      if (!all) break;
    }
    return ends;
  }

  // For valgrind memcheck: what arrives is secret too.
  bool mark = false;

  GarbledRun& run(int party) { return *runs_[party]; }
  static ZeroShares NoZeros() {
    static PairwiseStreams streams(0, PairwiseSeeds());
    return ZeroShares(streams, 1, 0, nullptr);
  }
  const Cost& cost(int party) const { return cost_[party]; }
  // Joined; that each component's holders agree is checked.
  std::vector<uint8_t> Outputs() const {
    std::vector<uint8_t> bits(runs_[0]->outputs().own.size());
    for (int p = 0; p < kParties; ++p) {
      EXPECT_EQ(runs_[p]->outputs().own, runs_[NextParty(p)]->outputs().left);
      for (size_t i = 0; i < bits.size(); ++i) bits[i] ^= runs_[p]->outputs().own[i];
    }
    return bits;
  }
  std::vector<uint8_t> Shown() const {
    for (int p = 1; p < kParties; ++p) EXPECT_EQ(runs_[p]->shown(), runs_[0]->shown());
    return {runs_[0]->shown().begin(), runs_[0]->shown().end()};
  }

 private:
  std::mt19937_64 random_;
  std::array<std::unique_ptr<GarbledRun>, kParties> runs_;
  std::array<Cost, kParties> cost_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_TESTING_GARBLED_PARTIES_H_
