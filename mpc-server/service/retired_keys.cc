// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/retired_keys.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/package/package.h"
#include "mpc-server/service/log.h"

namespace mpckdc {
namespace {

using NamedKeyList = google::protobuf::RepeatedPtrField<v1::NamedKey>;
using RefusedList = google::protobuf::RepeatedPtrField<v1::RefusedKey>;

absl::StatusOr<std::vector<NamedKey>> KeysOf(const NamedKeyList& in) {
  if (in.empty()) return absl::InvalidArgumentError("no key is given");
  if (static_cast<size_t>(in.size()) > limits::kMaxKeysPerCall) {
    return absl::InvalidArgumentError(
        absl::StrCat("at most ", limits::kMaxKeysPerCall, " keys in one call"));
  }
  std::vector<NamedKey> keys;
  for (const v1::NamedKey& key : in) {
    ASSIGN_OR_RETURN(Handle handle, Bytes16(key.handle(), "a key handle"));
    keys.push_back({handle, key.principal(), key.for_history()});
  }
  return keys;
}

AuditLog::Fields HandleTexts(const std::vector<NamedKey>& keys) {
  AuditLog::Fields texts = AuditLog::Fields::array();
  for (const NamedKey& key : keys) texts.push_back(HandleText(key.handle));
  return texts;
}

// What the history keeps of them.
AuditLog::Fields HistoryTexts(const std::vector<NamedKey>& keys) {
  AuditLog::Fields texts = AuditLog::Fields::array();
  for (const NamedKey& key : keys) {
    if (key.for_history) texts.push_back(HandleText(key.handle));
  }
  return texts;
}

void Tell(const NamedKeysDone& done, RefusedList* refused, AuditLog::Fields* details) {
  (*details)["count"] = done.changed;
  for (const NamedKeysDone::Refused& key : done.refused) {
    v1::RefusedKey* out = refused->Add();
    out->set_handle(std::string(AsText(key.handle)));
    out->set_reason(key.why);
    (*details)["refused"].push_back({{"handle", HandleText(key.handle)}, {"reason", key.why}});
  }
}

}  // namespace

absl::StatusOr<size_t> RetiredCollector::Collect(const EngineStatus& status) {
  if (!status.peers_connected || status.clock_suspect) {
    return absl::FailedPreconditionError(
        "retired keys are collected only while both other servers are connected and agree with "
        "this one about the time");
  }
  ASSIGN_OR_RETURN(
      const std::vector<CollectedKey> keys,
      store_->CollectRetired(status.clock_confirmed - grace_, limits::kCollectAtOnce));
  if (keys.empty()) return size_t{0};
  std::vector<NamedKey> gone, reduced;
  for (const CollectedKey& key : keys) (key.reduced ? reduced : gone).push_back(key);
  Log().info("collected {} deleted keys whose grace time is over; {} more are kept for the history",
             gone.size(), reduced.size());
  (void)audit_->Append("admin", {{"call", "collect"},
                                 {"count", gone.size()},
                                 {"handles", HandleTexts(gone)},
                                 {"kept_for_history", HandleTexts(reduced)}});
  return keys.size();
}

absl::Status DeleteKeysCall(ShareStore& store, absl::Time now, const v1::DeleteKeysRequest& request,
                            v1::DeleteKeysReply* reply, AuditLog::Fields* details) {
  if (!request.handles().empty()) {
    return absl::FailedPreconditionError(
        "this server deletes a key by its handle and its principal; the caller is of an older "
        "version, which names the handle alone: upgrade it (mpc-admin, kadmind)");
  }
  ASSIGN_OR_RETURN(const std::vector<NamedKey> keys, KeysOf(request.keys()));
  (*details)["handles"] = HandleTexts(keys);
  (*details)["now"] = request.now();
  (*details)["for_history"] = HistoryTexts(keys);
  ASSIGN_OR_RETURN(const NamedKeysDone done,
                   request.now() ? store.DeleteNamed(keys) : store.Retire(keys, now));
  reply->set_deleted(static_cast<uint32_t>(done.changed));
  Tell(done, reply->mutable_refused(), details);
  return absl::OkStatus();
}

absl::Status RestoreKeysCall(ShareStore& store, const v1::RestoreKeysRequest& request,
                             v1::RestoreKeysReply* reply, AuditLog::Fields* details) {
  ASSIGN_OR_RETURN(const std::vector<NamedKey> keys, KeysOf(request.keys()));
  (*details)["handles"] = HandleTexts(keys);
  ASSIGN_OR_RETURN(const NamedKeysDone done, store.Restore(keys));
  reply->set_restored(static_cast<uint32_t>(done.changed));
  Tell(done, reply->mutable_refused(), details);
  return absl::OkStatus();
}

absl::Status FillRetired(const ShareStore& store, std::vector<v1::ListKeysReply>* replies) {
  std::vector<v1::KeyInfo*> keys;
  for (v1::ListKeysReply& reply : *replies) {
    for (v1::KeyInfo& key : *reply.mutable_keys()) keys.push_back(&key);
  }
  if (keys.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Handle first, Bytes16(keys.front()->handle(), "a key handle"));
  auto next = keys.begin();
  return store.ForEachRetired(first,
                              [&](const absl::StatusOr<KeyInfo>& info, const RetiredMark& mark) {
                                if (!info.ok()) return true;  // the list has said so
                                const absl::string_view handle = AsText(info->handle);
                                while (next != keys.end() && (*next)->handle() < handle) ++next;
                                if (next == keys.end()) return false;
                                if ((*next)->handle() != handle) return true;
                                (*next)->set_retired_us(absl::ToUnixMicros(mark.since));
                                (*next)->set_for_history(mark.for_history);
                                return true;
                              });
}

}  // namespace mpckdc
