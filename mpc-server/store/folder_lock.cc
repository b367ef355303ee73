// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace mpckdc {

absl::StatusOr<int> LockFolder(const std::string& folder) {
  const std::string path = folder + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    const std::string text = absl::StrCat("cannot open ", path, ": ", strerror(errno));
    if (errno == EACCES || errno == EPERM) return absl::PermissionDeniedError(text);
    return absl::UnavailableError(text);
  }
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  const int error = errno;
  close(fd);
  if (error != EWOULDBLOCK) {
    return absl::UnavailableError(absl::StrCat("cannot lock ", path, ": ", strerror(error)));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("another mpc-server has the data directory ", folder, " open"));
}

}  // namespace mpckdc
