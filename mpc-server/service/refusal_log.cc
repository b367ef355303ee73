// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/refusal_log.h"

#include <utility>

#include "mpc-server/base/limits.h"
#include "mpc-server/service/log.h"

namespace mpckdc {
namespace {
constexpr char kOther[] = "other";  // kinds beyond limits::kMaxRefusalKinds
}  // namespace

void RefusalLog::Note(const std::string& call, AuditLog::Fields details) {
  Tick();
  AuditLog::Fields line = {{"call", call}};
  line.update(details);
  {
    const absl::MutexLock lock(&mutex_);
    const bool room = kinds_.contains(call) || kinds_.size() < limits::kMaxRefusalKinds;
    Kind& kind = kinds_[room ? call : kOther];
    if (kind.lines >= limits::kRefusalLinesPerSecond) {
      ++kind.counted;
      kind.last = std::move(line);
      return;
    }
    ++kind.lines;
  }
  Write(std::move(line));
}

void RefusalLog::Tick() {
  const absl::Time now = clock_->Now();
  {
    const absl::MutexLock lock(&mutex_);
    if (now >= second_ && now < second_ + absl::Seconds(1)) return;
    second_ = now;
  }
  Flush();
}

void RefusalLog::Flush() {
  std::map<std::string, Kind> kinds;
  {
    const absl::MutexLock lock(&mutex_);
    kinds.swap(kinds_);
  }
  for (auto& [call, kind] : kinds) {
    if (kind.counted == 0) continue;
    AuditLog::Fields line = std::move(kind.last);
    line["count"] = kind.counted;  // without those that have a line of their own
    Write(std::move(line));
  }
}

void RefusalLog::Write(AuditLog::Fields line) {
  const absl::Status written = audit_->Append("refused", std::move(line));
  if (!written.ok()) Log().error("{}", Text(written));
}

}  // namespace mpckdc
