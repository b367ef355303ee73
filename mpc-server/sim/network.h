// SPDX-License-Identifier: Apache-2.0
//
// The network between the three servers: one connection per pair of neighbours, as TlsPeerConnector
// makes them, and everything that may happen to a direction of it. What TLS guarantees is kept
// where production relies on it, and taken away where the protocol's own checks are the subject:
//
//   lost packets, one-way partition   TCP repeats them: frames wait, and arrive in order when the
//                                     direction works again, or the connection is reset
//   corruption, under TLS             the record's authenticator fails: the connection ends. So it
//                                     is with round frames: only a *server* can alter them
//                                     unnoticed by TLS, and that is what SetLiar() is for
//   corruption, of control frames     let through, as if TLS were not there: greetings, seeds,
//                                     proposals and votes have checks of their own
//   reordered, duplicated frames      let through likewise: headers and numbers must catch them
#ifndef MPC_SERVER_SIM_NETWORK_H_
#define MPC_SERVER_SIM_NETWORK_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mpc-server/share/replicated_share.h"
#include "mpc-server/sim/machine.h"
#include "mpc-server/testing/deviating_channel.h"
#include "mpc-server/wire/peer_channel.h"
#include "mpc-server/wire/peer_link.h"

namespace mpckdc::sim {

class SimChannel;
class SimLink;

// What happens to the next frame of a direction that suits.
enum class Damage {
  kNone,
  kFlipControl,  // a bit of a control frame, header or payload, and nobody below notices
  kBadRecord,    // a bit of any frame; TLS notices and the connection ends
  kTruncate,     // the connection ends inside the frame
  kReorder,      // the frame after it overtakes it
  kDuplicate,    // it arrives twice
  kFlipRound,    // a control of the harness: a round frame's payload, and nobody notices
};

// One frame under way.
struct Wire {
  enum class Fate { kWhole, kBadRecord, kTruncated };
  std::array<uint8_t, kFrameHeaderSize> header{};
  SecretBytes payload;
  Fate fate = Fate::kWhole;
};

// One direction of one connection.
struct Pipe {
  std::deque<Wire> arrived;
  bool closed = false;           // the reader sees the end after what has arrived
  std::deque<Wire> stuck;        // sent while the direction was blocked
  bool end_stuck = false;        // so was the end
  std::optional<Wire> overtaken;
  absl::Time sent;               // when the last byte has left: a rate takes time
  absl::Time last;               // arrival of the last frame: frames do not overtake each other
  Fiber* reader = nullptr;
};

// Between a party and its next.
struct Connection {
  explicit Connection(int client) : client(client) {}
  Pipe& From(int party) { return party == client ? from_client : from_server; }

  const int client;
  Pipe from_client, from_server;
};

// Those between two neighbours: one for each ring, the long one last (agree/long_ring.h).
inline constexpr size_t kSimRings = 2;
using Connections = std::vector<std::shared_ptr<Connection>>;

// When a peer's certificate is good, by the clock of the server that checks it.
struct Validity {
  absl::Time not_before = absl::InfinitePast(), not_after = absl::InfiniteFuture();
};

class Network {
 public:
  // Called at every operation of a channel or link with its named step, before it is done; true:
  // the process that called was killed there.
  using StepHook = std::function<bool(int party, const char* step)>;

  Network(Scheduler* scheduler, Dice* dice) : scheduler_(scheduler), dice_(dice) {}

  std::unique_ptr<PeerLink> Link(int party, SimClock* clock, const SimExecutor* executor);
  void SetStepHook(StepHook hook) { hook_ = std::move(hook); }
  // The party lies on the connections made from now on. `liar` outlives them.
  void SetLiar(int party, Liar* liar) { liars_[party] = liar; }

  // ---- Faults ----
  // Frames already under way are lost; both ends see the connection closed.
  void Cut(int a, int b);
  // Nothing from `from` arrives at `to` until Heal(), and no new connection is made.
  void Block(int from, int to) { Way(from, to).blocked = true; }
  void Slow(int from, int to, absl::Duration low, absl::Duration high, uint64_t bytes_per_second);
  void DamageNext(int from, int to, Damage damage) { Way(from, to).next = damage; }
  void SetCertificate(int party, const Validity& validity) { certificates_[party] = validity; }
  // All directions as in the beginning. What was stuck arrives now, or the connection is reset.
  void Heal();
  // A process died: its connections close, its link connects no more.
  void Kill(int party);

  uint64_t frames() const { return frames_; }
  // How often a frame was altered, repeated or overtaken, which on a real link only its sender can
  // do. Without one no server may accuse another.
  uint64_t lies() const { return lies_; }

 private:
  friend class SimChannel;
  friend class SimLink;

  // From one party to another.
  struct Direction {
    bool blocked = false;
    absl::Duration low = absl::Microseconds(100), high = absl::Milliseconds(1);
    uint64_t bytes_per_second = 0;  // 0: as many as there are
    Damage next = Damage::kNone;
  };
  Direction& Way(int from, int to) { return ways_[from][to]; }
  const Connections& Current(int a, int b) const { return current_[b == NextParty(a) ? a : b]; }

  void Send(const std::shared_ptr<Connection>& connection, int from, int to, Wire wire);
  void Launch(const std::shared_ptr<Connection>& connection, int from, int to, Wire wire);
  void Arrive(Connection& connection, int from, int to, Wire wire);
  // The writer's end is closed; the reader sees it after what was sent.
  void End(const std::shared_ptr<Connection>& connection, int from, int to);
  void Close(const std::shared_ptr<Connection>& connection, int from, int to);
  void Unblock(int from, int to);
  // A process stands at this step: whether it is dead, or dies of it.
  bool Killed(int party, const char* step, bool& dead) {
    if (!dead && hook_ && hook_(party, step)) dead = true;
    return dead;
  }
  bool CertificateGood(int owner, absl::Time at) const {
    return certificates_[owner].not_before <= at && at < certificates_[owner].not_after;
  }

  Scheduler* const scheduler_;
  Dice* const dice_;
  StepHook hook_;
  std::array<Liar*, kParties> liars_{};
  std::array<std::array<Direction, kParties>, kParties> ways_;
  std::array<Validity, kParties> certificates_;
  std::array<SimLink*, kParties> links_{};                    // of the processes that live
  std::array<Connections, kParties> current_;                 // by client
  uint64_t frames_ = 0;
  uint64_t lies_ = 0;
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_NETWORK_H_
