// SPDX-License-Identifier: Apache-2.0
//
// What a client does with keys of enctypes 17 to 20 in the clear, after RFC 3962 and RFC 8009, by
// OpenSSL's CBC-CTS and HMAC: the oracle.
#ifndef MPC_SERVER_TESTING_CTS_H_
#define MPC_SERVER_TESTING_CTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc {

// CBC-CTS of (confounder | plaintext) under Ke(usage), then the HMAC under Ki(usage).
std::string CtsSeal(const Enctype& enctype, absl::Span<const uint8_t> base, uint32_t usage,
                    absl::string_view confounder, absl::string_view plaintext);
// nullopt: the HMAC is wrong.
std::optional<std::string> CtsOpen(const Enctype& enctype, absl::Span<const uint8_t> base,
                                   uint32_t usage, absl::string_view message);
// The HMAC under Kc(usage), truncated.
std::string CtsChecksum(const Enctype& enctype, absl::Span<const uint8_t> base, uint32_t usage,
                        absl::string_view data);

// The whole HMAC.
std::vector<uint8_t> PlainHmac(HashKind hash, absl::Span<const uint8_t> key,
                               absl::Span<const uint8_t> data);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_CTS_H_
