// SPDX-License-Identifier: Apache-2.0
//
// KeyService over real gRPC with mutual TLS, and an engine that does what the test says.
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/service/key_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "mpc-server/base/limits.h"
#include "mpc-server/service/log.h"
#include "mpc-server/service/refusal_log.h"
#include "mpc-server/testing/memory_share_store.h"
#include "mpc-server/testing/service_fixture.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

class SettableClock : public Clock {
 public:
  absl::Time Now() override {
    absl::MutexLock lock(&mutex_);
    return absl::Now() + ahead_;
  }
  void SleepUntil(absl::Time) override {}
  void Advance(absl::Duration by) {
    absl::MutexLock lock(&mutex_);
    ahead_ += by;
  }

 private:
  absl::Mutex mutex_;
  absl::Duration ahead_;
};

using Stream = grpc::ClientReaderWriter<v1::KdcMessage, v1::ServerMessage>;

// One KDC's end of a stream.
struct Kdc {
  grpc::ClientContext context;
  std::unique_ptr<v1::KeyService::Stub> stub;
  std::unique_ptr<Stream> stream;

  bool Send(const v1::KdcMessage& message) { return stream->Write(message); }
  // Sends jobs with these ids.
  bool SendJobs(JobId first, JobId last) {
    v1::KdcMessage message;
    for (JobId id = first; id <= last; ++id) {
      v1::Job* job = message.add_jobs();
      job->set_id(id);
      job->set_operation(v1::OPERATION_OPEN_TICKET);
      v1::Open* open = job->add_opens();
      open->set_handle(std::string(16, 'h'));
      open->set_usage(2);
      open->set_message("m");
    }
    return Send(message);
  }
  v1::ServerMessage Read() {
    v1::ServerMessage message;
    EXPECT_TRUE(stream->Read(&message));
    return message;
  }
  // How many messages `count` answers came in.
  size_t ReadAnswers(size_t count) {
    size_t answers = 0, messages = 0;
    for (; answers < count; ++messages) answers += static_cast<size_t>(Read().jobs_size());
    EXPECT_EQ(answers, count);
    return messages;
  }
  grpc::Status End() {
    v1::ServerMessage message;
    while (stream->Read(&message)) {
    }
    return stream->Finish();
  }
};

v1::KdcMessage HelloMessage(const std::string& session = std::string(16, 's')) {
  v1::KdcMessage message;
  message.mutable_hello()->set_min_version(1);
  message.mutable_hello()->set_max_version(3);
  message.mutable_hello()->set_session(session);
  message.mutable_hello()->set_realm("EXAMPLE.COM");
  return message;
}

class KeyServiceTest : public ::testing::Test {
 protected:
  std::string DenyFile() const { return port_.folder().File("denied"); }
  void SetUp() override {
    std::ofstream(DenyFile()) << "";
    ASSERT_TRUE(denied_.Load().ok());
    service_ = std::make_unique<KeyService>(
        KeyServiceTools{&engine_, &store_, &doorkeeper_, &refusals_, &metrics_, &clock_});
    port_.Start({service_.get()}, static_cast<int>(limits::kMaxMessageBytes));
    cert_ = port_.authority().IssueRole("kdc", "kdc1");
  }
  void TearDown() override {
    engine_.Release();
    service_->CloseAll();
    port_.Stop();
  }

  std::unique_ptr<Kdc> Open(const TestCert& cert) {
    auto kdc = std::make_unique<Kdc>();
    kdc->context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    kdc->stub = v1::KeyService::NewStub(port_.Connect(&cert));
    kdc->stream = kdc->stub->Serve(&kdc->context);
    return kdc;
  }
  // With hello and welcome exchanged.
  std::unique_ptr<Kdc> Greet(const std::string& session = std::string(16, 's')) {
    auto kdc = Open(cert_);
    EXPECT_TRUE(kdc->Send(HelloMessage(session)));
    EXPECT_TRUE(kdc->Read().has_welcome());
    return kdc;
  }

