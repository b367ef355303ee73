// SPDX-License-Identifier: Apache-2.0
//
// A job of the C interface with all that it points to, so that it can be sent once more. Its
// plaintexts, which may hold session keys, are in locked memory.
#ifndef KDC_PLUGIN_CLIENT_OWNED_JOB_H_
#define KDC_PLUGIN_CLIENT_OWNED_JOB_H_

#include <array>
#include <string>

#include "kdc-plugin/client/mpc_client.h"
#include "mpc-server/base/secret.h"

namespace mpckdc::client {

class OwnedJob {
 public:
  explicit OwnedJob(const mpc_job& job);
  OwnedJob(const OwnedJob&) = delete;
  OwnedJob& operator=(const OwnedJob&) = delete;

  const mpc_job& job() const { return job_; }

 private:
  const uint8_t* Keep(const uint8_t* handle, std::string& copy);
  mpc_bytes Keep(mpc_bytes bytes, std::string& copy);

  mpc_job job_;
  mpc_open open_;
  std::array<mpc_seal, MPC_MAX_SEALS> seals_;
  mpc_make_mac make_mac_;
  mpc_verify_mac verify_mac_;
  std::string client_, open_handle_, open_message_;
  std::array<std::string, MPC_MAX_SEALS> seal_handles_;
  std::array<SecretBytes, MPC_MAX_SEALS> plaintexts_;
  std::string make_handle_, make_data_;
  std::string verify_handle_, verify_data_, checksum_;
  std::string pa_pk_as_req_, request_body_;
};

}  // namespace mpckdc::client

#endif  // KDC_PLUGIN_CLIENT_OWNED_JOB_H_
