// SPDX-License-Identifier: Apache-2.0
//
// doctor: what the three servers and the KDC's database say of themselves, and whether it is good.
// Every check says what was found and, when it is not good, what to do next. It goes on after a
// check that fails, as far as the later ones make sense.
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/one_line.h"
#include "mpc-server/base/version.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/package/certificate.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;

constexpr absl::Duration kExpirySoon = absl::Hours(24 * 30);
constexpr absl::Duration kSkewWarning = limits::kMaxPeerSkew;
constexpr absl::Duration kSkewBad = limits::kDefaultClockSkew;
constexpr size_t kNamesShown = 5;

enum Level { kOk, kWarning, kBad };

constexpr struct {
  const char* shown;
  const char* in_json;
  Colour colour;
} kLevels[] = {{"ok", "ok", Colour::kGood},
               {"warning", "warning", Colour::kWarning},
               {"BAD", "bad", Colour::kBad}};

struct Finding {
  Level level;
  std::string what;
  std::string next;
};

struct Findings {
  void Add(Level level, absl::string_view what, absl::string_view next) {
    all.push_back({level, std::string(what), std::string(next)});
  }
  void Ok(absl::string_view what) { Add(kOk, what, ""); }
  void Warn(absl::string_view what, absl::string_view next) { Add(kWarning, what, next); }
  void Bad(absl::string_view what, absl::string_view next) { Add(kBad, what, next); }
  void Bad(const absl::Status& status) { Bad(status.message(), AdviceOf(status)); }

  std::vector<Finding> all;
};

void CheckExpiry(const std::string& whose, absl::Time until, Findings* findings) {
  const std::string what = absl::StrCat(whose, " certificate is good until ", Day(until));
  if (until < absl::Now()) {
    findings->Bad(absl::StrCat(whose, " certificate expired on ", Day(until)), "renew it");
  } else if (until < absl::Now() + kExpirySoon) {
    findings->Warn(what, "renew it before that day");
  } else {
    findings->Ok(what);
  }
}

void CheckOwnCertificate(const AdminConfig& config, Findings* findings) {
  absl::StatusOr<enroll::CertificateFacts> facts =
      enroll::ReadCertificate(config.identity.certificate_file);
  if (!facts.ok()) {
    return findings->Bad(facts.status().message(),
                         "correct [identity] certificate in the configuration");
  }
  CheckExpiry("our", facts->not_after, findings);
}

// What a server says of its own files. One that is too old to know says nothing.
void CheckItsAuthority(const std::string& name, const v1::StatusReply& status,
                       Findings* findings) {
  if (!status.certificate_trouble().empty()) {
    findings->Bad(absl::StrCat(name, " does not use the certificate that is in its files: ",
                               status.certificate_trouble()),
                  "put that right: the one that it uses ends as said here");
  }
  const absl::Time until = absl::FromUnixMicros(status.authority_expires_us());
  if (status.authority_expires_us() == 0 || until > absl::Now() + kExpirySoon) return;
  CheckExpiry(absl::StrCat("the authority of ", name, ", whose"), until, findings);
}

// KDCs and administrators, as the servers saw them: the newest certificate of each name.
void CheckCallers(const std::vector<Survey>& triples, Findings* findings) {
  std::map<std::string, absl::Time> newest;
  for (const Survey& survey : triples) {
    for (const SurveyedServer& server : survey) {
      for (const v1::CallerCertificate& caller : server.status.callers()) {
        absl::Time& until = newest.try_emplace(caller.name(), absl::InfinitePast()).first->second;
        until = std::max(until, absl::FromUnixMicros(caller.expires_us()));
      }
    }
  }
  for (const auto& [name, until] : newest) {
    CheckExpiry(absl::StrCat(OnOneLine(name), "'s"), until, findings);
  }
}

std::string Seconds(absl::Duration d) {
  return absl::StrFormat("%+.3f s", absl::ToDoubleSeconds(d));
}