  TestPort port_;
  SettableClock clock_;
  FakeEngine engine_;
  MemoryShareStore store_{{"EXAMPLE.COM", 2, 7}};
  DenyList denied_{DenyFile()};
  Doorkeeper doorkeeper_{"EXAMPLE.COM", &denied_, &clock_};
  Metrics metrics_;
  std::unique_ptr<AuditLog> audit_ =
      *AuditLog::Open({port_.folder().File("audit.log"), {"EXAMPLE.COM", 0}, AuditSync::kNever, 0,
                       0, {}}, &clock_);
  RefusalLog refusals_{audit_.get(), &clock_};
  std::unique_ptr<KeyService> service_;
  TestCert cert_;
};

TEST_F(KeyServiceTest, HelloIsAnsweredWithWhoThisServerIs) {
  auto kdc = Open(cert_);
  ASSERT_TRUE(kdc->Send(HelloMessage()));
  const v1::Welcome welcome = kdc->Read().welcome();
  EXPECT_EQ(welcome.version(), limits::kMaxKdcVersion) << "the highest common one";
  EXPECT_EQ(welcome.party(), 2u);
  EXPECT_EQ(welcome.realm(), "EXAMPLE.COM");
  EXPECT_EQ(welcome.cluster(), 7u);
  EXPECT_EQ(welcome.epoch(), 1u);
  EXPECT_EQ(welcome.max_jobs_in_flight(), limits::kMaxJobsInFlight);
  EXPECT_LT(absl::AbsDuration(absl::FromUnixMicros(welcome.time_us()) - absl::Now()),
            absl::Seconds(5));
}

