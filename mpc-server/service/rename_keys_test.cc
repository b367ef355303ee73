// SPDX-License-Identifier: Apache-2.0
// The call RenameKeys: what it says in the audit log, what it refuses, and how often it may be said.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/service/key_history.h"
#include "mpc-server/service/rename_keys.h"
#include "mpc-server/testing/admin_service_fixture.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

constexpr char kOld[] = "alice@EXAMPLE.COM", kNew[] = "alice.smith@EXAMPLE.COM";

class RenameKeysTest : public AdminServiceTest {
 protected:
  void Committed(char handle, const std::string& of = kOld) {
    const std::string txn(16, static_cast<char>(handle ^ 1));
    v1::KeyInfo info = AliceInfo();
    info.set_handle(std::string(16, handle));
    info.set_principal(of);
    ASSERT_TRUE(Stage({Package({.txn = txn, .info = info})}, txn).ok());
    ASSERT_TRUE(Commit(txn).ok());
  }
  // Keys of these handles become others.
  static v1::RenameKeysRequest RequestOf(const std::vector<std::pair<char, char>>& pairs,
                                         const std::string& to = kNew, const char* from = kOld) {
    v1::RenameKeysRequest request;
    request.set_transaction(kTxn);
    request.set_principal(to);
    request.set_epoch(1);
    for (const auto& [old_handle, new_handle] : pairs) {
      v1::RenamedKey* key = request.add_keys();
      key->mutable_from()->set_handle(std::string(16, old_handle));
      key->mutable_from()->set_principal(from);
      key->set_to(std::string(16, new_handle));
      key->set_salt_type(4);
      key->set_salt("EXAMPLE.COMalice");
    }
    return request;
  }
  grpc::Status Rename(const v1::RenameKeysRequest& request) {
    reply_.Clear();
    return Call(&v1::AdminService::Stub::RenameKeys, request, &reply_);
  }
  void ExpectRefused(const v1::RenameKeysRequest& request, grpc::StatusCode code,
                     const std::string& text) {
    const grpc::Status status = Rename(request);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(text));
    EXPECT_EQ(*store_.Count(KeyState::kStaged), 0u);
  }

  v1::RenameKeysReply reply_;
};

TEST_F(RenameKeysTest, StagesTheCopyAndSaysWhoBecomesWhom) {
  Committed('o');
  ASSERT_TRUE(Rename(RequestOf({{'o', 'n'}})).ok());
  EXPECT_EQ(reply_.keys(), 1u);
  ASSERT_TRUE(Commit(kTxn).ok());
  Handle fresh;
  fresh.fill('n');
  EXPECT_EQ(store_.Get(fresh)->info.principal, kNew);
  const std::string log = ReadFileForTest(AuditFile());
  EXPECT_THAT(log, HasSubstr("\"call\":\"RenameKeys\""));
  EXPECT_THAT(log, HasSubstr(absl::StrCat("\"principal\":\"", kOld, "\"")));
  EXPECT_THAT(log, HasSubstr(absl::StrCat("\"new_principal\":\"", kNew, "\"")));
  EXPECT_THAT(log, HasSubstr(absl::StrCat("\"new_handle\":\"",
                                          absl::BytesToHexString(std::string(16, 'n')), "\"")));
}

TEST_F(RenameKeysTest, RefusalsAreAuditedToo) {
  Committed('o');
  Committed('b', "bob@EXAMPLE.COM");
  ExpectRefused(RequestOf({{'o', 'n'}}, "krbtgt/EXAMPLE.COM@EXAMPLE.COM"),
                grpc::StatusCode::PERMISSION_DENIED, "neither given to another name");
  EXPECT_THAT(ReadFileForTest(AuditFile()), HasSubstr("PERMISSION_DENIED"));
  ExpectRefused(RequestOf({{'b', 'n'}}), grpc::StatusCode::PERMISSION_DENIED,
                "is one of bob@EXAMPLE.COM, not of alice@EXAMPLE.COM");
}

