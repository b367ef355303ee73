// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/proto_convert.h"

#include <grpcpp/support/status.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

static_assert(static_cast<int>(Verdict::kUnproved) == v1::VERDICT_UNPROVED &&
              static_cast<int>(Verdict::kBadTag) == v1::VERDICT_BAD_TAG &&
              static_cast<int>(Operation::kVerifyChecksum) == v1::OPERATION_VERIFY_CHECKSUM);

// Copies handle and usage of a part; `what` names the part in the error.
template <class ProtoPart, class Part>
absl::Status ReadKeyOf(const ProtoPart& in, absl::string_view what, Part* out) {
  ASSIGN_OR_RETURN(out->handle, Bytes16(in.handle(), absl::StrCat("the handle of ", what)));
  out->usage = in.usage();
  return absl::OkStatus();
}

// Of what is hashed with the rest of the job before the job is judged.
absl::Status CheckHashes(const v1::Seal& part) {
  if (part.component_hashes().size() <= kTextHashesBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the hashes of a seal's components have ",
                                                 part.component_hashes().size(), " bytes instead of ",
                                                 kTextHashesBytes));
}

absl::Status ReadParts(v1::Job& in, Job* out) {
  absl::Status status;
  for (v1::Open& part : *in.mutable_opens()) {
    status.Update(ReadKeyOf(part, "an open", &out->opens.emplace_back()));
    out->opens.back().message = std::move(*part.mutable_message());
  }
  for (v1::Seal& part : *in.mutable_seals()) {
    status.Update(ReadKeyOf(part, "a seal", &out->seals.emplace_back()));
    status.Update(CheckHashes(part));
    out->seals.back().max_plaintext = part.max_plaintext();
    TextShares& text = out->seals.back().text;
    text.own.assign(part.own_component().begin(), part.own_component().end());
    text.before.assign(part.before_component().begin(), part.before_component().end());
    text.hashes = std::move(*part.mutable_component_hashes());
  }
  for (v1::MakeMac& part : *in.mutable_make_macs()) {
    status.Update(ReadKeyOf(part, "a make_mac", &out->make_macs.emplace_back()));
    out->make_macs.back().data = std::move(*part.mutable_data());
  }
  for (v1::VerifyMac& part : *in.mutable_verify_macs()) {
    status.Update(ReadKeyOf(part, "a verify_mac", &out->verify_macs.emplace_back()));
    out->verify_macs.back().data = std::move(*part.mutable_data());
    out->verify_macs.back().checksum = std::move(*part.mutable_checksum());
  }
  return status;
}

absl::Status CheckPartCount(const v1::Job& in) {
  const size_t parts = static_cast<size_t>(in.opens_size()) + in.seals_size() +
                       in.make_macs_size() + in.verify_macs_size();
  if (parts <= limits::kMaxPartsPerJob) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the job has ", parts, " parts, at most ", limits::kMaxPartsPerJob, " allowed"));
}

template <class Array>
std::string ToString(const Array& bytes) {
  return std::string(bytes.begin(), bytes.end());
}

void ResultToProto(GcmOpenResult&& in, v1::OpenAnswer* out) {
  out->set_keystream_share(std::move(in.share));
}
void ResultToProto(CtsOpenResult&& in, v1::OpenAnswer* out) {
  out->set_plaintext_share(std::move(in.share));
}

void ResultToProto(GcmSealResult&& in, v1::SealAnswer* out) {
  out->set_nonce(ToString(in.nonce));
  out->set_header(std::move(in.header));
  out->set_keystream_share(std::move(in.share));
}
void ResultToProto(CtsSealResult&& in, v1::SealAnswer* out) {
  out->set_message_share(std::move(in.share));
}

void ResultToProto(GcmMacResult&& in, v1::MakeMacAnswer* out) {
  out->set_nonce(ToString(in.nonce));
  out->set_tag_share(std::move(in.share));
}
void ResultToProto(CtsMacResult&& in, v1::MakeMacAnswer* out) {
  out->set_tag_share(std::move(in.share));
}

}  // namespace

absl::StatusOr<Job> JobFromProto(v1::Job& in) {
  Job job;
  job.id = in.id();
  if (v1::Operation_IsValid(in.operation())) {
    job.operation = static_cast<Operation>(in.operation());
  }
  const auto longest = static_cast<uint32_t>(absl::ToInt64Milliseconds(limits::kMaxJobDeadline));
  job.deadline_ms = std::min(in.deadline_ms(), longest);
  job.grant = in.grant();
  job.source = {in.source(), in.source_proved()};
  job.request = in.request();
  if (in.has_certificate()) {
    v1::CertificateProof& proof = *in.mutable_certificate();
    job.certificate = {std::move(*proof.mutable_pa_pk_as_req()),
                       std::move(*proof.mutable_request_body())};
  }
  if (!in.client().empty()) {
    ASSIGN_OR_RETURN(job.client, Bytes16(in.client(), "the client handle"));
  }
  RETURN_IF_ERROR(CheckPartCount(in));
  RETURN_IF_ERROR(ReadParts(in, &job));
  return job;
}

TagRequest TagRequestFromProto(v1::TagRequest& in) {
  return {in.job(), in.seal(), std::move(*in.mutable_ciphertext())};
}

v1::Verdict VerdictToProto(Verdict verdict) { return static_cast<v1::Verdict>(verdict); }

void JobResultToProto(JobResult&& in, v1::JobAnswer* out) {
  out->set_id(in.id);
  out->set_verdict(VerdictToProto(in.judgement.verdict));
  out->set_detail(std::move(in.judgement.detail));
  const auto convert = [](auto& result, auto* answer) {
    std::visit([answer](auto& r) { ResultToProto(std::move(r), answer); }, result);
  };
  for (OpenResult& open : in.opens) convert(open, out->add_opens());
  for (SealResult& seal : in.seals) convert(seal, out->add_seals());
  for (MakeMacResult& mac : in.make_macs) convert(mac, out->add_make_macs());
  if (in.judgement.ok()) out->set_keys(EncodeAnswerKeys(in.keys));
}

void TagResultToProto(const TagResult& in, v1::TagAnswer* out) {
  out->set_job(in.job);
  out->set_seal(in.seal);
  out->set_verdict(VerdictToProto(in.judgement.verdict));
  out->set_detail(in.judgement.detail);
  if (!in.judgement.ok()) return;
  out->set_tag_share(ToString(in.tag_share));
  out->set_keys(EncodeAnswerKeys(in.keys));
}

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace mpckdc
