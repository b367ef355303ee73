// SPDX-License-Identifier: Apache-2.0
//
// Simulated machines: a clock each that can be set off, links between the three servers with delay,
// loss of connection and corruption, and what an engine is injected with.
#ifndef MPC_SERVER_SIM_NETWORK_H_
#define MPC_SERVER_SIM_NETWORK_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "mpc-server/batch/executor.h"
#include "mpc-server/batch/peer_link.h"
#include "mpc-server/clock/clock.h"
#include "mpc-server/clock/random_source.h"
#include "mpc-server/sim/fibers.h"
#include "mpc-server/transport/peer_channel.h"

namespace mpckdc::sim {

// Uniform numbers from a seed, for everything that is not cryptography.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  uint64_t Below(uint64_t n);
  bool Chance(double p) { return static_cast<double>(Below(1 << 30)) < p * (1 << 30); }
  absl::Duration Between(absl::Duration a, absl::Duration b);

 private:
  SeededRandomForTest random_;
};

class SimClock : public Clock {
 public:
  explicit SimClock(Scheduler* scheduler) : scheduler_(scheduler) {}
  absl::Time Now() override { return scheduler_->now() + offset_; }
  void SleepUntil(absl::Time when) override { scheduler_->SleepUntil(when - offset_); }
  // This clock's time in the simulation's.
  absl::Time Global(absl::Time local) const { return local - offset_; }
  void Set(absl::Duration offset) { offset_ = offset; }

 private:
  Scheduler* const scheduler_;
  absl::Duration offset_;
};

// The engine's thread as a fiber.
class SimExecutor : public Executor {
 public:
  SimExecutor(Scheduler* scheduler, SimClock* clock) : scheduler_(scheduler), clock_(clock) {}

  void Start(const std::string& name, absl::AnyInvocable<void()> body) override;
  void Join() override;
  void Wait(absl::Mutex* mu, absl::Time deadline) override;
  void Wake() override;
  Fiber* fiber() const { return fiber_; }

 private:
  Scheduler* const scheduler_;
  SimClock* const clock_;
  Fiber* fiber_ = nullptr;
};

class SimChannel;
class SimLink;

// The network between the three. A link is a pair of parties.
class Network {
 public:
  // Called at every channel operation with its named step, before it is done; true: the process
  // that called it was killed there.
  using StepHook = std::function<bool(int party, const std::string& step)>;

  Network(Scheduler* scheduler, Dice* dice) : scheduler_(scheduler), dice_(dice) {}

  std::unique_ptr<PeerLink> Link(int party, SimClock* clock);

  void SetStepHook(StepHook hook) { hook_ = std::move(hook); }
  void SetDelay(absl::Duration low, absl::Duration high) { low_ = low, high_ = high; }
  // Frames already under way are lost; both ends see the connection closed.
  void Cut(int a, int b);
  // No new connection, nothing arrives, until it is healed. Both ends see silence.
  void Partition(int a, int b, bool on) { partitioned_[Pair(a, b)] = on; }
  // Flips a bit of the next control frame from a to b.
  void CorruptNextControl(int a, int b) { corrupt_[{a, b}] = true; }
  // A process died: its connections close, its links do not connect any more.
  void Kill(int party);

  uint64_t frames() const { return frames_; }

 private:
  friend class SimChannel;
  friend class SimLink;

  struct Wire {
    FrameHeader header;
    SecretBytes payload;
  };
  // One direction of one connection.
  struct Pipe {
    std::deque<Wire> arrived;
    bool closed = false;
    absl::Time last;  // arrival time of the last frame: frames do not overtake each other
    Fiber* reader = nullptr;
  };
  // The connections of one session of the ring, as all three got them.
  struct Ring {
    std::map<std::pair<int, int>, Pipe> pipes;  // (from, to)
  };

  static std::pair<int, int> Pair(int a, int b) { return {std::min(a, b), std::max(a, b)}; }
  void CloseRing(const std::shared_ptr<Ring>& ring, int party);
  void Deliver(const std::shared_ptr<Ring>& ring, int from, int to, Wire wire);

  Scheduler* const scheduler_;
  Dice* const dice_;
  StepHook hook_;
  absl::Duration low_ = absl::Microseconds(100), high_ = absl::Milliseconds(1);
  std::map<std::pair<int, int>, bool> partitioned_, corrupt_;
  std::array<SimLink*, 3> links_{};    // of the processes that live
  std::array<SimLink*, 3> waiting_{};  // those of them inside Connect()
  std::array<std::shared_ptr<Ring>, 3> current_;
  uint64_t frames_ = 0;
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_NETWORK_H_
