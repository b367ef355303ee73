// SPDX-License-Identifier: Apache-2.0
//
// This server's certificate while it runs. The files are looked at every second; when they change,
// and are good, what they hold is used for new connections: by gRPC, by the lines to the other
// servers (the caller's to reload) and for share packages. Connections that are open stay.
//
//   [identity] files --> changed, and the same at the next look --> CheckOwnIdentity
//                                                                     |          |
//                                             files in memory <-- good: used  bad: what was stays
//                                              |         |
//                                            gRPC   lines to peers
//
// They are waited for because a renewal may write key and certificate one after the other. gRPC
// watches files, and would take whatever it finds in them, a key that is not the certificate's too,
// and then refuse everybody: so it watches files in this process's memory, which only hold what was
// found good. The lines to the other servers read those too: what comes into the files after they
// were judged waits until it was.
#ifndef MPC_SERVER_SERVICE_IDENTITY_KEEPER_H_
#define MPC_SERVER_SERVICE_IDENTITY_KEEPER_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/file_stamp.h"
#include "mpc-server/package/package_open.h"
#include "mpc-server/service/config.h"
#include "mpc-server/service/own_identity.h"
#include "mpc-server/wire/socket.h"
#include "mpc-server/wire/tls_channel.h"

namespace mpckdc {

struct CertificateState {
  absl::Time expires, authority_expires;
  std::string fingerprint;
  std::string trouble;  // empty, or why the files of now are not used
};

// Mutual TLS for a gRPC port, by files that gRPC watches. RequireTls13() must have been called.
std::shared_ptr<grpc::ServerCredentials> WatchedCredentials(const std::string& key,
                                                            const std::string& certificate,
                                                            const std::string& ca);

// A file without a name, in memory.
class MemoryFile {
 public:
  static absl::StatusOr<MemoryFile> Make(const char* name);
  absl::Status Write(absl::string_view contents);
  std::string path() const;

 private:
  explicit MemoryFile(Fd fd) : fd_(std::move(fd)) {}

  Fd fd_;
};

class IdentityKeeper {
 public:
  // `config` and `clock` must outlive this.
  static absl::StatusOr<std::unique_ptr<IdentityKeeper>> Open(const Config* config, Clock* clock);

  // What a look at the files found. `status`: why they are not used, each time that it is found.
  struct Found {
    bool renewed = false;
    absl::Status status;
  };
  // About once a second.
  Found Tick();
  // Now, whatever the files look like.
  Found Read();

  // Of the files in memory; this must outlive the port.
  std::shared_ptr<grpc::ServerCredentials> Credentials() const;
  // `options` with those files, for a connector that this outlives; Reload() it after each renewal.
  TlsPeerOptions ForPeers(TlsPeerOptions options) const;
  // Of the certificates in use; it is the same object for ever.
  const Authority* authority() const { return &own_authority_; }
  CertificateState State() const;

 private:
  IdentityKeeper(const Config* config, Clock* clock, MemoryFile certificate, MemoryFile key,
                 MemoryFile ca);
  std::vector<std::string> Files() const;
  Found Use(FileStamps stamps);
  absl::Status GiveToGrpc(const OwnIdentity& own);

  const Config* const config_;
  Clock* const clock_;
  MemoryFile certificate_, key_, ca_;
  Authority own_authority_;

  mutable absl::Mutex mutex_;
  FileStamps used_ ABSL_GUARDED_BY(mutex_);  // of the files read last, good or bad
  FileStamps seen_ ABSL_GUARDED_BY(mutex_);  // at the last look
  // When what was bad may have become good.
  absl::Time again_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::string certificate_pem_ ABSL_GUARDED_BY(mutex_), ca_pem_ ABSL_GUARDED_BY(mutex_);
  CertificateState state_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_IDENTITY_KEEPER_H_
