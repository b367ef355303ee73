// SPDX-License-Identifier: Apache-2.0
//
// For tests and sim/ only: what a client and the oracle do with keys of enctypes 17 to 20 in the
// clear, after RFC 3962 and RFC 8009, with OpenSSL's HMAC. Beside test_realm.h, which calls it.
#ifndef MPC_SERVER_TESTING_CTS_H_
#define MPC_SERVER_TESTING_CTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc {

using PlainBytes = std::vector<uint8_t>;

// The key that a usage has for encryption (0xAA), for a message's HMAC (0x55), for checksums (0x99).
inline constexpr uint8_t kForEncryption = 0xAA, kForIntegrity = 0x55, kForChecksum = 0x99;
PlainBytes CtsUsageKey(const Enctype& enctype, const PlainBytes& base, uint32_t usage,
                       uint8_t purpose);

// The states of HMAC after key ^ ipad and after key ^ opad, as the servers keep them.
PlainBytes HmacStates(HashKind hash, const PlainBytes& key);

std::string CtsSeal(const Enctype& enctype, const PlainBytes& base, uint32_t usage,
                    absl::string_view plaintext, RandomSource& random);
// nullopt: the HMAC is wrong.
std::optional<std::string> CtsOpen(const Enctype& enctype, const PlainBytes& base, uint32_t usage,
                                   absl::string_view message);
std::string CtsChecksum(const Enctype& enctype, const PlainBytes& base, uint32_t usage,
                        absl::string_view data);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_CTS_H_
