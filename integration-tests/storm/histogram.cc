// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/histogram.h"

#include <algorithm>
#include <boost/histogram.hpp>
#include <cmath>
#include <vector>

#include "integration-tests/storm/limits.h"

namespace mpckdc::storm {
namespace {

namespace bh = boost::histogram;
using Axis = bh::axis::regular<double, bh::axis::transform::log>;

Axis MakeAxis() {
  const double decades = std::log(limits::kMaxLatencySeconds / limits::kMinLatencySeconds);
  return Axis(static_cast<unsigned>(std::ceil(decades / limits::kLatencyResolution)),
              limits::kMinLatencySeconds, limits::kMaxLatencySeconds);
}

}  // namespace

struct LatencyHistogram::Bins {
  bh::histogram<std::tuple<Axis>, bh::dense_storage<uint64_t>> histogram{
      std::make_tuple(MakeAxis()), bh::dense_storage<uint64_t>()};
};

LatencyHistogram::LatencyHistogram() : bins_(std::make_unique<Bins>()) {}
LatencyHistogram::LatencyHistogram(LatencyHistogram&&) noexcept = default;
LatencyHistogram& LatencyHistogram::operator=(LatencyHistogram&&) noexcept = default;
LatencyHistogram::~LatencyHistogram() = default;

void LatencyHistogram::Add(absl::Duration latency) {
  // Zero has no logarithm: it counts as the shortest.
  bins_->histogram(std::max(absl::ToDoubleSeconds(latency), limits::kMinLatencySeconds));
  ++count_;
  sum_ += latency;
  max_ = std::max(max_, latency);
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  bins_->histogram += other.bins_->histogram;
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

absl::Duration LatencyHistogram::Mean() const {
  return count_ == 0 ? absl::ZeroDuration() : sum_ / static_cast<double>(count_);
}

absl::Duration LatencyHistogram::Percentile(double percent) const {
  if (count_ == 0) return absl::ZeroDuration();
  const double share = percent / 100 * static_cast<double>(count_);
  const uint64_t wanted = std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(share - 1e-9)));
  uint64_t seen = 0;
  for (auto&& bin : bh::indexed(bins_->histogram, bh::coverage::all)) {
    seen += *bin;
    if (seen < wanted) continue;
    const double edge = bin.bin().upper();
    return std::isfinite(edge) ? std::min(absl::Seconds(edge), max_) : max_;
  }
  return max_;
}

std::vector<LatencyHistogram::Bin> LatencyHistogram::NonEmptyBins() const {
  std::vector<Bin> bins;
  for (auto&& bin : bh::indexed(bins_->histogram, bh::coverage::all)) {
    if (*bin == 0) continue;
    const double from = bin.bin().lower(), to = bin.bin().upper();
    bins.push_back({absl::Seconds(std::isfinite(from) ? from : 0),
                    std::isfinite(to) ? absl::Seconds(to) : max_, *bin});
  }
  return bins;
}

}  // namespace mpckdc::storm
