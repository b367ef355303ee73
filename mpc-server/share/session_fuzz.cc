// SPDX-License-Identifier: Apache-2.0
//
// The opening of a session: hellos, seeds and confirmations of two neighbours who may say anything.
#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/share/session.h"
#include "mpc-server/testing/frame_channel.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc {
namespace {

// The frames of both neighbours, in the order in which they are asked for: type (1) | length (2) |
// payload. A confirmation depends on what went before it: `right` ones are put there where the
// input has an empty one.
class Scripted : public FrameChannel {
 public:
  explicit Scripted(absl::Span<const uint8_t> in) : FrameChannel(0), in_(in) {}
  ChannelCounters Counters() const override { return {}; }

 private:
  absl::Status Put(Neighbour to, const FrameHeader& header, absl::string_view,
                   absl::Span<const uint8_t> payload) override {
    session_ = header.session;
    if (header.type == FrameType::kConfirm)
      confirm_[to == Neighbour::kNext] = std::string(AsText(payload));
    return absl::OkStatus();
  }
  absl::Status Next(Neighbour from, bool, absl::Time, FrameHeader* header,
                    SecretBytes* payload) override {
    const auto type = static_cast<FrameType>(in_.Uint(1));
    std::string bytes(AsText(in_.Bytes(in_.Uint(2))));
    if (!in_.ok()) return absl::UnavailableError("connection closed");
    if (type == FrameType::kConfirm && bytes.empty()) bytes = confirm_[from == Neighbour::kNext];
    const FrameHeader written{type, 0, type == FrameType::kHello ? 0 : session_, 0,
                              static_cast<uint32_t>(bytes.size())};
    uint8_t encoded[kFrameHeaderSize];
    WriteFrameHeader(written, encoded);
    return Open(encoded, SecretBytes(bytes.begin(), bytes.end()), header, payload);
  }
  absl::Status Fail(Neighbour, absl::string_view, const absl::Status& cause) override {
    return broken_ = cause;
  }

  ByteReader in_;
  uint32_t session_ = 0;
  std::array<std::string, 2> confirm_;
};

SessionOptions Options() {
  SessionOptions options;
  options.party = 0;
  options.realm = "EXAMPLE.COM";
  options.cluster = 7;
  options.greeting = "greeting";
  return options;
}

std::string FrameOf(FrameType type, absl::string_view payload) {
  std::string out(1, static_cast<char>(type));
  AppendUint(out, payload.size(), 2);
  return absl::StrCat(out, payload);
}

// As session.cc lays it out.
std::string HelloOf(const SessionOptions& options, int party, const std::string& greeting) {
  ByteWriter out;
  out.Uint(options.min_version, 2);
  out.Uint(options.max_version, 2);
  out.Uint(static_cast<uint64_t>(party), 1);
  out.Uint(options.cluster, 2);
  out.Bytes(std::string(16, static_cast<char>('a' + party)));
  out.Uint(options.ring, 1);
  out.Uint(options.rings, 1);
  out.Uint(static_cast<uint8_t>(options.randomness), 1);
  out.Uint(static_cast<uint8_t>(options.security), 1);
  out.Counted(options.realm, 2);
  out.Counted(greeting, 4);
  return FrameOf(FrameType::kHello, out.Take());
}

FuzzSeeds Seeds() {
  FuzzSeeds seeds;
  SessionOptions options = Options(), other = options;
  const std::string prev = HelloOf(options, 2, "from P2"), next = HelloOf(options, 1, "");
  const std::string seed = FrameOf(FrameType::kSeed, std::string(sizeof(Seed), 's'));
  const std::string confirm = FrameOf(FrameType::kConfirm, "");
  seeds.push_back(prev + next + seed + confirm + confirm);
  seeds.push_back(prev + next + seed + FrameOf(FrameType::kConfirm, std::string(64, 'c')));
  seeds.push_back(prev + next + FrameOf(FrameType::kSeed, "short"));
  seeds.push_back(prev + FrameOf(FrameType::kAbort, "not now"));
  const auto differs = [&](auto change) {
    other = options;
    change(other);
    seeds.push_back(HelloOf(other, 2, "") + next);
  };
  differs([](SessionOptions& o) { o.realm = "OTHER"; });
  differs([](SessionOptions& o) { o.cluster = 8; });
  differs([](SessionOptions& o) { o.rings = 3; });
  differs([](SessionOptions& o) { o.ring = 1; });
  differs([](SessionOptions& o) {
    o.randomness = static_cast<Randomness>(1 - static_cast<int>(o.randomness));
  });
  differs([](SessionOptions& o) {
    o.security = static_cast<Security>(1 - static_cast<int>(o.security));
  });
  differs([](SessionOptions& o) { o.min_version = o.max_version = 99; });
  seeds.push_back(HelloOf(options, 1, "") + next);
  return seeds;
}

MPCKDC_FUZZ(session, Seeds) {
  Scripted channel(in);
  SeededRandomForTest random(1);
  const SessionOptions options = Options();
  const auto party = OpenSession(options, channel, SystemClock(), random, absl::InfiniteFuture());
  if (!party.ok()) {
    const auto suspects = SuspectsOf(party.status());
    FUZZ_CHECK(!suspects || !suspects->Has(0));  // this server is not the one that deviates
    return;
  }
  FUZZ_CHECK((*party)->party() == 0);
  FUZZ_CHECK((*party)->greeting(Neighbour::kPrev).size() <= in.size());
}

}  // namespace
}  // namespace mpckdc
