// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/catch_up.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "integration-tests/storm/client_socket.h"
#include "integration-tests/storm/limits.h"

namespace mpckdc::storm {

bool WaitUntilCaughtUp(const LoadPlan& load, const User& user, absl::Duration at_most) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return false;
  const absl::Cleanup close_epoll = [epoll] { close(epoll); };
  LoginPlan plan = load.login;
  plan.two_step = false;  // with pre-authentication: behind what waits in the MPC servers, too
  plan.tgs_requests = 0;
  Login login;
  if (login.Begin(plan, user, nullptr, false, 1) != Login::Next::kSend) return false;
  ClientSocket socket(&load.kdc, /*tcp=*/false, epoll, 0);
  std::vector<uint8_t> buffer(limits::kMaxReplyBytes);
  const absl::Time end = MonotonicNow() + at_most;
  while (MonotonicNow() < end) {
    if (!socket.Send(login.request()).ok()) return false;
    epoll_event event = {};
    const absl::Duration wait = std::min(limits::kDefaultResendAfter, end - MonotonicNow());
    if (epoll_wait(epoll, &event, 1, static_cast<int>(absl::ToInt64Milliseconds(wait))) != 1) {
      continue;
    }
    Bytes reply;
    absl::Duration waited;
    switch (socket.OnReady(event.events, absl::MakeSpan(buffer), reply, waited)) {
      case ClientSocket::Event::kReply:
        // A stray answer to somebody else proves nothing.
        if (login.OnReply(reply, 2) != Login::Next::kNotOurs) return true;
        break;
      case ClientSocket::Event::kRefused:
        return false;  // it has ended, and its queue with it
      case ClientSocket::Event::kNothing:
        break;
    }
  }
  return false;
}

}  // namespace mpckdc::storm
