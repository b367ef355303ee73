// SPDX-License-Identifier: Apache-2.0
//
// Three engines in one process against the oracle: keys of enctypes 17 to 20, whose messages the
// servers encrypt, decrypt and authenticate as a whole.
#include <array>
#include <cstdio>
#include <set>

#include "gtest/gtest.h"
#include "mpc-server/job/ticket_header.h"
#include "mpc-server/key/hash_kind.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/testing/long_tests.h"

namespace mpckdc {
namespace {

constexpr int32_t kStock[] = {kEnctypeAes128Sha1, kEnctypeAes256Sha1, kEnctypeAes128Sha256,
                              kEnctypeAes256Sha384};

// By either protocol: what comes out is the same.
class CtsLoginTest : public ::testing::TestWithParam<KeyAndProtocol> {
 protected:
  CtsLoginTest() : realm_(enctype(), Forced(GetParam().protocol)) {}
  void TearDown() override { ExpectComputedBy(realm_, GetParam().protocol); }

  static int32_t enctype() { return GetParam().enctype; }

  Job Reply(JobId grant, const PlainKey& user, size_t size) {
    return realm_.Granted(grant, user,
                          {user.info.handle, kUsageAsReply, static_cast<uint32_t>(size)});
  }
  JobResult RunWithText(const Job& job, const std::string& text) {
    return Combine(realm_.Run(WithTexts(job, text, realm_.random())));
  }
  PlainKey AddService(const std::string& name) {
    return realm_.AddKey(name, KeyClass::kService, enctype(), Gate::kNone);
  }

