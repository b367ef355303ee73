// SPDX-License-Identifier: Apache-2.0
// Who may have keys compared, and how often; what the audit log says of it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/service/key_history.h"
#include "mpc-server/testing/admin_service_fixture.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

class CompareKeysTest : public AdminServiceTest {
 protected:
  static v1::KeyInfo InfoOf(char handle, const std::string& principal) {
    v1::KeyInfo info = AliceInfo();
    info.set_handle(std::string(16, handle));
    info.set_principal(principal);
    return info;
  }
  void Staged(char handle, const std::string& txn, const std::string& of = "alice@EXAMPLE.COM") {
    ASSERT_TRUE(Stage({Package({.txn = txn, .info = InfoOf(handle, of)})}, txn).ok());
  }
  void Committed(char handle, const std::string& of = "alice@EXAMPLE.COM") {
    const std::string txn(16, static_cast<char>(handle ^ 1));
    Staged(handle, txn, of);
    ASSERT_TRUE(Commit(txn).ok());
  }
  static v1::CompareKeysRequest RequestOf(const std::string& staged, const std::string& old,
                                          const std::string& txn = kTxn) {
    v1::CompareKeysRequest request;
    request.set_request(std::string(16, 'r'));
    request.set_transaction(txn);
    for (const char handle : staged) request.add_staged(std::string(16, handle));
    for (const char handle : old) request.add_old(std::string(16, handle));
    return request;
  }
  grpc::Status Compare(const v1::CompareKeysRequest& request) {
    return Call(&v1::AdminService::Stub::CompareKeys, request, &reply_);
  }
  void ExpectRefused(const v1::CompareKeysRequest& request, grpc::StatusCode code,
                     const std::string& text) {
    const grpc::Status status = Compare(request);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(text));
    EXPECT_EQ(reply_.results_size(), 0);
  }

  v1::CompareKeysReply reply_;
};

TEST_F(CompareKeysTest, AnswersOfTheCallersOwnStagedKeys) {
  Committed('o');
  Staged('n', kTxn);
  ASSERT_TRUE(Compare(RequestOf("n", "o")).ok());
  ASSERT_EQ(reply_.results_size(), 1);
  EXPECT_EQ(reply_.results(0).handle(), std::string(16, 'o'));
  EXPECT_EQ(reply_.results(0).answer(), v1::CompareKeysReply::ANSWER_DIFFERENT);
  const std::string log = ReadFileForTest(AuditFile());
  EXPECT_THAT(log, HasSubstr("\"call\":\"CompareKeys\""));
  EXPECT_THAT(log, HasSubstr("\"principal\":\"alice@EXAMPLE.COM\""));
  EXPECT_THAT(log, HasSubstr("\"equal\":0"));
}

TEST_F(CompareKeysTest, KeysOfAnotherPrincipalAreRefused) {
  Committed('o', "bob@EXAMPLE.COM");
  Staged('n', kTxn);
  ExpectRefused(RequestOf("n", "o"), grpc::StatusCode::PERMISSION_DENIED,
                "is not one of alice@EXAMPLE.COM");
  Staged('m', kTxn, "bob@EXAMPLE.COM");
  ExpectRefused(RequestOf("nm", "o"), grpc::StatusCode::PERMISSION_DENIED, "of one principal");
}

TEST_F(CompareKeysTest, ATransactionMustBeTheCallersAndOpen) {
  Committed('o');
  Staged('n', kTxn);
  const TestCert other = port_.authority().IssueRole("admin", "other");
  const auto mine = std::move(stub_);
  stub_ = v1::AdminService::NewStub(port_.Connect(&other));
  ExpectRefused(RequestOf("n", "o"), grpc::StatusCode::PERMISSION_DENIED, "only who has staged");
  stub_ = v1::AdminService::NewStub(port_.Connect(&cert_));
  ExpectRefused(RequestOf("n", "o", std::string(16, 'x')), grpc::StatusCode::PERMISSION_DENIED,
                "only who has staged");
  ExpectRefused(RequestOf("m", "o"), grpc::StatusCode::FAILED_PRECONDITION, "is not staged");
  ASSERT_TRUE(Commit(kTxn).ok());
  ExpectRefused(RequestOf("n", "o"), grpc::StatusCode::FAILED_PRECONDITION, "is not staged");
}

TEST_F(CompareKeysTest, WhatIsMalformedIsRefused) {
  Staged('n', kTxn);
  ExpectRefused(RequestOf("", "o"), grpc::StatusCode::INVALID_ARGUMENT, "staged keys");
  ExpectRefused(RequestOf("n", ""), grpc::StatusCode::INVALID_ARGUMENT, "old keys");
  ExpectRefused(RequestOf("nn", "o"), grpc::StatusCode::INVALID_ARGUMENT, "twice");
  ExpectRefused(RequestOf("n", "o", "short"), grpc::StatusCode::INVALID_ARGUMENT, "transaction");
}

// ---- The quota, by itself ----

class KeyHistoryTest : public CompareKeysTest {
 protected:
  absl::Status Admit(KeyHistory& history, const std::string& staged) {
    AuditLog::Fields details;
    TransactionId txn;
    txn.fill('t');
    history.NoteStager(txn, "me");
    return history.Admit(RequestOf(staged, "o"), "me", &details).status();
  }
  std::function<absl::Duration()> Time() {
    return [this] { return now_; };
  }

  absl::Duration now_ = absl::Hours(1000);
};

// Each staged key may be a guess, so each counts.
TEST_F(KeyHistoryTest, CountsKeysInTheHourAndTheDay) {
  Committed('o');
  for (const char handle : {'a', 'b', 'c'}) Staged(handle, kTxn);
  KeyHistory history(&store_, {6, 10}, Time());
  EXPECT_TRUE(Admit(history, "abc").ok());
  EXPECT_TRUE(Admit(history, "ab").ok());
  const absl::Status over = Admit(history, "ab");
  EXPECT_TRUE(absl::IsResourceExhausted(over)) << over;
  EXPECT_THAT(over.message(), HasSubstr("6 an hour, 10 a day); again in"));
  EXPECT_TRUE(Admit(history, "a").ok()) << "what was refused took nothing";
  EXPECT_TRUE(absl::IsResourceExhausted(Admit(history, "a")));
  now_ += absl::Minutes(31);  // three of six flow back
  EXPECT_TRUE(Admit(history, "abc").ok());
  now_ += absl::Minutes(60);  // and the day's ten have been nine, less what flowed back
  EXPECT_TRUE(Admit(history, "a").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Admit(history, "ab")));
  now_ += absl::Hours(24);
  EXPECT_TRUE(Admit(history, "abc").ok());
}

TEST_F(KeyHistoryTest, EachPrincipalHasItsOwn) {
  Committed('o');
  Committed('p', "bob@EXAMPLE.COM");
  Staged('a', kTxn);
  Staged('b', kTxn, "bob@EXAMPLE.COM");
  KeyHistory history(&store_, {1, 1}, Time());
  EXPECT_TRUE(Admit(history, "a").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Admit(history, "a")));
  AuditLog::Fields details;
  EXPECT_TRUE(history.Admit(RequestOf("b", "p"), "me", &details).ok());
}

TEST_F(KeyHistoryTest, NoneAreAllowedWhereTheRateIsZero) {
  Committed('o');
  Staged('a', kTxn);
  KeyHistory history(&store_, {0, 10}, Time());
  EXPECT_TRUE(absl::IsResourceExhausted(Admit(history, "a")));
  history.SetRates({});
  EXPECT_TRUE(Admit(history, "a").ok());
}

}  // namespace
}  // namespace mpckdc
