// SPDX-License-Identifier: Apache-2.0
// The call RenameKeys: what it says in the audit log, what it refuses, and how often it may be said.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/service/key_history.h"
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

}  // namespace
}  // namespace mpckdc