void CheckClock(const std::string& whose, absl::Duration difference, Findings* findings) {
  const std::string what = absl::StrCat(whose, " by ", Seconds(difference));
  const absl::Duration size = absl::AbsDuration(difference);
  if (size > kSkewBad) {
    findings->Bad(absl::StrCat("clocks differ: ", what),
                  "set the clocks (chrony): beyond [policy] clock_skew logins are refused");
  } else if (size > kSkewWarning) {
    findings->Warn(absl::StrCat("clocks differ: ", what),
                   "set the clocks (chrony): `chronyc tracking` on each machine says which is off");
  } else {
    findings->Ok(absl::StrCat("clocks agree: ", what));
  }
}

// "party 1 (host:port)"
std::string Name(const SurveyedServer& server) {
  return absl::StrCat("party ", server.status.party(), " (", server.address, ")");
}

constexpr char kUpgrade[] =
    "upgrade all three, and krb5kdc, kadmind and mpc-admin with them: README.md, \"Upgrading\"";

// "party 1 (host:port) runs mpc-server 0.2.0, protocol 5 between servers"
std::string VersionOf(const SurveyedServer& server) {
  const v1::StatusReply& status = server.status;
  return absl::StrCat(
      Name(server), " runs ", status.software(),
      status.peer_protocol() == 0
          ? ", so old that it does not say which protocol it speaks with the others"
          : absl::StrCat(", protocol ", status.peer_protocol(), " between servers"));
}

// True: those that answer are of one version, and not of one that does not say its protocol.
bool CheckVersions(const std::vector<Survey>& triples, Findings* findings) {
  std::set<std::string> software;
  std::set<uint32_t> protocols;
  std::vector<std::string> texts;
  for (const Survey& survey : triples) {
    for (const SurveyedServer& server : survey) {
      if (!server.error.ok()) continue;
      software.insert(server.status.software());
      protocols.insert(server.status.peer_protocol());
      texts.push_back(VersionOf(server));
    }
  }
  const bool old = protocols.contains(0);
  if (protocols.size() - old > 1) {
    findings->Bad(absl::StrCat("the servers speak different protocols and cannot work together: ",
                               absl::StrJoin(texts, "; ")),
                  kUpgrade);
  } else if (software.size() > 1 || protocols.size() > 1) {
    findings->Warn(
        absl::StrCat("the servers are of different versions: ", absl::StrJoin(texts, "; ")),
        kUpgrade);
  } else if (software.size() == 1 && *software.begin() != "mpc-server " MPCKDC_VERSION) {
    findings->Warn(
        absl::StrCat("this is mpc-admin " MPCKDC_VERSION ", the servers run ", *software.begin()),
        kUpgrade);
  }
  return !old && software.size() <= 1 && protocols.size() <= 1;
}

constexpr char kSameProtocol[] =
    "let the servers that force [engine] protocol force the same one, or take it out of their "
    "mpc-server.toml, and start them again";

// What a server that is not connected to its peers waits for, as far as the three say it.
std::string WhatItWaitsFor(const Survey& survey, bool same_version) {
  if (!same_version) return kUpgrade;
  if (absl::c_any_of(survey, [](const auto& s) { return s.status.has_quarantine(); })) {
    return "nothing here: a quarantined server opens no session with the others until mpc-admin "
           "readmit";
  }
  if (absl::c_any_of(survey, [](const auto& s) { return !s.error.ok(); })) {
    return "nothing here: it takes all three, and one does not answer";
  }
  if (!DifferentSecurity(survey).empty()) return "make [engine] security the same on all three";
  if (!DifferentProtocols(survey).empty()) return kSameProtocol;
  return "look at its log: it says what differs from the others, or whom it does not reach";
}

// A server whose store is empty beside others that have the realm's keys lost it.
std::string WhatMakesTheRealm(const Survey& survey) {
  std::vector<v1::StatusReply> replies;
  for (const SurveyedServer& server : survey) {
    if (server.error.ok()) replies.push_back(server.status);
  }
  const enroll::LostStores lost = enroll::FindLostStores(replies);
  return lost.any() ? lost.WayOut() : "mpc-admin init-realm";
}

