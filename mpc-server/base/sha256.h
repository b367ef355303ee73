// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4) of what is public: jobs, votes, lines of the audit log.
#ifndef MPC_SERVER_BASE_SHA256_H_
#define MPC_SERVER_BASE_SHA256_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace mpckdc {

using Digest = std::array<uint8_t, 32>;

Digest Sha256(absl::string_view bytes);

}  // namespace mpckdc

#endif  // MPC_SERVER_BASE_SHA256_H_
