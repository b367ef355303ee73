// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/tally.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "integration-tests/storm/limits.h"

namespace mpckdc::storm {
namespace {

// RFC 4120 section 7.5.9; those that a KDC says to a client.
constexpr std::pair<int, const char*> kErrorNames[] = {{1, "KDC_ERR_NAME_EXP"},
                                                       {2, "KDC_ERR_SERVICE_EXP"},
                                                       {3, "KDC_ERR_BAD_PVNO"},
                                                       {6, "KDC_ERR_C_PRINCIPAL_UNKNOWN"},
                                                       {7, "KDC_ERR_S_PRINCIPAL_UNKNOWN"},
                                                       {8, "KDC_ERR_PRINCIPAL_NOT_UNIQUE"},
                                                       {9, "KDC_ERR_NULL_KEY"},
                                                       {10, "KDC_ERR_CANNOT_POSTDATE"},
                                                       {11, "KDC_ERR_NEVER_VALID"},
                                                       {12, "KDC_ERR_POLICY"},
                                                       {13, "KDC_ERR_BADOPTION"},
                                                       {14, "KDC_ERR_ETYPE_NOSUPP"},
                                                       {15, "KDC_ERR_SUMTYPE_NOSUPP"},
                                                       {16, "KDC_ERR_PADATA_TYPE_NOSUPP"},
                                                       {18, "KDC_ERR_CLIENT_REVOKED"},
                                                       {19, "KDC_ERR_SERVICE_REVOKED"},
                                                       {20, "KDC_ERR_TGT_REVOKED"},
                                                       {21, "KDC_ERR_CLIENT_NOTYET"},
                                                       {22, "KDC_ERR_SERVICE_NOTYET"},
                                                       {23, "KDC_ERR_KEY_EXPIRED"},
                                                       {24, "KDC_ERR_PREAUTH_FAILED"},
                                                       {25, "KDC_ERR_PREAUTH_REQUIRED"},
                                                       {26, "KDC_ERR_SERVER_NOMATCH"},
                                                       {27, "KDC_ERR_MUST_USE_USER2USER"},
                                                       {29, "KDC_ERR_SVC_UNAVAILABLE"},
                                                       {31, "KRB_AP_ERR_BAD_INTEGRITY"},
                                                       {32, "KRB_AP_ERR_TKT_EXPIRED"},
                                                       {33, "KRB_AP_ERR_TKT_NYV"},
                                                       {34, "KRB_AP_ERR_REPEAT"},
                                                       {36, "KRB_AP_ERR_BADMATCH"},
                                                       {37, "KRB_AP_ERR_SKEW"},
                                                       {41, "KRB_AP_ERR_MODIFIED"},
                                                       {44, "KRB_AP_ERR_BADKEYVER"},
                                                       {45, "KRB_AP_ERR_NOKEY"},
                                                       {50, "KRB_AP_ERR_INAPP_CKSUM"},
                                                       {52, "KRB_ERR_RESPONSE_TOO_BIG"},
                                                       {60, "KRB_ERR_GENERIC"},
                                                       {61, "KRB_ERR_FIELD_TOOLONG"},
                                                       {68, "KDC_ERR_WRONG_REALM"}};

uint64_t& At(std::vector<uint64_t>& counts, size_t i) {
  if (counts.size() <= i) counts.resize(i + 1);
  return counts[i];
}

void AddInto(std::vector<uint64_t>& to, const std::vector<uint64_t>& from) {
  for (size_t i = from.size(); i-- > 0;) At(to, i) += from[i];
}

// Bins are equally wide by their logarithms.
const double kLogRange = std::log(limits::kMaxLatencySeconds / limits::kMinLatencySeconds);
const auto kBins = static_cast<size_t>(std::ceil(kLogRange / limits::kLatencyResolution));
const double kBinWidth = kLogRange / static_cast<double>(kBins);

size_t BinOf(absl::Duration latency) {
  // Zero has no logarithm: it counts as the shortest.
  const double seconds = std::max(absl::ToDoubleSeconds(latency), limits::kMinLatencySeconds);
  const double bin = std::log(seconds / limits::kMinLatencySeconds) / kBinWidth;
  return std::min(static_cast<size_t>(bin), kBins);
}

absl::Duration LowerEdge(size_t bin) {
  return absl::Seconds(limits::kMinLatencySeconds * std::exp(static_cast<double>(bin) * kBinWidth));
}

}  // namespace

void LatencyHistogram::Add(absl::Duration latency) {
  ++At(bins_, BinOf(latency));
  ++count_;
  sum_ += latency;
  max_ = std::max(max_, latency);
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  AddInto(bins_, other.bins_);
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

absl::Duration LatencyHistogram::Mean() const {
  return count_ == 0 ? absl::ZeroDuration() : sum_ / static_cast<double>(count_);
}

absl::Duration LatencyHistogram::Percentile(double percent) const {
  const double wanted = percent / 100 * static_cast<double>(count_) - 1e-9;
  uint64_t seen = 0;
  for (size_t i = 0; i < bins_.size() && i < kBins; ++i) {
    seen += bins_[i];
    if (bins_[i] > 0 && static_cast<double>(seen) >= wanted)
      return std::min(LowerEdge(i + 1), max_);
  }
  return max_;
}

std::vector<LatencyHistogram::Bin> LatencyHistogram::NonEmptyBins() const {
  std::vector<Bin> bins;
  for (size_t i = 0; i < bins_.size(); ++i) {
    if (bins_[i] == 0) continue;
    bins.push_back({LowerEdge(i), i == kBins ? max_ : LowerEdge(i + 1), bins_[i]});
  }
  return bins;
}

std::string ErrorName(int code) {
  for (const auto& [number, name] : kErrorNames) {
    if (number == code) return name;
  }
  return absl::StrCat("KRB_ERROR_", code);
}

void Tally::Complain(std::string text) {
  if (complaints.size() < limits::kMaxWrongAnswerTexts) complaints.push_back(std::move(text));
}

void Tally::Merge(const Tally& other) {
  for (uint64_t Tally::*count :
       {&Tally::started, &Tally::ok, &Tally::refused, &Tally::failed, &Tally::wrong_answers,
        &Tally::lost, &Tally::shed, &Tally::checked, &Tally::tickets, &Tally::resends,
        &Tally::late, &Tally::unreachable}) {
    this->*count += other.*count;
  }
  for (const auto& [code, count] : other.errors) {
    errors[code].expected += count.expected;
    errors[code].unexpected += count.unexpected;
  }
  for (const auto& [verdict, count] : other.verdicts) verdicts[verdict] += count;
  for (const std::string& text : other.complaints) Complain(text);
  login.Merge(other.login);
  for (size_t i = 0; i < exchanges.size(); ++i) exchanges[i].Merge(other.exchanges[i]);
}

void Series::Add(absl::Duration since_begin, bool is_ok) {
  const auto interval = static_cast<size_t>(since_begin / limits::kSeriesInterval);
  At(ok, interval) += is_ok ? 1 : 0;
  At(other, interval) += is_ok ? 0 : 1;
}

void Series::Merge(const Series& from) {
  AddInto(ok, from.ok);
  AddInto(other, from.other);
}

}  // namespace mpckdc::storm
