// SPDX-License-Identifier: Apache-2.0
// A login's two jobs by three servers, one of which deviates.
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/garble/evaluator_side.h"
#include "mpc-server/garble/garbler_side.h"
#include "mpc-server/garble/message_circuits.h"
#include "mpc-server/garble/output.h"
#include "mpc-server/key/usage_keys.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/garbling.h"

namespace mpckdc::garble {
namespace {

using Bits = std::vector<uint8_t>;

struct SharedBits {
  Bits u, w, m;  // [row][lane]
};

// From G1 to E, with what a deviating G1 does to it.
class Line : public ChunkSink, public ChunkSource {
 public:
  void Pass(absl::Span<const uint8_t> chunk) override {
    bytes_.insert(bytes_.end(), chunk.begin(), chunk.end());
  }
  absl::Span<const uint8_t> Next(size_t bytes) override {
    EXPECT_LE(at_ + bytes, bytes_.size());
    labels_.resize(bytes / sizeof(Label));
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(at_), bytes,
                reinterpret_cast<uint8_t*>(labels_.data()));
    at_ += bytes;
    return {reinterpret_cast<const uint8_t*>(labels_.data()), bytes};
  }
  bool AllRead() const { return at_ == bytes_.size(); }
  std::vector<uint8_t>& bytes() { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<Label> labels_;
  size_t at_ = 0;
};

struct Deviations {
  std::function<void(std::vector<uint8_t>&)> stream;  // what G1 sends
  std::function<void(std::vector<Label>&)> labels_of_g1, labels_of_g2;
  bool other_m_at_g1 = false, other_m_at_g2 = false;
  std::function<void(GarblerOutput&)> output_of_g1;
  std::function<void(EvaluatorOutput&)> output_of_e;
  std::function<void(Bits&)> shown_by_e;
};

struct Outcome {
  EvaluatorSide::Fault fault{};
  bool held_for_g1 = false, held_for_g2 = false;
  Bits shown;
  CombinedOutput output;
  size_t bytes = 0;
};

// A pre-authentication that is opened, its time shown if it is good; a checksum for the KDC.
class Login {
 public:
  Login(int32_t number, size_t lanes, uint64_t seed)
      : enctype_(*FindEnctype(number)), lanes_(lanes), random_(seed) {
    for (size_t lane = 0; lane < lanes; ++lane) {
      const auto base = RandomBytes(enctype_.key_bytes);
      const std::string confounder = Text(RandomBytes(16));
      times_.push_back("time stamp of lane " + std::string(1, static_cast<char>(0x41 + lane)));
      requests_.push_back(Text(RandomBytes(100)));
      const std::string message = CtsSeal(enctype_, base, 1, confounder, times_.back());
      ciphertexts_ += message.substr(0, message.size() - enctype_.mac_bytes);
      macs_ += message.substr(message.size() - enctype_.mac_bytes);
      checksums_.push_back(CtsChecksum(enctype_, base, 56, requests_.back()));
      const ExpandedUsage usage = *ExpandUsage(enctype_, base, 1);
      Append(usage.round_keys, round_keys_);
      Append(usage.mac_states, states_);
      Append(ExpandUsage(enctype_, base, 56)->mac_states, checksum_states_);
    }
    for (const auto& plain : {round_keys_, states_, checksum_states_})
      inputs_.push_back(Share(plain));
  }
  void SpoilMac() { macs_[0] = static_cast<char>(macs_[0] ^ 1); }

