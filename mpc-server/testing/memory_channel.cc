// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/memory_channel.h"

#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/testing/frame_channel.h"

namespace mpckdc {

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
  static constexpr size_t kSpares = 16;  // buffers kept: as many rounds may be under way

  absl::Mutex mutex_;
  std::deque<MemoryFrame> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<SecretBytes> spare_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

struct MemoryRing::State {
  absl::Mutex interceptor_mutex;
  Interceptor interceptor;
  Pipe pipes[kParties][kParties];  // [from][to]
  std::vector<std::unique_ptr<Channel>> channels;
};

class MemoryRing::Channel : public FrameChannel {
 public:
  Channel(State& state, int party) : FrameChannel(party), state_(state) {}
  ChannelCounters Counters() const override { return counters_; }

 private:
  absl::Status Fail(Neighbour n, absl::string_view step, const absl::Status& cause) override {
    broken_ =
        absl::Status(cause.code(), absl::StrCat(NeighbourName(n), " (P", Party(n), ") in step \"",
                                                step, "\": ", cause.message()));
    return broken_;
  }

  absl::Status Put(Neighbour to, const FrameHeader& header, absl::string_view step,
                   absl::Span<const uint8_t> payload) override {
    Pipe& pipe = state_.pipes[party_][Party(to)];
    MemoryFrame frame;
    WriteFrameHeader(header, frame.header);
    frame.payload = pipe.Recycled(payload.size());
    if (!payload.empty()) std::memcpy(frame.payload.data(), payload.data(), payload.size());
    ++counters_.frames_sent;
    counters_.bytes_sent += kFrameHeaderSize + payload.size();
    if (state_.interceptor != nullptr) {
      Intercepted seen{party_,
                       Party(to),
                       header.type,
                       std::string(step),
                       header.round,
                       absl::MakeSpan(frame.header),
                       absl::MakeSpan(frame.payload)};
      absl::MutexLock lock(&state_.interceptor_mutex);
      state_.interceptor(seen);
      if (seen.drop) return absl::OkStatus();
      if (seen.instead.has_value()) {
        FrameHeader longer = header;
        longer.length = static_cast<uint32_t>(seen.instead->size());
        WriteFrameHeader(longer, frame.header);
        frame.payload.assign(seen.instead->begin(), seen.instead->end());
      }
    }
    pipe.Put(std::move(frame));
    return absl::OkStatus();
  }

  absl::Status Next(Neighbour from, bool, absl::Time deadline, FrameHeader* header,
                    SecretBytes* payload) override {
    MemoryFrame frame;
    ASSIGN_OR_RETURN(bool got, state_.pipes[Party(from)][party_].Take(deadline, &frame));
    if (!got) return absl::DeadlineExceededError("nothing received");
    ++counters_.frames_received;
    counters_.bytes_received += kFrameHeaderSize + frame.payload.size();
    return Open(frame.header, std::move(frame.payload), header, payload);
  }

  void Recycle(Neighbour from, SecretBytes bytes) override {
    state_.pipes[Party(from)][party_].Recycle(std::move(bytes));
  }

  State& state_;
  ChannelCounters counters_;
};

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
