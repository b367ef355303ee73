// SPDX-License-Identifier: Apache-2.0
//
// Three engines in one process against the plain oracle: logins and tickets; gates and grants are
// in gate_test.cc.
#include "mpc-server/agree/job_engine.h"

#include <atomic>
#include <cstdio>
#include <set>

#include "gtest/gtest.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/testing/tested_security.h"

namespace mpckdc {
namespace {

// ---- A whole login ----

class LoginTest : public ::testing::TestWithParam<int32_t> {};

TEST_P(LoginTest, AgreesWithTheOracle) {
  Realm realm(GetParam());
  const absl::Time when = absl::Now();
  const Job job = realm.Login(realm.alice, SealPreauth(realm.alice, when, realm.random()));
  const JobResult result = realm.Run(job);
  ASSERT_VERDICT_OK(result);

  // The KDC reads the pre-auth.
  const auto message = ParseMessage(job.opens[0].message);
  const std::string plain = XorText(GcmOf(result.opens[0]).share,
                                    std::string(message->ciphertext.substr(kZeroBytes)));
  EXPECT_EQ(plain, EncodePreauthTimestamp(when));

  const std::string ticket(150, 'T'), reply(270, 'R');
  const std::string ticket_message = realm.FinishSeal(result, 0, ticket);
  const std::string reply_message = realm.FinishSeal(result, 1, reply);
  EXPECT_EQ(OracleOpen(realm.tgt, kUsageTicket, ticket_message), ticket);
  EXPECT_EQ(OracleOpen(realm.alice, kUsageAsReply, reply_message), reply);
  EXPECT_TRUE(OracleMacGood(realm.alice, kUsageAsReqChecksum, job.make_macs[0].data,
                            result.make_macs[0]));

  const auto header = DecodeTicketHeader(GcmOf(result.seals[0]).header);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->principal, realm.alice.info.principal_id);
  EXPECT_EQ(header->origin_job, job.id);
  EXPECT_NEAR(header->origin_time, absl::ToUnixSeconds(when), 2);
  EXPECT_TRUE(GcmOf(result.seals[1]).header.empty());

  std::set<Nonce> nonces = {GcmOf(result.seals[0]).nonce, GcmOf(result.seals[1]).nonce,
                            GcmOf(result.make_macs[0]).nonce};
  EXPECT_EQ(nonces.size(), 3u);
  for (const Nonce& nonce : nonces) EXPECT_EQ(SplitNonce(nonce).cluster, 7);

  // Reports follow the answers.
  ASSERT_TRUE(Eventually([&] { return !realm.recorder(0).Batches().empty(); }));
  const BatchReport report = realm.recorder(0).Batches()[0];
  // 4 for the pre-auth, 13 for the ticket, 20 for the reply, 1 for the checksum.
  EXPECT_EQ(report.aes_blocks, 38u);
  // krbtgt's lanes have 256 bits; few blocks. A proof, the session's first, before the tags open.
  const uint64_t proof = TestedSecurity() == Security::kActive ? 7 : 0;
  EXPECT_EQ(report.rounds, 42u + 2 + 1 + proof);
  std::printf("login: %zu AES blocks, %zu rounds, %zu bytes, computed in %s\n",
              static_cast<size_t>(report.aes_blocks), static_cast<size_t>(report.rounds),
              static_cast<size_t>(report.bytes), absl::FormatDuration(report.computed).c_str());
}

INSTANTIATE_TEST_SUITE_P(Enctypes, LoginTest,
                         ::testing::Values(kEnctypeAes128Gcm, kEnctypeAes256Gcm));

// A batch that is long enough is shared among the rings, and cut into parts on each.
TEST(JobEngine, RingsShareALongBatch) {
  EngineOptions options;
  options.mode = BatchMode::kFixed;
  options.batch_window = absl::Seconds(1);  // all logins come into one batch
  Realm realm(kEnctypeAes128Gcm, options, /*rings=*/2);
  std::vector<Job> jobs;
  for (int i = 0; i < 300; ++i) jobs.push_back(realm.Login(i % 2 ? realm.alice : realm.bob));
  const std::vector<JobResult> results = realm.RunAll(jobs);
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_VERDICT_OK(results[i]);
    const PlainKey& user = i % 2 ? realm.alice : realm.bob;
    ASSERT_EQ(OracleOpen(user, kUsageAsReply, realm.FinishSeal(results[i], 1, "reply")), "reply");
  }
  const std::vector<BatchReport> batches = realm.recorder(0).Batches();
  ASSERT_FALSE(batches.empty());
  EXPECT_GE(batches[0].aes_blocks, 2 * limits::kRingBlocks);
  realm.StopAll();
  EXPECT_GT(realm.hub().FramesOn(1), 3 * 40);  // the second ring took its share
}