void CheckServer(const SurveyedServer& server, const Survey& survey, const std::string& waits_for,
                 Findings* findings) {
  const v1::StatusReply& status = server.status;
  const std::string name = Name(server);
  findings->Ok(absl::StrFormat("%s answers in %.1f ms, %s %s", name,
                               absl::ToDoubleMilliseconds(server.round_trip), status.software(),
                               status.isa()));
  if (!status.initialised()) {
    findings->Bad(name + " has no realm yet", WhatMakesTheRealm(survey));
  }
  if (status.has_quarantine()) {
    findings->Bad(absl::StrCat(name, " is quarantined: ", TextOf(status.quarantine())),
                  "find out which server deviated and why, then mpc-admin readmit: "
                  "deploy/runbooks/a-server-deviated.md");
  }
  if (status.different_records() > 0) {
    findings->Bad(
        absl::StrCat(name, ": ", status.different_record()),
        "if a store was put back from a backup: mpc-admin catch-up PARTY; else give those "
        "principals new keys (mpc-admin enroll --replace, or randkey), or rebuild that "
        "server's store: deploy/runbooks/a-server-deviated.md");
  }
  if (!status.peers_connected()) {
    findings->Bad(name + " is not connected to both of its peers", waits_for);
  }
  if (!status.refresh_trouble().empty()) {
    findings->Bad(absl::StrCat(name, ": ", status.refresh_trouble()),
                  "put that right on the server: until then a thief's old copy of its store is as "
                  "good as before (deploy/runbooks/epochs.md)");
  }
  if (!status.refresh_waits().empty()) {
    findings->Warn(absl::StrCat(name, ": ", status.refresh_waits()),
                   "start those machines: until then, at most 12 hours, a thief's old copy of the "
                   "party's store is as good as before (deploy/postgresql.md)");
  }
  if (status.receiving()) {
    findings->Bad(name + " has not all keys yet", "wait: they come in from the two others");
  }
  if (!status.degraded().empty()) {
    findings->Bad(absl::StrCat(name, " is degraded: ", status.degraded()),
                  "put that right on the server");
  }
  CheckExpiry(name + "'s", absl::FromUnixMicros(status.certificate_expires_us()), findings);
  CheckItsAuthority(name, status, findings);
  CheckClock(absl::StrCat(name, " differs from us"), server.clock_difference, findings);
  if (status.peers_connected()) {
    CheckClock(absl::StrCat("party ", (status.party() + 1) % 3, " differs from party ",
                            status.party(), " as that one sees it"),
               absl::Microseconds(status.peer_skew_us_next()), findings);
  }
}

void CheckSecurity(const Survey& survey, Findings* findings) {
  constexpr char kRemove[] =
      "take security = \"semi-honest\" out of the three mpc-server.toml and start them again";
  const std::string differ = DifferentSecurity(survey);
  if (!differ.empty()) findings->Bad(differ, kRemove);
  if (AnySemiHonest(survey)) {
    findings->Warn(
        "security is SEMI-HONEST, for benchmarks alone: whoever owns one server can compute keys "
        "of the realm from a few logins",
        kRemove);
  } else if (absl::c_any_of(survey,
                            [](const auto& s) { return s.status.security() == "active"; })) {
    findings->Ok("the servers prove their messages to each other (security is active)");
  }
}

// Each server decides for itself, so the lowest rate of the three is in force. Of servers of one
// version alone: another's text has other quotas in it.
void CheckQuotas(const Survey& survey, Findings* findings) {
  std::set<std::string> values;
  for (const SurveyedServer& server : survey) {
    if (server.error.ok()) values.insert(server.status.quotas());
  }
  if (values.size() <= 1) return;
  findings->Warn(absl::StrCat("the servers have different quotas, the lowest is in force: ",
                              absl::StrJoin(values, " / ")),
                 "make [quota] the same in the three mpc-server.toml, then SIGHUP");
}

