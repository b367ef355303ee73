// SPDX-License-Identifier: Apache-2.0
//
// One login as a client does it: which request comes next, and whether an answer is right. It knows
// nothing of sockets and clocks that wait.
//
//     two-step   AS-REQ -> PREAUTH_REQUIRED, then as one-step
//     one-step   AS-REQ with PA-ENC-TIMESTAMP -> AS-REP, then N times TGS-REQ -> TGS-REP
#ifndef INTEGRATION_TESTS_STORM_LOGIN_H_
#define INTEGRATION_TESTS_STORM_LOGIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "integration-tests/storm/kerberos.h"
#include "integration-tests/storm/users.h"

namespace mpckdc::storm {

// What all logins of a run have in common.
struct LoginPlan {
  std::vector<int32_t> enctypes;  // asked for: the users' own first, then for session keys
  bool two_step = false;
  bool ask_enc_pa_rep = true;     // as kinit does
  int tgs_requests = 0;           // after each login
  Principal tgs_name;             // krbtgt/REALM
  Principal service_name;         // whose tickets the TGS requests ask for
};
absl::StatusOr<LoginPlan> MakeLoginPlan(const Options& options);

enum class Outcome {
  kOk,
  kRefused,      // a wrong password, and PREAUTH_FAILED
  kError,        // any other KRB-ERROR
  kWrongAnswer,  // what no KDC may say
  kLost,         // no answer
};

class Login {
 public:
  enum class Step { kAsFirst, kAs, kTgs };
  enum class Next {
    kSend,     // there is another request()
    kDone,     // see result()
    kNotOurs,  // an answer to somebody else, or to another request; its complaint says how one sees
  };

  // Returns kSend (kDone: this machine's libk5crypto failed, as its complaint says).
  // `wrong_key` if not null takes the place of the user's key: a wrong password. `check`: whether
  // replies are decrypted and looked into; a reply that the next request needs always is.
  Next Begin(const LoginPlan& plan, const User& user, const Key* wrong_key, bool check,
             uint32_t nonce);

  // What to send; until the next call of OnReply().
  Bytes request() const { return View(*request_); }
  Step step() const { return step_; }
  const User& user() const { return *user_; }  // of the last Begin()

  Next OnReply(Bytes message, uint32_t next_nonce);

  // After kDone.
  struct Result {
    Outcome outcome = Outcome::kOk;
    int error_code = 0;     // of kError and kRefused
    std::string complaint;
    bool decrypted = false;
    int tickets = 0;
  };
  const Result& result() const { return result_; }

 private:
  Next Finish(Outcome outcome) {
    result_.outcome = outcome;
    return Next::kDone;
  }
  Next Complain(std::string text);
  Next OnError(Bytes message, uint32_t next_nonce);
  Next OnTicket(krb5_kdc_rep& reply, uint32_t next_nonce);
  Next NotOurs(std::string text);
  std::string CheckEnvelope(const krb5_kdc_rep& reply) const;
  std::string CheckInside(const krb5_kdc_rep& reply);
  Next Send(Step step, uint32_t nonce);

  const LoginPlan* plan_ = nullptr;
  const User* user_ = nullptr;
  const Key* wrong_key_ = nullptr;
  bool check_ = false;
  Step step_ = Step::kAs;
  uint32_t nonce_ = 0;
  int tgs_left_ = 0;
  Encoded request_;
  Ticket tgt_;
  Key session_key_;
  Key new_session_key_;  // of the reply that is being looked at
  Result result_;
};

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_LOGIN_H_