// Each circuit that an engine runs takes at most as many zero shares as it declares: one that took
// more would end the process.
TEST(JobEngine, EverythingRunsOnExchangedZeroShares) {
  EngineOptions options;
  options.randomness = Randomness::kExchanged;
  for (const int32_t enctype : {kEnctypeAes128Gcm, kEnctypeAes256Gcm}) {
    Realm realm(enctype, options, /*rings=*/2);
    const JobResult login = realm.Run(realm.Login(realm.alice));
    ASSERT_VERDICT_OK(login);
    const std::string ticket = realm.FinishSeal(login, 0, "ticket");
    EXPECT_EQ(OracleOpen(realm.tgt, kUsageTicket, ticket), "ticket");
    EXPECT_VERDICT(realm.Run(realm.OpenTicket(ticket)), Verdict::kOk);
    EXPECT_VERDICT(realm.Run(realm.Login(realm.alice, realm.AlteredPreauth(realm.alice))),
                   Verdict::kBadTag);
    KeyInfo drawn = realm.tgt.info;
    drawn.handle[0] ^= 1;
    EXPECT_TRUE(realm.Draw({7}, drawn).ok());
    const auto good = realm.Verify({realm.alice.info.handle, realm.tgt.info.handle});
    ASSERT_TRUE(good.ok()) << good.status();
    for (const VerifyResult& result : *good) EXPECT_TRUE(result.consistent) << result.detail;
  }
}

TEST(JobEngine, ManyLoginsShareBatches) {
  Realm realm;
  constexpr int kLogins = 40;
  std::vector<Job> jobs;
  for (int i = 0; i < kLogins; ++i) jobs.push_back(realm.Login(i % 2 ? realm.alice : realm.bob));
  const std::vector<JobResult> results = realm.RunAll(jobs);
  std::set<Nonce> nonces;
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_VERDICT_OK(results[i]);
    for (const SealResult& seal : results[i].seals) {
      EXPECT_TRUE(nonces.insert(GcmOf(seal).nonce).second);
    }
    const PlainKey& user = i % 2 ? realm.alice : realm.bob;
    EXPECT_EQ(OracleOpen(user, kUsageAsReply, realm.FinishSeal(results[i], 1, "reply")), "reply");
  }
  EXPECT_LT(realm.recorder(0).Batches().size(), static_cast<size_t>(kLogins));
}

// Every operation of the table, both classes of ticket keys.
TEST(JobEngine, ServiceTicketsHaveAHeader) {
  Realm realm;
  const JobResult result = realm.Run(
      LoginJob(realm.NextId(), realm.alice, realm.kadmin, realm.Preauth(realm.alice)));
  ASSERT_VERDICT_OK(result);
  const auto header = DecodeTicketHeader(GcmOf(result.seals[0]).header);
  ASSERT_TRUE(header.has_value());
  EXPECT_TRUE(header->initial);
  EXPECT_EQ(header->principal, realm.alice.info.principal_id);
  EXPECT_EQ(header->origin_job, result.id);
  const std::string ticket = realm.FinishSeal(result, 0, "kadmin ticket");
  EXPECT_EQ(OracleOpen(realm.kadmin, kUsageTicket, ticket), "kadmin ticket");
  EXPECT_VERDICT(realm.Run(realm.OpenTicket(ticket, realm.kadmin)), Verdict::kOk);
  // What servers sealed that did not know of the header, or who has the key.
  const std::string bare = PlainSealText(
      realm.kadmin, kUsageTicket,
      JoinNonce({static_cast<uint32_t>(absl::ToUnixSeconds(absl::Now())), 7, 42}), "", "bare");
  ExpectRefused(realm.Run(realm.OpenTicket(bare, realm.kadmin)), Verdict::kBadTag, "header");
}