TEST_F(RenameKeysTest, WhatIsMalformedIsRefused) {
  Committed('o');
  const auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  ExpectRefused(RequestOf({}), kInvalid, "1 to 1024 keys in one call");
  ExpectRefused(RequestOf({{'o', 'n'}, {'o', 'n'}}), kInvalid, "is given twice");
  v1::RenameKeysRequest request = RequestOf({{'o', 'n'}, {'o', 'm'}});
  request.mutable_keys(1)->mutable_from()->set_principal("bob@EXAMPLE.COM");
  ExpectRefused(request, kInvalid, "keys of one principal");
  request = RequestOf({{'o', 'n'}});
  request.set_transaction("short");
  ExpectRefused(request, kInvalid, "the transaction id");
  request = RequestOf({{'o', 'n'}});
  request.mutable_keys(0)->set_to("short");
  ExpectRefused(request, kInvalid, "a new key handle");
  request = RequestOf({{'o', 'n'}});
  request.set_epoch(2);
  ExpectRefused(request, grpc::StatusCode::ABORTED, "do it again");
}

// ---- How often ----

class RenameQuotaTest : public RenameKeysTest {
 protected:
  // The call as kadmind makes it; the copy is committed. A transaction for each.
  absl::Status Rename(KeyHistory& history, char old, const std::string& from, char fresh,
                      const std::string& to) {
    v1::RenameKeysRequest request = RequestOf({{old, fresh}}, to, from.c_str());
    const std::string txn = absl::StrCat("rename", std::string(9, fresh), std::string(1, old));
    request.set_transaction(txn);
    v1::RenameKeysReply reply;
    AuditLog::Fields details;
    RETURN_IF_ERROR(
        RenameKeysCall(store_, &history, absl::Now(), request, &reply, &details));
    TransactionId id;
    std::copy(txn.begin(), txn.end(), id.begin());
    return store_.Commit(id, absl::Now()).status();
  }
  // A guess at what `old` is, under the name `of`.
  absl::Status Guess(KeyHistory& history, const std::string& of, const std::string& old) {
    const std::string txn = absl::StrCat("guess", 10'000'000'000 + guesses_++);
    const std::string handle = absl::StrCat("GUESS", 10'000'000'000 + guesses_);
    v1::KeyInfo info = AliceInfo();
    info.set_handle(handle);
    info.set_principal(of);
    EXPECT_TRUE(Stage({Package({.txn = txn, .info = info})}, txn).ok());
    TransactionId id;
    std::copy(txn.begin(), txn.end(), id.begin());
    history.NoteStager(id, "me");
    v1::CompareKeysRequest request;
    request.set_request(std::string(16, 'r'));
    request.set_transaction(txn);
    request.add_staged(handle);
    for (const char o : old) request.add_old(std::string(16, o));
    AuditLog::Fields details;
    return history.Admit(request, "me", &details).status();
  }
  void ExpectUsedUp(KeyHistory& history, const std::string& of, const std::string& old) {
    const absl::Status guessed = Guess(history, of, old);
    EXPECT_TRUE(absl::IsResourceExhausted(guessed)) << of << ": " << guessed;
  }

  uint64_t guesses_ = 0;
  absl::Duration now_ = absl::Hours(1000);
};

// All names of a key count together: forth and back, and from one to the next.
TEST_F(RenameQuotaTest, AKeyGetsSoManyNamesInADay) {
  Committed('a', "a@EXAMPLE.COM");
  Committed('z', "z@EXAMPLE.COM");
  KeyHistory history(&store_, {}, [this] { return now_; });
  const auto name = [](uint32_t i) {
    return absl::StrCat("a", std::string(i, 'b'), "@EXAMPLE.COM");
  };
  const auto next = [&](uint32_t i, uint32_t to) {
    return Rename(history, static_cast<char>('a' + i), name(i), static_cast<char>('a' + to), name(to));
  };
  for (uint32_t i = 0; i < limits::kRenamedPerDay; ++i) EXPECT_TRUE(next(i, i + 1).ok());
  const absl::Status over = next(8, 9);
  EXPECT_TRUE(absl::IsResourceExhausted(over)) << over;
  EXPECT_THAT(over.message(), HasSubstr("got another name 8 times in a day; again in"));
  EXPECT_TRUE(absl::IsResourceExhausted(next(0, 10))) << "the first one's";
  EXPECT_TRUE(absl::IsResourceExhausted(next(4, 0 + 11))) << "one in between";
  EXPECT_TRUE(Rename(history, 'z', "z@EXAMPLE.COM", 'y', "y@EXAMPLE.COM").ok())
      << "others have their own";
  now_ += absl::Hours(3);
  EXPECT_TRUE(next(8, 9).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(next(9, 10)));
}

// A guesser gains nothing by giving the key another name.
TEST_F(RenameQuotaTest, TheQuotaOfComparisonsGoesAlong) {
  Committed('o');
  Committed('p', kNew);
  KeyHistory history(&store_, {2, 10}, [this] { return now_; });
  EXPECT_TRUE(Guess(history, kOld, "o").ok());
  EXPECT_TRUE(Rename(history, 'o', kOld, 'n', kNew).ok());
  EXPECT_TRUE(Rename(history, 'n', kNew, 'm', "alice.brown@EXAMPLE.COM").ok());
  EXPECT_TRUE(Guess(history, kNew, "n").ok());
  EXPECT_TRUE(Guess(history, "alice.brown@EXAMPLE.COM", "m").ok());
  ExpectUsedUp(history, kNew, "n");
  ExpectUsedUp(history, "alice.brown@EXAMPLE.COM", "m");
  EXPECT_TRUE(Guess(history, kNew, "p").ok()) << "another key, which was always that name's";
  ExpectUsedUp(history, kNew, "p");
  EXPECT_TRUE(Guess(history, kOld, "o").ok()) << "what keeps its name has its own";
  ExpectUsedUp(history, kOld, "o");
}

// ATTACK. A name that was never anybody's "becomes" alice: nothing is renamed, and her quotas were
// those of that name then, which are full. So for each name that the guesser thinks of.
TEST_F(RenameQuotaTest, ANameThatBecomesAlicesBringsHerNoFullQuota) {
  Committed('o');
  KeyHistory history(&store_, {2, 10}, [this] { return now_; });
  ASSERT_TRUE(Guess(history, kOld, "o").ok());
  ASSERT_TRUE(Guess(history, kOld, "o").ok());
  ExpectUsedUp(history, kOld, "o");
  // The call itself, of a key that nobody has, for the history: no key is needed at all.
  for (int i = 0; i < 3; ++i) {
    const std::string nobody = absl::StrCat("nobody", i, "@EXAMPLE.COM");
    v1::RenameKeysRequest request = RequestOf({{'?', '!'}}, kOld, nobody.c_str());
    request.mutable_keys(0)->mutable_from()->set_for_history(true);
    v1::RenameKeysReply reply;
    AuditLog::Fields details;
    EXPECT_TRUE(RenameKeysCall(store_, &history, absl::Now(), request, &reply, &details).ok());
    EXPECT_EQ(reply.keys(), 0u);
    ExpectUsedUp(history, kOld, "o");
  }
  // Of a real key of his own as well.
  Committed('f', "fresh@EXAMPLE.COM");
  EXPECT_TRUE(Rename(history, 'f', "fresh@EXAMPLE.COM", 'g', kOld).ok());
  ExpectUsedUp(history, kOld, "og");
}

// ATTACK. As many calls at the same time: each is admitted before any of the others is counted.
TEST_F(RenameQuotaTest, CallsAtTheSameTimeAreCountedTogether) {
  Committed('o');
  KeyHistory history(&store_, {}, [this] { return now_; });
  RenamedKey key;
  key.from.handle.fill('o');
  key.from.principal = kOld;
  absl::Mutex mutex;
  size_t inside = 0, renamed = 0;
  constexpr size_t kCalls = 2 * limits::kRenamedPerDay;
  const auto stage = [&]() -> absl::StatusOr<RenamedKeys> {
    const absl::MutexLock lock(&mutex);
    ++inside;
    const auto all = [&] { return inside == kCalls; };
    mutex.AwaitWithTimeout(absl::Condition(&all), absl::Milliseconds(20));
    RenamedKeys done;
    done.lineages.insert(store_.Get(key.from.handle)->lineage());
    return done;
  };
  std::vector<std::thread> calls;
  for (size_t i = 0; i < kCalls; ++i) {
    calls.emplace_back([&] {
      const absl::Status status = history.Rename({key}, stage).status();
      const absl::MutexLock lock(&mutex);
      renamed += status.ok();
      EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
    });
  }
  for (std::thread& call : calls) call.join();
  EXPECT_EQ(renamed, limits::kRenamedPerDay);
}

// ATTACK. The same for the eight names a day of one key: alice's becomes one of many names, before
// each of which a key of a fresh name's becomes hers.
TEST_F(RenameQuotaTest, AKeyGetsNoNamesWithoutEnd) {
  Committed('o');
  KeyHistory history(&store_, {}, [this] { return now_; });
  uint32_t names = 0;
  for (uint32_t i = 0; i < 5 * limits::kRenamedPerDay; ++i) {
    const std::string fresh = absl::StrCat("fresh", i, "@EXAMPLE.COM");
    const auto handle = static_cast<char>(0x80 + 3 * i), second = static_cast<char>(handle + 1),
               third = static_cast<char>(handle + 2);
    Committed(handle, fresh);
    EXPECT_TRUE(Rename(history, handle, fresh, second, kOld).ok());
    names += Rename(history, 'o', kOld, third, absl::StrCat("alice", i, "@EXAMPLE.COM")).ok();
  }
  EXPECT_EQ(names, limits::kRenamedPerDay);
}

// ATTACK. Cycles and chains of names, aborted stages, one machine's bookkeeping lost by a restart (or
// never had, at the other triple's): the copies know by themselves whose the first one was. So all
// names together are worth what one is, beside the key itself under the first.
TEST_F(RenameQuotaTest, NeitherCyclesNorAbortsNorRestartsGiveAFullQuota) {
  Committed('0');
  KeyHistory history(&store_, {2, 10}, [this] { return now_; });
  const auto forth_and_back = [&](char from, char over, char to) {
    EXPECT_TRUE(Rename(history, from, kOld, over, kNew).ok());
    EXPECT_TRUE(Rename(history, over, kNew, to, kOld).ok());
  };
  EXPECT_TRUE(Guess(history, kOld, "0").ok());
  forth_and_back('0', '1', '2');
  EXPECT_TRUE(Guess(history, kOld, "2").ok());
  EXPECT_TRUE(Guess(history, kNew, "1").ok());
  ExpectUsedUp(history, kNew, "1");
  for (const char* old : {"0", "2", "02"}) ExpectUsedUp(history, kOld, old);
  // Staged, and taken back.
  ASSERT_TRUE(RenameKeysTest::Rename(RequestOf({{'2', '9'}})).ok());
  v1::AbortKeysRequest abort;
  abort.set_transaction(kTxn);
  v1::AbortKeysReply aborted;
  ASSERT_TRUE(Call(&v1::AdminService::Stub::AbortKeys, abort, &aborted).ok());
  ExpectUsedUp(history, kOld, "2");
  // At a machine that has seen nothing of it all names are one again from the first guess on.
  KeyHistory other(&store_, {2, 10}, [this] { return now_; });
  EXPECT_TRUE(Guess(other, kNew, "1").ok());
  EXPECT_TRUE(Guess(other, kOld, "2").ok());
  ExpectUsedUp(other, kOld, "2");
  ExpectUsedUp(other, kNew, "1");
  EXPECT_TRUE(Guess(other, kOld, "0").ok());
  ExpectUsedUp(other, kOld, "0");
}

// ATTACK. If the tokens of alice's copies were those of the name that she had, who gets it next would
// take them by changing his password, and she could not change hers.
TEST_F(RenameQuotaTest, WhoGetsTheOldNameDoesNotKeepHerFromChangingHerPassword) {
  Committed('o');
  KeyHistory history(&store_, {2, 10}, [this] { return now_; });
  ASSERT_TRUE(Rename(history, 'o', kOld, 'n', kNew).ok());
  Committed('p', kOld);
  EXPECT_TRUE(Guess(history, kOld, "p").ok());
  EXPECT_TRUE(Guess(history, kOld, "p").ok());
  const absl::Status hers = Guess(history, kNew, "n");
  EXPECT_TRUE(hers.ok()) << hers;
}

// ATTACK. A token is paid for each staged key, for that was a guess. Here it is alice's key that is
// staged, under the guesser's name, and the guesses are his "old" keys: 64 of them for one token.
TEST_F(RenameQuotaTest, AStagedCopyIsNotCompared) {
  constexpr char kHis[] = "mallory@EXAMPLE.COM";
  Committed('o');  // alice's
  for (size_t i = 0; i < limits::kMaxComparedKeys; ++i) Committed(static_cast<char>(0x80 + i), kHis);
  KeyHistory history(&store_, {2, 10}, [this] { return now_; });
  const std::string txn(16, 't');
  v1::KeyInfo info = AliceInfo();
  info.set_handle(std::string(16, 's'));
  info.set_principal(kHis);
  ASSERT_TRUE(Stage({Package({.txn = txn, .info = info})}, txn).ok());  // so it is his transaction
  TransactionId id;
  id.fill('t');
  history.NoteStager(id, "me");
  v1::RenameKeysRequest rename = RequestOf({{'o', 'n'}}, kHis);
  rename.set_transaction(txn);
  v1::RenameKeysReply reply;
  AuditLog::Fields details;
  ASSERT_TRUE(RenameKeysCall(store_, &history, absl::Now(), rename, &reply, &details).ok());
  for (const char* staged : {"n", "sn"}) {
    v1::CompareKeysRequest request;
    request.set_request(std::string(16, 'r'));
    request.set_transaction(txn);
    for (const char handle : std::string(staged)) request.add_staged(std::string(16, handle));
    for (size_t k = 0; k < limits::kMaxComparedKeys; ++k) {
      request.add_old(std::string(16, static_cast<char>(0x80 + k)));
    }
    AuditLog::Fields more;
    const absl::Status refused = history.Admit(request, "me", &more).status();
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
    EXPECT_THAT(refused.message(), HasSubstr("is an old key under a new name"));
  }
}

// ATTACK. Whose an old key is the quotas look at, and the engine reads it again: what was exchanged
// in between has another first owner (agree/compare_test.cc says what becomes of it).
TEST_F(RenameQuotaTest, TheEngineIsToldWhoseTheOldKeysWere) {
  Committed('o');
  KeyHistory history(&store_, {}, [this] { return now_; });
  ASSERT_TRUE(Rename(history, 'o', kOld, 'n', kNew).ok());
  Committed('p', kNew);
  v1::KeyInfo info = AliceInfo();
  info.set_handle(std::string(16, 's'));
  info.set_principal(kNew);
  ASSERT_TRUE(Stage({Package({.txn = kTxn, .info = info})}, kTxn).ok());
  TransactionId id;
  std::copy_n(kTxn.begin(), id.size(), id.begin());
  history.NoteStager(id, "me");
  v1::CompareKeysRequest request;
  request.set_request(std::string(16, 'r'));
  request.set_transaction(kTxn);
  request.add_staged(std::string(16, 's'));
  for (const char old : {'n', 'p', '?'}) request.add_old(std::string(16, old));
  AuditLog::Fields details;
  const auto admitted = history.Admit(request, "me", &details);
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_EQ(admitted->guessed, (std::vector<PrincipalId>{
                                   LineageOf(PrincipalIdOf(kOld)), PrincipalIdOf(kNew),
                                   PrincipalId{}}));
}

}  // namespace
}  // namespace mpckdc
