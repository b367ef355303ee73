// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/fellows.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/store/record_format.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

}  // namespace

SecretBytes EncodeFellow(const Fellow& fellow) {
  SecretBytes out;
  AppendUint(out, rf::kFellowVersion, 1);
  AppendBytes(out, fellow.name);
  AppendUint(out, static_cast<uint64_t>(std::max<int64_t>(0, absl::ToUnixMicros(fellow.seen))), 8);
  AppendUint(out, fellow.epoch, 8);
  return out;
}

absl::StatusOr<Fellow> DecodeFellow(int triple, absl::Span<const uint8_t> plain) {
  ByteReader in(plain);
  Fellow fellow;
  fellow.triple = triple;
  const uint64_t version = in.Uint(1);
  in.Into(fellow.name);
  fellow.seen = absl::FromUnixMicros(static_cast<int64_t>(in.Uint(8)));
  fellow.epoch = in.Uint(8);
  if (in.AtEnd() && version == rf::kFellowVersion) return fellow;
  return absl::DataLossError(absl::StrCat(
      "the share store's note of the party's machine of triple ", triple, " is damaged"));
}

bool IsUp(const Fellow& fellow, absl::Time now) {
  return absl::AbsDuration(now - fellow.seen) < limits::kFellowSilence;
}

bool IsGone(const Fellow& fellow, absl::Time now) {
  return now - fellow.seen > limits::kFellowGone;
}

bool IsForeman(absl::Span<const Fellow> all, int triple, int steward, absl::Time now) {
  int foreman = -1;
  for (const Fellow& fellow : all) {
    if (!IsUp(fellow, now)) continue;
    const bool first = foreman < 0 || (foreman != steward && fellow.triple < foreman);
    if (fellow.triple == steward || first) foreman = fellow.triple;
  }
  return foreman == triple;
}

std::vector<int> Behind(absl::Span<const Fellow> all, uint64_t epoch, absl::Time now) {
  std::vector<int> behind;
  for (const Fellow& fellow : all) {
    if (fellow.epoch < epoch && !IsGone(fellow, now)) behind.push_back(fellow.triple);
  }
  return behind;
}

std::string FellowItem(int triple) { return absl::StrCat(rf::kFellowPrefix, triple); }

int TripleOfItem(absl::string_view name) {
  int triple = -1;
  if (!absl::ConsumePrefix(&name, rf::kFellowPrefix) || !absl::SimpleAtoi(name, &triple)) return -1;
  return triple;
}

}  // namespace mpckdc
