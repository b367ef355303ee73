// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/subjects.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/circuit/aes/aes_circuit.h"
#include "mpc-server/circuit/aes/cbc_cts.h"
#include "mpc-server/circuit/aes/key_schedule.h"
#include "mpc-server/circuit/bitslice/slices.h"
#include "mpc-server/circuit/checks.h"
#include "mpc-server/circuit/derive/usage_key.h"
#include "mpc-server/circuit/gcm/ghash.h"
#include "mpc-server/circuit/hash/hmac.h"
#include "mpc-server/share/reveal.h"
#include "mpc-server/sim/garbled_subjects.h"
#include "mpc-server/testing/three_parties.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc::sim {
namespace {

// ---- Inputs ----

// The three parties' shares of blocks.
struct Shares {
  std::array<std::vector<SharedBlock>, kParties> of;

  void Add(const Block& value, RandomSource& random) {
    const auto split = SplitForTest(value, random);
    for (int p = 0; p < kParties; ++p) of[p].push_back(split[p]);
  }
  void AddRandom(size_t count, RandomSource& random) {
    for (; count > 0; --count) {
      Block value;
      random.Fill(absl::MakeSpan(value));
      Add(value, random);
    }
  }
  void AddKey(AesBits bits, RandomSource& random) {
    std::vector<uint8_t> key(static_cast<size_t>(bits) / 8);
    random.Fill(absl::MakeSpan(key));
    for (const Block& round_key : PlainKeySchedule(key)) Add(round_key, random);
  }
};

void Append(absl::Span<const SharedBlock> blocks, Results* results) {
  results->shares.insert(results->shares.end(), blocks.begin(), blocks.end());
}

// ---- One circuit ----

// Reset(circuit, party) and Keep(circuit, results).
template <class C>
class CircuitSubject : public Subject {
 public:
  using Make = std::function<std::unique_ptr<C>()>;
  using Reset = std::function<void(C& circuit, int party)>;
  using Keep = std::function<void(const C& circuit, Results* results)>;
  CircuitSubject(std::string name, size_t row_bytes, double share, const Make& make, Reset reset,
                 Keep keep)
      : Subject(std::move(name), row_bytes, share),
        reset_(std::move(reset)),
        keep_(std::move(keep)) {
    for (auto& circuit : circuits_) circuit = make();
  }

  absl::Status Run(PartyContext& party, const Verify& verify, Results* results) override {
    C& circuit = *circuits_[party.party()];
    reset_(circuit, party.party());
    RETURN_IF_ERROR(RunTogether(party, {&circuit}));
    RETURN_IF_ERROR(verify(party));
    keep_(circuit, results);
    return absl::OkStatus();
  }

