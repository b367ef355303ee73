// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/client/server_stream.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "kdc-plugin/client/combiner.h"
#include "mpc-server/base/one_line.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/base/steady_wait.h"
#include "mpc-server/enroll/admin_client.h"
#include "mpc-server/package/certificate.h"
#include "proto/wipe_shares.h"

namespace mpckdc::client {
namespace {

constexpr size_t kMaxDetailBytes = 300;  // of gRPC's text about a failed connection
constexpr size_t kMaxVarintBytes = 5;    // of a field's number or length
constexpr char kServe[] = "/mpckdc.v1.KeyService/Serve";

std::string Describe(const grpc::Status& status) {
  if (status.ok()) return "the server closed the stream";
  return absl::StrCat("gRPC status ", static_cast<int>(status.error_code()), ": ",
                      OnOneLine(status.error_message().substr(0, kMaxDetailBytes)));
}

// tag | length | entry
std::string EncodeField(int number, const google::protobuf::MessageLite& entry) {
  using google::protobuf::internal::WireFormatLite;
  const size_t size = entry.ByteSizeLong();
  std::string out;
  out.reserve(size + 2 * kMaxVarintBytes);  // an entry with shares leaves no copy of itself behind
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.WriteTag(WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
    coded.WriteVarint32(static_cast<uint32_t>(size));
    entry.SerializeWithCachedSizes(&coded);
  }
  return out;
}

thread_local int bursts_of_thread = 0;
thread_local std::vector<ServerStream*> held_of_thread;  // by its burst

}  // namespace

void Burst::Begin() { ++bursts_of_thread; }
void Burst::End() {
  if (--bursts_of_thread > 0) return;
  for (ServerStream* stream : held_of_thread) stream->WriteNext();
  held_of_thread.clear();
}

std::string EncodeEntry(const v1::Job& job) {
  return EncodeField(v1::KdcMessage::kJobsFieldNumber, job);
}
std::string EncodeEntry(const v1::TagRequest& tag) {
  return EncodeField(v1::KdcMessage::kTagsFieldNumber, tag);
}

MessageBuffer::~MessageBuffer() {
  if (holds_shares_) Wipe(bytes_.data(), bytes_.size());
}

void MessageBuffer::Append(absl::string_view entry, bool holds_shares) {
  MakeRoom(bytes_.size() + entry.size());
  bytes_.append(entry.data(), entry.size());
  holds_shares_ |= holds_shares;
  ++entries_;
}

// A string that grows frees what it was as it is; here that is wiped.
void MessageBuffer::MakeRoom(size_t size) {
  if (!holds_shares_ || size <= bytes_.capacity()) return;
  std::string larger;
  larger.reserve(std::max(size, 2 * bytes_.capacity()));
  larger.append(bytes_);
  Wipe(bytes_.data(), bytes_.size());
  bytes_.swap(larger);
}

grpc::ByteBuffer MessageBuffer::Release(MessageBuffer message) {
  auto* owned = new MessageBuffer(std::move(message));
  const grpc::Slice slice(
      owned->bytes_.data(), owned->bytes_.size(),
      +[](void* p) { delete static_cast<MessageBuffer*>(p); }, owned);
  return grpc::ByteBuffer(&slice, 1);
}

// One connection. Its messages pass as bytes: those that leave are put together from entries, those
// that come are parsed into one piece of memory.
class ServerStream::Call : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Call(ServerStream* stream, const std::shared_ptr<grpc::Channel>& channel)
      : stream_(stream), stub_(channel) {}

  void Start(const v1::Hello& hello) {
    v1::KdcMessage first;
    *first.mutable_hello() = hello;
    stub_.PrepareBidiStreamingCall(&context, kServe, {}, this);
    AddHold();  // released in ReadEnded: Send() writes from outside the reactions
    StartRead(&incoming_);
    MessageBuffer message;
    message.Append(first.SerializeAsString(), false);
    Write(std::move(message));
    StartCall();
  }