// Of one machine, if its store is in a database.
void CheckDatabase(const SurveyedServer& server, Findings* findings) {
  if (!server.status.has_database()) return;
  const v1::DatabaseStatus& database = server.status.database();
  if (!database.reachable()) {
    return findings->Bad(absl::StrCat(Name(server), ": ", database.trouble()),
                         "look at the database, and at [store] postgresql: deploy/postgresql.md");
  }
  findings->Ok(absl::StrFormat(
      "%s: its database %s reads in %.2f ms and commits in %.2f ms, %s", Name(server),
      database.where(), static_cast<double>(database.answer_us()) / 1e3,
      static_cast<double>(database.commit_us()) / 1e3,
      database.synchronous() ? "with a synchronous standby" : "without a synchronous standby"));
}

// One triple. True when all three answered.
bool CheckTriple(const Survey& survey, bool same_version, Findings* findings) {
  const std::string waits_for = WhatItWaitsFor(survey, same_version);
  bool all = true;
  for (const SurveyedServer& server : survey) {
    if (server.error.ok()) {
      CheckServer(server, survey, waits_for, findings);
      CheckDatabase(server, findings);
    } else {
      all = false;
      findings->Bad(server.error.message(),
                    absl::StrCat("start mpc-server on ", server.address,
                                 ", or look at its log and at the network between"));
    }
  }
  if (absl::c_any_of(survey, [](const auto& s) { return s.status.has_quarantine(); })) {
    findings->Bad(absl::StrCat("a server deviated: ", SuspicionOf(survey).Text()),
                  "treat it as lost until you know why: deploy/runbooks/a-server-deviated.md");
  }
  CheckSecurity(survey, findings);
  if (const std::string differ = DifferentProtocols(survey); !differ.empty()) {
    findings->Bad(differ, kSameProtocol);
  }
  if (same_version) CheckQuotas(survey, findings);
  return all;
}

// The same machines in the wrong order may well be healthy.
bool MixesTriples(const Survey& survey) {
  std::set<uint32_t> triples;
  for (const SurveyedServer& server : survey) {
    if (server.error.ok()) triples.insert(server.status.triple());
  }
  return triples.size() > 1;
}

// What a party's machines say beside each other, and the triples as a KDC sees them.
void CheckParties(const std::vector<Survey>& triples, Findings* findings) {
  if (triples.size() < 2) return;
  const std::vector<std::string> wrong = WrongWithinParties(triples);
  for (const std::string& what : wrong) {
    findings->Bad(what,
                  "the machines of a party have one database, one store key and one configuration "
                  "but for triple, data_dir, certificates and addresses: deploy/postgresql.md");
  }
  if (wrong.empty()) findings->Ok("the machines of each party agree on what they share");
  for (const Survey& survey : triples) {
    const std::string why = WhyNotHealthy(survey), name = "triple " + TripleOf(survey);
    if (why.empty()) {
      findings->Ok(name + " is healthy");
    } else {
      findings->Bad(
          absl::StrCat(name, " answers no jobs: ", why),
          MixesTriples(survey)
              ? "name the machines of one triple side by side in `servers` of mpc-admin's "
                "configuration, and look whether mpc_servers in each kdc.conf does"
              : "see what is said of its machines; the KDC uses the other triples "
                "meanwhile");
    }
  }
}

// True when there is a triple all of whose machines answered.
bool CheckServers(Session& session, Findings* findings) {
  const absl::StatusOr<std::vector<Survey>> triples = SurveyTriples(session);
  if (!triples.ok()) {
    findings->Bad(triples.status());
    return false;
  }
  const bool same_version = CheckVersions(*triples, findings);
  CheckCallers(*triples, findings);
  bool usable = false;
  for (const Survey& survey : *triples) usable |= CheckTriple(survey, same_version, findings);
  CheckParties(*triples, findings);
  return usable;
}

std::string Some(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamesShown);
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + shown, ", "),
                      shown < names.size()
                          ? absl::StrCat(" and ", names.size() - shown, " more")
                          : "");
}

