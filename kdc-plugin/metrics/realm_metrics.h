// SPDX-License-Identifier: Apache-2.0
//
// What a process knows of one realm's page, and the thread that writes the pages into files.
#ifndef KDC_PLUGIN_METRICS_REALM_METRICS_H_
#define KDC_PLUGIN_METRICS_REALM_METRICS_H_

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kdc-plugin/metrics/kdc_metrics.h"
#include "kdc-plugin/metrics/page.h"

struct kdc_metrics {
  // Shared; the rest is this process's own.
  mpckdc::metrics::Page* const page;
  const std::string realm, file;
  std::vector<std::string> servers;
  std::vector<std::pair<std::string, std::string>> certificates;  // what, in which file
  void (*const log)(int priority, const char* text);

  std::mutex probe_mutex{};  // while the probe is asked
  kdc_load_probe probe = nullptr;
  void* probe_arg = nullptr;
  std::atomic<mpckdc::metrics::Place*> place{nullptr};  // see MyPlace()

  // Of the thread alone.
  bool writes = false;  // it holds the page's lock
  int claim = -1;       // the file's lock; see Claim() in writer.cc
  std::vector<std::pair<std::string, double>> expires{};
  uint64_t read_expires = 0, turned_window = 0, complained = 0;

  // Taken when it is first wanted. Null: there were too many processes.
  mpckdc::metrics::Place* MyPlace();
  static mpckdc::metrics::Place kNoPlace;
};

namespace mpckdc::metrics {

std::mutex& PagesMutex();
std::vector<kdc_metrics*> Pages();
// In a process that was forked: it has no place yet, and no client. With PagesMutex().
void ForgetAllPlaces();

// writer.cc: one thread for each process.
void StartWriter();
void StopWriter();
// Lets go of the file's lock, or of a parent's descriptor, which locks nothing here.
void Unclaim(kdc_metrics& m);

}  // namespace mpckdc::metrics

#endif  // KDC_PLUGIN_METRICS_REALM_METRICS_H_
