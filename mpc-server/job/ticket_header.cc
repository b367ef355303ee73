// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/ticket_header.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/sha256.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc {
namespace {

void Put(uint64_t value, int size, std::string* out) {
  for (int i = size - 1; i >= 0; --i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t Get(absl::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

uint32_t Seconds(absl::Time time) {
  const int64_t last = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::clamp<int64_t>(absl::ToUnixSeconds(time), 0, last));
}

}  // namespace

std::string EncodeTicketHeader(const TicketHeader& header) {
  std::string out;
  out.reserve(kTicketHeaderBytes);
  Put(header.initial ? kTicketHeaderOfLogin : kTicketHeaderReissued, 1, &out);
  out.append(reinterpret_cast<const char*>(header.principal.data()), header.principal.size());
  Put(header.origin_time, 4, &out);
  Put(header.renewable_cap, 4, &out);
  Put(header.origin_job, 8, &out);
  return out;
}

std::optional<TicketHeader> DecodeTicketHeader(absl::string_view bytes) {
  if (bytes.size() != kTicketHeaderBytes) return std::nullopt;
  const auto version = static_cast<uint8_t>(bytes[0]);
  if (version != kTicketHeaderOfLogin && version != kTicketHeaderReissued) return std::nullopt;
  TicketHeader header;
  header.initial = version == kTicketHeaderOfLogin;
  std::memcpy(header.principal.data(), bytes.data() + 1, header.principal.size());
  header.origin_time = static_cast<uint32_t>(Get(bytes, 17, 4));
  header.renewable_cap = static_cast<uint32_t>(Get(bytes, 21, 4));
  header.origin_job = Get(bytes, 25, 8);
  return header;
}

std::optional<TicketHeader> HeaderOfTicket(const Job& job) {
  for (const OpenPart& open : job.opens) {
    const auto message = ParseMessage(open.message);
    const auto header = message ? DecodeTicketHeader(message->header) : std::nullopt;
    if (header) return header;
  }
  return std::nullopt;
}

PrincipalId PrincipalOfTicket(const Job& job) {
  const std::optional<TicketHeader> header = HeaderOfTicket(job);
  return header ? header->principal : PrincipalId{};
}

JobId ForeignUser(const KeyInfo& key, absl::string_view message) {
  const Enctype* enctype = FindEnctype(key.enctype);
  std::string user(message);
  JobId hops = 0;
  if (enctype != nullptr && enctype->is_gcm()) {
    const auto parsed = ParseMessage(message);
    const auto header = parsed ? DecodeTicketHeader(parsed->header) : std::nullopt;
    if (!header) return kForeignUserBit;  // it is not opened
    user = std::string(AsText(header->principal));
    // It says so of a third realm's. Who goes around between realms is somebody else a few times only.
    if ((header->origin_job & kForeignUserBit) != 0) {
      hops = ((header->origin_job >> kForeignHopsShift) & kMostForeignHops) + 1;
      if (hops > kMostForeignHops) return header->origin_job;
      Put(header->origin_job, 8, &user);
    }
  }
  const Digest hash =
      Sha256(absl::StrCat("mpc-kdc foreign user v1", AsText(key.principal_id), user));
  constexpr JobId kHashed = (JobId{1} << kForeignHopsShift) - 1;
  return kForeignUserBit | (hops << kForeignHopsShift) | (Get(AsText(hash), 0, 8) & kHashed);
}

TicketHeader NewTicketHeader(const PrincipalId& principal, JobId job, absl::Time origin,
                             absl::Duration max_renewable_life) {
  // A KDC chooses its jobs' numbers, and no user of ours is another realm's by that.
  return {true, principal, Seconds(origin), Seconds(origin + max_renewable_life),
          job & ~kForeignUserBit};
}

TicketHeader ReissuedTicketHeader(const TicketHeader& parent, const KeyInfo& key, JobId user) {
  TicketHeader header = parent;
  header.initial = false;
  if (IsOwnTgt(key.principal)) return header;
  header.principal = key.principal_id;
  header.origin_job = user;
  return header;
}

TicketHeader ForeignTicketHeader(const KeyInfo& key, JobId user, absl::Time now,
                                 absl::Duration max_renewable_life) {
  TicketHeader header = NewTicketHeader(key.principal_id, 0, now, max_renewable_life);
  header.initial = false;
  header.origin_job = user;
  return header;
}

Judgement CheckOriginAge(const TicketHeader& header, absl::Time now,
                         absl::Duration max_renewable_life, absl::Duration skew) {
  const absl::Time origin = absl::FromUnixSeconds(header.origin_time);
  if (origin > now + skew) {
    return Refuse(Verdict::kRefused,
                  absl::StrCat("the ticket's origin time is ",
                               absl::FormatDuration(absl::Trunc(origin - now, absl::Seconds(1))),
                               " in the future"));
  }
  if (now - origin > max_renewable_life + skew) {
    return Refuse(Verdict::kRefused,
                  absl::StrCat("the login that this ticket goes back to is ",
                               absl::FormatDuration(absl::Trunc(now - origin, absl::Seconds(1))),
                               " old, beyond max_renewable_life"));
  }
  if (now > absl::FromUnixSeconds(header.renewable_cap) + skew) {
    return Refuse(Verdict::kRefused, "the ticket's renewable-until cap has passed");
  }
  return Ok();
}

}  // namespace mpckdc
