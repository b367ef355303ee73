// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/users.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "integration-tests/storm/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/string_to_key.h"

namespace mpckdc::storm {
namespace {

using nlohmann::json;

constexpr std::streamoff kMaxCsvBytes = 1 << 30;

absl::StatusOr<User> NewUser(std::string principal, const std::string& realm) {
  ASSIGN_OR_RETURN(Principal name, ParseName(principal, realm, KRB5_NT_PRINCIPAL));
  return User{std::move(principal), std::move(name), Key()};
}

// Runs make(i) for every user on some threads; PBKDF2 of 100,000 passwords takes minutes on one.
absl::Status MakeKeys(std::vector<User>& users, int threads, const UserProgress& progress,
                      const std::function<absl::StatusOr<Key>(size_t)>& make) {
  std::atomic<size_t> next{0}, done{0};
  const auto work = [&]() -> absl::Status {
    for (size_t i = next++; i < users.size(); i = next++) {
      ASSIGN_OR_RETURN(users[i].key, make(i));
      RETURN_IF_ERROR(users[i].key.Prepare());
      ++done;
    }
    return absl::OkStatus();
  };
  std::vector<std::future<absl::Status>> pool;
  while (pool.size() < static_cast<size_t>(threads)) {
    pool.push_back(std::async(std::launch::async, work));
  }
  for (std::future<absl::Status>& worker : pool) {
    while (worker.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
      if (progress) progress(done, users.size());
    }
    RETURN_IF_ERROR(worker.get());
  }
  return absl::OkStatus();
}

// Who, and by which password.
using Named = std::pair<std::string, const SecretBytes*>;

// The keys are made from passwords and default salts.
absl::StatusOr<std::vector<User>> FromPasswords(const Options& o, const std::vector<Named>& named,
                                                const UserProgress& progress) {
  std::vector<User> users;
  users.reserve(named.size());
  for (const auto& [name, password] : named) {
    ASSIGN_OR_RETURN(User user, NewUser(name, o.realm));
    users.push_back(std::move(user));
  }
  RETURN_IF_ERROR(MakeKeys(users, o.threads, progress, [&](size_t i) {
    return Key::FromPassword(o.enctype, *named[i].second, users[i].name.get());
  }));
  return users;
}

absl::StatusOr<std::vector<User>> FromPattern(const Options& o, const UserProgress& progress) {
  if (o.number == 0) return Bad("--users needs --number: how many users the pattern has");
  std::vector<Named> named;
  for (size_t i = 0; i < o.number; ++i) {
    ASSIGN_OR_RETURN(std::string name, ExpandPattern(o.users, o.first + i));
    named.emplace_back(std::move(name), &o.password);
  }
  return FromPasswords(o, named, progress);
}

absl::StatusOr<std::string> ReadFile(const std::string& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  const std::streamoff size = in.tellg();
  if (!in) return Bad(file, ": ", strerror(errno));
  if (size > kMaxCsvBytes) return Bad(file, ": no file of at most 1 GiB");
  std::string text(static_cast<size_t>(size), '\0');
  if (!in.seekg(0).read(text.data(), size)) return Bad(file, ": cannot be read to its end");
  return text;
}

absl::StatusOr<std::vector<User>> FromCsv(const Options& o, const UserProgress& progress) {
  ASSIGN_OR_RETURN(std::string text, ReadFile(o.csv));
  absl::StatusOr<std::vector<CsvLine>> lines = ParseCsv(text);
  Wipe(text.data(), text.size());
  if (!lines.ok()) return Bad(o.csv, ": ", lines.status().message());
  std::vector<Named> named;
  for (const CsvLine& line : *lines) {
    if (o.number != 0 && named.size() == o.number) break;
    named.emplace_back(line.name, &line.password);
  }
  return FromPasswords(o, named, progress);
}

// The enctype whose keys in a keytab are keys of ours: 17 for aes128-gcm, 18 for aes256-gcm
// (mpc-server/doc/enctype.md). 0: none.
int32_t SameBaseKeys(int32_t enctype) {
  if (enctype == -24001) return ENCTYPE_AES128_CTS_HMAC_SHA1_96;
  if (enctype == -24002) return ENCTYPE_AES256_CTS_HMAC_SHA1_96;
  return 0;
}

// libkrb5's own reader: it streams, a keytab of a million users need not fit into locked memory.
// Calls use(context, entry).
template <class Use>
absl::Status ForEachEntry(const std::string& file, Use use) {
  krb5_context context = nullptr;
  krb5_keytab keytab = nullptr;
  krb5_kt_cursor cursor = nullptr;
  const absl::Cleanup free_all = [&] {
    if (keytab != nullptr && cursor != nullptr) krb5_kt_end_seq_get(context, keytab, &cursor);
    if (keytab != nullptr) krb5_kt_close(context, keytab);
    if (context != nullptr) krb5_free_context(context);
  };
  if (krb5_init_context(&context) != 0) {
    return Bad("libkrb5 does not start: is KRB5_CONFIG a good krb5.conf?");
  }
  krb5_error_code code = krb5_kt_resolve(context, absl::StrCat("FILE:", file).c_str(), &keytab);
  if (code == 0) code = krb5_kt_start_seq_get(context, keytab, &cursor);
  krb5_keytab_entry entry = {};
  while (code == 0 && (code = krb5_kt_next_entry(context, keytab, &entry, &cursor)) == 0) {
    const absl::Status s = use(context, entry);
    krb5_kt_free_entry(context, &entry);
    RETURN_IF_ERROR(s);
  }
  if (code == KRB5_KT_END) return absl::OkStatus();
  const char* text = krb5_get_error_message(context, code);
  absl::Status s = Bad("keytab ", file, ": ", text);
  krb5_free_error_message(context, text);
  return s;
}

std::string NameWithoutRealm(krb5_context context, krb5_const_principal principal) {
  char* text = nullptr;
  if (krb5_unparse_name_flags(context, principal, KRB5_PRINCIPAL_UNPARSE_NO_REALM, &text) != 0) {
    return "";
  }
  const std::string name(text);
  krb5_free_unparsed_name(context, text);
  return name;
}

absl::StatusOr<std::vector<User>> FromKeytab(const Options& o, const UserProgress& progress) {
  const int32_t same = SameBaseKeys(o.enctype);
  std::vector<User> users;
  const auto add = [&](krb5_context context, const krb5_keytab_entry& entry) -> absl::Status {
    const krb5_data& realm = entry.principal->realm;
    const bool ours = absl::string_view(realm.data, realm.length) == o.realm;
    const int32_t enctype = entry.key.enctype;
    const bool fits = enctype == o.enctype || (same != 0 && enctype == same);
    if (!ours || !fits || (o.number != 0 && users.size() >= o.number)) return absl::OkStatus();
    ASSIGN_OR_RETURN(User user, NewUser(NameWithoutRealm(context, entry.principal), o.realm));
    // A keytab has a principal's entries one after the other; the last one is the newest.
    if (!users.empty() && users.back().principal == user.principal) users.pop_back();
    ASSIGN_OR_RETURN(user.key, Key::FromBytes(o.enctype, {entry.key.contents, entry.key.length}));
    RETURN_IF_ERROR(user.key.Prepare());
    users.push_back(std::move(user));
    if (progress && users.size() % 10000 == 0) progress(users.size(), o.number);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachEntry(o.keytab, add));
  if (users.empty()) {
    return Bad("keytab ", o.keytab, ": no key of ", EnctypeText(o.enctype), " in the realm ",
               o.realm);
  }
  return users;
}

absl::Status NotAList(absl::string_view why) {
  return Bad(why, "; it must be what `mpc-admin list --json` printed");
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

}  // namespace

absl::StatusOr<std::string> ExpandPattern(absl::string_view pattern, size_t number) {
  static const std::regex kPattern("((?:[^%]|%%)*)%(0+(?:[1-9]|1[0-9]))?d((?:[^%]|%%)*)");
  std::cmatch parts;
  if (!std::regex_match(pattern.begin(), pattern.end(), parts, kPattern)) {
    return Bad("the pattern \"", pattern, "\" must have one %d or %0Nd, as in user%06d");
  }
  int digits = 0;
  absl::SimpleAtoi(parts[2].str(), &digits);  // not for an empty one
  return absl::StrReplaceAll(
      absl::StrFormat("%s%0*d%s", parts[1].str(), digits, number, parts[3].str()), {{"%%", "%"}});
}

absl::StatusOr<std::vector<CsvLine>> ParseCsv(absl::string_view text) {
  std::vector<CsvLine> lines;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripSuffix(line, "\r");
    if (line.empty() || line[0] == '#') continue;
    const size_t comma = line.find(',');
    if (comma == absl::string_view::npos || comma == 0 || comma + 1 == line.size()) {
      return Bad("line ", number, ": not \"name,password\"");
    }
    const absl::string_view password = line.substr(comma + 1);
    lines.push_back({std::string(line.substr(0, comma)),
                     SecretBytes(password.begin(), password.end())});
  }
  if (lines.empty()) return Bad("no line \"name,password\"");
  return lines;
}

absl::StatusOr<std::vector<User>> MakeUsers(const Options& o, const UserProgress& progress) {
  const int given = !o.users.empty() + !o.keytab.empty() + !o.csv.empty();
  if (given != 1) return Bad("say who logs in by one of --users, --keytab, --csv");
  if (!o.users.empty()) return FromPattern(o, progress);
  if (!o.keytab.empty()) return FromKeytab(o, progress);
  return FromCsv(o, progress);
}

absl::StatusOr<RealmHandles> ParseHandles(absl::string_view text, absl::string_view realm,
                                          int32_t enctype) {
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, ReadEntries(text));
  if (FindEnctype(enctype) == nullptr) return Bad("the servers hold no keys of enctype ", enctype);
  RealmHandles handles;
  handles.user_enctype = enctype;
  const std::string krbtgt = absl::StrCat("krbtgt/", realm, "@", realm);
  std::map<std::string, uint64_t> versions;
  std::optional<std::pair<bool, uint64_t>> krbtgt_rank;  // of the enctype wanted, version
  for (const Entry& entry : entries) {
    if (entry.principal == krbtgt) {
      // That of the users, or any of GCM if theirs is not: tickets are sealed from keystream.
      const bool wanted = IsGcm(enctype) ? entry.enctype == enctype : IsGcm(entry.enctype);
      const std::pair rank(wanted, entry.kvno);
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
  const absl::StatusOr<std::string> text = ReadFile(file);
  if (!text.ok()) return Bad("--handles ", file, " cannot be read");
  absl::StatusOr<RealmHandles> handles = ParseHandles(*text, realm, enctype);
  if (!handles.ok()) return Bad("--handles ", file, ": ", handles.status().message());
  return handles;
}

}  // namespace mpckdc::storm
