// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/job_oracle.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "integration-tests/storm/kerberos.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/job/ticket_header.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc::storm {
namespace {

constexpr int64_t kClockTolerance = 60;  // seconds between this machine's clock and the servers'

Bytes View(mpc_bytes bytes) { return {bytes.data, bytes.size}; }

// keystream XOR ciphertext (without its zero block) == plaintext.
bool Opens(absl::string_view ciphertext, Bytes keystream, const std::vector<uint8_t>& plaintext) {
  if (keystream.size() != plaintext.size() || ciphertext.size() != kZeroBytes + plaintext.size()) {
    return false;
  }
  for (size_t i = 0; i < plaintext.size(); ++i) {
    const auto byte = static_cast<uint8_t>(ciphertext[kZeroBytes + i]);
    if ((byte ^ keystream[i]) != plaintext[i]) return false;
  }
  return true;
}

// A GCM message is compared by its keystream, one of 17 to 20 by its plaintext.
bool OpensPreauth(const JobLogin& login, const mpc_result& result) {
  if (!FindEnctype(login.user->key.enctype())->is_gcm()) {
    return View(result.open_plaintext) == Bytes(login.timestamp);
  }
  const std::optional<MessageView> preauth = ParseMessage(AsText(login.preauth));
  return preauth.has_value() &&
         Opens(preauth->ciphertext, View(result.open_keystream), login.timestamp);
}

std::string CompareTicketHeader(const JobLogin& login, const mpc_result& result, int64_t now) {
  const std::optional<MessageView> ticket = ParseMessage(AsText(login.ticket));
  if (!ticket.has_value()) return "a ticket that is no message";
  const std::optional<TicketHeader> header = DecodeTicketHeader(ticket->header);
  if (!header.has_value()) return "a ticket without a header";
  if (header->principal != PrincipalIdOf(login.principal)) return "a ticket for somebody else";
  if (header->origin_job != result.id) return "a ticket of another job";
  if (std::abs(static_cast<int64_t>(header->origin_time) - now) > kClockTolerance) {
    return "a ticket of another time";
  }
  const auto nonce_time = static_cast<int64_t>(ByteReader(ticket->nonce).Uint(4));
  // Nonces only grow: after a clock that ran ahead they may stay ahead, never behind.
  if (nonce_time + kClockTolerance < now) return "a nonce of the past";
  return "";
}

}  // namespace

std::vector<uint8_t> SealCiphertext(const mpc_sealed& seal, Bytes plaintext) {
  std::vector<uint8_t> ciphertext(kZeroBytes + plaintext.size());
  std::copy(plaintext.begin(), plaintext.end(), ciphertext.begin() + kZeroBytes);
  for (size_t i = 0; i < ciphertext.size(); ++i) ciphertext[i] ^= seal.keystream.data[i];
  return ciphertext;
}

std::vector<uint8_t> SealedMessage(const mpc_sealed& seal, Bytes ciphertext, Bytes tag) {
  std::vector<uint8_t> message(seal.nonce, seal.nonce + MPC_NONCE_BYTES);
  AppendUint(message, seal.header.size, 1);
  for (const Bytes part : {View(seal.header), ciphertext, tag}) AppendBytes(message, part);
  return message;
}

std::string CompareWithOracle(const JobLogin& login, const mpc_result& result, int64_t now) {
  const Key& key = login.user->key;
  if (!OpensPreauth(login, result)) return "the pre-authentication is opened wrongly";
  std::vector<uint8_t> buffer(login.reply.size());
  if (key.Decrypt(kUsageAsReply, login.reply, absl::MakeSpan(buffer)) != Bytes(login.reply_plain)) {
    return "the user's key does not open the reply";
  }
  if (!key.VerifyChecksum(kUsageAsRequest, login.as_request, ChecksumTypeOf(key.enctype()),
                          {result.mac, result.mac_size})) {
    return "the checksum of the request is wrong";
  }
  return CompareTicketHeader(login, result, now);
}

std::string CompareOpenedTicket(const JobLogin& login, const mpc_result& opened) {
  if (opened.verdict != MPC_OK) {
    return absl::StrCat("the servers do not open their own ticket: verdict ", opened.verdict);
  }
  const std::optional<MessageView> ticket = ParseMessage(AsText(login.ticket));
  if (!ticket.has_value() ||
      !Opens(ticket->ciphertext, View(opened.open_keystream), login.ticket_plain)) {
    return "the ticket opens with another keystream than it was sealed with";
  }
  return "";
}

}  // namespace mpckdc::storm
