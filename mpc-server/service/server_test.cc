// SPDX-License-Identifier: Apache-2.0
//
// The whole server: what stops it from starting and what it says then; and three of them together.
#include "mpc-server/service/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/key/output_format.h"
#include "mpc-server/agree/quarantine.h"
#include "mpc-server/service/health_probe.h"
#include "mpc-server/service/log.h"
#include "mpc-server/service/tls13.h"
#include "mpc-server/store/lmdb.h"
#include "mpc-server/testing/free_port.h"
#include "mpc-server/testing/service_fixture.h"
#include "proto/admin.grpc.pb.h"
#include "proto/health.grpc.pb.h"
#include "proto/kdc_key.grpc.pb.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

class ServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(RequireTls13().ok()); }

  void SetUp() override {
    std::ofstream(folder_.File("ca.pem")) << authority_.ca_pem();
    for (std::string& peer : peers_) peer = FreeLoopbackAddress();
    for (int party = 0; party < 3; ++party) {
      const std::string name = absl::StrCat("p", party);
      WriteCert(folder_.path(), name, authority_.IssueRole("peer", name));
    }
  }

  Config ConfigOf(int party) const {
    Config config;
    config.realm = "EXAMPLE.COM";
    config.party = party;
    config.data_dir = folder_.File(absl::StrCat("data", party));
    const std::string name = absl::StrCat("p", party);
    config.identity = {folder_.File(name + ".pem"), folder_.File(name + ".key"),
                       folder_.File("ca.pem"), ""};
    config.listen = {"127.0.0.1:0", peers_[static_cast<size_t>(party)]};
    config.peers.addresses = peers_;
    config.store.key_file = folder_.File(name + ".store");
    config.store.create_key = true;
    config.store.map_size_gib = 1;
    config.audit.file = folder_.File(name + ".audit");
    config.quota = QuotaRates();
    return config;
  }

  void ExpectCannotStart(const Config& config, const std::string& text) {
    const absl::Status status = Server::Start(config).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  // Puts another certificate in party 0's place.
  void Replace(const TestCert& cert) { WriteCert(folder_.path(), "p0", cert); }

  TestFolder folder_;
  TestAuthority authority_;
  std::array<std::string, 3> peers_;
};

TEST_F(ServerTest, StartsAloneReloadsAndStops) {
  auto server = Server::Start(ConfigOf(0));
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_GT((*server)->client_port(), 0);
  (*server)->Reload();
  (*server)->Stop();
  const std::string audit = ReadFileForTest(folder_.File("p0.audit"));
  EXPECT_THAT(audit, HasSubstr("\"kind\":\"start\""));
  EXPECT_THAT(audit, HasSubstr("\"kind\":\"stop\""));
}

// Systemd's end of $NOTIFY_SOCKET.
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& path)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    struct sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<struct sockaddr*>(&address), sizeof address), 0);
    setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~NotifySocket() {
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    close(fd_);
  }
  std::string Next(int seconds) {
    const struct timeval patience = {seconds, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char text[256];
    const ssize_t length = recv(fd_, text, sizeof text, 0);
    return std::string(text, length < 0 ? 0 : static_cast<size_t>(length));
  }

 private:
  int fd_;
};

TEST_F(ServerTest, FeedsTheWatchdogWhereThereIsOne) {
  NotifySocket systemd(folder_.File("notify"));
  {
    auto server = *Server::Start(ConfigOf(0));
    EXPECT_EQ(systemd.Next(20), "STATUS=waits for the other two servers");
    EXPECT_EQ(systemd.Next(2), "") << "nobody asked for it";
  }
  setenv("WATCHDOG_USEC", "60000000", 1);
  auto server = *Server::Start(ConfigOf(0));
  EXPECT_EQ(systemd.Next(20), "WATCHDOG=1");
  EXPECT_EQ(systemd.Next(20), "STATUS=waits for the other two servers");
  EXPECT_EQ(systemd.Next(20), "WATCHDOG=1");
}

TEST_F(ServerTest, CheckAcceptsWhatWouldStartAndChangesNothing) {
  EXPECT_TRUE(Server::Check(ConfigOf(0)).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.File("data0")));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("p0.store")));
}

