// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/kdb-tool/import_names.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kdc-plugin/kdb-tool/lines.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::kdbtool {
namespace {

absl::Status WriteDurably(const std::string& path, int flags, absl::string_view text) {
  const auto failed = [&] {
    return absl::FailedPreconditionError(absl::StrCat(path, ": ", strerror(errno)));
  };
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  if (fd < 0) return failed();
  absl::Cleanup close_it = [fd] { close(fd); };
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written <= 0) return failed();
    text.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(fd) == 0 ? absl::OkStatus() : failed();
}

}  // namespace

absl::StatusOr<ImportedNames> ImportedNames::Read(const std::string& path,
                                                  const std::string& database) {
  ImportedNames names;
  names.path_ = path;
  names.header_ = absl::StrCat("# mpc-kdb import ", ToHex(database));
  std::ifstream in(path, std::ios::binary);
  if (!in && access(path.c_str(), F_OK) == 0) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": ", strerror(errno)));
  }
  std::stringstream all;
  all << in.rdbuf();
  std::vector<std::string> lines = absl::StrSplit(all.str(), '\n');
  if (lines[0] != names.header_) return names;
  names.good_ = lines.back().empty();
  lines.pop_back();  // what follows the last line end
  for (size_t i = 1; i < lines.size(); ++i) {
    if (!lines[i].empty()) names.Apply(lines[i][0], lines[i].substr(1));
  }
  return names;
}

void ImportedNames::Apply(char how, const std::string& name) {
  if (how == '+') names_.insert(name);
  if (how == '-') names_.erase(name);
}

absl::Status ImportedNames::Append(char how, const std::vector<std::string>& names) {
  if (names.empty() || path_.empty()) return absl::OkStatus();
  std::string text;
  for (const std::string& name : names) {
    Apply(how, name);
    absl::StrAppend(&text, std::string(1, how), name, "\n");
  }
  if (good_) return WriteDurably(path_, O_APPEND, text);
  text = absl::StrCat(header_, "\n");
  for (const std::string& name : names_) absl::StrAppend(&text, "+", name, "\n");
  const std::string unfinished = path_ + ".new";
  RETURN_IF_ERROR(WriteDurably(unfinished, O_TRUNC, text));
  if (rename(unfinished.c_str(), path_.c_str()) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(path_, ": ", strerror(errno)));
  }
  good_ = true;
  return absl::OkStatus();
}

}  // namespace mpckdc::kdbtool
