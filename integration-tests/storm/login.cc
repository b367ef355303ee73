// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/login.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "integration-tests/storm/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::storm {
namespace {

// What is encrypted and opened here is copied or read before the next one.
struct Scratch {
  uint8_t plain[limits::kMaxReplyBytes];
  uint8_t cipher[limits::kMaxRequestBytes];
};
thread_local Scratch scratch;

constexpr char kOtherNonce[] = "a reply with another nonce: to another request";

}  // namespace

absl::StatusOr<LoginPlan> MakeLoginPlan(const Options& o) {
  LoginPlan plan;
  plan.two_step = o.two_step;
  plan.ask_enc_pa_rep = !o.no_enc_pa_rep;
  plan.tgs_requests = o.tgs;
  plan.enctypes.push_back(o.enctype);
  for (const int32_t other : o.session_enctypes) {
    if (other != o.enctype) plan.enctypes.push_back(other);
  }
  ASSIGN_OR_RETURN(plan.tgs_name, TgsName(o.realm));
  ASSIGN_OR_RETURN(plan.service_name, ParseName(o.service, o.realm, KRB5_NT_SRV_INST));
  return plan;
}

Login::Next Login::Begin(const LoginPlan& plan, const User& user, const Key* wrong_key, bool check,
                         uint32_t nonce) {
  plan_ = &plan;
  user_ = &user;
  wrong_key_ = wrong_key;
  check_ = check;
  result_ = {};
  tgs_left_ = plan.tgs_requests;
  return Send(plan.two_step ? Step::kAsFirst : Step::kAs, nonce);
}

Login::Next Login::Complain(std::string text) {
  result_.complaint = absl::StrCat(user_->principal, ": ", text);
  return Finish(Outcome::kWrongAnswer);
}

Login::Next Login::NotOurs(std::string text) {
  Complain(std::move(text));
  return Next::kNotOurs;
}

Login::Next Login::Send(Step step, uint32_t nonce) {
  step_ = step;
  nonce_ = nonce;
  const int64_t now = absl::ToUnixMicros(absl::Now());
  const bool is_tgs = step == Step::kTgs;
  const krb5_kdc_req body =
      RequestBody(is_tgs ? nullptr : user_->name, is_tgs ? plan_->service_name : plan_->tgs_name,
                  plan_->enctypes, now, nonce);
  krb5_enc_data preauth = {};
  if (step == Step::kAs) {
    const Key& key = wrong_key_ != nullptr ? *wrong_key_ : user_->key;
    preauth = AsEncData(key.enctype(), key.Encrypt(kUsageTimestamp, View(*EncodeTimestamp(now)),
                                                   absl::MakeSpan(scratch.cipher)));
    if (preauth.ciphertext.length == 0) return Complain("libk5crypto did not encrypt the time");
  }
  tgs_left_ -= is_tgs ? 1 : 0;
  request_ = is_tgs ? EncodeTgsRequest(body, user_->name, tgt_.get(), session_key_, now)
                    : EncodeAsRequest(body, preauth, plan_->ask_enc_pa_rep);
  if (request_ != nullptr) return Next::kSend;
  return Complain(is_tgs ? "no TGS-REQ was made" : "no AS-REQ was made");
}

Login::Next Login::OnReply(Bytes message, uint32_t next_nonce) {
  if (IsError(message)) return OnError(message, next_nonce);
  const Reply reply = DecodeReply(message);
  if (reply == nullptr) return Complain("an answer that is no Kerberos message");
  return OnTicket(*reply, next_nonce);
}

Login::Next Login::OnError(Bytes message, uint32_t next_nonce) {
  const ErrorReply error = DecodeError(message);
  if (error == nullptr) return Complain("a KRB-ERROR that cannot be read");
  const auto code = static_cast<int>(error->error);
  if (error->client != nullptr &&
      !krb5_principal_compare_any_realm(nullptr, error->client, user_->name.get())) {
    return NotOurs(absl::StrCat("error ", code, " for another client"));
  }
  if (step_ == Step::kAsFirst && code == kErrorPreauthRequired) return Send(Step::kAs, next_nonce);
  result_.error_code = code;
  const bool expected = wrong_key_ != nullptr && code == kErrorPreauthFailed;
  return Finish(expected ? Outcome::kRefused : Outcome::kError);
}

