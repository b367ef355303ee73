// SPDX-License-Identifier: Apache-2.0
//
// What an import finds: a line for each principal of the source.
#include <krb5/remote_key_plugin.h>

#include <optional>
#include <utility>

#include "kdc-plugin/kdb-tool/import_plan.h"
#include "kdc-plugin/kdb-tool/import_record.h"
#include "kdc-plugin/kdb-tool/import_session.h"
#include "mpc-server/base/status_macros.h"

extern "C" {
#include "kdc-plugin/kdb-module/classify.h"
#include "kdc-plugin/kdb-module/handles.h"
}

namespace mpckdc::kdbtool {
namespace {

using nlohmann::json;

constexpr char kOld[] = "old";
constexpr char kImported[] = "imported";
constexpr char kChanged[] = "changed";
constexpr char kPresent[] = "present";
constexpr char kGone[] = "gone";

bool HasHandles(const krb5_db_entry* entry) { return entry_has_handle(entry, nullptr) != 0; }

std::string StateOf(const krb5_db_entry* entry, bool converts) {
  if (!TlDataOf(entry, kImportedTgsTlType).empty()) return kImported;
  const std::optional<ImportRecord> record = ReadRecord(entry);
  if (record.has_value()) return record->written == FingerprintOf(entry) ? kImported : kChanged;
  return !converts || HasHandles(entry) ? kPresent : kOld;
}

json NumbersOf(const std::vector<LeftKey>& keys) {
  json list = json::array();
  for (const LeftKey& key : keys) list.push_back({key.kvno, key.enctype});
  return list;
}

size_t OldPasswordsOf(const krb5_db_entry* entry) {
  const std::optional<KadmData> data = ParseKadmData(TlDataOf(entry, KRB5_TL_KADM_DATA));
  return data.has_value() ? data->old.size() : 0;
}

const char* PlaceName(krb5_const_principal principal, placement place) {
  if (is_master_principal(principal)) return "master";
  if (is_history_principal(principal)) return "history";
  if (place == PLACE_DRAWN) return "krbtgt";
  if (needs_gcm(principal, place) != 0) return "kadmin";
  return place == PLACE_PROTECTED ? "protected" : "local";
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ImportSession::StatesHere() {
  struct Walk {
    ImportSession* session;
    std::map<std::string, std::string> states;
  } walk = {this, {}};
  const krb5_error_code code = krb5_db_iterate(
      target().context(), nullptr,
      +[](krb5_pointer arg, krb5_db_entry* entry) -> int {
        auto* w = static_cast<Walk*>(arg);
        w->states[UnparsedName(w->session->target().context(), entry->princ)] =
            StateOf(entry, w->session->converts_);
        return 0;
      },
      &walk, 0);
  if (code != 0) return target().Error(code, "reading the database");
  return std::move(walk.states);
}

json ImportSession::LineOf(krb5_db_entry* entry, const KeySaltsByPolicy& policies,
                           const std::map<std::string, std::string>& states) {
  const std::string name = UnparsedName(target().context(), entry->princ);
  const KadmData data =
      ParseKadmData(TlDataOf(entry, KRB5_TL_KADM_DATA)).value_or(KadmData{});
  const auto& params = target().params();
  const KeySalts wanted = KeySaltsFor(
      policies, data, KeySalts(params.keysalts, params.keysalts + params.num_keysalts));
  const placement place = classify(config_, entry->princ);
  const ImportPlan plan =
      place == PLACE_DRAWN ? PlanOldTgs(entry) : PlanImport(entry, wanted);
  const auto state = states.find(name);
  json planned = json::array();
  for (const PlannedKey& key : plan.keys) planned.push_back(key.enctype);
  return {{"principal", name},
          {"place", PlaceName(entry->princ, place)},
          {"state", state != states.end() ? state->second : names_.Has(name) ? kGone : kOld},
          {"kvno", plan.kvno},
          {"planned", std::move(planned)},
          {"weak", NumbersOf(plan.weak)},
          {"old", NumbersOf(plan.old)},
          {"history", OldPasswordsOf(entry)}};
}

absl::Status ImportSession::Scan(absl::FunctionRef<void(const json&)> print) {
  using States = std::map<std::string, std::string>;
  ASSIGN_OR_RETURN(const States states, StatesHere());
  print({{"mode", converts_ ? "convert" : "copy"}, {"realm", target().params().realm}});
  if (source_ != nullptr) {
    return source_->ForEach([&](krb5_db_entry* entry) {
      print(LineOf(entry, source_->restricting(), states));
      return absl::OkStatus();
    });
  }
  struct Walk {
    ImportSession* session;
    const std::map<std::string, std::string>& states;
    const KeySaltsByPolicy policies;
    absl::FunctionRef<void(const json&)> print;
  } walk = {this, states, ReadKeySalts(target().context()), print};
  const krb5_error_code code = krb5_db_iterate(
      target().context(), nullptr,
      +[](krb5_pointer arg, krb5_db_entry* entry) -> int {
        auto* w = static_cast<Walk*>(arg);
        w->print(w->session->LineOf(entry, w->policies, w->states));
        return 0;
      },
      &walk, 0);
  return code == 0 ? absl::OkStatus() : target().Error(code, "reading the database");
}

}  // namespace mpckdc::kdbtool
