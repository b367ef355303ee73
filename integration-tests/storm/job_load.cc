// SPDX-License-Identifier: Apache-2.0
//
// Login jobs in a closed loop, as krb5kdc sends them: job, ciphertexts, tags.
//
//     users' keys of GCM                                  of 17 to 20
//     submit LOGIN (open 1, seal 2, seal 3, mac 56)       submit LOGIN (open 1, seal 2, mac 56)
//       -> result: keystreams -> two ciphertexts            -> result: keystream -> ciphertext
//            -> two tag requests                                 -> tag request, and
//                                                                submit SEAL_GRANTED (seal 3)
//            -> both have come: the login is done -> the next one
//                 a sample: first compared with the oracle, its ticket opened by a job OPEN_TICKET
#include "integration-tests/storm/run.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "integration-tests/storm/job_oracle.h"
#include "integration-tests/storm/kerberos.h"
#include "integration-tests/storm/limits.h"
#include "integration-tests/storm/users.h"
#include "kdc-plugin/client/mpc_client.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc::storm {
namespace {

constexpr size_t kTicketSeal = 0, kReplySeal = 1, kSeals = 2;

// By mpc_verdict.
constexpr const char* kVerdictNames[] = {"OK",     "BAD_TAG", "CLOCK_SKEW",
                                         "REPLAY", "REFUSED", "UNAVAILABLE"};

mpc_bytes AsMpc(Bytes bytes) { return {bytes.data(), bytes.size()}; }

class JobLoad : public Load {
 public:
  JobLoad(const Options& options, std::vector<User>& users, const RealmHandles& handles,
          Control& control)
      : o_(options), handles_(handles), control_(control) {
    for (User& user : users) free_users_.push_back(&user);
  }
  ~JobLoad() override;

  absl::Status Start();
  // Logins that fail at once are begun again here, not in a callback.
  void Tick() override;
  bool HasEnded() const override { return control_.in_flight == 0; }  // each job has a timeout
  absl::Status End(std::vector<Tally>& tallies, Series& series) override;

 private:
  // One login under way. Its callbacks come one after the other, but for the last two: both tags,
  // or the ticket's tag and the reply.
  struct Flight {
    struct Seal {
      Flight* flight = nullptr;
      std::vector<uint8_t> ciphertext;
      std::array<uint8_t, MPC_TAG_BYTES> tag{};
      mpc_verdict verdict = MPC_OK;
    };

    JobLoad* load = nullptr;
    mpc_client* client = nullptr;
    JobLogin login;
    bool check = false;
    int stage = 0;
    absl::Time submitted;
    absl::Time answered;
    absl::Time sealed;            // all has come
    bool compared = false;        // with the oracle
    bool ticket_opened = false;   // by the servers
    mpc_result* result = nullptr;
    mpc_result* reply = nullptr;  // of 17 to 20
    std::array<Seal, kSeals> seals;
    std::atomic<int> awaited{0};
  };

  void Begin(Flight* flight);
  void Fill(Flight* flight);
  static void OnJob(void* arg, mpc_result* result);
  static void OnTag(void* arg, mpc_verdict verdict, const uint8_t* tag, const char* detail);
  static void OnReply(void* arg, mpc_result* result);
  static void OnTicketOpened(void* arg, mpc_result* result);
  void AskForTags(Flight* flight);
  void Arrived(Flight* flight) {
    if (flight->awaited.fetch_sub(1) == 1) Finish(flight);
  }
  void Finish(Flight* flight);
  // Under users' keys of enctypes 17 to 20 replies are sealed by jobs of their own.
  size_t seals() const { return gcm_ ? 2 : 1; }
  void End(Flight* flight, mpc_verdict verdict, const std::string& complaint);

  const Options& o_;
  const RealmHandles& handles_;
  Control& control_;
  const bool gcm_ = FindEnctype(handles_.user_enctype)->is_gcm();  // the users' keys
  Principal tgs_name_;
  std::vector<mpc_client*> clients_;
  std::vector<std::unique_ptr<Flight>> flights_;
  const absl::Time begin_ = MonotonicNow();

