// SPDX-License-Identifier: Apache-2.0
//
// Makes audit logs at chosen times. For tests.
#ifndef MPC_SERVER_TESTING_AUDIT_LOG_H_
#define MPC_SERVER_TESTING_AUDIT_LOG_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mpc-server/audit/audit_log.h"
#include "mpc-server/audit/chain.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/testing/folder.h"

namespace mpckdc::audit {

class HandClock : public Clock {
 public:
  absl::Time Now() override { return now_; }
  void SleepUntil(absl::Time when) override { now_ = std::max(now_, when); }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
};

// With their newlines.
inline std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t start = 0; start < text.size();) {
    const size_t newline = text.find('\n', start);
    const size_t end = newline == std::string::npos ? text.size() : newline + 1;
    lines.push_back(text.substr(start, end - start));
    start = end;
  }
  return lines;
}

inline Verification VerifyPaths(const std::vector<std::string>& paths,
                                const std::string& head = "") {
  absl::StatusOr<std::vector<LogFile>> files = FindFiles(paths);
  if (!files.ok()) {
    ADD_FAILURE() << files.status();
    return {};
  }
  absl::StatusOr<Verification> result = Verify(*files, head, nullptr);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Verification();
}

}  // namespace mpckdc::audit

#endif  // MPC_SERVER_TESTING_AUDIT_LOG_H_
