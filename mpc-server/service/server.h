// SPDX-License-Identifier: Apache-2.0
//
// The whole server of one party: store, peers, engine, gRPC port, logs, housekeeping.
#ifndef MPC_SERVER_SERVICE_SERVER_H_
#define MPC_SERVER_SERVICE_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mpc-server/service/config.h"

namespace mpckdc {

class Server {
 public:
  // Checks what can be checked without changing or binding anything: identity, deny list, store
  // key, instruction set. For --check-config.
  static absl::Status Check(const Config& config);
  // Brings the schema of [store] postgresql to this version, as `owner` (a connection string) or,
  // if that is empty, as its own role. Returns what was done.
  static absl::StatusOr<std::string> Migrate(const Config& config, const std::string& owner);

  // A consistent copy of the share store into `folder`, which must exist; a server may be running
  // on it. Sealed as it lies: it opens with the key file of its epoch, which is not copied.
  static absl::Status Backup(const Config& config, const std::string& folder);

  // Returns when both ports are open. The other servers need not be up: it connects when they are,
  // and answers UNAVAILABLE until then. Call RequireTls13() and StartLog() before.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Config& config);
  // Stops at once what Stop() did not.
  ~Server();

  // SIGHUP: opens the logs anew, reads deny list and certificate again. What fails keeps its old
  // state and is logged.
  void Reload();
  // SIGTERM: refuses new jobs, answers those under way for limits::kShutdownGrace, then closes.
  void Stop();

  int client_port() const;
  int peer_port() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_SERVER_H_
