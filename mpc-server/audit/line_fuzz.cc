// SPDX-License-Identifier: Apache-2.0
//
// Lines of audit logs, which `mpc-admin audit` reads from three machines of which one may lie.
// logs_fuzz.cc has whole logs.
#include <string>

#include "absl/strings/strip.h"
#include "mpc-server/audit/job_match.h"
#include "mpc-server/audit/line.h"
#include "mpc-server/audit/log_seeds.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc::audit {
namespace {

FuzzSeeds LineSeeds() {
  FuzzSeeds seeds;
  const std::string text = GoodLog(1).text();
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    seeds.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return seeds;
}

MPCKDC_FUZZ(audit_line, LineSeeds) {
  const absl::string_view text = AsText(in);
  const auto line = ParseLine(text);
  if (!line) return;
  FUZZ_CHECK(line->text == text && text.find('\n') == absl::string_view::npos);
  FUZZ_CHECK(line->hash.size() == kHashDigits && line->prev.size() == kHashDigits);
  // Every part lies in the text, in this order.
  const char* at = text.begin();
  for (const absl::string_view part :
       {line->prev, line->time, line->owner, line->kind, line->hash}) {
    FUZZ_CHECK(part.begin() >= at && part.end() <= text.end());
    at = part.end();
  }
  static_cast<void>(HashHolds(*line));
  static_cast<void>(TimeOf(*line));
  const Fields fields = FieldsOf(*line);
  static_cast<void>(TextField(fields, "kind"));
  static_cast<void>(NumberField(fields, "seq"));
  Timeline timeline;
  if (Timeline::Matters(*line)) timeline.Note(*line, kTime, fields);
  timeline.NoteTime(*line, kTime);
  static_cast<void>(timeline.At(kTime + absl::Seconds(1), absl::Seconds(5)));
  CountedJobs counted;
  counted.Note(*line, kTime, fields);
  static_cast<void>(counted.Take("kdc1", kTime));
}

// kind | 00 | a text: what is written of any bytes is a line, with a hash that holds.
FuzzSeeds MemberSeeds() {
  return {std::string("admin\0alice", 11), std::string("batch\0\xff\"\\\n", 10)};
}

MPCKDC_FUZZ(audit_encode, MemberSeeds) {
  const absl::string_view text = AsText(in);
  const std::string value(text.substr(std::min(text.find('\0'), text.size())));
  Head head;
  const std::string line =
      EncodeLine({value, 2}, kTime, "admin", MembersOf({{"text", value}}), &head);
  const auto read = ParseLine(absl::StripSuffix(line, "\n"));
  FUZZ_CHECK(read.has_value() && HashHolds(*read) && read->hash == head.hash && read->seq == 1);
  FUZZ_CHECK(TimeOf(*read) == kTime && read->kind == "admin");
  FUZZ_CHECK(read->owner == OwnerText({value, 2}));
  FUZZ_CHECK(FieldsOf(*read).is_object());
}

}  // namespace
}  // namespace mpckdc::audit
