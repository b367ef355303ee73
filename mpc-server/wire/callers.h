// SPDX-License-Identifier: Apache-2.0
// Incoming connections that have not shown yet who they are. Anybody may make one and be silent, so
// there is room for so many, and the oldest go first.
//
//   accept --> expected    from addresses that certificates are known or configured to come from;
//         |                room of their own
//         \--> strangers   all others, so many per address
//
// A stranger may be one with a certificate, who comes from another address than before.
#ifndef MPC_SERVER_WIRE_CALLERS_H_
#define MPC_SERVER_WIRE_CALLERS_H_

#include <algorithm>
#include <iterator>
#include <list>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/wire/peer_address.h"

namespace mpckdc {

// T owns the connection: what is destroyed is closed.
template <class T>
class Callers {
 public:
  Callers(Clock* clock, size_t max_expected) : clock_(*clock), max_expected_(max_expected) {}

  // Takes one more; one that is here may have to go.
  void Add(T caller, const PeerAddress& from, bool expected) {
    const PeerAddress network = NetworkOf(from);
    if (expected) {
      expected_.push_back({std::move(caller), network});
      if (expected_.size() > max_expected_) expected_.pop_front();
      return;
    }
    strangers_.push_back({std::move(caller), network});
    if (++count_[network] > limits::kMaxCallersPerAddress) {
      Erase(std::find_if(strangers_.begin(), strangers_.end(),
                         [&](const Caller& c) { return c.network == network; }));
    } else if (strangers_.size() > limits::kMaxStrangers) {
      Erase(FirstToGo());
    }
  }

  // Lets each go on as far as it can, the expected ones first. Strangers who keep this server
  // computing wait for the next call after limits::kStrangersStep. `step` returns true when the
  // caller is to be here no longer.
  void Step(absl::FunctionRef<bool(T&)> step) {
    expected_.remove_if([&](Caller& caller) { return step(caller.value); });
    const absl::Time enough = clock_.Now() + limits::kStrangersStep;
    for (auto it = strangers_.begin(); it != strangers_.end() && clock_.Now() < enough;) {
      it = step(it->value) ? Erase(it) : std::next(it);
    }
  }

  void ForEach(absl::FunctionRef<void(const T&)> look) const {
    for (const List* list : {&expected_, &strangers_}) {
      for (const Caller& caller : *list) look(caller.value);
    }
  }

  void Clear() {
    expected_.clear();
    strangers_.clear();
    count_.clear();
  }

 private:
  struct Caller {
    T value;
    PeerAddress network;
  };
  using List = std::list<Caller>;  // the oldest first

  // The oldest of the network that has most of them here.
  typename List::iterator FirstToGo() {
    const auto fewer = [this](const Caller& a, const Caller& b) {
      return count_[a.network] < count_[b.network];
    };
    return std::max_element(strangers_.begin(), strangers_.end(), fewer);
  }
  typename List::iterator Erase(typename List::iterator stranger) {
    const auto count = count_.find(stranger->network);
    if (--count->second == 0) count_.erase(count);
    return strangers_.erase(stranger);
  }

  Clock& clock_;
  const size_t max_expected_;
  List expected_, strangers_;
  absl::flat_hash_map<PeerAddress, size_t> count_;  // of strangers, by network
};

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_CALLERS_H_
