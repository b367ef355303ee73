// SPDX-License-Identifier: Apache-2.0
//
// What doctor finds at the servers: versions, clocks, certificates, databases, triples.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/doctor.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/one_line.h"
#include "mpc-server/base/version.h"
#include "mpc-server/package/certificate.h"

namespace mpckdc::admin {
namespace {

constexpr absl::Duration kExpirySoon = absl::Hours(24 * 30);
constexpr absl::Duration kSkewWarning = limits::kMaxPeerSkew;
constexpr absl::Duration kSkewBad = limits::kDefaultClockSkew;

void CheckExpiry(const std::string& whose, absl::Time until, Findings* findings) {
  const std::string what = absl::StrCat(whose, " certificate is good until ", Day(until));
  if (until < absl::Now()) {
    findings->Bad(runbook::kCertificates,
                  absl::StrCat(whose, " certificate expired on ", Day(until)), "renew it");
  } else if (until < absl::Now() + kExpirySoon) {
    findings->Warn(runbook::kCertificates, what, "renew it before that day");
  } else {
    findings->Ok(what);
  }
}

}  // namespace

void CheckOwnCertificate(const AdminConfig& config, Findings* findings) {
  absl::StatusOr<enroll::CertificateFacts> facts =
      enroll::ReadCertificate(config.identity.certificate_file);
  if (!facts.ok()) {
    return findings->Bad(runbook::kCertificates, facts.status().message(),
                         "correct [identity] certificate in the configuration");
  }
  CheckExpiry("our", facts->not_after, findings);
}

namespace {

// What a server says of its own files. One that is too old to know says nothing.
void CheckItsAuthority(const std::string& name, const v1::StatusReply& status,
                       Findings* findings) {
  if (!status.certificate_trouble().empty()) {
    findings->Bad(runbook::kCertificates,
                  absl::StrCat(name, " does not use the certificate that is in its files: ",
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
    findings->Bad(runbook::kLoginsFail, absl::StrCat("clocks differ: ", what),
                  "set the clocks (chrony): beyond [policy] clock_skew logins are refused");
  } else if (size > kSkewWarning) {
    findings->Warn(runbook::kLoginsFail, absl::StrCat("clocks differ: ", what),
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
    findings->Bad(runbook::kUpgrade,
                  absl::StrCat("the servers speak different protocols and cannot work together: ",
                               absl::StrJoin(texts, "; ")),
                  kUpgrade);
  } else if (software.size() > 1 || protocols.size() > 1) {
    findings->Warn(
        runbook::kUpgrade,
        absl::StrCat("the servers are of different versions: ", absl::StrJoin(texts, "; ")),
        kUpgrade);
  } else if (software.size() == 1 && *software.begin() != "mpc-server " MPCKDC_VERSION) {
    findings->Warn(
        runbook::kUpgrade,
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
    findings->Bad(runbook::kServerLost, name + " has no realm yet", WhatMakesTheRealm(survey));
  }
  if (status.has_quarantine()) {
    findings->Bad(runbook::kDeviated,
                  absl::StrCat(name, " is quarantined: ", TextOf(status.quarantine())),
                  "find out which server deviated and why, then mpc-admin readmit: "
                  "deploy/runbooks/a-server-deviated.md");
  }
  if (status.different_records() > 0) {
    findings->Bad(
        runbook::kDeviated,
        absl::StrCat(name, ": ", status.different_record()),
        "if a store was put back from a backup: mpc-admin catch-up PARTY; else give those "
        "principals new keys (mpc-admin enroll --replace, or randkey), or rebuild that "
        "server's store: deploy/runbooks/a-server-deviated.md");
  }
  if (!status.peers_connected()) {
    findings->Bad(runbook::kLoginsFail, name + " is not connected to both of its peers", waits_for);
  }
  if (!status.refresh_trouble().empty()) {
    findings->Bad(runbook::kEpochs, absl::StrCat(name, ": ", status.refresh_trouble()),
                  "put that right on the server: until then a thief's old copy of its store is as "
                  "good as before (deploy/runbooks/epochs.md)");
  }
  if (!status.refresh_waits().empty()) {
    findings->Warn(runbook::kEpochs, absl::StrCat(name, ": ", status.refresh_waits()),
                   "start those machines: until then, at most 12 hours, a thief's old copy of the "
                   "party's store is as good as before (deploy/postgresql.md)");
  }
  if (status.receiving()) {
    findings->Bad(runbook::kServerLost,
                  name + " has not all keys yet", "wait: they come in from the two others");
  }
  if (!status.degraded().empty()) {
    findings->Bad(runbook::kLoginsFail, absl::StrCat(name, " is degraded: ", status.degraded()),
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
  if (!differ.empty()) findings->Bad(runbook::kServerCompromised, differ, kRemove);
  if (AnySemiHonest(survey)) {
    findings->Warn(
        runbook::kServerCompromised,
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
  findings->Warn(runbook::kCapacity,
                 absl::StrCat("the servers have different quotas, the lowest is in force: ",
                              absl::StrJoin(values, " / ")),
                 "make [quota] the same in the three mpc-server.toml, then SIGHUP");
}

// Of one machine, if its store is in a database.
void CheckDatabase(const SurveyedServer& server, Findings* findings) {
  if (!server.status.has_database()) return;
  const v1::DatabaseStatus& database = server.status.database();
  if (!database.reachable()) {
    return findings->Bad(runbook::kLoginsFail, absl::StrCat(Name(server), ": ", database.trouble()),
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
      findings->Bad(runbook::kLoginsFail, server.error.message(),
                    absl::StrCat("start mpc-server on ", server.address,
                                 ", or look at its log and at the network between"));
    }
  }
  if (absl::c_any_of(survey, [](const auto& s) { return s.status.has_quarantine(); })) {
    findings->Bad(runbook::kDeviated,
                  absl::StrCat("a server deviated: ", SuspicionOf(survey).Text()),
                  "treat it as lost until you know why: deploy/runbooks/a-server-deviated.md");
  }
  CheckSecurity(survey, findings);
  if (const std::string differ = DifferentProtocols(survey); !differ.empty()) {
    findings->Bad(runbook::kLoginsFail, differ, kSameProtocol);
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
    findings->Bad(runbook::kLoginsFail, what,
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
          runbook::kLoginsFail,
          absl::StrCat(name, " answers no jobs: ", why),
          MixesTriples(survey)
              ? "name the machines of one triple side by side in `servers` of mpc-admin's "
                "configuration, and look whether mpc_servers in each kdc.conf does"
              : "see what is said of its machines; the KDC uses the other triples "
                "meanwhile");
    }
  }
}

}  // namespace

bool CheckServers(Session& session, Findings* findings) {
  const absl::StatusOr<std::vector<Survey>> triples = SurveyTriples(session);
  if (!triples.ok()) {
    findings->Bad(runbook::kLoginsFail, triples.status());
    return false;
  }
  const bool same_version = CheckVersions(*triples, findings);
  CheckCallers(*triples, findings);
  bool usable = false;
  for (const Survey& survey : *triples) usable |= CheckTriple(survey, same_version, findings);
  CheckParties(*triples, findings);
  return usable;
}

}  // namespace mpckdc::admin
