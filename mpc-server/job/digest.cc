// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/digest.h"

#include <cassert>
#include <utility>

namespace mpckdc {
namespace {

class Encoder {
 public:
  explicit Encoder(absl::string_view domain) : bytes_(domain) { bytes_.push_back('\0'); }

  void Number(uint64_t value, int size) {
    for (int i = size - 1; i >= 0; --i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }
  template <size_t N>
  void Fixed(const std::array<uint8_t, N>& value) {
    bytes_.append(reinterpret_cast<const char*>(value.data()), N);
  }
  void Counted(absl::string_view value, int size) {
    assert(size == 8 || value.size() < (1ull << (8 * size)));
    Number(value.size(), size);
    bytes_.append(value.data(), value.size());
  }
  void Key(const Handle& handle, uint32_t usage) {
    Fixed(handle);
    Number(usage, 4);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

void EncodeParts(const Job& job, Encoder* out) {
  out->Number(job.opens.size(), 2);
  for (const OpenPart& part : job.opens) {
    out->Key(part.handle, part.usage);
    out->Counted(part.message, 4);
  }
  out->Number(job.seals.size(), 2);
  for (const SealPart& part : job.seals) {
    out->Key(part.handle, part.usage);
    out->Number(part.max_plaintext, 4);
  }
  out->Number(job.make_macs.size(), 2);
  for (const MakeMacPart& part : job.make_macs) {
    out->Key(part.handle, part.usage);
    out->Counted(part.data, 4);
  }
  out->Number(job.verify_macs.size(), 2);
  for (const VerifyMacPart& part : job.verify_macs) {
    out->Key(part.handle, part.usage);
    out->Counted(part.data, 4);
    out->Counted(part.checksum, 4);
  }
}

}  // namespace

std::string EncodeJob(const KdcIdentity& kdc, const Job& job) {
  Encoder out("mpc-kdc job v1");
  out.Counted(kdc.name, 2);
  out.Fixed(kdc.session);
  out.Number(job.id, 8);
  out.Number(static_cast<uint8_t>(job.operation), 1);
  out.Number(job.deadline_ms, 4);
  out.Number(job.client.has_value() ? 1 : 0, 1);
  if (job.client.has_value()) out.Fixed(*job.client);
  out.Number(job.grant, 8);
  EncodeParts(job, &out);
  return out.Take();
}

Digest JobDigest(const KdcIdentity& kdc, const Job& job) { return Sha256(EncodeJob(kdc, job)); }

std::string EncodeTagRequest(const Digest& job_digest, const TagRequest& request) {
  Encoder out("mpc-kdc tag v1");
  out.Fixed(job_digest);
  out.Number(request.seal, 4);
  out.Counted(request.ciphertext, 4);
  return out.Take();
}

Digest TagRequestDigest(const Digest& job_digest, const TagRequest& request) {
  return Sha256(EncodeTagRequest(job_digest, request));
}

}  // namespace mpckdc