  Outcome Run(const Deviations& deviations = {}) {
    const RunKey key = {1, 2, 3}, mac_key = {4, 5, 6};
    Outcome outcome;
    Line line;
    GarblerOutput parts[2];
    GarblerSide g1(GarblerNumber::kG1, key, lanes_, line);
    Garble(
        g1, deviations.other_m_at_g1, [](const SharedBits& b) { return b.u; }, &parts[0]);
    TableMac mac(mac_key);
    MacSink to_mac(mac);
    GarblerSide g2(GarblerNumber::kG2, key, lanes_, to_mac);
    Garble(
        g2, deviations.other_m_at_g2, [](const SharedBits& b) { return b.w; }, &parts[1]);
    if (deviations.stream) deviations.stream(line.bytes());
    if (deviations.output_of_g1) deviations.output_of_g1(parts[0]);
    outcome.bytes = line.bytes().size();

    const auto labels_of = [](const GarblerSide& g, const auto& alter) {
      std::vector<Label> labels(g.own_labels().begin(), g.own_labels().end());
      if (alter) alter(labels);
      return labels;
    };
    const std::vector<Label> u = labels_of(g1, deviations.labels_of_g1);
    const std::vector<Label> w = labels_of(g2, deviations.labels_of_g2);
    EvaluatorSide e(g1.hash_start(), mac_key, lanes_, line);
    size_t at = 0;
    std::vector<Wires> wires;
    for (const SharedBits& b : inputs_) {
      const auto part = [&](const std::vector<Label>& all) {
        return absl::MakeConstSpan(all).subspan(at, b.u.size());
      };
      wires.push_back(e.Input(b.u, b.w, part(u), part(w)));
      at += b.u.size();
    }
    MessageCircuits circuits(e.run(), enctype_);
    const auto shown = e.Show(Opened(circuits, wires));
    outcome.shown.assign(shown.begin(), shown.end());
    EvaluatorOutput part_of_e;
    e.Output(Checksum(circuits, wires), &part_of_e);
    EXPECT_TRUE(line.AllRead());
    outcome.fault = e.Check(mac.Finish());
    Bits said = outcome.shown;
    if (deviations.shown_by_e) deviations.shown_by_e(said);
    outcome.held_for_g1 = g1.Holds(said, e.ShownHash());
    outcome.held_for_g2 = g2.Holds(said, e.ShownHash());
    if (deviations.output_of_e) deviations.output_of_e(part_of_e);
    outcome.output = Combine(part_of_e, parts[0], parts[1]);
    return outcome;
  }

  // Row 0 says whether the message is good, the others are its text behind the confounder.
  Bits Expected(bool good_first_lane = true) const {
    std::vector<uint8_t> all;
    for (const std::string& time : times_) all.insert(all.end(), time.begin(), time.end());
    const Bits text = ToRows(all, lanes_);
    Bits expected(lanes_, 1);
    expected.insert(expected.end(), text.begin(), text.end());
    for (size_t i = 0; !good_first_lane && i < expected.size(); i += lanes_) expected[i] = 0;
    return expected;
  }
  std::string ExpectedChecksums() const {
    std::string all;
    for (const std::string& c : checksums_) all += c;
    return all;
  }
  std::string Checksums(const Outcome& outcome) const {
    return Text(ToBytes({outcome.output.bits.begin(), outcome.output.bits.end()}, lanes_));
  }
  size_t gates() const {
    const bool of_text = enctype_.family == EnctypeFamily::kRfc3962;
    const size_t bytes = ciphertexts_.size() / lanes_;
    return MessageGates::Decrypt(enctype_, bytes) +
           (of_text ? MessageGates::Hmac(enctype_, bytes)
                    : MessageGates::HmacOfPublic(enctype_, 16 + bytes)) +
           MessageGates::Check(enctype_, 8 * (bytes - 16)) +
           MessageGates::HmacOfPublic(enctype_, 100);
  }

