// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/preauth_timestamp.h"

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace mpckdc {
namespace {

std::string Hex(absl::string_view hex) { return absl::HexStringToBytes(hex); }

// 2026-11-21 10:20:30 UTC and 123456 microseconds.
constexpr char kGood[] =
    "301aa011180f" "32303236313132313130323033305a" "a105" "0203" "01e240";

TEST(PreauthTimestamp, Decodes) {
  const auto time = DecodePreauthTimestamp(Hex(kGood));
  ASSERT_TRUE(time.has_value());
  EXPECT_EQ(absl::FormatTime("%Y-%m-%d %H:%M:%E6S", *time, absl::UTCTimeZone()),
            "2026-11-21 10:20:30.123456");
}

TEST(PreauthTimestamp, MicrosecondsAreOptional) {
  const auto time =
      DecodePreauthTimestamp(Hex("3013a011180f32303236313132313130323033305a"));
  ASSERT_TRUE(time.has_value());
  EXPECT_EQ(absl::ToUnixMicros(*time) % 1000000, 0);
}

TEST(PreauthTimestamp, RoundTrip) {
  for (const int64_t us : {0ll, 127ll, 128ll, 255ll, 32767ll, 32768ll, 999999ll}) {
    const absl::Time time = absl::FromUnixMicros(1'790'000'000'000'000 + us);
    const std::string der = EncodePreauthTimestamp(time);
    EXPECT_EQ(DecodePreauthTimestamp(der), time) << us;
  }
}

TEST(PreauthTimestamp, RefusesWhatIsNotStrictDer) {
  const std::string good = Hex(kGood);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(DecodePreauthTimestamp(good.substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(DecodePreauthTimestamp(good + '\0').has_value());
  const char* const bad[] = {
      "3013a011180f32303236313333313130323033305a",          // month 13
      "3013a011180f32303236303233313130323033305a",          // 31 February
      "3013a011180f323032363131323131303230333030",          // no Z
      "3013a011180f2b303236313132313130323033305a",          // a sign
      "301aa011180f32303236313132313130323033305aa10502030f4240",  // 1000000 microseconds
      "3018a011180f32303236313132313130323033305aa103020180",      // negative
      "3019a011180f32303236313132313130323033305aa10402020001",    // not minimal
      "308113a011180f32303236313132313130323033305a",        // long length
      "3113a011180f32303236313132313130323033305a",          // a SET
  };
  for (const char* hex : bad) EXPECT_FALSE(DecodePreauthTimestamp(Hex(hex)).has_value()) << hex;
}

}  // namespace
}  // namespace mpckdc
