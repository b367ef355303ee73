// SPDX-License-Identifier: Apache-2.0
// The production channel: a mutual TLS 1.3 handshake, then TLS's records or faster ones of our own;
// per ring one connection per pair of servers.
//
// P_i connects to P_{i+1} (its next) and accepts a connection from P_{i-1} (its prev), so every
// pair has exactly one connection per ring: 0->1, 1->2, 2->0. A party's certificate carries exactly
// one URI SAN, spiffe://REALM/mpc/peer/NAME, and NAME must be the one configured for that party
// (default "p0", "p1", "p2"): otherwise one server could pose as both neighbours of another and
// break the sharing.
#ifndef MPC_SERVER_WIRE_TLS_CHANNEL_H_
#define MPC_SERVER_WIRE_TLS_CHANNEL_H_

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/wire/peer_channel.h"

namespace mpckdc {

using CertificateFingerprint = std::array<uint8_t, 32>;  // SHA-256 of the DER certificate

// What protects the frames after the TLS handshake: doc/frame_format.md says how.
enum class PeerRecords {
  kAuto,  // aead where both ends have it, else tls
  kAead,  // AES-128-GCM records of our own, keys from the handshake
  kTls,   // TLS's own records
};

inline constexpr int kMaxRings = static_cast<int>(limits::kMaxWorkers);

struct TlsPeerOptions {
  int party = 0;
  std::string realm;
  std::string certificate_file;  // PEM, leaf first
  std::string key_file;          // PEM
  std::string ca_file;           // PEM
  std::string listen;            // "host:port"; "[::1]:port" for IPv6; port 0 picks one
  // "host:port" of each party. The next one is called there; connections from the previous one's
  // host have room of their own (callers.h).
  std::array<std::string, 3> peers;
  std::array<std::string, 3> peer_names = {"p0", "p1", "p2"};  // NAME in each party's certificate
  // Asked about every peer certificate, on the thread in Connect() or StillGood(), again and again:
  // true refuses it. May be empty.
  std::function<bool(const CertificateFingerprint&)> denied;
  PeerRecords records = PeerRecords::kAuto;
  int rings = 1;  // channels to make, one per engine worker; the same on all three servers
  // SO_SNDBUF and SO_RCVBUF. 0 leaves them to the kernel, which lets them grow as a connection
  // needs; a number is capped by net.core.rmem_max and wmem_max, 208 KB on many systems: too little
  // for a line of some milliseconds (integration-tests/wire/README.md has the figures).
  int socket_buffer_bytes = 0;
  // bbr, some systems' choice, paces even the short messages of a batch. Empty leaves it to the
  // system; so does a name that the kernel does not have.
  std::string tcp_congestion = "cubic";
};

// Owns the listening socket; makes connected channels, all rings at a time. Reconnecting is the
// caller's loop: drop the channels, call ConnectAll() again (it makes at most one attempt per ring
// and 100 ms at a neighbour that refuses).
class TlsPeerConnector {
 public:
  // Binds and listens. Reads certificate, key and CA once; errors name the file.
  static absl::StatusOr<std::unique_ptr<TlsPeerConnector>> Create(const TlsPeerOptions& options,
                                                                  Clock& clock = SystemClock());
  virtual ~TlsPeerConnector() = default;

  // Returns when both neighbours are connected and authenticated for every ring; element i is ring
  // i's. What is connected by the deadline stays for the next call. Errors: DeadlineExceeded (the
  // text says which neighbour is missing and the last error seen with it), PermissionDenied never:
  // a wrong certificate from the network only drops that connection and is part of the text.
  using Channels = std::vector<std::unique_ptr<PeerChannel>>;
  virtual absl::StatusOr<Channels> ConnectAll(absl::Time deadline) = 0;
  // The same with one ring; FailedPrecondition at once when there are more.
  absl::StatusOr<std::unique_ptr<PeerChannel>> Connect(absl::Time deadline);
  // Whether the certificates of the channels made last are still allowed; PermissionDenied names
  // one that is denied by now. By the thread of ConnectAll().
  virtual absl::Status StillGood() const = 0;
  virtual int rings() const = 0;
  // Reads certificate, key, CA anew for later connections.
  virtual absl::Status Reload() = 0;
  virtual int port() const = 0;
  // From any thread: a Connect() under way, and every later one, fails with Cancelled.
  virtual void Shutdown() = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_TLS_CHANNEL_H_
