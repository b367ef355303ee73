// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/import_report.h"

#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/string_to_key.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;

constexpr size_t kShown = 20;  // principals that are left; --json has all

// Types that the servers do not hold, as krb5 calls them.
std::string NameOfType(int32_t enctype) {
  if (FindEnctype(enctype) != nullptr) return std::string(EnctypeName(enctype));
  switch (enctype) {
    case 1:
      return "des-cbc-crc";
    case 2:
      return "des-cbc-md4";
    case 3:
      return "des-cbc-md5";
    case 16:
      return "des3-cbc-sha1";
    case 23:
      return "arcfour-hmac";
    case 24:
      return "arcfour-hmac-exp";
    case 25:
      return "camellia128-cts-cmac";
    case 26:
      return "camellia256-cts-cmac";
    default:
      return absl::StrCat("enctype ", enctype);
  }
}

std::string TypesOf(const std::vector<ScannedKey>& keys) {
  std::set<std::string> names;
  for (const ScannedKey& key : keys) names.insert(NameOfType(key.enctype));
  return absl::StrJoin(names, ", ");
}

json PairsOf(const std::vector<std::pair<std::string, std::string>>& pairs) {
  json list = json::array();
  for (const auto& [principal, why] : pairs) {
    list.push_back({{"principal", principal}, {"reason", why}});
  }
  return list;
}

}  // namespace

std::string WhyLeft(const Scanned& principal) {
  if (!principal.planned.empty()) return "";
  if (principal.kvno == 0) return "it has no keys";
  if (!principal.weak.empty()) {
    return absl::StrCat("no AES key, only ", TypesOf(principal.weak));
  }
  return "its AES keys are of types that supported_enctypes, or its policy, does not list";
}

ImportReport ImportReport::Of(const ImportScan& scan) {
  ImportReport report;
  report.converts = scan.converts;
  for (const Scanned& one : scan.principals) {
    if (one.state == ImportState::kGone) {
      report.gone += one.place == Place::kLocal || one.place == Place::kProtected ? 1 : 0;
      continue;
    }
    if (one.place == Place::kLocal) ++report.local;
    if (one.place != Place::kProtected) continue;
    if (one.state == ImportState::kChanged) ++report.changed;
    if (one.state != ImportState::kOld) {
      // What it has left cannot be told from handles.
      ++report.before;
      continue;
    }
    for (const ScannedKey& key : one.weak) ++report.weak[NameOfType(key.enctype)];
    report.old_versions += one.old.size();
    if (const std::string why = WhyLeft(one); !why.empty()) {
      report.left.emplace_back(one.principal, why);
      continue;
    }
    ++report.to_import;
    report.old_passwords += one.history;
  }
  return report;
}

void ImportReport::Say(Console& console) const {
  const size_t still = to_import - imported - failed.size();
  Table table = {{"principals", "", ""}};
  const auto row = [&](const char* what, size_t count, const std::string& remark) {
    if (count > 0) table.push_back({what, absl::StrCat(count), remark});
  };
  row("imported", imported, "keys are on the three servers");
  row(dry_run ? "to import" : "not imported yet", still, "");
  row("before", before, "had protected keys already");
  row("changed", changed, "of these: new keys since the import; a rollback leaves them");
  row("gone", gone, "deleted or renamed here since their import: stay so, unless you name them");
  row("local", local, converts ? "services and the like: stay as they are"
                               : "services and the like: copied, keys under the new master key");
  row("left", left.size(), "no key that can be moved; new passwords will be needed");
  row("failed", failed.size(), "");
  for (const auto& [type, count] : weak) {
    row("keys left", count, absl::StrCat(type, ": the servers hold no such keys"));
  }
  row("keys left", old_versions, "of old versions, which no login needs");
  row("old passwords", old_passwords, "of password histories: come along");
  console.Print(table);
  const auto list = [&](const char* what, const auto& pairs) {
    for (size_t i = 0; i < pairs.size() && i < kShown; ++i) {
      console.Say(Colour::kWarning, "  ", what, " ", pairs[i].first, ": ", pairs[i].second);
    }
    if (pairs.size() > kShown) {
      console.Say("  and ", pairs.size() - kShown, " more: --json has all");
    }
  };
  list("left:", left);
  list("failed:", failed);
  if (!policies.empty()) {
    console.Say(Colour::kWarning, "  policies that were here and differ, not changed: ",
                absl::StrJoin(policies, ", "));
  }
  if (!krbtgt.empty()) console.Say("  krbtgt: ", krbtgt);
}

json ImportReport::ToJson() const {
  return {{"mode", converts ? "convert" : "copy"},
          {"dry_run", dry_run},
          {"to_import", to_import},
          {"imported", imported},
          {"before", before},
          {"changed", changed},
          {"gone", gone},
          {"local", local},
          {"copied", copied},
          {"left", PairsOf(left)},
          {"failed", PairsOf(failed)},
          {"weak_keys", weak},
          {"old_version_keys", old_versions},
          {"old_passwords", old_passwords},
          {"different_policies", policies},
          {"krbtgt", krbtgt}};
}

}  // namespace mpckdc::admin
