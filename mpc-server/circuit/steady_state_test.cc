// SPDX-License-Identifier: Apache-2.0
// No allocation in steady state: a page touched for the first time costs more than a block.
#include <cstdlib>
#include <new>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes/aes_circuit.h"
#include "mpc-server/circuit/aes/aes_kernels.h"
#include "mpc-server/circuit/aes/cbc_cts.h"
#include "mpc-server/circuit/aes/key_schedule.h"
#include "mpc-server/circuit/bitslice/slices.h"
#include "mpc-server/circuit/hash/hmac.h"

namespace {
size_t allocations = 0;
}  // namespace

// Not inlined: the compiler would see a new that is freed.
__attribute__((noinline)) void* operator new(size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  std::abort();
}
// As the library's own does; the address sanitizer has one that does not call the one above.
__attribute__((noinline)) void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return operator new(size);
}
__attribute__((noinline)) void operator delete(void* p) noexcept { std::free(p); }
__attribute__((noinline)) void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace mpckdc {
namespace {

class SteadyStateTest : public testing::TestWithParam<Isa> {
 protected:
  static constexpr size_t kMost = 1300;
  static constexpr size_t kMessage = WireBytes(kMost, 1024);  // more rows than any round has

  // One circuit to its end, alone: what comes from the neighbour is what was sent.
  void Run(Circuit& circuit) {
    ++batch_;
    for (uint32_t round = 0; !circuit.Done(); ++round) {
      const size_t size = circuit.NextRound().to_next;
      ZeroShares zero(streams_, batch_, round, log_);
      circuit.Produce(zero, {absl::MakeSpan(message_[round % 2]).first(size), {}});
      ok_ = circuit.Consume({absl::MakeConstSpan(message_[round % 2]).first(size), {}}).ok() && ok_;
    }
    if (log_ != nullptr) log_->Clear();
  }
  // What `f` allocates, in calls and in secret memory.
  template <class F>
  size_t AllocationsOf(F f) {
    const size_t before = allocations, secret = GetSecretArenaStats().bytes_in_use;
    f();
    return allocations - before + (GetSecretArenaStats().bytes_in_use - secret);
  }

  PairwiseStreams streams_{1, {Secret<Seed>(Seed{1}), Secret<Seed>(Seed{2}), {}}, GetParam()};
  SecretBytes message_[2] = {SecretBytes(kMessage), SecretBytes(kMessage)};
  uint32_t batch_ = 0;
  bool ok_ = true;
  ProofLog* log_ = nullptr;
};

TEST_P(SteadyStateTest, AesOfTheSameOrFewerLanesAllocatesNothing) {
  const SecretVector<SharedBlock> keys(AesRoundKeys(AesBits::k128));
  const std::vector<AesLane> lanes(kMost, AesLane{keys.data(), nullptr, Block{}});
  AesEncrypt aes(AesBits::k128, GetParam());
  AesDecrypt back(AesBits::k128, GetParam());
  const auto run = [&](size_t n, Sbox sbox) {
    for (AesCipher* cipher : {static_cast<AesCipher*>(&aes), static_cast<AesCipher*>(&back)}) {
      cipher->Reset(absl::MakeConstSpan(lanes).first(n), sbox);
      Run(*cipher);
      EXPECT_EQ(cipher->outputs().size(), n);
    }
  };
  // The control: what grows is seen.
  EXPECT_NE(AllocationsOf([&] { run(kMost, Sbox::kThroughput); }), 0u);
  for (size_t n : {kMost, size_t{512}, size_t{1}, size_t{0}, kMost}) {
    EXPECT_EQ(AllocationsOf([&] { run(n, Sbox::kThroughput); }), 0u) << n;
    EXPECT_EQ(AllocationsOf([&] { run(n, Sbox::kLatency); }), 0u) << n;
  }
  EXPECT_TRUE(ok_);
}

// Nor what is recorded of them.
TEST_P(SteadyStateTest, RecordingTheSameOrFewerLanesAllocatesNothing) {
  const SecretVector<SharedBlock> keys(kMost), states(2 * HashStateBlocks(HashKind::kSha1));
  const std::vector<AesLane> lanes(kMost, AesLane{keys.data(), nullptr, Block{}});
  const std::vector<uint8_t> text(50);
  const std::vector<HmacLane> messages(kMost, HmacLane{states.data(), text, nullptr, 0});
  ProofLog log;
  log_ = &log;
  AesEncrypt aes(AesBits::k128, GetParam());
  KeySchedule schedule(AesBits::k128, GetParam());
  Hmac hmac(HashKind::kSha1, GetParam());
  const auto run = [&](size_t n) {
    for (const Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
      aes.Reset(absl::MakeConstSpan(lanes).first(n), sbox);
      Run(aes);
    }
    schedule.Reset(absl::MakeConstSpan(keys).first(n));
    Run(schedule);
    hmac.Reset(absl::MakeConstSpan(messages).first(n), Adder::kRipple);
    Run(hmac);
  };
  PrepareHash(HashKind::kSha1, Adder::kRipple);
  run(kMost);
  EXPECT_NE(log.message_bytes(), 0u);
  for (size_t n : {kMost, size_t{512}, size_t{1}, size_t{0}, kMost}) {
    EXPECT_EQ(AllocationsOf([&] { run(n); }), 0u) << n;
  }
  EXPECT_EQ(log.bytes(), 0u);
  EXPECT_TRUE(ok_);
}

TEST_P(SteadyStateTest, CtsOfTheSameOrShorterTextsAllocatesNothing) {
  const SecretVector<SharedBlock> keys(AesRoundKeys(AesBits::k256)), text(6);
  const std::vector<uint8_t> message(90);
  CtsEncrypt encrypt(AesBits::k256, GetParam());
  CtsDecrypt decrypt(AesBits::k256, GetParam());
  std::vector<CtsEncryptLane> texts;
  std::vector<CtsDecryptLane> messages;
  for (size_t j = 0; j < kMost; ++j) {
    texts.push_back({keys.data(), text.data(), 90 - j % 70});
    messages.push_back({keys.data(), absl::MakeConstSpan(message).first(90 - j % 70)});
  }
  const auto run = [&](size_t n) {
    encrypt.Reset(absl::MakeConstSpan(texts).first(n));
    Run(encrypt);
    decrypt.Reset(absl::MakeConstSpan(messages).first(n));
    Run(decrypt);
  };
  EXPECT_NE(AllocationsOf([&] { run(kMost); }), 0u);
  for (size_t n : {kMost, size_t{512}, size_t{1}, size_t{0}, kMost}) {
    EXPECT_EQ(AllocationsOf([&] { run(n); }), 0u) << n;
  }
  EXPECT_TRUE(ok_);
}

TEST_P(SteadyStateTest, KeyScheduleOfTheSameOrFewerKeysAllocatesNothing) {
  const SecretVector<SharedBlock> keys(kMost);
  KeySchedule schedule(AesBits::k128, GetParam());
  const auto run = [&](size_t n) {
    schedule.Reset(absl::MakeConstSpan(keys).first(n));
    Run(schedule);
  };
  EXPECT_NE(AllocationsOf([&] { run(kMost); }), 0u);
  for (size_t n : {kMost, size_t{512}, size_t{1}, size_t{0}, kMost}) {
    EXPECT_EQ(AllocationsOf([&] { run(n); }), 0u) << n;
  }
  EXPECT_TRUE(ok_);
}

TEST_P(SteadyStateTest, HmacOfTheSameOrFewerLanesAllocatesNothing) {
  const SecretVector<SharedBlock> states(2 * HashStateBlocks(HashKind::kSha1)), shared(10);
  const std::vector<uint8_t> text(150);
  std::vector<HmacLane> lanes;
  for (size_t j = 0; j < kMost; ++j) {
    lanes.push_back(j % 2 == 0 ? HmacLane{states.data(), text, nullptr, 0}
                               : HmacLane{states.data(), {}, shared.data(), 100 + j % 50});
  }
  Hmac hmac(HashKind::kSha1, GetParam());
  const auto run = [&](size_t n, Adder adder) {
    hmac.Reset(absl::MakeConstSpan(lanes).first(n), adder);
    Run(hmac);
  };
  PrepareHash(HashKind::kSha1, Adder::kPrefix);
  EXPECT_NE(AllocationsOf([&] { run(kMost, Adder::kPrefix); }), 0u);
  for (size_t n : {kMost, size_t{512}, size_t{1}, size_t{0}, kMost}) {
    EXPECT_EQ(AllocationsOf([&] { run(n, Adder::kPrefix); }), 0u) << n;
  }
  EXPECT_TRUE(ok_);
}

INSTANTIATE_TEST_SUITE_P(Isas, SteadyStateTest, testing::ValuesIn(SupportedIsas()),
                         [](const auto& i) { return std::string(IsaName(i.param)); });

}  // namespace
}  // namespace mpckdc
