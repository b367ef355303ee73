// SPDX-License-Identifier: Apache-2.0
//
// What kadmind, kadmin.local and kdb5_util do on the servers: put the keys of one change there, or
// take old ones away. Each call makes its own connections; they are rare.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kdc-plugin/client/mpc_client.h"
#include "kdc-plugin/client/text.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/enroll/admin_client.h"
#include "mpc-server/enroll/strictest_gate.h"
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
// them. A new password must not change what an administrator has decided about either. Where they
// do not agree, or one lies, the gate is the strictest.
struct Present {
  std::set<v1::Gate> gates;
  std::set<v1::KeyClass> classes;
  friend bool operator==(const Present&, const Present&) = default;

  void GiveTo(v1::KeyInfo* info) const {
    info->set_gate(enroll::StrictestGate(gates));
    if (classes.size() == 1) info->set_key_class(*classes.begin());
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
  if (present[0] == present[1] && present[0] == present[2]) return present[0];
  Present differing = {{v1::GATE_TIMESTAMP}, {}};
  for (const Present& one : present) differing.gates.insert(one.gates.begin(), one.gates.end());
  return differing;
}

// An administrator may have narrowed the gate since it was asked for: he has set that of the keys that he
// saw, which go now, and these would have the one of before. Where he has widened it the new keys have the
// narrower one, which he sees (mpc-admin policy looks at what there is afterwards).
absl::Status CheckGateHolds(enroll::AdminServers& servers, const std::string& principal,
                            const Present& known) {
  ASSIGN_OR_RETURN(const Present now, AskPresent(servers, principal));
  if (enroll::StrictestGate(now.gates) == enroll::StrictestGate(known.gates)) {
    return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrCat(
      "the gate of the keys of ", principal, " was changed meanwhile: try again"));
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
  RETURN_IF_ERROR(transaction.Run());
  for (const auto& [principal, known] : present) {
    const absl::Status holds = CheckGateHolds(servers, principal, known);
    if (!holds.ok()) return transaction.RollbackAfter(holds);
  }
  return absl::OkStatus();
}

using HandleArray = const uint8_t (*)[MPC_HANDLE_BYTES];

std::string BytesOf(const uint8_t* handle) {
  return std::string(reinterpret_cast<const char*>(handle), MPC_HANDLE_BYTES);
}

// ---- Password history ----

// What the three said of one old key: whether it is equal to a new one.
absl::StatusOr<bool> Together(const std::array<v1::CompareKeysReply, MPC_SERVERS>& replies, int i) {
  const auto answer = replies[0].results(i).answer();
  for (const v1::CompareKeysReply& reply : replies) {
    if (reply.results(i).answer() == answer) continue;
    return absl::UnavailableError(
        absl::StrCat("the three servers say different things of an old key (",
                     replies[0].results(i).answer(), ", ", replies[1].results(i).answer(), ", ",
                     replies[2].results(i).answer(), "): see mpc-admin doctor"));
  }
  switch (answer) {
    case v1::CompareKeysReply::ANSWER_EQUAL:
      return true;
    case v1::CompareKeysReply::ANSWER_DIFFERENT:
    case v1::CompareKeysReply::ANSWER_UNKNOWN:
      return false;  // long collected, at all three
    default:
      return absl::UnavailableError("the three servers gave no answer");
  }
}

// What one server refuses the two others wait for in vain: its reason is the one to tell.
absl::Status ReasonOf(const std::array<absl::Status, MPC_SERVERS>& statuses) {
  absl::Status reason;
  for (const absl::Status& s : statuses) {
    if (reason.ok() || (IsOutage(reason) && !s.ok() && !IsOutage(s))) reason = s;
  }
  return reason;
}

absl::Status CompareSome(enroll::AdminServers& servers, const v1::CompareKeysRequest& request,
                         uint8_t* equal) {
  const absl::Duration timeout = limits::kCompareTimeout + absl::Seconds(5);  // to say so itself
  std::array<v1::CompareKeysReply, MPC_SERVERS> replies;
  const auto ask = [&](int party, enroll::AdminClient& server) {
    ASSIGN_OR_RETURN(replies[party], server.Call("CompareKeys", &enroll::AdminStub::CompareKeys,
                                                 request, timeout));
    bool whole = replies[party].results_size() == request.old_size();
    for (int i = 0; whole && i < request.old_size(); ++i) {
      whole = replies[party].results(i).handle() == request.old(i);
    }
    if (whole) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat(server.name(), " answered a comparison of other keys"));
  };
  RETURN_IF_ERROR(ReasonOf(servers.OnAll(ask)));
  for (int i = 0; i < request.old_size(); ++i) {
    ASSIGN_OR_RETURN(const bool same, Together(replies, i));
    if (same) equal[i] = 1;
  }
  return absl::OkStatus();
}

