// SPDX-License-Identifier: Apache-2.0
//
// From three answers to one result. Additive output shares are summed as they come; the verdicts
// decide whether the sum means anything. Sums are in locked memory and wiped when freed.
#ifndef KDC_PLUGIN_CLIENT_COMBINER_H_
#define KDC_PLUGIN_CLIENT_COMBINER_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kdc-plugin/client/mpc_client.h"
#include "mpc-server/base/secret.h"
#include "proto/kdc_key.pb.h"

namespace mpckdc::client {

// A verdict of the three together, with a sentence for the log.
struct Outcome {
  mpc_verdict verdict = MPC_OK;
  std::string detail;
};

inline Outcome Unavailable(std::string detail) { return {MPC_UNAVAILABLE, std::move(detail)}; }

// Collects one verdict per server. BAD_TAG, CLOCK_SKEW, REPLAY and REFUSED are believed only if all
// three say so: one server alone may not turn a login into a wrong password.
class VerdictVote {
 public:
  // Returns true when the outcome is known: after three equal verdicts, or at once when the
  // verdicts differ or one of them needs no company. `who` names the server in texts.
  bool Add(int server, v1::Verdict verdict, const std::string& detail, const std::string& who);
  // Ends the vote early.
  void Fail(Outcome outcome);

  bool Answered(int server) const { return answered_[server]; }
  bool decided() const { return decided_; }
  const Outcome& outcome() const { return outcome_; }

 private:
  std::array<bool, MPC_SERVERS> answered_{};
  int count_ = 0;
  v1::Verdict first_ = v1::VERDICT_UNSPECIFIED;
  std::string first_detail_, first_who_;
  bool decided_ = false;
  Outcome outcome_;
};

// The sizes in bytes that the job fixes for one part's answer: all are 0 but those of its enctype.
struct OpenSizes {
  size_t keystream = 0;  // gcm
  size_t plaintext = 0;  // 17 to 20
};
struct SealSizes {
  size_t nonce = 0, max_header = 0, keystream = 0;  // gcm
  size_t message = 0;                               // 17 to 20
};
struct MacSizes {
  size_t nonce = 0;  // gcm
  size_t tag = 0;
};

// One job's answers. All sizes are fixed by the job: an answer of other sizes is an outage.
class JobCombiner {
 public:
  // The enctypes are in the table (CheckParts in job_parts.h).
  explicit JobCombiner(const mpc_job& job);
  JobCombiner(const JobCombiner&) = delete;
  JobCombiner& operator=(const JobCombiner&) = delete;

  // As VerdictVote::Add. A second answer of a server is ignored.
  bool Add(int server, const v1::JobAnswer& answer, const std::string& who);
  void Fail(Outcome outcome) { vote_.Fail(std::move(outcome)); }
  bool Answered(int server) const { return vote_.Answered(server); }

  // The result; once.
  mpc_result* Take(uint64_t id);

 private:
  struct Open {
    OpenSizes sizes;
    SecretBytes keystream, plaintext;
  };
  struct Seal {
    SealSizes sizes;
    std::string nonce, header;
    SecretBytes keystream, message;
  };
  struct Mac {
    MacSizes sizes;
    std::string nonce;
    SecretBytes tag;
  };

  bool SizesFit(const v1::JobAnswer& answer) const;
  void TakePublicParts(const v1::JobAnswer& answer);
  bool PublicPartsAgree(const v1::JobAnswer& answer);
  void AddShares(const v1::JobAnswer& answer);

  VerdictVote vote_;
  bool seen_ok_ = false;
  std::optional<Open> open_;
  std::vector<Seal> seals_;
  std::optional<Mac> mac_;
};

// The answers to one tag request.
class TagCombiner {
 public:
  ~TagCombiner();

  bool Add(int server, const v1::TagAnswer& answer, const std::string& who);
  void Fail(Outcome outcome) { vote_.Fail(std::move(outcome)); }
  bool Answered(int server) const { return vote_.Answered(server); }

  const Outcome& outcome() const { return vote_.outcome(); }
  const uint8_t* tag() const { return tag_.data(); }

 private:
  VerdictVote vote_;
  std::array<uint8_t, MPC_TAG_BYTES> tag_{};
};

}  // namespace mpckdc::client

#endif  // KDC_PLUGIN_CLIENT_COMBINER_H_
