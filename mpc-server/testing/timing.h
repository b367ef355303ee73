// SPDX-License-Identifier: Apache-2.0
//
// Whether a computation takes as long for one class of secrets as for another, by measurement (the
// method of Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?", DATE 2017): the
// classes take turns in random order, and Welch's t says how far apart their means are. What an
// interrupt made long says nothing, so the tests are also made of the quicker part of the
// measurements, cut at several lengths; the largest counts.
#ifndef MPC_SERVER_TESTING_TIMING_H_
#define MPC_SERVER_TESTING_TIMING_H_

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace mpckdc {

// Means and variances of two classes, as measurements come (Welford).
class Welch {
 public:
  void Add(int of, double value) {
    Class& c = classes_[of];
    const double off = value - c.mean;
    c.mean += off / ++c.count;
    c.squares += off * (value - c.mean);
  }
  // 0 where too little is known.
  double T() const {
    const Class &a = classes_[0], &b = classes_[1];
    if (a.count < 100 || b.count < 100) return 0;
    const double error =
        a.squares / (a.count * (a.count - 1)) + b.squares / (b.count * (b.count - 1));
    return error == 0 ? 0 : (a.mean - b.mean) / std::sqrt(error);
  }

 private:
  struct Class {
    double count = 0, mean = 0, squares = 0;
  };
  Class classes_[2];
};

// The largest |t| of `rounds` measurements of run(class), with prepare(class) before each.
template <class Prepare, class Run>
double LargestT(size_t rounds, Prepare prepare, Run run) {
  std::mt19937_64 random(1);
  std::vector<std::pair<int, double>> times;
  times.reserve(rounds);
  for (size_t i = 0; i < rounds; ++i) {
    const int of = static_cast<int>(random() & 1);
    prepare(of);
    const auto began = std::chrono::steady_clock::now();
    run(of);
    times.emplace_back(
        of,
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began).count());
  }
  times.erase(times.begin(),
              times.begin() + static_cast<std::ptrdiff_t>(rounds / 20));  // caches warm up
  std::vector<double> sorted;
  for (const auto& [of, time] : times) sorted.push_back(time);
  std::sort(sorted.begin(), sorted.end());
  double largest = 0;
  for (const double part : {0.25, 0.5, 0.75, 0.9, 0.99, 1.0}) {
    const double longest =
        sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
    Welch welch;
    for (const auto& [of, time] : times) {
      if (time <= longest) welch.Add(of, time);
    }
    largest = std::max(largest, std::abs(welch.T()));
  }
  return largest;
}

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_TIMING_H_