// What can be seen without a key.
std::string Login::CheckEnvelope(const krb5_kdc_rep& reply) const {
  const bool is_tgs = step_ == Step::kTgs;
  const Principal& server = is_tgs ? plan_->service_name : plan_->tgs_name;
  const int32_t enctype = is_tgs ? session_key_.enctype() : user_->key.enctype();
  if (!krb5_principal_compare(nullptr, reply.ticket->server, server.get())) {
    return "a ticket for another service";
  }
  if (reply.enc_part.enctype != enctype) {
    return absl::StrCat("a reply under a key of ", EnctypeText(reply.enc_part.enctype),
                        " instead of ", EnctypeText(enctype));
  }
  return "";
}

// Nonce, session key, names, the checksum of our request; leaves the session key.
std::string Login::CheckInside(const krb5_kdc_rep& reply) {
  const bool is_tgs = step_ == Step::kTgs;
  const Key& key = is_tgs ? session_key_ : user_->key;
  const std::optional<Bytes> plaintext =
      key.Decrypt(is_tgs ? kUsageTgsReply : kUsageAsReply, View(reply.enc_part.ciphertext),
                  absl::MakeSpan(scratch.plain));
  if (!plaintext.has_value()) return "a reply that the key does not open";
  result_.decrypted = true;
  const ReplyPart part = DecodeReplyPart(*plaintext);
  if (part == nullptr) return "a reply with contents that cannot be read";
  if (static_cast<uint32_t>(part->nonce) != nonce_) return kOtherNonce;
  if (!krb5_principal_compare(nullptr, part->server, reply.ticket->server)) {
    return "a reply whose ticket is for another service than it says";
  }
  const krb5_keyblock& session = *part->session;
  if (std::find(plan_->enctypes.begin(), plan_->enctypes.end(), session.enctype) ==
      plan_->enctypes.end()) {
    return absl::StrCat("a session key of ", EnctypeText(session.enctype),
                        ", which was not asked for");
  }
  absl::StatusOr<Key> session_key =
      Key::FromBytes(session.enctype, {session.contents, session.length});
  if (!session_key.ok()) return absl::StrCat("session key: ", session_key.status().message());
  new_session_key_ = *std::move(session_key);
  if (is_tgs || !plan_->ask_enc_pa_rep) return "";
  const RequestChecksum checksum = FindRequestChecksum(*part);
  if (checksum == nullptr) return "a reply without the checksum of the request";
  if (!key.VerifyChecksum(kUsageAsRequest, request(), checksum->enctype,
                          {checksum->contents, checksum->length})) {
    return "a reply with a wrong checksum of the request";
  }
  return "";
}

Login::Next Login::OnTicket(krb5_kdc_rep& reply, uint32_t next_nonce) {
  const bool is_tgs = step_ == Step::kTgs;
  if ((reply.msg_type == KRB5_TGS_REP) != is_tgs ||
      !krb5_principal_compare(nullptr, reply.client, user_->name.get())) {
    return NotOurs("a reply for another client or another request");
  }
  if (step_ == Step::kAsFirst) {
    return Complain("a ticket without pre-authentication; has the user requires_preauth?");
  }
  if (wrong_key_ != nullptr) return Complain("a ticket for a wrong password");
  std::string wrong = CheckEnvelope(reply);
  if (wrong.empty() && (check_ || tgs_left_ > 0)) wrong = CheckInside(reply);
  if (wrong == kOtherNonce) return NotOurs(kOtherNonce);
  if (!wrong.empty()) return Complain(std::move(wrong));
  result_.tickets += is_tgs ? 1 : 0;
  if (tgs_left_ == 0) return Finish(Outcome::kOk);
  if (step_ == Step::kAs) {
    session_key_ = std::move(new_session_key_);
    tgt_.reset(std::exchange(reply.ticket, nullptr));
  }
  return Send(Step::kTgs, next_nonce);
}

}  // namespace mpckdc::storm
