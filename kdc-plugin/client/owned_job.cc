// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/client/owned_job.h"

#include <algorithm>

#include "kdc-plugin/client/text.h"

namespace mpckdc::client {

const uint8_t* OwnedJob::Keep(const uint8_t* handle, std::string& copy) {
  if (handle == nullptr) return nullptr;
  copy = Copy({handle, MPC_HANDLE_BYTES});
  return reinterpret_cast<const uint8_t*>(copy.data());
}

mpc_bytes OwnedJob::Keep(mpc_bytes bytes, std::string& copy) {
  copy = Copy(bytes);
  return {reinterpret_cast<const uint8_t*>(copy.data()), copy.size()};
}

OwnedJob::OwnedJob(const mpc_job& job) : job_(job) {
  job_.client = Keep(job.client, client_);
  job_.pa_pk_as_req = Keep(job.pa_pk_as_req, pa_pk_as_req_);
  job_.request_body = Keep(job.request_body, request_body_);
  if (job.open != nullptr) {
    open_ = *job.open;
    open_.handle = Keep(open_.handle, open_handle_);
    open_.message = Keep(open_.message, open_message_);
    job_.open = &open_;
  }
  const size_t seals = std::min<size_t>(job.seal_count, MPC_MAX_SEALS);
  for (size_t i = 0; i < seals; ++i) {
    mpc_seal& seal = seals_[i] = job.seals[i];
    seal.handle = Keep(seal.handle, seal_handles_[i]);
    if (seal.plaintext.size == 0) continue;
    plaintexts_[i].assign(seal.plaintext.data, seal.plaintext.data + seal.plaintext.size);
    seal.plaintext.data = plaintexts_[i].data();
  }
  if (seals > 0) job_.seals = seals_.data();
  if (job.make_mac != nullptr) {
    make_mac_ = *job.make_mac;
    make_mac_.handle = Keep(make_mac_.handle, make_handle_);
    make_mac_.data = Keep(make_mac_.data, make_data_);
    job_.make_mac = &make_mac_;
  }
  if (job.verify_mac != nullptr) {
    verify_mac_ = *job.verify_mac;
    verify_mac_.handle = Keep(verify_mac_.handle, verify_handle_);
    verify_mac_.data = Keep(verify_mac_.data, verify_data_);
    verify_mac_.checksum = Keep(verify_mac_.checksum, checksum_);
    job_.verify_mac = &verify_mac_;
  }
}

}  // namespace mpckdc::client
