// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/message_circuits.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/key/usage_keys.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/garbling.h"

namespace mpckdc::garble {
namespace {

constexpr int32_t kNumbers[] = {17, 18, 19, 20};
constexpr uint32_t kUsage = 1, kChecksumUsage = 56;

std::vector<uint8_t> RandomBytes(std::mt19937_64& random, size_t count) {
  std::vector<uint8_t> bytes(count);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}
std::string Text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
std::vector<uint8_t> Bytes(absl::string_view text) { return {text.begin(), text.end()}; }

// Keys of every lane, as wires of both sides.
class Messages {
 public:
  Messages(const Enctype& enctype, size_t lanes, uint64_t seed)
      : enctype_(enctype), random_(seed), garbling_(lanes, BestIsa(), seed) {
    for (size_t lane = 0; lane < lanes; ++lane) {
      bases_.push_back(RandomBytes(random_, enctype.key_bytes));
    }
  }

  struct Both {
    Wires zero, held;
  };
  Both Input(const std::vector<uint8_t>& bytes) {
    const auto wires = garbling_.Input(ToRows(bytes, lanes()));
    Both both = {Wires(wires.zero.size() / lanes(), lanes()), {}};
    both.held = both.zero;
    std::copy(wires.zero.begin(), wires.zero.end(), both.zero.labels().begin());
    std::copy(wires.held.begin(), wires.held.end(), both.held.labels().begin());
    return both;
  }
  // The round keys or the HMAC's states of all lanes.
  Both Keys(uint32_t usage, SecretBytes ExpandedUsage::*which) {
    std::vector<uint8_t> all;
    for (const auto& base : bases_) {
      const ExpandedUsage expanded = *ExpandUsage(enctype_, base, usage);
      all.insert(all.end(), (expanded.*which).begin(), (expanded.*which).end());
    }
    return Input(all);
  }
  std::vector<uint8_t> Value(const Both& wires) { return ToBytes(Bits(wires), lanes()); }
  std::vector<uint8_t> Bits(const Both& wires) {
    return garbling_.Value({{wires.zero.labels().begin(), wires.zero.labels().end()},
                            {wires.held.labels().begin(), wires.held.labels().end()}});
  }
  // Both sides: run(circuits, of(both)) for garbler and evaluator.
  template <class Run>
  Both Compute(Run run) {
    MessageCircuits garbler(garbling_.garbler(), enctype_);
    MessageCircuits evaluator(garbling_.evaluator(), enctype_);
    const auto zero = [](const Both& b) -> const Wires& { return b.zero; };
    const auto held = [](const Both& b) -> const Wires& { return b.held; };
    Both out;
    out.zero = run(garbler, zero);
    out.held = run(evaluator, held);
    EXPECT_TRUE(garbling_.tables.AllRead());
    return out;
  }
  size_t GatesSince() {
    const size_t now = garbling_.gates(), before = gates_;
    gates_ = now;
    return now - before;
  }

  size_t lanes() const { return bases_.empty() ? garbling_.lanes() : bases_.size(); }
  const std::vector<uint8_t>& base(size_t lane) const { return bases_[lane]; }
  std::mt19937_64& random() { return random_; }

