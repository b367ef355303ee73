// SPDX-License-Identifier: Apache-2.0
// What the evaluator receives depends on nothing but what is shown: over many runs each bit of its
// view, and each sum of two labels' colours, is as often 1 for one secret as for another, and half
// of the time. What these tests cannot see is what only a break of the hash would show; that rests
// on the proof (doc/garbled.md).
//
// Built twice: as the servers are, and as a control whose labels' colours are their bits
// (MPCKDC_CONTROL, the mutant GarbledColours.patch).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/garble/check_program.h"
#include "mpc-server/garble/run_format.h"
#ifdef MPCKDC_CONTROL
#include "mpc-server/testing/control.h"
#endif
#include "mpc-server/testing/garbled_parties.h"

namespace mpckdc::garble {
namespace {

constexpr size_t kBytes = 2, kRows = 8 * kBytes;
constexpr int kE = 0, kG1 = 1, kG2 = 2;

// Sixteen secret bits are compared with public ones and give one bit, that they differ.
class Comparison {
 public:
  Comparison() {
    const Plan::Reg secret = plan_.Input(kRows);
    const Plan::String given = plan_.AddString(kBytes);
    plan_.Show(plan_.Run(CheckTape(kRows, 0), {secret, plan_.Public(given, 0, kBytes)}));
    plan_.Finish();
  }

  // What E receives. Its shares are zeros; the secret is m.
  struct View {
    std::vector<uint8_t> from_g1, from_g2;

    Label LabelU(size_t row) const { return At(from_g1, from_g1.size() / 16 - kRows + row); }
    Label LabelW(size_t row) const { return At(from_g2, row); }
    std::vector<uint8_t> Bits() const {
      std::vector<uint8_t> bits;
      for (const auto* bytes : {&from_g1, &from_g2}) {
        for (const uint8_t b : *bytes) {
          for (int k = 0; k < 8; ++k) bits.push_back(b >> k & 1);
        }
      }
      // The colours of the wires that E holds: both labels are one of a sum's.
      for (size_t row = 0; row < kRows; ++row) {
        bits.push_back((LabelU(row) ^ LabelW(row)).colour() ? 1 : 0);
      }
      return bits;
    }

   private:
    static Label At(const std::vector<uint8_t>& bytes, size_t label) {
      Label l;
      std::memcpy(&l, bytes.data() + sizeof(l) * label, sizeof(l));
      return l;
    }
  };
  // `m`: of E's own share w as well, if `in_w`.
  View Run(uint16_t m, uint64_t seed, bool in_w = false) const {
    const std::string given(kBytes, '\0');
    const RunInput input = {&plan_, 1, {{given}}};
    GarbledParties parties(input, std::vector<uint8_t>(kRows), seed, kE,
                           [&](int party, SharedBits& share) { Set(party, m, in_w, share); });
    View view;
    const auto ends = parties.Run([&](int from, int to, size_t round, std::vector<uint8_t>& b) {
      if (to != kE || round != 0) return;
      (from == kG1 ? view.from_g1 : view.from_g2) = b;
    });
    for (const absl::Status& end : ends) EXPECT_TRUE(end.ok()) << end;
    EXPECT_EQ(parties.Shown(), std::vector<uint8_t>{0});
    return view;
  }

 private:
  // E holds u and w; G1 m and u; G2 w and m.
  static void Set(int party, uint16_t m, bool in_w, SharedBits& share) {
    SecretVector<uint8_t> zeros(kRows), bits(kRows);
    for (size_t i = 0; i < kRows; ++i) bits[i] = m >> i & 1;
    const auto& of_m = in_w ? zeros : bits;
    const auto& of_w = in_w ? bits : zeros;
    if (party == kE) share = {zeros, of_w};
    if (party == kG1) share = {of_m, zeros};
    if (party == kG2) share = {of_w, of_m};
  }

  Plan plan_;
};

// How often each bit is 1.
std::vector<int> Ones(const Comparison& comparison, uint16_t m, int runs, uint64_t first_seed) {
  std::vector<int> ones;
  for (int i = 0; i < runs; ++i) {
    const auto bits = comparison.Run(m, first_seed + static_cast<uint64_t>(i)).Bits();
    ones.resize(bits.size());
    for (size_t k = 0; k < bits.size(); ++k) ones[k] += bits[k];
  }
  return ones;
}

// The largest difference from a half, and of two from each other, in standard deviations. Some
// 10,000 bits are compared: above 5.5 it is chance once in 2,000 times; the seeds are fixed.
double FarthestFromHalf(const std::vector<int>& ones, int runs, size_t but_last) {
  double most = 0;
  for (size_t k = 0; k + but_last < ones.size(); ++k) {
    most = std::max(most, std::abs(2.0 * ones[k] - runs) / std::sqrt(runs));
  }
  return most;
}
double FarthestApart(const std::vector<int>& a, const std::vector<int>& b, int runs) {
  double most = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    most = std::max(most, std::abs(a[k] - b[k]) / std::sqrt(0.5 * runs));
  }
  return most;
}

constexpr int kRuns = 1000;
constexpr double kFar = 5.5;

TEST(ViewTest, SaysNothingOfTheSecret) {
  const Comparison comparison;
  const std::vector<int> one = Ones(comparison, 0x0001, kRuns, 1);
  const std::vector<int> other = Ones(comparison, 0xFFFE, kRuns, 1'000'001);
  EXPECT_LT(FarthestApart(one, other, kRuns), kFar);
}

// But for the piece of colours that is filled up with zeros, and where E knows the value.
TEST(ViewTest, IsAsRandomAsWhatASimulatorDraws) {
  const Comparison comparison;
  std::vector<int> ones = Ones(comparison, 0x1234, kRuns, 2'000'001);
  size_t filling = 0;
  for (const int count : ones) filling += count == 0 ? 1 : 0;
  EXPECT_EQ(filling, 127u);  // one bit is shown, in a label
  std::erase(ones, 0);
  EXPECT_LT(FarthestFromHalf(ones, kRuns, 0), kFar);
}

// ---- What the harness sees ----

#ifdef MPCKDC_CONTROL
// A garbler whose zero labels have the colour 0: what E holds is the value.
TEST(ViewTest, ColoursWithoutAMaskAreSeen) {
  DropForTest("GarbledColours");
  const Comparison comparison;
  const std::vector<int> one = Ones(comparison, 0x0001, kRuns, 1);
  const std::vector<int> other = Ones(comparison, 0xFFFE, kRuns, 1'000'001);
  UpholdForTest("GarbledColours");
  EXPECT_GT(FarthestApart(one, other, kRuns), kFar);
}
#endif

// A key that serves twice: labels differ by the same Delta wherever the bits do.
size_t MostCommonDifference(const Comparison::View& a, const Comparison::View& b) {
  size_t most = 0;
  for (size_t i = 0; i < kRows; ++i) {
    const Label difference = a.LabelW(i) ^ b.LabelW(i);
    if (difference == Label{}) continue;
    size_t same = 0;
    for (size_t k = 0; k < kRows; ++k) same += (a.LabelW(k) ^ b.LabelW(k)) == difference;
    most = std::max(most, same);
  }
  return most;
}
TEST(ViewTest, AKeyThatServedTwiceIsSeen) {
  const Comparison comparison;
  const Comparison::View view = comparison.Run(0x00F1, 1, true);
  EXPECT_EQ(MostCommonDifference(view, comparison.Run(0x000F, 2, true)), 1u);
  EXPECT_EQ(MostCommonDifference(view, comparison.Run(0x000F, 1, true)), 7u);
}

}  // namespace
}  // namespace mpckdc::garble
