// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/job_log.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "mpc-server/service/line_limit.h"
#include "mpc-server/service/log.h"

namespace mpckdc {
namespace {

constexpr size_t kVerdicts = 16;

// What a client or a stranger can cause is no trouble of this server's.
spdlog::level::level_enum LevelOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kUnavailable:
    case Verdict::kInconsistent:
    case Verdict::kDeadline:
    case Verdict::kUnknownHandle:
      return spdlog::level::warn;
    default:
      return spdlog::level::info;
  }
}

LineLimit& LimitOf(Verdict verdict) {
  static auto* const limits = new std::array<LineLimit, kVerdicts>;
  return (*limits)[static_cast<size_t>(verdict) % kVerdicts];
}

}  // namespace

std::string RequestText(uint64_t request) {
  return request == 0 ? "" : absl::StrFormat("%016x", request);
}

void LogJob(const LoggedJob& job, const Judgement& judgement) {
  if (judgement.ok()) return;
  size_t left_out = 0;
  const bool room = LimitOf(judgement.verdict).Take(absl::ToUnixSeconds(absl::Now()), &left_out);
  const std::string verdict(VerdictName(judgement.verdict));
  if (left_out > 0) Log().info("{} jobs more were {} in one second before", left_out, verdict);
  if (!room) return;
  const std::string request = RequestText(job.request);
  LogWith({{"request", request},
           {"kdc", job.kdc},
           {"job", absl::StrCat(job.id)},
           {"verdict", verdict}},
          LevelOf(judgement.verdict),
          absl::StrCat(request.empty() ? "" : "request ", request, request.empty() ? "" : ": ",
                       job.what, " of KDC ", job.kdc, " (job ", job.id, "): ", verdict,
                       judgement.detail.empty() ? "" : ": ", judgement.detail));
}

}  // namespace mpckdc
