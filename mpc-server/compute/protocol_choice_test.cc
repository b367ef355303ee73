// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/protocol_choice.h"

#include <cstdio>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/circuit/derive/usage_key.h"
#include "mpc-server/compute/garbled_cts.h"
#include "mpc-server/compute/garbled_keys.h"
#include "mpc-server/job/operation_table.h"

namespace mpckdc {
namespace {

using ::testing::ElementsAre;

constexpr int32_t kEnctypesHere[] = {17, 18, 19, 20};
constexpr ProtocolSetting kSettings[] = {ProtocolSetting::kAuto, ProtocolSetting::kReplicated,
                                         ProtocolSetting::kGarbled};
constexpr uint64_t kBudget = limits::kLongBatchRounds;

const FarthestLine kSideBySide = {};
FarthestLine Line(absl::Duration distance, uint64_t rate = 0) { return {distance, rate}; }

// A login with a checksum of usage 56, as MIT's clients ask for; and its reply.
CtsLoad Login(int32_t enctype = 18) {
  CtsLoad load;
  load.jobs = 1;
  load.AddPart(*FindEnctype(enctype), CtsPartKind::kOpen, 44);
  load.AddPart(*FindEnctype(enctype), CtsPartKind::kMac, 200);
  return load;
}
CtsLoad Reply(size_t text = 255, int32_t enctype = 18) {
  CtsLoad load;
  load.jobs = 1;
  load.AddPart(*FindEnctype(enctype), CtsPartKind::kSeal, kConfounderBytes + text);
  return load;
}
CtsLoad Times(CtsLoad one, size_t count) {
  CtsLoad all;
  for (size_t i = 0; i < count; ++i) all.Add(one);
  return all;
}
bool Garbles(const CtsLoad& load, const FarthestLine& line) {
  return ChooseProtocol(load, line, ProtocolSetting::kAuto) == CtsProtocol::kGarbled;
}

// What is counted here is what the circuits really send.
TEST(ProtocolChoice, TablesAreThoseOfThePlans) {
  UsageKey key;
  key.usage = kUsageAsReply;
  const std::string bytes(5000, 'x');
  for (const int32_t number : kEnctypesHere) {
    const Enctype& enctype = *FindEnctype(number);
    for (const CtsPartKind kind : {CtsPartKind::kOpen, CtsPartKind::kSeal, CtsPartKind::kMac}) {
      for (const size_t size : {17u, 44u, 200u, 271u, 1000u, 4096u}) {
        CtsPartWork part = {.kind = kind,
                            .job = 0,
                            .enctype = &enctype,
                            .key = &key,
                            .public_bytes = {},
                            .text = {}};
        TextSharesView text;
        text.own = text.before = AsBytes(bytes).first(size - kConfounderBytes);
        part.text = text;
        if (kind != CtsPartKind::kSeal)
          part.public_bytes = absl::string_view(bytes).substr(0, size);
        const auto real = static_cast<double>(GarbledCts::TableBytesOf(part));
        const auto counted = static_cast<double>(TableBytesOf(enctype, kind, size));
        EXPECT_NEAR(counted / real, 1.0, 0.02)
            << number << ", kind " << static_cast<int>(kind) << ", " << size << " bytes";
      }
    }
  }
}

// ---- Keys ----

constexpr KeyTask kTasks[] = {KeyTask::kDraw, KeyTask::kVerify};

CtsLoad Key(int32_t enctype, KeyTask task, KeyClass key_class = KeyClass::kUser) {
  KeyInfo info;
  info.enctype = enctype;
  info.key_class = key_class;
  CtsLoad load;
  load.AddKey(info, task);
  return load;
}

TEST(KeyChoice, TablesAreThoseOfThePlans) {
  for (const Enctype& enctype : kEnctypes) {
    for (const KeyClass key_class : {KeyClass::kUser, KeyClass::kService}) {
      for (const KeyTask task : kTasks) {
        const auto real = static_cast<double>(GarbledKeys::TableBytesOf(enctype, key_class, task));
        const CtsLoad key = Key(enctype.number, task, key_class);
        EXPECT_NEAR(static_cast<double>(key.tables) / real, 1.0, 0.02)
            << enctype.name << ", class " << static_cast<int>(key_class);
        EXPECT_TRUE(MayBeGarbled(key)) << "any key goes by itself";
      }
    }
    const CtsLoad draw = Key(enctype.number, KeyTask::kDraw);
    std::printf("%s: %zu rounds; drawn %.1f MB, verified %.1f MB\n",
                std::string(enctype.name).c_str(), static_cast<size_t>(draw.rounds),
                static_cast<double>(draw.tables) / 1e6,
                static_cast<double>(Key(enctype.number, KeyTask::kVerify).tables) / 1e6);
  }
}

TEST(KeyChoice, RoundsAreThoseOfTheCircuits) {
  for (const Enctype& enctype : kEnctypes) {
    const SharedBlock base[2] = {};
    for (const KeyClass key_class : {KeyClass::kUser, KeyClass::kService}) {
      std::vector<UsageKeyRequest> requests;
      for (const uint32_t usage : UsagesOf(key_class)) requests.push_back({base, usage});
      UsageKeys keys(enctype);
      keys.Reset(requests);
      EXPECT_EQ(UsageKeys::RoundsOf(enctype), keys.DeclaredCost().rounds) << enctype.name;
    }
  }
}

TEST(KeyChoice, AKeyIsGarbledFarApartAndManyOnASwitchAreNot) {
  constexpr uint64_t kGigabit = 125'000'000;
  for (const Enctype& enctype : kEnctypes) {
    for (const KeyTask task : kTasks) {
      const CtsLoad one = Key(enctype.number, task);
      const auto chosen = [&](size_t keys, const FarthestLine& line,
                              ProtocolSetting setting = ProtocolSetting::kAuto) {
        return ChooseKeys(std::vector<CtsLoad>(keys, one), line, setting);
      };
      const FarthestLine far = Line(absl::Milliseconds(10), kGigabit);
      EXPECT_EQ(chosen(1, far).protocol, CtsProtocol::kGarbled) << enctype.name;
      EXPECT_EQ(chosen(1, far).taken, 1u);
      const KeyChoice many = chosen(128, Line(absl::Microseconds(30), kGigabit));
      EXPECT_EQ(many.protocol, CtsProtocol::kReplicated) << enctype.name;
      EXPECT_EQ(many.taken, 128u);
      EXPECT_EQ(chosen(1, Line(absl::Milliseconds(10), 200'000)).protocol,
                CtsProtocol::kReplicated);
      EXPECT_EQ(chosen(1, far, ProtocolSetting::kReplicated).protocol, CtsProtocol::kReplicated);
      const KeyChoice forced = chosen(128, kSideBySide, ProtocolSetting::kGarbled);
      EXPECT_EQ(forced.protocol, CtsProtocol::kGarbled);
      EXPECT_TRUE(MayBeGarbled(Times(one, forced.taken)));
      EXPECT_FALSE(MayBeGarbled(Times(one, forced.taken + 1)));
    }
  }
}

// Keys that a server cannot read take no room, wherever they stand.
TEST(KeyChoice, WhatIsNotComputedIsTakenAlong) {
  const CtsLoad key = Key(kEnctypeAes256Sha384, KeyTask::kVerify);
  std::vector<CtsLoad> waiting(3);
  EXPECT_EQ(ChooseKeys(waiting, Line(absl::Seconds(1)), ProtocolSetting::kGarbled).protocol,
            CtsProtocol::kReplicated);
  EXPECT_EQ(ChooseKeys(waiting, Line(absl::Seconds(1)), ProtocolSetting::kGarbled).taken, 3u);
  waiting.insert(waiting.end(), 100, key);
  const KeyChoice choice = ChooseKeys(waiting, Line(absl::Seconds(1)), ProtocolSetting::kGarbled);
  EXPECT_EQ(choice.protocol, CtsProtocol::kGarbled);
  EXPECT_EQ(choice.taken, 3 + limits::kGarbledTableBytes / key.tables);
}

// A login under gcm keys: a pre-auth, a reply and a ticket.
CtsLoad GcmLogin() {
  const Enctype& enctype = *FindEnctype(kEnctypeAes256Gcm);
  CtsLoad load;
  load.jobs = 1;
  load.AddGcmPart(enctype, 4, 30, false);
  load.AddGcmPart(enctype, 17, 240, true);
  load.AddGcmPart(enctype, 15, 200, true);
  return load;
}

TEST(ProtocolChoice, GcmPartsAreGarbledFarApart) {
  constexpr uint64_t kGigabit = 125'000'000;
  const auto chosen = [](const CtsLoad& load, const FarthestLine& line,
                         ProtocolSetting setting = ProtocolSetting::kAuto,
                         bool beside_tables = false) {
    return ChooseGcmProtocol(load, line, setting, beside_tables) == CtsProtocol::kGarbled;
  };
  const CtsLoad one = GcmLogin();
  EXPECT_FALSE(chosen(one, kSideBySide));
  EXPECT_FALSE(chosen(one, Line(absl::Microseconds(200))));
  EXPECT_TRUE(chosen(one, Line(absl::Milliseconds(10), kGigabit)));
  EXPECT_FALSE(chosen(one, Line(absl::Milliseconds(10), 1'000'000)));
  // Quicker than 40 rounds, but the second garbler would give the session up.
  EXPECT_TRUE(chosen(one, Line(absl::Seconds(5), 270'000)));
  EXPECT_FALSE(chosen(one, Line(absl::Seconds(5), 260'000)));
  EXPECT_FALSE(chosen(Times(one, 100), Line(absl::Milliseconds(10), kGigabit)));
  EXPECT_FALSE(chosen(one, Line(absl::Seconds(1)), ProtocolSetting::kReplicated));
  EXPECT_TRUE(chosen(one, kSideBySide, ProtocolSetting::kGarbled));
  EXPECT_FALSE(chosen(Login(), Line(absl::Seconds(1))));  // no part of gcm
  // The ticket of a stock client's login, whose other parts are garbled.
  CtsLoad ticket;
  ticket.AddGcmPart(*FindEnctype(kEnctypeAes256Gcm), 15, 200, true);
  const FarthestLine near = Line(absl::Microseconds(150));
  EXPECT_TRUE(chosen(ticket, near, ProtocolSetting::kAuto, true));
  EXPECT_FALSE(chosen(ticket, near, ProtocolSetting::kAuto, false));
  EXPECT_FALSE(chosen(ticket, kSideBySide, ProtocolSetting::kAuto, true));
  EXPECT_FALSE(chosen(Times(ticket, 4), near, ProtocolSetting::kAuto, true));
  // Beyond the limits never.
  EXPECT_FALSE(chosen(Times(one, 100), Line(absl::Seconds(1)), ProtocolSetting::kGarbled));
  CtsLoad longer = one;
  longer.AddGcmPart(*FindEnctype(kEnctypeAes256Gcm), 2, limits::kGarbledMessageBytes + 1, true);
  EXPECT_FALSE(chosen(longer, Line(absl::Seconds(1)), ProtocolSetting::kGarbled));
}

TEST(ProtocolChoice, Table) {
  struct Case {
    const char* what;
    CtsLoad load;
    FarthestLine line;
    bool garbled;
  };
  constexpr uint64_t kGigabit = 125'000'000, kTenGigabit = 1'250'000'000;
  const Case cases[] = {
      {"a lone login", Login(), kSideBySide, true},
      {"its reply", Reply(), kSideBySide, true},
      {"four", Times(Login(), 4), kSideBySide, true},
      {"a burst on one switch", Times(Reply(), 100), kSideBySide, false},
      {"the same at some distance", Times(Reply(), 100), Line(absl::Milliseconds(1)), true},
      {"the same on a slow line", Times(Reply(), 100), Line(absl::Milliseconds(1), kGigabit),
       false},
      {"the same on a fast one", Times(Reply(), 100), Line(absl::Milliseconds(1), kTenGigabit),
       true},
      {"four on one switch of 1 Gb/s", Times(Reply(), 4), Line(absl::Microseconds(50), kGigabit),
       true},
      {"ten on it", Times(Reply(), 10), Line(absl::Microseconds(50), kGigabit), false},
      {"a lone login on a very slow line", Login(), Line(absl::Microseconds(50), 1'000'000), false},
      {"far apart, on lines that a timeout is long enough for", Login(),
       Line(absl::Milliseconds(30), 270'000), true},
      {"far apart, on slower ones", Login(), Line(absl::Milliseconds(30), 260'000), false},
      {"no part of these types", {}, Line(absl::Seconds(1)), false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Garbles(c.load, c.line), c.garbled)
        << c.what << ": in rounds " << ReplicatedTime(c.load, c.line) << ", garbled "
        << GarbledTime(c.load, c.line);
  }
}

// For whoever changes the constants.
TEST(ProtocolChoice, PrintsHowManyAreGarbled) {
  const std::pair<const char*, FarthestLine> lines[] = {
      {"one switch, no bound", Line(absl::Microseconds(30))},
      {"one switch, 10 Gb/s", Line(absl::Microseconds(30), 1'250'000'000)},
      {"one switch, 1 Gb/s", Line(absl::Microseconds(30), 125'000'000)},
      {"1 ms, 10 Gb/s", Line(absl::Milliseconds(1), 1'250'000'000)},
      {"1 ms, 1 Gb/s", Line(absl::Milliseconds(1), 125'000'000)},
      {"10 ms, 1 Gb/s", Line(absl::Milliseconds(10), 125'000'000)}};
  for (const int32_t enctype : kEnctypesHere) {
    const CtsLoad login = Login(enctype), reply = Reply(255, enctype);
    std::printf("%d: login %zu rounds, %.1f MB; reply %zu rounds, %.1f MB\n", enctype,
                static_cast<size_t>(login.rounds), static_cast<double>(login.tables) / 1e6,
                static_cast<size_t>(reply.rounds), static_cast<double>(reply.tables) / 1e6);
    for (const auto& [where, line] : lines) {
      size_t most[2] = {0, 0};
      for (size_t count = 1; count <= 4096; ++count) {
        if (Garbles(Times(login, count), line)) most[0] = count;
        if (Garbles(Times(reply, count), line)) most[1] = count;
      }
      std::printf("  %-22s up to %zu logins, %zu replies\n", where, most[0], most[1]);
      EXPECT_GE(most[0], 1u);
    }
  }
}

// One that is garbled stays so when the servers move apart; the more wait and the slower the line,
// the less is garbled.
TEST(ProtocolChoice, IsMonotone) {
  const uint64_t rates[] = {1'000'000, 125'000'000, 1'250'000'000, 0};
  for (const int32_t enctype : kEnctypesHere) {
    for (const CtsLoad& one : {Login(enctype), Reply(100, enctype), Reply(4000, enctype)}) {
      for (size_t count = 1; count <= 4096; count *= 2) {
        bool before_rate = false;
        for (const uint64_t rate : rates) {
          bool before = false;
          for (int64_t us = 1; us < 1'000'000; us *= 3) {
            const bool now = Garbles(Times(one, count), Line(absl::Microseconds(us), rate));
            EXPECT_LE(before, now) << enctype << ", " << count << " at " << us << " us";
            EXPECT_GE(Garbles(one, Line(absl::Microseconds(us), rate)), now);
            before = now;
          }
          const bool now = Garbles(Times(one, count), Line(absl::Milliseconds(1), rate));
          EXPECT_LE(before_rate, now) << enctype << ", " << count << " at rate " << rate;
          before_rate = now;
        }
      }
    }
  }
}

TEST(ProtocolChoice, HardLimits) {
  EXPECT_TRUE(MayBeGarbled(Reply()));
  EXPECT_FALSE(MayBeGarbled({}));
  EXPECT_TRUE(MayBeGarbled(Reply(limits::kGarbledMessageBytes - kConfounderBytes)));
  EXPECT_FALSE(MayBeGarbled(Reply(limits::kGarbledMessageBytes - kConfounderBytes + 1)));
  // The longest message of any type goes by itself.
  for (const int32_t enctype : kEnctypesHere) {
    EXPECT_TRUE(MayBeGarbled(Reply(limits::kGarbledMessageBytes - kConfounderBytes, enctype)));
  }
  EXPECT_FALSE(MayBeGarbled(Times(Login(), limits::kGarbledParts / 2 + 1)));
  EXPECT_FALSE(MayBeGarbled(Times(Reply(4000), 2)));
}

// Whatever waits, and whatever is measured or forced.
TEST(ProtocolChoice, NoBatchIsBeyondTheLimits) {
  uint32_t random = 1;
  const auto draw = [&random](uint32_t below) {
    random = random * 1664525 + 1013904223;
    return (random >> 8) % below;
  };
  constexpr size_t kTexts[] = {1, 100, 255, 500, 1200, 3000, 4000, 5000, 16000};
  for (int run = 0; run < 3000; ++run) {
    std::vector<CtsLoad> waiting(1 + draw(run % 10 == 0 ? 200 : 12));
    for (CtsLoad& job : waiting) {
      const int32_t enctype = kEnctypesHere[draw(4)];
      job = draw(2) == 0 ? Login(enctype) : Reply(kTexts[draw(9)], enctype);
      if (draw(8) == 0) job = Times(Reply(100, enctype), 40), job.jobs = 1;  // of many parts
    }
    const FarthestLine line = Line(absl::Microseconds(draw(3) == 0 ? 0 : draw(100'000)),
                                   draw(3) == 0 ? 0 : 1 + draw(2'000'000'000));
    for (const ProtocolSetting setting : kSettings) {
      const BatchChoice choice = ChooseBatch(waiting, line, setting, kBudget);
      ASSERT_FALSE(choice.taken.empty());
      EXPECT_EQ(choice.taken[0], 0u);
      CtsLoad all;
      for (const size_t i : choice.taken) all.Add(waiting[i]);
      if (choice.protocol == CtsProtocol::kGarbled) {
        EXPECT_TRUE(MayBeGarbled(all));
        EXPECT_NE(setting, ProtocolSetting::kReplicated);
        continue;
      }
      if (choice.taken.size() > 1) {
        uint64_t others = 0;
        for (const size_t i : choice.taken)
          others = std::max(others, i == 0 ? 0 : waiting[i].rounds);
        EXPECT_LE(others, kBudget);
      }
      if (setting != ProtocolSetting::kGarbled) continue;
      for (const size_t i : choice.taken) EXPECT_FALSE(MayBeGarbled(waiting[i]));
    }
  }
}

TEST(ProtocolChoice, WhatIsForced) {
  const std::vector<CtsLoad> waiting = {Reply(), Reply(5000), Reply()};
  const auto choose = [&](ProtocolSetting setting, const FarthestLine& line) {
    return ChooseBatch(waiting, line, setting, UINT64_MAX);
  };
  const FarthestLine far = Line(absl::Seconds(1)), slow = Line({}, 1000);
  EXPECT_EQ(choose(ProtocolSetting::kReplicated, far).protocol, CtsProtocol::kReplicated);
  EXPECT_THAT(choose(ProtocolSetting::kReplicated, far).taken, ElementsAre(0, 1, 2));
  EXPECT_EQ(choose(ProtocolSetting::kGarbled, slow).protocol, CtsProtocol::kGarbled);
  EXPECT_THAT(choose(ProtocolSetting::kGarbled, slow).taken, ElementsAre(0, 2));
  // A long message is computed in rounds, and what may be garbled waits for a batch of its own.
  const std::vector<CtsLoad> long_first = {Reply(5000), Reply(), Reply(6000)};
  const BatchChoice choice = ChooseBatch(long_first, far, ProtocolSetting::kGarbled, UINT64_MAX);
  EXPECT_EQ(choice.protocol, CtsProtocol::kReplicated);
  EXPECT_THAT(choice.taken, ElementsAre(0, 2));
}

// Far apart, more wait than one garbled batch may hold: the first of them go.
TEST(ProtocolChoice, ABurstIsCut) {
  const std::vector<CtsLoad> waiting(100, Login());
  const BatchChoice choice =
      ChooseBatch(waiting, Line(absl::Milliseconds(10)), ProtocolSetting::kAuto, kBudget);
  EXPECT_EQ(choice.protocol, CtsProtocol::kGarbled);
  EXPECT_EQ(choice.taken.size(), limits::kGarbledParts / 2);
  EXPECT_EQ(choice.taken.back(), limits::kGarbledParts / 2 - 1);
}

TEST(ProtocolChoice, ALineThatIsTooSlowForTables) {
  EXPECT_FALSE(IsTooSlowForTables(0));  // nobody knows it
  EXPECT_FALSE(IsTooSlowForTables(1'000'000));
  EXPECT_FALSE(IsTooSlowForTables(270'000));
  EXPECT_TRUE(IsTooSlowForTables(260'000));
  const CtsLoad far = Login();
  EXPECT_TRUE(Garbles(far, Line(absl::Seconds(10), 270'000)));
  EXPECT_FALSE(Garbles(far, Line(absl::Seconds(10), 260'000)));
  const absl::Status silent =
      absl::DeadlineExceededError("next (P1) in step \"garbled/tables\": nothing moved");
  EXPECT_THAT(std::string(SayIfTooSlowForTables(silent).message()),
              ::testing::AllOf(::testing::StartsWith(std::string(silent.message())),
                               ::testing::HasSubstr("[engine] protocol = \"replicated\"")));
  EXPECT_TRUE(absl::IsDeadlineExceeded(SayIfTooSlowForTables(silent)));
  for (const absl::Status& other :
       {absl::OkStatus(), absl::UnavailableError("next (P1) in step \"garbled/tables\": gone"),
        absl::DeadlineExceededError("next (P1) in step \"sbox\": nothing moved")}) {
    EXPECT_EQ(SayIfTooSlowForTables(other), other);
  }
}

// What is long in rounds need not be in bytes.
TEST(ProtocolChoice, DeepJobs) {
  const CtsLoad middle = Reply(1200), longest = Reply(4000);
  EXPECT_TRUE(IsDeep(middle, CtsProtocol::kReplicated));
  EXPECT_FALSE(IsDeep(middle, CtsProtocol::kGarbled));
  EXPECT_TRUE(IsDeep(longest, CtsProtocol::kGarbled));
  EXPECT_FALSE(IsDeep(Login(), CtsProtocol::kReplicated));
  // Beside a burst it is garbled, since it is no job for a batch of rounds with others.
  std::vector<CtsLoad> waiting(100, Reply());
  waiting.insert(waiting.begin(), middle);
  const BatchChoice first = ChooseBatch(waiting, kSideBySide, ProtocolSetting::kAuto, kBudget);
  EXPECT_EQ(first.protocol, CtsProtocol::kGarbled);
  std::swap(waiting[0], waiting[1]);
  const BatchChoice second = ChooseBatch(waiting, kSideBySide, ProtocolSetting::kAuto, kBudget);
  EXPECT_EQ(second.protocol, CtsProtocol::kReplicated);
  EXPECT_EQ(second.taken.size(), waiting.size() - 1);
}

TEST(ProtocolChoice, SettingsOfTwoServers) {
  EXPECT_TRUE(Contradict(ProtocolSetting::kGarbled, ProtocolSetting::kReplicated));
  for (const ProtocolSetting s : kSettings) {
    EXPECT_FALSE(Contradict(s, s));
    EXPECT_FALSE(Contradict(s, ProtocolSetting::kAuto));
    EXPECT_EQ(Together(s, ProtocolSetting::kAuto), s);
    EXPECT_EQ(Together(ProtocolSetting::kAuto, s), s);
  }
}

}  // namespace
}  // namespace mpckdc
