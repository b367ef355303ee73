// SPDX-License-Identifier: Apache-2.0
//
// The names of what a server does against a KDC that was broken into, one for each check.
//
// In every program that is installed Upheld() is constant true and the compiler removes it. The
// intruder's tests (integration-tests/intruder) build the same sources once more with MPCKDC_CONTROL:
// there a test can drop one defence and must see its attack succeed. An attack that fails against a
// server without the defence would say nothing about the server with it.
#ifndef MPC_SERVER_DEFENCE_DEFENCE_H_
#define MPC_SERVER_DEFENCE_DEFENCE_H_

namespace mpckdc {

enum class Defence {
  kRole,            // a certificate gives one role, and only that
  kTable,           // operation and parts are in the closed table
  kClientsKey,      // pre-auth, reply and checksum are under keys of the job's client
  kGate,            // nothing for a principal with gate timestamp without a verified pre-auth
  kTag,             // nothing of a message whose tag is wrong
  kFreshness,       // the pre-auth's timestamp is near this server's clock
  kReplay,          // and was not accepted before
  kGrantPrincipal,  // a grant serves the principal who logged in
  kGrantBudget,     // and only so often
  kJobIds,          // job ids of a session only increase
  kSameJob,         // the three servers were sent the same job
  kTagMask,         // tag shares of different requests combine to noise
  kOneTag,          // one tag for each nonce
  kInheritance,     // a TGT made from a TGT keeps principal, origin and cap
  kOriginAge,       // no TGT opens after its origin's longest life
};

#ifdef MPCKDC_CONTROL
// Whether no test has dropped it. control.cc
bool Upheld(Defence defence);
#else
constexpr bool Upheld(Defence) { return true; }
#endif

}  // namespace mpckdc

#endif  // MPC_SERVER_DEFENCE_DEFENCE_H_
