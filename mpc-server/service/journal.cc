// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/journal.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/one_line.h"
#include "mpc-server/service/log.h"

namespace mpckdc {
namespace {

int PriorityOf(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::critical:
      return LOG_CRIT;
    case spdlog::level::err:
      return LOG_ERR;
    case spdlog::level::warn:
      return LOG_WARNING;
    case spdlog::level::info:
      return LOG_INFO;
    default:
      return LOG_DEBUG;
  }
}

}  // namespace

// systemd.exec(5): the device and inode of the stream, which may have been redirected since.
bool StderrIsJournal() {
  const char* const named = getenv("JOURNAL_STREAM");
  struct stat found {};
  return named != nullptr && fstat(STDERR_FILENO, &found) == 0 &&
         absl::StrCat(found.st_dev, ":", found.st_ino) == named;
}

void JournalSink::sink_it_(const spdlog::details::log_msg& msg) {
  // What a message says may come from another server: as in a text line, it is one line.
  const std::string text = OnOneLine({msg.payload.data(), msg.payload.size()});
  std::vector<std::string> fields = {absl::StrCat("MESSAGE=", text),
                                     absl::StrCat("PRIORITY=", PriorityOf(msg.level)),
                                     "SYSLOG_IDENTIFIER=mpc-server"};
  for (const auto& [name, value] : FieldsOfLine()) {
    fields.push_back(absl::StrCat("MPC_", absl::AsciiStrToUpper(name), "=", OnOneLine(value)));
  }
  std::vector<iovec> parts;
  for (std::string& field : fields) parts.push_back({field.data(), field.size()});
  if (sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) >= 0) return;
  // It does not take lines: standard error may.
  const std::string line = text + "\n";
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace mpckdc
