// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_NAMES_H_
#define MPC_SERVER_ADMIN_NAMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/admin.pb.h"

namespace mpckdc::admin {

std::string GateName(v1::Gate gate);  // "timestamp", "pkinit", ...
absl::StatusOr<v1::Gate> GateFromName(absl::string_view name);
std::string KeyClassName(v1::KeyClass key_class);  // "user", "tgs", "service"

absl::StatusOr<v1::KeyClass> KeyClassFromName(absl::string_view name);  // user or service

// What the name says: krbtgt/* is a ticket-granting service; kadmin/* and what the rule of
// kdc-plugin/README.md says are services; everybody else is a user.
v1::KeyClass KeyClassOf(absl::string_view principal);

// Adds "@REALM" when `name` has no realm of its own; an error when it is another realm's (of which
// krbtgt/REALM@OTHER is none: this realm has its key too), or holds what no principal may hold.
absl::StatusOr<std::string> QualifyPrincipal(absl::string_view name, absl::string_view realm);

std::string Day(absl::Time time);  // "2026-11-22", UTC
std::string Minute(absl::Time time);  // "2026-11-22 16:00", UTC
std::string Hex(absl::string_view bytes);
absl::StatusOr<std::string> FromHex(absl::string_view hex);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_NAMES_H_
