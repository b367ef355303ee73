// SPDX-License-Identifier: Apache-2.0
//
// http://LISTEN/metrics, for the collector: one thread that waits for nobody. Who is silent, or reads
// slowly, has a place until others want it (wire/callers.h) and at most kHandshakeTimeout, and keeps
// neither the collector nor anything else of the server waiting. (prometheus-cpp's own port, civetweb,
// reads with each of its threads from who came first, for half a minute: so many strangers shut it.)
#ifndef MPC_SERVER_SERVICE_METRICS_PORT_H_
#define MPC_SERVER_SERVICE_METRICS_PORT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/service/metrics_request.h"
#include "mpc-server/wire/callers.h"
#include "mpc-server/wire/socket.h"

namespace mpckdc {

class MetricsPort {
 public:
  // Until the object goes. `render` makes the page, in the port's thread.
  static absl::StatusOr<std::unique_ptr<MetricsPort>> Open(const std::string& listen,
                                                           std::function<std::string()> render);
  ~MetricsPort();

  int port() const { return LocalPort(listener_); }

 private:
  struct Visitor {
    Fd fd;
    absl::Time give_up;
    std::string request;
    std::shared_ptr<const std::string> answer;  // null: the request is not all here
    size_t sent = 0;
  };

  MetricsPort(Fd listener, std::function<std::string()> render);
  void Run();
  void AcceptAll();
  bool Step(Visitor& visitor);
  bool Hear(Visitor& visitor);
  std::shared_ptr<const std::string> Answer(MetricsQuestion question);
  std::shared_ptr<const std::string> Page();
  void Wait();

  Fd listener_, wake_;
  const std::function<std::string()> render_;
  Callers<Visitor> visitors_;
  bool accept_failed_ = false;
  std::shared_ptr<const std::string> page_;  // as it was answered at `rendered_`
  absl::Time rendered_ = absl::InfinitePast();
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_METRICS_PORT_H_
