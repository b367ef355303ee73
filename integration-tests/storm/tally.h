// SPDX-License-Identifier: Apache-2.0
//
// What happened to the logins of one stage of a run. Each thread has its own; they are added.
#ifndef INTEGRATION_TESTS_STORM_TALLY_H_
#define INTEGRATION_TESTS_STORM_TALLY_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace mpckdc::storm {

// Latencies in bins of equal relative width (1 %) from 1 microsecond to 1,000 seconds, and one for
// all beyond: a percentile is right to within one bin, and histograms of threads are added.
class LatencyHistogram {
 public:
  void Add(absl::Duration latency);
  void Merge(const LatencyHistogram& other);

  uint64_t count() const { return count_; }
  absl::Duration max() const { return max_; }
  absl::Duration Mean() const;
  // The upper edge of the bin in which the share is reached, never more than max(); zero when
  // empty.
  absl::Duration Percentile(double percent) const;

  struct Bin {
    absl::Duration from, to;
    uint64_t count;
  };
  std::vector<Bin> NonEmptyBins() const;

 private:
  std::vector<uint64_t> bins_;  // up to the last that is not empty
  uint64_t count_ = 0;
  absl::Duration sum_, max_;
};

struct ErrorCount {
  uint64_t expected = 0;    // PREAUTH_FAILED to a wrong password
  uint64_t unexpected = 0;
};

struct Tally {
  uint64_t started = 0;
  // Every started login ends in one of these.
  uint64_t ok = 0;
  uint64_t refused = 0;        // wrong password, told so
  uint64_t failed = 0;         // another KRB-ERROR; of a job or a tag a verdict that is not OK
  uint64_t wrong_answers = 0;  // what no KDC and no server may say
  uint64_t lost = 0;           // no answer to the last resend
  // Logins of an open loop that could not begin, since too many were in flight.
  uint64_t shed = 0;

  uint64_t checked = 0;        // logins whose replies were opened, or compared with the oracle
  uint64_t tickets = 0;        // of services; or that the servers opened themselves
  uint64_t resends = 0;
  uint64_t late = 0;           // answers to what had been given up or sent twice
  uint64_t unreachable = 0;    // refused by the KDC's host, or a connection that ended early
  std::map<int, ErrorCount> errors;         // by Kerberos code
  std::map<std::string, uint64_t> verdicts;  // of jobs
  std::vector<std::string> complaints;      // the first wrong answers

  LatencyHistogram login;      // logins that went well, from when they were due to their last reply
  // From the first sending of a request to its reply, by Login::Step; of jobs only the first.
  std::array<LatencyHistogram, 3> exchanges;

  void Complain(std::string text);
  void Merge(const Tally& other);
};

// Logins that ended per interval, from the run's beginning.
struct Series {
  std::vector<uint64_t> ok;
  std::vector<uint64_t> other;  // refused, failed, lost, wrong

  void Add(absl::Duration since_begin, bool is_ok);
  void Merge(const Series& other);
};

// "KDC_ERR_PREAUTH_FAILED", or "KRB_ERROR_93" for one that has no name here.
std::string ErrorName(int code);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_TALLY_H_
