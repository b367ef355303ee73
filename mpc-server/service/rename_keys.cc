// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/rename_keys.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/package/package.h"

namespace mpckdc {
namespace {

// One old name and one new one, so that the audit line says who became whom.
absl::StatusOr<std::vector<RenamedKey>> KeysOf(const v1::RenameKeysRequest& request) {
  const auto count = static_cast<size_t>(request.keys_size());
  if (count == 0 || count > limits::kMaxKeysPerCall) {
    return absl::InvalidArgumentError(
        absl::StrCat("1 to ", limits::kMaxKeysPerCall, " keys in one call, not ", count));
  }
  std::vector<RenamedKey> keys;
  for (const v1::RenamedKey& key : request.keys()) {
    if (key.from().principal() != request.keys(0).from().principal()) {
      return absl::InvalidArgumentError("keys of one principal are renamed in one call");
    }
    RenamedKey& out = keys.emplace_back();
    ASSIGN_OR_RETURN(out.from.handle, Bytes16(key.from().handle(), "a key handle"));
    ASSIGN_OR_RETURN(out.to, Bytes16(key.to(), "a new key handle"));
    out.from.principal = key.from().principal();
    out.from.for_history = key.from().for_history();
    out.salt_type = key.salt_type();
    out.salt = key.salt();
  }
  return keys;
}

}  // namespace

absl::Status RenameKeysCall(ShareStore& store, KeyHistory* history, absl::Time now,
                            const v1::RenameKeysRequest& request, v1::RenameKeysReply* reply,
                            AuditLog::Fields* details) {
  ASSIGN_OR_RETURN(const TransactionId txn, Bytes16(request.transaction(), "the transaction id"));
  (*details)["transaction"] = absl::BytesToHexString(request.transaction());
  ASSIGN_OR_RETURN(const std::vector<RenamedKey> keys, KeysOf(request));
  (*details)["principal"] = keys.front().from.principal;
  (*details)["new_principal"] = request.principal();
  for (const RenamedKey& key : keys) {
    (*details)["keys"].push_back({{"handle", HandleText(key.from.handle)},
                                  {"new_handle", HandleText(key.to)},
                                  {"for_history", key.from.for_history}});
  }
  ASSIGN_OR_RETURN(const RenamedKeys done, history->Rename(keys, [&] {
    return store.StageRenamed(txn, keys, request.principal(), request.epoch(), now);
  }));
  (*details)["count"] = done.staged;
  reply->set_keys(static_cast<uint32_t>(done.staged));
  for (const Handle& handle : done.unknown) reply->add_unknown(std::string(AsText(handle)));
  return absl::OkStatus();
}

}  // namespace mpckdc
