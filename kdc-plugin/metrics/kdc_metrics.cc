// SPDX-License-Identifier: Apache-2.0
//
// The C face of the pages. Which pages there are is known to each process by itself: the list is
// inherited by a fork, and so are the pages, which both then share.
#include "kdc-plugin/metrics/kdc_metrics.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "absl/strings/str_cat.h"
#include "kdc-plugin/metrics/realm_metrics.h"

namespace mpckdc::metrics {
namespace {

// Never destroyed: other threads may count while the process ends.
std::vector<kdc_metrics*>& All() {
  static auto* const all = new std::vector<kdc_metrics*>;
  return *all;
}

Page* MapPage() {
  void* const memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  Page* const page = new (memory) Page;
  page->began = time(nullptr);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&page->writer, &attributes);
  pthread_mutexattr_destroy(&attributes);
  return page;
}

std::string Text(const char* text) { return text == nullptr ? "" : text; }

size_t TypeIndex(int32_t enctype) {
  const Enctype* const found = FindEnctype(enctype);
  return found == nullptr ? std::size(kEnctypes) : static_cast<size_t>(found - kEnctypes);
}

bool IsServer(const kdc_metrics* m, size_t server) { return m != nullptr && server < kServers; }

// With PagesMutex().
kdc_metrics* MakeMetrics(const kdc_metrics_options& options) {
  Page* const page = MapPage();
  if (page == nullptr) return nullptr;
  auto* const made = new kdc_metrics{page, Text(options.realm), Text(options.file),
                                     {},   {},                  options.log};
  for (const char* server : options.servers) {
    if (server == nullptr) break;
    made->servers.emplace_back(server);
  }
  constexpr std::array<const char*, 3> kWhat = {"certificate", "authority", "kadmind"};
  for (size_t i = 0; i < kWhat.size(); ++i) {
    const char* const name = options.certificate_files[i];
    if (name != nullptr) made->certificates.emplace_back(kWhat[i], name);
  }
  All().push_back(made);
  return made;
}

// A shorter one, or the first, takes the place of what is there.
void SetIfLess(Count& count, uint64_t value) {
  uint64_t present = Get(count);
  while ((present == 0 || value < present) &&
         !count.compare_exchange_weak(present, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

std::vector<kdc_metrics*> Pages() {
  const std::lock_guard<std::mutex> lock(PagesMutex());
  return All();
}

std::mutex& PagesMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

void ForgetAllPlaces() {
  for (kdc_metrics* m : All()) {
    m->place.store(nullptr);
    m->probe = nullptr;
    m->writes = false;
    Unclaim(*m);
    new (&m->probe_mutex) std::mutex;  // whoever held it is in the parent
  }
}

}  // namespace mpckdc::metrics

using namespace mpckdc::metrics;

// The page's place of this process; null when all are taken.
Place* kdc_metrics::MyPlace() {
  Place* mine = place.load(std::memory_order_acquire);
  if (mine != nullptr) return mine == &kNoPlace ? nullptr : mine;
  const std::lock_guard<std::mutex> lock(probe_mutex);
  mine = place.load(std::memory_order_acquire);
  if (mine == nullptr) {
    const uint64_t number = page->taken.fetch_add(1);
    mine = number < kPlaces ? &page->places[number] : &kNoPlace;
    Set(mine->pid, static_cast<uint64_t>(getpid()));
    Set(mine->beat, kdc_metrics_clock());
    place.store(mine, std::memory_order_release);
  }
  return mine == &kNoPlace ? nullptr : mine;
}

Place kdc_metrics::kNoPlace;

extern "C" {

uint64_t kdc_metrics_clock(void) noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

kdc_metrics* kdc_metrics_open(const kdc_metrics_options* options, char** error) noexcept {
  *error = nullptr;
  const std::string realm = Text(options->realm), file = Text(options->file);
  kdc_metrics* found = nullptr;
  {
    const std::lock_guard<std::mutex> lock(PagesMutex());
    for (kdc_metrics* m : All()) {
      if (m->file != file) continue;
      found = m;
      if (m->realm == realm) break;
      *error = strdup(absl::StrCat("realm ", m->realm, " has the metrics file ", file,
                                   " already; realm ", realm, " is not counted")
                          .c_str());
      return nullptr;
    }
    if (found == nullptr) found = MakeMetrics(*options);
  }
  if (found == nullptr) {
    *error = strdup("no memory for metrics");
  } else {
    StartWriter();
  }
  return found;
}

void kdc_metrics_stop(void) noexcept { StopWriter(); }

void kdc_metrics_request(kdc_metrics* m, enum kdc_request_type type, enum kdc_result result,
                         int remote, uint64_t microseconds) noexcept {
  if (m == nullptr) return;
  Counters& counters = m->page->counters;
  Add(counters.requests[type][result][remote != 0 ? 1 : 0]);
  if (microseconds > 0) counters.request_times[type].Observe(microseconds);
  if (Place* const place = m->MyPlace()) Add(place->requests);
}

void kdc_metrics_dropped(void) noexcept {
  for (kdc_metrics* m : Pages()) Add(m->page->counters.dropped);
}

void kdc_metrics_wait(kdc_metrics* m, enum kdc_phase phase, int32_t enctype,
                      uint64_t microseconds) noexcept {
  if (m != nullptr) m->page->counters.waits[phase][TypeIndex(enctype)].Observe(microseconds);
}

void kdc_metrics_job(kdc_metrics* m, unsigned int operation, unsigned int verdict) noexcept {
  if (m == nullptr || operation >= kOperations || verdict >= kVerdicts) return;
  Add(m->page->counters.jobs[operation][verdict]);
}

void kdc_metrics_tag(kdc_metrics* m, unsigned int verdict) noexcept {
  if (m != nullptr && verdict < kVerdicts) Add(m->page->counters.tags[verdict]);
}

void kdc_metrics_resent(kdc_metrics* m) noexcept {
  if (m != nullptr) Add(m->page->counters.resent);
}

void kdc_metrics_held(kdc_metrics* m) noexcept {
  if (m != nullptr) Add(m->page->counters.held);
}

void kdc_metrics_message(kdc_metrics* m, size_t server, size_t entries, size_t bytes) noexcept {
  if (!IsServer(m, server)) return;
  Server& counts = m->page->counters.servers[server];
  Add(counts.messages);
  Add(counts.entries, entries);
  Add(counts.bytes, bytes);
}

void kdc_metrics_answer(kdc_metrics* m, size_t server, unsigned int wire_verdict, int is_tag,
                        uint64_t microseconds) noexcept {
  if (!IsServer(m, server)) return;
  Server& counts = m->page->counters.servers[server];
  Add(counts.verdicts[wire_verdict < kWireVerdicts ? wire_verdict : 0]);
  if (is_tag == 0) {
    Add(counts.answers);
    Add(counts.answer_us, microseconds);
  } else if (Place* const place = m->MyPlace()) {
    SetIfLess(place->nearest[server], microseconds + 1);
  }
}

void kdc_metrics_connected(kdc_metrics* m, size_t server, unsigned int party) noexcept {
  if (!IsServer(m, server)) return;
  Server& counts = m->page->counters.servers[server];
  Add(counts.connects);
  Set(counts.party, party + 1);
  if (Place* const place = m->MyPlace()) Set(place->up[server], 1);
}

void kdc_metrics_lost(kdc_metrics* m, size_t server) noexcept {
  if (!IsServer(m, server)) return;
  if (Place* const place = m->MyPlace()) Set(place->up[server], 0);
}

void kdc_metrics_watch(kdc_metrics* m, kdc_load_probe probe, void* arg) noexcept {
  if (m == nullptr) return;
  if (Place* const place = m->MyPlace()) Set(place->asks, 1);
  const std::lock_guard<std::mutex> lock(m->probe_mutex);
  m->probe = probe;
  m->probe_arg = arg;
}

void kdc_metrics_unwatch(kdc_metrics* m) noexcept {
  if (m == nullptr) return;
  const std::lock_guard<std::mutex> lock(m->probe_mutex);
  m->probe = nullptr;
}

}  // extern "C"
