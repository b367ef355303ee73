// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/flow.h"

#include <utility>

#include "mpc-server/base/status_macros.h"

namespace mpckdc {

void Flow::Start(Circuit& circuit, std::function<void()> then) {
  if (!circuit.Done()) {
    running_.push_back({&circuit, std::move(then), {}});
  } else if (then) {
    then();
  }
}

RoundShape Flow::NextRound() const {
  RoundShape all;
  RoundShape::Incoming in;
  bool roles = false;
  for (const Running& running : running_) {
    const RoundShape shape = running.circuit->NextRound();
    all.to_next += shape.to_next;
    all.to_prev += shape.to_prev;
    in.from_prev += shape.from_prev();
    in.from_next += shape.from_next();
    roles = roles || shape.in.has_value();
    all.checked_to_next += shape.checked_to_next;
    all.checked_to_prev += shape.checked_to_prev;
    all.step = shape.step;
  }
  if (roles) all.in = in;
  return all;
}

void Flow::Produce(ZeroShares& zero, RoundOut out) {
  size_t next = 0, prev = 0;
  for (Running& running : running_) {
    running.shape = running.circuit->NextRound();
    running.circuit->Produce(zero, {out.to_next.subspan(next, running.shape.to_next),
                                    out.to_prev.subspan(prev, running.shape.to_prev)});
    next += running.shape.to_next;
    prev += running.shape.to_prev;
  }
}

absl::Status Flow::Consume(RoundIn in) {
  size_t from_prev = 0, from_next = 0;
  for (const Running& running : running_) {
    RETURN_IF_ERROR(
        running.circuit->Consume({in.from_prev.subspan(from_prev, running.shape.from_prev()),
                                  in.from_next.subspan(from_next, running.shape.from_next())}));
    from_prev += running.shape.from_prev();
    from_next += running.shape.from_next();
  }
  // Those that begin now come after those that go on: the same order at the three parties.
  ended_.clear();
  size_t kept = 0;
  for (Running& running : running_) {
    if (running.circuit->Done()) {
      ended_.push_back(std::move(running));
    } else if (&running_[kept++] != &running) {
      running_[kept - 1] = std::move(running);
    }
  }
  running_.resize(kept);
  for (size_t i = 0; i < ended_.size(); ++i) {
    if (ended_[i].then) ended_[i].then();
  }
  return absl::OkStatus();
}

}  // namespace mpckdc