 private:
  std::array<std::unique_ptr<C>, kParties> circuits_;
  const Reset reset_;
  const Keep keep_;
};

template <class C>
std::unique_ptr<Subject> Of(std::string name, size_t lanes, double share,
                            typename CircuitSubject<C>::Make make,
                            typename CircuitSubject<C>::Reset reset,
                            typename CircuitSubject<C>::Keep keep) {
  return std::make_unique<CircuitSubject<C>>(std::move(name), WireRowBytes(lanes), share, make,
                                             std::move(reset), std::move(keep));
}

// Lanes under two keys, of shared and public blocks in turn.
struct AesInputs {
  AesInputs(AesBits bits, size_t lanes, RandomSource& random) {
    for (int i = 0; i < 2; ++i) keys.AddKey(bits, random);
    blocks.AddRandom(lanes, random);
    for (int p = 0; p < kParties; ++p) {
      for (size_t i = 0; i < lanes; ++i) {
        AesLane lane;
        lane.round_keys = &keys.of[p][i % 2 * AesRoundKeys(bits)];
        if (i % 3 != 0) lane.shared_input = &blocks.of[p][i];
        lane.public_input[0] = static_cast<uint8_t>(i);
        of[p].push_back(lane);
      }
    }
  }
  Shares keys, blocks;
  std::array<std::vector<AesLane>, kParties> of;
};

template <class Cipher>
std::unique_ptr<Subject> Aes(const char* what, AesBits bits, Sbox sbox, size_t lanes, double share,
                             RandomSource& random) {
  const auto inputs = std::make_shared<AesInputs>(bits, lanes, random);
  const std::string name =
      absl::StrCat("aes-", static_cast<int>(bits), " ", what, ", ",
                   sbox == Sbox::kLatency ? "latency" : "throughput", ", ", lanes, " lanes");
  return Of<Cipher>(
      name, lanes, share, [bits] { return std::make_unique<Cipher>(bits); },
      [inputs, sbox](Cipher& c, int p) { c.Reset(inputs->of[p], sbox); },
      [](const Cipher& c, Results* r) { Append(c.outputs(), r); });
}

std::unique_ptr<Subject> Schedule(AesBits bits, double share, RandomSource& random) {
  constexpr size_t kKeys = 3;
  const auto keys = std::make_shared<Shares>();
  keys->AddRandom(kKeys * AesKeyBlocks(bits), random);
  return Of<KeySchedule>(
      absl::StrCat("key schedule, ", static_cast<int>(bits), " bits"), kKeys, share,
      [bits] { return std::make_unique<KeySchedule>(bits); },
      [keys](KeySchedule& c, int p) { c.Reset(keys->of[p]); },
      [](const KeySchedule& c, Results* r) {
        for (size_t i = 0; i < kKeys; ++i) Append(c.round_keys(i), r);
      });
}

std::unique_ptr<Subject> Powers(double share, RandomSource& random) {
  const auto h = std::make_shared<Shares>();
  h->AddRandom(2, random);
  return Of<GhashPowers>(
      "powers of H", 128, share, [] { return std::make_unique<GhashPowers>(); },
      [h](GhashPowers& c, int p) {
        c.Reset({{h->of[p][0], 9}, {h->of[p][1], 20}});
      },
      [](const GhashPowers& c, Results* r) {
        for (size_t i = 0; i < 2; ++i) Append(c.powers(i), r);
      });
}

std::unique_ptr<Subject> Mac(HashKind hash, const char* name, Adder adder, double share,
                             RandomSource& random) {
  constexpr size_t kLanes = 3, kBytes = 20;
  const size_t state = 2 * HashStateBlocks(hash);
  const auto states = std::make_shared<Shares>(), text = std::make_shared<Shares>();
  states->AddRandom(kLanes * state, random);
  text->AddRandom(kLanes * 2, random);
  const auto reset = [states, text, adder, state](Hmac& c, int p) {
    static constexpr std::array<uint8_t, kBytes> kPublic = {'p'};
    std::vector<HmacLane> lanes(kLanes);
    for (size_t i = 0; i < kLanes; ++i) {
      lanes[i].states = &states->of[p][i * state];
      lanes[i].bytes = kBytes;
      if (i == 0) {
        lanes[i].public_message = kPublic;
      } else {
        lanes[i].shared_message = &text->of[p][2 * i];
      }
    }
    c.Reset(lanes, adder);
  };
  return Of<Hmac>(
      name, kLanes, share, [hash] { return std::make_unique<Hmac>(hash); }, reset,
      [](const Hmac& c, Results* r) {
        for (size_t i = 0; i < kLanes; ++i) Append(c.digest(i), r);
      });
}

std::unique_ptr<Subject> Encrypting(double share, RandomSource& random) {
  const auto keys = std::make_shared<Shares>(), text = std::make_shared<Shares>();
  keys->AddKey(AesBits::k128, random);
  text->AddRandom(3, random);
  return Of<CtsEncrypt>(
      "cbc-cts, encrypting", 1, share, [] { return std::make_unique<CtsEncrypt>(AesBits::k128); },
      [=](CtsEncrypt& c, int p) {
        c.Reset({{keys->of[p].data(), text->of[p].data(), 41}}, Sbox::kLatency);
      },
      [](const CtsEncrypt& c, Results* r) { Append(c.ciphertext(0), r); });
}

std::unique_ptr<Subject> Decrypting(double share, RandomSource& random) {
  const auto keys = std::make_shared<Shares>();
  keys->AddKey(AesBits::k256, random);
  return Of<CtsDecrypt>(
      "cbc-cts, decrypting", 3, share, [] { return std::make_unique<CtsDecrypt>(AesBits::k256); },
      [keys](CtsDecrypt& c, int p) {
        static constexpr std::array<uint8_t, 41> kMessage = {1, 2, 3};
        c.Reset({{keys->of[p].data(), kMessage}}, Sbox::kThroughput);
      },
      [](const CtsDecrypt& c, Results* r) { Append(c.text(0), r); });
}

std::unique_ptr<Subject> Usage(int32_t enctype, const char* name, double share,
                               RandomSource& random) {
  const auto base = std::make_shared<Shares>();
  base->AddRandom(FindEnctype(enctype)->key_bytes / sizeof(Block), random);
  return Of<UsageKeys>(
      name, 2, share, [enctype] { return std::make_unique<UsageKeys>(*FindEnctype(enctype)); },
      [base](UsageKeys& c, int p) {
        c.Reset({{base->of[p].data(), 1}, {base->of[p].data(), 2}});
      },
      [](const UsageKeys& c, Results* r) {
        for (const UsageKeyShare& key : c.results()) {
          Append(key.round_keys, r);
          Append(key.mac_states, r);
          Append({&key.h, 1}, r);
        }
      });
}

// ---- A batch, in the order of compute/batch_work.cc ----

// A circuit's next round alone: what it computes is verified before the following one opens it.
class OneRound : public Circuit {
 public:
  explicit OneRound(Circuit& of) : of_(of) {}
  bool Done() const override { return done_ || of_.Done(); }
  RoundShape NextRound() const override { return of_.NextRound(); }
  void Produce(ZeroShares& zero, RoundOut out) override { of_.Produce(zero, out); }
  absl::Status Consume(RoundIn in) override {
    done_ = true;
    return of_.Consume(in);
  }
  Cost DeclaredCost() const override { return of_.DeclaredCost(); }

