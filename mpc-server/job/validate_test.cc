// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/validate.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/job/ticket_header.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc {
namespace {

// Components of a text of so many bytes, as party 0 gets them.
TextShares Text(size_t bytes) {
  SeededRandomForTest random(bytes);
  return SplitText(std::vector<uint8_t>(bytes), random)[0];
}

using ::testing::HasSubstr;

Handle H(uint8_t i) {
  Handle handle{};
  handle[0] = i;
  return handle;
}
constexpr uint8_t kAlice = 1, kAlice2 = 2, kBob = 3, kTgt = 4, kKadmin = 5, kOpenUser = 6,
                  kCarol = 7, kWww = 8, kChangepw = 9, kFromOther = 10, kToOther = 11,
                  kFromStock = 12, kToStock = 13, kOldTgt = 14;

class Keys {
 public:
  Keys() {
    Add(kAlice, "alice@R", KeyClass::kUser, Gate::kTimestamp);
    Add(kAlice2, "alice@R", KeyClass::kUser, Gate::kTimestamp);
    Add(kBob, "bob@R", KeyClass::kUser, Gate::kTimestamp);
    Add(kTgt, "krbtgt/R@R", KeyClass::kTgs, Gate::kNone);
    Add(kKadmin, "kadmin/admin@R", KeyClass::kService, Gate::kNone);
    Add(kOpenUser, "guest@R", KeyClass::kUser, Gate::kNone);
    Add(kWww, "HTTP/www@R", KeyClass::kService, Gate::kNone, kEnctypeAes256Sha1);
    Add(kCarol, "carol@R", KeyClass::kUser, Gate::kTimestamp, kEnctypeAes256Sha1);
    Add(kChangepw, "kadmin/changepw@R", KeyClass::kService, Gate::kNone, kEnctypeAes256Sha1);
    Add(kFromOther, "krbtgt/R@OTHER", KeyClass::kTgs, Gate::kNone);
    Add(kToOther, "krbtgt/OTHER@R", KeyClass::kTgs, Gate::kNone);
    Add(kFromStock, "krbtgt/R@STOCK", KeyClass::kTgs, Gate::kNone, kEnctypeAes256Sha1);
    Add(kToStock, "krbtgt/STOCK@R", KeyClass::kTgs, Gate::kNone, kEnctypeAes256Sha1);
    Add(kOldTgt, "krbtgt/R@R", KeyClass::kTgsOld, Gate::kNone, kEnctypeAes256Sha1);
  }
  Judgement Check(const Job& job) const {
    Judgement shape = CheckShape(job);
    if (!shape.ok()) return shape;
    return CheckKeys(job, "R", [this](const Handle& handle) -> const KeyInfo* {
      const auto it = keys_.find(handle);
      return it == keys_.end() ? nullptr : &it->second;
    });
  }

