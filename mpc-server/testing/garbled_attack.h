// SPDX-License-Identifier: Apache-2.0
//
// What the owner of one server tries against the garbled circuits of logins of types 17 to 20
// (garble/): three engines whose messages are altered on their way, and who is named for it.
#ifndef MPC_SERVER_TESTING_GARBLED_ATTACK_H_
#define MPC_SERVER_TESTING_GARBLED_ATTACK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/wire/frame_format.h"

namespace mpckdc::garbled_attack {

// As it stands in a message: 128 bits; Delta's lowest one is 1.
struct Label {
  uint64_t low, high;
};

// What confirms the view, before a batch's first message.
inline constexpr size_t kConfirmBytes = sizeof(Digest);

inline uint32_t BatchOf(const MemoryRing::Intercepted& m) {
  FrameHeader header;
  return ReadFrameHeader(m.header.data(), &header).ok() ? header.batch : 0;
}

// Of a batch's first run, by the batch's number. Whoever is G1 comes after E, then G2.
enum Role { kE, kG1, kG2 };
inline const char* const kRoleNames[] = {"E", "G1", "G2"};
inline int PartyOf(Role role, uint32_t batch) {
  return static_cast<int>((batch + role) % kParties);
}
inline Role RoleOf(int party, uint32_t batch) {
  return static_cast<Role>((static_cast<uint32_t>(party) + 2 * batch) % kParties);
}

// What a run of this shape sends, without what confirms the view: bytes by sender, receiver, round.
class Sizes {
 public:
  void Add(Role from, Role to, size_t round, size_t bytes) {
    std::vector<size_t>& rounds = rounds_[{from, to}];
    if (rounds.size() <= round) rounds.resize(round + 1);
    rounds[round] = bytes;
  }
  // The last one in which it sends something.
  size_t LastRound(Role from, Role to) const {
    const auto& rounds = rounds_.at({from, to});
    size_t last = rounds.size();
    while (last > 0 && rounds[last - 1] == 0) --last;
    return last - 1;
  }
  size_t All(Role from, Role to) const {
    size_t all = 0;
    for (const size_t bytes : rounds_.at({from, to})) all += bytes;
    return all;
  }
  size_t Before(Role from, Role to, size_t round) const {
    const auto& rounds = rounds_.at({from, to});
    size_t before = 0;
    for (size_t i = 0; i < round && i < rounds.size(); ++i) before += rounds[i];
    return before;
  }

 private:
  std::map<std::pair<Role, Role>, std::vector<size_t>> rounds_;
};

// A byte of what one sends to another in a run; from the end if negative.
struct Lie {
  const char* what;
  Role liar, to;
  ptrdiff_t at;
  Role finder;
  // Who is named: the liar, or both neighbours of the finder.
  bool alone;
  const char* text;
  const char* defence;  // without which it is not found, or not so
  // Of the first round with something to send, or of the whole run.
  bool first_round = false;
};

inline constexpr char kTables[] = "sent are not those that";
inline constexpr char kLabel[] = "sent a label of another share than this one";
inline constexpr char kBits[] = "names bits whose labels it does not have";
inline constexpr char kSum[] = "part of their sum do not fit";

// What a pre-authentication's run ends with: its text is shown gated by the verdict, and goes out.
// Its length depends on the microseconds.
inline absl::Time LongNow() {
  return absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now())) + absl::Milliseconds(900);
}
inline const size_t kTimeBytes = EncodePreauthTimestamp(LongNow()).size();
inline const auto kOutputBits = static_cast<ptrdiff_t>(8 * (kConfounderBytes + kTimeBytes));
inline constexpr ptrdiff_t kLabelBytes = sizeof(Label);
// From the end of G1's stream: rows of outputs, permute bits of the time, of the verdict.
inline const ptrdiff_t kRowsAt = -kLabelBytes * kOutputBits;
inline const auto kPermuteAt =
    kRowsAt - kLabelBytes * static_cast<ptrdiff_t>((8 * kTimeBytes + 127) / 128) - kLabelBytes;

