// SPDX-License-Identifier: Apache-2.0
//
// mpc-kdb-seal: real keys of a realm that is imported become sealed share packages. `mpc-kdb
// import-seal` runs it. Keys are decrypted, split and sealed here and nowhere else: what leaves the
// process are packages that one server each can open, unsigned (mpc-admin signs), and names.
//
//   <- {"realm", "epoch", "transaction", "package_keys": [3]}, then for each principal a line
//      {"principal", "class", "gate"}
//   -> {"principals": [{"principal", "kvno", "was", "keys": [KEY], "history": [[KEY]]}
//                      or {"principal", "error", "not_found"}],
//       "packages": [{"keys": N, "bytes": [3 sizes]}]}
//      with KEY {"enctype", "kvno", "salt_type", "salt", "handle"}
//      a line end, and the packages' bytes one after the other
//
// It does not load mpc.so, so it knows nothing of the database that is imported into: it is a
// program of its own because both of them have the messages of proto/.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kdc-plugin/kdb-tool/import_plan.h"
#include "kdc-plugin/kdb-tool/import_record.h"
#include "kdc-plugin/kdb-tool/lines.h"
#include "kdc-plugin/kdb-tool/source_db.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/package/package.h"

namespace mpckdc::kdbtool {
namespace {

using enroll::KeyToShare;
using nlohmann::json;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

// No core, no debugger, no swap: keys lie in libkrb5's memory for a moment.
void ProtectMemory() {
  const rlimit none = {0, 0};
  (void)setrlimit(RLIMIT_CORE, &none);
  (void)prctl(PR_SET_DUMPABLE, 0);
  rlimit locked = {};
  const bool unlimited = geteuid() == 0 || (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 &&
                                            locked.rlim_cur == RLIM_INFINITY);
  // Under a limit later allocations would fail.
  if (!unlimited || mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    std::cerr << "mpc-kdb-seal: memory is not locked and may be swapped: see ulimit -l\n";
  }
}

// What new keys of a realm should be, without opening its database.
absl::StatusOr<std::vector<krb5_key_salt_tuple>> SupportedKeySalts(const std::string& realm) {
  krb5_context context = nullptr;
  if (kadm5_init_krb5_context(&context) != 0) {
    return absl::FailedPreconditionError("cannot read krb5.conf and kdc.conf");
  }
  absl::Cleanup release = [&] { krb5_free_context(context); };
  kadm5_config_params wanted = {}, params = {};
  if (!realm.empty()) {
    wanted.mask = KADM5_CONFIG_REALM;
    wanted.realm = const_cast<char*>(realm.c_str());
  }
  if (kadm5_get_config_params(context, 1, &wanted, &params) != 0) {
    return absl::FailedPreconditionError("reading the realm's configuration");
  }
  std::vector<krb5_key_salt_tuple> list(params.keysalts, params.keysalts + params.num_keysalts);
  kadm5_free_config_params(context, &params);
  return list;
}

struct Request {
  std::string principal;
  v1::KeyClass key_class = v1::KEY_CLASS_USER;
  v1::Gate gate = v1::GATE_TIMESTAMP;
};

class Sealer {
 public:
  Sealer(SourceDb* source, std::vector<krb5_key_salt_tuple> wanted, enroll::PackageTarget target,
         std::string transaction)
      : source_(*source),
        wanted_(std::move(wanted)),
        target_(std::move(target)),
        transaction_(std::move(transaction)) {}

  absl::Status Add(const Request& request);
  absl::Status Finish();
  void Print() const;

 private:
  absl::StatusOr<json> AddOne(const Request& request);
  absl::StatusOr<json> AddKey(const Request& request, const std::string& name,
                              krb5_const_principal principal, int32_t enctype,
                              const krb5_key_data& from, const krb5_keyblock& key);
  absl::StatusOr<json> AddHistory(const Request& request, const std::string& name,
                                  const krb5_db_entry* entry,
                                  const std::vector<krb5_key_salt_tuple>& wanted);
  absl::StatusOr<json> AddOldPassword(const Request& request, const std::string& name,
                                      krb5_const_principal principal, const OldPassword& password,
                                      uint32_t history_kvno,
                                      const std::vector<krb5_key_salt_tuple>& wanted);
  absl::Status Seal(absl::Span<const KeyToShare> keys);

