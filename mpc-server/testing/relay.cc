// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/relay.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "mpc-server/wire/frame_format.h"

namespace mpckdc {
namespace {

constexpr size_t kTlsHeaderSize = 5;

bool Ready(int fd, short events, int ms) {
  pollfd p = {fd, events, 0};
  return poll(&p, 1, ms) > 0;
}

void SendAll(const Fd& to, const std::vector<uint8_t>& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = send(to.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n > 0) {
      at += static_cast<size_t>(n);
    } else if (errno != EAGAIN || !Ready(to.get(), POLLOUT, 2000)) {
      return;
    }
  }
}

bool IsFrame(const std::vector<uint8_t>& bytes) { return bytes[0] == kFrameVersion; }

size_t HeaderSize(const std::vector<uint8_t>& bytes) {
  return IsFrame(bytes) ? kFrameHeaderSize : kTlsHeaderSize;
}

}  // namespace

// The length of the record that `bytes` begins with; 0 if that is not to be seen yet.
size_t TestRelay::RecordSize(const Bytes& bytes) const {
  if (!bytes.empty() && bytes[0] == 0) return 1;  // ConnectPlain()'s number of the ring
  if (bytes.empty() || bytes.size() < HeaderSize(bytes)) return 0;
  if (!IsFrame(bytes)) return kTlsHeaderSize + size_t{bytes[3]} * 256 + bytes[4];
  FrameHeader header;
  if (!ReadFrameHeader(bytes.data(), &header).ok()) std::abort();
  return kFrameHeaderSize + header.length + tag_size_;
}

TestRelay::TestRelay(std::string target, size_t tag_size)
    : target_(std::move(target)),
      tag_size_(tag_size),
      listener_(ListenOn("127.0.0.1:0", {}).value()),
      thread_([this] { Run(); }) {}

TestRelay::~TestRelay() {
  stop_ = true;
  thread_.join();
}

std::string TestRelay::address() const {
  return absl::StrCat("127.0.0.1:", LocalPort(listener_));
}

void TestRelay::Run() {
  while (!stop_) {
    if (!Ready(listener_.get(), POLLIN, 20)) continue;
    const Fd from = AcceptOne(listener_, {});
    const Fd to = ToTarget();
    if (from.valid() && to.valid()) Pass(from, to);
  }
}

// The target may not listen yet.
Fd TestRelay::ToTarget() const {
  while (!stop_) {
    Fd to = StartConnect(target_, {}).value();
    Ready(to.get(), POLLOUT, 2000);
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(to.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0) return to;
    usleep(10'000);
  }
  return Fd();
}

void TestRelay::Pass(const Fd& from, const Fd& to) {
  Bytes pending, chunk(64 << 10);
  held_.clear();
  while (!stop_) {
    pollfd both[2] = {{from.get(), POLLIN, 0}, {to.get(), POLLIN, 0}};
    if (poll(both, 2, 20) <= 0) continue;
    for (int side = 0; side < 2; ++side) {
      if (both[side].revents == 0) continue;
      const ssize_t n = recv(both[side].fd, chunk.data(), chunk.size(), 0);
      if (n <= 0) return;
      const Bytes got(chunk.begin(), chunk.begin() + n);
      if (side == 1) {
        SendAll(from, got);
      } else {
        pending.insert(pending.end(), got.begin(), got.end());
        if (!PassRecords(&pending, to)) return;
      }
    }
  }
}

bool TestRelay::PassRecords(Bytes* pending, const Fd& to) {
  while (true) {
    const size_t size = RecordSize(*pending);
    if (size == 0 || size > pending->size()) return true;
    const auto end = pending->begin() + static_cast<std::ptrdiff_t>(size);
    Bytes record(pending->begin(), end);
    pending->erase(pending->begin(), end);
    ++(IsFrame(record) ? frames_ : tls_records_);
    if (!PassOne(std::move(record), to)) return false;
  }
}

bool TestRelay::PassOne(Bytes record, const Fd& to) {
  switch (attack_.exchange(Attack::kNone)) {
    case Attack::kNone:
      break;
    case Attack::kFlipHeader:
      record[IsFrame(record) ? 7 : 1] ^= 1;  // the session, TLS's version
      break;
    case Attack::kFlipPayload:
      record[(HeaderSize(record) + record.size() - tag_size_) / 2] ^= 1;
      break;
    case Attack::kFlipEnd:
      record.back() ^= 1;
      break;
    case Attack::kReplay:
      SendAll(to, record);
      break;
    case Attack::kReorder:
      held_ = std::move(record);
      return true;
    case Attack::kDrop:
      return true;
    case Attack::kTruncate:
      record.resize(record.size() / 2);
      SendAll(to, record);
      return false;
  }
  SendAll(to, record);
  SendAll(to, held_);
  held_.clear();
  return true;
}

}  // namespace mpckdc
