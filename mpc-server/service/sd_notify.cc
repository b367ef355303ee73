// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/sd_notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace mpckdc {

absl::Status SdNotify(absl::string_view state) {
  const char* path = getenv("NOTIFY_SOCKET");
  if (path == nullptr || path[0] == '\0') return absl::OkStatus();
  struct sockaddr_un address = {};
  const size_t length = strlen(path);
  if (length >= sizeof address.sun_path) {
    return absl::InvalidArgumentError("NOTIFY_SOCKET is too long");
  }
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path, length);
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // abstract socket
  const auto size = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + length);
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool sent = fd >= 0 && sendto(fd, state.data(), state.size(), MSG_NOSIGNAL,
                                      reinterpret_cast<const struct sockaddr*>(&address), size) ==
                                   static_cast<ssize_t>(state.size());
  const int error = errno;
  if (fd >= 0) close(fd);
  if (sent) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot notify systemd: ", strerror(error)));
}

}  // namespace mpckdc
