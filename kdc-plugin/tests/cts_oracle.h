// SPDX-License-Identifier: Apache-2.0
//
// Tests only: messages and checksums of enctypes 17 to 20 (RFC 3962, RFC 8009) under a whole key,
// by OpenSSL's key derivation functions, CBC-CTS and HMAC.
#ifndef KDC_PLUGIN_TESTS_CTS_ORACLE_H_
#define KDC_PLUGIN_TESTS_CTS_ORACLE_H_

#include <cstdint>
#include <string>

namespace mpckdc::test {

// CBC-CTS of (confounder | plain) under Ke(usage), then the HMAC under Ki(usage).
std::string CtsSeal(int32_t enctype, const std::string& base, uint32_t usage,
                    const std::string& confounder, const std::string& plain);
bool CtsOpen(int32_t enctype, const std::string& base, uint32_t usage, const std::string& message,
             std::string* plain);

// HMAC under Kc(usage), truncated.
std::string CtsChecksum(int32_t enctype, const std::string& base, uint32_t usage,
                        const std::string& data);

}  // namespace mpckdc::test

#endif  // KDC_PLUGIN_TESTS_CTS_ORACLE_H_
