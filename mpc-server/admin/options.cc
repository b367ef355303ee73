// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/options.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "mpc-server/admin/exit_code.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/audit/chain.h"
#include "mpc-server/base/command_line.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/base/table_reader.h"
#include "mpc-server/base/version.h"
#include "mpc-server/key/string_to_key.h"

namespace mpckdc::admin {
namespace {

using command_line::AddFlag;
using command_line::AddOperands;
using command_line::AddOption;
using command_line::Setter;
using command_line::ToText;

// What `parse` makes of the value.
template <class T>
Setter To(std::optional<T>* to, absl::StatusOr<T> (*parse)(absl::string_view)) {
  return [=](absl::string_view text) {
    absl::StatusOr<T> value = parse(text);
    if (value.ok()) *to = *value;
    return value.status();
  };
}

Setter ToEnctypes(std::vector<int32_t>* to) {
  return [to](absl::string_view text) {
    for (absl::string_view name : absl::StrSplit(text, ',')) {
      ASSIGN_OR_RETURN(int32_t enctype, EnctypeFromName(name));
      to->push_back(enctype);
    }
    return absl::OkStatus();
  };
}

Setter ToTime(absl::Time* to) {
  return [to](absl::string_view text) {
    std::string error;
    for (const char* format : {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%E*S",
                               "%Y-%m-%dT%H:%M:%E*SZ", "%Y-%m-%dT%H:%M:%E*S%Ez"}) {
      if (absl::ParseTime(format, text, absl::UTCTimeZone(), to, &error)) return absl::OkStatus();
    }
    return command_line::Refuse(text, "a time such as 2026-11-21 or 2026-11-21T16:00:00Z");
  };
}

Setter ToDigits(size_t count, const char* what, std::string* to) {
  return [=](absl::string_view text) {
    *to = std::string(text);
    const bool hex = text.find_first_not_of("0123456789abcdef") == text.npos;
    if (hex && text.size() == count) return absl::OkStatus();
    return command_line::Refuse(text, absl::StrCat("the ", count, " hexadecimal digits of ", what));
  };
}

// A command whose operand is a principal.
CLI::App& AddCommand(CLI::App& app, const char* name, bool required, Options* o,
                     const char* description) {
  CLI::App& command = *app.add_subcommand(name, description);
  AddOperands(command, "PRINCIPAL", 1, &o->operands).allow_extra_args(false)->required(required);
  return command;
}

void AddPasswordStdin(CLI::App& command, Options* o) {
  AddFlag(command, "--password-stdin", "Read the password from the first line of standard input.",
          &o->password_stdin);
}

void AddGate(CLI::App& command, Options* o) {
  AddOption(command, "--gate", "GATE:{timestamp,pkinit,timestamp-or-pkinit,kdc-trusted,none}",
            "What must precede a ticket. timestamp: an encrypted timestamp, which the servers "
            "verify; pkinit: the signature of a certificate, which the servers verify; "
            "timestamp-or-pkinit: either; kdc-trusted: the KDC's word, for OTP; none: nothing.",
            To(&o->gate, GateFromName));
}

// What new keys should be like.
void AddKeyOptions(CLI::App& command, Options* o) {
  AddFlag(command, "--delete-old",
          "Delete the replaced keys from the servers; they stay usable for the grace time where a "
          "database still names them. Without the option they stay, useless to clients, until "
          "delete --old; but those of krbtgt stay in use for the tickets under them, which this "
          "option ends.",
          &o->delete_old);
  AddFlag(command, "--no-create", "Do not add the principal to the KDC's database.",
          &o->no_create);
  AddOption(command, "--enctype",
            "NAME,...:{aes256-gcm,aes128-gcm,aes256-cts-hmac-sha1-96,aes128-cts-hmac-sha1-96,"
            "aes256-cts-hmac-sha384-192,aes128-cts-hmac-sha256-128}",
            "Only keys of these enctypes, of which the servers hold aes256-gcm, aes128-gcm and, "
            "for clients that know no others, aes256-cts-hmac-sha1-96 (18), "
            "aes128-cts-hmac-sha1-96 (17), aes256-cts-hmac-sha384-192 (20) and "
            "aes128-cts-hmac-sha256-128 (19). krb5's short names and the numbers are understood, "
            "and the option may be repeated. An enctype that is asked for must be in the KDC's "
            "supported_enctypes. Without the option all of that list that the servers hold, or "
            "what the principal's password policy allows; for krbtgt and kadmin/* "
            "the gcm types of these.",
            ToEnctypes(&o->enctypes));
  AddOption(command, "--class", "CLASS:{user,service}",
            "What the keys do: those of a user log in, by a password or kinit -k; those of a "
            "service get tickets sealed for them. Without the option the class of the principal's "
            "present keys; for a new principal what the name says: a service has a dot in its "
            "second component or a first component such as host, HTTP or nfs.",
            To(&o->key_class, KeyClassFromName));
  AddGate(command, o);
}

void AddEnroll(CLI::App& app, Options* o) {
  CLI::App& enroll = AddCommand(app, "enroll", /*required=*/false, o,
                                "share a password's or keytab's keys between the servers\n"
                                "The password is asked for twice on the terminal. krbtgt is not "
                                "enrolled but drawn: see randkey.");
  AddPasswordStdin(enroll, o);
  AddOption(enroll, "--keytab", "FILE",
            "Take the keys from a keytab: those of the highest version.", ToText(&o->keytab));
  AddFlag(enroll, "--all", "Every principal of the keytab.", &o->all);
  AddFlag(enroll, "--replace",
          "Give new keys to a principal that has protected ones. Gates stay unless --gate is "
          "given.", &o->replace);
  AddKeyOptions(enroll, o);
}

void AddRandkey(CLI::App& app, Options* o) {
  CLI::App& randkey = AddCommand(app, "randkey", /*required=*/false, o,
                                 "let the servers draw keys that nobody ever sees");
  AddFlag(randkey, "--kadmin",
          "Instead of a principal: every kadmin/* principal that has keys of other types than gcm. "
          "Their old keys are deleted.",
          &o->kadmin);
  AddKeyOptions(randkey, o);
}

void AddDelete(CLI::App& app, Options* o) {
  CLI::App& command = AddCommand(app, "delete", /*required=*/false, o,
                                 "delete a principal and its keys, or keys no longer used");
  AddFlag(command, "--old", "Only keys that the KDC's database refers to no more.", &o->old);
  AddFlag(command, "--all", "With --old: of every principal of the servers.", &o->all);
  AddFlag(command, "--force", "Also a principal that the realm needs (krbtgt, kadmin).", &o->force);
  AddFlag(command, "--now",
          "At once, and those as well that were deleted before and are still usable: after a key "
          "became known.",
          &o->now);
}

void AddGc(CLI::App& app, Options* o) {
  CLI::App& gc = AddCommand(
      app, "gc", /*required=*/false, o,
      "show deleted keys, which stay usable for a grace time, or end or keep them\n"
      "Without an option it shows them. The servers collect them by themselves when their time is "
      "up ([policy] delete_grace).");
  AddFlag(gc, "--collect", "Have the servers collect now what is due, and say how many.",
          &o->collect);
  AddFlag(gc, "--now", "Delete all of them at once, but for those that the database names.",
          &o->now);
  AddFlag(gc, "--keep",
          "Those that the KDC's database names are keys in use again: after an older database was "
          "loaded and is to stay.",
          &o->keep);
  AddFlag(gc, "--yes", "Do not ask.", &o->yes);
  AddFlag(gc, "--force", "With --now: those that the database names as well.", &o->force);
}

void AddRotate(CLI::App& app, Options* o) {
  CLI::App& rotate = AddCommand(
      app, "rotate-krbtgt", /*required=*/false, o,
      "draw the next krbtgt key, and remove the old one when no ticket needs it\n"
      "The PRINCIPAL is krbtgt of the realm, or another whose key the servers draw, such as "
      "kadmin/admin. Given again after an interruption it does what is left.");
  AddFlag(rotate, "--kadmin", "Every kadmin/* principal that has protected keys.", &o->kadmin);
  AddFlag(rotate, "--status", "Only say which versions there are and what is due.", &o->show_state);
  AddFlag(rotate, "--finish", "Remove the old keys; refused while a ticket may need them.",
          &o->finish);
  AddFlag(rotate, "--force",
          "With --finish: at once, which ends the tickets under the old keys. Without it: once "
          "more, although old keys are still there, or although the servers hold a newer key than "
          "the database names.",
          &o->force);
  AddOption(rotate, "--if-older", "AGE",
            "For a timer: rotate when the newest key is older, such as 30d, finish when that is "
            "due, and else do nothing. Units: s, m, h, d.",
            To(&o->if_older, ParseLife));
}

void AddTop(CLI::App& app, Options* o) {
  CLI::App& top = *app.add_subcommand(
      "top",
      "show again and again what the servers do: logins a second, batches, how long they take\n"
      "Rates and means are of the time since the last look. Ctrl-C ends it.");
  AddOption(top, "--interval", "SECONDS", "Between two looks, 2 unless told otherwise.",
            command_line::ToNumber(&o->interval, 0.1, 3600.0));
  AddOption(top, "--count", "N", "End after N looks.",
            command_line::ToNumber(&o->count, 1, 1'000'000));
}

void AddImport(CLI::App& app, Options* o) {
  CLI::App& import = *app.add_subcommand(
      "import-realm",
      "move the users of an MIT realm here with their passwords\n"
      "Reads the realm through its own kdc.conf, or from a dump and its stash file; all files are "
      "on the KDC's host. PRINCIPALs: these alone. Given again after an interruption it does what "
      "is left. Until --commit each principal can go back. See mpc-admin(8).");
  AddOperands(import, "PRINCIPAL", limits::kBulkPrincipals, &o->operands);
  AddOption(import, "--source", "KDC.CONF",
            "The kdc.conf of the realm to be imported, with db2, klmdb or kldap.",
            ToText(&o->source));
  AddOption(import, "--dump", "FILE", "Or what kdb5_util dump wrote there.", ToText(&o->dump));
  AddOption(import, "--stash", "FILE", "With --dump: its master key, as kdb5_util stash writes it.",
            ToText(&o->stash));
  AddOption(import, "--scratch", "FOLDER",
            "With --dump: where a database of its own is made of it, on the KDC's host. "
            "/var/lib/krb5kdc/mpc-import without the option.",
            ToText(&o->scratch));
  AddFlag(import, "--dry-run", "Say what would be done and what would be left, and why.",
          &o->dry_run);
  AddFlag(import, "--rollback",
          "The PRINCIPALs, or all that were imported, are again as they were.", &o->rollback);
  AddFlag(import, "--commit",
          "The import stays: krbtgt's next key is drawn, the old one only opens tickets, and what "
          "a rollback needs is removed.",
          &o->commit);
  AddFlag(import, "--scrub",
          "After --commit: overwrite what is left of the old keys on the KDC's host, and name the "
          "copies elsewhere that stay dangerous. Stop krb5kdc and kadmind before.",
          &o->scrub);
  AddFlag(import, "--yes", "Do not ask.", &o->yes);
  AddGate(import, o);
}

void AddSpan(CLI::App& command, Options* o) {
  AddOption(command, "--since", "TIME",
            "From then on, UTC: 2026-11-21, 2026-11-21T16:00 or 2026-11-21T16:00:00Z.",
            ToTime(&o->since));
  AddOption(command, "--until", "TIME", "Up to then.", ToTime(&o->until));
}

void AddAudit(CLI::App& app, Options* o) {
  CLI::App& audit = *app.add_subcommand(
      "audit", "check one server's audit log, compare three, or show what concerns a principal\n"
               "A log is its files, or their folder. Needs no configuration and no server.");
  audit.require_subcommand(1);
  const auto add = [&](const char* name, const char* description) {
    CLI::App& command = *audit.add_subcommand(name, description);
    AddOperands(command, "FILE", limits::kMaxAuditFiles, &o->operands).required();
    return &command;
  };
  CLI::App& verify = *add("verify", "check that no line was altered, removed, moved or inserted\n"
                               "Name the FILEs of one server's log, or their folder.");
  AddOption(verify, "--head", "HASH",
            "The hash of a line, noted elsewhere, that must be in the log.",
            ToDigits(audit::kHashDigits, "a line's hash", &o->head));
  AddSpan(*add("reconcile", "compare the logs of the three servers, given in any order\n"
                            "Name the FILEs of all three, or their folders."), o);
  CLI::App& show = *add("show", "print a log's jobs and administrative acts\n"
                             "Name the FILEs of one server's log, or their folder.");
  AddOption(show, "--principal", "NAME",
            "Only what concerns this principal: its name, or the 32 hexadecimal digits that the "
            "log has for it.", ToText(&o->principal));
  AddOption(show, "--service", "NAME",
            "Only jobs that sealed or opened a ticket under a key of this principal, such as "
            "kadmin/admin or krbtgt/EXAMPLE.COM; the same forms of name.",
            ToText(&o->service));
  AddOption(show, "--request", "NAME",
            "Only the jobs of this request: the 16 hexadecimal digits that end its line in krb5kdc's "
            "log.", ToDigits(audit::kRequestDigits, "a request's name", &o->request));
  AddSpan(show, o);
}

void Describe(CLI::App& app, Options* o) {
  app.fallthrough()->require_subcommand(1);
  app.get_help_ptr()->description("Explain; after a command, that command.");
  app.set_version_flag("--version", "mpc-admin " MPCKDC_VERSION, "Print the version.");
  AddOption(app, "--config", "FILE",
            "The configuration; without it $MPC_ADMIN_CONFIG or /etc/mpc-kdc/admin.toml.",
            ToText(&o->config));
  AddFlag(app, "--json",
          "Print one JSON object instead of text; an error becomes {\"error\": ..., \"next\": ..., "
          "\"exit\": ...}.", &o->json);
  AddFlag(app, "--quiet", "Show no progress.", &o->quiet);
  app.add_subcommand("init-realm", "make the three servers ready for the realm; harmless again");
  AddEnroll(app, o);
  AddRandkey(app, o);
  AddImport(app, o);
  AddRotate(app, o);
  AddDelete(app, o);
  AddGc(app, o);
  AddFlag(AddCommand(app, "list", /*required=*/false, o, "list the keys on the servers"),
          "--staged", "Keys of unfinished transactions instead.", &o->staged);
  AddCommand(app, "verify", /*required=*/false, o,
             "recompute on shares that each key's records belong together");
  AddGate(AddCommand(app, "policy", /*required=*/true, o,
                     "show or set what must precede a ticket"), o);
  app.add_subcommand("status", "show the three servers");
  AddTop(app, o);
  AddFlag(*app.add_subcommand("refresh",
                              "make all shares anew: what was stolen before is then worth nothing"),
          "--no-wait",
          "Return when the three servers are in the next share epoch; they write their records in "
          "the background.",
          &o->no_wait);
  AddOperands(*app.add_subcommand(
                  "catch-up",
                  "bring a party's store that was put back from a backup up to date\n"
                  "What it lacks comes from the two others. Of an older share epoch it would be "
                  "refused: see replace-party."),
              "PARTY", 1, &o->operands)
      .allow_extra_args(false)
      ->required(true);
  CLI::App& replace = *app.add_subcommand(
      "replace-party",
      "rebuild a party that lost its store from the two others\n"
      "Its server runs with an empty data directory and a certificate of the party. No key exists "
      "anywhere while it is done, and the lost store is worth nothing afterwards.");
  AddOperands(replace, "PARTY", 1, &o->operands).allow_extra_args(false)->required(true);
  AddFlag(replace, "--no-wait",
          "Return when keys begin to come in; then run mpc-admin refresh yourself.",
          &o->no_wait);
  app.add_subcommand(
      "readmit",
      "end the quarantine after a server deviated\n"
      "Each server that saw one opens no session and answers no job until then. First "
      "find out which server it was, and why: see mpc-admin(8).");
  AddFlag(*app.add_subcommand("doctor", "look for everything that is wrong"), "--fix",
          "Delete keys to which nothing refers; they stay usable for the grace time.", &o->fix);
  AddAudit(app, o);
  CLI::App& login = AddCommand(app, "test-login", /*required=*/true, o,
                               "log in by kinit into a private cache and say how long it took");
  AddPasswordStdin(login, o);
  AddOption(login, "--kinit", "PROGRAM", "The kinit to run.", ToText(&o->kinit));
  app.footer("Exit status: 0 done, 1 something wrong was found, 2 bad command line or "
             "configuration, 3 a server, the KDB command or the KDC did not answer, 4 refused, 5 "
             "inconsistent (run mpc-admin doctor), 6 wrong password. See mpc-admin(8).");
}

}  // namespace

absl::StatusOr<Options> ParseOptions(absl::Span<const std::string> arguments) {
  Options options;
  CLI::App app("Administers the keys that three MPC servers hold in shares for a Kerberos realm.",
               "mpc-admin");
  Describe(app, &options);
  absl::StatusOr<std::optional<std::string>> answer = command_line::Parse(app, arguments);
  options.command = command_line::CommandOf(app);
  if (!answer.ok()) {
    return Advise(answer.status(), absl::StrCat("see mpc-admin ", options.command,
                                                options.command.empty() ? "" : " ", "--help"));
  }
  options.answer = *std::move(answer);
  return options;
}

}  // namespace mpckdc::admin