  void Write(MessageBuffer message) {
    outgoing_ = MessageBuffer::Release(std::move(message));
    StartWrite(&outgoing_);
  }

  std::string CertificateName() const {
    const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
    if (auth == nullptr) return "";
    const std::vector<grpc::string_ref> uris = auth->FindPropertyValues("peer_uri");
    return uris.size() == 1 ? std::string(uris[0].data(), uris[0].size()) : "";
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      stream_->ReadEnded(this);
      return;
    }
    if (!TakeMessage()) {
      stream_->GiveUp(this,
                      "the server sent a message that is no ServerMessage; do the KDC's plugin "
                      "and the server have the same version?");
    }
    StartRead(&incoming_);
  }
  void OnWriteDone(bool ok) override {
    outgoing_.Clear();
    stream_->Written(this, ok);
  }
  // gRPC calls this last; the stream destroys the call later.
  void OnDone(const grpc::Status& status) override { stream_->Ended(this, Describe(status)); }

  grpc::ClientContext context;
  bool welcomed = false;

 private:
  bool TakeMessage() {
    google::protobuf::Arena arena;
    auto* message = google::protobuf::Arena::CreateMessage<v1::ServerMessage>(&arena);
    const bool parsed =
        grpc::SerializationTraits<v1::ServerMessage>::Deserialize(&incoming_, message).ok();
    incoming_.Clear();
    if (parsed) stream_->Received(this, *message);
    WipeShares(*message);
    return parsed;
  }

  ServerStream* const stream_;
  grpc::GenericStub stub_;
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;  // on its way
};

ServerStream::ServerStream(int index, std::string address, enroll::AdminIdentity identity,
                           std::string realm, v1::Hello hello, absl::Duration patience,
                           StreamOwner* owner)
    : index_(index),
      address_(std::move(address)),
      identity_(std::move(identity)),
      realm_(std::move(realm)),
      hello_(std::move(hello)),
      patience_(patience),
      owner_(owner) {}

ServerStream::~ServerStream() = default;

absl::Time ServerStream::Tick(absl::Time now) {
  std::vector<std::unique_ptr<Call>> ended;
  std::string overdue;
  absl::Time silent_until;
  bool up = false;
  {
    absl::MutexLock lock(&mu_);
    ended.swap(ended_);
    if (std::exchange(stood_, false)) {
      proved_ = trying_;
      files_failed_ = false;
    }
    switch (state_) {
      case State::kConnecting:
        if (now < attempt_started_ + kConnectTimeout) return attempt_started_ + kConnectTimeout;
        overdue = absl::StrCat("no answer within ", absl::FormatDuration(kConnectTimeout));
        break;
      case State::kUp:
        silent_until = silent_since_ + patience_;
        up = now + kSoon < silent_until;
        if (!up) overdue = "answers are overdue and nothing came";
        break;
      case State::kDown:
        if (stopping_) return absl::InfiniteFuture();
        if (now < next_attempt_) return next_attempt_;
        break;
      default:
        return absl::InfiniteFuture();
    }
    if (!overdue.empty()) Drop(overdue);
  }
  if (up) {
    return std::min(silent_until,
                    renewed_ == nullptr ? LookForRenewed(now) : AwaitRenewed(now));
  }
  renewed_.reset();  // what connects now has the files of now
  renewed_identity_ = {};
  if (!overdue.empty()) {
    Left(overdue);
    return now;
  }
  Connect(now);
  return now + kConnectTimeout;
}

absl::StatusOr<ServerStream::Identity> ServerStream::ReadIdentity() {
  // Taken before they are read: what changes meanwhile is found at the next look.
  seen_ = StampsOf({identity_.certificate_file, identity_.key_file, identity_.ca_file});
  // Before what the connection believes: if it changes in between, then what stands is too old to be
  // used again, not too new.
  ASSIGN_OR_RETURN(std::string ca, enroll::ReadSmallFile(identity_.ca_file));
  ASSIGN_OR_RETURN(std::shared_ptr<grpc::ChannelCredentials> credentials,
                   enroll::PeerCredentials(identity_, realm_, "kdc"));
  return Identity{seen_, std::move(ca), std::move(credentials)};
}

