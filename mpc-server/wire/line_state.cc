// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/wire/line_state.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace mpckdc {

// min_rtt is the shortest of the last five minutes (net.ipv4.tcp_min_rtt_wlen). delivery_rate is
// the line's only where the sender always had something to send, which it says itself: a few bytes
// now and then tell nothing.
LineState MeasuredLine(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  if (size < offsetof(tcp_info, tcpi_delivery_rate) + sizeof(info.tcpi_delivery_rate)) return {};
  constexpr uint32_t kNone = ~uint32_t{0};
  const uint32_t round_trip =
      info.tcpi_min_rtt != 0 && info.tcpi_min_rtt != kNone ? info.tcpi_min_rtt : info.tcpi_rtt;
  LineState line;
  line.distance = absl::Microseconds(round_trip) / 2;
  line.sent = info.tcpi_bytes_acked;
  if (!info.tcpi_delivery_rate_app_limited) line.rate = info.tcpi_delivery_rate;
  return line;
}

}  // namespace mpckdc
