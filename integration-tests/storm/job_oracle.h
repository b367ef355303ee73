// SPDX-License-Identifier: Apache-2.0
//
// What a login job must have yielded, computed with the user's whole key, which the servers only
// have shares of. Of the ticket, which is under krbtgt's key that nobody knows, what can be seen.
//
//     usage     what is compared
//     open 1    keystream (17 to 20: plaintext) against the time stamp that was encrypted
//     seal 3    the message, opened by libk5crypto with the user's key: tag, zero block, plaintext
//     mac 56    the checksum, verified by libk5crypto with the user's key
//     seal 2    header: version, whom, when, which job; nonce: the servers' time. Its keystream and
//               tag by the servers' own word only: a job OPEN_TICKET must accept the ticket and
//               return the same keystream. That krbtgt's key was used at all is not shown.
#ifndef INTEGRATION_TESTS_STORM_JOB_ORACLE_H_
#define INTEGRATION_TESTS_STORM_JOB_ORACLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "integration-tests/storm/users.h"
#include "kdc-plugin/client/mpc_client.h"

namespace mpckdc::storm {

// A seal with its ciphertext and tag, put together as the KDC does:
// nonce | header length | header | ciphertext | tag.
std::vector<uint8_t> SealedMessage(const mpc_sealed& seal, Bytes ciphertext, Bytes tag);

// (16 zero bytes | plaintext) XOR keystream.
std::vector<uint8_t> SealCiphertext(const mpc_sealed& seal, Bytes plaintext);

struct JobLogin {
  const User* user = nullptr;
  std::string principal;                // with realm
  std::vector<uint8_t> timestamp;       // what was encrypted
  std::vector<uint8_t> preauth;         // the message
  std::vector<uint8_t> as_request;      // under the checksum
  std::vector<uint8_t> ticket_plain;
  std::vector<uint8_t> reply_plain;
  std::vector<uint8_t> ticket;          // messages
  std::vector<uint8_t> reply;
};

// Each: empty if all is right, else what is wrong.
std::string CompareWithOracle(const JobLogin& login, const mpc_result& result, int64_t now_seconds);
std::string CompareOpenedTicket(const JobLogin& login, const mpc_result& opened);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_JOB_ORACLE_H_