  absl::Mutex mu_;
  std::deque<const User*> free_users_ ABSL_GUARDED_BY(mu_);  // a key serves one login at a time
  std::vector<Flight*> parked_ ABSL_GUARDED_BY(mu_);         // to begin at the next Tick()
  uint64_t number_ ABSL_GUARDED_BY(mu_) = 0;                 // of the next login
  std::vector<Tally> tallies_ ABSL_GUARDED_BY(mu_) =
      std::vector<Tally>(StagesOf(o_).size() + 1);           // by stage
  Series series_ ABSL_GUARDED_BY(mu_);
};

JobLoad::~JobLoad() {
  for (mpc_client* client : clients_) mpc_client_stop(client);  // fails what is pending
}

absl::Status JobLoad::Start() {
  ASSIGN_OR_RETURN(tgs_name_, TgsName(o_.realm));
  for (int i = 0; i < o_.clients; ++i) {
    mpc_options options = {};
    options.realm = o_.realm.c_str();
    for (int s = 0; s < MPC_SERVERS; ++s) options.servers[s] = o_.servers[s].c_str();
    options.ca_file = o_.ca.c_str();
    options.certificate_file = o_.certificate.c_str();
    options.key_file = o_.key.c_str();
    options.cluster = -1;
    options.timeout_ms = static_cast<uint32_t>(absl::ToInt64Milliseconds(o_.timeout));
    char* error = nullptr;
    mpc_client* client = mpc_client_start(&options, &error);
    if (client == nullptr) {
      absl::Status s = absl::InvalidArgumentError(error);
      mpc_text_free(error);
      return s;
    }
    clients_.push_back(client);
  }
  absl::MutexLock lock(&mu_);
  for (size_t i = 0; i < o_.in_flight; ++i) {
    flights_.push_back(std::make_unique<Flight>());
    Flight* flight = flights_.back().get();
    flight->load = this;
    flight->client = clients_[i % clients_.size()];
    for (Flight::Seal& seal : flight->seals) seal.flight = flight;
    flight->login.ticket_plain.assign(o_.ticket_bytes, 't');
    flight->login.reply_plain.assign(o_.reply_bytes, 'r');
    parked_.push_back(flight);
  }
  return absl::OkStatus();
}

void JobLoad::Tick() {
  std::vector<Flight*> flights;
  {
    absl::MutexLock lock(&mu_);
    flights.swap(parked_);
  }
  for (Flight* flight : flights) Begin(flight);
}

void JobLoad::Begin(Flight* flight) {
  uint64_t number = 0;
  {
    absl::MutexLock lock(&mu_);
    if (control_.stop || control_.stage == kNoStage || free_users_.empty() ||
        !control_.MayBegin()) {
      parked_.push_back(flight);
      return;
    }
    flight->login.user = free_users_.front();
    free_users_.pop_front();
    number = number_++;
    flight->stage = control_.stage;
    ++tallies_[flight->stage].started;
  }
  ++control_.started;
  // Rounded down: not fewer than asked for.
  flight->check = number % static_cast<uint64_t>(1 / o_.check) == 0;
  flight->compared = false;
  flight->ticket_opened = false;
  // Every login's plaintexts are its own, as far as they are long enough.
  for (std::vector<uint8_t>* plain : {&flight->login.ticket_plain, &flight->login.reply_plain}) {
    memcpy(plain->data(), &number, std::min(plain->size(), sizeof number));
  }
  Fill(flight);
  const Handle& handle = handles_.users.at(flight->login.principal);
  const int32_t own = handles_.user_enctype, krbtgt = handles_.krbtgt_enctype;
  const mpc_open open = {handle.data(), kUsageTimestamp, AsMpc(flight->login.preauth), own};
  const mpc_seal seals[kSeals] = {
      {handles_.krbtgt.data(), 2, o_.ticket_bytes, krbtgt, {nullptr, 0}},
      {handle.data(), kUsageAsReply, o_.reply_bytes, own, {nullptr, 0}}};
  const mpc_make_mac mac = {handle.data(), kUsageAsRequest, AsMpc(flight->login.as_request), own};
  const mpc_job job = {MPC_LOGIN,     handle.data(), 0,       &open, seals,
                       this->seals(), &mac,          nullptr, 0,     0, {}, {}, 0};
  flight->submitted = MonotonicNow();
  mpc_client_submit(flight->client, &job, OnJob, flight);
}

// The pre-authentication and the AS-REQ around it.
void JobLoad::Fill(Flight* flight) {
  JobLogin& login = flight->login;
  const User& user = *login.user;
  login.principal = absl::StrCat(user.principal, "@", o_.realm);
  uint8_t cipher[256];
  const int64_t now = absl::ToUnixMicros(absl::Now());
  const Encoded timestamp = EncodeTimestamp(now);
  login.timestamp.assign(timestamp->data, timestamp->data + timestamp->length);
  const Bytes preauth = user.key.Encrypt(kUsageTimestamp, login.timestamp, absl::MakeSpan(cipher));
  login.preauth.assign(preauth.begin(), preauth.end());
  const int32_t enctypes[] = {user.key.enctype(), ENCTYPE_AES256_CTS_HMAC_SHA1_96};
  const krb5_kdc_req body =
      RequestBody(user.name, tgs_name_, enctypes, now, static_cast<uint32_t>(now & 0x7fffffff));
  const Encoded request = EncodeAsRequest(body, AsEncData(user.key.enctype(), preauth), true);
  login.as_request.assign(request->data, request->data + request->length);
}

void JobLoad::OnJob(void* arg, mpc_result* result) {
  auto* flight = static_cast<Flight*>(arg);
  flight->result = result;
  flight->answered = MonotonicNow();
  if (result->verdict != MPC_OK) {
    flight->load->End(flight, result->verdict, result->detail == nullptr ? "" : result->detail);
  } else if (result->seal_count != flight->load->seals()) {
    flight->load->End(flight, MPC_OK, "a result with another number of seals");
  } else {
    flight->load->AskForTags(flight);
  }
}

// Of users' keys of GCM two tags; else the ticket's tag and the reply, which is sealed by a job of
// its own, in one message to each server, as krb5kdc does.
void JobLoad::AskForTags(Flight* flight) {
  const JobLogin& login = flight->login;
  const mpc_result& result = *flight->result;
  const Handle& handle = handles_.users.at(login.principal);
  const mpc_seal reply = {handle.data(), kUsageAsReply, o_.reply_bytes, handles_.user_enctype,
                          AsMpc(login.reply_plain)};
  mpc_job job = {MPC_SEAL_GRANTED, handle.data(), result.id, nullptr, &reply, 1,
                 nullptr,          nullptr,       0,         0, {}, {}, 0};
  const std::vector<uint8_t>* const plaintexts[kSeals] = {&login.ticket_plain, &login.reply_plain};
  // After the last request the flight may be gone.
  const uint64_t id = result.id;
  const size_t tags = seals();
  mpc_client* const client = flight->client;
  for (size_t i = 0; i < tags; ++i) {
    flight->seals[i].ciphertext = SealCiphertext(result.seals[i], *plaintexts[i]);
  }
  flight->awaited = kSeals;
  if (tags < kSeals) mpc_client_begin_burst(client);
  for (uint32_t i = 0; i < tags; ++i) {
    Flight::Seal& seal = flight->seals[i];
    mpc_client_request_tag(client, id, i, AsMpc(seal.ciphertext), 0, OnTag, &seal);
  }
  if (tags == kSeals) return;
  mpc_client_submit(client, &job, OnReply, flight);
  mpc_client_end_burst(client);
}

void JobLoad::OnTag(void* arg, mpc_verdict verdict, const uint8_t* tag, const char*) {
  auto* seal = static_cast<Flight::Seal*>(arg);
  Flight* flight = seal->flight;
  seal->verdict = verdict;
  if (tag != nullptr) std::copy(tag, tag + MPC_TAG_BYTES, seal->tag.begin());
  flight->load->Arrived(flight);
}

void JobLoad::OnReply(void* arg, mpc_result* result) {
  auto* flight = static_cast<Flight*>(arg);
  flight->reply = result;
  Flight::Seal& seal = flight->seals[kReplySeal];
  seal.verdict = result->verdict;
  if (result->verdict == MPC_OK) {
    const mpc_bytes message = result->seals[0].message;
    flight->login.reply.assign(message.data, message.data + message.size);
  }
  flight->load->Arrived(flight);
}

void JobLoad::Finish(Flight* flight) {
  flight->sealed = MonotonicNow();
  for (const Flight::Seal& seal : flight->seals) {
    if (seal.verdict == MPC_OK) continue;
    return End(flight, seal.verdict,
               flight->reply != nullptr ? flight->reply->detail : "a tag was not made");
  }
  if (!flight->check) return End(flight, MPC_OK, "");
  JobLogin& login = flight->login;
  const auto message = [&](size_t i) {
    const Flight::Seal& seal = flight->seals[i];
    return SealedMessage(flight->result->seals[i], seal.ciphertext, seal.tag);
  };
  login.ticket = message(kTicketSeal);
  if (gcm_) login.reply = message(kReplySeal);
  const std::string wrong =
      CompareWithOracle(login, *flight->result, absl::ToUnixSeconds(absl::Now()));
  flight->compared = true;
  if (!wrong.empty()) return End(flight, MPC_OK, wrong);
  const mpc_open open = {handles_.krbtgt.data(), 2, AsMpc(login.ticket), handles_.krbtgt_enctype};
  mpc_job job = {};
  job.operation = MPC_OPEN_TICKET;
  job.open = &open;
  mpc_client_submit(flight->client, &job, OnTicketOpened, flight);
}

void JobLoad::OnTicketOpened(void* arg, mpc_result* result) {
  auto* flight = static_cast<Flight*>(arg);
  JobLoad* load = flight->load;
  const mpc_verdict verdict = result->verdict;
  // An outage is none of the ticket's.
  const std::string wrong =
      verdict == MPC_UNAVAILABLE ? "" : CompareOpenedTicket(flight->login, *result);
  mpc_result_free(result);
  flight->ticket_opened = verdict == MPC_OK;
  load->End(flight, MPC_OK, wrong);
}

// `text`: of MPC_OK what is wrong with the answer, empty if nothing; else the verdict's detail.
void JobLoad::End(Flight* flight, mpc_verdict verdict, const std::string& text) {
  mpc_result_free(std::exchange(flight->result, nullptr));
  mpc_result_free(std::exchange(flight->reply, nullptr));
  const bool wrong = verdict == MPC_OK && !text.empty();
  const bool ok = verdict == MPC_OK && !wrong;
  {
    absl::MutexLock lock(&mu_);
    Tally& tally = tallies_[flight->stage];
    ++(ok ? tally.ok : wrong ? tally.wrong_answers : tally.failed);
    ++tally.verdicts[kVerdictNames[verdict]];
    tally.checked += flight->compared ? 1 : 0;
    tally.tickets += flight->ticket_opened ? 1 : 0;
    if (ok) {
      tally.exchanges[0].Add(flight->answered - flight->submitted);
      tally.login.Add(flight->sealed - flight->submitted);
    } else {
      tally.Complain(
          absl::StrCat(kVerdictNames[verdict], ": ", flight->login.principal, ": ", text));
    }
    series_.Add(MonotonicNow() - begin_, ok);
    free_users_.push_back(flight->login.user);
    // Not in a loop of calls: a dead server fails a job at once.
    if (!ok) parked_.push_back(flight);
  }
  ++(ok ? control_.ok : control_.trouble);
  ++control_.ended;
  if (ok) Begin(flight);
  --control_.in_flight;  // the last of it: then nothing of this login is under way
}

absl::Status JobLoad::End(std::vector<Tally>& tallies, Series& series) {
  absl::MutexLock lock(&mu_);
  tallies = std::move(tallies_);
  series = std::move(series_);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Load>> StartJobs(const Options& o, std::vector<User>& users,
                                                const RealmHandles& handles, Control& control) {
  auto load = std::make_unique<JobLoad>(o, users, handles, control);
  RETURN_IF_ERROR(load->Start());
  return load;
}

}  // namespace mpckdc::storm
