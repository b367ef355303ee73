// SPDX-License-Identifier: Apache-2.0
//
// A KDC that asks the three servers for the tags of three different ciphertexts of one seal.
//
// Built twice: as the servers are, and as a control without the mask of PendingSeals
// (MPCKDC_CONTROL, the mutant TagMask). In the control the three answers combine to a known
// function of the servers' shares of the powers of H; as built they combine to noise. The last test
// is a model of servers that answer with both components of their replicated share and without a
// mask: there one seal with three ciphertexts yields H.
#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/circuit/gcm/gf128.h"
#include "mpc-server/testing/engines.h"
#include "mpc-server/testing/gcm_plain.h"
#ifdef MPCKDC_CONTROL
#include "mpc-server/testing/control.h"
#endif
#include "mpc-server/job/operation_table.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc {
namespace {

#ifdef MPCKDC_CONTROL
[[maybe_unused]] const bool dropped = (DropForTest("TagMask"), true);
#endif

Block Times(const Block& a, const Block& b) { return GfMultiply(a, b); }

Block Inverse(const Block& a) {  // a^(2^128 - 2)
  Block power = a, out = GfOne();
  for (int i = 1; i < 128; ++i) {
    power = GfSquare(power);
    out = Times(out, power);
  }
  return out;
}
Block SquareRoot(Block a) {  // a^(2^127)
  for (int i = 0; i < 127; ++i) a = GfSquare(a);
  return a;
}

Block RandomBlock(RandomSource& random) {
  Block block;
  random.Fill(absl::MakeSpan(block));
  return block;
}

Tag TagOf(const std::string& message) {
  Tag tag;
  std::memcpy(tag.data(), message.data() + message.size() - tag.size(), tag.size());
  return tag;
}

// `base` with `delta` added to its last block. Its length is a multiple of 16, so that block is
// multiplied by H^2.
std::string Altered(std::string base, const Block& delta) {
  for (size_t i = 0; i < 16; ++i) base[base.size() - 16 + i] ^= static_cast<char>(delta[i]);
  return base;
}

struct Seen {
  TagResult combined;
  Block predicted{};  // what unmasked answers would combine to
  Tag honest{};       // the tag of the base ciphertext
};

Seen Equivocate(const PerParty<Block>& deltas) {
  ThreeEngines three;
  const PlainKey guest =
      three.AddKey("guest@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm, Gate::kNone);
  const PlainKey tgt = three.AddKey("krbtgt/EXAMPLE.COM@EXAMPLE.COM", KeyClass::kTgs,
                                    kEnctypeAes256Gcm, Gate::kNone);
  three.StartAll();
  EXPECT_TRUE(three.WaitConnected());
  const JobResult result = three.Run(LoginJob(three.NextId(), guest, tgt, ""));
  EXPECT_TRUE(result.judgement.ok()) << result.judgement.detail;
  const std::string base = Encrypt(result.seals[0], std::string(144, 't'));
  PerParty<TagRequest> requests;
  for (int p = 0; p < kParties; ++p) requests[p] = {result.id, 0, Altered(base, deltas[p])};
  Seen seen;
  seen.combined = Combine(three.Tags(requests));
  const auto& [nonce, header, keystream] = GcmOf(result.seals[0]);
  seen.honest = TagOf(PlainSealText(tgt, kUsageTicket, nonce, header, std::string(144, 't')));
  // sum over p of a_p(H)^2 * delta_p: squares of shares are shares of the square.
  seen.predicted = seen.honest;
  for (int p = 0; p < kParties; ++p) {
    const Block a = three.store(p).Get(tgt.info.handle)->FindUsage(kUsageTicket)->h.a;
    seen.predicted = XorBlocks(seen.predicted, Times(GfSquare(a), deltas[p]));
  }
  return seen;
}

TEST(Equivocation, TheSameCiphertextGivesTheTag) {
  const Seen seen = Equivocate({});
  ASSERT_TRUE(seen.combined.judgement.ok()) << seen.combined.judgement.detail;
  EXPECT_EQ(seen.combined.tag_share, seen.honest);
}

TEST(Equivocation, DifferentCiphertexts) {
  SeededRandomForTest random(5);
  const Seen seen =
      Equivocate({RandomBlock(random), RandomBlock(random), RandomBlock(random)});
  EXPECT_THAT(seen.combined.judgement.detail, testing::HasSubstr("is not what"));
#ifdef MPCKDC_CONTROL
  EXPECT_EQ(seen.combined.tag_share, seen.predicted);
#else
  EXPECT_NE(seen.combined.tag_share, seen.predicted);
  EXPECT_NE(seen.combined.tag_share, seen.honest);
#endif
}

// Even when the one that differs is a single server's.
TEST(Equivocation, OneDifferentCiphertext) {
  SeededRandomForTest random(6);
  const Seen seen = Equivocate({Block{}, RandomBlock(random), Block{}});
  EXPECT_THAT(seen.combined.judgement.detail, testing::HasSubstr("is not what"));
#ifdef MPCKDC_CONTROL
  EXPECT_EQ(seen.combined.tag_share, seen.predicted);
#else
  EXPECT_NE(seen.combined.tag_share, seen.predicted);
#endif
}

// The model. Party p answers (x, a) of  rest + c_p * H^2  where `rest` is everything else of the
// tag, AES(Kg, J0) included. The attacker chooses c = (0, 1, b) and solves a linear system.
TEST(Equivocation, ServersThatAnswerWithTheirReplicatedSharesGiveAwayH) {
  SeededRandomForTest random(7);
  const Block h = RandomBlock(random), rest = RandomBlock(random);
  const auto share = [&](const Block& v) {
    PerParty<SharedBlock> s;
    const Block x0 = RandomBlock(random), x1 = RandomBlock(random);
    const PerParty<Block> x = {x0, x1, XorBlocks(x0, x1)};
    for (int p = 0; p < kParties; ++p) s[p] = {x[p], XorBlocks(x[PrevParty(p)], v)};
    return s;
  };
  const PerParty<SharedBlock> h2 = share(GfSquare(h)), r = share(rest);
  const Block one = GfOne(), b = RandomBlock(random);
  const PerParty<Block> c = {Block{}, one, b};
  PerParty<SharedBlock> answer;
  for (int p = 0; p < kParties; ++p) {
    answer[p] = {XorBlocks(r[p].x, Times(c[p], h2[p].x)), XorBlocks(r[p].a, Times(c[p], h2[p].a))};
  }

  // From here on the attacker's: answer and c only. With X_p the x components of H^2:
  //   R   = sum of the x parts              = X_1 + b X_2
  //   S_p = x part of p + a part of p + 1   = (c_p + c_{p+1}) X_p + c_{p+1} H^2 + rest
  Block R{};
  PerParty<Block> S;
  for (int p = 0; p < kParties; ++p) {
    R = XorBlocks(R, answer[p].x);
    S[p] = XorBlocks(answer[p].x, answer[NextParty(p)].a);
  }
  // rest = X_1 + u;  X_1 + H^2 = (S_1 + u) / b;  X_2 + H^2 = S_0 + u
  const Block u = XorBlocks(R, S[2]);
  const Block x1_h2 = Times(XorBlocks(S[1], u), Inverse(b));
  const Block x2_h2 = XorBlocks(S[0], u);
  const Block x2 = Times(XorBlocks(R, XorBlocks(x1_h2, x2_h2)), Inverse(XorBlocks(b, one)));
  EXPECT_EQ(SquareRoot(XorBlocks(x2_h2, x2)), h);
}

}  // namespace
}  // namespace mpckdc