std::string Some(const KeyListing& listing) {
  std::vector<std::string> names;
  for (const auto& [handle, key] : listing) {
    names.push_back(absl::StrCat(Describe(key.info), " on servers ", key.Parties()));
  }
  return Some(names);
}

void CheckStaged(Session& session, Findings* findings) {
  absl::StatusOr<KeyListing> staged = ListOnAll(session, "", enroll::Listed::kStaged);
  if (!staged.ok()) return findings->Bad(staged.status());
  if (staged->empty()) return findings->Ok("no unfinished transactions");
  findings->Warn(absl::StrCat("unfinished transactions left staged keys: ", Some(*staged)),
                 absl::StrCat("nothing; nobody can use them and the servers drop them after ",
                              absl::ToInt64Minutes(limits::kStagedKeyLife),
                              " minutes. An interrupted command can be run again at once"));
}

struct Comparison {
  KeyListing orphans;                   // not in the database
  std::vector<std::string> incomplete;  // not on all three, in the database
  std::vector<std::string> different;
  std::vector<std::string> dangling;    // in the database, on no server
  std::vector<std::string> deleted;     // in the database, and deleted
  absl::Time first_collected = absl::InfiniteFuture();  // of the deleted
  size_t waiting = 0;                                   // deleted, and not in the database
  std::vector<std::string> unkept;     // old, in a password history, and not kept for it
  std::vector<std::string> forgotten;  // kept for a history that does not name it
  size_t in_history = 0;               // old, in a password history, and on a server
  size_t past = 0;                     // in a password history, and on no server
};

// Of a key that only a password history names. Gone at all three it is a key from before they kept
// any, and is not compared.
void CompareHistory(const KeyListing& listing, const v1::KeyInfo& entry, Comparison* comparison) {
  const auto found = listing.find(entry.handle());
  if (found == listing.end()) {
    ++comparison->past;
    return;
  }
  ++comparison->in_history;
  if (!found->second.complete() || !found->second.kept()) {
    comparison->unkept.push_back(Describe(entry) + " on servers " + found->second.Parties());
  } else if (!found->second.same || found->second.info.principal() != entry.principal()) {
    comparison->different.push_back(Describe(entry));
  }
}

Comparison Compare(const KeyListing& listing, const KdbEntries& entries, const Policies& policies) {
  Comparison comparison;
  const KeyListing unused = Unreferenced(listing, entries);
  comparison.orphans = WithoutRetired(unused);
  for (const auto& [handle, key] : unused) {
    if (key.kept()) comparison.forgotten.push_back(Describe(key.info));
  }
  comparison.waiting = unused.size() - comparison.orphans.size() - comparison.forgotten.size();
  for (const auto& [principal, keys] : entries) {
    for (const v1::KeyInfo& entry : keys) {
      if (entry.for_history()) {
        CompareHistory(listing, entry, &comparison);
        continue;
      }
      const auto found = listing.find(entry.handle());
      const std::string name = Describe(entry);
      if (found == listing.end()) {
        comparison.dangling.push_back(name);
      } else if (!found->second.complete()) {
        comparison.incomplete.push_back(name + " on servers " + found->second.Parties());
      } else if (!found->second.same || found->second.info.principal() != principal) {
        comparison.different.push_back(name);
      } else if (found->second.retired_somewhere()) {
        comparison.deleted.push_back(name);
        comparison.first_collected =
            std::min(comparison.first_collected, policies.Collected(found->second));
      }
    }
  }
  return comparison;
}

