// SPDX-License-Identifier: Apache-2.0
//
// The public header that the servers put into every ticket sealed under a gcm key, bound by the
// tag: TGTs and tickets for services whose keys they hold. 33 bytes, integers big-endian:
//
//   version (1) | principal id (16) | origin authentication time (4)
//   | renewable until, cap (4) | origin job (8)
//
// The version is 1 in a ticket sealed in a login, or under its grant, and 2 in one that was made
// from another ticket. If that goes back to one of another realm, the principal is the key between
// the realms, and the origin job is a number of the user there, with kForeignUserBit.
#ifndef MPC_SERVER_JOB_TICKET_HEADER_H_
#define MPC_SERVER_JOB_TICKET_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "mpc-server/job/job.h"

namespace mpckdc {

inline constexpr size_t kTicketHeaderBytes = 33;
inline constexpr uint8_t kTicketHeaderOfLogin = 1;
inline constexpr uint8_t kTicketHeaderReissued = 2;
inline constexpr JobId kForeignUserBit = JobId{1} << 63;
// Below it: how often a realm has made this number of another realm's. Who comes from further away
// keeps the last one.
inline constexpr int kForeignHopsShift = 61;
inline constexpr JobId kMostForeignHops = 3;

struct TicketHeader {
  bool initial = true;       // sealed for a pre-auth, not for another ticket
  PrincipalId principal{};   // under whose key the pre-auth was verified
  uint32_t origin_time = 0;  // seconds since 1970, unsigned: good until 2106
  uint32_t renewable_cap = 0;
  JobId origin_job = 0;

  friend bool operator==(const TicketHeader&, const TicketHeader&) = default;
};

std::string EncodeTicketHeader(const TicketHeader& header);
std::optional<TicketHeader> DecodeTicketHeader(absl::string_view bytes);
// The header of the ticket that the job opens, and whom it names (all zero when there is none); it is
// not verified before the job was computed.
std::optional<TicketHeader> HeaderOfTicket(const Job& job);
PrincipalId PrincipalOfTicket(const Job& job);

// The number of another realm's user: by what tells its users apart in a `message` under the `key`
// between the realms. Of a gcm key it is that realm's header, so all tickets of a user have one
// number; one of 17 to 20 says of nobody outside of its ciphertext whose it is, so it has a number of
// its own, and so have all tickets that are made from it.
JobId ForeignUser(const KeyInfo& key, absl::string_view message);

// The header of a ticket whose gate is passed in this job. Times beyond 2106 stop at the last one.
TicketHeader NewTicketHeader(const PrincipalId& principal, JobId job, absl::Time origin,
                             absl::Duration max_renewable_life);

// The header of a ticket made from the one that has `parent`, which was opened under `key`. Another
// realm chooses what its krbtgt/REALM@OTHER says, so that key itself is the principal then, and the
// `user` a number to tell its users apart.
TicketHeader ReissuedTicketHeader(const TicketHeader& parent, const KeyInfo& key, JobId user);

// The header of a ticket made from one that has none, since it came from another realm under `key`
// of 17 to 20: that key is the principal. When its login was only the other realm knows; what is
// made from it ages from the moment in which it came in, `now`.
TicketHeader ForeignTicketHeader(const KeyInfo& key, JobId user, absl::Time now,
                                 absl::Duration max_renewable_life);

// Whether a ticket with this header may still be opened: by the server's own limit now and by the
// cap that the header was given then. An origin in the future beyond `skew` is no server's work.
Judgement CheckOriginAge(const TicketHeader& header, absl::Time now,
                         absl::Duration max_renewable_life, absl::Duration skew);

}  // namespace mpckdc

#endif  // MPC_SERVER_JOB_TICKET_HEADER_H_
