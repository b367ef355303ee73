// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/memory_channel.h"

#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/wire/posted_rounds.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc {

namespace {
constexpr size_t kSpares = 16;  // buffers kept per direction: as many rounds may be under way
}  // namespace

struct MemoryFrame {
  uint8_t header[kFrameHeaderSize];
  SecretBytes payload;
};

// One direction between two parties. Memory of delivered frames is reused.
class MemoryRing::Pipe {
 public:
  void Put(MemoryFrame frame) {
    absl::MutexLock lock(&mutex_);
    queue_.push_back(std::move(frame));
  }

  // False: nothing came before the deadline.
  absl::StatusOr<bool> Take(absl::Time deadline, MemoryFrame* frame) {
    absl::MutexLock lock(&mutex_);
    const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return closed_ || !queue_.empty();
    };
    if (!mutex_.AwaitWithDeadline(absl::Condition(&ready), deadline)) return false;
    if (queue_.empty()) return absl::UnavailableError("connection closed");
    *frame = std::move(queue_.front());
    queue_.pop_front();
    return true;
  }

  SecretBytes Recycled(size_t size) {
    SecretBytes bytes;
    {
      absl::MutexLock lock(&mutex_);
      if (!spare_.empty()) {
        bytes = std::move(spare_.back());
        spare_.pop_back();
      }
    }
    bytes.resize(size);
    return bytes;
  }
  void Recycle(SecretBytes bytes) {
    absl::MutexLock lock(&mutex_);
    if (spare_.size() < kSpares) spare_.push_back(std::move(bytes));
  }

  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

 private:
  absl::Mutex mutex_;
  std::deque<MemoryFrame> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<SecretBytes> spare_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

class MemoryRing::Channel : public PeerChannel {
 public:
  Channel(State& state, int party) : state_(state), party_(party) {}

  absl::Status Post(const RoundId& id, absl::Span<const uint8_t> to_next,
                    absl::Span<const uint8_t> to_prev) override;
  absl::Status Collect(const RoundId& id, absl::Span<uint8_t> from_prev,
                       absl::Span<uint8_t> from_next, absl::Time deadline) override;
  absl::Status Send(Neighbour to, FrameType type, absl::Span<const uint8_t> payload) override;
  absl::StatusOr<Frame> Receive(Neighbour from, absl::Time deadline) override;
  void BindSession(uint32_t session) override { session_ = session; }
  ChannelCounters Counters() const override { return counters_; }

 private:
  int Party(Neighbour n) const {
    return n == Neighbour::kNext ? NextParty(party_) : PrevParty(party_);
  }
  absl::Status Fail(Neighbour n, absl::string_view step, const absl::Status& cause);
  absl::Status Deliver(Neighbour to, const FrameHeader& header, absl::string_view step,
                       absl::Span<const uint8_t> payload);
  absl::Status TakeRound(Neighbour from, const RoundId& id, absl::Span<uint8_t> out,
                         absl::Time deadline);
  // The next frame, parsed; kAbort becomes Aborted.
  absl::Status Take(Neighbour from, absl::Time deadline, FrameHeader* header, SecretBytes* payload);

  State& state_;
  const int party_;
  uint32_t session_ = 0;
  absl::Status broken_;
  PostedRounds posted_;
  ChannelCounters counters_;
};

struct MemoryRing::State {
  absl::Mutex interceptor_mutex;
  Interceptor interceptor;
  Pipe pipes[kParties][kParties];  // [from][to]
  std::vector<std::unique_ptr<Channel>> channels;
};

absl::Status MemoryRing::Channel::Fail(Neighbour n, absl::string_view step,
                                       const absl::Status& cause) {
  broken_ = absl::Status(cause.code(), absl::StrCat(NeighbourName(n), " (P", Party(n),
                                                    ") in step \"", step, "\": ", cause.message()));
  return broken_;
}

absl::Status MemoryRing::Channel::Deliver(Neighbour to, const FrameHeader& header,
                                          absl::string_view step,
                                          absl::Span<const uint8_t> payload) {
  if (!broken_.ok() && header.type != FrameType::kAbort) return broken_;
  Pipe& pipe = state_.pipes[party_][Party(to)];
  MemoryFrame frame;
  WriteFrameHeader(header, frame.header);
  frame.payload = pipe.Recycled(payload.size());
  if (!payload.empty()) std::memcpy(frame.payload.data(), payload.data(), payload.size());
  ++counters_.frames_sent;
  counters_.bytes_sent += kFrameHeaderSize + payload.size();
  if (state_.interceptor != nullptr) {
    Intercepted seen{party_,       Party(to), header.type, std::string(step), header.round,
                     absl::MakeSpan(frame.header), absl::MakeSpan(frame.payload)};
    absl::MutexLock lock(&state_.interceptor_mutex);
    state_.interceptor(seen);
    if (seen.drop) return absl::OkStatus();
  }
  pipe.Put(std::move(frame));
  return absl::OkStatus();
}