std::string ChecksumOf(const MakeMacResult& made) {
  const GcmMacResult& mac = GcmOf(made);
  std::string checksum(mac.nonce.begin(), mac.nonce.end());
  checksum.append(mac.share.begin(), mac.share.end());
  return checksum;
}

TEST(JobEngine, ChecksumsAreMadeAndVerified) {
  Realm realm;
  for (const uint32_t usage : {kUsagePacChecksum, kUsageCammac}) {
    std::string data(1000, 'p');
    const JobResult made = realm.Run(realm.MakeChecksums(
        {{realm.tgt.info.handle, usage, data}, {realm.kadmin.info.handle, usage, "other"}}));
    ASSERT_VERDICT_OK(made);
    EXPECT_TRUE(OracleMacGood(realm.tgt, usage, data, made.make_macs[0]));
    EXPECT_TRUE(OracleMacGood(realm.kadmin, usage, "other", made.make_macs[1]));

    const std::string checksum = ChecksumOf(made.make_macs[0]);
    const auto verify = [&](uint32_t as) {
      return realm.Run(realm.VerifyChecksum(realm.tgt, data, checksum, as));
    };
    EXPECT_VERDICT(verify(usage), Verdict::kOk);
    EXPECT_VERDICT(verify(usage == kUsageCammac ? kUsagePacChecksum : kUsageCammac),
                   Verdict::kBadTag);
    data[500] ^= 1;
    EXPECT_VERDICT(verify(usage), Verdict::kBadTag);
  }
}

// A krbtgt key that was drawn before there was usage 64 does all that it did; what it lacks is
// refused with what to do, and no server is accused.
TEST(JobEngine, AKeyFromBeforeAuthenticationIndicators) {
  Realm realm;
  const PlainKey old = MakePlainKey(realm.random(), realm.tgt.info.principal, KeyClass::kTgs,
                                    kEnctypeAes256Gcm, Gate::kTimestamp);
  PerParty<KeyRecord> records = ShareKey(old, realm.random());
  for (int party = 0; party < kParties; ++party) {
    ASSERT_EQ(records[party].usages.back().usage, kUsageCammac);
    records[party].usages.pop_back();
    ASSERT_TRUE(Enrol(realm.store(party), records[party], absl::Now()).ok());
  }
  const JobResult made = realm.Run(realm.MakeChecksums({{old.info.handle, 17, "pac"}}));
  ASSERT_VERDICT_OK(made);
  const std::string checksum = ChecksumOf(made.make_macs[0]);
  EXPECT_VERDICT(realm.Run(realm.VerifyChecksum(old, "pac", checksum)), Verdict::kOk);
  ExpectRefused(realm.Run(realm.MakeChecksums({{old.info.handle, kUsageCammac, "ticket"}})),
                Verdict::kRefused, "mpc-admin rotate-krbtgt");
  ExpectRefused(realm.Run(realm.VerifyChecksum(old, "pac", checksum, kUsageCammac)),
                Verdict::kRefused, "mpc-admin rotate-krbtgt");
  EXPECT_VERDICT(realm.Run(realm.MakeChecksums({{old.info.handle, 17, "pac"}})), Verdict::kOk);
}

// ---- The gate ----

TEST(JobEngine, WrongZeroBlockGivesBadTag) {
  Realm realm;
  // A good GCM message whose first 16 bytes are not zero: what a key-committing attack needs.
  GcmNonce nonce{1};
  const std::string bad = PlainSealRaw(realm.alice, kUsagePreauth, nonce,
                                       std::string(16, '\1') + EncodePreauthTimestamp(absl::Now()));
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice, bad)), Verdict::kBadTag);
}

// And they are dropped when all three clocks say that their time is over.
TEST(JobEngine, ReplayEntriesEndWithTheirTime) {
  Realm realm;
  ASSERT_VERDICT_OK(realm.Run(realm.Login(realm.alice)));
  const auto kept = [&realm] {
    size_t entries = 0;
    for (int party = 0; party < kParties; ++party) {
      EXPECT_TRUE(realm.store(party)
                      .LoadReplayEntries([&entries](const ReplayEntry&) { ++entries; })
                      .ok());
    }
    return entries;
  };
  EXPECT_EQ(kept(), 3u);
  for (int party = 0; party < kParties; ++party) realm.clock(party).Set(absl::Hours(1));
  EXPECT_TRUE(Eventually([&] { return kept() == 0; }));
}

