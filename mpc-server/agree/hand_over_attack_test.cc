// SPDX-License-Identifier: Apache-2.0
//
// One of the two who rebuild a lost party gives it what is shifted by differences that it knows.
#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/store/record_codec.h"
#include "mpc-server/testing/fault_analysis.h"
#include "mpc-server/testing/hand_over_fixture.h"

namespace mpckdc {
namespace {

// ---- One of the two who hand over takes krbtgt's key ----
//
// It shifts round keys of the usage key that seals tickets by what it knows, and computes with the
// same shift itself, as the newcomer does: nothing contradicts it, and every proof is right.
//
//     before      c  = E(N | i)                                 a ticket of an accomplice
//     afterwards  k_0 + (N + N'),  k_9 + d                      N': the first nonce of the session,
//                 c' = E'(N' | i)                               which is the mark of the greetings
//
// What comes into round 1 is the same as before, so the two differ by d in what comes into the last
// S-boxes: a pair of a right and a faulty ciphertext for each block. A few give the last round key.
class TicketThief {
 public:
  static constexpr uint8_t kShift = 0x35;
  // Keystream blocks of which the ticket's owner knows the text.
  static std::vector<Block> Keystream(absl::string_view ticket, absl::string_view known) {
    const std::string text = std::string(kZeroBytes, '\0') + std::string(known);
    std::vector<Block> blocks;
    const auto message = ParseMessage(ticket);
    for (size_t at = 0; at + sizeof(Block) <= text.size(); at += sizeof(Block)) {
      Block& block = blocks.emplace_back();
      for (size_t k = 0; k < sizeof(Block); ++k) {
        block[k] = static_cast<uint8_t>(message->ciphertext[at + k] ^ text[at + k]);
      }
    }
    return blocks;
  }
  static void Shift(const Nonce& before, const Nonce& after, size_t round, KeyRecord& of_liar) {
    for (UsageKey& usage : of_liar.usages) {
      if (usage.usage != kUsageTicket) continue;
      for (size_t k = 0; k < before.size(); ++k) {
        usage.round_keys[0].x[k] ^= static_cast<uint8_t>(before[k] ^ after[k]);
      }
      for (uint8_t& byte : usage.round_keys[round].x) byte ^= kShift;
    }
  }
  // The key of which every pair of blocks says the same.
  static std::optional<Block> LastRoundKey(const std::vector<Block>& right,
                                           const std::vector<Block>& faulty) {
    std::array<uint8_t, 256> inverse{};
    for (int x = 0; x < 256; ++x)
      inverse[FaultySbox({}, static_cast<uint8_t>(x))] = static_cast<uint8_t>(x);
    Block key{};
    for (size_t j = 0; j < sizeof(Block); ++j) {
      int found = 0;
      for (int k = 0; k < 256; ++k) {
        bool fits = true;
        for (size_t b = 0; b < right.size() && fits; ++b) {
          fits = (inverse[right[b][j] ^ k] ^ inverse[faulty[b][j] ^ k]) == kShift;
        }
        if (!fits) continue;
        ++found;
        key[j] = static_cast<uint8_t>(k);
      }
      if (found != 1) return std::nullopt;
    }
    return key;
  }
};

// ---- and of AES-256, where the shift is a round earlier, behind a MixColumns ----

// The last round key, a column of four bytes at a time: InvMixColumns of what a candidate says of
// the difference before the last S-boxes must be differences that an S-box makes of the shift. A
// wrong one passes a pair of blocks with probability 1/16.
std::optional<Block> LastRoundKeyBehindMixColumns(const std::vector<Block>& right,
                                                  const std::vector<Block>& faulty) {
  std::array<uint8_t, 256> inverse{};
  std::array<bool, 256> made{};
  const auto sbox = [](int x) { return FaultySbox({}, static_cast<uint8_t>(x)); };
  for (int x = 0; x < 256; ++x) {
    inverse[sbox(x)] = static_cast<uint8_t>(x);
    made[sbox(x) ^ sbox(x ^ TicketThief::kShift)] = true;
  }
  std::vector<uint8_t> made_two(65536);
  for (size_t x = 0; x < 65536; ++x) made_two[x] = made[x & 255] && made[x >> 8];
  const auto times = [](uint8_t x, int by) {
    int product = 0;
    for (int power = x, k = by; k != 0; k >>= 1) {
      if (k & 1) product ^= power;
      power = power << 1 ^ (power & 0x80 ? 0x11b : 0);
    }
    return static_cast<uint8_t>(product);
  };
  constexpr int kInvMix[4] = {14, 11, 13, 9};
  std::array<std::vector<uint32_t>, 4> found;
  std::vector<std::thread> threads;
  for (size_t column = 0; column < 4; ++column) {
    threads.emplace_back([&, column] {
      std::vector<std::array<std::vector<uint32_t>, 2>> of(right.size());
      for (size_t b = 0; b < right.size(); ++b) {
        std::array<std::array<uint32_t, 256>, 4> row{};
        for (size_t r = 0; r < 4; ++r) {
          const size_t j = 4 * ((column + 4 - r) % 4) + r;
          for (int k = 0; k < 256; ++k) {
            const uint8_t d = inverse[right[b][j] ^ k] ^ inverse[faulty[b][j] ^ k];
            for (size_t i = 0; i < 4; ++i) {
              row[r][k] |= static_cast<uint32_t>(times(d, kInvMix[(r + 4 - i) % 4])) << 8 * i;
            }
          }
        }
        for (size_t half = 0; half < 2; ++half) {
          of[b][half].resize(65536);
          for (size_t k = 0; k < 65536; ++k) {
            of[b][half][k] = row[2 * half][k & 255] ^ row[2 * half + 1][k >> 8];
          }
        }
      }
      for (uint32_t low = 0; low < 65536; ++low) {
        for (uint32_t high = 0; high < 65536; ++high) {
          bool fits = true;
          for (size_t b = 0; b < right.size() && fits; ++b) {
            const uint32_t word = of[b][0][low] ^ of[b][1][high];
            fits = made_two[word & 0xffff] && made_two[word >> 16];
          }
          if (fits) found[column].push_back(high << 16 | low);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Block key{};
  for (size_t column = 0; column < 4; ++column) {
    if (found[column].size() != 1) return std::nullopt;
    for (size_t r = 0; r < 4; ++r) {
      key[4 * ((column + 4 - r) % 4) + r] = static_cast<uint8_t>(found[column][0] >> 8 * r);
    }
  }
  return key;
}

// AES-128's and, with `round` 12, AES-256's; empty: the blocks do not say.
std::vector<uint8_t> TicketKeyOf(const std::vector<Block>& right, const std::vector<Block>& faulty,
                                 size_t round) {
  if (round == 9) {
    const auto last = TicketThief::LastRoundKey(right, faulty);
    return last.has_value() ? KeyFromLastRoundKey(*last) : std::vector<uint8_t>();
  }
  const auto last = LastRoundKeyBehindMixColumns(right, faulty);
  if (!last.has_value()) return {};
  std::array<std::vector<Block>, 2> before;
  for (size_t b = 0; b < right.size(); ++b) {
    before[0].push_back(BeforeLastRound(right[b], *last));
    before[1].push_back(BeforeLastRound(faulty[b], *last));
  }
  const auto one_before = TicketThief::LastRoundKey(before[0], before[1]);
  if (!one_before.has_value()) return {};
  return KeyFromLastRoundKeys(MixColumnsOf(*one_before), *last);
}

class TicketKeyTest : public HandOverTest {
 protected:
  // Two logins of an accomplice, the first with the first nonce of a second, the second in the
  // same.
  std::array<std::string, 2> Tickets() {
    for (int tries = 0; tries < 20; ++tries) {
      std::array<std::string, 2> tickets;
      for (std::string& ticket : tickets) {
        const JobResult login = realm_.Run(realm_.Login(realm_.alice));
        EXPECT_VERDICT(login, Verdict::kOk);
        if (login.judgement.ok()) ticket = realm_.FinishSeal(login, 0, kText);
        if (ticket.empty()) return {};
      }
      const NonceFields one = SplitNonce(ParseMessage(tickets[0])->nonce);
      const NonceFields two = SplitNonce(ParseMessage(tickets[1])->nonce);
      if (one.sequence == 0 && one.seconds == two.seconds) return tickets;
      absl::SleepFor(absl::Milliseconds(1100));
    }
    return {};
  }
  std::vector<Block> Keystream(const std::array<std::string, 2>& tickets) {
    std::vector<Block> blocks = TicketThief::Keystream(tickets[0], kKnown);
    for (const Block& block : TicketThief::Keystream(tickets[1], kKnown)) blocks.push_back(block);
    return blocks;
  }
  void Steal(size_t round);

  // The owner of a ticket knows what stands in the reply too.
  const std::string kKnown = std::string(100, 'k'), kText = kKnown + std::string(66, 's');
};

void TicketKeyTest::Steal(size_t round) {
  const int liar = NextParty(lost());  // of whose x the newcomer's a is a part
  const std::array<std::string, 2> before = Tickets();
  ASSERT_FALSE(before[1].empty());
  const Nonce nonce = ParseMessage(before[0])->nonce;
  // What the three will greet each other with: the newcomer has none, the two others one.
  std::atomic<int> lies{0};
  Nonce expected{};
  realm_.hub().SetInterceptor([&](MemoryRing::Intercepted& m) {
    const bool components = m.type == FrameType::kAgreement && m.payload.size() > 100 &&
                            m.payload[0] == 6 && m.from == liar && m.to == lost();
    if (!components) return;
    expected = *realm_.store(liar).ReadNonceMark();
    KeyRecord record = *realm_.store(liar).Get(realm_.tgt.info.handle);
    const SecretBytes honest = EncodeComponent(record, /*of_prev=*/true);
    TicketThief::Shift(nonce, expected, round, record);
    const SecretBytes lie = EncodeComponent(record, /*of_prev=*/true);
    const auto at = std::search(m.payload.begin(), m.payload.end(), honest.begin(), honest.end());
    if (at == m.payload.end()) return;
    std::copy(lie.begin(), lie.end(), at);
    ++lies;
  });
  LoseStore(lost());
  AskAll(lost());
  const auto quarantined = [&] {
    for (int p = 0; p < kParties; ++p) {
      if (realm_.engine(p).Status().quarantine.has_value()) return true;
    }
    return false;
  };
  ASSERT_TRUE(Eventually([&] { return !realm_.store(lost()).Epoch().receiving || quarantined(); }));
  if (quarantined()) {  // the key was verified, and did not fit: the three know that one lies
    EXPECT_FALSE(realm_.store(lost()).Get(realm_.tgt.info.handle).ok());
    return;
  }
  ASSERT_EQ(lies.load(), 1);
  // The liar's own store has what it said.
  KeyRecord own = *realm_.store(liar).Get(realm_.tgt.info.handle);
  TicketThief::Shift(nonce, expected, round, own);
  ASSERT_TRUE(realm_.store(liar).DeleteNamed({{{own.info.handle, own.info.principal}}}).ok());
  const TransactionId txn{0x77};
  ASSERT_TRUE(realm_.store(liar).Stage(txn, {&own, 1}, 2, absl::Now()).ok());
  ASSERT_TRUE(realm_.store(liar).Commit(txn, absl::Now()).ok());

  const std::array<std::string, 2> after = Tickets();
  if (after[1].empty()) return;  // caught
  EXPECT_EQ(NonceText(ParseMessage(after[0])->nonce), NonceText(expected));
  const std::vector<uint8_t> key = TicketKeyOf(Keystream(before), Keystream(after), round);
  const SecretBytes right = PlainUsageKey(realm_.tgt.base, kUsageTicket);
  EXPECT_NE(key, std::vector<uint8_t>(right.begin(), right.end()))
      << "one server has the key that seals every ticket";
  if (key.empty()) return;
  // A ticket of before, of whomever, as it passes on the network.
  EXPECT_FALSE(PlainOpen(key, AsBytes(before[0])).ok()) << "and opens tickets with it";
}

TEST_P(TicketKeyTest, OneWhoHandsOverDoesNotGetTheKeyThatSealsTickets) {
  realm_.tgt = realm_.AddKey("krbtgt/EXAMPLE.COM@EXAMPLE.COM", KeyClass::kTgs, kEnctypeAes128Gcm,
                             Gate::kNone);
  Steal(9);
}

TEST_P(TicketKeyTest, NorThatOfAes256) { Steal(12); }

INSTANTIATE_TEST_SUITE_P(Parties, TicketKeyTest, ::testing::Range(1, 2));

}  // namespace
}  // namespace mpckdc
