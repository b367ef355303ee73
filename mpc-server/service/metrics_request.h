// SPDX-License-Identifier: Apache-2.0
//
// What somebody asks the port of the metrics: as much of HTTP/1.1 as a collector needs, which is the
// first line and where the head ends. Anybody on that network may send anything.
#ifndef MPC_SERVER_SERVICE_METRICS_REQUEST_H_
#define MPC_SERVER_SERVICE_METRICS_REQUEST_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace mpckdc {

inline constexpr size_t kMaxMetricsRequest = 8 << 10;

enum class MetricsQuestion {
  kUnfinished,  // its end has not come yet
  kTooLong,     // nor will it be waited for
  kNotGet,
  kOtherPath,
  kPage,  // /metrics, with any query behind it
};

// Of all that has come. What is not kUnfinished stays what it is, whatever else comes.
MetricsQuestion ReadMetricsRequest(absl::string_view request);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_METRICS_REQUEST_H_
