// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/messages.h"

#include <cstring>

#include "absl/strings/escaping.h"
#include "mpc-server/base/status_macros.h"

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

json SharesToJson(absl::Span<const SharedBlock> shares) {
  json list = json::array();
  for (const SharedBlock& s : shares) {
    list.push_back(absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(&s), sizeof(s))));
  }
  return json::object({{"shares", std::move(list)}});
}

absl::StatusOr<std::vector<SharedBlock>> SharesFromJson(const json& message) {
  ASSIGN_OR_RETURN(const auto list, Read<std::map<std::string, std::vector<std::string>>>(message));
  std::vector<SharedBlock> shares;
  for (const auto& [name, texts] : list) {
    for (const std::string& hex : texts) {
      const std::string bytes = absl::HexStringToBytes(hex);
      if (name != "shares" || bytes.size() != sizeof(SharedBlock)) {
        return absl::DataLossError(absl::StrCat("not a share: ", name, " ", hex));
      }
      std::memcpy(&shares.emplace_back(), bytes.data(), sizeof(SharedBlock));
    }
  }
  return shares;
}

}  // namespace mpckdc::bench
