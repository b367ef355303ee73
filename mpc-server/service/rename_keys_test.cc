// SPDX-License-Identifier: Apache-2.0
// The call RenameKeys: what it says in the audit log, what it refuses, and how often it may be said.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
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
  absl::Status Rename(KeyHistory& history, const std::string& from, const std::string& to) {
    RETURN_IF_ERROR(history.AdmitRename(from));
    history.NoteRename(from, to);
    return absl::OkStatus();
  }

  absl::Duration now_ = absl::Hours(1000);
};

// All names of a key count together: forth and back, and from one to the next.
TEST_F(RenameQuotaTest, AKeyGetsSoManyNamesInADay) {
  KeyHistory history(&store_, {}, [this] { return now_; });
  std::string name = "a";
  for (uint32_t i = 0; i < limits::kRenamedPerDay; ++i) {
    EXPECT_TRUE(Rename(history, name, name + "b").ok());
    name += "b";
  }
  const absl::Status over = Rename(history, name, "c");
  EXPECT_TRUE(absl::IsResourceExhausted(over)) << over;
  EXPECT_THAT(over.message(), HasSubstr("got another name 8 times in a day; again in"));
  EXPECT_TRUE(absl::IsResourceExhausted(Rename(history, "a", "c")));
  EXPECT_TRUE(Rename(history, "z", "y").ok()) << "others have their own";
  now_ += absl::Hours(3);
  EXPECT_TRUE(Rename(history, name, "c").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Rename(history, "c", "d")));
}

// A guesser gains nothing by giving the key another name.
TEST_F(RenameQuotaTest, TheQuotaOfComparisonsGoesAlong) {
  Committed('o');
  Committed('p', kNew);
  KeyHistory history(&store_, {2, 10}, [this] { return now_; });
  const auto compare = [&](char staged, const std::string& of, char old) {
    const std::string txn(16, staged);
    v1::KeyInfo info = AliceInfo();
    info.set_handle(std::string(16, staged));
    info.set_principal(of);
    EXPECT_TRUE(Stage({Package({.txn = txn, .info = info})}, txn).ok());
    TransactionId id;
    id.fill(static_cast<uint8_t>(staged));
    history.NoteStager(id, "me");
    v1::CompareKeysRequest request;
    request.set_request(std::string(16, 'r'));
    request.set_transaction(txn);
    request.add_staged(std::string(16, staged));
    request.add_old(std::string(16, old));
    AuditLog::Fields details;
    return history.Admit(request, "me", &details).status();
  };
  EXPECT_TRUE(compare('1', kOld, 'o').ok());
  EXPECT_TRUE(Rename(history, kOld, kNew).ok());
  EXPECT_TRUE(compare('2', kNew, 'p').ok());
  EXPECT_TRUE(absl::IsResourceExhausted(compare('3', kNew, 'p')));
  EXPECT_TRUE(absl::IsResourceExhausted(compare('4', kOld, 'o')));
}

// ATTACK. A name that was never anybody's "becomes" alice: nothing is renamed, and her quotas are now
// those of that name, which are full. So for each name that the guesser thinks of.
// Known, and not mended yet (deploy/THREAT-MODEL.md): run it with --gtest_also_run_disabled_tests.
TEST_F(RenameQuotaTest, DISABLED_ANameThatBecomesAlicesBringsHerItsFullQuota) {
  Committed('o');
  KeyHistory history(&store_, {2, 10}, [this] { return now_; });
  int guesses = 0;
  const auto compare = [&] {
    const std::string txn = absl::StrCat("guess", std::string(11, static_cast<char>('A' + guesses)));
    const std::string handle(16, static_cast<char>('A' + guesses++));
    v1::KeyInfo info = AliceInfo();
    info.set_handle(handle);
    EXPECT_TRUE(Stage({Package({.txn = txn, .info = info})}, txn).ok());
    TransactionId id;
    std::copy(txn.begin(), txn.end(), id.begin());
    history.NoteStager(id, "me");
    v1::CompareKeysRequest request;
    request.set_request(std::string(16, 'r'));
    request.set_transaction(txn);
    request.add_staged(handle);
    request.add_old(std::string(16, 'o'));
    AuditLog::Fields details;
    return history.Admit(request, "me", &details).status();
  };
  ASSERT_TRUE(compare().ok());
  ASSERT_TRUE(compare().ok());
  ASSERT_TRUE(absl::IsResourceExhausted(compare())) << "the quota is two an hour";
  // The call itself, of a key that nobody has, for the history: no key is needed at all.
  for (int i = 0; i < 3; ++i) {
    const std::string nobody = absl::StrCat("nobody", i, "@EXAMPLE.COM");
    v1::RenameKeysRequest request = RequestOf({{'?', '!'}}, kOld, nobody.c_str());
    request.mutable_keys(0)->mutable_from()->set_for_history(true);
    v1::RenameKeysReply reply;
    AuditLog::Fields details;
    const absl::Status done = RenameKeysCall(store_, &history, absl::Now(), request, &reply, &details);
    EXPECT_TRUE(absl::IsResourceExhausted(compare()))
        << "guess " << guesses << " in the same minute, after " << nobody << " became alice: "
        << done;
  }
}

// ATTACK. The same for the eight names a day of one key, and with them as many quotas of guesses
// through a KDC: the key's name is first made one of a fresh name's.
// Known, and not mended yet (deploy/THREAT-MODEL.md): run it with --gtest_also_run_disabled_tests.
TEST_F(RenameQuotaTest, DISABLED_AKeyGetsNamesWithoutEnd) {
  KeyHistory history(&store_, {}, [this] { return now_; });
  uint32_t names = 0;
  for (uint32_t i = 0; i < 5 * limits::kRenamedPerDay; ++i) {
    (void)Rename(history, absl::StrCat("fresh", i), "alice");  // of a key of his own
    names += Rename(history, "alice", absl::StrCat("alice", i)).ok() ? 1 : 0;
  }
  EXPECT_LE(names, limits::kRenamedPerDay);
}

// ATTACK. A token is paid for each staged key, for that was a guess. Here it is alice's key that is
// staged, under the guesser's name, and the guesses are his "old" keys: 64 of them for one token.
// Known, and not mended yet (deploy/THREAT-MODEL.md): run it with --gtest_also_run_disabled_tests.
TEST_F(RenameQuotaTest, DISABLED_ATokenBuysAsManyGuessesAsThereAreOldKeys) {
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
  size_t guesses = 0;
  for (int i = 0; i < 4; ++i) {
    v1::CompareKeysRequest request;
    request.set_request(std::string(16, static_cast<char>('1' + i)));
    request.set_transaction(txn);
    request.add_staged(std::string(16, 'n'));
    for (size_t k = 0; k < limits::kMaxComparedKeys; ++k) {
      request.add_old(std::string(16, static_cast<char>(0x80 + k)));
    }
    AuditLog::Fields more;
    const auto admitted = history.Admit(request, "me", &more);
    if (admitted.ok()) guesses += admitted->old.size();
  }
  EXPECT_LE(guesses, 2u) << "guesses at alice's key in the same minute, of two an hour";
}

}  // namespace
}  // namespace mpckdc
