// SPDX-License-Identifier: Apache-2.0
// Rounds that are sent ahead of earlier ones' receipt, over sockets whose buffers are small,
// between parties that stop now and then: every message arrives as it was written, in its round.
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/testing/plain_link.h"
#include "mpc-server/testing/three_parties.h"
#include "mpc-server/wire/link_channel.h"

namespace mpckdc {
namespace {

constexpr size_t kRounds = 300;

// What `from` writes to `to` in a round; every 40th round waits for all before.
bool Waits(size_t round) { return round % 40 == 39; }
std::vector<uint8_t> Written(int from, int to, size_t round) {
  std::mt19937_64 random(1000 * round + static_cast<uint64_t>(10 * from + to));
  const uint64_t kind = random() % 4;
  std::vector<uint8_t> bytes(kind == 0 ? 0 : kind == 1 ? random() % 100 : random() % 200'000);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(i * 7 + round + 31 * from + to);
  return bytes;
}

class Ahead : public Circuit {
 public:
  explicit Ahead(int party) : party_(party), random_(static_cast<uint64_t>(party)) {}
  bool Done() const override { return consumed_ == kRounds; }
  bool RunsAhead() const override {
    return produced_ < kRounds && (!Waits(produced_) || produced_ == consumed_) &&
           (produced_ == 0 || !Waits(produced_ - 1) || produced_ == consumed_);
  }
  RoundShape NextRound() const override {
    RoundShape shape;
    shape.step = "ahead";
    shape.to_next = shape.checked_to_next = Written(party_, NextParty(party_), produced_).size();
    shape.to_prev = shape.checked_to_prev = Written(party_, PrevParty(party_), produced_).size();
    shape.in = {Written(PrevParty(party_), party_, produced_).size(),
                Written(NextParty(party_), party_, produced_).size()};
    return shape;
  }
  void Produce(ZeroShares&, RoundOut out) override {
    const auto next = Written(party_, NextParty(party_), produced_);
    const auto prev = Written(party_, PrevParty(party_), produced_);
    std::copy(next.begin(), next.end(), out.to_next.begin());
    std::copy(prev.begin(), prev.end(), out.to_prev.begin());
    ++produced_;
    most_ = std::max(most_, produced_ - consumed_);
  }
  absl::Status Consume(RoundIn in) override {
    const auto prev = Written(PrevParty(party_), party_, consumed_);
    const auto next = Written(NextParty(party_), party_, consumed_);
    if (!std::equal(prev.begin(), prev.end(), in.from_prev.begin(), in.from_prev.end()) ||
        !std::equal(next.begin(), next.end(), in.from_next.begin(), in.from_next.end())) {
      return absl::DataLossError(absl::StrCat("another message in round ", consumed_));
    }
    ++consumed_;
    if (random_() % 16 == 0) absl::SleepFor(absl::Milliseconds(random_() % 20));
    return absl::OkStatus();
  }
  Cost DeclaredCost() const override { return {}; }
  size_t most() const { return most_; }

 private:
  const int party_;
  std::mt19937_64 random_;
  size_t produced_ = 0, consumed_ = 0, most_ = 0;
};

TEST(RoundsAheadTest, ArriveAsTheyWereWritten) {
  std::array<std::unique_ptr<Link>, kParties> to_next, to_prev;
  for (int p = 0; p < kParties; ++p) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    for (const int fd : ends) {
      const int size = 20'000;
      ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
    }
    to_next[p] = std::make_unique<PlainLink>(Fd(ends[0]));
    to_prev[NextParty(p)] = std::make_unique<PlainLink>(Fd(ends[1]));
  }
  std::array<std::unique_ptr<PeerChannel>, kParties> owned;
  std::array<PeerChannel*, kParties> channels;
  for (int p = 0; p < kParties; ++p) {
    owned[p] = MakeLinkChannel(p, std::move(to_prev[p]), std::move(to_next[p]), SystemClock());
    channels[p] = owned[p].get();
  }
  const auto ends = RunOverChannels(
      channels, 1,
      [](PartyContext& party) {
        party.BeginBatch(1);
        Ahead circuit(party.party());
        Circuit* const circuits[] = {&circuit};
        const absl::Status end = RunTogether(party, circuits);
        EXPECT_TRUE(!end.ok() || circuit.most() == kRoundsAhead) << circuit.most();
        return end;
      },
      absl::Seconds(20));
  for (const absl::Status& end : ends) EXPECT_TRUE(end.ok()) << end;
}

}  // namespace
}  // namespace mpckdc
