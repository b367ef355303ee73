// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/pkinit/desk.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

size_t SizeOf(const CertificateProof& proof) {
  return proof.pa_pk_as_req.size() + proof.request_body.size();
}

CertificateFinding NotVerified(Verdict verdict, std::string why) {
  CertificateFinding finding;
  finding.judgement = Refuse(verdict, std::move(why));
  return finding;
}

}  // namespace

CertificateDesk::CertificateDesk(const PkinitOptions& options, Clock* clock)
    : options_(options), clock_(clock), thread_([this] { Main(); }) {}

CertificateDesk::~CertificateDesk() { Stop(); }

void CertificateDesk::Stop() {
  std::map<std::string, Line> left;
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
    left.swap(lines_);
  }
  if (thread_.joinable()) thread_.join();
  for (auto& [kdc, line] : left) {
    for (Waiting& waiting : line.waiting) {
      waiting.done(NotVerified(Verdict::kUnavailable, "the server is stopping"));
    }
  }
}

absl::Status CertificateDesk::Load() {
  if (options_.anchors.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::shared_ptr<const PkinitVerifier> verifier, PkinitVerifier::Load(options_));
  const absl::MutexLock lock(&mutex_);
  verifier_ = std::move(verifier);
  return absl::OkStatus();
}

void CertificateDesk::Verify(const std::string& kdc, const CertificateProof& proof,
                             absl::Time deadline, Done done) {
  CertificateFinding why_not = NotVerified(
      Verdict::kRefused, "this server knows no authority for clients: set [pkinit] anchors");
  {
    const absl::MutexLock lock(&mutex_);
    if (stopping_) {
      why_not = NotVerified(Verdict::kUnavailable, "the server is stopping");
    } else if (verifier_ != nullptr) {
      Line& line = lines_[kdc];
      if (line.waiting.empty() || (line.waiting.size() < limits::kMaxProofsWaiting &&
                                   line.bytes + SizeOf(proof) <= limits::kMaxProofBytesWaiting)) {
        line.waiting.push_back({proof, deadline, std::move(done)});
        line.bytes += SizeOf(proof);
        return;
      }
      why_not = NotVerified(Verdict::kQuota,
                            absl::StrCat(line.waiting.size(), " logins by certificate of this KDC, ",
                                         line.bytes, " bytes, wait already"));
    }
    ++counts_.refused;
  }
  done(std::move(why_not));
}

CertificateDesk::Counts CertificateDesk::counts() const {
  const absl::MutexLock lock(&mutex_);
  return counts_;
}

void CertificateDesk::Main() {
  while (true) {
    Waiting next;
    std::shared_ptr<const PkinitVerifier> verifier;
    {
      const absl::MutexLock lock(&mutex_, absl::Condition(this, &CertificateDesk::SomethingToDo));
      if (stopping_) return;
      auto line = lines_.upper_bound(last_);
      if (line == lines_.end()) line = lines_.begin();
      last_ = line->first;
      next = std::move(line->second.waiting.front());
      line->second.waiting.pop_front();
      line->second.bytes -= SizeOf(next.proof);
      if (line->second.waiting.empty()) lines_.erase(line);
      verifier = verifier_;
    }
    const absl::Time now = clock_->Now();
    CertificateFinding finding =
        next.deadline <= now
            ? NotVerified(Verdict::kDeadline, "its signature was not looked at before its deadline")
            : verifier->Verify(next.proof, now);
    {
      const absl::MutexLock lock(&mutex_);
      ++(finding.judgement.ok() ? counts_.verified : counts_.refused);
    }
    next.done(std::move(finding));
  }
}

}  // namespace mpckdc