// Whether the authority in its file is another than that of what stood last. One that was taken out
// opens no connection any more. What is no authority takes none out; nor does a file that is new and
// says the same, as where all three are written each time.
bool ServerStream::BelievesOthers() const {
  if (seen_.back() == proved_.files.back()) return false;
  const absl::StatusOr<std::string> ca = enroll::ReadSmallFile(identity_.ca_file);
  return ca.ok() && *ca != proved_.ca && enroll::ParseCertificate(*ca).ok();
}

// The files; in turn with what stood last, if that was another: what is wrong with the files must
// not keep a connection away that was lost for another reason.
absl::StatusOr<ServerStream::Identity> ServerStream::ChooseIdentity() {
  absl::StatusOr<Identity> read = ReadIdentity();
  const bool another =
      proved_.credentials != nullptr && seen_ != proved_.files && !BelievesOthers();
  const bool as_before = another && (files_failed_ || !read.ok());
  files_failed_ = !as_before;
  if (!as_before) return read;
  if (!read.ok()) owner_->OnRenewed(index_, std::string(read.status().message()));
  return proved_;
}

std::shared_ptr<grpc::Channel> ServerStream::MakeChannel(const Identity& identity) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  // Also how long TCP tries to get a write through, and so a connection left behind may live.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, absl::ToInt64Milliseconds(kKeepalive));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, absl::ToInt64Milliseconds(kKeepalive));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
  return grpc::CreateCustomChannel(address_, identity.credentials, arguments);
}

void ServerStream::Connect(absl::Time now) {
  const absl::StatusOr<Identity> identity = ChooseIdentity();
  if (!identity.ok()) {
    const std::string reason(identity.status().message());
    {
      absl::MutexLock lock(&mu_);
      down_reason_ = reason;
      next_attempt_ = now + kBackoffMax;
      attempt_started_ = now;
      ClearQueue();
    }
    owner_->OnDown(index_, reason);
    owner_->AfterDown(index_);
    return;
  }
  const std::shared_ptr<grpc::Channel> channel = MakeChannel(*identity);
  absl::MutexLock lock(&mu_);
  if (stopping_ || state_ != State::kDown) return;
  trying_ = *identity;
  used_ = identity->files;
  StartCall(channel, now);
}

void ServerStream::StartCall(const std::shared_ptr<grpc::Channel>& channel, absl::Time now) {
  state_ = State::kConnecting;
  attempt_started_ = now;
  writable_ = true;
  writing_ = true;  // the hello
  moving_ = false;
  sent_ = 0;
  call_ = new Call(this, channel);
  ++calls_;
  call_->Start(hello_);
}

// ---- A renewed certificate ----

// They are used when a look finds them as the look before did: a renewal may write one after the
// other.
absl::Time ServerStream::LookForRenewed(absl::Time now) {
  if (now < look_at_) return look_at_;
  look_at_ = now + kRenewalLook;
  const FileStamps before = seen_;
  seen_ = StampsOf({identity_.certificate_file, identity_.key_file, identity_.ca_file});
  if (seen_ == used_ || seen_ != before) return look_at_;
  if (seen_ == tried_ && now < again_at_) return look_at_;
  tried_ = seen_;
  again_at_ = now + kRenewalAgain;
  absl::StatusOr<Identity> identity = ReadIdentity();
  if (!identity.ok()) return GiveUpRenewed(std::string(identity.status().message()));
  renewed_ = MakeChannel(*identity);
  renewed_identity_ = *std::move(identity);
  renewed_until_ = now + kConnectTimeout;
  return AwaitRenewed(now);
}

// It stands when the server has sent its settings, which it does when it has accepted our
// certificate, and not before.
absl::Time ServerStream::AwaitRenewed(absl::Time now) {
  if (renewed_->GetState(true) == GRPC_CHANNEL_READY) return MoveToRenewed(now);
  if (now < renewed_until_) return now + kRenewalStep;
  return GiveUpRenewed("the server makes no connection with it");
}

