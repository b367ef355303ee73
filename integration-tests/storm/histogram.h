// SPDX-License-Identifier: Apache-2.0
//
// Latencies. Boost.Histogram with bins of equal relative width (1 %) from 1 microsecond to 1,000
// seconds: a percentile is right to within one bin, and histograms of threads are added.
// (HdrHistogram_c is not in Debian 12.)
#ifndef INTEGRATION_TESTS_STORM_HISTOGRAM_H_
#define INTEGRATION_TESTS_STORM_HISTOGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"

namespace mpckdc::storm {

class LatencyHistogram {
 public:
  LatencyHistogram();
  LatencyHistogram(LatencyHistogram&&) noexcept;
  LatencyHistogram& operator=(LatencyHistogram&&) noexcept;
  ~LatencyHistogram();

  void Add(absl::Duration latency);
  void Merge(const LatencyHistogram& other);

  uint64_t count() const { return count_; }
  absl::Duration max() const { return max_; }
  absl::Duration Mean() const;
  // The upper edge of the bin in which the share is reached, never more than max(); zero when
  // empty.
  absl::Duration Percentile(double percent) const;

  struct Bin {
    absl::Duration from;
    absl::Duration to;
    uint64_t count;
  };
  std::vector<Bin> NonEmptyBins() const;

 private:
  struct Bins;  // Boost's templates stay in one file
  std::unique_ptr<Bins> bins_;
  uint64_t count_ = 0;
  absl::Duration sum_;
  absl::Duration max_;
};

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_HISTOGRAM_H_
