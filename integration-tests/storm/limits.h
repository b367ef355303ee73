// SPDX-License-Identifier: Apache-2.0
//
// Every limit of login-storm, with its unit.
#ifndef INTEGRATION_TESTS_STORM_LIMITS_H_
#define INTEGRATION_TESTS_STORM_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace mpckdc::storm::limits {

// ---- Messages ----
inline constexpr size_t kMaxRequestBytes = 8 << 10;   // a TGS-REQ carries a TGT; ours have no PAC
inline constexpr size_t kMaxReplyBytes = 64 << 10;    // one datagram, or one message over TCP

// ---- Load ----
inline constexpr int kMaxThreads = 64;
inline constexpr size_t kMaxInFlight = 65536;         // logins; over UDP a descriptor each
inline constexpr size_t kDefaultOpenLoopInFlight = 8192;
inline constexpr size_t kMaxUsers = 10'000'000;
inline constexpr double kMaxRate = 10'000'000;        // logins per second
inline constexpr int kMaxTgsPerLogin = 1000;
inline constexpr int kMaxRampSteps = 1000;
inline constexpr absl::Duration kMaxDuration = absl::Hours(24);

// ---- Resending, as MIT's client: after 1 s, then doubling ----
inline constexpr absl::Duration kDefaultResendAfter = absl::Seconds(1);
inline constexpr int kDefaultResends = 3;             // waits of 1, 2, 4 and 8 s: lost after 15 s
inline constexpr int kMaxResends = 10;

// ---- Waiting for answers in groups: a thread that sleeps a little finds several at once. The
// kernel stamps them as they come, so latencies do not see it. ----
inline constexpr double kNapShareOfInFlight = 0.25;   // gather so many: the KDC has the rest
inline constexpr double kMaxGathered = 16;
inline constexpr absl::Duration kMaxNap = absl::Milliseconds(2);

// ---- Late answers: how long a port on which one may still come is not used again ----
inline constexpr absl::Duration kLinger = absl::Seconds(15);
inline constexpr absl::Duration kCatchUp = absl::Seconds(10);  // at the end, for what is queued
inline constexpr size_t kMaxLingering = 8192;         // per thread; then the oldest goes

// ---- Measuring ----
inline constexpr double kMinLatencySeconds = 1e-6;    // below and above: the histogram's last bins
inline constexpr double kMaxLatencySeconds = 1e3;
inline constexpr double kLatencyResolution = 0.01;    // relative width of a bin
inline constexpr absl::Duration kSeriesInterval = absl::Milliseconds(250);
inline constexpr absl::Duration kProgressInterval = absl::Milliseconds(500);
inline constexpr absl::Duration kLogInterval = absl::Seconds(1);  // of --log, between writes
inline constexpr size_t kMaxWrongAnswerTexts = 10;    // told in full; all are counted

// ---- The knee of a ramp ----
inline constexpr double kKneeShareAnswered = 0.95;    // of the offered rate

// ---- login-storm jobs ----
inline constexpr double kMinJobsSample = 0.01;        // share of logins compared with the oracle
inline constexpr uint32_t kDefaultTicketBytes = 166;  // plaintexts of a login without PAC:
inline constexpr uint32_t kDefaultReplyBytes = 272;   // 3 + 12 + 18 = 33 blocks of keystream
inline constexpr uint32_t kMaxPlaintextBytes = 32 << 10;

}  // namespace mpckdc::storm::limits

#endif  // INTEGRATION_TESTS_STORM_LIMITS_H_
