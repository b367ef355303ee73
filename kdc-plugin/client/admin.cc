// SPDX-License-Identifier: Apache-2.0
//
// What kadmind, kadmin.local and kdb5_util do on the servers: put the keys of one change there, or
// take old ones away. Each call makes its own connections; they are rare.
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kdc-plugin/client/mpc_client.h"
#include "kdc-plugin/client/text.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/enroll/admin_client.h"
#include "mpc-server/enroll/transaction.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/package/certificate.h"

namespace mpckdc::client {
namespace {

constexpr absl::Duration kStatusTimeout = absl::Seconds(5);
constexpr absl::Duration kDeleteTimeout = absl::Seconds(5);

enroll::AdminIdentity IdentityOf(const mpc_options& options) {
  return {Text(options.certificate_file), Text(options.key_file), Text(options.ca_file)};
}

absl::StatusOr<enroll::AdminServers> ConnectTo(const mpc_options& options, size_t triple) {
  std::vector<std::string> addresses;
  for (size_t i = 0; i < MPC_SERVERS; ++i) {
    addresses.push_back(Text(options.servers[triple * MPC_SERVERS + i]));
  }
  ASSIGN_OR_RETURN(enroll::AdminServers servers,
                   enroll::AdminServers::Dial(IdentityOf(options), Text(options.realm), addresses));
  RETURN_IF_ERROR(servers.Check(kStatusTimeout));
  const int64_t number = options.cluster + static_cast<int64_t>(triple);
  if (options.cluster >= 0 && servers.number() != number) {
    return absl::FailedPreconditionError(absl::StrCat(
        "server ", servers.at(0).name(), ", of triple ", servers.triple(), ", belongs to cluster ",
        servers.number(), ", and mpc_cluster says ", number, " of this triple"));
  }
  return servers;
}

bool IsOutage(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// The first triple that is there: what one of them is given, all have. One that is configured wrong
// is an error, and not passed over.
absl::StatusOr<enroll::AdminServers> Connect(const mpc_options& options) {
  absl::StatusOr<enroll::AdminServers> servers = ConnectTo(options, 0);
  for (size_t triple = 1; IsOutage(servers.status()) && triple < options.triples; ++triple) {
    const std::string before(servers.status().message());
    servers = ConnectTo(options, triple);
    if (!IsOutage(servers.status())) break;
    servers = absl::Status(
        servers.status().code(),
        absl::StrCat(before, "; and of the next triple: ", servers.status().message()));
  }
  return servers;
}

v1::KeyInfo MakeInfo(const mpc_new_key& key) {
  v1::KeyInfo info;
  info.set_handle(std::string(reinterpret_cast<const char*>(key.handle), MPC_HANDLE_BYTES));
  info.set_principal(Text(key.principal));
  info.set_kvno(key.kvno);
  info.set_enctype(key.enctype);
  info.set_salt_type(key.salt_type);
  if (key.salt.size > 0) info.set_salt(key.salt.data, key.salt.size);
  info.set_key_class(static_cast<v1::KeyClass>(key.key_class));
  info.set_gate(static_cast<v1::Gate>(key.gate));
  return info;
}

// Gate and class of the principal's present keys, each if the three servers agree on one for all of
// them. A new password must not change what an administrator has decided about either.
struct Present {
  std::set<int> gates, classes;
  friend bool operator==(const Present&, const Present&) = default;

  void GiveTo(v1::KeyInfo* info) const {
    info->set_gate(gates.size() == 1 ? static_cast<v1::Gate>(*gates.begin()) : v1::GATE_TIMESTAMP);
    if (classes.size() == 1) info->set_key_class(static_cast<v1::KeyClass>(*classes.begin()));
  }
};

absl::StatusOr<Present> AskPresent(enroll::AdminServers& servers, const std::string& principal) {
  std::array<Present, MPC_SERVERS> present;
  for (const absl::Status& s : servers.OnAll([&](int party, enroll::AdminClient&server) {
         ASSIGN_OR_RETURN(std::vector<v1::KeyInfo> keys,
                          server.ListKeys(principal, enroll::Listed::kCommitted, kStatusTimeout));
         for (const v1::KeyInfo& key : keys) {
           if (key.retired_us() != 0) continue;  // deleted, perhaps with its principal
           present[party].gates.insert(key.gate());
           present[party].classes.insert(key.key_class());
         }
         return absl::OkStatus();
       })) {
    if (!s.ok()) return s;
  }
  return present[0] == present[1] && present[0] == present[2] ? present[0] : Present();
}

absl::Status StoreKeys(const mpc_options& options, const mpc_new_key* keys, size_t count) {
  ASSIGN_OR_RETURN(
      enroll::PackageSigner signer,
      enroll::PackageSigner::FromPemFiles(Text(options.certificate_file), Text(options.key_file)));
  ASSIGN_OR_RETURN(enroll::AdminServers servers, Connect(options));
  enroll::KeyTransaction transaction(&servers);
  std::map<std::string, Present> present;  // of one principal, as a rule
  for (size_t i = 0; i < count; ++i) {
    v1::KeyInfo info = MakeInfo(keys[i]);
    if (keys[i].gate == MPC_GATE_AS_BEFORE) {
      auto known = present.find(info.principal());
      if (known == present.end()) {
        ASSIGN_OR_RETURN(Present asked, AskPresent(servers, info.principal()));
        known = present.emplace(info.principal(), asked).first;
      }
      known->second.GiveTo(&info);
    }
    const SecretBytes base(keys[i].key.data, keys[i].key.data + keys[i].key.size);
    RETURN_IF_ERROR(base.empty() ? transaction.AddDrawn(info)
                                 : transaction.Add({{info, base}}, signer));
  }
  return transaction.Run();
}

absl::Status DeleteKeys(const mpc_options& options, const char* principal,
                        const uint8_t (*handles)[MPC_HANDLE_BYTES], size_t count) {
  ASSIGN_OR_RETURN(enroll::AdminServers servers, Connect(options));
  std::vector<v1::NamedKey> list(count);
  for (size_t i = 0; i < count; ++i) {
    list[i].set_handle(std::string(reinterpret_cast<const char*>(handles[i]), MPC_HANDLE_BYTES));
    list[i].set_principal(principal);
  }
  std::string failures;
  for (const absl::Status& s : servers.OnAll([&](int, enroll::AdminClient& server) {
         return server.DeleteKeys(list, enroll::Deletion::kRetire, kDeleteTimeout);
       })) {
    if (!s.ok()) absl::StrAppend(&failures, failures.empty() ? "" : "; ", s.message());
  }
  return failures.empty() ? absl::OkStatus() : absl::UnavailableError(failures);
}

int Report(const absl::Status& status, char** error) {
  *error = status.ok() ? nullptr : DuplicateText(status.message());
  return status.ok() ? 0 : -1;
}

}  // namespace
}  // namespace mpckdc::client

extern "C" {

int mpc_admin_holds_enctype(int32_t enctype) noexcept {
  return mpckdc::FindEnctype(enctype) != nullptr;
}

int mpc_admin_store_keys(const mpc_options* options, const mpc_new_key* keys, size_t count,
                         char** error) noexcept {
  return mpckdc::client::Report(mpckdc::client::StoreKeys(*options, keys, count), error);
}

int mpc_admin_delete_keys(const mpc_options* options, const char* principal,
                          const uint8_t (*handles)[MPC_HANDLE_BYTES], size_t count,
                          char** error) noexcept {
  return mpckdc::client::Report(mpckdc::client::DeleteKeys(*options, principal, handles, count),
                                error);
}

}  // extern "C"