TEST_F(KeyServiceTest, JobsAreConvertedAndAnswered) {
  auto kdc = Greet();
  v1::KdcMessage message;
  v1::Job* job = message.add_jobs();
  job->set_id(5);
  job->set_operation(v1::OPERATION_LOGIN);
  job->set_deadline_ms(1'000'000);
  job->set_client(std::string(16, 'c'));
  v1::Open* open = job->add_opens();
  open->set_handle(std::string(16, 'c'));
  open->set_usage(1);
  open->set_message("message");
  v1::Seal* seal = job->add_seals();
  seal->set_handle(std::string(16, 'k'));
  seal->set_usage(2);
  seal->set_max_plaintext(300);
  message.add_tags()->set_job(4);
  ASSERT_TRUE(kdc->Send(message));
  std::set<uint64_t> answered;
  while (answered.size() < 2) {
    const v1::ServerMessage reply = kdc->Read();
    for (const v1::JobAnswer& answer : reply.jobs()) {
      EXPECT_EQ(answer.verdict(), v1::VERDICT_OK);
      EXPECT_EQ(answer.opens(0).keystream_share(), "share");
      answered.insert(answer.id());
    }
    for (const v1::TagAnswer& answer : reply.tags()) {
      EXPECT_EQ(answer.tag_share().size(), 16u);
      answered.insert(answer.job());
    }
  }
  EXPECT_EQ(answered, (std::set<uint64_t>{4, 5}));
  const Job got = engine_.last_job();
  EXPECT_EQ(got.operation, Operation::kLogin);
  EXPECT_EQ(got.deadline_ms, 30'000u) << "shortened to the limit";
  EXPECT_EQ((*got.client)[0], 'c');
  EXPECT_EQ(got.opens[0].message, "message");
  EXPECT_EQ(got.seals[0].max_plaintext, 300u);
  EXPECT_EQ(engine_.last_kdc().name, "kdc1");
  EXPECT_EQ(engine_.last_kdc().session[0], 's');
  EXPECT_THAT(metrics_.Render(), HasSubstr("mpckdc_jobs_total"));
}

TEST_F(KeyServiceTest, AnswersThatAreReadyTogetherLeaveTogether) {
  auto kdc = Greet();
  engine_.set_hold(true);
  ASSERT_TRUE(kdc->SendJobs(1, 1000));
  ASSERT_TRUE(engine_.WaitForSubmitted(1000));
  engine_.Release();
  EXPECT_LT(kdc->ReadAnswers(1000), 500u);
}

// Tickets with a PAC whose every byte is in the answer: opened, and sealed as a whole.
TEST_F(KeyServiceTest, AnswersOfLongTicketsAreCountedByEveryByte) {
  const std::string parent(166, 'k'), ticket(1300, 't');
  const JobResult reissued = {0, Ok(), {GcmOpenResult{parent}}, {CtsSealResult{ticket}}, {}};
  const JobResult opened = {0, Ok(), {CtsOpenResult{ticket}}, {}, {}};
  auto kdc = Greet();
  JobId last = 0;
  for (const JobResult& answer : {reissued, opened}) {
    engine_.set_answer(answer);
    engine_.set_hold(true);
    for (int i = 0; i < 2; ++i, last += limits::kMaxJobsPerMessage) {
      ASSERT_TRUE(kdc->SendJobs(last + 1, last + limits::kMaxJobsPerMessage));
    }
    ASSERT_TRUE(engine_.WaitForSubmitted(last));
    engine_.set_hold(false);
    engine_.Release();
    for (size_t answers = 0; answers < 2 * limits::kMaxJobsPerMessage;) {
      v1::ServerMessage message;
      ASSERT_TRUE(kdc->stream->Read(&message)) << kdc->stream->Finish().error_message();
      EXPECT_LE(message.ByteSizeLong(), limits::kMaxAnswerBytes * 11 / 10);
      answers += static_cast<size_t>(message.jobs_size());
    }
  }
}

TEST_F(KeyServiceTest, HalfClosedStreamStillGetsItsAnswers) {
  auto kdc = Greet();
  engine_.set_hold(true);
  ASSERT_TRUE(kdc->SendJobs(1, 10));
  kdc->stream->WritesDone();
  ASSERT_TRUE(engine_.WaitForSubmitted(10));
  engine_.Release();
  kdc->ReadAnswers(10);
  EXPECT_TRUE(kdc->End().ok());
}

TEST_F(KeyServiceTest, AFloodIsHeldBackAndNothingIsLost) {
  auto kdc = Greet();
  engine_.set_hold(true);
  constexpr JobId kBunch = limits::kMaxJobsPerMessage;
  constexpr JobId kTotal = limits::kMaxJobsInFlight + 4 * kBunch;
  std::thread writer([&] {
    for (JobId id = 1; id <= kTotal; id += kBunch) kdc->SendJobs(id, id + kBunch - 1);
  });
  ASSERT_TRUE(engine_.WaitForSubmitted(limits::kMaxJobsInFlight));
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_LT(engine_.submitted(), limits::kMaxJobsInFlight + kBunch) << "reading has stopped";
  engine_.set_hold(false);
  engine_.Release();
  kdc->ReadAnswers(kTotal);
  writer.join();
}

// Requests of 60 KiB: what they hold is bounded, not only their number.
TEST_F(KeyServiceTest, AFloodOfLongJobsIsHeldBackAndNothingIsLost) {
  constexpr size_t kLong = 60 << 10, kPerMessage = 60, kTotal = 100 * kPerMessage;
  constexpr size_t kFit = limits::kMaxJobBytesInFlight / kLong;
  static_assert(kTotal > kFit + 5 * kPerMessage && kFit < limits::kMaxJobsInFlight);
  auto kdc = Greet();
  engine_.set_hold(true);
  std::thread writer([&] {
    for (JobId id = 1; id <= kTotal;) {
      v1::KdcMessage message;
      for (size_t i = 0; i < kPerMessage; ++i, ++id) {
        v1::Job* job = message.add_jobs();
        job->set_id(id);
        job->set_operation(v1::OPERATION_MAKE_CHECKSUM);
        job->add_make_macs()->set_data(std::string(kLong, 'd'));
        job->mutable_make_macs(0)->set_handle(std::string(16, 'h'));
      }
      ASSERT_TRUE(kdc->Send(message));
    }
  });
  ASSERT_TRUE(engine_.WaitForSubmitted(kFit - kPerMessage));
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_LE(engine_.submitted(), kFit + kPerMessage) << "reading has stopped";
  auto other = Greet(std::string(16, 'o'));  // who has nothing here is served
  ASSERT_TRUE(other->SendJobs(1, 1));
  ASSERT_TRUE(engine_.WaitForSubmitted(kFit));
  engine_.set_hold(false);
  engine_.Release();
  kdc->ReadAnswers(kTotal);
  other->ReadAnswers(1);
  writer.join();
}

// ---- What is refused ----

TEST_F(KeyServiceTest, OtherRolesAreRefusedNamingBoth) {
  for (const char* role : {"admin", "peer"}) {
    const grpc::Status status = Open(port_.authority().IssueRole(role, "x"))->End();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_THAT(status.error_message(), HasSubstr("KeyService.Serve needs the role kdc"));
    EXPECT_THAT(status.error_message(), HasSubstr(std::string("the caller is ") + role));
  }
  EXPECT_EQ(engine_.submitted(), 0u);
  EXPECT_THAT(ReadFileForTest(port_.folder().File("audit.log")),
              HasSubstr("\"kind\":\"refused\""));
}

// Every way to be refused before the engine leaves a line.
TEST_F(KeyServiceTest, RefusalsAtTheDoorAreAudited) {
  auto kdc = Greet();
  v1::KdcMessage message;
  message.add_jobs()->set_id(4);
  message.mutable_jobs(0)->set_client("no handle");
  kdc->Send(message);
  EXPECT_EQ(kdc->Read().jobs(0).verdict(), v1::VERDICT_MALFORMED);
  kdc->Send(message);  // the same id again
  EXPECT_EQ(kdc->End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  auto foreign = Open(cert_);
  message = HelloMessage(std::string(16, 'f'));
  message.mutable_hello()->set_realm("OTHER.COM");
  foreign->Send(message);
  EXPECT_FALSE(foreign->End().ok());
  const std::string audit = ReadFileForTest(port_.folder().File("audit.log"));
  EXPECT_THAT(audit, HasSubstr("\"call\":\"KeyService.job\",\"kdc\":\"kdc1\",\"id\":4,\"reason\":"
                               "\"the client handle has 9 bytes instead of 16\""));
  EXPECT_THAT(audit, HasSubstr("\"call\":\"KeyService.stream\",\"kdc\":\"kdc1\",\"reason\":"
                               "\"job id 4 after 4: ids must rise"));
  EXPECT_THAT(audit, HasSubstr("the KDC serves realm OTHER.COM"));
  EXPECT_THAT(metrics_.Render(),
              HasSubstr("mpckdc_jobs_total{operation=\"unknown\",verdict=\"malformed\"} 1"));
}

// A session outlives its stream: a KDC that reconnects cannot use an id again.
TEST_F(KeyServiceTest, IdsStayUsedAfterAReconnection) {
  {
    auto kdc = Greet();
    kdc->SendJobs(1, 3);
    kdc->ReadAnswers(3);
    kdc->stream->WritesDone();
    EXPECT_TRUE(kdc->End().ok());
  }
  auto again = Greet();
  again->SendJobs(3, 3);
  const grpc::Status status = again->End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("job id 3 after 3"));
  EXPECT_EQ(engine_.submitted(), 3u);
  auto other = Greet(std::string(16, 'o'));
  other->SendJobs(1, 1);
  EXPECT_EQ(other->Read().jobs(0).verdict(), v1::VERDICT_OK) << "another session begins anew";
}

TEST_F(KeyServiceTest, NamesThatAreNotExactlyOneRoleAreRefused) {
  const std::vector<std::vector<std::string>> bad = {
      {},
      {"spiffe://EXAMPLE.COM/mpc/kdc/a", "spiffe://EXAMPLE.COM/mpc/kdc/b"},
      {"spiffe://EXAMPLE.COM/mpc/kdc/a", "https://example.com"},
      {"spiffe://OTHER.COM/mpc/kdc/a"},
      {"spiffe://EXAMPLE.COM/mpc/root/a"},
      {"spiffe://EXAMPLE.COM/mpc/kdc/a/b"},
      {"spiffe://EXAMPLE.COM/mpc/kdc/"}};
  for (const std::vector<std::string>& uris : bad) {
    TestCertOptions options;
    options.uris = uris;
    EXPECT_EQ(Open(port_.authority().Issue(options))->End().error_code(),
              grpc::StatusCode::PERMISSION_DENIED);
  }
}

TEST_F(KeyServiceTest, DeniedCertificateIsRefusedAndItsStreamEnds) {
  auto kdc = Greet();
  std::ofstream(DenyFile()) << "# stolen\n"
                            << FingerprintText(FingerprintOf(cert_.der)) << " # a\n";
  ASSERT_TRUE(denied_.Load().ok());
  service_->Housekeeping();
  for (const grpc::Status& status : {kdc->End(), Open(cert_)->End()}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_THAT(status.error_message(), HasSubstr("kdc/kdc1 is on this server's deny list"));
  }
  std::ofstream(DenyFile()) << "# nobody\n";
  ASSERT_TRUE(denied_.Load().ok());
  Greet();
}

TEST_F(KeyServiceTest, MalformedDenyListKeepsTheOldOne) {
  std::ofstream(DenyFile()) << FingerprintText(FingerprintOf(cert_.der)) << "\n";
  ASSERT_TRUE(denied_.Load().ok());
  std::ofstream(DenyFile()) << "\nabc\n";
  const absl::Status status = denied_.Load();
  EXPECT_THAT(std::string(status.message()), HasSubstr(DenyFile() + ":2: "));
  EXPECT_TRUE(denied_.Denies(FingerprintOf(cert_.der)));
}

TEST_F(KeyServiceTest, CertificateThatExpiresEndsTheStream) {
  auto kdc = Greet();
  clock_.Advance(absl::Hours(2));
  service_->Housekeeping();
  const grpc::Status status = kdc->End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("expired on"));
}

