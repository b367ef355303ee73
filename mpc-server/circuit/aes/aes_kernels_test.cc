// SPDX-License-Identifier: Apache-2.0
// Every variant of the kernels against the portable one, stage by stage: a stage is a function of
// its rows and of the zero share, so both must write the same bytes.
#include "mpc-server/circuit/aes/aes_kernels.h"

#include <cstring>
#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/circuit/bitslice/slices.h"
#include "mpc-server/circuit/bitslice/transpose.h"
#include "mpc-server/circuit/hash/bit_program.h"
#include "mpc-server/share/ctr_stream.h"

namespace mpckdc {
namespace {

constexpr size_t kPlane = 128 * kRowBytes;
constexpr size_t kMessage = 16 * kMaxSlicesPerByte * kRowBytes;

// All that a stage may read or write.
struct Rows {
  explicit Rows(uint64_t seed) {
    SeededRandomForTest random(seed);
    for (std::vector<uint8_t>* v : All()) random.Fill(absl::MakeSpan(*v));
  }
  std::vector<std::vector<uint8_t>*> All() {
    return {&key, &state, &norm, &sent, &received, &msg, &out, &words};
  }
  std::vector<uint8_t> key = std::vector<uint8_t>(2 * kPlane), state = key, norm = key, out = key;
  std::vector<uint8_t> sent = std::vector<uint8_t>(kMessage), received = sent, msg = sent;
  std::vector<uint8_t> words = std::vector<uint8_t>(2 * 44 * 32 * kRowBytes);
};

struct Stage {
  const char* name;
  size_t message_rows;  // 0: it makes no message
  std::function<void(const AesKernels&, Rows&, size_t width, const ZeroSource*)> run;
};

constexpr size_t kWordsPlane = 44 * 32 * kRowBytes;

std::vector<Stage> AllStages() {
  using K = const AesKernels&;
  using Z = const ZeroSource*;
  std::vector<Stage> stages = {
      {"start", 64, [](K k, Rows& r, size_t w, Z z) {
         k.start(r.state.data(), r.key.data(), r.state.data(), r.msg.data(), w, z);
       }},
      {"next", 64, [](K k, Rows& r, size_t w, Z z) {
         k.next(r.sent.data(), r.received.data(), r.key.data(), r.state.data(), r.msg.data(), w, z);
       }},
      {"finish", 0, [](K k, Rows& r, size_t w, Z) {
         k.finish(r.sent.data(), r.received.data(), r.key.data(), r.out.data(), w);
       }},
      {"decrypt_start", 64, [](K k, Rows& r, size_t w, Z z) {
         k.decrypt_start(r.state.data(), r.key.data(), r.state.data(), r.msg.data(), w, z);
       }},
      {"decrypt_next", 64, [](K k, Rows& r, size_t w, Z z) {
         k.decrypt_next(r.sent.data(), r.received.data(), r.key.data(), r.state.data(),
                        r.msg.data(), w, z);
       }},
      {"decrypt_finish", 0, [](K k, Rows& r, size_t w, Z) {
         k.decrypt_finish(r.sent.data(), r.received.data(), r.key.data(), r.out.data(), w);
       }},
      {"word_start", 16, [](K k, Rows& r, size_t w, Z z) {
         k.word_start(r.words.data(), kWordsPlane, 4, true, r.state.data(), r.msg.data(), w, z);
       }},
      {"word_finish", 0, [](K k, Rows& r, size_t w, Z) {
         k.word_finish(r.words.data(), kWordsPlane, 4, 8, 12, 0x36, r.sent.data(),
                       r.received.data(), w);
       }}};
  for (size_t bytes : {4u, 16u}) {
    stages.push_back({"helper", bytes, [bytes](K k, Rows& r, size_t w, Z z) {
      k.helper(bytes, r.sent.data(), r.received.data(), r.norm.data(), r.msg.data(), w, z);
    }});
    stages.push_back({"inverse", 4 * bytes, [bytes](K k, Rows& r, size_t w, Z z) {
      k.inverse(bytes, r.norm.data(), r.sent.data(), r.received.data(), r.msg.data(), w, z);
    }});
    stages.push_back({"twist", 10 * bytes, [bytes](K k, Rows& r, size_t w, Z z) {
      k.twist(bytes, r.state.data(), r.sent.data(), r.received.data(), r.msg.data(), w, z);
    }});
  }
  for (AesLinear linear : {AesLinear::kMixColumns, AesLinear::kShiftRows, AesLinear::kInvShiftRows,
                           AesLinear::kWord}) {
    const size_t rows = linear == AesLinear::kWord ? 32 : 128;
    stages.push_back({"product", rows, [linear](K k, Rows& r, size_t w, Z z) {
      k.product(linear, r.state.data(), r.sent.data(), r.received.data(), r.msg.data(), w, z);
    }});
    stages.push_back({"scale", rows, [linear](K k, Rows& r, size_t w, Z z) {
      k.scale(linear, r.sent.data(), r.received.data(), r.msg.data(), w, z);
    }});
  }
  return stages;
}

// The first `width` bytes of every row.
bool SameRows(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b, size_t width) {
  for (size_t at = 0; at < a.size(); at += kRowBytes) {
    if (std::memcmp(&a[at], &b[at], width) != 0) return false;
  }
  return true;
}

class AesKernelsTest : public testing::TestWithParam<IsaVariant<AesKernels>> {};

TEST_P(AesKernelsTest, EveryStageEqualsThePortable) {
  const AesKernels& portable = AllAesKernels().For(Isa::kPortable);
  for (const Stage& stage : AllStages()) {
    for (size_t width : {1u, 8u, 9u, 31u, 33u, 64u}) {
      Rows want(width), got(width);
      stage.run(portable, want, width, nullptr);
      stage.run(GetParam().functions, got, width, nullptr);
      const auto wanted = want.All(), gotten = got.All();
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_TRUE(SameRows(*wanted[i], *gotten[i], width))
            << stage.name << " width " << width << " buffer " << i;
      }
    }
  }
}

// A kernel that makes its zero share writes what it writes when the share is there already, and
// nothing behind the message.
TEST_P(AesKernelsTest, ZeroSharesMadeInsideAreTheStreams) {
  const AesKernels& kernels = GetParam().functions;
  if (!kernels.makes_zeros) GTEST_SKIP() << "this variant takes zero shares that are there";
  const CtrFunctions& ctr = AllCtrs().For(Isa::kPortable);
  const uint8_t k1[16] = {1}, k2[16] = {2};
  const CtrKey own = ExpandCtrKey(ctr, k1), next = ExpandCtrKey(ctr, k2);
  const ZeroSource source = {&own, &next, {{1, 2, 3, 4}}, 0x01FFFFF0};
  for (const Stage& stage : AllStages()) {
    if (stage.message_rows == 0) continue;
    Rows want(7), got(7);
    ctr.fill_xor(own, next, source.prefix, source.position, want.msg.data(),
                 stage.message_rows * kRowBytes / 16);
    stage.run(kernels, want, kRowBytes, nullptr);
    stage.run(kernels, got, kRowBytes, &source);
    EXPECT_EQ(want.msg, got.msg) << stage.name << " of " << stage.message_rows << " rows";
    EXPECT_EQ(want.state, got.state) << stage.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, AesKernelsTest, testing::ValuesIn(AllAesKernels().supported()),
                         [](const auto& i) { return std::string(i.param.name); });

// What a tier uses is one of the tested, and never another tier's.
template <class F>
void CheckTiers(const IsaTable<F>& all) {
  for (Isa isa : SupportedIsas()) {
    const F* best = nullptr;
    for (const IsaVariant<F>& v : all.supported()) {
      if (v.tier == isa) best = &v.functions;
    }
    EXPECT_EQ(&all.For(isa), best) << IsaName(isa);
  }
}
TEST(IsaTableTest, EachTierTakesItsBest) {
  CheckTiers(AllCtrs());
  CheckTiers(AllTransposes());
  CheckTiers(AllAesKernels());
  CheckTiers(AllSboxRecords());
  CheckTiers(AllBitKernels());
}

}  // namespace
}  // namespace mpckdc