  Realm realm_;
};

TEST_P(CtsLoginTest, AgreesWithTheOracle) {
  const absl::Time when = absl::Now();
  const Job job = realm_.Login(realm_.alice, SealPreauth(realm_.alice, when, realm_.random()));
  const JobResult login = realm_.Run(job);
  ASSERT_VERDICT_OK(login);
  EXPECT_EQ(CtsOf(login.opens[0]).share, EncodePreauthTimestamp(when));
  EXPECT_TRUE(OracleMacGood(realm_.alice, kUsageAsReqChecksum, job.make_macs[0].data,
                            login.make_macs[0]));
  const std::string ticket(150, 'T');
  EXPECT_EQ(OracleOpen(realm_.tgt, kUsageTicket, realm_.FinishSeal(login, 0, ticket)), ticket);
  const std::string reply(239, 'R');
  const JobResult sealed = RunWithText(Reply(job.id, realm_.alice, reply.size()), reply);
  ASSERT_VERDICT_OK(sealed);
  EXPECT_EQ(OracleOpen(realm_.alice, kUsageAsReply, CtsOf(sealed.seals[0]).share), reply);
  for (const BatchReport& report : realm_.recorder(0).Batches()) {
    std::printf("enctype %d: %zu rounds, %zu bytes, computed in %s\n", enctype(),
                static_cast<size_t>(report.rounds), static_cast<size_t>(report.bytes),
                absl::FormatDuration(report.computed).c_str());
  }
}

TEST_P(CtsLoginTest, EveryLengthOfAReply) {
  const JobResult login = realm_.Run(realm_.Login(realm_.otp));
  ASSERT_VERDICT_OK(login);
  std::set<std::string> first_blocks;
  for (const size_t size : {0u, 1u, 15u, 16u, 17u, 31u, 32u, 33u, 100u}) {
    Job job = Reply(login.id, realm_.otp, size);
    job.operation = Operation::kLogin;  // the KDC's word is its gate
    job.grant = 0;
    const std::string text(size, 'x');
    const JobResult sealed = RunWithText(job, text);
    ASSERT_VERDICT_OK(sealed);
    const std::string& message = CtsOf(sealed.seals[0]).share;
    EXPECT_EQ(OracleOpen(realm_.otp, kUsageAsReply, message), text) << size;
    EXPECT_TRUE(first_blocks.insert(message.substr(0, 16)).second) << "confounders repeat";
  }
}

TEST_P(CtsLoginTest, WrongPasswordReplayAndSkewAreToldApart) {
  const std::string preauth = realm_.Preauth(realm_.alice);
  const auto login = [&](const std::string& message) {
    return realm_.Run(realm_.Login(realm_.alice, message));
  };
  EXPECT_VERDICT(login(realm_.Preauth(WrongPassword(realm_.alice))), Verdict::kBadTag);
  EXPECT_VERDICT(login(preauth), Verdict::kOk);
  EXPECT_VERDICT(login(preauth), Verdict::kOk) << "its answer was lost";
  EXPECT_VERDICT(login(preauth), Verdict::kReplay);
  EXPECT_VERDICT(login(realm_.Preauth(realm_.alice, -absl::Hours(1))), Verdict::kClockSkew);
  std::vector<ptrdiff_t> places = {0, 17};
  for (size_t i = 1; i <= FindEnctype(enctype())->mac_bytes; ++i) {
    places.push_back(-static_cast<ptrdiff_t>(i));  // every byte of the HMAC, from the end
  }
  for (const ptrdiff_t at : places) {
    std::string altered = realm_.Preauth(realm_.alice);  // one is not as long as the other
    *(at < 0 ? altered.end() + at : altered.begin() + at) ^= 1;
    EXPECT_VERDICT(login(altered), Verdict::kBadTag);
  }
  EXPECT_VERDICT(login(preauth.substr(0, 20)), Verdict::kBadTag);
}

// Anybody may send zeros as a pre-authentication, and behind it a request as long as may be.
TEST_P(CtsLoginTest, NothingIsComputedForABadPreauth) {
  const auto rounds_of = [this](const std::string& preauth, size_t request, Verdict want) {
    Job job = realm_.Login(realm_.alice, preauth);
    job.make_macs[0].data.assign(request, 'q');
    job.deadline_ms = 30'000;  // after a deep batch the next one waits
    EXPECT_VERDICT(realm_.Run(job), want);
    return realm_.recorder(0).Batches().back().rounds;
  };
  const size_t most = limits::kMaxCtsRequestBytes;
  const uint64_t good = rounds_of(realm_.Preauth(realm_.alice), most, Verdict::kOk);
  const uint64_t bad = rounds_of(realm_.AlteredPreauth(realm_.alice), most, Verdict::kBadTag);
  const uint64_t bad_short = rounds_of(realm_.AlteredPreauth(realm_.alice), 100, Verdict::kBadTag);
  // At most the compression that was under way when the pre-authentication was found bad.
  const uint64_t compression = good / HmacInnerBlocks(FindEnctype(enctype())->hash, most);
  EXPECT_LE(bad, bad_short + 2 * compression);
  EXPECT_LT(10 * compression, good - bad);
}

// So may he a good one that he sniffed and held back until it was too old, again and again.
TEST_P(CtsLoginTest, NothingIsComputedForALatePreauth) {
  const PlainKey gcm = realm_.AddKey("alice@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes256Gcm);
  const auto rounds_of = [&](const PlainKey& key, absl::Duration off, size_t request) {
    Job job = realm_.Login(realm_.alice, realm_.Preauth(key, off));
    job.opens[0].handle = key.info.handle;
    job.make_macs[0].data.assign(request, 'q');
    job.deadline_ms = 30'000;
    EXPECT_VERDICT(realm_.Run(job),
                   off == absl::ZeroDuration() ? Verdict::kOk : Verdict::kClockSkew);
    return realm_.recorder(0).Batches().back().rounds;
  };
  const size_t most = 1500;
  const uint64_t good = rounds_of(realm_.alice, absl::ZeroDuration(), most);
  const uint64_t compression = good / HmacInnerBlocks(FindEnctype(enctype())->hash, most);
  for (const PlainKey& key : {realm_.alice, gcm}) {
    const uint64_t late = rounds_of(key, -absl::Hours(1), most);
    const uint64_t late_short = rounds_of(key, absl::Hours(1), 100);
    EXPECT_LE(late, late_short + 2 * compression);
    EXPECT_LT(4 * compression, good - late);
    std::printf("enctype %d, late pre-auth under %d: %zu of %zu rounds\n", enctype(),
                key.info.enctype, static_cast<size_t>(late), static_cast<size_t>(good));
  }
}

// The good ones of the same batch go on.
TEST_P(CtsLoginTest, BadAndLatePreauthsBesideGoodOnes) {
  for (int p = 0; p < kParties; ++p) realm_.options(p).mode = BatchMode::kFixed;
  realm_.RestartAll();
  std::vector<Job> jobs = {
      realm_.Login(realm_.bob), realm_.Login(realm_.alice, realm_.AlteredPreauth(realm_.alice)),
      realm_.Login(realm_.bob),
      realm_.Login(realm_.alice, realm_.Preauth(realm_.alice, absl::Hours(1)))};
  jobs[3].make_macs[0].data.assign(1000, 'q');
  jobs[1].make_macs[0].data.assign(2000, 'q');
  jobs[2].make_macs[0].data.assign(900, 'q');
  const std::vector<JobResult> results = realm_.RunAll(jobs);
  EXPECT_VERDICT(results[1], Verdict::kBadTag);
  EXPECT_VERDICT(results[3], Verdict::kClockSkew);
  for (const size_t good : {0, 2}) {
    ASSERT_VERDICT_OK(results[good]);
    EXPECT_TRUE(OracleMacGood(realm_.bob, kUsageAsReqChecksum, jobs[good].make_macs[0].data,
                              results[good].make_macs[0]));
  }
}

TEST_P(CtsLoginTest, AReplyNeedsAGrantAndItsText) {
  const std::string reply(100, 'R');
  EXPECT_VERDICT(RunWithText(Reply(12345, realm_.alice, 100), reply), Verdict::kRefused);
  const JobResult login = realm_.Run(realm_.Login(realm_.alice));
  ASSERT_VERDICT_OK(login);
  JobResult sealed = realm_.Run(Reply(login.id, realm_.alice, 100));  // without the text
  ExpectRefused(sealed, Verdict::kMalformed, "takes components of 100 bytes of its text, not of 0");
  // Another user's key is not the grant's.
  EXPECT_VERDICT(RunWithText(Reply(login.id, realm_.bob, 100), reply), Verdict::kRefused);
  EXPECT_VERDICT(RunWithText(Reply(login.id, realm_.alice, 100), reply), Verdict::kOk);
  EXPECT_VERDICT(RunWithText(Reply(login.id, realm_.alice, 100), reply), Verdict::kOk);
  EXPECT_VERDICT(RunWithText(Reply(login.id, realm_.alice, 100), reply), Verdict::kRefused);
}

// Its HMAC is in the message already; a second one under another text would be a forgery.
TEST_P(CtsLoginTest, ASealHasNoTagToAskFor) {
  const JobResult login = realm_.Run(realm_.Login(realm_.alice));
  ASSERT_VERDICT_OK(login);
  const Job job = Reply(login.id, realm_.alice, 40);
  ASSERT_VERDICT_OK(RunWithText(job, std::string(40, 'R')));
  const TagRequest request{job.id, 0, std::string(56, '\0')};
  EXPECT_VERDICT(Combine(realm_.Tags(request)), Verdict::kRefused);
}

TEST_P(CtsLoginTest, TicketsOfProtectedServices) {
  const PlainKey service = AddService("host/www.example.com@EXAMPLE.COM");
  const std::string tgt = realm_.Tgt("tgt");
  Job job = realm_.Reissue(tgt, service, 180);
  const std::string inside(180, 'S');
  const JobResult sealed = RunWithText(job, inside);
  ASSERT_VERDICT_OK(sealed);
  const std::string ticket = CtsOf(sealed.seals[0]).share;
  EXPECT_EQ(OracleOpen(service, kUsageTicket, ticket), inside);

  Job open = realm_.OpenTicket(ticket);
  open.opens[0].handle = service.info.handle;
  const JobResult opened = realm_.Run(open);
  ASSERT_VERDICT_OK(opened);
  EXPECT_EQ(CtsOf(opened.opens[0]).share, inside);

  // It has no header: nothing is made from it.
  job.id = realm_.NextId();
  job.opens[0] = {service.info.handle, kUsageTicket, ticket};
  EXPECT_VERDICT(RunWithText(job, inside), Verdict::kRefused);
  // A forged parent gives nothing.
  job.id = realm_.NextId();
  job.opens[0] = {realm_.tgt.info.handle, kUsageTicket, tgt};
  job.opens[0].message.back() ^= 1;
  EXPECT_VERDICT(RunWithText(job, inside), Verdict::kBadTag);
}

// From an ordinary realm, which has the key itself, a ticket without header comes in, and one is made
// of it: all that the servers say of it is the key's name. Its own clock is that realm's business.
TEST_P(CtsLoginTest, TicketsOfAnOrdinaryRealmArePassedOn) {
  const auto between = [&](const char* name) {
    return realm_.AddKey(name, KeyClass::kTgs, enctype(), Gate::kNone);
  };
  const PlainKey from = between("krbtgt/EXAMPLE.COM@STOCK"), to = between("krbtgt/C@EXAMPLE.COM");
  const std::string inside(180, 'S'),
      came = CtsSeal(*FindEnctype(enctype()), from.base, kUsageTicket, std::string(16, 'c'), inside);
  const auto from_it = [&](const PlainKey& under, uint32_t size) {
    Job job = realm_.Reissue(came, under, size);
    job.opens[0].handle = from.info.handle;
    return job;
  };
  const absl::Time before = absl::Now();
  Job job = from_it(realm_.kadmin, 120);
  const JobResult made = realm_.Run(job);
  ASSERT_VERDICT_OK(made);
  EXPECT_EQ(CtsOf(made.opens[0]).share, inside);
  const auto header = DecodeTicketHeader(GcmOf(made.seals[0]).header);
  ASSERT_TRUE(header.has_value());
  EXPECT_FALSE(header->initial);
  EXPECT_EQ(header->principal, from.info.principal_id);
  EXPECT_EQ(header->origin_job, ForeignUser(from.info, came));
  EXPECT_GE(header->origin_time, absl::ToUnixSeconds(before));

  // On to the next realm, whose key is of the same kind.
  const JobResult onward = RunWithText(from_it(to, 180), inside);
  ASSERT_VERDICT_OK(onward);
  EXPECT_EQ(OracleOpen(to, kUsageTicket, CtsOf(onward.seals[0]).share), inside);

  // One that the realm did not make gives nothing.
  const std::array<const PlainKey*, 2> others = {&realm_.kadmin, &to};
  for (const PlainKey* under : others) {
    job = from_it(*under, 120);
    job.opens[0].message.back() ^= 1;
    EXPECT_VERDICT(under == &to ? RunWithText(job, inside) : realm_.Run(job), Verdict::kBadTag);
  }
}

// The limit that the threat model names: nothing in such a ticket tells the servers its age.
TEST_P(CtsLoginTest, ATicketOfAServiceOpensTenYearsLater) {
  const PlainKey service = AddService("nfs/www.example.com@EXAMPLE.COM");
  const std::string inside(180, 'S');
  const JobResult sealed = RunWithText(realm_.Reissue(realm_.Tgt("tgt"), service, 180), inside);
  ASSERT_VERDICT_OK(sealed);
  for (int party = 0; party < kParties; ++party) {
    realm_.clock(party).Set(absl::Hours(24 * 3650));
  }
  ASSERT_TRUE(realm_.WaitConnected());
  const JobResult opened = realm_.Run(realm_.OpenTicket(CtsOf(sealed.seals[0]).share, service));
  ASSERT_VERDICT_OK(opened);
  EXPECT_EQ(CtsOf(opened.opens[0]).share, inside);
}

// So kadmin has none, and one from before is not used.
TEST_P(CtsLoginTest, NoTicketUnderAKeyOfKadmin) {
  const PlainKey kadmin = AddService("kadmin/changepw@EXAMPLE.COM");
  const Job seal = realm_.Reissue(realm_.Tgt("tgt"), kadmin, 180);
  ExpectRefused(RunWithText(seal, std::string(180, 'S')), Verdict::kRefused,
                "kadmin/changepw@EXAMPLE.COM must have keys of aes256-gcm or aes128-gcm");
  ExpectRefused(realm_.Run(realm_.OpenTicket(std::string(250, 'x'), kadmin)), Verdict::kRefused,
                "must have keys of aes256-gcm");
  KeyInfo drawn = kadmin.info;
  drawn.handle[0] ^= 1;
  EXPECT_EQ(realm_.Draw({7}, drawn).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(CtsLoginTest, ChecksumsAreMadeAndVerified) {
  const PlainKey service = AddService("host/www.example.com@EXAMPLE.COM");
  std::string data(1000, 'p');
  const JobResult made = realm_.Run(realm_.MakeChecksums(
      {{service.info.handle, 17, data}, {realm_.tgt.info.handle, 17, "under krbtgt"}}));
  ASSERT_VERDICT_OK(made);
  EXPECT_TRUE(OracleMacGood(service, 17, data, made.make_macs[0]));
  EXPECT_TRUE(OracleMacGood(realm_.tgt, 17, "under krbtgt", made.make_macs[1]));
  std::string checksum = CtsOf(made.make_macs[0]).share;
  const auto verify = [&] {
    Job job = realm_.VerifyChecksum(service, data, checksum);
    job.deadline_ms = 30'000;  // a deep one; on a busy machine it is not begun if it may end late
    return realm_.Run(job);
  };
  EXPECT_VERDICT(verify(), Verdict::kOk);
  data[999] ^= 1;
  EXPECT_VERDICT(verify(), Verdict::kBadTag);
  checksum.pop_back();
  EXPECT_VERDICT(verify(), Verdict::kBadTag);
}

std::vector<KeyAndProtocol> All() {
  std::vector<KeyAndProtocol> all;
  for (const int32_t enctype : kStock) {
    // In rounds, which take longest, those of the longest keys are enough.
    const bool chosen = LongTests() || FindEnctype(enctype)->key_bytes == 32;
    for (const ProtocolSetting protocol : kForcedProtocols) {
      if (chosen || protocol == ProtocolSetting::kGarbled) all.push_back({enctype, protocol});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Enctypes, CtsLoginTest, ::testing::ValuesIn(All()), NameOf);

// In rounds, whatever is forced: a garbling's keys are drawn from streams that two share.
class CtsExchangedTest : public ::testing::TestWithParam<int32_t> {};

TEST_P(CtsExchangedTest, RunsOnExchangedZeroShares) {
  EngineOptions options;
  options.randomness = Randomness::kExchanged;  // more than was declared ends the process
  Realm realm(GetParam(), options);
  const JobResult login = realm.Run(realm.Login(realm.alice));
  ASSERT_VERDICT_OK(login);
  const std::string reply(77, 'R');
  const Job job =
      realm.Granted(login.id, realm.alice, {realm.alice.info.handle, kUsageAsReply, 77});
  const JobResult sealed = Combine(realm.Run(WithTexts(job, reply, realm.random())));
  ASSERT_VERDICT_OK(sealed);
  EXPECT_EQ(OracleOpen(realm.alice, kUsageAsReply, CtsOf(sealed.seals[0]).share), reply);
}

INSTANTIATE_TEST_SUITE_P(Enctypes, CtsExchangedTest, ::testing::ValuesIn(kStock));

// Users with keys of every enctype in the same batches.
class CtsBatchTest : public ::testing::TestWithParam<ProtocolSetting> {};

TEST_P(CtsBatchTest, EveryEnctypeInOneBatch) {
  EngineOptions options = Forced(GetParam());
  options.mode = BatchMode::kFixed;
  options.batch_window = absl::Milliseconds(300);
  Realm realm(options);
  std::vector<PlainKey> users = {realm.alice};
  for (const Enctype& enctype : kEnctypes) {
    users.push_back(realm.AddKey(absl::StrCat("u", enctype.number, "@EXAMPLE.COM"),
                                       KeyClass::kUser, enctype.number));
  }
  std::vector<Job> jobs;
  for (int i = 0; i < 3; ++i) for (const PlainKey& user : users) jobs.push_back(realm.Login(user));
  const std::vector<JobResult> results = realm.RunAll(jobs);
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_VERDICT_OK(results[i]);
    EXPECT_TRUE(OracleMacGood(users[i % users.size()], kUsageAsReqChecksum,
                              jobs[i].make_macs[0].data, results[i].make_macs[0]));
    EXPECT_EQ(OracleOpen(realm.tgt, kUsageTicket, realm.FinishSeal(results[i], 0, "tgt")), "tgt");
  }
  ExpectComputedBy(realm, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Protocols, CtsBatchTest, ::testing::ValuesIn(kForcedProtocols));

}  // namespace
}  // namespace mpckdc
