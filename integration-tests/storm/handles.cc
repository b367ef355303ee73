// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/handles.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/string_to_key.h"

namespace mpckdc::storm {
namespace {

using nlohmann::json;

absl::Status NotAList(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(why, "; it must be what `mpc-admin list --json` printed"));
}

struct Entry {
  std::string principal;
  uint64_t kvno = 0;
  int32_t enctype = 0;
  Handle handle{};
};

// False, or nlohmann's exception, when a field is missing or of another type.
bool ReadEntry(const json& key, Entry& entry) {
  entry.kvno = key.at("kvno").get_ref<const json::number_unsigned_t&>();
  entry.principal = key.at("principal");
  const absl::StatusOr<int32_t> enctype = EnctypeFromName(key.at("enctype").get<std::string>());
  const std::string hex = key.at("handle");
  if (!enctype.ok() || hex.size() != 2 * MPC_HANDLE_BYTES ||
      hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
    return false;
  }
  const std::string handle = absl::HexStringToBytes(hex);
  std::copy(handle.begin(), handle.end(), entry.handle.begin());
  entry.enctype = *enctype;
  return !entry.principal.empty();
}

// An error when it is no such list.
absl::StatusOr<std::vector<Entry>> ReadEntries(absl::string_view text) {
  const char* wrong = "no JSON object with \"keys\"";
  std::vector<Entry> entries;
  try {
    const json list = json::parse(text.begin(), text.end());
    for (const json& key : list.at("keys").get_ref<const json::array_t&>()) {
      wrong = "a key without principal, kvno, enctype or handle";
      if (!ReadEntry(key, entries.emplace_back())) return NotAList(wrong);
    }
  } catch (const json::exception&) {
    return NotAList(wrong);
  }
  return entries;
}

bool IsGcm(int32_t enctype) {
  const Enctype* known = FindEnctype(enctype);
  return known != nullptr && known->is_gcm();
}

// That of the users, or any of GCM if theirs is not: tickets are sealed from keystream.
bool IsWantedOfKrbtgt(int32_t enctype, int32_t users) {
  return IsGcm(users) ? enctype == users : IsGcm(enctype);
}

}  // namespace

absl::StatusOr<RealmHandles> ParseHandles(absl::string_view text, absl::string_view realm,
                                          int32_t enctype) {
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, ReadEntries(text));
  if (FindEnctype(enctype) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the servers hold no keys of enctype ", enctype));
  }
  RealmHandles handles;
  handles.user_enctype = enctype;
  const std::string krbtgt = absl::StrCat("krbtgt/", realm, "@", realm);
  std::map<std::string, uint64_t> versions;
  std::optional<std::pair<bool, uint64_t>> krbtgt_rank;  // of the enctype wanted, version
  for (const Entry& entry : entries) {
    if (entry.principal == krbtgt) {
      const std::pair rank(IsWantedOfKrbtgt(entry.enctype, enctype), entry.kvno);
      if (krbtgt_rank >= rank) continue;  // nullopt is less than all
      krbtgt_rank = rank;
      handles.krbtgt = entry.handle;
      handles.krbtgt_enctype = entry.enctype;
    } else if (entry.enctype == enctype && entry.kvno >= versions[entry.principal]) {
      versions[entry.principal] = entry.kvno;
      handles.users[entry.principal] = entry.handle;
    }
  }
  if (!krbtgt_rank.has_value()) return NotAList(absl::StrCat("no key of ", krbtgt));
  if (!IsGcm(handles.krbtgt_enctype)) return NotAList(absl::StrCat("no GCM key of ", krbtgt));
  return handles;
}

absl::StatusOr<RealmHandles> ReadHandles(const std::string& file, absl::string_view realm,
                                         int32_t enctype) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return absl::NotFoundError(absl::StrCat("--handles ", file, " cannot be read"));
  absl::StatusOr<RealmHandles> handles = ParseHandles(text.str(), realm, enctype);
  if (!handles.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--handles ", file, ": ", handles.status().message()));
  }
  return handles;
}

}  // namespace mpckdc::storm
