// SPDX-License-Identifier: Apache-2.0
#include "krb5-patches/fuzz/asn1_fuzz.h"

#include <string>

#include "mpc-server/testing/fuzz.h"

namespace mpckdc {
namespace {

// Outlines, from which the decoders' tables lead on: application tag, sequence, first fields.
FuzzSeeds Seeds() {
  FuzzSeeds seeds;
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
  return seeds;
}

MPCKDC_FUZZ(krb5_asn1, Seeds) { asn1_fuzz_try(in.data(), in.size()); }

}  // namespace
}  // namespace mpckdc
