// SPDX-License-Identifier: Apache-2.0
//
// Who calls, by the certificate of the TLS connection alone, and what that role may do.
#ifndef MPC_SERVER_SERVICE_CALLER_H_
#define MPC_SERVER_SERVICE_CALLER_H_

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/service/deny_list.h"

namespace grpc {
class AuthContext;
}

namespace mpckdc {

struct Caller {
  std::string role;  // "kdc", "admin" or "peer"
  std::string name;
  Fingerprint fingerprint{};
  absl::Time not_after;

  std::string Text() const { return role + "/" + name; }
};

// A caller's newest certificate of those that it came with.
struct SeenCaller {
  std::string name;  // as of Caller::Text()
  absl::Time expires, last;
};

class Doorkeeper {
 public:
  // Not owned; both must outlive this.
  Doorkeeper(std::string realm, const DenyList* denied, Clock* clock)
      : realm_(std::move(realm)), denied_(denied), clock_(clock) {}

  // PermissionDenied names the roles that `what` needs and what the caller is.
  absl::StatusOr<Caller> Admit(const grpc::AuthContext& context, absl::string_view what,
                               std::initializer_list<absl::string_view> roles) const;
  absl::StatusOr<Caller> AdmitPem(absl::string_view pem, absl::string_view what,
                                  std::initializer_list<absl::string_view> roles) const;
  // The same for a signer's certificate, whose chain the caller has verified.
  absl::StatusOr<Caller> AdmitDer(absl::string_view der, absl::string_view what,
                                  std::initializer_list<absl::string_view> roles) const;
  // For a long stream: still neither expired nor denied.
  absl::Status StillGood(const Caller& caller) const;
  // Whoever was admitted, or noted so since, in the last day.
  void Note(const Caller& caller) const;
  std::vector<SeenCaller> Seen() const;

  const std::string& realm() const { return realm_; }

 private:
  const std::string realm_;
  const DenyList* const denied_;
  Clock* const clock_;
  mutable absl::Mutex mutex_;
  mutable std::map<std::string, SeenCaller> seen_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_CALLER_H_
