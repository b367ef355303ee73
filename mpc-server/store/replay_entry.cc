// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/replay_entry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/store/record_format.h"

namespace mpckdc {
namespace {

uint64_t Micros(absl::Time time) {
  return static_cast<uint64_t>(std::max<int64_t>(0, absl::ToUnixMicros(time)));
}

absl::Time TimeOf(uint64_t micros) { return absl::FromUnixMicros(static_cast<int64_t>(micros)); }

}  // namespace

std::string ReplayKeysUntil(absl::Time expires) {
  std::string key;
  AppendUint(key, Micros(expires), 8);
  return key;
}

std::string ReplayKey(const ReplayEntry& entry) {
  return absl::StrCat(ReplayKeysUntil(entry.expires), AsText(entry.handle), AsText(entry.nonce));
}

std::string EncodeReplayClaim(const ReplayClaim& claim) {
  ByteWriter out;
  out.Fixed(claim.claimant);
  out.Uint(Micros(claim.since), 8);
  for (const uint8_t paid : {claim.tickets, claim.replies, claim.checksums}) out.Uint(paid, 1);
  out.Uint(0, 1);
  out.Fixed(claim.ticket_key);
  return out.Take();
}

ReplayClaim DecodeReplayClaim(absl::string_view value) {
  ReplayClaim claim;
  if (value.size() != record_format::kReplayValueBytes) return claim;
  ByteReader in(AsBytes(value));
  in.Into(claim.claimant);
  claim.since = TimeOf(in.Uint(8));
  for (uint8_t* paid : {&claim.tickets, &claim.replies, &claim.checksums}) {
    *paid = static_cast<uint8_t>(in.Uint(1));
  }
  in.Uint(1);
  in.Into(claim.ticket_key);
  return claim;
}

ReplayEntry ReplayEntryOf(absl::string_view key, absl::string_view value) {
  ByteReader in(AsBytes(key));
  ReplayEntry entry;
  entry.expires = TimeOf(in.Uint(8));
  in.Into(entry.handle);
  in.Into(entry.nonce);
  entry.claim = DecodeReplayClaim(value);
  return entry;
}

}  // namespace mpckdc
