// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/fibers.h"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <utility>

#include "absl/synchronization/mutex.h"

namespace mpckdc::sim {
namespace {
constexpr size_t kStackBytes = 1 << 20;
}  // namespace

class Fiber {
 public:
  Fiber(std::string name, absl::AnyInvocable<void()> body)
      : name_(std::move(name)), body_(std::move(body)) {}
  ~Fiber() {
    if (stack_ != nullptr) munmap(stack_, kStackBytes);
  }

  std::string name_;
  absl::AnyInvocable<void()> body_;
  ucontext_t context_{};
  void* stack_ = nullptr;
  bool started_ = false, done_ = false, ready_ = false, waiting_ = false;
  bool held_ = false;  // it was ready while it was paused
  uint64_t wait_ = 0;  // number of the wait under way: an older timer does not end it
  absl::Time paused_until_ = absl::InfinitePast();
};

namespace {

void Run(unsigned low, unsigned high) {
  const uintptr_t bits = static_cast<uintptr_t>(low) | static_cast<uintptr_t>(high) << 32;
  auto* fiber = reinterpret_cast<Fiber*>(bits);
  fiber->body_();
  fiber->done_ = true;
  // Returning continues at uc_link, the scheduler.
}

}  // namespace

// The search for cycles of locks goes by threads: what a fiber holds that was set aside it takes for
// held by the next one, which waits for nobody but by this scheduler.
Scheduler::Scheduler(absl::Time start) : now_(start) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

Scheduler::~Scheduler() {
  for (const auto& fiber : fibers_) assert(fiber->done_ || !fiber->started_);
  for (void* stack : spare_stacks_) munmap(stack, kStackBytes);
}

// Stacks of fibers that have ended are used again: a run has hundreds of short fibers.
void* Scheduler::TakeStack() {
  if (!spare_stacks_.empty()) {
    void* const stack = spare_stacks_.back();
    spare_stacks_.pop_back();
    return stack;
  }
  void* const stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) abort();
  return stack;
}

Fiber* Scheduler::Spawn(std::string name, absl::AnyInvocable<void()> body) {
  fibers_.push_back(std::make_unique<Fiber>(std::move(name), std::move(body)));
  MakeReady(fibers_.back().get());
  return fibers_.back().get();
}

void Scheduler::At(absl::Time when, absl::AnyInvocable<void()> event) {
  events_.push_back({std::max(when, now_), ++order_, std::move(event)});
  std::push_heap(events_.begin(), events_.end());
}

void Scheduler::MakeReady(Fiber* fiber) {
  if (fiber->ready_ || fiber->done_) return;
  fiber->ready_ = true;
  ready_.push_back(fiber);
}

void Scheduler::Wait(absl::Time deadline) {
  Fiber* const fiber = current_;
  assert(fiber != nullptr);
  const uint64_t wait = ++fiber->wait_;
  fiber->waiting_ = true;
  if (deadline != absl::InfiniteFuture()) {
    At(deadline, [this, fiber, wait] {
      if (fiber->waiting_ && fiber->wait_ == wait) MakeReady(fiber);
    });
  }
  swapcontext(&fiber->context_, &main_);
  fiber->waiting_ = false;
}

void Scheduler::SleepUntil(absl::Time when) {
  while (now_ < when) Wait(when);
}

void Scheduler::Wake(Fiber* fiber) {
  if (fiber != nullptr && fiber->waiting_) MakeReady(fiber);
}

bool Scheduler::Done(const Fiber* fiber) const { return fiber->done_; }

void Scheduler::Pause(Fiber* fiber, absl::Time until) {
  fiber->paused_until_ = until;
  if (until <= now_ && std::exchange(fiber->held_, false)) MakeReady(fiber);
}

absl::Time Scheduler::PausedUntil(const Fiber* fiber) const { return fiber->paused_until_; }

void Scheduler::SwitchTo(Fiber* fiber) {
  fiber->ready_ = false;
  if (fiber->paused_until_ > now_) {
    fiber->held_ = true;
    At(fiber->paused_until_, [this, fiber] {
      if (std::exchange(fiber->held_, false)) MakeReady(fiber);
    });
    return;
  }
  current_ = fiber;
  if (!fiber->started_) {
    fiber->started_ = true;
    fiber->stack_ = TakeStack();
    getcontext(&fiber->context_);
    fiber->context_.uc_stack.ss_sp = fiber->stack_;
    fiber->context_.uc_stack.ss_size = kStackBytes;
    fiber->context_.uc_link = &main_;
    const auto bits = reinterpret_cast<uintptr_t>(fiber);
    makecontext(&fiber->context_, reinterpret_cast<void (*)()>(&Run), 2,
                static_cast<unsigned>(bits), static_cast<unsigned>(bits >> 32));
  }
  swapcontext(&main_, &fiber->context_);
  current_ = nullptr;
  if (!fiber->done_) return;
  spare_stacks_.push_back(std::exchange(fiber->stack_, nullptr));
  fiber->body_ = nullptr;
}

void Scheduler::RunUntil(absl::Time end) {
  while (true) {
    while (!ready_.empty()) {
      Fiber* const next = ready_.front();
      ready_.pop_front();
      SwitchTo(next);
    }
    if (events_.empty() || events_.front().when > end) break;
    std::pop_heap(events_.begin(), events_.end());
    Event event = std::move(events_.back());
    events_.pop_back();
    now_ = std::max(now_, event.when);
    event.run();
  }
  now_ = std::max(now_, end);
}

}  // namespace mpckdc::sim
