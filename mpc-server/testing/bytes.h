// SPDX-License-Identifier: Apache-2.0
//
// Bytes as tests write them.
#ifndef MPC_SERVER_TESTING_BYTES_H_
#define MPC_SERVER_TESTING_BYTES_H_

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"

namespace mpckdc {

inline std::vector<uint8_t> Bytes(const std::string& text) { return {text.begin(), text.end()}; }

inline std::vector<uint8_t> FromHex(const std::string& hex) {
  return Bytes(absl::HexStringToBytes(hex));
}

template <class Container>
std::string Hex(const Container& bytes) {
  return absl::BytesToHexString(std::string(bytes.begin(), bytes.end()));
}

// proto/testdata/gcm_enctype_vectors.json, which the C side reads as well.
inline nlohmann::json SharedVectors() {
  std::ifstream file(MPCKDC_GCM_VECTORS);
  return nlohmann::json::parse(file);
}

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_BYTES_H_