// Of 17 to 20: nothing tells the servers how old such a ticket is.
void CheckAgeless(const KdbEntries& entries, Findings* findings) {
  const std::vector<std::string> kadmin = KadminOfStandardEnctypes(entries);
  if (!kadmin.empty()) {
    findings->Bad(
        absl::StrCat("keys of other types than gcm, whose tickets never grow old and which "
                     "the servers no longer use: ",
                     absl::StrJoin(kadmin, ", ")),
        "mpc-admin randkey --kadmin draws new ones for all of them");
  }
  std::vector<std::string> services, between;
  for (const auto& [principal, keys] : entries) {
    const bool ageless = absl::c_any_of(keys, [](const v1::KeyInfo& key) {
      const Enctype* enctype = FindEnctype(key.enctype());
      return enctype != nullptr && !enctype->is_gcm();
    });
    if (!ageless || IsKadmin(principal)) continue;
    if (KeyClassOf(principal) == v1::KEY_CLASS_SERVICE) services.push_back(principal);
    if (KeyClassOf(principal) == v1::KEY_CLASS_TGS && !IsOwnTgt(principal)) {
      between.push_back(principal);
    }
  }
  if (!between.empty()) {
    findings->Warn(
        absl::StrCat("keys between realms of 17 to 20, under which a ticket that a KDC made, or "
                     "recorded, is good as long as the key: ",
                     Some(between)),
        "after a KDC was lost new keys, in both realms: kdc-plugin/README.md, \"Keys between "
        "realms\"; or aes256-gcm, if the other realm has MPC servers too");
  }
  if (services.empty()) return;
  findings->Warn(
      absl::StrCat("protected services with keys of 17 to 20, under which a ticket that a "
                   "KDC made lives as long as the key: ",
                   Some(services)),
      "new keys after a KDC was lost: mpc-admin randkey PRINCIPAL; or gcm keys alone: "
      "--enctype aes256-gcm,aes128-gcm");
}

// Keys that were made before there were authentication indicators; old versions seal nothing more.
void CheckIndicators(const KeyListing& listing, const KdbEntries& entries, Findings* findings) {
  std::vector<std::string> without;
  for (const auto& [principal, keys] : entries) {
    uint32_t newest = 0;
    for (const v1::KeyInfo& key : keys) newest = std::max(newest, key.kvno());
    const bool lacks = absl::c_any_of(keys, [&](const v1::KeyInfo& key) {
      const auto found = listing.find(key.handle());
      return key.kvno() == newest && found != listing.end() && found->second.info.before_cammac();
    });
    if (lacks) without.push_back(principal);
  }
  if (without.empty()) return;
  findings->Warn(
      absl::StrCat("keys from before authentication indicators: a login that sets one (OTP with "
                   "`indicator`) gets no ticket under them: ",
                   Some(without)),
      "mpc-admin rotate-krbtgt for krbtgt, randkey --kadmin and randkey PRINCIPAL for services; a "
      "key between realms is entered anew in both");
}

// A rotation that nobody finished is no fault; whoever reads this may have forgotten it.
void CheckRotations(const KdbEntries& entries, Findings* findings) {
  for (const auto& [principal, keys] : entries) {
    if (!IsOwnTgt(principal) && !IsKadmin(principal)) continue;
    std::set<uint32_t> versions;
    for (const v1::KeyInfo& key : keys) versions.insert(key.kvno());
    if (versions.size() < 2) continue;
    findings->Ok(absl::StrCat(principal, " has versions ", absl::StrJoin(versions, ", "),
                              ": when the old ones can go says mpc-admin rotate-krbtgt --status"));
  }
}

// What a crash left of a kadmin renprinc: two entries, of which one is in use.
void CheckRenamings(const KdbEntries& entries, Findings* findings) {
  for (const auto& [principal, keys] : entries) {
    if (keys.empty()) continue;
    const std::string& to = keys.front().renamed_to();
    const std::string& from = keys.front().renamed_from();
    const auto old = entries.find(from);
    if (!to.empty()) {
      findings->Warn(absl::StrCat(principal, " was renamed and is ", to,
                                  " now; its old entry is still there, and nobody finds it"),
                     absl::StrCat("mpc-admin delete ", principal, " ends it"));
    } else if (!from.empty() &&
               (old == entries.end() || old->second.empty() ||
                old->second.front().renamed_to() != principal)) {
      findings->Warn(absl::StrCat("renaming ", from, " to ", principal,
                                  " was interrupted; the old name holds, and nobody finds the "
                                  "new entry"),
                     absl::StrCat("rename it again, or mpc-admin delete ", principal));
    }
  }
}

