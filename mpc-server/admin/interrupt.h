// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_INTERRUPT_H_
#define MPC_SERVER_ADMIN_INTERRUPT_H_

#include <signal.h>

namespace mpckdc::admin {

// While it lives, the first Ctrl-C (SIGINT) or SIGTERM only asks to stop, so that a long command can
// end what it has begun; the second one ends the process as always. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool requested() const;

 private:
  struct sigaction old_interrupt_;
  struct sigaction old_terminate_;
};

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_INTERRUPT_H_