TEST_F(ServerTest, WrongRoleOrNameOfTheCertificate) {
  Replace(authority_.IssueRole("kdc", "p0"));
  ExpectCannotStart(ConfigOf(0), "mpc/kdc/p0, expected role peer");
  Replace(authority_.IssueRole("peer", "p1"));
  ExpectCannotStart(ConfigOf(0), "certificate of peer p1; party 0 is configured as peer p0");
}

TEST_F(ServerTest, ExpiredCertificate) {
  TestCertOptions options;
  options.ends = -absl::Minutes(1);
  Replace(authority_.Issue(options));
  ExpectCannotStart(ConfigOf(0), "expired on");
}

TEST_F(ServerTest, KeyOfAnotherCertificate) {
  TestCert cert = authority_.IssueRole("peer", "p0");
  cert.key_pem = authority_.IssueRole("peer", "p0").key_pem;
  Replace(cert);
  ExpectCannotStart(ConfigOf(0), "does not belong to the certificate");
}

TEST_F(ServerTest, CertificateOfAnotherAuthority) {
  Replace(TestAuthority().IssueRole("peer", "p0"));
  ExpectCannotStart(ConfigOf(0), "not trusted");
}

TEST_F(ServerTest, PrivateKeyThatOthersCanRead) {
  ASSERT_EQ(chmod(folder_.File("p0.key").c_str(), 0644), 0);
  ExpectCannotStart(ConfigOf(0), "chmod 0600");
}

TEST_F(ServerTest, StoreKeyThatOthersCanRead) {
  { auto server = *Server::Start(ConfigOf(0)); }
  ASSERT_EQ(chmod(folder_.File("p0.store").c_str(), 0640), 0);
  ExpectCannotStart(ConfigOf(0), "chmod 0600");
}

TEST_F(ServerTest, LostStoreKeyIsNotReplaced) {
  { auto server = *Server::Start(ConfigOf(0)); }
  ASSERT_EQ(unlink(folder_.File("p0.store").c_str()), 0);
  ExpectCannotStart(ConfigOf(0), "restore the file");
  Config config = ConfigOf(1);
  config.store.create_key = false;
  ExpectCannotStart(config, "create_key = true");
}

TEST_F(ServerTest, StoreOfAnotherParty) {
  { auto server = *Server::Start(ConfigOf(0)); }
  Config config = ConfigOf(1);
  config.data_dir = folder_.File("data0");
  config.store.key_file = folder_.File("p0.store");
  ExpectCannotStart(config, "realm EXAMPLE.COM, party 0, cluster 1; the configuration says realm "
                            "EXAMPLE.COM, party 1");
}

TEST_F(ServerTest, SecondServerOnOneDataDirectory) {
  auto server = *Server::Start(ConfigOf(0));
  ExpectCannotStart(ConfigOf(0), "another mpc-server");
}

TEST_F(ServerTest, PortInUse) {
  auto server = *Server::Start(ConfigOf(0));
  Config config = ConfigOf(1);
  config.listen.clients = absl::StrCat("127.0.0.1:", server->client_port());
  ExpectCannotStart(config, absl::StrCat("cannot listen for clients on ", config.listen.clients));
  config = ConfigOf(1);
  config.listen.peers = peers_[0];
  ExpectCannotStart(config, peers_[0]);
}

// ---- Three servers ----

class ThreeServersTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    admin_ = authority_.IssueRole("admin", "root");
    for (size_t party = 0; party < 3; ++party) {
      servers_[party] = *Server::Start(ConfigOf(static_cast<int>(party)));
      stubs_[party] = v1::AdminService::NewStub(
          TestPort::ConnectTo(servers_[party]->client_port(), authority_, &admin_));
    }
  }

  template <class Request, class Reply>
  std::array<Reply, 3> CallAll(grpc::Status (v1::AdminService::Stub::*method)(
                                   grpc::ClientContext*, const Request&, Reply*),
                               const Request& request) {
    std::array<Reply, 3> replies;
    std::vector<std::thread> threads;
    for (size_t party = 0; party < 3; ++party) {
      threads.emplace_back([&, party] {
        grpc::ClientContext context;
        context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
        const grpc::Status status =
            (stubs_[party].get()->*method)(&context, request, &replies[party]);
        EXPECT_TRUE(status.ok()) << "party " << party << ": " << status.error_message();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return replies;
  }

  void WaitUntilConnected() {
    v1::StatusRequest request;
    request.set_max_version(1);
    for (int i = 0; i < 300; ++i) {
      const auto replies = CallAll(&v1::AdminService::Stub::GetStatus, request);
      if (replies[0].peers_connected() && replies[1].peers_connected() &&
          replies[2].peers_connected()) {
        return;
      }
      absl::SleepFor(absl::Milliseconds(100));
    }
    FAIL() << "the servers did not connect";
  }

  void InitRealm() {
    WaitUntilConnected();
    v1::InitRealmRequest init;
    init.set_realm("EXAMPLE.COM");
    init.set_cluster(1);
    CallAll(&v1::AdminService::Stub::InitRealm, init);
  }
  // A key that nobody knows; returns its handle.
  std::string Draw(const std::string& principal, v1::KeyClass key_class, v1::Gate gate) {
    v1::DrawKeyRequest draw;
    draw.set_transaction(Sixteen(principal));
    draw.mutable_info()->set_handle(draw.transaction());
    draw.mutable_info()->set_principal(principal);
    draw.mutable_info()->set_kvno(1);
    draw.mutable_info()->set_enctype(kEnctypeAes256Gcm);
    draw.mutable_info()->set_key_class(key_class);
    draw.mutable_info()->set_gate(gate);
    CallAll(&v1::AdminService::Stub::DrawKey, draw);
    v1::CommitKeysRequest commit;
    commit.set_transaction(draw.transaction());
    CallAll(&v1::AdminService::Stub::CommitKeys, commit);
    return draw.info().handle();
  }
  static std::string Sixteen(std::string text) {
    text.resize(16, '.');
    return text;
  }

  TestCert admin_;
  std::array<std::unique_ptr<Server>, 3> servers_;
  std::array<std::unique_ptr<v1::AdminService::Stub>, 3> stubs_;
};

TEST_F(ThreeServersTest, DrawAndVerifyATicketKeyThatNobodyKnows) {
  InitRealm();
  v1::DrawKeyRequest draw;
  draw.set_transaction(std::string(16, 't'));
  draw.mutable_info()->set_handle(std::string(16, 'k'));
  draw.mutable_info()->set_principal("krbtgt/EXAMPLE.COM@EXAMPLE.COM");
  draw.mutable_info()->set_kvno(1);
  draw.mutable_info()->set_enctype(kEnctypeAes256Gcm);
  draw.mutable_info()->set_key_class(v1::KEY_CLASS_TGS);
  draw.mutable_info()->set_gate(v1::GATE_TIMESTAMP);
  CallAll(&v1::AdminService::Stub::DrawKey, draw);
  v1::CommitKeysRequest commit;
  commit.set_transaction(draw.transaction());
  for (const v1::CommitKeysReply& reply : CallAll(&v1::AdminService::Stub::CommitKeys, commit)) {
    EXPECT_EQ(reply.keys(), 1u);
  }
  v1::VerifyKeysRequest verify;
  verify.set_request(std::string(16, 'v'));
  verify.add_handles(draw.info().handle());
  for (const v1::VerifyKeysReply& reply : CallAll(&v1::AdminService::Stub::VerifyKeys, verify)) {
    ASSERT_EQ(reply.results_size(), 1);
    EXPECT_TRUE(reply.results(0).consistent()) << reply.results(0).detail();
  }
}

// Over real connections: a server that is quarantined tells the others why before it closes, and
// an administrator ends it. What it saw is put into its store while it is down.
TEST_F(ThreeServersTest, AQuarantinedServerTellsTheOthersWhyUntilItIsReadmitted) {
  InitRealm();
  servers_[1].reset();
  {
    const Config config = ConfigOf(1);
    auto store = ShareStore::Open(*LmdbEngine::Open(config.data_dir, 1ull << 30),
                                  {{config.realm, config.party, config.cluster},
                                   *StoreKeys::Load(config.store.key_file),
                                   &SystemRandom()});
    ASSERT_TRUE(store.ok()) << store.status();
    const DeviationReport report{Suspects::Neighbours(1), "two stories", {1}, 7, absl::Now()};
    ASSERT_TRUE((*store)->WriteItem("quarantine", AsBytes(EncodeReport(report))).ok());
  }
  const std::string log = folder_.File("server.log");
  ASSERT_TRUE(StartLog({"info", false, log}).ok());
  servers_[1] = *Server::Start(ConfigOf(1));
  stubs_[1] = v1::AdminService::NewStub(
      TestPort::ConnectTo(servers_[1]->client_port(), authority_, &admin_));
  v1::StatusRequest request;
  request.set_max_version(1);
  EXPECT_EQ(CallAll(&v1::AdminService::Stub::GetStatus, request)[1].quarantine().text(),
            "two stories");
  const auto told = [&] {  // by each of the two others, in its own words
    const std::string text = ReadFileForTest(log);
    return absl::StrContains(text, R"(next (P1) in step "receive": P1: quarantined since)") &&
           absl::StrContains(text, R"(prev (P1) in step "receive": P1: quarantined since)");
  };
  for (int i = 0; i < 200 && !told(); ++i) absl::SleepFor(absl::Milliseconds(100));
  EXPECT_TRUE(told()) << ReadFileForTest(log);
  const auto ended = CallAll(&v1::AdminService::Stub::Readmit, v1::ReadmitRequest());
  EXPECT_TRUE(ended[1].has_ended());
  EXPECT_FALSE(ended[0].has_ended());
  WaitUntilConnected();
  ASSERT_TRUE(StartLog({}).ok());
}

// ---- Health ----

grpc::Status AskHealth(int port, const TestAuthority& authority, const TestCert& cert,
                       const std::string& service, grpc::health::v1::HealthCheckResponse* reply) {
  const auto stub = grpc::health::v1::Health::NewStub(TestPort::ConnectTo(port, authority, &cert));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  return stub->Check(&context, request, reply);
}

TEST_F(ThreeServersTest, HealthIsToldToCertificatesOfTheRealm) {
  const int port = servers_[0]->client_port();
  grpc::health::v1::HealthCheckResponse reply;
  for (const char* role : {"kdc", "admin", "peer"}) {
    const TestCert cert = authority_.IssueRole(role, "x");
    EXPECT_TRUE(AskHealth(port, authority_, cert, "", &reply).ok());
    EXPECT_EQ(reply.status(), grpc::health::v1::HealthCheckResponse::SERVING);
    EXPECT_TRUE(AskHealth(port, authority_, cert, "mpckdc.v1.KeyService", &reply).ok());
    EXPECT_EQ(reply.status(), grpc::health::v1::HealthCheckResponse::NOT_SERVING) << "no realm yet";
    EXPECT_EQ(AskHealth(port, authority_, cert, "another", &reply).error_code(),
              grpc::StatusCode::NOT_FOUND);
  }
  // Of the same authority, and nobody of this realm.
  for (const char* uri : {"spiffe://OTHER.ORG/mpc/kdc/x", "spiffe://EXAMPLE.COM/web/server"}) {
    const TestCert cert = authority_.Issue({.uris = {uri}});
    EXPECT_EQ(AskHealth(port, authority_, cert, "", &reply).error_code(),
              grpc::StatusCode::PERMISSION_DENIED);
  }
  EXPECT_THAT(ReadFileForTest(folder_.File("p0.audit")), HasSubstr("\"call\":\"Health.Check\""));
}

TEST_F(ThreeServersTest, TheProbeSaysWhetherLoginsAreServed) {
  Config config = ConfigOf(0);
  config.listen.clients = absl::StrCat("0.0.0.0:", servers_[0]->client_port());
  EXPECT_TRUE(ProbeHealth(config, Health::kAlive).ok());
  EXPECT_THAT(std::string(ProbeHealth(config, Health::kServes).message()),
              HasSubstr("does not serve logins"));
  InitRealm();
  EXPECT_TRUE(ProbeHealth(config, Health::kServes).ok()) << ProbeHealth(config, Health::kServes);
  servers_[1].reset();
  for (int i = 0; i < 100 && ProbeHealth(config, Health::kServes).ok(); ++i) {
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_FALSE(ProbeHealth(config, Health::kServes).ok()) << "a peer is gone";
  EXPECT_TRUE(ProbeHealth(config, Health::kAlive).ok()) << "restarting this one would not help";
  config.listen.clients = absl::StrCat("127.0.0.1:", servers_[2]->client_port());
  EXPECT_THAT(std::string(ProbeHealth(config, Health::kAlive).message()),
              HasSubstr("another server answers"));
  servers_[0].reset();
  config.listen.clients = FreeLoopbackAddress();
  EXPECT_THAT(std::string(ProbeHealth(config, Health::kAlive).message()), HasSubstr("no answer"));
}

// ---- A KDC of the three ----

// One stream to each server, with hello and welcome exchanged.
class KdcStreams {
 public:
  KdcStreams(const std::array<std::unique_ptr<Server>, 3>& servers,
             const TestAuthority& authority) {
    const TestCert cert = authority.IssueRole("kdc", "kdc1");
    v1::KdcMessage hello;
    hello.mutable_hello()->set_min_version(limits::kMinKdcVersion);
    hello.mutable_hello()->set_max_version(limits::kMaxKdcVersion);
    hello.mutable_hello()->set_session(std::string(16, 's'));
    hello.mutable_hello()->set_realm("EXAMPLE.COM");
    for (size_t p = 0; p < 3; ++p) {
      stubs_[p] =
          v1::KeyService::NewStub(TestPort::ConnectTo(servers[p]->client_port(), authority, &cert));
      contexts_[p].set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(120)));
      streams_[p] = stubs_[p]->Serve(&contexts_[p]);
      EXPECT_TRUE(streams_[p]->Write(hello));
      EXPECT_TRUE(Read(p).has_welcome());
    }
  }

  void Send(const v1::KdcMessage& message) {
    for (auto& stream : streams_) EXPECT_TRUE(stream->Write(message));
  }
  v1::ServerMessage Read(size_t party) {
    v1::ServerMessage message;
    if (!streams_[party]->Read(&message)) {
      ADD_FAILURE() << "P" << party << ": " << streams_[party]->Finish().error_message();
    }
    return message;
  }

 private:
  using Stream = grpc::ClientReaderWriter<v1::KdcMessage, v1::ServerMessage>;
  std::array<std::unique_ptr<v1::KeyService::Stub>, 3> stubs_;
  std::array<grpc::ClientContext, 3> contexts_;
  std::array<std::unique_ptr<Stream>, 3> streams_;
};

absl::Span<uint8_t> Writable(std::string& bytes) {
  return {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()};
}

// A TGT of a client that needs no pre-authentication.
std::string LogIn(KdcStreams& kdc, const std::string& client, const std::string& krbtgt,
                  size_t size) {
  v1::KdcMessage message;
  v1::Job* job = message.add_jobs();
  job->set_id(1);
  job->set_operation(v1::OPERATION_LOGIN);
  job->set_client(client);
  v1::Seal* seal = job->add_seals();
  seal->set_handle(krbtgt);
  seal->set_usage(2);
  seal->set_max_plaintext(static_cast<uint32_t>(size));
  kdc.Send(message);
  v1::SealAnswer seal_answer;
  std::string ciphertext = std::string(16, '\0') + std::string(size, 't');
  OutputJoiner seals, tags;
  for (int p = 0; p < 3; ++p) {
    const v1::JobAnswer answer = kdc.Read(static_cast<size_t>(p)).jobs(0);
    EXPECT_EQ(answer.verdict(), v1::VERDICT_OK) << answer.detail();
    if (answer.seals_size() != 1) continue;
    seal_answer = answer.seals(0);
    OutputJoiner::Answer(seals, p, *DecodeAnswerKeys(answer.keys()))
        .Add(OutputNumber(OutputField::kSeal, 0), seal_answer.keystream_share(),
             Writable(ciphertext));
  }
  EXPECT_TRUE(seals.Contradictions().empty());
  message.Clear();
  message.add_tags()->set_job(1);
  message.mutable_tags(0)->set_ciphertext(ciphertext);
  kdc.Send(message);
  std::string tag(16, '\0');
  for (int p = 0; p < 3; ++p) {
    const v1::TagAnswer answer = kdc.Read(static_cast<size_t>(p)).tags(0);
    OutputJoiner::Answer(tags, p, *DecodeAnswerKeys(answer.keys()))
        .Add(OutputNumber(OutputField::kTag, 0), answer.tag_share(), Writable(tag));
  }
  EXPECT_TRUE(tags.Contradictions().empty());
  const std::string& header = seal_answer.header();
  return seal_answer.nonce() + static_cast<char>(header.size()) + header + ciphertext + tag;
}

// Tickets with a PAC, all of one batch: together several times what one message may hold.
TEST_F(ThreeServersTest, ThousandsOfLongTicketsEndNoStream) {
  constexpr int kTickets = 4000, kTicketBytes = 1300;
  InitRealm();
  const std::string krbtgt =
      Draw("krbtgt/EXAMPLE.COM@EXAMPLE.COM", v1::KEY_CLASS_TGS, v1::GATE_NONE);
  const std::string service =
      Draw("kadmin/admin@EXAMPLE.COM", v1::KEY_CLASS_SERVICE, v1::GATE_NONE);
  const std::string guest = Draw("guest@EXAMPLE.COM", v1::KEY_CLASS_USER, v1::GATE_NONE);
  KdcStreams kdc(servers_, authority_);
  const std::string tgt = LogIn(kdc, guest, krbtgt, 166);
  v1::KdcMessage message;
  for (int i = 0; i < kTickets; ++i) {
    v1::Job* job = message.add_jobs();
    job->set_id(static_cast<uint64_t>(2 + i));
    job->set_operation(v1::OPERATION_REISSUE_TICKET);
    job->set_deadline_ms(30'000);
    v1::Open* open = job->add_opens();
    open->set_handle(krbtgt);
    open->set_usage(2);
    open->set_message(tgt);
    v1::Seal* seal = job->add_seals();
    seal->set_handle(service);
    seal->set_usage(2);
    seal->set_max_plaintext(kTicketBytes);
  }
  kdc.Send(message);
  // Two are not read meanwhile: what they have to say gathers.
  for (size_t p = 0; p < 3; ++p) {
    size_t bytes = 0, messages = 0, longest = 0;
    int good = 0, answers = 0;
    for (; answers < kTickets && !HasFailure(); ++messages) {
      const v1::ServerMessage got = kdc.Read(p);
      bytes += got.ByteSizeLong();
      longest = std::max(longest, got.ByteSizeLong());
      answers += got.jobs_size();
      for (const v1::JobAnswer& answer : got.jobs()) good += answer.verdict() == v1::VERDICT_OK;
    }
    EXPECT_EQ(good, kTickets);
    EXPECT_GT(bytes, limits::kMaxMessageBytes);
    EXPECT_LE(longest, limits::kMaxAnswerBytes * 11 / 10);
    EXPECT_LT(messages, 1000u) << "answers leave together";
    std::printf("P%zu: %zu bytes in %zu messages, the longest %zu\n", p, bytes, messages, longest);
  }
}

TEST_F(ThreeServersTest, StopsWhileAKeyIsBeingDrawn) {
  InitRealm();
  v1::DrawKeyRequest draw;  // asked of one server only: waits for the others
  draw.set_transaction(std::string(16, 't'));
  draw.mutable_info()->set_handle(std::string(16, 'k'));
  draw.mutable_info()->set_principal("alice@EXAMPLE.COM");
  draw.mutable_info()->set_kvno(1);
  draw.mutable_info()->set_enctype(kEnctypeAes128Gcm);
  draw.mutable_info()->set_key_class(v1::KEY_CLASS_USER);
  draw.mutable_info()->set_gate(v1::GATE_TIMESTAMP);
  grpc::Status status;
  std::thread call([&] {
    grpc::ClientContext context;
    v1::DrawKeyReply reply;
    status = stubs_[1]->DrawKey(&context, draw, &reply);
  });
  absl::SleepFor(absl::Milliseconds(300));
  servers_[1]->Stop();
  call.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
}

}  // namespace
}  // namespace mpckdc
