// SPDX-License-Identifier: Apache-2.0
// PeerChannel over two links: every call drives both links until its own part is done.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/wire/line_state.h"
#include "mpc-server/wire/link_channel.h"
#include "mpc-server/wire/posted_rounds.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc {
namespace {

constexpr int64_t kPatience = 10;  // ms to wait for a whole frame before looking at a part

class LinkChannel : public PeerChannel {
 public:
  LinkChannel(int party, std::unique_ptr<Link> prev, std::unique_ptr<Link> next, Clock& clock)
      : party_(party), clock_(clock), prev_(std::move(prev)), next_(std::move(next)) {}

  absl::Status Post(const RoundId& id, absl::Span<const uint8_t> to_next,
                    absl::Span<const uint8_t> to_prev) override;
  absl::Status Collect(const RoundId& id, absl::Span<uint8_t> from_prev,
                       absl::Span<uint8_t> from_next, absl::Time deadline) override;
  absl::Status Send(Neighbour to, FrameType type, absl::Span<const uint8_t> payload) override;
  absl::StatusOr<Frame> Receive(Neighbour from, absl::Time deadline) override;
  void BindSession(uint32_t session) override { session_ = session; }
  void LimitUnsent(size_t bytes) override;
  ChannelCounters Counters() const override;
  LineState Line(Neighbour n) const override {
    return MeasuredLine(n == Neighbour::kPrev ? prev_->fd() : next_->fd());
  }

 private:
  Link& LinkTo(Neighbour n) { return n == Neighbour::kPrev ? *prev_ : *next_; }
  std::string Who(Neighbour n) const {
    return absl::StrCat(NeighbourName(n), " (P",
                        n == Neighbour::kPrev ? PrevParty(party_) : NextParty(party_), ")");
  }
  absl::Status Fail(Neighbour n, absl::string_view step, const absl::Status& cause);
  // The status of a neighbour that hung up, with its last word if there is one.
  absl::Status Gone(Neighbour n);
  // One step of a link's part; done flags are only ever set.
  absl::Status Drive(Neighbour n, absl::string_view step, const Progress& progress, bool* done);
  // Waits until a link can go on, or `watched` hangs up. False: the deadline passed.
  bool Wait(absl::Time deadline, const Link* watched = nullptr);