inline const Lie kLies[] = {
    {"another start of the hash's keys", kG1, kE, 3, kE, false, kTables, "GarbledMac"},
    {"another commitment", kG1, kE, kLabelBytes + 5, kE, false, kTables, "GarbledMac"},
    {"another row of a gate", kG1, kE, kPermuteAt - 1, kE, false, kTables, "GarbledMac"},
    {"another permute bit of the verdict", kG1, kE, kPermuteAt, kE, false, kTables, "GarbledMac"},
    {"another permute bit of the time", kG1, kE, kRowsAt - 16, kE, false, kTables, "GarbledMac"},
    {"another row of an output", kG1, kE, -1, kE, false, kTables, "GarbledMac"},
    {"no label of u", kG1, kE, -1, kE, true, kLabel, "GarbledLabelU", true},
    {"no label of w", kG2, kE, -1, kE, true, kLabel, "GarbledLabelW", true},
    {"another MAC", kG2, kE, -1, kE, false, kTables, "GarbledMac"},
    {"another verdict to G1", kE, kG1, 0, kG1, true, kBits, "GarbledVerdict"},
    {"another verdict to G2", kE, kG2, 0, kG2, true, kBits, "GarbledVerdict"},
    {"another time to G1", kE, kG1, 7, kG1, true, kBits, "GarbledVerdict"},
    {"another time to G2", kE, kG2, 7, kG2, true, kBits, "GarbledVerdict"},
    {"another hash of labels to G2", kE, kG2, -1, kG2, true, kBits, "GarbledVerdict"},
    {"other outputs", kE, kG1, -kLabelBytes - 1, kG1, false, kSum, "GarbledSum"},
    {"another sum of tokens", kE, kG1, -1, kG1, false, kSum, "GarbledSum"},
    {"another part of the sum", kG2, kG1, 0, kG1, false, kSum, "GarbledSum"},
};

// Three engines whose wires are watched. A batch is one pre-authentication, so one run; its time is
// far from a heartbeat's.
class Wires {
 public:
  // `sizes`: of an honest run.
  Wires(int32_t enctype, const Sizes& sizes) : sizes_(sizes), realm_(enctype) {
    realm_.hub().SetInterceptor([this](MemoryRing::Intercepted& m) { See(m); });
    realm_.RestartAll();
  }

  Realm& realm() { return realm_; }
  // Which lie from the next batch on, and how often; null: none.
  void Tell(const Lie* lie) {
    const absl::MutexLock lock(&mu_);
    lie_ = lie;
    told_ = 0;
    result_left_ = false;
  }
  size_t told() {
    const absl::MutexLock lock(&mu_);
    return told_;
  }
  // Whether E sent a result since.
  bool result_left() {
    const absl::MutexLock lock(&mu_);
    return result_left_;
  }
  uint32_t batch() {
    const absl::MutexLock lock(&mu_);
    return batch_;
  }
  // Of all messages, before they are altered.
  using Alter = std::function<void(Role from, Role to, size_t round, absl::Span<uint8_t> bytes)>;
  void SetAlter(Alter alter) {
    const absl::MutexLock lock(&mu_);
    alter_ = std::move(alter);
  }
  // No result of E's to that one any more; -1: to both again.
  void HoldBack(int from_role) {
    const absl::MutexLock lock(&mu_);
    held_back_ = from_role;
  }
  Sizes sizes() {
    const absl::MutexLock lock(&mu_);
    return sizes_;
  }

 private:
  void See(MemoryRing::Intercepted& m) {
    if (m.type != FrameType::kRound) return;
    const size_t skip = m.round == 0 ? kConfirmBytes : 0;
    if (m.payload.size() < skip) return;
    const absl::MutexLock lock(&mu_);
    const absl::Span<uint8_t> bytes = m.payload.subspan(skip);
    if (bytes.empty()) return;
    batch_ = BatchOf(m);
    const Role from = RoleOf(m.from, batch_), to = RoleOf(m.to, batch_);
    if (from == kE) result_left_ = true;
    if (from == kE && to == held_back_) m.drop = true;
    if (alter_) alter_(from, to, m.round, bytes);
    if (lie_ == nullptr) {
      sizes_.Add(from, to, m.round, bytes.size());
    } else if (from == lie_->liar && to == lie_->to) {
      Alter1(m.round, bytes);
    }
  }
  void Alter1(size_t round, absl::Span<uint8_t> bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const Lie& lie = *lie_;
    if (lie.first_round && round > 0) return;
    const size_t all = lie.first_round ? bytes.size() : sizes_.All(lie.liar, lie.to);
    const size_t before = sizes_.Before(lie.liar, lie.to, round);
    const auto at = static_cast<size_t>(lie.at + (lie.at < 0 ? static_cast<ptrdiff_t>(all) : 0));
    if (at < before || at >= before + bytes.size()) return;
    bytes[at - before] ^= 1;
    ++told_;
  }

