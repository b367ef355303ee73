// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/metrics_request.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace mpckdc {

MetricsQuestion ReadMetricsRequest(absl::string_view request) {
  constexpr absl::string_view kEnd = "\r\n\r\n";
  const size_t end = request.find(kEnd);
  const bool finished = end != absl::string_view::npos;
  // Not what may follow: it is as long in however many pieces it comes.
  const size_t size = finished ? end + kEnd.size() : request.size();
  if (size > kMaxMetricsRequest) return MetricsQuestion::kTooLong;
  if (!finished) return MetricsQuestion::kUnfinished;
  absl::string_view path = request.substr(0, end);
  if (!absl::ConsumePrefix(&path, "GET ")) return MetricsQuestion::kNotGet;
  path = path.substr(0, path.find_first_of(" ?\r"));
  return path == "/metrics" ? MetricsQuestion::kPage : MetricsQuestion::kOtherPath;
}

}  // namespace mpckdc
