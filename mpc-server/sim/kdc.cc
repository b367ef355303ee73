// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/kdc.h"

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/job/operation_table.h"

namespace mpckdc::sim {
namespace {
constexpr size_t kPast = 8;
// What krb5kdc gives each job by default, and how long it waits for the answers.
constexpr uint32_t kDeadlineMs = 5000;
constexpr absl::Duration kAnswerWait = absl::Seconds(6);
}  // namespace

Kdc::Kdc(Scheduler* scheduler, Dice* dice, Journal* journal, Servers* servers,
         Invariants* invariants, uint64_t seed)
    : scheduler_(scheduler),
      dice_(dice),
      journal_(journal),
      invariants_(invariants),
      random_(seed) {
  AddTriple(servers);
}

void Kdc::AddTriple(Servers* servers) {
  triples_.push_back(
      std::make_unique<Triple>(Triple{servers, ClientLinks(scheduler_, dice_), {}, {}}));
  Triple& triple = *triples_.back();
  triple.identity.name = "kdc1";
  random_.Fill(absl::MakeSpan(triple.identity.session));
  triple.other = {"kdc2", triple.identity.session};
}

// ---- Messages ----

// A server's answer on its way back.
template <typename Answer>
void Kdc::Reply(int triple, int p, const std::shared_ptr<Call<Answer>>& call, Answer answer) {
  auto shared = std::make_shared<Answer>(std::move(answer));
  ClientLinks* const lines = &links(triple);
  scheduler_->At(lines->FromServer(p), [this, lines, p, call, shared] {
    if (lines->BlockedFrom(p)) return;
    call->answers[p] = std::move(*shared);
    call->got[p] = true;
    scheduler_->Wake(call->waiter);
  });
}

template <typename Answer>
bool Kdc::Await(Call<Answer>& call, absl::Duration limit) {
  const absl::Time end = scheduler_->now() + limit;
  while (!call.All() && scheduler_->now() < end) scheduler_->Wait(end);
  call.waiter = nullptr;
  return call.All();
}

Job Kdc::NewJob(Operation operation) {
  Job job;
  job.id = ++last_id_;
  job.deadline_ms = kDeadlineMs;
  job.operation = operation;
  return job;
}

void Kdc::DeliverJob(int triple, int p, const KdcIdentity& kdc, const Job& job, bool twice,
                     const std::shared_ptr<Call<JobResult>>& call) {
  Servers* const servers = triples_[triple]->servers;
  servers->Message(p, [this, triple, servers, p, kdc, call, job, twice](Process& process) {
    const uint64_t incarnation = process.incarnation;
    process.engine->Submit(kdc, job,
                           [this, triple, servers, call, p, incarnation](JobResult result) {
                             if (!servers->Alive(p, incarnation)) return;
                             invariants_->Released(p, result);
                             Reply(triple, p, call, std::move(result));
                           });
    if (!twice) return;
    process.engine->Submit(kdc, job, [this](JobResult result) {
      if (result.judgement.verdict == Verdict::kRefused) return;
      journal_->Violation("a job id was taken twice");
    });
  });
}

// To all three; waits for the answers, or six seconds: then the result is UNSPECIFIED (absent).
JobResult Kdc::SendJobs(int triple, const PerParty<Job>& jobs, bool faults, bool* overtaken,
                        bool other_kdc) {
  const KdcIdentity& kdc = other_kdc ? triples_[triple]->other : triples_[triple]->identity;
  auto call = std::make_shared<Call<JobResult>>();
  call->waiter = scheduler_->current();
  for (int p = 0; p < kParties; ++p) {
    if (links(triple).BlockedTo(p) || (faults && dice_->Chance(0.01))) continue;
    const bool twice = faults && dice_->Chance(0.02);
    // After its place in the stream: later jobs come first, and ids only increase.
    const bool late = faults && dice_->Chance(0.01);
    *overtaken = *overtaken || late;
    absl::Time when = links(triple).ToServer(p);
    if (late) when += dice_->Between(absl::Milliseconds(5), absl::Milliseconds(600));
    scheduler_->At(when, [this, triple, p, kdc, job = jobs[p], twice, call] {
      DeliverJob(triple, p, kdc, job, twice, call);
    });
  }
  if (faults && dice_->Chance(0.03)) TagTooEarly(triple, jobs[0].id);
  if (Await(*call, kAnswerWait)) return Combine(call->answers);
  for (int p = 0; p < kParties; ++p) {
    if (call->got[p] && !call->answers[p].judgement.ok()) return call->answers[p];
  }
  JobResult absent;
  absent.id = jobs[0].id;
  absent.judgement = Refuse(Verdict::kUnspecified, "no answer");
  return absent;
}

// The server saw a deviation; that there was a lie is checked where it says so (Servers::Start).
static bool Quarantined(const Judgement& judgement) {
  return judgement.verdict == Verdict::kUnavailable &&
         absl::StrContains(judgement.detail, "quarantined since");
}

// A tag request before its job's answer has come: refused, or it spends the seal at that server.
void Kdc::TagTooEarly(int triple, JobId job) {
  const int p = static_cast<int>(dice_->Below(kParties));
  const absl::Time when =
      scheduler_->now() + dice_->Between(absl::ZeroDuration(), absl::Milliseconds(40));
  journal_->Count("tags asked for too early");
  scheduler_->At(when, [this, triple, p, job] {
    triples_[triple]->servers->Message(p, [this, triple, job](Process& process) {
      const TagRequest request{job, 0, std::string(48, 'e')};
      const Judgement judgement =
          process.engine->FinishTag(triples_[triple]->identity, request).judgement;
      const Verdict v = judgement.verdict;
      if (v == Verdict::kOk || v == Verdict::kRefused || Quarantined(judgement)) return;
      journal_->Violation(absl::StrCat("an early tag request is ", VerdictName(v)));
    });
  });
}

TagResult Kdc::SendTags(int triple, const TagRequest& request, bool faults) {
  auto call = std::make_shared<Call<TagResult>>();
  call->waiter = scheduler_->current();
  for (int p = 0; p < kParties; ++p) {
    if (links(triple).BlockedTo(p)) continue;
    const bool twice = faults && dice_->Chance(0.05);
    scheduler_->At(links(triple).ToServer(p), [this, triple, call, request, p, twice] {
      triples_[triple]->servers->Message(
          p, [this, triple, call, request, p, twice](Process& process) {
            const KdcIdentity& kdc = triples_[triple]->identity;
            Reply(triple, p, call, process.engine->FinishTag(kdc, request));
            if (!twice || !process.engine->FinishTag(kdc, request).judgement.ok()) return;
            journal_->Violation("a server gave two tags for one seal");
          });
    });
  }
  if (Await(*call, absl::Seconds(1))) return Combine(call->answers);
  return {request.job, request.seal, Refuse(Verdict::kUnspecified, "no answer"), {}};
}

// ---- Checks ----

// What an outage may look like, and a clock that is wrong.
bool Kdc::Allowed(Verdict v) const {
  if (v == Verdict::kOk || v == Verdict::kUnavailable || v == Verdict::kDeadline ||
      v == Verdict::kUnspecified) {
    return true;
  }
  return v == Verdict::kClockSkew && clocks_jumped_;
}

void Kdc::CheckSeal(int triple, const JobResult& result, uint32_t seal, const PlainKey& key,
                    uint32_t usage, bool settled) {
  const std::string text(20 + dice_->Below(40), static_cast<char>('a' + seal));
  const std::string ciphertext = Encrypt(result.seals[seal], text);
  const TagResult tag = SendTags(triple, {result.id, seal, ciphertext}, !invariants_->quiet());
  const Verdict v = tag.judgement.verdict;
  if (v == Verdict::kUnspecified || v == Verdict::kRefused) {
    // A server that was restarted has forgotten the seal.
    if (settled) journal_->Violation(absl::StrCat("no tag: ", tag.judgement.detail));
    return;
  }
  if (Quarantined(tag.judgement)) return;
  if (!tag.judgement.ok()) return journal_->Violation(absl::StrCat("tag: ", tag.judgement.detail));
  const std::string message = Message(result.seals[seal], ciphertext, tag.tag_share);
  if (OracleOpen(key, usage, message) != text) {
    return journal_->Violation(absl::StrCat("job ", result.id, " seal ", seal, " is wrong"));
  }
  if (usage != kUsageTicket) return;
  if (dice_->Chance(0.2)) CheckTicketOpens(message, text);
  if (!services_.empty() && dice_->Chance(0.05)) CheckServiceTicket(message);
}

void Kdc::CheckTicketOpens(const std::string& ticket, const std::string& inside) {
  Job job = NewJob(Operation::kOpenTicket);
  job.opens.push_back({tgt_.info.handle, 2, ticket});
  bool overtaken = false;
  const JobResult result = SendJobs(AnyTriple(), {job, job, job}, false, &overtaken);
  if (!CheckTicketJob(job, result, "open ticket", false)) return;
  const std::string ciphertext = ticket.substr(12 + 1 + 33, ticket.size() - 12 - 1 - 33 - 16);
  if (XorText(GcmOf(result.opens[0]).share, ciphertext.substr(16)) != inside) {
    journal_->Violation("an opened ticket is wrong");
  }
}

// A ticket for a protected service as a TGS makes it: from its parent, with shares of its text.
void Kdc::CheckServiceTicket(const std::string& tgt) {
  const PlainKey service = services_[dice_->Below(services_.size())];
  const bool lost = invariants_->Lost(service.info.handle);
  const int restores = invariants_->restores();
  Job job = NewJob(Operation::kReissueTicket);
  job.opens.push_back({tgt_.info.handle, kUsageTicket, tgt});
  const std::string text = RandomText(20 + dice_->Below(20));
  job.seals.push_back({service.info.handle, kUsageTicket, static_cast<uint32_t>(text.size())});
  bool overtaken = false;
  const JobResult result = SendJobs(AnyTriple(), WithTexts(job, text, random_), false, &overtaken);
  const bool restored_since = restores != invariants_->restores();
  if (!CheckTicketJob(job, result, "service ticket", lost || restored_since)) return;
  if (lost && !restored_since) journal_->Violation("a ticket under a lost key of a service");
  const std::string& ticket = CtsOf(result.seals[0]).share;
  invariants_->Sealed(ticket);
  if (OracleOpen(service, kUsageTicket, ticket) == text) {
    return journal_->Count("tickets of services with enctype 17 or 18");
  }
  journal_->Violation(absl::StrCat("job ", job.id, ": a service's ticket is wrong"));
}

// Whether it is OK. One that is not has to have a reason.
bool Kdc::CheckTicketJob(const Job& job, const JobResult& result, const char* what, bool lost) {
  const Verdict v = result.judgement.verdict;
  ++journal_->outcome().verdicts[absl::StrCat(what, " ", VerdictName(v))];
  if (result.judgement.ok()) {
    invariants_->AnsweredOk(job.id, job.operation);
    return true;
  }
  const bool by_clock = v == Verdict::kRefused && clocks_jumped_;
  const bool by_loss = v == Verdict::kUnknownHandle && lost;
  if (!Allowed(v) && !by_clock && !by_loss) {
    journal_->Violation(
        absl::StrCat(what, " of a good ticket is ", VerdictName(v), ": ", result.judgement.detail));
  }
  return false;
}

bool Kdc::MayBeLost(const Attempt& attempt) const {
  return attempt.lost || attempt.restores != invariants_->restores() ||
         invariants_->Lost(attempt.user.info.handle);
}

void Kdc::CheckLogin(const Job& job, const JobResult& result, const Attempt& attempt,
                     const std::string& as_req) {
  const Verdict v = result.judgement.verdict;
  const bool wrong = !attempt.right && !attempt.replay;
  const bool restored_since = attempt.restores != invariants_->restores();
  const bool fits = (wrong && v == Verdict::kBadTag) || (attempt.replay && v == Verdict::kReplay) ||
                    (attempt.again && clocks_jumped_ && v == Verdict::kReplay) ||
                    (attempt.presented > kGrantTickets && v == Verdict::kReplay) ||
                    (attempt.overtaken && v == Verdict::kRefused) ||
                    (v == Verdict::kUnknownHandle && MayBeLost(attempt));
  if (!Allowed(v) && !fits) {
    return journal_->Violation(absl::StrCat("login ", job.id, " is ", VerdictName(v), ": ",
                                            result.judgement.detail));
  }
  if (!result.judgement.ok()) return;
  if (wrong) {
    return journal_->Violation(absl::StrCat("login ", job.id, " with a wrong password succeeded"));
  }
  if (attempt.lost && !restored_since) {
    return journal_->Violation(absl::StrCat("login ", job.id, " with a lost key succeeded"));
  }
  invariants_->AnsweredOk(job.id, job.operation);
  invariants_->LoggedIn(attempt.preauth, attempt.other_kdc ? "kdc2" : "kdc1");
  if (attempt.other_kdc) return journal_->Count("pre-auths that another KDC was the first with");
  if (!OracleMacGood(attempt.user, 56, as_req, result.make_macs[0])) {
    return journal_->Violation(absl::StrCat("login ", job.id, ": the checksum is wrong"));
  }
  CheckSeal(attempt.triple, result, 0, tgt_, kUsageTicket, attempt.settled);
  if (!attempt.cts())
    return CheckSeal(attempt.triple, result, 1, attempt.user, kUsageAsReply, attempt.settled);
  const std::string& timestamp = CtsOf(result.opens[0]).share;
  if (OracleOpen(attempt.user, kUsagePreauth, attempt.preauth) != timestamp) {
    journal_->Violation(absl::StrCat("login ", job.id, ": the opened pre-auth is wrong"));
  }
  SealReplies(job.id, attempt);
}

// ---- Replies under keys of 17 to 20 ----

std::string Kdc::RandomText(size_t size) {
  std::vector<uint8_t> bytes(size);
  random_.Fill(absl::MakeSpan(bytes));
  return {bytes.begin(), bytes.end()};
}

// Mostly one. A grant pays for two: where it is asked for a third, that is refused. What the
// pre-auth paid for before, and what it does meanwhile when it is presented again, is in the two.
void Kdc::SealReplies(JobId grant, const Attempt& attempt) {
  const bool slow = !invariants_->quiet() && dice_->Chance(0.3);
  if (slow) scheduler_->Sleep(dice_->Between(absl::ZeroDuration(), absl::Seconds(2)));
  const int wanted = dice_->Chance(0.15) ? 3 : 1;
  for (int paid = 0; paid < wanted; ++paid) {
    if (!SealReply(grant, attempt, paid)) return;
  }
}

// Whether it came. `paid`: how many the grant has paid for.
bool Kdc::SealReply(JobId grant, const Attempt& attempt, int paid) {
  const std::string text = RandomText(20 + dice_->Below(20));
  Job job = NewJob(Operation::kSealGranted);
  job.client = attempt.user.info.handle;
  job.grant = grant;
  job.seals.push_back({*job.client, kUsageAsReply, static_cast<uint32_t>(text.size())});
  bool overtaken = false;
  const std::string sent = other_texts_ ? std::string(text.size(), 'x') : text;
  const PerParty<Job> jobs = WithTexts(job, sent, random_);
  const JobResult result = SendJobs(attempt.triple, jobs, !invariants_->quiet(), &overtaken);
  const Verdict v = result.judgement.verdict;
  ++journal_->outcome().verdicts[absl::StrCat(paid < 2 ? "reply " : "third reply ",
                                              VerdictName(v))];
  if (!result.judgement.ok()) {
    CheckNoReply(job, result, attempt, paid, overtaken);
    return false;
  }
  invariants_->AnsweredOk(job.id, job.operation);
  invariants_->Replied(attempt.preauth);
  const std::string& message = CtsOf(result.seals[0]).share;
  invariants_->Sealed(message);
  if (OracleOpen(attempt.user, kUsageAsReply, message) != text) {
    journal_->Violation(absl::StrCat("reply ", job.id, " to login ", grant, " is wrong"));
  }
  journal_->Count(absl::StrCat("replies of enctype ", attempt.user.info.enctype));
  return true;
}

// An outage, or a grant that is used up or gone: with a server's process, or by a clock.
void Kdc::CheckNoReply(const Job& job, const JobResult& result, const Attempt& attempt, int paid,
                       bool overtaken) {
  const Verdict v = result.judgement.verdict;
  const bool restarted = triples_[attempt.triple]->servers->starts() != attempt.starts;
  if (v == Verdict::kRefused && restarted) journal_->Count("replies refused after a restart");
  const bool shared = paid >= 1 || attempt.again || attempt.replay;
  const bool refusable = shared || overtaken || restarted || clocks_jumped_;
  const bool fits = (v == Verdict::kRefused && refusable) ||
                    (v == Verdict::kUnknownHandle && MayBeLost(attempt)) ||
                    (Allowed(v) && (paid >= 2 || !attempt.settled));
  if (fits) return;
  journal_->Violation(absl::StrCat("reply ", job.id, " to login ", job.grant, " is ",
                                   VerdictName(v), ": ", result.judgement.detail));
}

// ---- Logins ----

int Kdc::AnyTriple() {
  return triples_.size() == 1 ? 0 : static_cast<int>(dice_->Below(triples_.size()));
}

Kdc::Attempt Kdc::Choose() {
  if (!past_.empty() && dice_->Chance(0.12)) {
    Attempt again = past_[dice_->Below(past_.size())];
    const int past_triple = again.triple;
    again.right = false;
    again.replay = true;
    again.again = false;
    again.presented = 0;
    again.other_kdc = dice_->Chance(0.3);
    again.triple = AnyTriple();
    if (again.triple != past_triple) journal_->Count("replays at the other triple");
    return again;
  }
  Attempt attempt;
  attempt.triple = AnyTriple();
  // The first two have their keys on every snapshot: the measure of recovery.
  const bool recovering = invariants_->quiet() && !invariants_->recovered();
  const bool cts = !invariants_->quiet() && dice_->Chance(cts_share_);
  const std::vector<PlainKey>& users = cts ? cts_users_ : users_;
  attempt.user = users[dice_->Below(recovering ? 2 : users.size())];
  attempt.right = !dice_->Chance(0.1);
  PlainKey typed = attempt.user;
  if (!attempt.right) typed.base[3] ^= 1;
  attempt.preauth = SealPreauth(typed, scheduler_->now(), random_);
  return attempt;
}

// One job, and all that follows from its answer.
JobResult Kdc::PresentLogin(Attempt& attempt) {
  attempt.lost = invariants_->Lost(attempt.user.info.handle);
  attempt.restores = invariants_->restores();
  attempt.settled = invariants_->recovered();
  attempt.starts = triples_[attempt.triple]->servers->starts();
  ++attempt.presented;
  LoginSizes sizes;
  sizes.ticket = static_cast<uint32_t>(60 + dice_->Below(20));
  sizes.reply = static_cast<uint32_t>(60 + dice_->Below(40));
  sizes.as_req = std::string(attempt.cts() ? 40 : 60, 'q');
  Job job = LoginJob(++last_id_, attempt.user, tgt_, attempt.preauth, sizes);
  job.deadline_ms = kDeadlineMs;
  const absl::Time sent = scheduler_->now();
  JobResult result = SendJobs(attempt.triple, {job, job, job}, !invariants_->quiet(),
                              &attempt.overtaken, attempt.other_kdc);
  const Verdict v = result.judgement.verdict;
  ++journal_->outcome().verdicts[v == Verdict::kUnspecified ? "absent"
                                                            : std::string(VerdictName(v))];
  if (invariants_->quiet() && attempt.right && !result.judgement.ok()) {
    journal_->Log(absl::StrCat("login ", job.id, " is ", VerdictName(v), ": ",
                               result.judgement.detail));
  }
  CheckLogin(job, result, attempt, sizes.as_req);
  const bool counts = attempt.right && !attempt.again && !attempt.lost &&
                      !invariants_->Lost(attempt.user.info.handle);
  if (counts) invariants_->LoginEnded(attempt.triple, sent, result);
  return result;
}

void Kdc::Login(Attempt attempt) {
  JobResult result = PresentLogin(attempt);
  if (GoesElsewhere(attempt, result)) result = PresentLogin(attempt);
  if (attempt.replay) return journal_->Count("replays");
  if (!attempt.right) return journal_->Count("logins with a wrong password");
  if (!result.judgement.ok()) LoginAgain(attempt, result);
  if (past_.size() == kPast) past_.erase(past_.begin());
  past_.push_back(attempt);
  if (attempt.lost || invariants_->Lost(attempt.user.info.handle)) {
    return journal_->Count("logins with a lost key");
  }
  const std::string enctype = absl::StrCat(" of enctype ", attempt.user.info.enctype);
  journal_->Count("logins");
  if (attempt.cts()) journal_->Count(absl::StrCat("logins", enctype));
  if (result.judgement.ok()) {
    journal_->Count("logins that succeeded");
    if (attempt.cts()) journal_->Count(absl::StrCat("logins", enctype, " that succeeded"));
  }
}

static bool Unanswered(const JobResult& result) {
  const Verdict v = result.judgement.verdict;
  return v == Verdict::kUnavailable || v == Verdict::kUnspecified || v == Verdict::kDeadline;
}

// What one triple does not answer goes to the other at once, as in kdc-plugin/client/triples.h.
bool Kdc::GoesElsewhere(Attempt& attempt, const JobResult& result) {
  if (triples_.size() == 1 || !Unanswered(result)) return false;
  attempt.triple = 1 - attempt.triple;
  attempt.again = true;
  journal_->Count("logins that went to the other triple");
  return true;
}

// A client that hears nothing sends the same request again. Its KDC may be another process by then;
// whatever became of the first, the servers judge it once more.
void Kdc::LoginAgain(Attempt attempt, const JobResult& before) {
  if (!Unanswered(before)) return;
  scheduler_->Sleep(absl::Seconds(1));
  attempt.again = true;
  attempt.triple = AnyTriple();
  journal_->Count("logins sent again");
  if (PresentLogin(attempt).judgement.ok()) journal_->Count("logins sent again that succeeded");
}

void Kdc::Load(const bool* done) {
  while (!*done && !journal_->violated()) {
    ++running_;
    scheduler_->Spawn("login", [this] {
      Login(Choose());
      --running_;
    });
    scheduler_->Sleep(dice_->Between(absl::Milliseconds(1), absl::Milliseconds(600)));
  }
}

void Kdc::TryEveryKey() {
  std::vector<PlainKey> users = users_;
  users.insert(users.end(), cts_users_.begin(), cts_users_.end());
  for (const PlainKey& user : users) {
    Attempt attempt;
    attempt.user = user;
    attempt.triple = AnyTriple();
    attempt.preauth = SealPreauth(user, scheduler_->now(), random_);
    Login(std::move(attempt));
  }
  journal_->Count("runs in which every key was tried at the end");
}

}  // namespace mpckdc::sim
