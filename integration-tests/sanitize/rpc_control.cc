// SPDX-License-Identifier: Apache-2.0
//
// Planted races where the thread sanitizer is told the most and suppressed the most: in the handlers
// of gRPC's calls, and in what a thread hands to another. gRPC's own locks order threads, too: of
// accesses that are not of one moment they hide what ours leave open, so there are many.
//
//   sanitize_rpc_control handler|handler_mutex|handed|handed_before
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "mpc-server/service/serial_worker.h"

namespace mpckdc {
namespace {

constexpr int kClients = 4;
constexpr int kCalls = 1000;  // of each client; with 200 the race was found in 9 runs of 10
constexpr int kPieces = 50;

absl::Mutex mutex;
int calls = 0;

__attribute__((noinline)) void CountCall(bool lock) {
  if (lock) mutex.Lock();
  calls = calls + 1;
  if (lock) mutex.Unlock();
}

// As KeyService's streams: bytes, and reactions on gRPC's threads.
class Stream : public grpc::ServerGenericBidiReactor {
 public:
  explicit Stream(bool lock) : lock_(lock) { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    CountCall(lock_);
    if (ok) {
      StartWriteAndFinish(&message_, {}, grpc::Status::OK);
    } else {
      Finish(grpc::Status::CANCELLED);
    }
  }
  void OnDone() override { delete this; }

 private:
  const bool lock_;
  grpc::ByteBuffer message_;
};

class Service : public grpc::CallbackGenericService {
 public:
  explicit Service(bool lock) : lock_(lock) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Stream(lock_);
  }

 private:
  const bool lock_;
};

void Client(int port) {
  grpc::ChannelArguments own;  // a connection for each client
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  grpc::GenericStub stub(grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port),
                                                   grpc::InsecureChannelCredentials(), own));
  const grpc::Slice bytes("bytes");
  for (int i = 0; i < kCalls; ++i) {
    grpc::ClientContext context;
    grpc::ByteBuffer request(&bytes, 1), response;
    absl::Notification done;
    stub.UnaryCall(&context, "/control/Call", {}, &request, &response,
                   [&done](const grpc::Status&) { done.Notify(); });
    done.WaitForNotification();
  }
}

void Handler(bool lock) {
  Service service(lock);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) clients.emplace_back(Client, port);
  for (std::thread& client : clients) client.join();
  server->Shutdown();
}

struct Piece {
  int value = 0;
};
__attribute__((noinline)) void Alter(Piece& piece) { piece.value = 1; }

// A piece of work that is altered before it is handed over, or when the other thread has it. Altered
// at once it is almost never found: the next piece's lock orders the two before the other wakes.
void HandOver(bool before) {
  int sum = 0;
  {
    SerialWorker worker;
    for (int i = 0; i < kPieces; ++i) {
      const auto piece = std::make_shared<Piece>();
      if (before) Alter(*piece);
      worker.Post([piece, &sum] { sum += piece->value; });
      if (before) continue;
      absl::SleepFor(absl::Milliseconds(2));
      Alter(*piece);
    }
  }
  std::printf("%d pieces\n", sum);
}

}  // namespace
}  // namespace mpckdc

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "handler" || what == "handler_mutex") {
    mpckdc::Handler(what == "handler_mutex");
    std::printf("%d calls\n", mpckdc::calls);
  } else if (what == "handed" || what == "handed_before") {
    mpckdc::HandOver(what == "handed_before");
  } else {
    return 2;
  }
  std::printf("%s: nothing found\n", what.c_str());
  return 0;
}
