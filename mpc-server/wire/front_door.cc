// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/wire/front_door.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

constexpr int kAcceptsPerStep = 1024;  // then those who were accepted have their turn
constexpr int kPauseMs = 100;          // for what changes by time alone

// Also when the clock was set back since.
bool IsOver(absl::Time end, absl::Time now) {
  return end <= now || end > now + limits::kHandshakeTimeout;
}

}  // namespace

// ---- Acquaintances ----

void Acquaintances::Meet(const std::string& peer) {
  const size_t scheme = peer.find(':');
  if (scheme == std::string::npos) return;
  const absl::StatusOr<std::vector<PeerAddress>> found =
      PeerAddressesOf(absl::StrReplaceAll(peer.substr(scheme + 1), {{"%5B", "["}, {"%5D", "]"}}));
  if (!found.ok() || found->size() != 1) return;
  const PeerAddress& address = found->front();
  const absl::MutexLock lock(&mutex_);
  const auto it = known_.find(address);
  if (it != known_.end()) {
    by_age_.splice(by_age_.begin(), by_age_, it->second);
    return;
  }
  by_age_.push_front(address);
  known_[address] = by_age_.begin();
  if (known_.size() <= limits::kMaxStreamsPerServer) return;
  known_.erase(by_age_.back());
  by_age_.pop_back();
}

bool Acquaintances::Knows(const PeerAddress& address) const {
  const absl::MutexLock lock(&mutex_);
  return known_.contains(address);
}

// ---- The door ----

absl::StatusOr<std::unique_ptr<FrontDoor>> FrontDoor::Open(const std::string& listen,
                                                           const Acquaintances* known) {
  ASSIGN_OR_RETURN(Fd listener, ListenOn(listen, {}));
  return std::unique_ptr<FrontDoor>(new FrontDoor(std::move(listener), known));
}

FrontDoor::FrontDoor(Fd listener, const Acquaintances* known)
    : listener_(std::move(listener)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      known_(*known),
      callers_(&SystemClock(), limits::kMaxStreamsPerServer) {}

void FrontDoor::Start(Admit admit) {
  admit_ = std::move(admit);
  thread_ = std::thread([this] { Run(); });
}

void FrontDoor::Stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  const uint64_t one = 1;
  static_cast<void>(!write(wake_.get(), &one, sizeof(one)));
  thread_.join();
}

void FrontDoor::Run() {
  while (!stopping_) {
    AcceptAll();
    callers_.Step([this](Waiting& caller) { return Step(caller); });
    Wait();
  }
  callers_.Clear();
}

void FrontDoor::AcceptAll() {
  const absl::Time give_up = SystemClock().Now() + limits::kHandshakeTimeout;
  for (int i = 0; i < kAcceptsPerStep; ++i) {
    PeerAddress from;
    Fd fd = AcceptOne(listener_, {}, &from);
    accept_failed_ = !fd.valid() && errno != EAGAIN;  // out of descriptors, for example
    if (!fd.valid()) return;
    const bool known = known_.Knows(from);
    callers_.Add({std::move(fd), from, known, give_up}, from, known);
  }
}

// True: it is with gRPC, or closed.
bool FrontDoor::Step(Waiting& caller) {
  const absl::Time now = SystemClock().Now();
  if (IsOver(caller.give_up, now)) return true;
  char first;
  const ssize_t n = recv(caller.fd.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n <= 0) return true;
  caller.held = !admitted_.Take(caller.from, caller.known, now);
  if (caller.held) return false;
  admit_(std::move(caller.fd), listener_.get());
  return true;
}

void FrontDoor::Wait() {
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
  if (!accept_failed_) fds.push_back({listener_.get(), POLLIN, 0});
  callers_.ForEach([&](const Waiting& caller) {
    if (!caller.held) fds.push_back({caller.fd.get(), POLLIN | POLLRDHUP, 0});
  });
  poll(fds.data(), fds.size(), kPauseMs);
}

bool FrontDoor::Admitted::Take(const PeerAddress& from, bool known, absl::Time now) {
  for (; !entries_.empty() && IsOver(entries_.front().until, now); entries_.pop_front()) {
    const Entry& old = entries_.front();
    --(old.known ? known_ : strangers_);
    if (old.known) continue;
    const auto count = count_.find(old.network);
    if (--count->second == 0) count_.erase(count);
  }
  const PeerAddress network = NetworkOf(from);
  if (known) {
    if (known_ >= limits::kMaxStreamsPerServer) return false;
    ++known_;
  } else {
    const auto count = count_.find(network);
    if (strangers_ >= limits::kMaxStrangers ||
        (count != count_.end() && count->second >= limits::kMaxCallersPerAddress)) {
      return false;
    }
    ++strangers_;
    ++count_[network];
  }
  entries_.push_back({now + limits::kHandshakeTimeout, network, known});
  return true;
}

size_t RaiseDescriptorLimit() {
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(!setrlimit(RLIMIT_NOFILE, &limit));
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace mpckdc