 private:
  void Add(uint8_t i, const char* principal, KeyClass key_class, Gate gate,
           int32_t enctype = kEnctypeAes256Gcm) {
    KeyInfo info;
    info.handle = H(i);
    info.principal = principal;
    info.principal_id = PrincipalIdOf(principal);
    info.enctype = enctype;
    info.key_class = key_class;
    info.gate = gate;
    keys_[H(i)] = info;
  }
  std::map<Handle, KeyInfo> keys_;
};

std::string Message(const std::string& header, size_t plaintext) {
  return std::string(12, 'n') + static_cast<char>(header.size()) + header +
         std::string(16 + plaintext, 'c') + std::string(16, 't');
}
std::string Ticket() { return Message(EncodeTicketHeader({}), 150); }

Job Make(Operation operation, std::optional<uint8_t> client = std::nullopt) {
  Job job;
  job.id = 1;
  job.operation = operation;
  if (client) job.client = H(*client);
  return job;
}
Job Login() {
  Job job = Make(Operation::kLogin, kAlice);
  job.opens = {{H(kAlice), 1, Message("", 28)}};
  job.seals = {{H(kTgt), 2, 160}, {H(kAlice2), 3, 280}};
  job.make_macs = {{H(kAlice2), 56, "as-req"}};
  return job;
}
Job Reissue() {
  Job job = Make(Operation::kReissueTicket);
  job.opens = {{H(kTgt), 2, Ticket()}};
  job.seals = {{H(kTgt), 2, 160}};
  return job;
}

void ExpectVerdict(const Job& job, Verdict verdict, const char* text = "") {
  const Judgement j = Keys().Check(job);
  EXPECT_EQ(VerdictName(j.verdict), VerdictName(verdict)) << j.detail;
  EXPECT_THAT(j.detail, HasSubstr(text));
  EXPECT_EQ(j.detail.empty(), j.ok());
}

TEST(Validate, WhatTheTableAllows) {
  ExpectVerdict(Login(), Verdict::kOk);
  ExpectVerdict(Reissue(), Verdict::kOk);
  Job job = Reissue();
  job.seals[0].handle = H(kKadmin);
  ExpectVerdict(job, Verdict::kOk);
  job = Make(Operation::kOpenTicket);
  job.opens = {{H(kKadmin), 2, Ticket()}};
  ExpectVerdict(job, Verdict::kOk);
  job = Make(Operation::kMakeChecksum);
  job.make_macs = {{H(kTgt), 17, "pac"}, {H(kKadmin), 17, "pac"}};
  ExpectVerdict(job, Verdict::kOk);
  job.make_macs = {{H(kTgt), 64, "ticket"}, {H(kKadmin), 64, "authdata"}, {H(kTgt), 17, "pac"}};
  ExpectVerdict(job, Verdict::kOk);
  job = Make(Operation::kSealGranted, kAlice);
  job.grant = 7;
  job.seals = {{H(kTgt), 2, 100}};
  ExpectVerdict(job, Verdict::kOk);
}

// What another realm seals for ours is opened and verified, and never made here: not in a login,
// from a ticket or under a grant. What ours seals for another is an ordinary ticket.
TEST(Validate, NothingIsMadeInTheNameOfAnotherRealm) {
  Job job = Reissue();
  job.opens[0].handle = H(kFromOther);
  ExpectVerdict(job, Verdict::kOk);
  job.seals[0].handle = H(kToOther);
  ExpectVerdict(job, Verdict::kOk);
  job.opens[0].handle = H(kToOther);
  ExpectVerdict(job, Verdict::kRefused, "krbtgt/OTHER@R: another realm opens it");
  job.opens[0].handle = H(kFromOther);
  constexpr char kWhy[] = "is krbtgt/R@OTHER: only that realm makes tickets and checksums under it";
  job.seals[0].handle = H(kFromOther);
  ExpectVerdict(job, Verdict::kRefused, kWhy);
  job = Login();
  job.seals[0].handle = H(kFromOther);
  ExpectVerdict(job, Verdict::kRefused, kWhy);
  job = Make(Operation::kSealGranted, kAlice);
  job.grant = 7;
  job.seals = {{H(kFromOther), 2, 100}};
  ExpectVerdict(job, Verdict::kRefused, kWhy);
  job = Make(Operation::kMakeChecksum);
  job.make_macs = {{H(kToOther), 17, "pac"}};
  ExpectVerdict(job, Verdict::kOk);
  job.make_macs.push_back({H(kFromOther), 17, "pac"});
  ExpectVerdict(job, Verdict::kRefused, kWhy);
  job.make_macs = {{H(kFromOther), 64, "ticket"}};
  ExpectVerdict(job, Verdict::kRefused, kWhy);
  job = Make(Operation::kVerifyChecksum);
  job.verify_macs = {{H(kFromOther), 17, "pac", std::string(kChecksumBytes, 'c')}};
  ExpectVerdict(job, Verdict::kOk);
}

// An ordinary realm shares keys of 17 to 20 with ours. Its tickets have no headers, and ours are made
// of them all the same; never of one that such a key of ours has sealed, which has no header either.
TEST(Validate, TicketsOfAnOrdinaryRealmHaveNoHeaderAndArePassedOn) {
  const std::string ticket(200, 'c');
  Job job = Make(Operation::kOpenTicket);
  job.opens = {{H(kFromStock), 2, ticket}};
  ExpectVerdict(job, Verdict::kOk);
  for (const uint8_t key : {kTgt, kKadmin, kToOther}) {
    job = Reissue();
    job.opens[0] = {H(kFromStock), 2, ticket};
    job.seals[0].handle = H(key);
    ExpectVerdict(job, Verdict::kOk);
  }
  // From one ordinary realm to the next.
  job.seals = {{H(kToStock), 2, 160}};
  job.seals[0].text = Text(160);
  ExpectVerdict(job, Verdict::kOk);
  job.opens[0].handle = H(kToStock);
  ExpectVerdict(job, Verdict::kRefused, "its origin is unknown");
  job.opens[0] = {H(kTgt), 2, Ticket()};
  ExpectVerdict(job, Verdict::kOk);
  job.seals[0].handle = H(kFromStock);
  ExpectVerdict(job, Verdict::kRefused, "only that realm makes tickets");
  job = Make(Operation::kMakeChecksum);
  job.make_macs = {{H(kFromStock), 17, "pac"}};
  ExpectVerdict(job, Verdict::kRefused, "only that realm makes tickets");
}

TEST(KeyInfo, WhoseAPrincipalIs) {
  EXPECT_TRUE(IsOfRealm("alice@R", "R"));
  EXPECT_FALSE(IsOfRealm("alice@AR", "R"));
  EXPECT_FALSE(IsOfRealm("alice\\@R", "R")) << "an '@' of the name";
  EXPECT_TRUE(IsOfRealm("alice\\\\@R", "R"));
  EXPECT_FALSE(IsOfRealm("R", "R"));
  // Of two realms krb5 reads none, and each question would find another one.
  for (const char* two :
       {"krbtgt/R@X@R", "krbtgt/R@R@R", "alice@R@R", "alice@R@", "krbtgt/R@X\\\\@R"}) {
    EXPECT_FALSE(IsOfRealm(two, "R")) << two;
    EXPECT_FALSE(IsTgtFromOtherRealm(two, "R")) << two;
  }
  EXPECT_TRUE(IsTgtFromOtherRealm("krbtgt/R@X\\@R", "R")) << "a realm with an '@' in its name";
  EXPECT_TRUE(IsTgtFromOtherRealm("krbtgt/R@OTHER", "R"));
  for (const char* name : {"krbtgt/R@R", "krbtgt/OTHER@R", "krbtgt/RR@OTHER", "krbtgt/R@",
                           "R@OTHER", "krbtgt/OTHER@OTHER", "alice@OTHER"}) {
    EXPECT_FALSE(IsTgtFromOtherRealm(name, "R")) << name;
  }
}

// Every combination of operation, part, usage and class that has no row is refused.
TEST(Validate, EverythingElseIsRefused) {
  const uint8_t handles[] = {kAlice, kTgt, kKadmin};
  const KeyClass classes[] = {KeyClass::kUser, KeyClass::kTgs, KeyClass::kService};
  int allowed = 0, refused = 0;
  for (int op = 0; op < 12; ++op) {
    for (const PartKind kind :
         {PartKind::kOpen, PartKind::kSeal, PartKind::kMakeMac, PartKind::kVerifyMac}) {
      for (uint32_t usage = 0; usage < 70; ++usage) {
        for (int k = 0; k < 3; ++k) {
          const auto operation = static_cast<Operation>(op);
          const OperationRule* rule = FindOperation(operation);
          Job job = Make(operation, rule != nullptr && rule->needs_client
                                        ? std::optional<uint8_t>(kAlice)
                                        : std::nullopt);
          if (rule != nullptr && rule->needs_grant) job.grant = 1;
          const Handle handle = H(handles[k]);
          const std::string message = usage == kUsageTicket ? Ticket() : Message("", 9);
          if (kind == PartKind::kOpen) job.opens = {{handle, usage, message}};
          if (kind == PartKind::kSeal) job.seals = {{handle, usage, 16}};
          if (kind == PartKind::kMakeMac) job.make_macs = {{handle, usage, "d"}};
          if (kind == PartKind::kVerifyMac) {
            job.verify_macs = {{handle, usage, "d", std::string(28, 's')}};
          }
          const PartRule* part = FindPart(operation, kind, usage);
          const bool in_table = part != nullptr && Allows(part->classes, classes[k]);
          const bool ok = Keys().Check(job).ok();
          EXPECT_TRUE(in_table || !ok);
          (ok ? allowed : refused)++;
        }
      }
    }
  }
  // OPEN_PREAUTH 1; SEAL_GRANTED 2 (two classes), 3, 56; OPEN_TICKET 2 (two); checksums two each,
  // of two usages.
  EXPECT_EQ(allowed, 1 + 4 + 2 + 8);
  EXPECT_GT(refused, 9000);
}

TEST(Validate, OtherPrincipalsKeysAreRefused) {
  Job job = Login();
  job.opens[0].handle = H(kBob);
  ExpectVerdict(job, Verdict::kRefused, "not one of the client's");
  job = Login();
  job.seals[1].handle = H(kBob);
  ExpectVerdict(job, Verdict::kRefused, "not one of the client's");
  job = Login();
  job.make_macs[0].handle = H(kBob);
  ExpectVerdict(job, Verdict::kRefused, "not one of the client's");
}

TEST(Validate, GateNeedsAPreauth) {
  Job job = Login();
  job.opens.clear();
  ExpectVerdict(job, Verdict::kRefused, "gate of alice@R is timestamp");
  job = Make(Operation::kLogin, kOpenUser);
  job.seals = {{H(kTgt), 2, 160}};
  ExpectVerdict(job, Verdict::kOk);
}

TEST(Validate, TicketsNeedTheirHeader) {
  Job job = Reissue();
  job.opens[0].message = Message("", 150);
  ExpectVerdict(job, Verdict::kBadTag, "header");
  job = Make(Operation::kOpenTicket);
  job.opens = {{H(kKadmin), 2, Message("", 150)}};
  ExpectVerdict(job, Verdict::kBadTag, "header");
}

// A realm may have them from before. Whatever is done with them, their tickets have no age.
TEST(Validate, KeysOfKadminOfStandardEnctypesAreNotUsed) {
  constexpr char kWhy[] =
      "kadmin/changepw@R must have keys of aes256-gcm or aes128-gcm, not of "
      "aes256-cts-hmac-sha1-96";
  Job job = Make(Operation::kOpenTicket);
  job.opens = {{H(kChangepw), 2, std::string(200, 'c')}};
  ExpectVerdict(job, Verdict::kRefused, kWhy);
  job = Login();
  job.seals = {{H(kChangepw), 2, 160}};
  job.seals[0].text = Text(160);
  ExpectVerdict(job, Verdict::kRefused, kWhy);
  job = Reissue();
  job.seals = {{H(kChangepw), 2, 160}};
  job.seals[0].text = Text(160);
  ExpectVerdict(job, Verdict::kRefused, "mpc-admin doctor");
  job = Make(Operation::kMakeChecksum);
  job.make_macs = {{H(kChangepw), 17, "pac"}};
  ExpectVerdict(job, Verdict::kRefused, kWhy);
  job = Make(Operation::kVerifyChecksum);
  job.verify_macs = {{H(kChangepw), 17, "pac", std::string(12, 's')}};
  ExpectVerdict(job, Verdict::kRefused, kWhy);
}

// The realm's krbtgt as another KDC had it: somebody has seen that key.
TEST(Validate, AnImportedKrbtgtOpensAndMakesNothing) {
  constexpr char kWhy[] = "is of class tgs-old";
  Job job = Make(Operation::kOpenTicket);
  job.opens = {{H(kOldTgt), 2, std::string(200, 'c')}};
  ExpectVerdict(job, Verdict::kOk);
  job = Make(Operation::kVerifyChecksum);
  job.verify_macs = {{H(kOldTgt), 17, "pac", std::string(12, 's')}};
  ExpectVerdict(job, Verdict::kOk);
  job = Make(Operation::kMakeChecksum);
  job.make_macs = {{H(kOldTgt), 17, "pac"}};
  ExpectVerdict(job, Verdict::kRefused, kWhy);
  job = Login();
  job.seals[0] = {H(kOldTgt), 2, 160, Text(160)};
  ExpectVerdict(job, Verdict::kRefused, kWhy);
  job = Make(Operation::kSealGranted, kAlice);
  job.grant = 1;
  job.seals = {{H(kOldTgt), 2, 160, Text(160)}};
  ExpectVerdict(job, Verdict::kRefused, kWhy);
  job = Reissue();
  job.seals[0] = {H(kOldTgt), 2, 160, Text(160)};
  ExpectVerdict(job, Verdict::kRefused, kWhy);
  job = Reissue();
  job.opens[0] = {H(kOldTgt), 2, std::string(200, 'c')};
  ExpectVerdict(job, Verdict::kRefused, kWhy);
}

TEST(KeyInfo, AnImportedKrbtgtIsTheRealmsOwnOfAStandardEnctype) {
  KeyInfo info;
  info.principal = "krbtgt/R@R";
  info.key_class = KeyClass::kTgsOld;
  info.enctype = kEnctypeAes256Sha1;
  const auto check = [&info] {
    info.principal_id = PrincipalIdOf(info.principal);
    return CheckNewKeyInfo(info);
  };
  EXPECT_TRUE(check().ok());
  info.enctype = kEnctypeAes256Gcm;
  EXPECT_THAT(check().message(), HasSubstr("of enctype 17 to 20"));
  info.enctype = kEnctypeAes256Sha1;
  for (const char* other : {"krbtgt/R@OTHER", "krbtgt/OTHER@R", "alice@R", "kadmin/admin@R"}) {
    info.principal = other;
    EXPECT_FALSE(check().ok()) << other;
  }
  info.principal = "krbtgt/R@R";
  info.key_class = KeyClass::kTgs;
  EXPECT_FALSE(check().ok()) << "a key that seals is drawn, and of a gcm type";
  info.key_class = static_cast<KeyClass>(5);
  EXPECT_THAT(check().message(), HasSubstr("unknown key class"));
}

TEST(Validate, UnknownHandleIsNamed) {
  Job job = Login();
  job.seals[0].handle = H(99);
  ExpectVerdict(job, Verdict::kUnknownHandle, "63000000");
  job = Login();
  job.client = H(98);
  ExpectVerdict(job, Verdict::kUnknownHandle, "62000000");
}

TEST(Validate, Counts) {
  Job job = Login();
  job.seals.push_back(job.seals[0]);
  ExpectVerdict(job, Verdict::kRefused, "the table allows 0 to 1");
  job = Login();
  job.seals.clear();
  job.make_macs.clear();
  ExpectVerdict(job, Verdict::kRefused, "asks for nothing");
  job = Reissue();
  job.opens.clear();
  ExpectVerdict(job, Verdict::kRefused, "the table allows 1 to 1");
  for (const Operation operation : {Operation::kMakeChecksum, Operation::kVerifyChecksum}) {
    ExpectVerdict(Make(operation), Verdict::kRefused, "asks for nothing");
  }
  job = Make(Operation::kMakeChecksum);
  job.make_macs.resize(5, {H(kTgt), 64, "d"});
  ExpectVerdict(job, Verdict::kRefused, "the table allows 0 to 4");
  job = Make(Operation::kVerifyChecksum);
  job.verify_macs.resize(9, {H(kTgt), 17, "d", std::string(28, 's')});
  ExpectVerdict(job, Verdict::kMalformed, "9 parts");
}

TEST(Validate, Sizes) {
  Job job = Login();
  job.seals[0].max_plaintext = limits::kMaxSealBytes + 1;
  ExpectVerdict(job, Verdict::kMalformed, "seal of");
  job = Login();
  job.opens[0].message.resize(12);
  ExpectVerdict(job, Verdict::kBadTag, "too short");
  job = Login();
  job.opens[0].message = Message("", 65);
  ExpectVerdict(job, Verdict::kBadTag, "holds no timestamp");
  job = Login();
  job.opens[0].message = Message("x", 28);
  ExpectVerdict(job, Verdict::kBadTag, "header");
  job = Login();
  job.make_macs[0].data.resize(limits::kMaxMacDataBytes + 1);
  ExpectVerdict(job, Verdict::kMalformed, "too much");
  job = Make(Operation::kVerifyChecksum);
  job.verify_macs = {{H(kTgt), 17, "d", "short"}};
  ExpectVerdict(job, Verdict::kBadTag, "checksum of 5");
}

// Their blocks are computed one after the other, before anything of the job is verified.
TEST(Validate, LongMessagesUnderStandardEnctypes) {
  Job job = Make(Operation::kLogin);
  job.client = H(kCarol);
  job.opens = {{H(kCarol), 1, std::string(16 + 28 + 12, 'c')}};
  job.make_macs = {{H(kCarol), 56, std::string(limits::kMaxCtsRequestBytes, 'q')}};
  ExpectVerdict(job, Verdict::kOk, "");
  job.make_macs[0].data.push_back('q');
  ExpectVerdict(job, Verdict::kMalformed, "4097 bytes under a key of aes256-cts-hmac-sha1-96");
  job.make_macs[0].data.resize(10);
  job.seals = {{H(kCarol), 3, limits::kMaxCtsMessageBytes + 1}};
  job.seals[0].text = Text(limits::kMaxCtsMessageBytes + 1);
  ExpectVerdict(job, Verdict::kMalformed, "key usage 3: at most 16384");
  job.seals[0] = {H(kCarol), 3, 100, Text(100)};
  ExpectVerdict(job, Verdict::kRefused, "no seal of enctypes 17 to 20");
  // A ticket: to seal, to open.
  job = Make(Operation::kOpenTicket);
  job.opens = {{H(kWww), 2, std::string(limits::kMaxCtsTicketBytes, 't')}};
  ExpectVerdict(job, Verdict::kOk, "");
  job.opens[0].message.push_back('t');
  ExpectVerdict(job, Verdict::kMalformed, "key usage 2: at most 2048");
  // The gcm enctypes have no such chain.
  job = Login();
  job.make_macs = {{H(kAlice), 56, std::string(limits::kMaxCtsRequestBytes + 1, 'q')}};
  ExpectVerdict(job, Verdict::kOk, "");
}

TEST(Validate, ClientAndGrant) {
  Job job = Login();
  job.client.reset();
  ExpectVerdict(job, Verdict::kMalformed, "needs a client");
  job = Login();
  job.grant = 5;
  ExpectVerdict(job, Verdict::kMalformed, "takes no grant");
  job = Login();
  job.client = H(kTgt);
  ExpectVerdict(job, Verdict::kRefused, "of class tgs");
  job = Make(Operation::kSealGranted, kAlice);
  job.seals = {{H(kTgt), 2, 1}};
  ExpectVerdict(job, Verdict::kMalformed, "needs a grant");
}

}  // namespace
}  // namespace mpckdc