// The new keys are staged, as in a change of keys, under handles of their own, and aborted when the
// answers are there: the transaction is rolled back by its end.
absl::Status CompareKeys(const mpc_options& options, absl::Span<const mpc_new_key> keys,
                         HandleArray old, size_t old_count, uint8_t* equal) {
  ASSIGN_OR_RETURN(
      enroll::PackageSigner signer,
      enroll::PackageSigner::FromPemFiles(Text(options.certificate_file), Text(options.key_file)));
  ASSIGN_OR_RETURN(enroll::AdminServers servers, Connect(options));
  enroll::KeyTransaction transaction(&servers);
  std::vector<std::string> staged;
  for (const mpc_new_key& key : keys) {
    v1::KeyInfo info = MakeInfo(key);
    info.set_handle(staged.emplace_back(enroll::RandomIdentifier()));
    const SecretBytes base(key.key.data, key.key.data + key.key.size);
    RETURN_IF_ERROR(transaction.Add({{info, base}}, signer));
  }
  RETURN_IF_ERROR(transaction.Stage());
  std::fill_n(equal, old_count, uint8_t{0});
  for (size_t k = 0; k < staged.size(); k += limits::kMaxStagedCompared) {
    const size_t end = std::min(k + limits::kMaxStagedCompared, staged.size());
    for (size_t at = 0; at < old_count; at += limits::kMaxComparedKeys) {
      v1::CompareKeysRequest request;
      request.set_request(enroll::RandomIdentifier());
      request.set_transaction(transaction.id());
      for (size_t i = k; i < end; ++i) request.add_staged(staged[i]);
      const size_t last = std::min(at + limits::kMaxComparedKeys, old_count);
      for (size_t i = at; i < last; ++i) request.add_old(BytesOf(old[i]));
      RETURN_IF_ERROR(CompareSome(servers, request, equal + at));
    }
  }
  return absl::OkStatus();
}

// ---- Deleting ----

absl::Status DeleteKeys(const mpc_options& options, const char* principal, HandleArray handles,
                        size_t count, HandleArray kept, size_t kept_count) {
  ASSIGN_OR_RETURN(enroll::AdminServers servers, Connect(options));
  std::vector<v1::NamedKey> list(count + kept_count);
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].set_handle(BytesOf(i < count ? handles[i] : kept[i - count]));
    list[i].set_principal(principal);
    list[i].set_for_history(i >= count);
  }
  std::string failures;
  for (const absl::Status& s : servers.OnAll([&](int, enroll::AdminClient& server) {
         return server.DeleteKeys(list, enroll::Deletion::kRetire, kDeleteTimeout);
       })) {
    if (!s.ok()) absl::StrAppend(&failures, failures.empty() ? "" : "; ", s.message());
  }
  return failures.empty() ? absl::OkStatus() : absl::UnavailableError(failures);
}

// ---- Renaming ----

constexpr int kRenameAttempts = 3;

v1::RenamedKey RenamedOf(const mpc_renamed_key& key, const char* old_name) {
  v1::RenamedKey out;
  out.mutable_from()->set_handle(BytesOf(key.from));
  out.mutable_from()->set_principal(old_name);
  out.mutable_from()->set_for_history(key.for_history);
  out.set_to(BytesOf(key.to));
  out.set_salt_type(key.salt_type);
  if (key.salt.size > 0) out.set_salt(key.salt.data, key.salt.size);
  return out;
}

// Copies that the history names are kept for it, as the old keys are.
absl::Status KeepForHistory(enroll::AdminServers& servers, absl::Span<const mpc_renamed_key> keys,
                            const char* new_name) {
  std::vector<v1::NamedKey> kept;
  for (const mpc_renamed_key& key : keys) {
    if (!key.for_history || key.unknown) continue;
    v1::NamedKey& named = kept.emplace_back();
    named.set_handle(BytesOf(key.to));
    named.set_principal(new_name);
    named.set_for_history(true);
  }
  if (kept.empty()) return absl::OkStatus();
  return ReasonOf(servers.OnAll([&](int, enroll::AdminClient& server) {
    return server.DeleteKeys(kept, enroll::Deletion::kRetire, kDeleteTimeout);
  }));
}

absl::Status RenameOnce(const mpc_options& options, const char* old_name, const char* new_name,
                        absl::Span<mpc_renamed_key> keys) {
  ASSIGN_OR_RETURN(enroll::AdminServers servers, Connect(options));
  enroll::KeyTransaction transaction(&servers);
  std::vector<v1::RenamedKey> list;
  for (const mpc_renamed_key& key : keys) list.push_back(RenamedOf(key, old_name));
  RETURN_IF_ERROR(transaction.AddRenamed(list, new_name));
  RETURN_IF_ERROR(transaction.Stage());
  for (mpc_renamed_key& key : keys) key.unknown = transaction.unknown().contains(BytesOf(key.to));
  RETURN_IF_ERROR(transaction.Commit());
  const absl::Status kept = KeepForHistory(servers, keys, new_name);
  return kept.ok() ? kept : transaction.RollbackAfter(kept);
}

// The three must copy in one share epoch; they leave it together, once a day.
absl::Status RenameKeys(const mpc_options& options, const char* old_name, const char* new_name,
                        absl::Span<mpc_renamed_key> keys) {
  absl::Status done;
  for (int attempt = 0; attempt < kRenameAttempts; ++attempt) {
    if (attempt > 0) absl::SleepFor(absl::Milliseconds(500));
    done = RenameOnce(options, old_name, new_name, keys);
    if (!absl::IsAborted(done)) break;
  }
  return done;
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
                          const uint8_t (*kept)[MPC_HANDLE_BYTES], size_t kept_count,
                          char** error) noexcept {
  return mpckdc::client::Report(
      mpckdc::client::DeleteKeys(*options, principal, handles, count, kept, kept_count), error);
}

int mpc_admin_rename_keys(const mpc_options* options, const char* old_name, const char* new_name,
                          mpc_renamed_key* keys, size_t count, char** error) noexcept {
  return mpckdc::client::Report(
      mpckdc::client::RenameKeys(*options, old_name, new_name, {keys, count}), error);
}

int mpc_admin_compare_keys(const mpc_options* options, const mpc_new_key* keys, size_t count,
                           const uint8_t (*old)[MPC_HANDLE_BYTES], size_t old_count, uint8_t* equal,
                           char** error) noexcept {
  return mpckdc::client::Report(
      mpckdc::client::CompareKeys(*options, {keys, count}, old, old_count, equal), error);
}

}  // extern "C"