  absl::Mutex mu_;
  Sizes sizes_ ABSL_GUARDED_BY(mu_);  // of honest runs
  const Lie* lie_ ABSL_GUARDED_BY(mu_) = nullptr;
  Alter alter_ ABSL_GUARDED_BY(mu_);
  int held_back_ ABSL_GUARDED_BY(mu_) = -1;
  size_t told_ ABSL_GUARDED_BY(mu_) = 0;
  bool result_left_ ABSL_GUARDED_BY(mu_) = false;
  uint32_t batch_ ABSL_GUARDED_BY(mu_) = 0;
  Realm realm_;
};

// What the three ended with.
struct End {
  PerParty<JobResult> answers;
  JobResult combined;
  uint32_t batch;
  size_t told;
  bool result_left;
};

class GarbledAttack {
 public:
  explicit GarbledAttack(int32_t enctype) : wires_(enctype, SizesOf(enctype)) {}

  Realm& realm() { return wires_.realm(); }
  Wires& wires() { return wires_; }
  bool AnySees() { return SeenBy(0) || SeenBy(1) || SeenBy(2); }
  // A reply to somebody whose gate is the KDC: one text to seal.
  PerParty<Job> SealReply(const std::string& text) {
    const PlainKey& user = realm().otp;
    Job job = realm().Granted(
        0, user, {user.info.handle, kUsageAsReply, static_cast<uint32_t>(text.size())});
    job.operation = Operation::kLogin;
    return WithTexts(job, text, realm().random());
  }
  Job OpenPreauth() { return OpenPreauth(realm(), realm().alice); }
  static Job OpenPreauth(Realm& realm, const PlainKey& key, absl::Time when = LongNow()) {
    return realm.OpenPreauth(realm.alice, SealPreauth(key, when, realm.random()));
  }

  End Run(const PerParty<Job>& jobs, const Lie* lie) {
    wires_.Tell(lie);
    End end{realm().Run(jobs), {}, 0, 0, false};
    end.combined = Combine(end.answers);
    end.batch = wires_.batch();
    end.told = wires_.told();
    end.result_left = wires_.result_left();
    return end;
  }
  End Run(const Job& job, const Lie* lie) { return Run(PerParty<Job>{job, job, job}, lie); }

  std::optional<DeviationReport> SeenBy(int party) {
    return realm().engine(party).Status().quarantine;
  }
  // Whether the finder says so within a while, and names those whom it has to.
  bool Found(const Lie& lie, uint32_t batch, absl::Duration within = absl::Seconds(3)) {
    const int finder = PartyOf(lie.finder, batch);
    if (!Eventually([&] { return SeenBy(finder).has_value(); }, within)) return false;
    const DeviationReport seen = *SeenBy(finder);
    const Suspects want =
        lie.alone ? Suspects::One(PartyOf(lie.liar, batch)) : Suspects::Neighbours(finder);
    return seen.suspects == want && absl::StrContains(seen.text, lie.text);
  }
  // No honest server is accused alone, whoever accuses; the liar's own word counts for nothing.
  void ExpectNoHonestServerAccusedAlone(int liar) {
    for (int p = 0; p < kParties; ++p) {
      const auto seen = SeenBy(p);
      if (p == liar || !seen.has_value()) continue;
      EXPECT_TRUE(seen->suspects.Has(liar)) << seen->text;
      EXPECT_FALSE(seen->suspects.Has(p)) << seen->text;
    }
  }

 private:
  // Of an honest pre-authentication.
  static const Sizes& SizesOf(int32_t enctype) {
    static auto& sizes = *new std::map<int32_t, Sizes>;
    const auto [place, is_new] = sizes.try_emplace(enctype);
    if (!is_new) return place->second;
    Wires wires(enctype, {});
    Realm& realm = wires.realm();
    EXPECT_VERDICT(realm.Run(OpenPreauth(realm, realm.alice)), Verdict::kOk);
    return place->second = wires.sizes();
  }

  Wires wires_;
};

}  // namespace mpckdc::garbled_attack

#endif  // MPC_SERVER_TESTING_GARBLED_ATTACK_H_
