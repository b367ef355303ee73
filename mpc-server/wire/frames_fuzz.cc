// SPDX-License-Identifier: Apache-2.0
//
// What arrives on a line between two servers, below everything that knows who sent it.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/fuzz.h"
#include "mpc-server/testing/plain_link.h"
#include "mpc-server/wire/frame_format.h"

namespace mpckdc {
namespace {

std::string Encoded(const FrameHeader& header, absl::string_view payload = "") {
  uint8_t bytes[kFrameHeaderSize];
  WriteFrameHeader(header, bytes);
  return std::string(AsText(bytes)) + std::string(payload);
}

FuzzSeeds HeaderSeeds() {
  FuzzSeeds seeds;
  for (uint8_t type = 1; type <= 7; ++type) {
    seeds.push_back(Encoded({static_cast<FrameType>(type), 3, 0x01020304, 77, 4096}));
  }
  return seeds;
}

// Two headers, of which the second may be missing: what was expected.
MPCKDC_FUZZ(frame_header, HeaderSeeds) {
  if (in.size() < kFrameHeaderSize) return;
  FrameHeader header, expected;
  if (!ReadFrameHeader(in.data(), &header).ok()) return;
  uint8_t again[kFrameHeaderSize];
  WriteFrameHeader(header, again);
  FUZZ_CHECK(std::equal(again, again + kFrameHeaderSize, in.begin()));
  FUZZ_CHECK(IsKnownFrameType(static_cast<uint8_t>(header.type)));
  FUZZ_CHECK(header.length <= kMaxRoundPayload);
  FUZZ_CHECK(CheckFrameHeader(header, header).ok());
  FUZZ_CHECK(CheckNotRound(header).ok() == (header.type != FrameType::kRound));
  FUZZ_CHECK(CheckNotRound(header).ok() || !CheckControlHeader(header.session, header).ok());
  const bool two = in.size() >= 2 * kFrameHeaderSize &&
                   ReadFrameHeader(in.data() + kFrameHeaderSize, &expected).ok();
  if (two) FUZZ_CHECK(CheckFrameHeader(expected, header).ok() == (expected == header));
}

// how (1) | where the bytes are cut (1) | bytes of the line. Some calls read any frame, others one
// that they expect.
FuzzSeeds LineSeeds() {
  const std::string control = Encoded({FrameType::kAgreement, 0, 5, 0, 3}, "abc");
  const std::string round = Encoded({FrameType::kRound, 2, 5, 9, 20}, std::string(20, 'r'));
  const std::string abort = Encoded({FrameType::kAbort, 0, 0, 0, 4}, "over");
  FuzzSeeds seeds;
  for (const std::string& bytes : {control + control, round + round, control + round + abort,
                                   round + control, abort, control.substr(0, 17)}) {
    for (const char how : {'\0', '\1', '\2', '\3'})
      seeds.push_back(std::string{how, '\x11'} + bytes);
  }
  return seeds;
}

class Line {
 public:
  Line() {
    int fds[2];
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
    peer_ = fds[0];
    link_ = std::make_unique<PlainLink>(Fd(fds[1]));
  }
  ~Line() { Close(); }
  void Write(absl::Span<const uint8_t> bytes) {
    if (!bytes.empty() && write(peer_, bytes.data(), bytes.size()) < 0) std::abort();
  }
  void Close() {
    if (peer_ >= 0) close(peer_);
    peer_ = -1;
  }
  PlainLink& link() { return *link_; }

 private:
  int peer_;
  std::unique_ptr<PlainLink> link_;
};

// Control frames take memory before they have come, up to 16 MiB: slow, and not what is looked for.
bool AnyIsLong(absl::Span<const uint8_t> in) {
  FrameHeader header;
  while (in.size() >= kFrameHeaderSize && ReadFrameHeader(in.data(), &header).ok()) {
    if (header.length > 8192) return header.type != FrameType::kRound;
    in.remove_prefix(std::min(in.size(), kFrameHeaderSize + header.length));
  }
  return false;
}

// Until it would block or fails. Whatever is taken, it was sent.
bool ReadAll(PlainLink& link, uint8_t how, std::vector<uint8_t>& target, size_t* taken) {
  while (true) {
    FrameHeader header{FrameType::kRound, 2, 5, 9, static_cast<uint32_t>(target.size())};
    SecretBytes payload;
    const bool round = ((how >> (*taken % 2)) & 1) != 0;
    const Progress got =
        round ? link.ReadInto(header, absl::MakeSpan(target)) : link.ReadFrame(&header, &payload);
    if (!got.ok()) return false;
    if (!*got) return true;
    FUZZ_CHECK(round || header.length == payload.size());
    FUZZ_CHECK(round || header.type != FrameType::kRound);
    FUZZ_CHECK(round || header.type != FrameType::kAbort);
    ++*taken;
  }
}

MPCKDC_FUZZ(frames, LineSeeds) {
  if (in.size() < 2 || in.size() > 4096) return;
  const uint8_t how = in[0];
  const size_t cut = std::min<size_t>(in[1], in.size() - 2);
  in.remove_prefix(2);
  if (AnyIsLong(in)) return;
  std::vector<uint8_t> target(20);
  Line line;
  size_t taken = 0;
  line.Write(in.subspan(0, cut));
  bool alive = ReadAll(line.link(), how, target, &taken);
  if (alive && (how & 4) != 0) line.link().PutOffWaking((how & 8) != 0);
  line.Write(in.subspan(cut));
  line.Close();
  // It takes a short read, and the end of what it put aside, for the last until poll() says more.
  constexpr int kWakings = 4;
  for (int i = 0; alive && i < kWakings; ++i) alive = ReadAll(line.link(), how, target, &taken);
  FUZZ_CHECK(!alive);  // nothing comes any more, and it knows
  FUZZ_CHECK(taken * kFrameHeaderSize <= in.size());
  if ((how & 16) != 0) line.link().Abandon();
}

}  // namespace
}  // namespace mpckdc
