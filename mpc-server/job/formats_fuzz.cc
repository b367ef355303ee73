// SPDX-License-Identifier: Apache-2.0
//
// What is opened in a job, or stands before a ticket.
#include <string>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/job/preauth_timestamp.h"
#include "mpc-server/job/ticket_header.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/message_format.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc {
namespace {

FuzzSeeds StampSeeds() {
  FuzzSeeds seeds;
  for (const int64_t micros :
       {0ll, 1'700'000'000'000'127ll, 1'700'000'000'999'999ll, 4'102'444'800'032'768ll}) {
    seeds.push_back(EncodePreauthTimestamp(absl::FromUnixMicros(micros)));
  }
  seeds.push_back(
      std::string("\x30\x13\xa0\x11\x18\x0f"
                  "20261125000000Z",
                  21));  // without microseconds
  return seeds;
}

// A time that is read is written the same: strict DER has one form for each, but that the
// microseconds may be left out.
MPCKDC_FUZZ(preauth_timestamp, StampSeeds) {
  const absl::string_view der = AsText(in);
  const auto time = DecodePreauthTimestamp(der);
  const PreauthWindow now{absl::FromUnixSeconds(1'700'000'000), absl::Minutes(5)};
  FUZZ_CHECK(time.has_value() || !now.Holds(der));
  if (!time || *time < absl::UnixEpoch()) return;  // nobody writes a year of three digits
  const std::string again = EncodePreauthTimestamp(*time);
  FUZZ_CHECK(DecodePreauthTimestamp(again) == time);
  constexpr size_t kWithoutMicroseconds = 21;
  FUZZ_CHECK(der == again || der.size() == kWithoutMicroseconds);
  FUZZ_CHECK(der == again || der.substr(2) == again.substr(2, kWithoutMicroseconds - 2));
}

FuzzSeeds HeaderSeeds() {
  FuzzSeeds seeds;
  for (const bool initial : {true, false}) {
    seeds.push_back(
        EncodeTicketHeader({initial, PrincipalId{7}, 1'700'000'000, 1'700'600'000, 99}));
  }
  return seeds;
}

MPCKDC_FUZZ(ticket_header, HeaderSeeds) {
  const auto header = DecodeTicketHeader(AsText(in));
  FUZZ_CHECK(header.has_value() || in.size() != kTicketHeaderBytes || in[0] == 0 || in[0] > 2);
  if (!header) return;
  FUZZ_CHECK(EncodeTicketHeader(*header) == AsText(in));
  const absl::Time now = absl::FromUnixSeconds(1'700'300'000);
  const absl::Duration life = absl::Hours(24 * 7), skew = absl::Minutes(5);
  const bool young = CheckOriginAge(*header, now, life, skew).ok();
  FUZZ_CHECK(!young || absl::FromUnixSeconds(header->origin_time) <= now + skew);
  FUZZ_CHECK(!young || absl::FromUnixSeconds(header->origin_time) + life + skew >= now);
  KeyInfo key;
  key.principal = "krbtgt/EXAMPLE.COM@EXAMPLE.COM";
  FUZZ_CHECK(ReissuedTicketHeader(*header, key, 5).origin_job == header->origin_job);
  key.principal = "krbtgt/EXAMPLE.COM@OTHER.COM";
  const TicketHeader foreign = ReissuedTicketHeader(*header, key, 5);
  FUZZ_CHECK(!foreign.initial && foreign.principal == key.principal_id && foreign.origin_job == 5);
}

// Whatever another realm writes: its users have numbers that none of ours has, and who goes around
// between realms comes to the last of them.
MPCKDC_FUZZ(foreign_user, HeaderSeeds) {
  KeyInfo key;
  key.principal = "krbtgt/EXAMPLE.COM@OTHER.COM";
  key.enctype = kEnctypeAes256Gcm;
  TicketHeader header;
  if (const auto decoded = DecodeTicketHeader(AsText(in))) header = *decoded;
  const auto message_of = [&in](const TicketHeader& h) {
    return absl::StrCat(std::string(kNonceBytes, 'n'), HeaderAad(EncodeTicketHeader(h)),
                        std::string(kZeroBytes, 'z'), AsText(in), std::string(kTagBytes, 't'));
  };
  for (JobId hops = 0; hops <= kMostForeignHops + 1; ++hops) {
    const JobId user = ForeignUser(key, message_of(header));
    FUZZ_CHECK((user & kForeignUserBit) != 0);
    const TicketHeader next = ReissuedTicketHeader(header, key, user);
    const auto ours = NewTicketHeader(next.principal, user, absl::UnixEpoch(), absl::Hours(1));
    FUZZ_CHECK(ours.origin_job != user);
    if (hops > kMostForeignHops) FUZZ_CHECK(next.origin_job == header.origin_job);
    header = next;
  }
  static_cast<void>(ForeignUser(key, AsText(in)));
}

}  // namespace
}  // namespace mpckdc