 private:
  std::vector<uint8_t> RandomBytes(size_t count) {
    std::vector<uint8_t> bytes(count);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random_());
    return bytes;
  }
  static std::string Text(const std::vector<uint8_t>& bytes) {
    return {bytes.begin(), bytes.end()};
  }
  template <class T>
  static void Append(const T& bytes, std::vector<uint8_t>& to) {
    to.insert(to.end(), bytes.begin(), bytes.end());
  }
  SharedBits Share(const std::vector<uint8_t>& bytes) {
    SharedBits shared = {ToRows(bytes, lanes_), {}, {}};
    shared.w = shared.m = Bits(shared.u.size());
    for (size_t i = 0; i < shared.u.size(); ++i) {
      shared.w[i] = random_() & 1;
      shared.m[i] = random_() & 1;
      shared.u[i] ^= shared.w[i] ^ shared.m[i];
    }
    return shared;
  }
  absl::Span<const uint8_t> AllOf(const std::string& bytes) const {
    return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  }
  Wires Opened(MessageCircuits& circuits, const std::vector<Wires>& in) const {
    const Wires text = circuits.Decrypt(in[0], AllOf(ciphertexts_));
    std::string of_public;
    const size_t each = ciphertexts_.size() / lanes_;
    for (size_t lane = 0; lane < lanes_; ++lane) {
      of_public += std::string(16, '\0') + ciphertexts_.substr(lane * each, each);
    }
    const Wires mac = enctype_.family == EnctypeFamily::kRfc3962
                          ? circuits.Hmac(in[1], text)
                          : circuits.HmacOfPublic(in[1], AllOf(of_public));
    auto checked = circuits.Check(mac, AllOf(macs_), text.Bytes(16, text.bytes() - 16));
    checked.ok.Append(checked.gated);
    return checked.ok;
  }
  Wires Checksum(MessageCircuits& circuits, const std::vector<Wires>& in) const {
    std::string all;
    for (const std::string& r : requests_) all += r;
    return circuits.HmacOfPublic(in[2], AllOf(all));
  }
  template <class Own>
  void Garble(GarblerSide& side, bool other_m, Own own, GarblerOutput* out) {
    std::vector<Wires> wires;
    for (const SharedBits& b : inputs_) {
      Bits m = b.m;
      if (other_m) m[m.size() / 2] ^= 1;
      wires.push_back(side.Input(m, own(b)));
    }
    MessageCircuits circuits(side.run(), enctype_);
    side.Show(Opened(circuits, wires));
    side.Output(Checksum(circuits, wires), out);
    side.Finish();
  }

