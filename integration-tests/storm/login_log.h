// SPDX-License-Identifier: Apache-2.0
//
// --log FILE: a line for each login that has ended, for whoever sets what users saw beside what was
// done to the realm meanwhile (soak.py).
//
//     1795460123.123456 12.345 ok 0 1 u0000017
//     due, seconds since 1970 | ms until it ended | how | Kerberos code of an error, else 0 |
//     how often its last request was sent | user
#ifndef INTEGRATION_TESTS_STORM_LOGIN_LOG_H_
#define INTEGRATION_TESTS_STORM_LOGIN_LOG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "integration-tests/storm/login.h"

namespace mpckdc::storm {

// One thread's part of the file: whole lines are appended, so that threads share it.
class LoginLog {
 public:
  LoginLog() = default;
  ~LoginLog();
  LoginLog(const LoginLog&) = delete;
  LoginLog& operator=(const LoginLog&) = delete;

  // Times are MonotonicNow()'s. Nothing is written while Open() was not called.
  absl::Status Open(const std::string& file);
  void Add(absl::Time due, absl::Time ended, Outcome outcome, int code, int sends,
           absl::string_view user);
  // What was added a while ago, so that a reader is not far behind.
  absl::Status WriteSome(absl::Time now);
  absl::Status WriteAll();

 private:
  int fd_ = -1;
  absl::Duration to_wall_;  // from MonotonicNow() to absl::Now()
  absl::Time next_;
  std::string buffer_;
};

// An error when it cannot be written. What was in it is gone.
absl::Status EmptyLoginLog(const std::string& file);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_LOGIN_LOG_H_
