// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_SERVICE_SD_NOTIFY_H_
#define MPC_SERVER_SERVICE_SD_NOTIFY_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mpckdc {

// Tells systemd, by one datagram to $NOTIFY_SOCKET, e.g. "READY=1". OK when nobody listens.
absl::Status SdNotify(absl::string_view state);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_SD_NOTIFY_H_