// One after the other, so that at no time two clocks are wrong.
TEST(JobEngine, ClocksThatWereAheadForgetNoReplay) {
  Realm realm;
  const std::string preauth = realm.Preauth(realm.alice);
  const auto login = [&] { return realm.Run(realm.Login(realm.alice, preauth)); };
  ASSERT_VERDICT_OK(login());
  ASSERT_VERDICT_OK(login());
  for (int party = 0; party < kParties; ++party) {
    realm.clock(party).Set(absl::Hours(3));
    absl::SleepFor(absl::Milliseconds(1500));  // longer than a heartbeat: housekeeping was there
    realm.clock(party).Set(absl::ZeroDuration());
    absl::SleepFor(absl::Milliseconds(1500));
  }
  ASSERT_TRUE(realm.WaitConnected());
  EXPECT_VERDICT(login(), Verdict::kReplay);
}

// ---- Tickets ----

TEST(JobEngine, OpenTicket) {
  Realm realm;
  const std::string ticket = realm.Tgt("enc-part of a tgt");
  const JobResult opened = realm.Run(realm.OpenTicket(ticket));
  ASSERT_VERDICT_OK(opened);
  const auto message = ParseMessage(ticket);
  EXPECT_EQ(XorText(GcmOf(opened.opens[0]).share,
                    std::string(message->ciphertext.substr(kZeroBytes))),
            "enc-part of a tgt");
  for (const size_t at : {size_t{20}, ticket.size() - 1}) {  // the header's principal; the tag
    std::string altered = ticket;
    altered[at] ^= 1;
    EXPECT_VERDICT(realm.Run(realm.OpenTicket(altered)), Verdict::kBadTag);
  }
}

