// SPDX-License-Identifier: Apache-2.0
//
// The memory that the processes of one krb5kdc share, one page for each realm. It is mapped
// anonymously, so it begins as zeros, is no file, and goes with the last process. Only atomics that
// need no lock are in it, since a process may die in any line, and a lock that survives its holder.
//
//     Page:  writer's lock | counters of all processes together | a place for each process
//
// Counters are common: they must not fall when a process ends. What a process has at the moment is
// in its own place, and counts while that is alive.
#ifndef KDC_PLUGIN_METRICS_PAGE_H_
#define KDC_PLUGIN_METRICS_PAGE_H_

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "kdc-plugin/metrics/kdc_metrics.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc::metrics {

using Count = std::atomic<uint64_t>;
static_assert(Count::is_always_lock_free);

inline constexpr size_t kServers = KDC_METRICS_SERVERS;
inline constexpr size_t kPlaces = 128;      // processes; more are counted and have no place
inline constexpr size_t kOperations = 8;    // enum mpc_operation
inline constexpr size_t kVerdicts = 7;      // enum mpc_verdict
inline constexpr size_t kWireVerdicts = 13; // v1::Verdict
inline constexpr size_t kKeyTypes = std::size(kEnctypes) + 1;  // the last: not known
inline constexpr uint64_t kNever = UINT64_MAX;

// Upper bounds in microseconds: from a slice of the event loop to a job that waited for mpc_timeout.
inline constexpr std::array<uint64_t, 15> kBounds = {
    500,    1'000,   2'000,   5'000,     10'000,    20'000,    50'000,    100'000,
    200'000, 500'000, 1'000'000, 2'000'000, 5'000'000, 10'000'000, 60'000'000};

inline void Add(Count& count, uint64_t n = 1) { count.fetch_add(n, std::memory_order_relaxed); }
inline uint64_t Get(const Count& count) { return count.load(std::memory_order_relaxed); }
inline void Set(Count& count, uint64_t n) { count.store(n, std::memory_order_relaxed); }

struct Times {
  std::array<Count, kBounds.size() + 1> in_bound;  // the last: longer
  Count microseconds;

  void Observe(uint64_t time) {
    size_t i = 0;
    while (i < kBounds.size() && time > kBounds[i]) ++i;
    Add(in_bound[i]);
    Add(microseconds, time);
  }
};

struct Server {
  Count messages, entries, bytes, connects;
  Count answers, answer_us;  // to jobs
  std::array<Count, kWireVerdicts> verdicts;
  Count party;  // plus one; 0: never reached yet
};

struct Counters {
  std::array<std::array<std::array<Count, 2>, KDC_RESULTS>, KDC_REQUEST_TYPES> requests;
  std::array<Times, KDC_REQUEST_TYPES> request_times;
  std::array<std::array<Times, kKeyTypes>, KDC_PHASES> waits;
  std::array<std::array<Count, kVerdicts>, kOperations> jobs;
  std::array<Count, kVerdicts> tags;
  Count dropped, resent, held;
  std::array<Server, kServers> servers;
};

// Of one process; only that one writes, and whoever writes the file reads.
struct alignas(64) Place {
  Count pid;   // 0: taken, and nothing has been said yet
  Count beat;  // kdc_metrics_clock() when its thread was here last
  Count requests;
  Count asks;  // 1: it has begun to connect to the servers
  Count jobs, tags, held, oldest_us, queued_bytes;
  std::array<Count, kServers> up;
  // The shortest time to a tag's answer in this window and in the one before, plus one; 0: none.
  std::array<Count, kServers> nearest, nearest_before;
};

struct Page {
  pthread_mutex_t writer;  // robust, between processes: its holder writes the file
  int64_t began;           // seconds since 1970
  Counters counters;
  Count taken;  // places
  std::array<Place, kPlaces> places;
};

}  // namespace mpckdc::metrics

#endif  // KDC_PLUGIN_METRICS_PAGE_H_
