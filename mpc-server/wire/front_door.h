// SPDX-License-Identifier: Apache-2.0
//
// The port for KDCs and administrators, in front of gRPC. gRPC alone takes every connection, keeps
// one that says nothing until its handshake times out, and when descriptors run out it closes its
// port for good (1.51). So connections come in here, and gRPC gets those that have begun to speak:
//
//   accept --> waits for its first byte --> gRPC: TLS, certificate, calls
//              (wire/callers.h: when          ^
//              there are too many the         |  strangers: so many in limits::kHandshakeTimeout,
//              oldest go first)               |  after which gRPC has closed those of them who
//                                             |  showed no certificate; the others wait
//
// Addresses from which somebody with a certificate came are known: they have room of their own.
#ifndef MPC_SERVER_WIRE_FRONT_DOOR_H_
#define MPC_SERVER_WIRE_FRONT_DOOR_H_

#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mpc-server/wire/callers.h"
#include "mpc-server/wire/peer_address.h"
#include "mpc-server/wire/socket.h"

namespace mpckdc {

// Addresses from which somebody with a certificate came, the latest limits::kMaxStreamsPerServer.
// Thread-safe.
class Acquaintances {
 public:
  // As gRPC writes it: "ipv4:192.0.2.1:4711", "ipv6:%5B2001:db8::1%5D:4711".
  void Meet(const std::string& peer);
  bool Knows(const PeerAddress& address) const;

 private:
  mutable absl::Mutex mutex_;
  std::list<PeerAddress> by_age_ ABSL_GUARDED_BY(mutex_);  // the latest first
  absl::flat_hash_map<PeerAddress, std::list<PeerAddress>::iterator> known_ ABSL_GUARDED_BY(mutex_);
};

class FrontDoor {
 public:
  // Takes over a connection that has begun to speak, and the number of the listening socket.
  using Admit = absl::AnyInvocable<void(Fd connection, int listener)>;

  // Binds and listens. `known` is the caller's.
  static absl::StatusOr<std::unique_ptr<FrontDoor>> Open(const std::string& listen,
                                                         const Acquaintances* known);
  ~FrontDoor() { Stop(); }

  int port() const { return LocalPort(listener_); }
  // Lets callers in; `admit` is called by the door's thread.
  void Start(Admit admit);
  void Stop();

 private:
  struct Waiting {
    Fd fd;
    PeerAddress from;
    bool known;
    absl::Time give_up;
    bool held = false;  // has spoken; gRPC has too many of its kind
  };
  // Those whom gRPC got in the last limits::kHandshakeTimeout.
  class Admitted {
   public:
    bool Take(const PeerAddress& from, bool known, absl::Time now);

   private:
    struct Entry {
      absl::Time until;
      PeerAddress network;
      bool known;
    };
    std::deque<Entry> entries_;
    absl::flat_hash_map<PeerAddress, size_t> count_;  // of strangers, by network
    size_t strangers_ = 0, known_ = 0;
  };

  FrontDoor(Fd listener, const Acquaintances* known);
  void Run();
  void AcceptAll();
  bool Step(Waiting& caller);
  void Wait();

  const Fd listener_, wake_;
  const Acquaintances& known_;
  Admit admit_;
  std::atomic<bool> stopping_ = false;
  bool accept_failed_ = false;
  Callers<Waiting> callers_;
  Admitted admitted_;
  std::thread thread_;
};

// Lets this process have as many descriptors as the system allows it; returns how many.
size_t RaiseDescriptorLimit();

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_FRONT_DOOR_H_
