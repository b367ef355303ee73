// SPDX-License-Identifier: Apache-2.0
//
// The C face of the job clients: converts, and lets no exception out. Memory that runs out ends the
// process (std::terminate): the callbacks of gRPC could not report it either.
#include "kdc-plugin/client/mpc_client.h"

#include <stdlib.h>
#include <string.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "kdc-plugin/client/text.h"
#include "kdc-plugin/client/triples.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/secret.h"

static_assert(MPC_MAX_GCM_BYTES == mpckdc::limits::kMaxOpenBytes);
static_assert(MPC_MAX_GCM_BYTES == mpckdc::limits::kMaxSealBytes);
static_assert(MPC_MAX_GCM_BYTES == mpckdc::limits::kMaxMacDataBytes);
static_assert(MPC_MAX_CTS_TICKET_BYTES == mpckdc::limits::kMaxCtsTicketBytes);
static_assert(MPC_MAX_CTS_REQUEST_BYTES == mpckdc::limits::kMaxCtsRequestBytes);
static_assert(MPC_MAX_CTS_BYTES == mpckdc::limits::kMaxCtsMessageBytes);

struct mpc_client {
  std::unique_ptr<mpckdc::client::Triples> jobs;
};

namespace mpckdc::client {

char* DuplicateText(absl::string_view text) { return strndup(text.data(), text.size()); }

}  // namespace mpckdc::client

extern "C" {

void mpc_text_free(char* text) noexcept { free(text); }

char* mpc_harden_process(int allow_core_dumps) noexcept {
  std::string warning = mpckdc::RemoveGrpcTrace();
  if (allow_core_dumps == 0 && !mpckdc::DisableCoreDumps()) {
    absl::StrAppend(&warning, warning.empty() ? "" : "; ",
                    "core dumps of this process could not be turned off");
  }
  return warning.empty() ? nullptr : mpckdc::client::DuplicateText(warning);
}

mpc_client* mpc_client_start(const mpc_options* options, char** error) noexcept {
  *error = nullptr;
  // Debian's abseil has its detector of deadlocks, for debugging, turned on: each lock would take
  // one of the whole process and remember an order.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  absl::StatusOr<std::unique_ptr<mpckdc::client::Triples>> jobs =
      mpckdc::client::Triples::Start(*options);
  if (!jobs.ok()) {
    *error = mpckdc::client::DuplicateText(jobs.status().message());
    return nullptr;
  }
  return new mpc_client{*std::move(jobs)};
}

void mpc_client_stop(mpc_client* client) noexcept { delete client; }

kdc_metrics* mpc_client_metrics(const mpc_client* client) noexcept {
  return client->jobs->metrics();
}

void mpc_client_submit(mpc_client* client, const mpc_job* job, mpc_job_done done,
                       void* arg) noexcept {
  client->jobs->Submit(*job, done, arg);
}

void mpc_client_request_tag(mpc_client* client, uint64_t id, uint32_t seal, mpc_bytes ciphertext,
                            uint64_t request, mpc_tag_done done, void* arg) noexcept {
  client->jobs->RequestTag({id, seal, ciphertext, request}, done, arg);
}

void mpc_client_begin_burst(mpc_client* client) noexcept { client->jobs->BeginBurst(); }
void mpc_client_end_burst(mpc_client* client) noexcept { client->jobs->EndBurst(); }

}  // extern "C"