absl::Status MemoryRing::Channel::Take(Neighbour from, absl::Time deadline, FrameHeader* header,
                                       SecretBytes* payload) {
  MemoryFrame frame;
  ASSIGN_OR_RETURN(bool got, state_.pipes[Party(from)][party_].Take(deadline, &frame));
  if (!got) return absl::DeadlineExceededError("nothing received");
  RETURN_IF_ERROR(ReadFrameHeader(frame.header, header));
  if (header->length != frame.payload.size()) {
    return absl::DataLossError("frame header: payload length differs from what follows");
  }
  ++counters_.frames_received;
  counters_.bytes_received += kFrameHeaderSize + frame.payload.size();
  *payload = std::move(frame.payload);
  if (header->type == FrameType::kAbort) {
    return absl::AbortedError(std::string(payload->begin(), payload->end()));
  }
  return absl::OkStatus();
}

absl::Status MemoryRing::Channel::TakeRound(Neighbour from, const RoundId& id,
                                            absl::Span<uint8_t> out, absl::Time deadline) {
  FrameHeader header;
  SecretBytes payload;
  absl::Status s = Take(from, deadline, &header, &payload);
  if (s.ok()) {
    s = CheckFrameHeader({FrameType::kRound, id.round, id.session, id.batch,
                          static_cast<uint32_t>(out.size())},
                         header);
  }
  if (!s.ok()) return Fail(from, id.step, s);
  std::memcpy(out.data(), payload.data(), out.size());
  state_.pipes[Party(from)][party_].Recycle(std::move(payload));
  return absl::OkStatus();
}

absl::Status MemoryRing::Channel::Post(const RoundId& id, absl::Span<const uint8_t> to_next,
                                       absl::Span<const uint8_t> to_prev) {
  if (!broken_.ok()) return broken_;
  const auto deliver = [&](Neighbour to, absl::Span<const uint8_t> payload) {
    if (payload.empty()) return absl::OkStatus();
    return Deliver(to, {FrameType::kRound, id.round, id.session, id.batch,
                        static_cast<uint32_t>(payload.size())},
                   id.step, payload);
  };
  posted_.Push(id);
  absl::Status s = deliver(Neighbour::kNext, to_next);
  if (s.ok()) s = deliver(Neighbour::kPrev, to_prev);
  return s;
}

absl::Status MemoryRing::Channel::Collect(const RoundId& id, absl::Span<uint8_t> from_prev,
                                          absl::Span<uint8_t> from_next, absl::Time deadline) {
  if (!broken_.ok()) return broken_;
  absl::Status s = posted_.Pop(id).status();
  if (!s.ok()) return broken_ = s;
  if (!from_prev.empty()) s = TakeRound(Neighbour::kPrev, id, from_prev, deadline);
  if (s.ok() && !from_next.empty()) s = TakeRound(Neighbour::kNext, id, from_next, deadline);
  return s;
}

absl::Status MemoryRing::Channel::Send(Neighbour to, FrameType type,
                                       absl::Span<const uint8_t> payload) {
  return Deliver(to, {type, 0, session_, 0, static_cast<uint32_t>(payload.size())},
                 FrameTypeName(type), payload);
}

absl::StatusOr<Frame> MemoryRing::Channel::Receive(Neighbour from, absl::Time deadline) {
  if (!broken_.ok()) return broken_;
  FrameHeader header;
  Frame frame;
  absl::Status s = Take(from, deadline, &header, &frame.payload);
  if (absl::IsDeadlineExceeded(s)) return s;
  if (s.ok()) s = CheckControlHeader(session_, header);
  if (!s.ok()) return Fail(from, "receive", s);
  frame.type = header.type;
  return frame;
}

MemoryRing::MemoryRing() : state_(std::make_unique<State>()) {
  for (int p = 0; p < kParties; ++p) {
    state_->channels.push_back(std::make_unique<Channel>(*state_, p));
  }
}
MemoryRing::~MemoryRing() = default;

PeerChannel& MemoryRing::channel(int party) {
  return *state_->channels[static_cast<size_t>(party)];
}

void MemoryRing::SetInterceptor(Interceptor interceptor) {
  state_->interceptor = std::move(interceptor);
}

void MemoryRing::Close() {
  for (auto& row : state_->pipes) {
    for (Pipe& pipe : row) pipe.Close();
  }
}

}  // namespace mpckdc
