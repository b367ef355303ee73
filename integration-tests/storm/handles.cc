// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/handles.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
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
  uint32_t kvno = 0;
  int32_t enctype = 0;
  Handle handle{};
};

// False when a field is missing or of another type.
bool ReadEntry(const json& key, Entry& entry) {
  if (!key.is_object()) return false;
  const auto text = [&](const char* name) {
    const auto field = key.find(name);
    return field != key.end() && field->is_string() ? field->get<std::string>() : std::string();
  };
  const auto kvno = key.find("kvno");
  if (kvno == key.end() || !kvno->is_number_unsigned()) return false;
  entry.kvno = kvno->get<uint32_t>();
  entry.principal = text("principal");
  const absl::StatusOr<int32_t> enctype = EnctypeFromName(text("enctype"));
  const std::string hex = text("handle");
  if (!enctype.ok() || hex.size() != 2 * MPC_HANDLE_BYTES ||
      hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
    return false;
  }
  const std::string handle = absl::HexStringToBytes(hex);
  std::copy(handle.begin(), handle.end(), entry.handle.begin());
  entry.enctype = *enctype;
  return !entry.principal.empty();
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
  const json list = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (list.is_discarded() || !list.is_object() || !list.contains("keys") ||
      !list["keys"].is_array()) {
    return NotAList("no JSON object with \"keys\"");
  }
  if (FindEnctype(enctype) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the servers hold no keys of enctype ", enctype));
  }
  RealmHandles handles;
  handles.user_enctype = enctype;
  const std::string krbtgt = absl::StrCat("krbtgt/", realm, "@", realm);
  std::map<std::string, uint32_t> versions;
  std::pair<bool, uint32_t> krbtgt_rank;  // of the enctype wanted, version
  bool has_krbtgt = false;
  for (const json& key : list["keys"]) {
    Entry entry;
    if (!ReadEntry(key, entry)) return NotAList("a key without principal, kvno, enctype or handle");
    if (entry.principal == krbtgt) {
      const std::pair<bool, uint32_t> rank = {IsWantedOfKrbtgt(entry.enctype, enctype),
                                              entry.kvno};
      if (has_krbtgt && rank <= krbtgt_rank) continue;
      has_krbtgt = true;
      krbtgt_rank = rank;
      handles.krbtgt = entry.handle;
      handles.krbtgt_enctype = entry.enctype;
    } else if (entry.enctype == enctype && entry.kvno >= versions[entry.principal]) {
      versions[entry.principal] = entry.kvno;
      handles.users[entry.principal] = entry.handle;
    }
  }
  if (!has_krbtgt) return NotAList(absl::StrCat("no key of ", krbtgt));
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