 private:
  Circuit& of_;
  bool done_ = false;
};

// A message is opened: blocks and powers of H, the check of its tag, then a time stamp for the
// servers; and another one whose tag is wrong.
class OpenMessage : public Subject {
 public:
  OpenMessage(Sbox sbox, double share, RandomSource& random)
      : Subject(sbox == Sbox::kLatency ? "batch, latency" : "batch, throughput",
                WireRowBytes(kLanes), share),
        sbox_(sbox),
        inputs_(AesBits::k128, kLanes, random) {
    h_.AddRandom(1, random);
    for (int p = 0; p < kParties; ++p) parties_[p] = std::make_unique<Party>();
  }

  absl::Status Run(PartyContext& party, const Verify& verify, Results* results) override {
    const int p = party.party();
    Party& own = *parties_[p];
    own.aes.Reset(inputs_.of[p], sbox_);
    own.powers.Reset({{h_.of[p][0], kPowers}});
    RETURN_IF_ERROR(RunTogether(party, {&own.aes, &own.powers}));
    const SharedBlock difference = own.aes.output(0) ^ own.powers.powers(0)[kPowers - 1];
    const SharedBlock none = own.aes.output(1) ^ own.aes.output(1);
    ZeroCheck check(party, "tag check");
    check.Reset({{&none, 1}, {&difference, 1}});
    OneRound multiply(check);
    RETURN_IF_ERROR(RunTogether(party, {&multiply}));
    RETURN_IF_ERROR(verify(party));
    RETURN_IF_ERROR(RunTogether(party, {&check}));
    const auto zero = check.zero();
    results->opened.insert(results->opened.end(), zero.begin(), zero.end());
    OpenToServers open(p, "pre-auth timestamp");
    open.Reset(own.aes.outputs().subspan(2, 2));
    RETURN_IF_ERROR(verify(party));
    RETURN_IF_ERROR(RunTogether(party, {&open}));
    for (const Block& block : open.values()) {
      results->opened.insert(results->opened.end(), block.begin(), block.end());
    }
    Append(own.aes.outputs().subspan(4), results);
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kLanes = 8;
  static constexpr uint32_t kPowers = 5;
  struct Party {
    AesEncrypt aes{AesBits::k128};
    GhashPowers powers;
  };
  const Sbox sbox_;
  AesInputs inputs_;
  Shares h_;
  std::array<std::unique_ptr<Party>, kParties> parties_;
};

}  // namespace

std::vector<std::unique_ptr<Subject>> AllSubjects(uint64_t seed) {
  SeededRandomForTest random(seed);
  std::vector<std::unique_ptr<Subject>> all;
  const auto add = [&all](std::unique_ptr<Subject> subject) { all.push_back(std::move(subject)); };
  using enum AesBits;
  add(std::make_unique<OpenMessage>(Sbox::kLatency, 0.2, random));
  add(std::make_unique<OpenMessage>(Sbox::kThroughput, 0.2, random));
  // 3 of 8 lanes are in use, all, and more than a word of 64.
  add(Aes<AesEncrypt>("encrypting", k128, Sbox::kThroughput, 8, 0.1, random));
  add(Aes<AesEncrypt>("encrypting", k128, Sbox::kLatency, 70, 0.05, random));
  add(Aes<AesEncrypt>("encrypting", k256, Sbox::kLatency, 3, 0.05, random));
  add(Aes<AesDecrypt>("decrypting", k128, Sbox::kThroughput, 70, 0.05, random));
  add(Aes<AesDecrypt>("decrypting", k256, Sbox::kLatency, 8, 0.05, random));
  add(Schedule(k128, 0.06, random));
  add(Schedule(k256, 0.06, random));
  add(Powers(0.1, random));
  add(Encrypting(0.02, random));
  add(Decrypting(0.02, random));
  add(Mac(HashKind::kSha1, "hmac-sha1, few rounds", Adder::kFewestRounds, 0.01, random));
  add(Mac(HashKind::kSha256, "hmac-sha256, prefix adder", Adder::kPrefix, 0.01, random));
  add(Mac(HashKind::kSha384, "hmac-sha384, ripple adder", Adder::kRipple, 0.005, random));
  add(Usage(kEnctypeAes128Gcm, "usage keys, gcm", 0.01, random));
  add(Usage(kEnctypeAes128Sha1, "usage keys, 17", 0.005, random));
  for (int p = 0; p < kParties; ++p) add(GarbledSubject(p, 0.03, random));
  return all;
}

}  // namespace mpckdc::sim
