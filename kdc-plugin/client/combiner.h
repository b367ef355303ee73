// SPDX-License-Identifier: Apache-2.0
//
// From three answers to one result. Shares are summed as they come; the verdicts decide whether the
// sum means anything, and the servers' checks of each other (mpc-server/key/output_format.h)
// whether one of them altered its part: then nothing is taken, and it is named. Sums are in locked
// memory and wiped when freed.
#ifndef KDC_PLUGIN_CLIENT_COMBINER_H_
#define KDC_PLUGIN_CLIENT_COMBINER_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kdc-plugin/client/mpc_client.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/key/output_format.h"
#include "proto/kdc_key.pb.h"

namespace mpckdc::client {

// A verdict of the three together, with a sentence for the log.
struct Outcome {
  mpc_verdict verdict = MPC_OK;
  std::string detail;
  mpc_outage outage = MPC_NO_OUTAGE;
  bool over_quota = false;
};

inline Outcome Unavailable(std::string detail) { return {MPC_UNAVAILABLE, std::move(detail)}; }
inline Outcome Outage(std::string detail, mpc_outage outage = MPC_OUTAGE) {
  return {MPC_UNAVAILABLE, std::move(detail), outage};
}

// Whose answer it is. Names of servers are for texts.
struct Sender {
  int server = 0;
  int party = 0;
  const std::array<std::string, MPC_SERVERS>& names;  // by party

  const std::string& name() const { return names[static_cast<size_t>(party)]; }
};

// Something that the three were asked, until it ends and the callback that waits for it is called.
// Collects one verdict per server. BAD_TAG, CLOCK_SKEW, REPLAY and REFUSED are believed only if all
// three say so: one server alone may not turn a login into a wrong password.
class Combiner {
 public:
  virtual ~Combiner() = default;
  Combiner(const Combiner&) = delete;
  Combiner& operator=(const Combiner&) = delete;

  // Ends it early.
  void Fail(Outcome outcome);
  bool Answered(int server) const { return answered_[server]; }
  void set_sent(absl::Time now) { sent_ = now; }
  absl::Time sent() const { return sent_; }
  // Calls back with the outcome; once.
  virtual void Deliver() = 0;
  virtual bool is_tag() const { return false; }
  // Which servers contradict each other; empty if none do.
  const std::string& accusation() const { return accusation_; }
  // Why its answers were none, did not come, or contradicted each other; empty if they did not.
  std::string WhatWasWrong() const {
    return outcome_.outage != MPC_NO_OUTAGE ? outcome_.detail : "";
  }

 protected:
  Combiner() = default;

  // Whether an answer of this server still matters. A second one is ignored.
  bool Awaits(int server) const { return !decided_ && !answered_[server]; }
  // Returns true when the outcome is known: after three equal verdicts, or at once when the
  // verdicts differ or one of them needs no company. Three that say OK must fit together.
  bool Vote(const Sender& from, v1::Verdict verdict, const std::string& detail);
  // An outage, because servers contradict each other. Returns true.
  bool Accuse(const std::string& text);
  const Outcome& outcome() const { return outcome_; }
  OutputJoiner& joiner() { return joiner_; }

 private:
  absl::Time sent_;
  std::array<bool, MPC_SERVERS> answered_{};
  int count_ = 0;
  v1::Verdict first_ = v1::VERDICT_UNSPECIFIED;
  std::string first_detail_, first_who_, accusation_;
  OutputJoiner joiner_;
  bool decided_ = false;
  Outcome outcome_;
};

// What the answers for one part of a job add up to. The part's key decides the family of its
// messages (the table in mpc_client.h), and the job all sizes.
struct PartSum {
  bool gcm = false;
  size_t bytes = 0;  // of each share, whatever it is a share of
  uint32_t number = 0;  // OutputNumber()
  size_t nonce_bytes = 0, max_header = 0;
  std::string nonce{}, header{};  // the first answer's: the others must have them too
  SecretBytes sum{};
};

struct ResultBox;

// One job's answers. One of other sizes than the job's is an outage.
class JobCombiner final : public Combiner {
 public:
  // The enctypes are in the table (CheckJob in job_client.cc).
  JobCombiner(const mpc_job& job, mpc_job_done done, void* arg);

  void set_id(uint64_t id) { id_ = id; }
  // As Vote().
  bool Add(const Sender& from, const v1::JobAnswer& answer);
  void Deliver() override;

 private:
  // What an OK answer holds; false when that ends the job.
  bool TakeOutputs(const Sender& from, const v1::JobAnswer& answer);
  // Returns false where `f(part, its answer)` did, or the answer has more or fewer parts.
  template <class F>
  bool ForEachPart(const v1::JobAnswer& answer, F f);
  void FillIn(ResultBox& box);  // moves the sums there

  const mpc_job_done done_;
  void* const arg_;
  uint64_t id_ = 0;
  std::string first_ok_;  // who sent the first answer that was OK
  std::vector<PartSum> opens_, seals_, macs_;
};

// The answers to one tag request.
class TagCombiner final : public Combiner {
 public:
  TagCombiner(mpc_tag_done done, void* arg) : done_(done), arg_(arg) {}
  ~TagCombiner() override;

  bool Add(const Sender& from, const v1::TagAnswer& answer);
  void Deliver() override;
  bool is_tag() const override { return true; }

 private:
  const mpc_tag_done done_;
  void* const arg_;
  std::array<uint8_t, MPC_TAG_BYTES> tag_{};
};

}  // namespace mpckdc::client

#endif  // KDC_PLUGIN_CLIENT_COMBINER_H_