  const Enctype& enctype_;
  const size_t lanes_;
  std::mt19937_64 random_;
  std::vector<std::string> times_, requests_, checksums_;
  std::string ciphertexts_, macs_;
  std::vector<uint8_t> round_keys_, states_, checksum_states_;
  std::vector<SharedBits> inputs_;
};

class LoginTest : public testing::TestWithParam<int32_t> {};

TEST_P(LoginTest, IsAsOpensslHasIt) {
  for (const size_t lanes : {1, 3, 16}) {
    Login login(GetParam(), lanes, 1);
    const Outcome outcome = login.Run();
    EXPECT_EQ(outcome.fault, EvaluatorSide::Fault::kNone);
    EXPECT_TRUE(outcome.held_for_g1 && outcome.held_for_g2);
    EXPECT_EQ(outcome.shown, login.Expected());
    EXPECT_EQ(outcome.output.fault, OutputFault::kNone);
    EXPECT_EQ(login.Checksums(outcome), login.ExpectedChecksums());
    // Commitments, rows and what is shown come on top.
    EXPECT_GT(outcome.bytes, login.gates() * lanes * kAndRows * sizeof(Label));
  }
}

TEST_P(LoginTest, ABadMessageShowsNothing) {
  Login login(GetParam(), 2, 2);
  login.SpoilMac();
  const Outcome outcome = login.Run();
  EXPECT_EQ(outcome.fault, EvaluatorSide::Fault::kNone);
  EXPECT_EQ(outcome.shown, login.Expected(false));
}

// Each deviation of the note, and the check that stops it.
TEST_P(LoginTest, AnAlteredTableIsFound) {
  Login login(GetParam(), 1, 3);
  const size_t bytes = login.Run().bytes;
  std::mt19937_64 random(3);
  for (size_t i = 0; i < 40; ++i) {
    const size_t at = i < 20 ? random() % bytes : i < 30 ? i - 20 : bytes - 1 - (i - 30);
    Deviations d;
    d.stream = [&](std::vector<uint8_t>& all) { all[at] ^= static_cast<uint8_t>(1 << i % 8); };
    EXPECT_EQ(login.Run(d).fault, EvaluatorSide::Fault::kMac) << "byte " << at;
  }
}

TEST_P(LoginTest, OtherSharesAtAGarblerAreFound) {
  Login login(GetParam(), 1, 4);
  for (const bool first : {true, false}) {
    Deviations d;
    (first ? d.other_m_at_g1 : d.other_m_at_g2) = true;
    EXPECT_EQ(login.Run(d).fault, EvaluatorSide::Fault::kMac);
  }
}

TEST_P(LoginTest, ALabelOfAnotherBitOrOfNoneIsFound) {
  Login login(GetParam(), 1, 5);
  for (const bool first : {true, false}) {
    // Delta as G1 and G2 know it: the first thing that is drawn.
    Label delta;
    Draws draws({1, 2, 3});
    draws.Deltas(absl::MakeSpan(&delta, 1));
    for (const Label by : {delta, Label{0, 1}, Label{2, 0}}) {
      Deviations d;
      (first ? d.labels_of_g1 : d.labels_of_g2) = [&](std::vector<Label>& labels) {
        labels[77] = labels[77] ^ by;
      };
      EXPECT_EQ(login.Run(d).fault,
                first ? EvaluatorSide::Fault::kLabelOfG1 : EvaluatorSide::Fault::kLabelOfG2);
    }
  }
}

TEST_P(LoginTest, AnotherVerdictOrTimeIsNotBelieved) {
  Login login(GetParam(), 1, 6);
  for (const size_t bit : {0, 1, 60}) {
    Deviations d;
    d.shown_by_e = [&](Bits& bits) { bits[bit] ^= 1; };
    const Outcome outcome = login.Run(d);
    EXPECT_FALSE(outcome.held_for_g1 || outcome.held_for_g2);
  }
}

TEST_P(LoginTest, AnAlteredOutputGivesTheKdcNothing) {
  Login login(GetParam(), 2, 7);
  Deviations d;
  d.output_of_e = [](EvaluatorOutput& out) { out.colours[5] ^= 1; };
  EXPECT_EQ(login.Run(d).output.fault, OutputFault::kWrongSum);
  d.output_of_e = [](EvaluatorOutput& out) { out.sums[1].low ^= 1; };
  EXPECT_EQ(login.Run(d).output.fault, OutputFault::kWrongSum);
  Deviations g;
  g.output_of_g1 = [](GarblerOutput& out) { out.permute[9] ^= 1; };
  EXPECT_EQ(login.Run(g).output.fault, OutputFault::kGarblersDiffer);
  g.output_of_g1 = [](GarblerOutput& out) { out.alpha_key[0] ^= 1; };
  EXPECT_EQ(login.Run(g).output.fault, OutputFault::kGarblersDiffer);
  g.output_of_g1 = [](GarblerOutput& out) { out.sums[0].high ^= 1; };
  const Outcome outcome = login.Run(g);
  EXPECT_EQ(outcome.output.fault, OutputFault::kGarblersDiffer);
  EXPECT_TRUE(outcome.output.bits.empty());
}

INSTANTIATE_TEST_SUITE_P(Enctypes, LoginTest, testing::Values(17, 18, 19, 20));

TEST(RunKeysDeathTest, AKeyIsTakenOnce) {
  RunKeys keys({});
  const RunKey first = keys.Take("garble", 1);
  EXPECT_NE(first, keys.Take("mac", 1));
  EXPECT_NE(first, keys.Take("garble", 2));
  EXPECT_DEATH(keys.Take("garble", 2), "twice");
  EXPECT_DEATH(keys.Take("mac", 1), "twice");
}

TEST(TableMacTest, ChunksDoNotMatterAndEveryBitDoes) {
  std::vector<uint8_t> bytes(4096);
  std::mt19937_64 random(8);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  const auto of = [&](size_t chunk) {
    TableMac mac({9});
    for (size_t at = 0; at < bytes.size(); at += chunk) {
      mac.Add(absl::MakeConstSpan(bytes).subspan(at, chunk));
    }
    return mac.Finish();
  };
  const MacTag whole = of(4096);
  EXPECT_EQ(of(16), whole);
  EXPECT_EQ(of(1024), whole);
  for (const size_t bit : {size_t{0}, size_t{127}, size_t{128}, 8 * bytes.size() - 1}) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_NE(of(4096), whole);
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  }
  bytes.resize(4080);
  EXPECT_NE(of(4080), whole);
}

}  // namespace
}  // namespace mpckdc::garble
