// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_SESSION_H_
#define MPC_SERVER_ADMIN_SESSION_H_

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc-server/admin/config.h"
#include "mpc-server/admin/console.h"
#include "mpc-server/admin/kdb.h"
#include "mpc-server/admin/options.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/enroll/admin_client.h"
#include "proto/admin.pb.h"

namespace mpckdc::admin {

// The world outside, as a test replaces it.
struct Environment {
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  bool out_is_terminal = false;
  size_t (*columns)() = nullptr;  // of that terminal
  bool err_is_terminal = false;
  std::string default_config;
  // A triple of the configuration, by its place there.
  std::function<absl::StatusOr<enroll::AdminServers>(const AdminConfig&, size_t triple)> dial;
  std::function<KdbProgram(const AdminConfig&)> kdb_program;
  std::function<absl::StatusOr<SecretBytes>(const std::string& prompt, bool again)> ask_password;
  std::function<absl::StatusOr<SecretBytes>()> read_password;  // --password-stdin
  std::function<absl::StatusOr<bool>(const std::string& question)> confirm;
};

// By principal.
using KdbEntries = std::map<std::string, std::vector<v1::KeyInfo>>;

// What a command works with.
class Session {
 public:
  Session(const AdminConfig& config, const Options& options, Environment* environment,
          Console* console)
      : config(config),
        options(options),
        console(*console),
        kdb(environment->kdb_program(config)),
        environment_(*environment) {}

  const AdminConfig config;
  const Options options;
  Console& console;
  const Kdb kdb;

  // Dials the servers of all triples (once), in the configuration's order, without asking them
  // anything.
  absl::StatusOr<std::vector<enroll::AdminServers>*> DialAll();
  // Checks that those of one triple are the realm's three, and works with it from now on. What one
  // triple is told all have: their machines share the parties' databases.
  absl::StatusOr<enroll::AdminServers*> Use(size_t triple, bool allow_uninitialised = false);
  // The same with the first triple that says it is ready, or else of which all three machines
  // answer. One that is configured wrong is an error, and not passed over.
  absl::StatusOr<enroll::AdminServers*> Connect(bool allow_uninitialised = false);
  // The triple that was last connected to, or chosen; its servers, dialled.
  void Choose(size_t triple) { triple_ = triple; }
  size_t triple() const { return triple_; }
  absl::StatusOr<enroll::AdminServers*> Dial();

  // All handles of the KDC's database, read once.
  absl::StatusOr<const KdbEntries*> ReadKdb();
  // Reads them again.
  absl::StatusOr<const KdbEntries*> ReadKdbAgain();
  // After that: the principals of the database that show no key at all.
  const std::set<std::string>& keyless() const { return kdb_keyless_; }

  // After Connect(): `call` at all three servers of the triple, and their errors joined.
  absl::Status OnAll(const std::function<absl::Status(int party, enroll::AdminClient&)>& call);
  absl::Status DeleteKeys(absl::Span<const v1::NamedKey> keys, enroll::Deletion how);
  absl::Status RestoreKeys(absl::Span<const v1::NamedKey> keys);

  // The first operand, with the realm; "" when there is none.
  absl::StatusOr<std::string> Principal() const;
  // From the terminal or, with --password-stdin, standard input.
  absl::StatusOr<SecretBytes> Password(const std::string& prompt, bool again);
  // OK when --yes was given or the terminal's answer is yes.
  absl::Status Confirm(const std::string& question);

 private:
  Environment& environment_;
  std::optional<std::vector<enroll::AdminServers>> triples_;
  size_t triple_ = 0;
  std::optional<KdbEntries> kdb_entries_;
  std::set<std::string> kdb_keyless_;
};

// A command line that does not go together.
absl::Status BadUsage(absl::string_view command, absl::string_view problem);

// ---- The keys on the servers ----

// What the three servers say about one handle.
struct ListedKey {
  v1::KeyInfo info;  // the lowest party's that has it, with the highest version that any
                     // says, and the strictest gate of all that they say
  std::array<bool, 3> present = {};
  bool same = true;  // all that have it say the same about it, but for the next
  std::array<int64_t, 3> retired_us = {};  // since when each has it retired; 0: it hasn't
  std::array<bool, 3> for_history = {};    // and whether it stays, for the password history
  std::array<bool, 3> reduced = {};        // and has reduced it to that
  std::array<v1::Gate, 3> gates = {};      // as each says; unspecified: it does not have it

