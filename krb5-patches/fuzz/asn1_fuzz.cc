// SPDX-License-Identifier: Apache-2.0
#include "krb5-patches/fuzz/asn1_fuzz.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "mpc-server/testing/fuzz.h"

namespace mpckdc {
namespace {

// Outlines, from which the decoders' tables lead on: application tag, sequence, first fields.
void AddOutlines(FuzzSeeds& seeds) {
  const std::string inside("\x30\x0a\xa1\x03\x02\x01\x05\xa2\x03\x02\x01\x0a", 12);
  for (size_t i = 0; i < asn1_fuzz_count(); ++i) {
    const char which = static_cast<char>(i);
    seeds.push_back(which + inside);
    for (const char tag : {'\x6a', '\x6c', '\x6e', '\x61', '\x63', '\x62'}) {
      seeds.push_back(which + (tag + (static_cast<char>(inside.size()) + inside)));
    }
    seeds.push_back(which + std::string("\x30\x0f\xa0\x03\x02\x01\x12\xa1\x08\x04\x06"
                                        "secret",
                                        17));
  }
}

// What MIT's own tests of the encoders expect, a line each: encode_krb5_NAME(which): 62 81 A1 ...
// Each goes to the decoder of its name.
void AddExpected(FuzzSeeds& seeds) {
  std::ifstream file(MPCKDC_FUZZ_KRB5_ENCODINGS);
  std::string line;
  size_t found = 0;
  while (std::getline(file, line)) {
    const size_t colon = line.find(": ");
    const std::string prefix = "encode_krb5_";
    if (colon == std::string::npos || line.compare(0, prefix.size(), prefix) != 0) continue;
    std::string name = line.substr(prefix.size(), line.find_first_of("( :") - prefix.size());
    if (name == "keyblock") name = "encryption_key";
    if (name == "authorization_data") name = "authdata";
    std::istringstream hex(line.substr(colon + 2));
    std::string message, byte;
    while (hex >> byte) message += static_cast<char>(std::strtoul(byte.c_str(), nullptr, 16));
    const int which = asn1_fuzz_find(name.c_str());
    if (which >= 0) seeds.push_back(static_cast<char>(which) + message);
    if (name == "safe")
      seeds.push_back(static_cast<char>(asn1_fuzz_find("safe_with_body")) + message);
    found += which >= 0;
  }
  FUZZ_CHECK(found > 50);  // they are where they were
}

void AddNumbers(FuzzSeeds& seeds) {
  const auto add = [](void* arg, const void* bytes, size_t size) {
    static_cast<FuzzSeeds*>(arg)->push_back(
        static_cast<char>(asn1_fuzz_find("fuzz_numbers")) +
        std::string(static_cast<const char*>(bytes), size));
  };
  asn1_fuzz_numbers(add, &seeds);
}

FuzzSeeds Seeds() {
  FuzzSeeds seeds;
  AddOutlines(seeds);
  AddExpected(seeds);
  AddNumbers(seeds);
  return seeds;
}

MPCKDC_FUZZ(krb5_asn1, Seeds) { asn1_fuzz_try(in.data(), in.size()); }

}  // namespace
}  // namespace mpckdc