// Of a long message that nobody sealed the tag is judged and nothing else computed, nor the seal or
// the checksum that it asks for; a good one is computed in the batch after that, once.
TEST(JobEngine, ALongMessageShowsFirstThatItIsGood) {
  Realm realm;
  const auto blocks = [&] { return realm.engine(0).Status().aes_blocks; };
  const std::string text(60'000, 't');
  const std::string header = EncodeTicketHeader(
      NewTicketHeader(realm.alice.info.principal_id, 1, absl::Now(), absl::Hours(1)));
  const std::string ticket = PlainSealText(realm.tgt, kUsageTicket, Nonce{}, header, text);
  std::string altered = ticket;
  altered.back() ^= 1;
  const auto login = [&](const std::string& preauth) {
    Job job = realm.Login(realm.alice, preauth);
    job.make_macs[0].data.assign(60'000, 'q');
    return job;
  };
  uint64_t before = blocks();
  EXPECT_VERDICT(realm.Run(realm.OpenTicket(altered)), Verdict::kBadTag);
  EXPECT_VERDICT(realm.Run(realm.Reissue(altered, realm.tgt, 60'000)), Verdict::kBadTag);
  EXPECT_VERDICT(realm.Run(login(realm.AlteredPreauth(realm.alice))), Verdict::kBadTag);
  EXPECT_LE(blocks() - before, 2u + 2 + 4);
  before = blocks();
  const JobResult opened = realm.Run(realm.OpenTicket(ticket));
  ASSERT_VERDICT_OK(opened);
  EXPECT_EQ(XorText(GcmOf(opened.opens[0]).share,
                    std::string(ParseMessage(ticket)->ciphertext.substr(kZeroBytes))),
            text);
  EXPECT_LE(blocks() - before, 2u + 2 + 60'000 / 16);
  ASSERT_VERDICT_OK(realm.Run(realm.Reissue(ticket, realm.tgt, 60'000)));
  ASSERT_VERDICT_OK(realm.Run(login(realm.Preauth(realm.alice))));
}

// Nor before a pre-auth that somebody kept back, however often he sends it.
TEST(JobEngine, ALatePreauthBeforeALongRequestHasNothingComputed) {
  Realm realm;
  Job late = realm.Login(realm.alice, realm.Preauth(realm.alice, -absl::Hours(1)));
  late.make_macs[0].data.assign(60'000, 'q');
  EXPECT_VERDICT(realm.Run(late), Verdict::kClockSkew);
  EXPECT_LE(realm.engine(0).Status().aes_blocks, 4u);
}

TEST(JobEngine, ReissueInheritsTheHeader) {
  Realm realm;
  const std::string parent = realm.Tgt("parent");
  const JobResult result = realm.Run(realm.Reissue(parent));
  ASSERT_VERDICT_OK(result);
  TicketHeader inherited = *DecodeTicketHeader(ParseMessage(parent)->header);
  EXPECT_TRUE(inherited.initial);
  inherited.initial = false;
  EXPECT_EQ(DecodeTicketHeader(GcmOf(result.seals[0]).header), inherited);
  const std::string child = realm.FinishSeal(result, 0, "child");
  EXPECT_EQ(OracleOpen(realm.tgt, kUsageTicket, child), "child");
  for (const std::string& each : {parent, child}) {
    EXPECT_VERDICT(realm.Run(realm.Reissue(each)), Verdict::kOk);
    const JobResult service = realm.Run(realm.Reissue(each, realm.kadmin));
    ASSERT_VERDICT_OK(service);
    EXPECT_EQ(DecodeTicketHeader(GcmOf(service.seals[0]).header), inherited);
  }

  std::string bad = parent;
  bad[40] ^= 1;
  EXPECT_VERDICT(realm.Run(realm.Reissue(bad)), Verdict::kBadTag);
}

// Keys between realms are of class tgs. Whoever has one (all of the other realm's KDCs, if it is no
// realm of ours) writes any name into a header; what is made of such a ticket names the key.
TEST(JobEngine, ATicketOfAnotherRealmVouchesForItsKeyAlone) {
  Realm realm;
  const PlainKey cross =
      realm.AddKey("krbtgt/EXAMPLE.COM@OTHER", KeyClass::kTgs, kEnctypeAes256Gcm, Gate::kNone);
  const std::string foreign =
      PlainSealText(cross, kUsageTicket, Nonce{1},
                    EncodeTicketHeader(NewTicketHeader(PrincipalIdOf("admin/admin@EXAMPLE.COM"), 1,
                                                       absl::Now(), absl::Hours(1))),
                    "from there");
  EXPECT_VERDICT(realm.Run(realm.OpenTicket(foreign, cross)), Verdict::kOk);
  Job job = realm.Reissue(foreign, realm.kadmin);
  job.opens[0].handle = cross.info.handle;
  const JobResult made = realm.Run(job);
  ASSERT_VERDICT_OK(made);
  const auto header = DecodeTicketHeader(GcmOf(made.seals[0]).header);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->principal, cross.info.principal_id);
  // A realm whose keys are no shares makes no headers.
  const std::string bare = PlainSealText(cross, kUsageTicket, Nonce{2}, "", "from there");
  ExpectRefused(realm.Run(realm.OpenTicket(bare, cross)), Verdict::kBadTag, "header");
}

// And what leaves for another realm has the client's name, which that one can compute.
TEST(JobEngine, ATicketForAnotherRealmNamesTheClient) {
  Realm realm;
  const PlainKey cross =
      realm.AddKey("krbtgt/OTHER@EXAMPLE.COM", KeyClass::kTgs, kEnctypeAes256Gcm, Gate::kNone);
  const JobResult made = realm.Run(realm.Reissue(realm.Tgt("parent"), cross));
  ASSERT_VERDICT_OK(made);
  const auto header = DecodeTicketHeader(GcmOf(made.seals[0]).header);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->principal, PrincipalIdOf("alice@EXAMPLE.COM"));
  EXPECT_EQ(OracleOpen(cross, kUsageTicket, realm.FinishSeal(made, 0, "referral")), "referral");
}

// A TGT, and a ticket for kadmin.
TEST(JobEngine, OriginTooOld) {
  Realm realm;
  const absl::Duration life = limits::kDefaultMaxRenewableLife;
  const auto ticket = [&](const PlainKey& key, absl::Duration age) {
    GcmNonce nonce;
    realm.random().Fill(absl::MakeSpan(nonce));
    const std::string header = EncodeTicketHeader(
        NewTicketHeader(realm.alice.info.principal_id, 1, absl::Now() - age, life));
    return PlainSealText(key, kUsageTicket, nonce, header, "old");
  };
  for (const PlainKey& key : {realm.tgt, realm.kadmin}) {
    EXPECT_VERDICT(realm.Run(realm.OpenTicket(ticket(key, life - absl::Hours(1)), key)),
                   Verdict::kOk);
    EXPECT_VERDICT(realm.Run(realm.OpenTicket(ticket(key, life + absl::Hours(1)), key)),
                   Verdict::kRefused);
  }
  const std::string old = ticket(realm.tgt, life + absl::Hours(1));
  EXPECT_VERDICT(realm.Run(realm.Reissue(old)), Verdict::kRefused);
}

// A checksum is made of anything: a PAC that says whatever a KDC wants, indicators that it invents.
// The time in its nonce ends it.
TEST(JobEngine, ChecksumTooOld) {
  Realm realm;
  const std::string data = "the PAC of an administrator";
  const uint32_t usages[] = {kUsagePacChecksum, kUsageCammac};
  std::vector<MakeMacPart> parts;
  for (const uint32_t usage : usages) parts.push_back({realm.tgt.info.handle, usage, data});
  const JobResult made = realm.Run(realm.MakeChecksums(parts));
  ASSERT_VERDICT_OK(made);
  const auto verify = [&](size_t i) {
    return realm.Run(
        realm.VerifyChecksum(realm.tgt, data, ChecksumOf(made.make_macs[i]), usages[i]));
  };
  const auto pass = [&](absl::Duration time) {
    for (int party = 0; party < kParties; ++party) realm.clock(party).Set(time);
    EXPECT_TRUE(realm.WaitConnected());
  };
  const absl::Duration life = limits::kDefaultMaxRenewableLife;
  for (const absl::Duration age : {absl::ZeroDuration(), life - absl::Hours(1)}) {
    pass(age);
    for (const size_t i : {0, 1}) EXPECT_VERDICT(verify(i), Verdict::kOk);
  }
  pass(life + absl::Hours(1));
  for (const size_t i : {0, 1}) {
    ExpectRefused(verify(i), Verdict::kRefused, "the checksum was made");
  }
}

// A server restarts while a long ticket that was found good waits for its second batch at the two
// others, and its KDC sends it the job again: it knows of no first batch. That is an outage, and
// accuses nobody.
TEST(JobEngine, ARestartBetweenTheBatchesOfALongJobAccusesNobody) {
  EngineOptions options;
  options.mode = BatchMode::kFixed;
  options.batch_window = absl::Seconds(2);
  for (const int restarted : {2, 0}) {
    Realm realm(kEnctypeAes128Gcm, options);
    const std::string header = EncodeTicketHeader(
        NewTicketHeader(realm.alice.info.principal_id, 1, absl::Now(), absl::Hours(1)));
    const std::string ticket =
        PlainSealText(realm.tgt, kUsageTicket, Nonce{}, header, std::string(60'000, 't'));
    Job job = realm.Reissue(ticket, realm.tgt, 60'000);
    job.deadline_ms = 25000;
    std::atomic<int> answers{0}, good{0};
    const auto count = [&](JobResult r) {
      good += r.judgement.ok();
      ++answers;
    };
    for (int p = 0; p < 3; ++p) realm.engine(p).Submit(realm.kdc(), job, count);
    ASSERT_TRUE(Eventually([&] {
      for (int p = 0; p < 3; ++p) {
        const EngineStatus status = realm.engine(p).Status();
        if (status.aes_blocks == 0 || status.waiting == 0) return false;
      }
      return true;
    }));
    realm.Stop(restarted);
    realm.Start(restarted);
    realm.engine(restarted).Submit(realm.kdc(), job, count);
    EXPECT_TRUE(Eventually([&] { return answers == 4; }, absl::Seconds(30)));
    EXPECT_EQ(good, 0);
    for (int p = 0; p < 3; ++p) EXPECT_FALSE(realm.engine(p).Status().quarantine.has_value());
  }
}

}  // namespace
}  // namespace mpckdc
