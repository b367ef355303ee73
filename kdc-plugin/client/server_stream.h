// SPDX-License-Identifier: Apache-2.0
//
// One server as the KDC sees it: a bidirectional stream that is opened again, with backoff,
// whenever it ends.
//
//   kDown -> kConnecting -> kUp          Welcome accepted: what was queued is sent
//     ^           |          |
//     +-----------+----------+           the owner fails what this server has not answered
//
// When the certificate, its key or the authority was renewed on disk, a second connection is made
// with the new ones while the first serves. Only when that stands, and has shown that the server
// accepts them, are entries held back until the first has answered what it was sent; then it is
// left, and they go over the second. So nothing is lost by a renewal, and by one that is wrong not
// before the old certificate ends.
//
// A connection that is given up is left behind at once. gRPC may need long to end it: if the
// network swallowed its last write, until TCP tries again or gives up.
//
// A job that finds the server down does not wait for the backoff: it asks for an attempt at once and
// shares its outcome, so that the first login after a server's restart succeeds.
//
// While a write is on its way, new jobs gather in the message that follows it: the busier the
// stream, the more jobs a message holds. What is sent is encoded once for the three servers, unless
// each has shares of its own in it: a message of the protobuf format is its fields one after the
// other, so encoded entries are joined by appending them.
#ifndef KDC_PLUGIN_CLIENT_SERVER_STREAM_H_
#define KDC_PLUGIN_CLIENT_SERVER_STREAM_H_

#include <grpcpp/channel.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mpc-server/base/file_stamp.h"
#include "mpc-server/enroll/admin_client.h"
#include "proto/kdc_key.grpc.pb.h"

namespace mpckdc::client {

inline constexpr uint32_t kVersionMin = 2;  // of proto/kdc_key.proto, spoken by this client
inline constexpr uint32_t kVersionMax = 2;
inline constexpr size_t kMaxBatchBytes = 1 << 20;   // of one message
inline constexpr int kMaxBatchJobs = 2048;          // jobs and tag requests in one message
inline constexpr size_t kMaxQueuedBytes = 64 << 20; // waiting for the stream
inline constexpr size_t kMaxReceiveBytes = 8 << 20;
// As good as now: a silent server's jobs and its stream are given up at the same time.
inline constexpr absl::Duration kSoon = absl::Milliseconds(2);
inline constexpr absl::Duration kConnectTimeout = absl::Seconds(5);
inline constexpr absl::Duration kBackoffMin = absl::Milliseconds(100);
inline constexpr absl::Duration kBackoffMax = absl::Seconds(2);
inline constexpr absl::Duration kDemandInterval = absl::Milliseconds(100);  // between such attempts

// Of a renewed certificate: how often the files are looked at; how often, while it is put to use,
// what became of that; how long entries may be held back for it; when it is tried again.
inline constexpr absl::Duration kRenewalLook = absl::Seconds(2);
inline constexpr absl::Duration kRenewalStep = absl::Milliseconds(10);
inline constexpr absl::Duration kRenewalHold = absl::Seconds(1);
inline constexpr absl::Duration kRenewalAgain = absl::Minutes(1);

inline constexpr absl::Duration kKeepalive = absl::Seconds(10);  // idle, then without an answer

// One job or tag request as a field of a KdcMessage.
std::string EncodeEntry(const v1::Job& job);
std::string EncodeEntry(const v1::TagRequest& tag);

// A message to a server while it is put together from encoded entries, and until gRPC has sent it.
// If one of them holds a share of a plaintext, the memory is wiped before it is freed.
class MessageBuffer {
 public:
  MessageBuffer() = default;
  ~MessageBuffer();
  MessageBuffer(MessageBuffer&&) = default;
  MessageBuffer& operator=(MessageBuffer&&) = delete;

  void Append(absl::string_view entry, bool holds_shares);
  size_t size() const { return bytes_.size(); }
  int entries() const { return entries_; }

  // What gRPC sends; it has the memory from now on.
  static grpc::ByteBuffer Release(MessageBuffer message);

 private:
  void MakeRoom(size_t size);

  std::string bytes_;
  int entries_ = 0;
  bool holds_shares_ = false;
};

// Called from gRPC's threads and from Tick(), without a lock of the stream held except OnRetryDue.
class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  // Decides whether the server belongs to the others. `certificate` is its role name.
  virtual absl::Status OnWelcome(int server, const v1::Welcome& welcome,
                                 const std::string& certificate) = 0;
  virtual void OnAnswers(int server, v1::ServerMessage& message) = 0;
  virtual void OnDown(int server, const std::string& reason) = 0;
  // After OnDown: what the server is asked from now on waits for the next connection.
  virtual void AfterDown(int server) = 0;
  // Tick() has something to do. Must not call the stream.
  virtual void OnRetryDue() = 0;
  // The connection is of a renewed certificate now; or `trouble` says why it is not.
  virtual void OnRenewed(int server, const std::string& trouble) = 0;
  // A message is on its way.
  virtual void OnSent(int server, size_t entries, size_t bytes) = 0;
};

class ServerStream;

// Between Begin() and End() the entries that the calling thread sends only queue: many of them then
// leave in one message, to whichever servers. Most of what an entry costs is its message. Bursts
// may be nested.
class Burst {
 public:
  static void Begin();
  static void End();

  Burst() { Begin(); }
  ~Burst() { End(); }
  Burst(const Burst&) = delete;
  Burst& operator=(const Burst&) = delete;
};