  const int party_;
  Clock& clock_;
  std::unique_ptr<Link> prev_, next_;
  uint32_t session_ = 0;
  absl::Status broken_;
  PostedRounds posted_;
};

absl::Status LinkChannel::Fail(Neighbour n, absl::string_view step, const absl::Status& cause) {
  broken_ = absl::Status(cause.code(),
                         absl::StrCat(Who(n), " in step \"", step, "\": ", cause.message()));
  prev_->Abandon();
  next_->Abandon();
  return broken_;
}

absl::Status LinkChannel::Gone(Neighbour n) {
  FrameHeader header;
  SecretBytes payload;
  const Progress last = LinkTo(n).ReadFrame(&header, &payload);
  return Fail(n, "receive",
              last.ok() ? absl::UnavailableError("connection closed") : last.status());
}

absl::Status LinkChannel::Drive(Neighbour n, absl::string_view step, const Progress& progress,
                                   bool* done) {
  if (!progress.ok()) return Fail(n, step, progress.status());
  *done = *progress;
  return absl::OkStatus();
}

bool HungUp(const Link& link) {
  pollfd fd = {link.fd(), POLLRDHUP, 0};
  return poll(&fd, 1, 0) > 0;
}

// Mostly the peer sends what is expected, so one wake-up per frame is enough. When nothing came for
// a while, it may be that something shorter did: an abort.
bool LinkChannel::Wait(absl::Time deadline, const Link* watched) {
  pollfd fds[2] = {{prev_->fd(), prev_->Events(), 0}, {next_->fd(), next_->Events(), 0}};
  for (pollfd& f : fds) {
    if (watched != nullptr && f.fd == watched->fd()) f.events |= POLLRDHUP;
  }
  const auto put_off = [&](bool whole) {
    bool any = false;
    if (fds[0].events & POLLIN) any = prev_->PutOffWaking(whole);
    if (fds[1].events & POLLIN) any = next_->PutOffWaking(whole) || any;
    return any;
  };
  for (pollfd& f : fds) {
    if (f.events == 0) f.fd = -1;  // else a hang-up that nobody waits for would spin
  }
  bool whole = true;
  while (true) {
    const absl::Duration left = deadline - clock_.Now();
    if (left <= absl::ZeroDuration()) return false;
    const bool patient = whole && put_off(whole);
    const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
    const int64_t limit = patient ? kPatience : 60000;
    const int rc = poll(fds, 2, static_cast<int>(std::min(ms, limit)));
    if (rc > 0 || (rc < 0 && errno != EINTR)) return true;
    if (patient) put_off(whole = false);
  }
}

FrameHeader RoundHeader(const RoundId& id, size_t size) {
  return {FrameType::kRound, id.round, id.session, id.batch, static_cast<uint32_t>(size)};
}

absl::Status LinkChannel::Post(const RoundId& id, absl::Span<const uint8_t> to_next,
                                  absl::Span<const uint8_t> to_prev) {
  if (!broken_.ok()) return broken_;
  if (!to_next.empty()) next_->QueueReferring(RoundHeader(id, to_next.size()), to_next);
  if (!to_prev.empty()) prev_->QueueReferring(RoundHeader(id, to_prev.size()), to_prev);
  posted_.Push(id, next_->queued(), prev_->queued());
  bool done = false;
  absl::Status s = Drive(Neighbour::kNext, id.step, next_->Flush(), &done);
  if (s.ok()) s = Drive(Neighbour::kPrev, id.step, prev_->Flush(), &done);
  return s;
}

absl::Status LinkChannel::Collect(const RoundId& id, absl::Span<uint8_t> from_prev,
                                     absl::Span<uint8_t> from_next, absl::Time deadline) {
  if (!broken_.ok()) return broken_;
  const absl::StatusOr<PostedRound> round = posted_.Pop(id);
  if (!round.ok()) return broken_ = round.status();
  bool got_prev = from_prev.empty(), got_next = from_next.empty(), flushed = false;
  next_->ForgetEvents();
  prev_->ForgetEvents();
  const auto drive = [&]() -> absl::Status {
    absl::Status s = Drive(Neighbour::kNext, id.step, next_->Flush(), &flushed);
    if (s.ok()) s = Drive(Neighbour::kPrev, id.step, prev_->Flush(), &flushed);
    if (s.ok() && !got_prev) {
      s = Drive(Neighbour::kPrev, id.step,
                prev_->ReadInto(RoundHeader(id, from_prev.size()), from_prev), &got_prev);
    }
    if (s.ok() && !got_next) {
      s = Drive(Neighbour::kNext, id.step,
                next_->ReadInto(RoundHeader(id, from_next.size()), from_next), &got_next);
    }
    return s;
  };
  while (true) {
    RETURN_IF_ERROR(drive());
    const bool sent_prev = prev_->sent() >= round->prev_end;
    if (got_prev && got_next && sent_prev && next_->sent() >= round->next_end) {
      return absl::OkStatus();
    }
    if (!Wait(deadline)) {
      return Fail(got_prev && sent_prev ? Neighbour::kNext : Neighbour::kPrev, id.step,
                  absl::DeadlineExceededError("nothing moved before the deadline"));
    }
  }
}

absl::Status LinkChannel::Send(Neighbour to, FrameType type,
                                  absl::Span<const uint8_t> payload) {
  if (!broken_.ok()) {
    if (type == FrameType::kAbort) {
      LinkTo(to).Queue({type, 0, session_, 0, static_cast<uint32_t>(payload.size())}, payload);
      static_cast<void>(LinkTo(to).Flush());
    }
    return broken_;
  }
  LinkTo(to).Queue({type, 0, session_, 0, static_cast<uint32_t>(payload.size())}, payload);
  bool done = false;
  return Drive(to, FrameTypeName(type), LinkTo(to).Flush(), &done);
}

// A neighbour that is gone ends the session also for who waits for the other one. Otherwise three
// servers that reconnect could follow each other round the ring for ever, each waiting for its prev
// with a next that has given up.
absl::StatusOr<Frame> LinkChannel::Receive(Neighbour from, absl::Time deadline) {
  if (!broken_.ok()) return broken_;
  const Neighbour other = from == Neighbour::kPrev ? Neighbour::kNext : Neighbour::kPrev;
  bool flushed = false, flushed_other = false, got = false;
  FrameHeader header;
  Frame frame;
  next_->ForgetEvents();
  prev_->ForgetEvents();
  while (true) {
    absl::Status s;
    if (!flushed) s = Drive(from, "send", LinkTo(from).Flush(), &flushed);
    if (s.ok() && !flushed_other) s = Drive(other, "send", LinkTo(other).Flush(), &flushed_other);
    if (s.ok()) s = Drive(from, "receive", LinkTo(from).ReadFrame(&header, &frame.payload), &got);
    if (!s.ok()) return s;
    if (got) break;
    if (HungUp(LinkTo(other))) return Gone(other);
    if (!Wait(deadline, &LinkTo(other))) {
      return absl::DeadlineExceededError(absl::StrCat(Who(from), ": nothing received"));
    }
  }
  if (absl::Status s = CheckControlHeader(session_, header); !s.ok()) {
    return Fail(from, "receive", s);
  }
  frame.type = header.type;
  return frame;
}

void LinkChannel::LimitUnsent(size_t bytes) {
  const int limit = static_cast<int>(std::min(bytes, size_t{INT_MAX}));
  for (const Link* link : {prev_.get(), next_.get()}) {
    setsockopt(link->fd(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &limit, sizeof(limit));
  }
}

ChannelCounters LinkChannel::Counters() const {
  const ChannelCounters& p = prev_->counters();
  const ChannelCounters& n = next_->counters();
  return {p.frames_sent + n.frames_sent, p.bytes_sent + n.bytes_sent,
          p.frames_received + n.frames_received, p.bytes_received + n.bytes_received};
}

}  // namespace

std::unique_ptr<PeerChannel> MakeLinkChannel(int party, std::unique_ptr<Link> prev,
                                             std::unique_ptr<Link> next, Clock& clock) {
  return std::make_unique<LinkChannel>(party, std::move(prev), std::move(next), clock);
}

}  // namespace mpckdc
