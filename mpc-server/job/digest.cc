// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/digest.h"

#include "mpc-server/base/bytes.h"

namespace mpckdc {
namespace {

// Handle and usage of a part.
void Key(const Handle& handle, uint32_t usage, ByteWriter* out) {
  out->Fixed(handle);
  out->Uint(usage, 4);
}

ByteWriter Domain(absl::string_view domain) {
  ByteWriter out(domain);
  out.Uint(0, 1);
  return out;
}

void EncodeParts(const Job& job, ByteWriter* out) {
  out->Uint(job.opens.size(), 2);
  for (const OpenPart& part : job.opens) {
    Key(part.handle, part.usage, out);
    out->Counted(part.message, 4);
  }
  out->Uint(job.seals.size(), 2);
  for (const SealPart& part : job.seals) {
    Key(part.handle, part.usage, out);
    out->Uint(part.max_plaintext, 4);
    out->Counted(part.text.hashes, 2);
  }
  out->Uint(job.make_macs.size(), 2);
  for (const MakeMacPart& part : job.make_macs) {
    Key(part.handle, part.usage, out);
    out->Counted(part.data, 4);
  }
  out->Uint(job.verify_macs.size(), 2);
  for (const VerifyMacPart& part : job.verify_macs) {
    Key(part.handle, part.usage, out);
    out->Counted(part.data, 4);
    out->Counted(part.checksum, 4);
  }
}

}  // namespace

std::string EncodeJob(const KdcIdentity& kdc, const Job& job) {
  ByteWriter out = Domain("mpc-kdc job v2");
  out.Counted(kdc.name, 2);
  out.Fixed(kdc.session);
  out.Uint(job.id, 8);
  out.Uint(static_cast<uint8_t>(job.operation), 1);
  out.Uint(job.deadline_ms, 4);
  out.Uint(job.client.has_value() ? 1 : 0, 1);
  if (job.client.has_value()) out.Fixed(*job.client);
  out.Uint(job.grant, 8);
  EncodeParts(job, &out);
  if (job.source.id != 0 || !job.certificate.empty()) {
    out.Uint(job.source.id, 8);
    out.Uint(job.source.proved ? 1 : 0, 1);
  }
  if (!job.certificate.empty()) {
    out.Counted(job.certificate.pa_pk_as_req, 4);
    out.Counted(job.certificate.request_body, 4);
  }
  return out.Take();
}

Digest JobDigest(const KdcIdentity& kdc, const Job& job) { return Sha256(EncodeJob(kdc, job)); }

std::string EncodeTagRequest(const Digest& job_digest, const Nonce& nonce,
                             const TagRequest& request) {
  ByteWriter out = Domain("mpc-kdc tag v2");
  out.Fixed(job_digest);
  out.Fixed(nonce);
  out.Uint(request.seal, 4);
  out.Counted(request.ciphertext, 4);
  return out.Take();
}

Digest TagRequestDigest(const Digest& job_digest, const Nonce& nonce, const TagRequest& request) {
  return Sha256(EncodeTagRequest(job_digest, nonce, request));
}

}  // namespace mpckdc
