// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/client/wire_job.h"

#include "absl/strings/str_cat.h"
#include "kdc-plugin/client/server_stream.h"
#include "kdc-plugin/client/text.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/enctype.h"
#include "proto/wipe_shares.h"

namespace mpckdc::client {
namespace {

std::string CopyHandle(const uint8_t* handle) {
  return handle == nullptr ? "" : Copy({handle, MPC_HANDLE_BYTES});
}

absl::Status CheckEnctype(int32_t enctype) {
  if (FindEnctype(enctype) != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a key of enctype ", enctype, ", of which the MPC servers hold none"));
}

absl::Status CheckSeal(const mpc_seal& seal) {
  RETURN_IF_ERROR(CheckEnctype(seal.enctype));
  const size_t due = FindEnctype(seal.enctype)->is_gcm() ? 0 : seal.max_plaintext;
  if (seal.plaintext.size == due) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a seal under enctype ", seal.enctype, " with ",
                                                 seal.plaintext.size, " bytes of plaintext, not ",
                                                 due));
}

}  // namespace

absl::Status CheckJob(const mpc_job& job) {
  if (job.seal_count > MPC_MAX_SEALS) return absl::InvalidArgumentError("too many seals");
  if (job.open != nullptr) {
    RETURN_IF_ERROR(CheckEnctype(job.open->enctype));
  }
  for (size_t i = 0; i < job.seal_count; ++i) {
    RETURN_IF_ERROR(CheckSeal(job.seals[i]));
  }
  return job.make_mac == nullptr ? absl::OkStatus() : CheckEnctype(job.make_mac->enctype);
}

WireJob::WireJob(const mpc_job& job, uint32_t deadline_ms) {
  wire_.set_operation(static_cast<v1::Operation>(job.operation));
  wire_.set_deadline_ms(deadline_ms);
  if (job.client != nullptr) wire_.set_client(CopyHandle(job.client));
  wire_.set_grant(job.grant);
  wire_.set_source(job.source);
  wire_.set_source_proved(job.source_proved != 0);
  wire_.set_request(job.request);
  if (job.pa_pk_as_req.size > 0) {
    wire_.mutable_certificate()->set_pa_pk_as_req(Copy(job.pa_pk_as_req));
    wire_.mutable_certificate()->set_request_body(Copy(job.request_body));
  }
  if (job.open != nullptr) {
    v1::Open* open = wire_.add_opens();
    open->set_handle(CopyHandle(job.open->handle));
    open->set_usage(job.open->usage);
    open->set_message(Copy(job.open->message));
  }
  for (size_t i = 0; i < job.seal_count; ++i) {
    v1::Seal* seal = wire_.add_seals();
    seal->set_handle(CopyHandle(job.seals[i].handle));
    seal->set_usage(job.seals[i].usage);
    seal->set_max_plaintext(job.seals[i].max_plaintext);
    has_shares_ |= job.seals[i].plaintext.size > 0;
    const mpc_bytes plaintext = job.seals[i].plaintext;
    texts_.push_back(SplitText({plaintext.data, plaintext.size}, SystemRandom()));
    seal->set_component_hashes(texts_.back()[0].hashes);
  }
  if (job.make_mac != nullptr) {
    v1::MakeMac* mac = wire_.add_make_macs();
    mac->set_handle(CopyHandle(job.make_mac->handle));
    mac->set_usage(job.make_mac->usage);
    mac->set_data(Copy(job.make_mac->data));
  }
  if (job.verify_mac != nullptr) {
    v1::VerifyMac* mac = wire_.add_verify_macs();
    mac->set_handle(CopyHandle(job.verify_mac->handle));
    mac->set_usage(job.verify_mac->usage);
    mac->set_data(Copy(job.verify_mac->data));
    mac->set_checksum(Copy(job.verify_mac->checksum));
  }
}

WireJob::~WireJob() { WipeShares(wire_); }

std::string WireJob::Encode(int party) {
  for (size_t i = 0; i < texts_.size(); ++i) {
    const TextShares& text = texts_[i][static_cast<size_t>(party)];
    if (text.empty()) continue;
    // All components of a text are equally long: each takes the place of the one before.
    v1::Seal* seal = wire_.mutable_seals(static_cast<int>(i));
    seal->set_own_component(text.own.data(), text.own.size());
    seal->set_before_component(text.before.data(), text.before.size());
  }
  return EncodeEntry(wire_);
}

}  // namespace mpckdc::client