  SourceDb& source_;
  const std::vector<krb5_key_salt_tuple> wanted_;
  const enroll::PackageTarget target_;
  const std::string transaction_;
  std::vector<KeyToShare> waiting_;  // for their package; of whole principals
  std::vector<KeyToShare> of_this_;  // of the principal being added
  json principals_ = json::array();
  json packages_ = json::array();
  std::string bytes_;
};

absl::StatusOr<json> Sealer::AddKey(const Request& request, const std::string& name,
                                    krb5_const_principal principal, int32_t enctype,
                                    const krb5_key_data& from, const krb5_keyblock& key) {
  KeyToShare& fresh = of_this_.emplace_back();
  int32_t salt_type = 0;
  ASSIGN_OR_RETURN(std::string salt, source_.SaltOf(principal, from, &salt_type));
  fresh.info.set_handle(enroll::RandomIdentifier());
  fresh.info.set_principal(name);
  fresh.info.set_kvno(from.key_data_kvno);
  fresh.info.set_enctype(enctype);
  fresh.info.set_salt_type(salt_type);
  fresh.info.set_salt(salt);
  fresh.info.set_key_class(request.key_class);
  fresh.info.set_gate(request.gate);
  AppendBytes(fresh.base, absl::MakeConstSpan(key.contents, key.length));
  return json{{"enctype", enctype},
              {"kvno", fresh.info.kvno()},
              {"salt_type", salt_type},
              {"salt", ToHex(salt)},
              {"handle", ToHex(fresh.info.handle())}};
}

// Its keys of types that the principal is to have; none if they cannot be read any more.
absl::StatusOr<json> Sealer::AddOldPassword(const Request& request, const std::string& name,
                                            krb5_const_principal principal,
                                            const OldPassword& password, uint32_t history_kvno,
                                            const std::vector<krb5_key_salt_tuple>& wanted) {
  json keys = json::array();
  std::vector<krb5_key_data> forms(password.size());
  for (size_t i = 0; i < password.size(); ++i) {
    const OldKey& old = password[i];
    forms[i].key_data_ver = static_cast<krb5_int16>(old.version);
    forms[i].key_data_kvno = static_cast<krb5_ui_2>(old.kvno);
    forms[i].key_data_type[0] = static_cast<krb5_int16>(old.enctype);
    forms[i].key_data_type[1] = static_cast<krb5_int16>(old.salt_type);
    forms[i].key_data_length[1] = static_cast<krb5_ui_2>(old.salt.size());
    forms[i].key_data_contents[1] =
        reinterpret_cast<krb5_octet*>(const_cast<char*>(old.salt.data()));
  }
  krb5_db_entry pretended = {};
  pretended.key_data = forms.data();
  pretended.n_key_data = static_cast<krb5_int16>(forms.size());
  for (const PlannedKey& planned : PlanImport(&pretended, wanted).keys) {
    const OldKey& old = password[static_cast<size_t>(planned.from - forms.data())];
    absl::StatusOr<KeyblockPtr> key = source_.DecryptOld(old, history_kvno);
    if (absl::IsNotFound(key.status())) return json::array();
    if (!key.ok()) return key.status();
    ASSIGN_OR_RETURN(json added, AddKey(request, name, principal, planned.enctype, *planned.from,
                                        **key));
    keys.push_back(std::move(added));
  }
  return keys;
}

absl::StatusOr<json> Sealer::AddHistory(const Request& request, const std::string& name,
                                        const krb5_db_entry* entry,
                                        const std::vector<krb5_key_salt_tuple>& wanted) {
  json history = json::array();
  const std::optional<KadmData> data = ParseKadmData(TlDataOf(entry, KRB5_TL_KADM_DATA));
  if (!data.has_value()) return history;
  for (const OldPassword& password : data->old) {
    ASSIGN_OR_RETURN(json keys, AddOldPassword(request, name, entry->princ, password,
                                               data->history_kvno, wanted));
    history.push_back(std::move(keys));
  }
  return history;
}

absl::StatusOr<json> Sealer::AddOne(const Request& request) {
  ASSIGN_OR_RETURN(EntryPtr entry, source_.Get(request.principal));
  const std::string name = UnparsedName(source_.context(), entry->princ);
  const bool old_tgs = request.key_class == v1::KEY_CLASS_TGS_OLD;
  const KadmData data =
      ParseKadmData(TlDataOf(entry.get(), KRB5_TL_KADM_DATA)).value_or(KadmData{});
  const KeySalts wanted = KeySaltsFor(source_.restricting(), data, wanted_);
  const ImportPlan plan =
      old_tgs ? PlanOldTgs(entry.get()) : PlanImport(entry.get(), wanted);
  if (plan.keys.empty()) {
    return absl::FailedPreconditionError("it has no key of a type that the servers hold");
  }
  json keys = json::array();
  for (const PlannedKey& planned : plan.keys) {
    ASSIGN_OR_RETURN(KeyblockPtr key, source_.Decrypt(entry.get(), *planned.from));
    ASSIGN_OR_RETURN(json added, AddKey(request, name, entry->princ, planned.enctype,
                                        *planned.from, *key));
    keys.push_back(std::move(added));
  }
  json result = {{"principal", name},
                 {"kvno", plan.kvno},
                 {"was", ToHex(FingerprintOf(entry.get()))},
                 {"keys", std::move(keys)}};
  if (request.key_class == v1::KEY_CLASS_USER) {
    ASSIGN_OR_RETURN(result["history"], AddHistory(request, name, entry.get(), wanted));
  }
  return result;
}

absl::Status Sealer::Add(const Request& request) {
  of_this_.clear();
  absl::StatusOr<json> added = AddOne(request);
  for (const KeyToShare& key : of_this_) {
    if (added.ok()) {
      const absl::Status checked = enroll::CheckKeyInfo(key.info, target_.realm);
      if (!checked.ok()) added = checked;
    }
  }
  if (!added.ok()) {
    json error = ErrorLine(added.status());
    error["principal"] = request.principal;
    principals_.push_back(std::move(error));
    return absl::OkStatus();
  }
  principals_.push_back(*std::move(added));
  std::move(of_this_.begin(), of_this_.end(), std::back_inserter(waiting_));
  while (waiting_.size() >= limits::kMaxKeysPerPackage) {
    RETURN_IF_ERROR(Seal(absl::MakeSpan(waiting_).first(limits::kMaxKeysPerPackage)));
    waiting_.erase(waiting_.begin(), waiting_.begin() + limits::kMaxKeysPerPackage);
  }
  return absl::OkStatus();
}

absl::Status Sealer::Seal(absl::Span<const KeyToShare> keys) {
  ASSIGN_OR_RETURN(const enroll::SealedBytes sealed,
                   enroll::SealPackages(keys, target_, transaction_));
  json sizes = json::array();
  for (const std::string& one : sealed) {
    sizes.push_back(one.size());
    bytes_ += one;
  }
  packages_.push_back({{"keys", keys.size()}, {"bytes", std::move(sizes)}});
  return absl::OkStatus();
}

absl::Status Sealer::Finish() {
  of_this_.clear();
  if (waiting_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(Seal(waiting_));
  waiting_.clear();
  return absl::OkStatus();
}

void Sealer::Print() const {
  PrintLine({{"principals", principals_}, {"packages", packages_}});
  std::cout.write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
}

absl::StatusOr<enroll::PackageTarget> ParseTarget(const json& line, std::string* transaction) {
  enroll::PackageTarget target;
  target.realm = GetText(line, "realm");
  int64_t epoch = 0;
  bool good = GetNumber(line, "epoch", 0, INT64_MAX, &epoch) && line.contains("package_keys") &&
              line["package_keys"].is_array() && line["package_keys"].size() == 3 &&
              line.contains("transaction") && FromHex(line["transaction"], transaction);
  for (size_t party = 0; party < 3 && good; ++party) {
    good = FromHex(line["package_keys"][party], &target.package_keys[party]);
  }
  target.epoch = static_cast<uint64_t>(epoch);
  if (good) return target;
  return absl::InvalidArgumentError("expected realm, epoch, transaction and package_keys first");
}

absl::StatusOr<Request> ParseRequest(const json& line) {
  Request request;
  int64_t key_class = 0, gate = 0;
  request.principal = GetText(line, "principal");
  if (request.principal.empty() || !GetNumber(line, "class", 1, INT32_MAX, &key_class) ||
      !GetNumber(line, "gate", 1, 3, &gate) ||
      !v1::KeyClass_IsValid(static_cast<int>(key_class))) {
    return absl::InvalidArgumentError("expected principal, class and gate in each line");
  }
  request.key_class = static_cast<v1::KeyClass>(key_class);
  request.gate = static_cast<v1::Gate>(gate);
  return request;
}

absl::Status Run(const std::string& realm, const std::string& profile) {
  ASSIGN_OR_RETURN(std::vector<json> lines, ReadLines());
  if (lines.empty()) return absl::InvalidArgumentError("no input");
  std::string transaction;
  ASSIGN_OR_RETURN(enroll::PackageTarget target, ParseTarget(lines[0], &transaction));
  ASSIGN_OR_RETURN(std::vector<krb5_key_salt_tuple> wanted, SupportedKeySalts(realm));
  ASSIGN_OR_RETURN(std::unique_ptr<SourceDb> source, SourceDb::Open(profile, target.realm));
  RETURN_IF_ERROR(source->FetchMasterKeys());
  Sealer sealer(source.get(), std::move(wanted), std::move(target), std::move(transaction));
  for (size_t i = 1; i < lines.size(); ++i) {
    ASSIGN_OR_RETURN(const Request request, ParseRequest(lines[i]));
    RETURN_IF_ERROR(sealer.Add(request));
  }
  RETURN_IF_ERROR(sealer.Finish());
  sealer.Print();
  std::cout.flush();
  return std::cout ? absl::OkStatus() : absl::DataLossError("cannot write the answer");
}

int Main(std::vector<std::string> arguments) {
  std::string realm;
  if (arguments.size() >= 2 && arguments[0] == "-r") {
    realm = arguments[1];
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  if (arguments.size() != 3 || arguments[0] != "import-seal" || arguments[1] != "--source") {
    std::cerr << "usage: mpc-kdb [-r REALM] import-seal --source KDC.CONF <JSON LINES\n";
    return kUsage;
  }
  ProtectMemory();
  const absl::Status status = Run(realm, arguments[2]);
  if (status.ok()) return 0;
  std::cerr << "mpc-kdb: " << status.message() << "\n";
  return kFailed;
}

}  // namespace
}  // namespace mpckdc::kdbtool

int main(int argc, char** argv) {
  return mpckdc::kdbtool::Main(std::vector<std::string>(argv + 1, argv + argc));
}