 private:
  const Enctype& enctype_;
  std::mt19937_64 random_;
  Garbling garbling_;
  std::vector<std::vector<uint8_t>> bases_;
  size_t gates_ = 0;
};

std::vector<uint8_t> LaneOf(const std::vector<uint8_t>& all, size_t lane, size_t lanes) {
  const size_t each = all.size() / lanes;
  const auto at = all.begin() + static_cast<ptrdiff_t>(lane * each);
  return {at, at + static_cast<ptrdiff_t>(each)};
}

TEST(MessageCircuits, EncryptIsThatOfOpenssl) {
  for (const int32_t number : kNumbers) {
    const Enctype& enctype = *FindEnctype(number);
    for (const size_t bytes : {16, 17, 31, 32, 33, 48, 61}) {
      Messages m(enctype, 2, bytes);
      const std::vector<uint8_t> text = RandomBytes(m.random(), 2 * bytes);
      const auto keys = m.Keys(kUsage, &ExpandedUsage::round_keys), in = m.Input(text);
      const auto out = m.Compute(
          [&](MessageCircuits& circuits, auto of) { return circuits.Encrypt(of(keys), of(in)); });
      EXPECT_EQ(m.GatesSince(), MessageGates::Encrypt(enctype, bytes));
      for (size_t lane = 0; lane < 2; ++lane) {
        const std::string mine = Text(LaneOf(text, lane, 2));
        const std::string message =
            CtsSeal(enctype, m.base(lane), kUsage, mine.substr(0, 16), mine.substr(16));
        EXPECT_EQ(Text(LaneOf(m.Value(out), lane, 2)), message.substr(0, bytes))
            << number << ", " << bytes << " bytes";
      }
    }
  }
}

// A pre-authentication: decrypted, its HMAC compared, its text shown if it is right.
TEST(MessageCircuits, OpenIsThatOfOpensslAndShowsNothingOfABadMessage) {
  for (const int32_t number : kNumbers) {
    const Enctype& enctype = *FindEnctype(number);
    for (const size_t bytes : {16, 26, 32, 44}) {
      constexpr size_t kLanes = 3;
      Messages m(enctype, kLanes, bytes);
      const std::vector<uint8_t> text = RandomBytes(m.random(), kLanes * bytes);
      std::vector<uint8_t> ciphertexts, macs;
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const std::string mine = Text(LaneOf(text, lane, kLanes));
        std::string message =
            CtsSeal(enctype, m.base(lane), kUsage, mine.substr(0, 16), mine.substr(16));
        if (lane == 1) message.back() = static_cast<char>(message.back() ^ 0x80);
        const std::vector<uint8_t> all = Bytes(message);
        ciphertexts.insert(ciphertexts.end(), all.begin(),
                           all.begin() + static_cast<ptrdiff_t>(bytes));
        macs.insert(macs.end(), all.begin() + static_cast<ptrdiff_t>(bytes), all.end());
      }
      const auto keys = m.Keys(kUsage, &ExpandedUsage::round_keys);
      const auto states = m.Keys(kUsage, &ExpandedUsage::mac_states);
      std::vector<uint8_t> iv_and_ciphertext;
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const auto mine = LaneOf(ciphertexts, lane, kLanes);
        iv_and_ciphertext.resize(iv_and_ciphertext.size() + 16);
        iv_and_ciphertext.insert(iv_and_ciphertext.end(), mine.begin(), mine.end());
      }
      const bool of_text = enctype.family == EnctypeFamily::kRfc3962;
      const auto out = m.Compute([&](MessageCircuits& circuits, auto of) {
        const Wires opened = circuits.Decrypt(of(keys), ciphertexts);
        const Wires mac = of_text ? circuits.Hmac(of(states), opened)
                                  : circuits.HmacOfPublic(of(states), iv_and_ciphertext);
        auto checked = circuits.Check(mac, macs, opened);
        checked.ok.Append(checked.gated);
        return checked.ok;
      });
      const size_t hmac = of_text ? MessageGates::Hmac(enctype, bytes)
                                  : MessageGates::HmacOfPublic(enctype, 16 + bytes);
      EXPECT_EQ(m.GatesSince(), MessageGates::Decrypt(enctype, bytes) + hmac +
                                    MessageGates::Check(enctype, 8 * bytes));
      const std::vector<uint8_t> bits = m.Bits(out);
      const std::vector<uint8_t> expected = ToRows(text, kLanes);
      for (size_t lane = 0; lane < kLanes; ++lane) {
        EXPECT_EQ(bits[lane], lane == 1 ? 0 : 1) << number << ", " << bytes << " bytes";
        for (size_t i = 0; i < 8 * bytes; ++i) {
          ASSERT_EQ(bits[(1 + i) * kLanes + lane], lane == 1 ? 0 : expected[i * kLanes + lane])
              << number << ", " << bytes << " bytes, lane " << lane << ", bit " << i;
        }
      }
    }
  }
}

TEST(MessageCircuits, ChecksumIsThatOfOpenssl) {
  for (const int32_t number : kNumbers) {
    const Enctype& enctype = *FindEnctype(number);
    for (const size_t bytes : {1, 55, 64, 200}) {
      Messages m(enctype, 1, bytes);
      const std::vector<uint8_t> data = RandomBytes(m.random(), bytes);
      const auto states = m.Keys(kChecksumUsage, &ExpandedUsage::mac_states);
      const auto out = m.Compute([&](MessageCircuits& circuits, auto of) {
        return circuits.HmacOfPublic(of(states), data);
      });
      EXPECT_EQ(m.GatesSince(), MessageGates::HmacOfPublic(enctype, bytes));
      EXPECT_EQ(Text(m.Value(out)), CtsChecksum(enctype, m.base(0), kChecksumUsage, Text(data)));
    }
  }
}

// The figures that say how much a login sends: request of 200 bytes, reply of 271 with its
// confounder, a time stamp of 28 with the checksum of 56 over the request.
TEST(MessageCircuits, GatesOfALogin) {
  size_t all[4], *to = all;
  for (const int32_t number : kNumbers) {
    const Enctype& enctype = *FindEnctype(number);
    const bool of_text = enctype.family == EnctypeFamily::kRfc3962;
    const auto hmac = [&](size_t bytes) {
      return of_text ? MessageGates::Hmac(enctype, bytes)
                     : MessageGates::HmacOfPublic(enctype, 16 + bytes);
    };
    const size_t login = MessageGates::Decrypt(enctype, 44) + hmac(44) +
                         MessageGates::Check(enctype, 8 * 28) +
                         MessageGates::HmacOfPublic(enctype, 200);
    const size_t reply_mac = of_text ? hmac(271) : MessageGates::Hmac(enctype, 16 + 271);
    *to++ = login + MessageGates::Encrypt(enctype, 271) + reply_mac;
  }
  EXPECT_THAT(all, testing::ElementsAre(238'834, 279'794, 380'439, 614'169));
}

}  // namespace
}  // namespace mpckdc::garble
