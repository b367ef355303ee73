// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/login.h"

#include <time.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "integration-tests/storm/limits.h"

namespace mpckdc::storm {
namespace {

// Requests and plaintexts are built and opened here and copied or read before the next one.
struct Scratch {
  uint8_t message[limits::kMaxRequestBytes];
  uint8_t plain[limits::kMaxReplyBytes];
  uint8_t cipher[limits::kMaxRequestBytes];
  uint8_t body[limits::kMaxRequestBytes];
};
thread_local Scratch scratch;

constexpr char kOtherNonce[] = "a reply with another nonce: to another request";

bool Same(Bytes a, Bytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

}  // namespace

int64_t WallClockMicroseconds() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

LoginPlan MakeLoginPlan(std::string realm, int32_t enctype, std::vector<int32_t> session_enctypes,
                        const std::string& service) {
  LoginPlan plan;
  plan.enctypes.push_back(enctype);
  for (const int32_t other : session_enctypes) {
    if (other != enctype) plan.enctypes.push_back(other);
  }
  plan.tgs_name = EncodeName(kNameService, {"krbtgt", realm});
  plan.service_name = EncodeName(kNameService, NameParts(service));
  plan.realm = std::move(realm);
  return plan;
}

Login::Next Login::Begin(const LoginPlan& plan, const User& user, const Key* wrong_key, bool check,
                         uint32_t nonce) {
  plan_ = &plan;
  user_ = &user;
  wrong_key_ = wrong_key;
  check_ = check;
  decrypted_ = false;
  tickets_ = 0;
  error_code_ = 0;
  tgs_left_ = plan.tgs_requests;
  return SendAs(plan.two_step ? Step::kAsFirst : Step::kAs, nonce);
}

Login::Next Login::Complain(std::string text) {
  complaint_ = absl::StrCat(user_->principal, ": ", text);
  return Finish(Outcome::kWrongAnswer);
}

Login::Next Login::NotOurs(std::string text) {
  Complain(std::move(text));
  return Next::kNotOurs;
}

Login::Next Login::SendAs(Step step, uint32_t nonce) {
  step_ = step;
  nonce_ = nonce;
  const int64_t now = WallClockMicroseconds();
  RequestBody body;
  body.client_name = user_->name;
  body.realm = plan_->realm;
  body.server_name = plan_->tgs_name;
  body.till = static_cast<uint32_t>(now / 1'000'000) + plan_->ticket_seconds;
  body.nonce = nonce;
  body.enctypes = plan_->enctypes;
  EncryptedData preauth;
  if (step == Step::kAs) {
    const Key& key = wrong_key_ != nullptr ? *wrong_key_ : user_->key;
    preauth.enctype = key.enctype();
    preauth.cipher =
        key.Encrypt(kUsageTimestamp, EncodeTimestamp(now, absl::MakeSpan(scratch.plain)),
                    absl::MakeSpan(scratch.cipher));
    if (preauth.cipher.empty()) return Complain("libk5crypto did not encrypt the time");
  }
  const Bytes request = EncodeAsRequest(body, preauth, plan_->ask_enc_pa_rep,
                                        absl::MakeSpan(scratch.message));
  request_.assign(request.begin(), request.end());
  return Next::kSend;
}

// The authenticator is under the session key itself, without a subkey; so is then the reply.
Login::Next Login::SendTgs(uint32_t nonce) {
  step_ = Step::kTgs;
  nonce_ = nonce;
  --tgs_left_;
  const int64_t now = WallClockMicroseconds();
  RequestBody body;
  body.realm = plan_->realm;
  body.server_name = plan_->service_name;
  body.till = static_cast<uint32_t>(now / 1'000'000) + plan_->ticket_seconds;
  body.nonce = nonce;
  body.enctypes = plan_->enctypes;
  const Bytes encoded = EncodeBody(body, absl::MakeSpan(scratch.body));
  uint8_t checksum[64];
  Authenticator a;
  a.client_name = user_->name;
  a.realm = plan_->realm;
  a.microseconds = now;
  if (!session_key_.Checksum(kUsageTgsChecksum, encoded, absl::MakeSpan(checksum), a.checksum_type,
                             a.checksum)) {
    return Complain("libk5crypto made no checksum of a TGS-REQ");
  }
  EncryptedData authenticator;
  authenticator.enctype = session_key_.enctype();
  authenticator.cipher = session_key_.Encrypt(
      kUsageTgsAuthenticator, EncodeAuthenticator(a, absl::MakeSpan(scratch.plain)),
      absl::MakeSpan(scratch.cipher));
  const Bytes request =
      EncodeTgsRequest(encoded, tgt_, authenticator, absl::MakeSpan(scratch.message));
  if (authenticator.cipher.empty() || request.empty()) return Complain("no TGS-REQ was made");
  request_.assign(request.begin(), request.end());
  return Next::kSend;
}

Login::Next Login::OnReply(Bytes message, uint32_t next_nonce) {
  if (IsError(message)) return OnError(message, next_nonce);
  Reply reply;
  if (!DecodeReply(message, reply)) return Complain("an answer that is no Kerberos message");
  return OnTicket(reply, next_nonce);
}

Login::Next Login::OnError(Bytes message, uint32_t next_nonce) {
  ErrorReply error;
  if (!DecodeError(message, error)) return Complain("a KRB-ERROR that cannot be read");
  if (!error.client_name.empty() && !Same(error.client_name, NameComponents(user_->name))) {
    return NotOurs(absl::StrCat("error ", error.code, " for another client"));
  }
  if (step_ == Step::kAsFirst && error.code == kErrorPreauthRequired) {
    return SendAs(Step::kAs, next_nonce);
  }
  error_code_ = error.code;
  const bool expected = wrong_password() && error.code == kErrorPreauthFailed;
  return Finish(expected ? Outcome::kRefused : Outcome::kError);
}

bool Login::IsForUs(const Reply& reply) const {
  return reply.is_tgs == (step_ == Step::kTgs) && reply.client_realm == plan_->realm &&
         Same(reply.client_name, NameComponents(user_->name));
}

// What can be seen without a key.
std::string Login::CheckEnvelope(const Reply& reply) const {
  const bool is_tgs = step_ == Step::kTgs;
  const std::string& server = is_tgs ? plan_->service_name : plan_->tgs_name;
  const int32_t enctype = is_tgs ? session_key_.enctype() : user_->key.enctype();
  if (reply.ticket_realm != plan_->realm || !Same(reply.ticket_server, NameComponents(server))) {
    return "a ticket for another service";
  }
  if (reply.enc_part.enctype != enctype) {
    return absl::StrCat("a reply under a key of ", EnctypeText(reply.enc_part.enctype),
                        " instead of ", EnctypeText(enctype));
  }
  return "";
}

// Nonce, session key, names, the checksum of our request; leaves the session key.
std::string Login::CheckInside(const Reply& reply, const Key& key, int usage) {
  Bytes plaintext;
  if (!key.Decrypt(usage, reply.enc_part.cipher, absl::MakeSpan(scratch.plain), plaintext)) {
    return "a reply that the key does not open";
  }
  decrypted_ = true;
  ReplyPart part;
  if (!DecodeReplyPart(plaintext, part)) return "a reply with contents that cannot be read";
  if (part.nonce != nonce_) return kOtherNonce;
  if (part.server_realm != reply.ticket_realm || !Same(part.server_name, reply.ticket_server)) {
    return "a reply whose ticket is for another service than it says";
  }
  if (std::find(plan_->enctypes.begin(), plan_->enctypes.end(), part.session_enctype) ==
      plan_->enctypes.end()) {
    return absl::StrCat("a session key of ", EnctypeText(part.session_enctype),
                        ", which was not asked for");
  }
  absl::StatusOr<Key> session_key = Key::FromBytes(part.session_enctype, part.session_key);
  if (!session_key.ok()) return absl::StrCat("session key: ", session_key.status().message());
  new_session_key_ = *std::move(session_key);
  if (step_ == Step::kTgs || !plan_->ask_enc_pa_rep) return "";
  if (!part.has_request_checksum) return "a reply without the checksum of the request";
  if (!key.VerifyChecksum(kUsageAsRequest, request_, part.request_checksum_type,
                          part.request_checksum)) {
    return "a reply with a wrong checksum of the request";
  }
  return "";
}

Login::Next Login::OnTicket(const Reply& reply, uint32_t next_nonce) {
  if (!IsForUs(reply)) return NotOurs("a reply for another client or another request");
  if (step_ == Step::kAsFirst) {
    return Complain("a ticket without pre-authentication; has the user requires_preauth?");
  }
  if (wrong_password()) return Complain("a ticket for a wrong password");
  std::string wrong = CheckEnvelope(reply);
  if (wrong.empty() && (check_ || tgs_left_ > 0)) {
    const bool is_tgs = step_ == Step::kTgs;
    wrong = CheckInside(reply, is_tgs ? session_key_ : user_->key,
                        is_tgs ? kUsageTgsReply : kUsageAsReply);
  }
  if (wrong == kOtherNonce) return NotOurs(std::move(wrong));
  if (!wrong.empty()) return Complain(std::move(wrong));
  if (step_ == Step::kTgs) ++tickets_;
  if (tgs_left_ == 0) return Finish(Outcome::kOk);
  if (step_ == Step::kAs) {
    session_key_ = std::move(new_session_key_);
    tgt_.assign(reply.ticket.begin(), reply.ticket.end());
  }
  return SendTgs(next_nonce);
}

}  // namespace mpckdc::storm