  bool complete() const { return present[0] && present[1] && present[2]; }
  bool retired_somewhere() const;
  bool retired() const;              // by all that have it
  absl::Time retired_since() const;  // the first of them
  bool kept() const;                 // for the history, by all that have it
  std::string Parties() const;       // "012", "0-2"
  std::string Gates() const;         // "timestamp"; where they differ, of each: "none/-/pkinit"
};

using KeyListing = std::map<std::string, ListedKey>;  // by handle

// One principal's keys, or all when it is empty.
absl::StatusOr<KeyListing> ListOnAll(Session& session, const std::string& principal,
                                     enroll::Listed listed);

// Those of the listing to which the database does not refer.
KeyListing Unreferenced(const KeyListing& listing, const KdbEntries& entries);

std::vector<std::string> HandlesOf(const KeyListing& keys);

// For calls that name keys by both.
v1::NamedKey Named(const std::string& principal, const std::string& handle);
std::vector<v1::NamedKey> Named(const std::string& principal,
                                absl::Span<const std::string> handles);
std::vector<v1::NamedKey> Named(const KeyListing& keys);  // as the servers say whose they are
// Those that are in use as far as the servers know.
KeyListing WithoutRetired(KeyListing listing);

// Before keys are deleted because the database does not refer to them: an error when it refers to
// none of the servers' keys at all, as another or an empty database would.
absl::Status CheckDatabaseBelongs(const KeyListing& everything, const KdbEntries& entries);
// Takes those out of the listing whose principals show no key at all, and returns their principals:
// purged, or there is a key that the database does not show us, as a directory's access rules may.
std::set<std::string> SpareKeyless(const std::set<std::string>& keyless, KeyListing* listing);

// Takes those out of the listing that are newer than all that the database names of their principal, if it
// names any: somebody may have put them there and be about to name them. Returns how many.
size_t SpareNewer(const KdbEntries& entries, KeyListing* listing);

// After keys were retired because the database did not name them, and after it was told of new
// ones: those of the handles that it names now and a server has retired are in use again. Whoever
// makes keys and whoever deletes unused ones do so after their own writing, so that one of them
// sees what the other did. Returns how many there were. An empty principal: the handles are of
// many.
absl::StatusOr<size_t> RestoreNamed(Session& session, const std::string& principal,
                                    const std::set<std::string>& handles);

// The kadmin/* principals that have protected keys of other types than gcm: from before these were
// refused. Ascending.
std::vector<std::string> KadminOfStandardEnctypes(const KdbEntries& entries);

// "PRINCIPAL version N ENCTYPE"
std::string Describe(const v1::KeyInfo& info);

// By principal, version and enctype, for people.
std::vector<ListedKey> Sorted(const KeyListing& listing);

// After Connect(): what the servers' configurations say, by party.
struct Policies {
  std::array<absl::Duration, 3> delete_grace;
  // The middle one of the three: a server that lies has no keys end before their tickets do.
  absl::Duration max_renewable_life;

  // When the first server collects the key.
  absl::Time Collected(const ListedKey& key) const;
};
absl::StatusOr<Policies> ReadPolicies(Session& session);

// One server's status and what was noticed while asking for it.
struct SurveyedServer {
  std::string address;
  std::string certificate;  // its name
  absl::Status error;       // not OK: no status
  v1::StatusReply status;
  absl::Duration round_trip;
  absl::Duration clock_difference;  // its clock minus ours, at the middle of the round trip
};

// The three of a triple, in the order of the configuration.
using Survey = std::array<SurveyedServer, 3>;

// Why this server is quarantined, for people: "one of party 0 and party 2 deviated: ...".
std::string TextOf(const v1::Quarantine& quarantine);

// What the three say together about one that deviated. All empty: none saw anything.
struct Suspicion {
  // Whom everybody who saw something names: it was one of these if they all tell the truth.
  std::vector<uint32_t> named;
  // Whom everybody else who saw something names: it was one of these if one server deviates and
  // may lie about what it saw. Empty though somebody saw something: more than one deviates.
  std::vector<uint32_t> possible;
  std::string Text() const;  // a sentence
};
Suspicion SuspicionOf(const Survey& survey);

// Before Connect(): asks all servers of all triples at once; one that does not answer is no error
// of the survey.
absl::StatusOr<std::vector<Survey>> SurveyTriples(Session& session);
// One triple's: of the first all of whose machines answer, which is chosen then, or the first.
absl::StatusOr<Survey> SurveyServers(Session& session);

// "ready", or in a word or two why not.
std::string StateOf(const v1::StatusReply& status);
// Of the two lines the longer way, "0.25 ms"; "-": not measured.
std::string DistanceOf(const v1::StatusReply& status);

// Of the servers that answer: whether one is semi-honest, and a sentence if they differ (or "").
bool AnySemiHonest(const Survey& survey);
std::string DifferentSecurity(const Survey& survey);
// What ends a refresh whose old key is kept for machines that do not have the new one.
inline constexpr char kStartThoseMachines[] =
    "start those machines, or put right what their logs say: until they have the new key, or for "
    "12 "
    "hours after they were last up, no other refresh begins and no party is replaced "
    "(deploy/postgresql.md)";
// The same of protocols that they force.
std::string DifferentProtocols(const Survey& survey);

// "3", as its machines say, or "?".
std::string TripleOf(const Survey& survey);
std::optional<uint32_t> TripleNumber(const Survey& survey);  // none: no machine of it answers
// Why the three answer no jobs, in a few words; empty: as far as they say they do.
std::string WhyNotHealthy(const Survey& survey);
// The machines of each party beside each other: what they differ in that must be the same, and the
// other way round. One sentence each.
std::vector<std::string> WrongWithinParties(const std::vector<Survey>& triples);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_SESSION_H_