class ServerStream {
 public:
  // A server that was asked and says nothing for `patience` has lost its connection.
  ServerStream(int index, std::string address, enroll::AdminIdentity identity, std::string realm,
               v1::Hello hello, absl::Duration patience, StreamOwner* owner);
  ~ServerStream();  // Stop() must have returned; not from a reaction

  const std::string& address() const { return address_; }

  // Queues an entry (EncodeEntry) for the next message, which is wiped after use if the entry holds
  // shares. An error says why the server cannot be asked now.
  absl::Status Send(absl::string_view entry, bool holds_shares = false) ABSL_LOCKS_EXCLUDED(mu_);

  // What waits to be sent.
  size_t QueuedBytes() ABSL_LOCKS_EXCLUDED(mu_);

  // Does what is due: a connection attempt, or giving one up. Returns when to call again.
  absl::Time Tick(absl::Time now);

  // Ends all connections and waits until none of their callbacks runs.
  void Stop();

 private:
  friend class Burst;
  class Call;
  enum class State { kDown, kConnecting, kUp, kEnding };

  absl::Status Enqueue(absl::string_view entry, bool holds_shares) ABSL_LOCKS_EXCLUDED(mu_);
  // What a connection shows and whom it believes, and the files as it was read from them.
  struct Identity {
    FileStamps files;
    std::string ca;  // what was in its file
    std::shared_ptr<grpc::ChannelCredentials> credentials;
  };
  absl::StatusOr<Identity> ReadIdentity();
  absl::StatusOr<Identity> ChooseIdentity();
  bool BelievesOthers() const;
  std::shared_ptr<grpc::Channel> MakeChannel(const Identity& identity);
  void Connect(absl::Time now);
  void StartCall(const std::shared_ptr<grpc::Channel>& channel, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A renewed certificate, by Tick(): looks for one; then waits for its connection; then moves to
  // it. Each returns when to look again.
  absl::Time LookForRenewed(absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Time AwaitRenewed(absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Time MoveToRenewed(absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Time GiveUpRenewed(const std::string& why) ABSL_LOCKS_EXCLUDED(mu_);
  void ConnectSoon() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ClearQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Writes the next message if one waits and none is on its way; without the lock, since gRPC may
  // encrypt and send it at once.
  void WriteNext() ABSL_LOCKS_EXCLUDED(mu_);
  // Drop() leaves the connection; Left(), after it and without the lock, tells the owner.
  void Drop(const std::string& reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Left(const std::string& reason);
  // Both, unless the connection has been left already.
  void GiveUp(Call* call, const std::string& reason) ABSL_LOCKS_EXCLUDED(mu_);

  // From the call's reactions.
  void Received(Call* call, v1::ServerMessage& message);
  void Welcomed(Call* call, const v1::Welcome& welcome);
  void Written(Call* call, bool ok);
  void ReadEnded(Call* call);
  void Ended(Call* call, const std::string& status);

  const int index_;
  const std::string address_;
  const enroll::AdminIdentity identity_;
  const std::string realm_;
  const v1::Hello hello_;
  const absl::Duration patience_;
  StreamOwner* const owner_;

  // Of Tick() alone. The files as the connection took them, as they were at the last look, and as
  // they were tried last, which is not done again before `again_at_`.
  FileStamps used_, seen_, tried_;
  // With which the present connection is being made, and with which one stood last: it is kept for
  // when the files have half of a renewal, or what no server takes. gRPC has it, too, as long.
  Identity trying_, proved_;
  bool files_failed_ = false;  // the last attempt was with the files, and did not stand
  absl::Time look_at_ = absl::InfinitePast(), again_at_;
  std::shared_ptr<grpc::Channel> renewed_;  // its connection is being made
  Identity renewed_identity_;
  absl::Time renewed_until_;                // it must stand by then, or have been moved to

  absl::Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kDown;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  Call* call_ ABSL_GUARDED_BY(mu_) = nullptr;  // the present one
  int calls_ ABSL_GUARDED_BY(mu_) = 0;         // not ended yet, those left behind too
  // Destroyed by Tick() or with the stream, never in a reaction: with the process's last channel
  // gRPC ends its callback threads, which must not be done by one of them.
  std::vector<std::unique_ptr<Call>> ended_ ABSL_GUARDED_BY(mu_);
  bool stood_ ABSL_GUARDED_BY(mu_) = false;  // the present connection, since Tick() looked
  bool writable_ ABSL_GUARDED_BY(mu_) = false;  // the read side is still open
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool held_ ABSL_GUARDED_BY(mu_) = false;  // by a burst, whose end writes
  std::string down_reason_ ABSL_GUARDED_BY(mu_) = "not connected yet";
  std::deque<MessageBuffer> queue_ ABSL_GUARDED_BY(mu_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time attempt_started_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Time next_attempt_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  size_t unanswered_ ABSL_GUARDED_BY(mu_) = 0;  // jobs and tag requests
  size_t sent_ ABSL_GUARDED_BY(mu_) = 0;        // those of them that were written
  bool moving_ ABSL_GUARDED_BY(mu_) = false;    // to a renewed certificate: nothing is written
  absl::Time silent_since_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();  // while some are
  absl::Duration backoff_ ABSL_GUARDED_BY(mu_) = kBackoffMin;
};

}  // namespace mpckdc::client

#endif  // KDC_PLUGIN_CLIENT_SERVER_STREAM_H_
