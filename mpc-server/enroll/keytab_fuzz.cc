// SPDX-License-Identifier: Apache-2.0
//
// Keytabs that an administrator enrols from.
#include <string>

#include "mpc-server/base/bytes.h"
#include "mpc-server/enroll/keytab.h"
#include "mpc-server/key/string_to_key.h"
#include "mpc-server/testing/fuzz.h"
#include "mpc-server/testing/keytab_bytes.h"

namespace mpckdc::enroll {
namespace {

FuzzSeeds KeytabSeeds() {
  const std::string magic = "\x05\x02";
  const std::string hole = Be(static_cast<uint32_t>(-9), 4) + std::string(9, 'z');
  return {magic + KeytabBytes({"alice"}, 300, -24001, std::string(16, 'a')) + hole +
              KeytabBytes({"HTTP", "w/e@b\\\t\n\b"}, 2, 18, std::string(32, 'b'), false),
          magic + KeytabBytes({"a", "b", "c"}, 1, 17, std::string(16, 'a')) +
              KeytabBytes({"a", "b", "c"}, 1, -24001, std::string(16, 'c')) + Be(0, 4),
          magic + KeytabBytes({"x"}, 1, 20, std::string(32, 'k')) +
              KeytabBytes({"x"}, 2, 23, std::string(16, 'r'))};
}

MPCKDC_FUZZ(keytab, KeytabSeeds) {
  auto entries = ParseKeytab(in);
  if (!entries.ok()) return;
  size_t bytes = 0;
  for (const KeytabEntry& entry : *entries) {
    FUZZ_CHECK(entry.principal.find('@') != std::string::npos);
    FUZZ_CHECK(entry.principal.find('\n') == std::string::npos &&
               entry.principal.find('\0') == std::string::npos);
    bytes += entry.key.size();
  }
  FUZZ_CHECK(bytes <= in.size());
  const size_t count = entries->size();
  const auto keys = EnrollableKeys(*std::move(entries));
  if (!keys.ok()) return;
  FUZZ_CHECK(keys->size() <= count);
  for (const auto& [principal, found] : *keys) {
    for (const auto& [enctype, key] : found.keys) FUZZ_CHECK(key.size() == BaseKeyBytes(enctype));
  }
}

}  // namespace
}  // namespace mpckdc::enroll