TEST_F(KeyServiceTest, SilenceInsteadOfHelloEndsTheStream) {
  auto kdc = Open(cert_);
  for (int i = 0; i < 1000 && service_->streams() == 0; ++i) absl::SleepFor(absl::Milliseconds(5));
  clock_.Advance(limits::kHelloTimeout + absl::Seconds(1));
  service_->Housekeeping();
  EXPECT_EQ(kdc->End().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(ReadFileForTest(port_.folder().File("audit.log")),
              HasSubstr("\"kdc\":\"kdc1\",\"reason\":\"no hello within 10s"));
}

TEST_F(KeyServiceTest, FirstMessageMustBeAGoodHello) {
  const auto refused = [&](v1::KdcMessage message) {
    auto kdc = Open(cert_);
    kdc->Send(message);
    return kdc->End();
  };
  v1::KdcMessage jobs;
  jobs.add_jobs()->set_id(1);
  EXPECT_EQ(refused(jobs).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::KdcMessage both = HelloMessage();
  both.add_jobs()->set_id(1);
  EXPECT_EQ(refused(both).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(refused(HelloMessage("short")).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::KdcMessage versions = HelloMessage();
  versions.mutable_hello()->set_min_version(3);
  const grpc::Status status = refused(versions);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("the KDC speaks 3 to 3, this server 2 to 2"));
  v1::KdcMessage realm = HelloMessage();
  realm.mutable_hello()->set_realm("OTHER.COM");
  EXPECT_THAT(refused(realm).error_message(), HasSubstr("OTHER.COM"));
}

// A megabyte of each hello in the log, or in the audit log, is a full disk before anybody looks.
TEST_F(KeyServiceTest, AHelloDoesNotFillLogs) {
  const std::string file = port_.folder().File("server.log"), text(1 << 20, 'x');
  ASSERT_TRUE(StartLog({"info", false, file}).ok());
  v1::KdcMessage program = HelloMessage(), realm = HelloMessage();
  program.mutable_hello()->set_software(text);
  realm.mutable_hello()->set_realm(text);
  for (const v1::KdcMessage& message : {program, realm}) {
    auto kdc = Open(cert_);
    kdc->Send(message);
    const grpc::Status status = kdc->End();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("1048576"));
  }
  for (int i = 0; i < 50; ++i) Greet();
  EXPECT_TRUE(StartLog({}).ok());
  EXPECT_LT(ReadFileForTest(file).size(), 10'000u);
  EXPECT_LT(ReadFileForTest(port_.folder().File("audit.log")).size(), 10'000u);
}

TEST_F(KeyServiceTest, SecondHelloEndsTheStream) {
  auto kdc = Greet();
  kdc->Send(HelloMessage());
  EXPECT_EQ(kdc->End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(KeyServiceTest, MalformedJobIsAnsweredSoAndTheStreamGoesOn) {
  auto kdc = Greet();
  v1::KdcMessage message;
  v1::Job* job = message.add_jobs();
  job->set_id(1);
  job->add_opens()->set_handle("short");
  job = message.add_jobs();
  job->set_id(2);
  for (size_t i = 0; i <= limits::kMaxPartsPerJob; ++i) {
    job->add_seals()->set_handle(std::string(16, 'h'));
  }
  // Longer than the job's digest has room for, which is made before the job is judged.
  job = message.add_jobs();
  job->set_id(3);
  job->add_seals()->set_handle(std::string(16, 'h'));
  job->mutable_seals(0)->set_component_hashes(std::string(1 << 16, 'x'));
  ASSERT_TRUE(kdc->Send(message));
  std::string details;
  for (size_t answers = 0; answers < 3;) {
    const v1::ServerMessage reply = kdc->Read();
    answers += static_cast<size_t>(reply.jobs_size());
    for (const v1::JobAnswer& answer : reply.jobs()) {
      EXPECT_EQ(answer.verdict(), v1::VERDICT_MALFORMED);
      details += answer.detail();
    }
  }
  EXPECT_THAT(details, HasSubstr("the handle of an open has 5 bytes instead of 16"));
  EXPECT_THAT(details, HasSubstr("9 parts, at most 8"));
  EXPECT_THAT(details, HasSubstr("have 65536 bytes instead of 96"));
  EXPECT_EQ(engine_.submitted(), 0u);
  ASSERT_TRUE(kdc->SendJobs(4, 4));
  EXPECT_EQ(kdc->Read().jobs(0).verdict(), v1::VERDICT_OK);
}

TEST_F(KeyServiceTest, RepeatedJobIdEndsTheStreamAlsoAfterReconnecting) {
  auto kdc = Greet();
  ASSERT_TRUE(kdc->SendJobs(7, 9));
  kdc->SendJobs(9, 9);
  const grpc::Status status = kdc->End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("job id 9 after 9"));
  auto again = Greet();
  again->SendJobs(8, 8);
  EXPECT_EQ(again->End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  auto other = Greet(std::string(16, 't'));
  ASSERT_TRUE(other->SendJobs(1, 1)) << "another session counts for itself";
  EXPECT_EQ(other->Read().jobs(0).id(), 1u);
}

TEST_F(KeyServiceTest, NewStreamOfASessionReplacesTheOld) {
  auto old = Greet();
  auto fresh = Greet();
  EXPECT_EQ(old->End().error_code(), grpc::StatusCode::ABORTED);
  ASSERT_TRUE(fresh->SendJobs(1, 1));
  EXPECT_EQ(fresh->Read().jobs_size(), 1);
}

TEST_F(KeyServiceTest, TooManyJobsInAMessageEndTheStream) {
  auto kdc = Greet();
  kdc->SendJobs(1, limits::kMaxJobsPerMessage + 1);
  EXPECT_EQ(kdc->End().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(engine_.submitted(), 0u);
}

TEST_F(KeyServiceTest, OversizedMessageEndsTheStream) {
  auto kdc = Greet();
  v1::KdcMessage message;
  v1::TagRequest* tag = message.add_tags();
  tag->set_ciphertext(std::string(limits::kMaxMessageBytes + 1, 'x'));
  kdc->Send(message);
  EXPECT_EQ(kdc->End().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(KeyServiceTest, DamagedMessageEndsTheStream) {
  auto kdc = Greet();
  v1::KdcMessage message;  // "jobs" that are no Job
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(2, "\xff\xff\xff");
  kdc->Send(message);
  const grpc::Status status = kdc->End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("damaged"));
}

TEST_F(KeyServiceTest, DrainingServerAnswersUnavailable) {
  auto kdc = Greet();
  service_->Drain();
  ASSERT_TRUE(kdc->SendJobs(1, 1));
  EXPECT_EQ(kdc->Read().jobs(0).verdict(), v1::VERDICT_UNAVAILABLE);
  EXPECT_EQ(Open(cert_)->End().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(KeyServiceTest, KdcThatVanishesLeavesNothingBehind) {
  engine_.set_hold(true);
  {
    auto kdc = Greet();
    ASSERT_TRUE(kdc->SendJobs(1, 50));
    ASSERT_TRUE(engine_.WaitForSubmitted(50));
    kdc->context.TryCancel();
    kdc->End();
  }
  engine_.Release();  // answers for a stream that is gone
  for (int i = 0; i < 1000 && service_->streams() > 0; ++i) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(service_->streams(), 0u);
}

}  // namespace
}  // namespace mpckdc
