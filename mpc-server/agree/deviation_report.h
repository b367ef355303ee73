// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_AGREE_DEVIATION_REPORT_H_
#define MPC_SERVER_AGREE_DEVIATION_REPORT_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "mpc-server/share/deviation.h"

namespace mpckdc {

// What a server saw of another's deviation.
struct DeviationReport {
  Suspects suspects;
  std::string text;                   // no secrets
  std::array<uint8_t, 16> session{};  // between the three servers; zero: none was open yet
  uint64_t batch = 0;                 // the last that was agreed on there
  absl::Time time;                    // by this server's clock

  friend bool operator==(const DeviationReport&, const DeviationReport&) = default;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_DEVIATION_REPORT_H_