void DeleteOrphans(Session& session, const KeyListing& listing, KeyListing orphans,
                   Findings* findings) {
  absl::StatusOr<const KdbEntries*> entries = session.ReadKdb();
  absl::Status s = entries.ok() ? CheckDatabaseBelongs(listing, **entries) : entries.status();
  if (!s.ok()) return findings->Bad(s);
  const std::set<std::string> spared = SpareKeyless(session.keyless(), &orphans);
  if (!spared.empty()) {
    findings->Warn(
        absl::StrCat("not deleted, since the database has these principals and shows no key of "
                     "theirs: ",
                     Some(std::vector<std::string>(spared.begin(), spared.end()))),
        "if they are in a directory, look whether ldap_kadmind_dn may read krbPrincipalKey "
        "(deploy/ldap.md); if their keys were purged: mpc-admin delete --old PRINCIPAL");
  }
  if (orphans.empty()) return;
  s = session.DeleteKeys(Named(orphans), enroll::Deletion::kRetire);
  if (s.ok()) {
    findings->Ok(absl::StrCat("deleted keys to which nothing refers: ", Some(orphans)));
  } else {
    findings->Bad(absl::StrCat("could not delete unused keys: ", s.message()),
                  "when the server answers run mpc-admin doctor --fix again");
  }
}

void Judge(Session& session, const KeyListing& listing, const Comparison& comparison,
           Findings* findings) {
  const struct {
    const std::vector<std::string>& keys;
    const char* what;
    const char* next;
  } faults[] = {
      {comparison.dangling, "the KDC refers to keys that no server has: ",
       "give those principals new keys: mpc-admin enroll --replace, or randkey. Are these the "
       "right servers, or was a store restored from an old backup?"},
      {comparison.incomplete, "keys in use are missing on a server: ",
       "mpc-admin catch-up PARTY has that server receive them from the two others; keys that one "
       "server alone has need new ones: mpc-admin enroll --replace, or randkey"},
      {comparison.different, "servers and KDC describe keys differently: ",
       "mpc-admin list shows where; mpc-admin policy sets a gate on all three again"}};
  if (!comparison.deleted.empty()) {
    findings->Bad(
        absl::StrCat("the KDC's database names keys that were replaced or deleted, as a dump of "
                     "before or a replica does; they work until ",
                     Minute(comparison.first_collected), " UTC: ", Some(comparison.deleted)),
        "load the newest dump or propagate it; or, if this database is to stay: mpc-admin gc "
        "--keep");
  }
  if (comparison.waiting > 0) {
    findings->Ok(absl::StrCat(comparison.waiting,
                              " deleted keys wait for the end of their grace time (mpc-admin gc)"));
  }
  if (!comparison.unkept.empty()) {
    findings->Warn(absl::StrCat("old keys that a password history names and the servers do not "
                                "keep for it: ",
                                Some(comparison.unkept)),
                   "they cannot be compared when they are gone; the next change of these "
                   "passwords may have failed half-way: see the log of kadmind");
  }
  if (!comparison.forgotten.empty()) {
    findings->Warn(absl::StrCat("keys that are kept for a password history, and none names them: ",
                                Some(comparison.forgotten)),
                   "mpc-admin gc --now deletes them");
  }
  if (comparison.past > 0) {
    findings->Ok(absl::StrCat(comparison.past,
                              " old keys of password histories are on no server, and new passwords "
                              "are not compared with them"));
  }
  bool good = true;
  for (const auto& fault : faults) {
    if (fault.keys.empty()) continue;
    good = false;
    findings->Bad(absl::StrCat(fault.what, Some(fault.keys)), fault.next);
  }
  if (!comparison.orphans.empty() && session.options.fix) {
    DeleteOrphans(session, listing, comparison.orphans, findings);
  } else if (!comparison.orphans.empty()) {
    findings->Warn(absl::StrCat("keys to which the KDC does not refer: ", Some(comparison.orphans)),
                   "replaced keys stay until they are deleted: mpc-admin doctor --fix");
  }
  if (good) {
    findings->Ok(absl::StrCat("every handle of the KDC leads to a key on all three servers (",
                              listing.size() - comparison.orphans.size() - comparison.waiting -
                                  comparison.forgotten.size() - comparison.in_history,
                              " keys in use)"));
  }
}

