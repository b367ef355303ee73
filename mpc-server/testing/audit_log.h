// SPDX-License-Identifier: Apache-2.0
//
// Makes audit logs at chosen times. For tests.
#ifndef MPC_SERVER_TESTING_AUDIT_LOG_H_
#define MPC_SERVER_TESTING_AUDIT_LOG_H_

#include <gtest/gtest.h>

#include <sstream>
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
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line + (in.eof() ? "" : "\n"));
  return lines;
}

inline Verification VerifyPaths(const std::vector<std::string>& paths,
                                const std::string& head = "") {
  const absl::StatusOr<std::vector<LogFile>> files = FindFiles(paths);
  const absl::StatusOr<Verification> result =
      files.ok() ? Verify(*files, head, nullptr) : files.status();
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Verification();
}

}  // namespace mpckdc::audit

#endif  // MPC_SERVER_TESTING_AUDIT_LOG_H_
