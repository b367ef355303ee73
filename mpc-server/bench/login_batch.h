// SPDX-License-Identifier: Apache-2.0
// The logins of a batch under one of the enctypes 17 to 20, as three servers compute them. All that
// is known at arrival starts at once; the reply follows when its plaintext is there.
//
//   arrival   pre-auth: decrypt, HMAC, zero check, opening of the time   (19, 20: the HMAC reads
//             the ciphertext, so it does not wait for the decryption)
//             beside it: the checksum of usage 56; the ticket's blocks under the krbtgt key
//   reply     the plaintext comes in as additive shares, the confounder is drawn on shares;
//             17, 18: CBC-CTS, and beside it the HMAC of the text
//             19, 20: CBC-CTS, opening of the message, HMAC of it
//
// One ring, one part.
#ifndef MPC_SERVER_BENCH_LOGIN_BATCH_H_
#define MPC_SERVER_BENCH_LOGIN_BATCH_H_

#include <vector>

#include "absl/status/status.h"
#include "mpc-server/bench/login_workload.h"
#include "mpc-server/circuit/checks.h"
#include "mpc-server/circuit/hmac.h"
#include "mpc-server/share/circuit_chain.h"
#include "mpc-server/share/input.h"
#include "mpc-server/share/session.h"

namespace mpckdc::bench {

class LoginBatch {
 public:
  // The logins [first, first + logins) at one party.
  LoginBatch(const BenchSetup& setup, int party, size_t first, size_t logins);

  // A batch must have begun. An error also where a pre-authentication is not good.
  absl::Status Run(PartyContext& session, Cost* cost);
  // Of the last batch, LoginSizes::outputs blocks of each login.
  absl::Span<const SharedBlock> outputs() const { return outputs_; }
  size_t bytes() const { return keys_.bytes(); }  // of keys

 private:
  void SetBatch(uint32_t batch);
  absl::Status Arrival(PartyContext& session, Cost* cost);
  absl::Status Reply(PartyContext& session, Cost* cost);
  absl::Status CheckPreauth(const ZeroCheck& check, const OpenToServers& opened) const;
  void BeginPreauthMac();
  void BeginZeroCheck(ZeroCheck& check);
  void BeginTicket();
  void BeginCts(PartyContext& session);
  void BeginReplyMac(const OpenToServers* opened);
  void PutOutputs(const OpenToServers* opened);

  const BenchSetup setup_;
  const LoginSizes sizes_;
  const int party_;
  const size_t first_, logins_;
  const Adder adder_;
  const LoginKeys keys_;

  // Public, or this party's additive share; by login.
  std::vector<Bytes> timestamps_, preauths_, preauth_hashed_, requests_, reply_hashed_;
  std::vector<AesLane> ticket_lanes_;
  SecretVector<Block> reply_shares_;  // CtsBlocks(reply_bytes) of each login

  CtsDecrypt decrypt_;
  Hmac preauth_mac_, checksum_, reply_mac_;
  AesEncrypt ticket_;
  ShareInput input_;
  CtsEncrypt cts_;
  SecretVector<SharedBlock> differences_, opening_, text_;
  SecretVector<SharedBlock> outputs_;
};

// What a batch of logins costs one party, by public sizes: `frames` includes those to the previous
// party.
DeclaredSends DeclaredOfLogins(const BenchSetup& setup, size_t logins);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_LOGIN_BATCH_H_