void CheckGrace(const Policies& policies, Findings* findings) {
  const auto& grace = policies.delete_grace;
  if (grace[0] == grace[1] && grace[1] == grace[2]) return;
  findings->Warn(
      absl::StrCat("the servers keep deleted keys for different times, the shortest counts: ",
                   absl::StrJoin(grace, ", ",
                                 [](std::string* out, absl::Duration d) {
                                   *out += absl::FormatDuration(d);
                                 })),
      "make [policy] delete_grace the same in the three mpc-server.toml and start them again");
}

// Servers first, database second: a key in the making is then no orphan. A handle that seems to
// lead nowhere is looked for once more, since it may have been made in between.
void CheckStores(Session& session, Findings* findings) {
  absl::StatusOr<KeyListing> listing = ListOnAll(session, "", enroll::Listed::kCommitted);
  if (!listing.ok()) return findings->Bad(listing.status());
  absl::StatusOr<const KdbEntries*> entries = session.ReadKdbAgain();
  if (!entries.ok()) return findings->Bad(entries.status());
  absl::StatusOr<Policies> policies = ReadPolicies(session);
  if (!policies.ok()) return findings->Bad(policies.status());
  CheckGrace(*policies, findings);
  Comparison comparison = Compare(*listing, **entries, *policies);
  if (!comparison.dangling.empty()) {
    absl::StatusOr<KeyListing> newer = ListOnAll(session, "", enroll::Listed::kCommitted);
    if (newer.ok()) {
      Comparison again = Compare(*newer, **entries, *policies);
      again.orphans = std::move(comparison.orphans);
      comparison = std::move(again);
    }
  }
  Judge(session, *listing, comparison, findings);
  CheckAgeless(**entries, findings);
  CheckIndicators(*listing, **entries, findings);
  CheckRotations(**entries, findings);
  CheckRenamings(**entries, findings);
}

ExitCode Report(Session& session, const Findings& findings) {
  json list = json::array();
  std::array<size_t, std::size(kLevels)> counts = {};
  for (const Finding& finding : findings.all) {
    const auto& level = kLevels[finding.level];
    session.console.Say(level.colour, absl::StrFormat("%-8s %s", level.shown, finding.what));
    if (!finding.next.empty()) session.console.Say("         next: ", finding.next);
    list.push_back({{"level", level.in_json}, {"what", finding.what}, {"next", finding.next}});
    ++counts[finding.level];
  }
  const size_t bad = counts[kBad], warnings = counts[kWarning];
  session.console.Print(json{{"findings", list}, {"bad", bad}, {"warnings", warnings}});
  session.console.Say(findings.all.size(), " checks: ", bad, " bad, ", warnings, " warnings");
  return bad == 0 ? ExitCode::kOk : ExitCode::kFindings;
}

}  // namespace

absl::StatusOr<ExitCode> DoctorCommand(Session& session) {
  Findings findings;
  CheckOwnCertificate(session.config, &findings);
  if (CheckServers(session, &findings)) {
    const absl::StatusOr<enroll::AdminServers*> connected =
        session.Connect(/*allow_uninitialised=*/true);
    if (!connected.ok()) {
      findings.Bad(connected.status());
    } else if (!(*connected)->lost().any()) {  // it was said what an empty store lacks: everything
      findings.Ok("the servers are parties 0, 1 and 2 of one cluster and epoch");
      CheckStaged(session, &findings);
      CheckStores(session, &findings);
    }
  }
  return Report(session, findings);
}

}  // namespace mpckdc::admin
