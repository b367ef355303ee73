// SPDX-License-Identifier: Apache-2.0
#ifndef KDC_PLUGIN_CLIENT_WIRE_JOB_H_
#define KDC_PLUGIN_CLIENT_WIRE_JOB_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kdc-plugin/client/mpc_client.h"
#include "mpc-server/key/text_shares.h"
#include "proto/kdc_key.pb.h"

namespace mpckdc::client {

// Whether every part is of an enctype that is held on shares, and has what that asks for.
absl::Status CheckJob(const mpc_job& job);

// A job of the C interface as the message of proto/kdc_key.proto. It is the same for the three
// servers, except for a plaintext that is to be encrypted under a key of 17 to 20: each server gets
// two of its three components (mpc-server/key/text_shares.h), drawn anew for every job, so no
// server alone learns a bit of it.
class WireJob {
 public:
  // `job` has passed CheckJob().
  WireJob(const mpc_job& job, uint32_t deadline_ms);
  ~WireJob();  // wipes the components
  WireJob(const WireJob&) = delete;
  WireJob& operator=(const WireJob&) = delete;

  void set_id(uint64_t id) { wire_.set_id(id); }
  // Whether Encode() differs from server to server. Who has such an encoding wipes it.
  bool has_shares() const { return has_shares_; }
  std::string Encode(int party);

 private:
  v1::Job wire_;
  bool has_shares_ = false;
  std::vector<std::array<TextShares, MPC_SERVERS>> texts_;  // one for each seal; empty under GCM
};

}  // namespace mpckdc::client

#endif  // KDC_PLUGIN_CLIENT_WIRE_JOB_H_