absl::Time ServerStream::MoveToRenewed(absl::Time now) {
  bool answered = false;
  {
    absl::MutexLock lock(&mu_);
    if (state_ != State::kUp) return now;  // lost meanwhile: the next Tick() connects
    if (!std::exchange(moving_, true)) renewed_until_ = now + kRenewalHold;
    answered = !writing_ && sent_ == 0;
    if (!answered && now < renewed_until_) return now + kRenewalStep;
    if (answered) {
      call_->context.TryCancel();  // it has nothing to say any more
      trying_ = renewed_identity_;
      StartCall(renewed_, now);
    }
  }
  if (!answered) return GiveUpRenewed("what was asked before is not answered");
  renewed_.reset();
  renewed_identity_ = {};
  used_ = trying_.files;
  owner_->OnRenewed(index_, "");
  return now + kConnectTimeout;
}

absl::Time ServerStream::GiveUpRenewed(const std::string& why) {
  renewed_.reset();
  renewed_identity_ = {};
  {
    absl::MutexLock lock(&mu_);
    moving_ = false;
  }
  WriteNext();
  owner_->OnRenewed(index_, why);
  return look_at_;
}

absl::Status ServerStream::Send(absl::string_view entry, bool holds_shares) {
  const absl::Status queued = Enqueue(entry, holds_shares);
  if (queued.ok() && bursts_of_thread == 0) WriteNext();
  return queued;
}

absl::Status ServerStream::Enqueue(absl::string_view entry, bool holds_shares) {
  absl::MutexLock lock(&mu_);
  const bool open = writable_ && (state_ == State::kConnecting || state_ == State::kUp);
  const bool connectable = state_ == State::kDown && !stopping_;
  if (!open && !connectable) {
    return absl::UnavailableError(absl::StrCat(address_, ": ", down_reason_));
  }
  if (entry.size() > kMaxBatchBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        address_, ": a job of ", entry.size(), " bytes, the server takes ", kMaxBatchBytes));
  }
  if (queued_bytes_ + entry.size() > kMaxQueuedBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(address_, ": ", queued_bytes_, " bytes wait to be sent"));
  }
  if (queue_.empty() || queue_.back().size() + entry.size() > kMaxBatchBytes ||
      queue_.back().entries() >= kMaxBatchJobs) {
    queue_.emplace_back();
  }
  queue_.back().Append(entry, holds_shares);
  queued_bytes_ += entry.size();
  if (bursts_of_thread > 0 && !held_) {
    held_ = true;
    held_of_thread.push_back(this);
  }
  if (unanswered_++ == 0) silent_since_ = SteadyNow();
  if (connectable) ConnectSoon();
  return absl::OkStatus();
}

void ServerStream::ConnectSoon() {
  const absl::Time soonest = attempt_started_ + kDemandInterval;
  if (next_attempt_ <= soonest) return;
  next_attempt_ = soonest;
  owner_->OnRetryDue();
}

void ServerStream::ClearQueue() {
  queue_.clear();
  queued_bytes_ = 0;
  unanswered_ = 0;
  sent_ = 0;
  moving_ = false;
  silent_since_ = absl::InfiniteFuture();
}

void ServerStream::WriteNext() {
  Call* call = nullptr;
  std::optional<MessageBuffer> next;
  {
    absl::MutexLock lock(&mu_);
    held_ = false;
    if (state_ != State::kUp || writing_ || moving_ || queue_.empty() || !writable_) return;
    next.emplace(std::move(queue_.front()));
    queue_.pop_front();
    queued_bytes_ -= next->size();
    sent_ += static_cast<size_t>(next->entries());
    writing_ = true;
    call = call_;
    call->AddHold();  // while it is writable, ReadEnded's hold is there: it has not ended
  }
  owner_->OnSent(index_, static_cast<size_t>(next->entries()), next->size());
  call->Write(*std::move(next));
  call->RemoveHold();
}

