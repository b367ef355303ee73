// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/plain_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/wire/link_channel.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc {
namespace {

constexpr size_t kFramesPerCall = 8;
constexpr absl::Duration kRetryPause = absl::Milliseconds(20);

}  // namespace

void PlainLink::Took(size_t size) {
  sent_ += size;
  done_ += size;
  while (!frames_.empty() && done_ >= kFrameHeaderSize + frames_.front().size) {
    done_ -= kFrameHeaderSize + frames_.front().size;
    frames_.pop();
  }
}

Progress PlainLink::Flush() {
  while (!frames_.empty()) {
    iovec parts[2 * kFramesPerCall];
    size_t count = 0, skip = done_;
    for (size_t i = 0; i < std::min(frames_.size(), kFramesPerCall); ++i) {
      OutFrame& f = frames_[i];
      const size_t of_header = std::min(skip, kFrameHeaderSize), of_payload = skip - of_header;
      parts[count++] = {f.header + of_header, kFrameHeaderSize - of_header};
      parts[count++] = {const_cast<uint8_t*>(f.payload) + of_payload, f.size - of_payload};
      skip = 0;
    }
    ASSIGN_OR_RETURN(size_t n, SendParts(parts, count));
    if (n == 0) return false;
    Took(n);
  }
  return true;
}

// ---- Connecting ----

namespace {

// Ready for `events`, or the deadline has passed.
bool Await(int fd, short events, absl::Time deadline, Clock& clock) {
  pollfd ready = {fd, events, 0};
  const int64_t ms = absl::ToInt64Milliseconds(deadline - clock.Now());
  return ms > 0 && poll(&ready, 1, static_cast<int>(std::min<int64_t>(ms, 60000))) > 0;
}

// Connected to next, which has been told the number of the ring.
absl::StatusOr<Fd> ToNext(const std::string& address, uint8_t ring, const SocketTuning& tuning,
                          absl::Time deadline, Clock& clock) {
  while (clock.Now() < deadline) {
    absl::StatusOr<Fd> fd = StartConnect(address, tuning);
    if (fd.ok() && Await(fd->get(), POLLOUT, deadline, clock) &&
        send(fd->get(), &ring, 1, MSG_NOSIGNAL) == 1) {
      return fd;
    }
    clock.SleepUntil(clock.Now() + kRetryPause);
  }
  return absl::DeadlineExceededError(absl::StrCat("nobody listens at ", address));
}

// The connection of one ring from prev.
absl::Status FromPrev(const Fd& listener, const SocketTuning& tuning, absl::Time deadline,
                      Clock& clock, std::vector<Fd>* rings) {
  uint8_t ring = 0;
  if (!Await(listener.get(), POLLIN, deadline, clock)) {
    return absl::DeadlineExceededError("prev does not connect");
  }
  Fd fd = AcceptOne(listener, tuning);
  if (!fd.valid() || !Await(fd.get(), POLLIN, deadline, clock) ||
      recv(fd.get(), &ring, 1, 0) != 1 || ring >= rings->size() || (*rings)[ring].valid()) {
    return absl::DataLossError("prev does not name a free ring");
  }
  (*rings)[ring] = std::move(fd);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<PeerChannel>>> ConnectPlain(
    const TlsPeerOptions& options, absl::Time deadline, Clock& clock) {
  const SocketTuning tuning = {options.socket_buffer_bytes, options.tcp_congestion};
  const std::string& next = options.peers[static_cast<size_t>(NextParty(options.party))];
  ASSIGN_OR_RETURN(Fd listener, ListenOn(options.listen, tuning));
  std::vector<Fd> to_next, from_prev(static_cast<size_t>(options.rings));
  for (int ring = 0; ring < options.rings; ++ring) {
    ASSIGN_OR_RETURN(Fd fd, ToNext(next, static_cast<uint8_t>(ring), tuning, deadline, clock));
    to_next.push_back(std::move(fd));
  }
  for (int ring = 0; ring < options.rings; ++ring) {
    RETURN_IF_ERROR(FromPrev(listener, tuning, deadline, clock, &from_prev));
  }
  std::vector<std::unique_ptr<PeerChannel>> channels;
  for (size_t ring = 0; ring < to_next.size(); ++ring) {
    channels.push_back(MakeLinkChannel(
        options.party, std::make_unique<PlainLink>(std::move(from_prev[ring])),
        std::make_unique<PlainLink>(std::move(to_next[ring])), clock));
  }
  return channels;
}

}  // namespace mpckdc
