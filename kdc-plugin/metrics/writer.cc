// SPDX-License-Identifier: Apache-2.0
//
// One thread in each process of krb5kdc. Once a second it says in the process's place what it has
// now; and the one whose process holds a page's lock writes the page into its file. The lock is
// kept until the process ends, when the kernel gives it to the next that asks (a robust mutex).
//
//     krb5kdc -n          init_module: thread
//     krb5kdc             init_module: thread; daemon() forks: a thread in the child, the parent ends
//     krb5kdc -w 4        likewise, and each worker has its thread; their parent closes its databases
//                         and with the last of them stops its own
//
// A fork leaves threads behind, so a handler starts it in the child. The thread calls nothing that
// may not run before a fork: no gRPC, and of the client only what the probe does, which only a
// process that has one asks.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kdc-plugin/metrics/realm_metrics.h"
#include "kdc-plugin/metrics/render.h"
#include "mpc-server/package/certificate.h"

namespace mpckdc::metrics {
namespace {

constexpr time_t kEvery = 1;                               // seconds
constexpr uint64_t kWindow = 30'000'000;                   // half of that of the shortest times
constexpr uint64_t kReadCertificates = 60'000'000;
constexpr uint64_t kComplainAgain = 60'000'000;

// ---- What is written ----

std::vector<std::pair<std::string, double>> ReadExpires(const kdc_metrics& m) {
  std::vector<std::pair<std::string, double>> expires;
  for (const auto& [what, file] : m.certificates) {
    const auto facts = enroll::ReadCertificate(file);
    expires.emplace_back(
        what, facts.ok() ? absl::ToDoubleSeconds(facts->not_after - absl::UnixEpoch()) : 0);
  }
  return expires;
}

// Empty, or what went wrong. A reader sees the old file or the new one, whole.
std::string WriteFile(const std::string& file, absl::string_view text) {
  const std::string fresh = file + ".new";
  const auto failed = [&fresh](const char* what) {
    return absl::StrCat("cannot ", what, " ", fresh, ": ", strerror(errno));
  };
  (void)unlink(fresh.c_str());
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) return failed("make");
  std::string error;
  if (fchmod(fd, 0644) != 0) error = failed("open to readers");  // whatever the umask
  while (!text.empty() && error.empty()) {
    const ssize_t done = write(fd, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      error = failed("write");
    } else {
      text.remove_prefix(static_cast<size_t>(done));
    }
  }
  if (close(fd) != 0 && error.empty()) error = failed("write");
  if (error.empty() && rename(fresh.c_str(), file.c_str()) != 0) error = failed("rename");
  if (!error.empty()) (void)unlink(fresh.c_str());
  return error;
}

// Two krb5kdc whose kdc.conf name one file would write it in turn, and each counter would go back once
// a second. The lock is the process's own and ends with it; no fork hands it on. Empty, or who has it.
// A lock that cannot be opened may be that of a krb5kdc under another user. A folder that is not there
// is left to making the file to tell.
std::string Claim(kdc_metrics& m) {
  struct stat found {};
  if (m.claim >= 0 && fstat(m.claim, &found) == 0 && found.st_nlink > 0) return "";
  Unclaim(m);
  const std::string name = m.file + ".lock";
  const int fd =
      open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (fd < 0 && errno == ENOENT) return "";
  if (fd < 0) {
    return absl::StrCat("cannot open ", name, ", which says who writes ", m.file, ": ",
                        strerror(errno));
  }
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  m.claim = fd;
  if (fcntl(fd, F_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES)) return "";
  const bool known = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid > 0;
  Unclaim(m);
  return absl::StrCat(known ? absl::StrCat("process ", lock.l_pid) : "another process", " writes ",
                      m.file, " already");
}

void Complain(kdc_metrics& m, const std::string& error, uint64_t now) {
  if (m.complained != 0 && now - m.complained < kComplainAgain) return;
  m.complained = now;
  if (m.log == nullptr) return;
  m.log(LOG_ERR, absl::StrCat("metrics of realm ", m.realm, ": ", error,
                              "; see mpc_metrics_file in kdc.conf")
                     .c_str());
}

void Write(kdc_metrics& m, uint64_t now) {
  if (m.read_expires == 0 || now - m.read_expires >= kReadCertificates) {
    m.expires = ReadExpires(m);
    m.read_expires = now;
  }
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  const RenderOptions options = {
      m.realm, m.servers, m.expires,
      static_cast<double>(wall.tv_sec) + static_cast<double>(wall.tv_nsec) / 1e9, now};
  std::string error = Claim(m);
  if (error.empty()) error = WriteFile(m.file, Render(*m.page, options));
  if (!error.empty()) Complain(m, error, now);
}

// ---- What a process says of itself ----

void TurnWindow(kdc_metrics& m, Place& place, uint64_t now) {
  if (now - m.turned_window < kWindow) return;
  m.turned_window = now;
  for (size_t i = 0; i < kServers; ++i) {
    Set(place.nearest_before[i], place.nearest[i].exchange(0, std::memory_order_relaxed));
  }
}

void SayLoad(kdc_metrics& m, uint64_t now) {
  Place* const place = m.MyPlace();
  if (place == nullptr) return;
  kdc_load load{};
  {
    const std::lock_guard<std::mutex> lock(m.probe_mutex);
    if (m.probe != nullptr) m.probe(m.probe_arg, &load);
  }
  Set(place->jobs, load.jobs);
  Set(place->tags, load.tags);
  Set(place->held, load.held);
  Set(place->oldest_us, load.oldest_us);
  Set(place->queued_bytes, load.queued_bytes);
  Set(place->beat, now);
  TurnWindow(m, *place, now);
}

// Whether this process writes the page: it has the lock, or gets it now.
bool IsWriter(kdc_metrics& m) {
  if (m.writes) return true;
  const int got = pthread_mutex_trylock(&m.page->writer);
  if (got == EOWNERDEAD) pthread_mutex_consistent(&m.page->writer);
  return m.writes = got == 0 || got == EOWNERDEAD;
}

// ---- The thread ----

struct Thread {
  std::mutex mutex;  // of starting and stopping
  std::mutex work;   // held for a round, so that no fork copies one half done
  bool running = false, stopping = false;
  pthread_t id{};
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of `stopping`
  pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
};

Thread& TheThread() {
  static auto* const thread = new Thread;
  return *thread;
}

bool WaitOrStop(Thread& thread) {
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += kEvery;
  pthread_mutex_lock(&thread.lock);
  if (!thread.stopping) {
    pthread_cond_clockwait(&thread.wake, &thread.lock, CLOCK_MONOTONIC, &until);
  }
  const bool stopping = thread.stopping;
  pthread_mutex_unlock(&thread.lock);
  return stopping;
}

void* Run(void*) {
  Thread& thread = TheThread();
  while (!WaitOrStop(thread)) {
    const std::lock_guard<std::mutex> lock(thread.work);
    for (kdc_metrics* m : Pages()) {
      const uint64_t now = kdc_metrics_clock();
      SayLoad(*m, now);
      if (IsWriter(*m)) Write(*m, now);
    }
  }
  for (kdc_metrics* m : Pages()) {
    Unclaim(*m);
    if (m->writes) pthread_mutex_unlock(&m->page->writer);
    m->writes = false;
  }
  return nullptr;
}

// Signals are the main thread's. With thread.mutex.
void Begin(Thread& thread) {
  if (thread.running) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread.stopping = false;
  thread.running = pthread_create(&thread.id, nullptr, Run, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Nobody is in the middle of anything that a child inherits half done.
void BeforeFork() {
  TheThread().mutex.lock();
  TheThread().work.lock();
  PagesMutex().lock();
}

void AfterFork() {
  PagesMutex().unlock();
  TheThread().work.unlock();
  TheThread().mutex.unlock();
}

// The thread, its lock and its places are the parent's.
void InChild() {
  Thread& thread = TheThread();
  const bool ran = std::exchange(thread.running, false);
  ForgetAllPlaces();
  AfterFork();
  const std::lock_guard<std::mutex> lock(thread.mutex);
  new (&thread.lock) pthread_mutex_t PTHREAD_MUTEX_INITIALIZER;
  new (&thread.wake) pthread_cond_t PTHREAD_COND_INITIALIZER;
  if (ran) Begin(thread);
}

}  // namespace

void Unclaim(kdc_metrics& m) {
  const int fd = std::exchange(m.claim, -1);
  if (fd >= 0) close(fd);
}

void StartWriter() {
  Thread& thread = TheThread();
  const std::lock_guard<std::mutex> lock(thread.mutex);
  static const bool watched = pthread_atfork(BeforeFork, AfterFork, InChild) == 0;
  if (watched) Begin(thread);
}

void StopWriter() {
  Thread& thread = TheThread();
  const std::lock_guard<std::mutex> lock(thread.mutex);
  if (!thread.running) return;
  pthread_mutex_lock(&thread.lock);
  thread.stopping = true;
  pthread_cond_signal(&thread.wake);
  pthread_mutex_unlock(&thread.lock);
  pthread_join(thread.id, nullptr);
  thread.running = false;
}

}  // namespace mpckdc::metrics