size_t ServerStream::QueuedBytes() {
  absl::MutexLock lock(&mu_);
  return queued_bytes_;
}

void ServerStream::Written(Call* call, bool ok) {
  {
    absl::MutexLock lock(&mu_);
    if (call != call_) return;
    writing_ = false;
    if (held_) return;  // the burst's end writes
  }
  if (ok) WriteNext();
}

void ServerStream::Received(Call* call, v1::ServerMessage& message) {
  {
    absl::MutexLock lock(&mu_);
    if (call != call_) return;
    const size_t answers = static_cast<size_t>(message.jobs_size() + message.tags_size());
    unanswered_ -= std::min(unanswered_, answers);
    sent_ -= std::min(sent_, answers);
    silent_since_ = unanswered_ == 0 ? absl::InfiniteFuture() : SteadyNow();
  }
  if (!call->welcomed) {
    call->welcomed = true;
    Welcomed(call, message.welcome());
    return;
  }
  owner_->OnAnswers(index_, message);
}

void ServerStream::Welcomed(Call* call, const v1::Welcome& welcome) {
  absl::Status judgement;
  if (welcome.version() < kVersionMin || welcome.version() > kVersionMax) {
    judgement = absl::FailedPreconditionError(
        absl::StrCat("the server (", OnOneLine(welcome.software()), ") chose protocol version ",
                     welcome.version(), ", this KDC speaks ", kVersionMin, " to ", kVersionMax));
  } else if (welcome.max_message_bytes() != 0 &&
             welcome.max_message_bytes() < kMaxBatchBytes) {
    judgement = absl::FailedPreconditionError(
        absl::StrCat("the server takes messages of ", welcome.max_message_bytes(),
                     " bytes, and those of this KDC have up to ", kMaxBatchBytes));
  } else {
    judgement = owner_->OnWelcome(index_, welcome, call->CertificateName());
  }
  if (!judgement.ok()) {
    GiveUp(call, std::string(judgement.message()));
    return;
  }
  {
    absl::MutexLock lock(&mu_);
    if (call != call_) return;
    state_ = State::kUp;
    stood_ = true;
    backoff_ = kBackoffMin;
  }
  WriteNext();
}

void ServerStream::GiveUp(Call* call, const std::string& reason) {
  {
    absl::MutexLock lock(&mu_);
    if (call != call_) return;
    Drop(reason);
  }
  Left(reason);
}

void ServerStream::Drop(const std::string& reason) {
  call_->context.TryCancel();
  call_ = nullptr;
  state_ = State::kEnding;
  writable_ = false;
  writing_ = false;
  ClearQueue();
  down_reason_ = reason;
}

// The state is kEnding until the owner knows: what is asked afterwards waits for the next attempt.
void ServerStream::Left(const std::string& reason) {
  owner_->OnDown(index_, reason);
  absl::BitGen random;
  {
    absl::MutexLock lock(&mu_);
    state_ = State::kDown;
    next_attempt_ = SteadyNow() + backoff_ * absl::Uniform(random, 0.7, 1.3);
    backoff_ = std::min(backoff_ * 2, kBackoffMax);
    owner_->OnRetryDue();
  }
  owner_->AfterDown(index_);
}

void ServerStream::ReadEnded(Call* call) {
  {
    absl::MutexLock lock(&mu_);
    if (call == call_) writable_ = false;
  }
  call->RemoveHold();
}

void ServerStream::Ended(Call* call, const std::string& status) {
  GiveUp(call, status);
  absl::MutexLock lock(&mu_);
  ended_.emplace_back(call);
  --calls_;
  owner_->OnRetryDue();  // Tick() destroys it
}

void ServerStream::Stop() {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
  if (call_ != nullptr) Drop("the KDC is stopping");
  mu_.Await(absl::Condition(+[](int* calls) { return *calls == 0; }, &calls_));
}

}  // namespace mpckdc::client
