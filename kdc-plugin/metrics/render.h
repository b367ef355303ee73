// SPDX-License-Identifier: Apache-2.0
//
// A page as the text that Prometheus reads.
#ifndef KDC_PLUGIN_METRICS_RENDER_H_
#define KDC_PLUGIN_METRICS_RENDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kdc-plugin/metrics/page.h"

namespace mpckdc::metrics {

// A place whose thread was not there for so long is of a process that ended.
inline constexpr uint64_t kAliveMicroseconds = 10'000'000;

struct RenderOptions {
  std::string realm;
  std::vector<std::string> servers;
  // "certificate", "authority", "kadmind"; seconds since 1970.
  std::vector<std::pair<std::string, double>> expires;
  double now = 0;       // seconds since 1970
  uint64_t clock = 0;   // kdc_metrics_clock()
};

std::string Render(const Page& page, const RenderOptions& options);

}  // namespace mpckdc::metrics

#endif  // KDC_PLUGIN_METRICS_RENDER_H_
