// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/messages.h"

namespace mpckdc::bench {

absl::StatusOr<json> ParseMessage(absl::string_view line) {
  json message = json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!message.is_object()) {
    return absl::DataLossError(absl::StrCat("not a JSON object: \"", line.substr(0, 200), "\""));
  }
  const auto error = message.find("error");
  if (error == message.end() || !error->is_string()) return message;
  return absl::UnavailableError(error->get<std::string>());
}

}  // namespace mpckdc::bench
