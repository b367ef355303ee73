// SPDX-License-Identifier: Apache-2.0
//
// The gate of new keys where the servers do not agree on that of the present ones, because one was
// down when an administrator set it, or lies.
#ifndef MPC_SERVER_ENROLL_STRICTEST_GATE_H_
#define MPC_SERVER_ENROLL_STRICTEST_GATE_H_

#include <set>

#include "proto/admin.pb.h"

namespace mpckdc::enroll {

// That on which all agree; or else a certificate if anybody says so, and a timestamp otherwise: no
// server alone makes a gate wider. None: a timestamp.
inline v1::Gate StrictestGate(const std::set<v1::Gate>& gates) {
  if (gates.size() == 1) return *gates.begin();
  return gates.contains(v1::GATE_PKINIT) ? v1::GATE_PKINIT : v1::GATE_TIMESTAMP;
}

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_ENROLL_STRICTEST_GATE_H_
