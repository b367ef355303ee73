// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "mpc-server/base/command_line.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/base/version.h"
#include "mpc-server/bench/print.h"
#include "mpc-server/circuit/bitslice/slices.h"
#include "mpc-server/wire/socket.h"

namespace mpckdc::bench {
namespace {

using command_line::AddFlag;
using command_line::AddOption;
using command_line::Refuse;
using command_line::Setter;
using command_line::ToChoice;
using command_line::ToNumber;
using command_line::ToText;

constexpr size_t kMinMessageBytes = 16;  // lane and batch are in the first block

// ---- What is measured ----

// A field of the setup that Axes() was given. The option takes a list; each combination of all
// lists is measured.
struct Axis {
  std::string name, placeholder, description;
  Setter set;
  std::function<std::string()> get;
  std::vector<std::string> of = {};  // commands; empty: all
  std::function<std::vector<std::string>(Placement)> all =
      {};  // what "all" stands for, if it may be
};

template <class T>
Axis Choice(const std::string& name, const std::string& description, T* field,
            const Names<T>& names) {
  const std::string values = absl::StrJoin(
      names, ",", [](std::string* out, const auto& n) { absl::StrAppend(out, n.first); });
  return {name, absl::StrCat("NAME:{", values, "}"), description, ToChoice<T>(field, names),
          [=] { return NameOf(names, *field); }};
}

template <class T>
Axis Number(const std::string& name, const std::string& description, T* field,
            std::type_identity_t<T> least, std::type_identity_t<T> most) {
  return {name, "N", description, ToNumber<T>(field, least, most),
          [=] { return absl::StrCat(*field); }};
}

Axis Of(std::vector<std::string> commands, Axis axis) {
  axis.of = std::move(commands);
  return axis;
}

Axis ChannelAxis(Channel* field) {
  Axis axis = Choice("--channel",
                     "aead (the default where it is built), tls, tcp (without protection), memory "
                     "(only between threads) or all",
                     field, kChannels);
  axis.set = [set = axis.set, field](absl::string_view text) {
    absl::Status status = set(text);
    if (!status.ok() || ChannelIsBuilt(*field)) return status;
    return absl::FailedPreconditionError(absl::StrCat(text, " is not built for this machine"));
  };
  axis.all = [](Placement placement) {
    std::vector<std::string> names;
    for (const auto& [name, channel] : kChannels) {
      const bool here = channel != Channel::kMemory || placement == Placement::kThreads;
      if (here && ChannelIsBuilt(channel)) names.push_back(name);
    }
    return names;
  };
  return axis;
}

Axis IsaAxis(Isa* field) {
  return {.name = "--isa",
          .placeholder = "NAME:{auto,avx512,avx2,portable,all}",
          .description =
              "the instruction set: auto (the best one), avx512, avx2, portable, or all "
              "that this CPU has",
          .set = [field](absl::string_view text) -> absl::Status {
            ASSIGN_OR_RETURN(*field, ParseIsa(text));
            return absl::OkStatus();
          },
          .get = [field] { return std::string(IsaName(*field)); },
          .all =
              [](Placement) {
                std::vector<std::string> names;
                for (Isa isa : SupportedIsas()) names.emplace_back(IsaName(isa));
                return names;
              }};
}

Axis ChunkAxis(size_t* field) {
  Axis axis = Number("--chunk",
                     "how many blocks of a worker's share make a chunk; chunks overlap (a multiple "
                     "of 512; default: as in a server)",
                     field, kGroupLanes, limits::kMaxBatchBlocks);
  axis.set = [set = axis.set, field](absl::string_view text) {
    absl::Status status = set(text);
    return !status.ok() || *field % kGroupLanes == 0 ? status : Refuse(text, "a multiple of 512");
  };
  return axis;
}

// In the order in which they are combined: the last one changes fastest.
std::vector<Axis> Axes(BenchSetup* s) {
  return {
      ChannelAxis(&s->channel),
      Number("--workers",
             "rings; each has a thread at every party and its share of a batch (default 1; for "
             "table2 1 and the number of cores)",
             &s->workers, 1, static_cast<int>(limits::kMaxWorkers)),
      ChunkAxis(&s->chunk_lanes),
      Number("--slots", "how many chunks are under way at once (default: as in a server)",
             &s->slots, 1, 64),
      Choice("--randomness",
             "keyed (default) or exchanged: zero shares without a cipher, for twice the bytes",
             &s->randomness, kRandomnesses),
      Choice("--security",
             "semi-honest (default) or active: every message is proved before a batch's outputs "
             "are taken",
             &s->security, kSecurities),
      IsaAxis(&s->isa),
      Choice("--bits", "the size of AES keys, 128 (default) or 256", &s->bits,
             {{"128", AesBits::k128}, {"256", AesBits::k256}}),
      Number("--batch",
             "how many blocks a batch has, over all workers (default 16384); of hmac messages "
             "(2048), of rfc3962 logins (500)",
             &s->lanes, 1, limits::kMaxBatchBlocks),
      Of({"hmac"}, Choice("--hash", "sha1 (default), sha256 or sha384", &s->hash, kHashes)),
      Of({"hmac"}, Choice("--message", "shared (default) or public", &s->shared_messages,
                          {{"shared", true}, {"public", false}})),
      Of({"hmac"}, Number("--bytes", "the length of each message, 16 or more (default 300)",
                          &s->message_bytes, kMinMessageBytes, limits::kMaxSealBytes)),
      Of({"rfc3962"}, Choice("--enctype", "17, 18 (default), 19 or 20", &s->enctype,
                             {{"17", 17}, {"18", 18}, {"19", 19}, {"20", 20}})),
      Of({"rfc3962"}, Choice("--protocol",
                             "replicated (many rounds), garbled (few messages, many bytes) or auto "
                             "(default: as a leader chooses, by the batch's size and the lines "
                             "between the parties, in as many batches as it would make)",
                             &s->protocol, kProtocolChoices)),
      Of({"rfc3962"}, Choice("--checksum",
                             "yes (default) or no: whether a login has the checksum of key usage "
                             "56 over its request, which MIT's clients ask for",
                             &s->checksum, {{"yes", true}, {"no", false}})),
      Of({"rfc3962"},
         Number("--request-bytes", "the length of the AS-REQ, 16 or more (default 200)",
                &s->request_bytes, kMinMessageBytes, limits::kMaxCtsRequestBytes)),
      Of({"rfc3962"},
         Number("--reply-bytes",
                "the length of the plaintext of the AS-REP's encrypted part, 16 or more (default "
                "255)",
                &s->reply_bytes, kMinMessageBytes, limits::kMaxCtsMessageBytes)),
      Of({"hmac", "rfc3962"},
         Choice("--adder",
                "how words are added on shares: ripple, prefix (the default of hmac), "
                "fewest-rounds, or auto (the default of rfc3962): as a server chooses by the "
                "batch's size",
                &s->adder, kAdderChoices)),
      Choice("--sbox",
             "auto (default: as a server chooses by the batch's size), throughput (4 rounds) or "
             "latency (3 rounds)",
             &s->sbox, kSboxChoices)};
}

using Values = std::map<std::string, std::vector<std::string>>;  // by the axis's name

void AddAxis(CLI::App& app, const Axis& axis, Values* values) {
  AddOption(app, axis.name, axis.placeholder, axis.description,
            [axis, values](absl::string_view text) {
              std::vector<std::string>& list = (*values)[axis.name];
              list = absl::StrSplit(text, ',');
              if (axis.all && text == "all") return absl::OkStatus();
              for (const std::string& value : list) RETURN_IF_ERROR(axis.set(value));
              return absl::OkStatus();
            });
}

std::vector<BenchSetup> Combinations(const BenchSetup& base, const Values& values) {
  std::vector<BenchSetup> setups = {base};
  BenchSetup setup;
  for (const Axis& axis : Axes(&setup)) {
    const auto found = values.find(axis.name);
    if (found == values.end()) continue;
    const bool all = axis.all && found->second.front() == "all";
    std::vector<BenchSetup> more;
    for (const BenchSetup& before : setups) {
      for (const std::string& value : all ? axis.all(base.placement) : found->second) {
        setup = before;
        axis.set(value).IgnoreError();  // it was tried before
        more.push_back(setup);
      }
    }
    setups = std::move(more);
  }
  return setups;
}

// ---- The rest ----

absl::Status CheckAddress(absl::string_view text) {
  std::string host, port;
  RETURN_IF_ERROR(SplitHostPort(text, &host, &port));
  int number = 0;
  if (ToNumber(&number, 1, 65535)(port).ok()) return absl::OkStatus();
  return Refuse(text, "host:port with a port from 1 to 65535");
}

Setter ToThree(std::array<std::string, kParties>* to) {
  return [to](absl::string_view text) {
    const std::vector<std::string> parts = absl::StrSplit(text, ',');
    if (parts.size() != kParties) {
      return Refuse(text, "three addresses host:port, with commas between");
    }
    for (const std::string& part : parts) RETURN_IF_ERROR(CheckAddress(part));
    absl::c_copy(parts, to->begin());
    return absl::OkStatus();
  };
}

void AddHowAndWhere(CLI::App& app, Options* o) {
  constexpr double kMaxSeconds = 3600, kShortest = 0.001;
  app.option_defaults()->group("How");
  AddOption(app, "--seconds", "S",
            "measured time of each combination (default 2), of the floor as much",
            ToNumber(&o->seconds, 0, kMaxSeconds));
  AddOption(app, "--runs", "N",
            "runs that the time is divided into (default 3): the median is printed, and how far "
            "the runs lie apart",
            ToNumber(&o->runs, 1, 1000));
  AddFlag(app, "--json", "print JSON instead of a table", &o->json);
  AddOption(app, "--save", "FILE", "write the JSON to a file as well", ToText(&o->save));
  AddFlag(app, "--brief", "leave out the line about the machine above a table", &o->brief);
  app.option_defaults()->group("Where the parties run");
  AddOption(app, "--parties", "WHERE:{processes,threads}",
            "processes (default): three of this program; or threads of one",
            ToChoice<Placement>(&o->placement, kPlacements));
  AddOption(app, "--launch", "WORDS",
            "words before each party's command, such as \"ip netns exec lab{party}\"; {party} "
            "becomes 0, 1, 2",
            [o](absl::string_view text) {
              o->launch = absl::StrSplit(text, ' ', absl::SkipEmpty());
              return absl::OkStatus();
            });
  AddOption(app, "--addresses", "A,B,C",
            "host:port at which each party listens (default: free ports of 127.0.0.1)",
            ToThree(&o->addresses));
  AddOption(app, "--congestion", "NAME", "TCP congestion control of the parties' connections",
            ToText(&o->peer.tcp_congestion));
  AddOption(app, "--socket-buffer", "BYTES", "their socket buffers; 0 leaves the system's",
            ToNumber(&o->peer.socket_buffer_bytes, 0, 1 << 30));
  AddOption(app, "--timeout", "S",
            "a party that is silent for so long in a round ends the run (default 60)",
            ToNumber(&o->round_timeout_s, kShortest, kMaxSeconds));
}

void AddParty(CLI::App& party, Options* o, uint64_t* seed) {
  const auto add = [&](const char* name, const char* placeholder, const char* text, Setter set) {
    AddOption(party, name, placeholder, text, std::move(set)).required()->group("Options");
  };
  add("--party", "I", "0, 1 or 2", ToNumber(&o->peer.party, 0, kParties - 1));
  add("--listen", "HOST:PORT", "where it listens for its previous party", ToText(&o->peer.listen));
  add("--peers", "A,B,C", "host:port of the three", ToThree(&o->peer.peers));
  add("--ca", "FILE", "certificate authority, PEM", ToText(&o->peer.ca_file));
  add("--cert", "FILE", "certificate spiffe://TEST/mpc/peer/pI, PEM",
      ToText(&o->peer.certificate_file));
  add("--key", "FILE", "its key, PEM", ToText(&o->peer.key_file));
  AddOption(party, "--seed", "N", "keys and sharings follow from it (default 1)",
            ToNumber(seed, 0, INT64_MAX))
      .group("Options");
}

// What does not go together.
absl::Status Check(const Options& o) {
  if (o.placement == Placement::kThreads && (!o.launch.empty() || !o.addresses[0].empty())) {
    return absl::InvalidArgumentError("--launch and --addresses need --parties=processes");
  }
  if (o.command == "party" && o.setups.size() != 1) {
    return absl::InvalidArgumentError("party takes one combination: give each option one value");
  }
  for (const BenchSetup& s : o.setups) {
    if (s.channel == Channel::kMemory && s.placement != Placement::kThreads) {
      return absl::InvalidArgumentError("--channel=memory needs --parties=threads");
    }
    if (!s.joined && s.lanes < static_cast<size_t>(s.workers)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--batch=", s.lanes, " is less than --workers=", s.workers,
                       ": give every worker a block at least"));
    }
    if (s.unit != Unit::kBlock && (s.workers != 1 || s.joined)) {
      return absl::InvalidArgumentError(
          absl::StrCat(o.command, " runs on one worker: leave out --workers and --join"));
    }
  }
  return absl::OkStatus();
}

constexpr std::pair<const char*, const char*> kCommands[] = {
    {"aes", "AES on shares, each block under its own key"},
    {"hmac", "HMAC on shares, each message under its own key"},
    {"rfc3962", "logins under encryption types 17 to 20, as the jobs that a KDC sends for them; "
                "beside them as many under the CTR encryption types, as 33 AES blocks each"},
    {"channel", "the same messages in the same rounds without computation: the floor"},
    {"breakdown", "what the CPU time of a block goes to: slicing, gates, randomness, "
                  "communication, input and output"},
    {"table2", "Table 2 of Araki et al. (CCS 2016) for this machine beside the paper's figures"}};

// Values of axes are tried on `scratch`.
void Describe(CLI::App& app, Options* o, Values* values, BenchSetup* base, BenchSetup* scratch) {
  app.fallthrough()->require_subcommand(1);
  app.set_version_flag("--version", [] {
    return absl::StrCat("mpc-bench ", MPCKDC_VERSION, ": ", MachineText());
  });
  const std::vector<Axis> axes = Axes(scratch);
  app.option_defaults()->group("What is measured; a list with commas measures each combination");
  for (const auto& [name, description] : kCommands) {
    CLI::App& command = *app.add_subcommand(name, description);
    for (const Axis& axis : axes) {
      if (absl::c_linear_search(axis.of, name)) AddAxis(command, axis, values);
    }
  }
  AddFlag(*app.get_subcommand("aes"), "--with-floor",
          "measure the channel alone as well, in turn with the protocol", &o->with_floor)
      .group("How");
  CLI::App& party = *app.add_subcommand("party", "one of the three processes")->group("");
  AddParty(party, o, &base->seed);
  for (const Axis& axis : axes) AddAxis(axis.of.empty() ? app : party, axis, values);
  AddFlag(app, "--join",
          "the workers do each batch together, as a server's do, and wait for each other at its "
          "end",
          &base->joined);
  AddHowAndWhere(app, o);
}

}  // namespace

absl::StatusOr<Options> ParseOptions(absl::Span<const std::string> arguments) {
  Options o;
  o.peer.tcp_congestion.clear();  // the system's choice
  Values values;
  BenchSetup base, scratch;
  CLI::App app("measures AES, HMAC and logins on shares between three parties", "mpc-bench");
  Describe(app, &o, &values, &base, &scratch);
  ASSIGN_OR_RETURN(o.answer, command_line::Parse(app, arguments));
  if (o.answer.has_value()) return o;
  o.command = command_line::CommandOf(app);
  // Not where one is named: who asks for the best fixes it for the process (SetIsaOfThreads).
  if (!values.contains("--isa")) base.isa = BestIsa();
  base.placement = o.placement;
  if (o.command == "hmac" || values.contains("--hash")) base.unit = Unit::kHmac;
  if (o.command == "rfc3962" || values.contains("--enctype")) base.unit = Unit::kLogin;
  if (o.command == "hmac") base.adder = Adder::kPrefix;
  if (base.unit == Unit::kHmac) base.lanes = 2048;
  if (base.unit == Unit::kLogin) base.lanes = 500;
  const int cores = std::min(Cores(), static_cast<int>(limits::kMaxWorkers));
  if (o.command == "table2" && cores > 1 && !values.contains("--workers")) {
    values["--workers"] = {"1", absl::StrCat(cores)};
  }
  o.setups = Combinations(base, values);
  RETURN_IF_ERROR(Check(o));
  return o;
}

std::vector<std::string> PartyArguments(const BenchSetup& s, int party) {
  std::vector<std::string> arguments = {"party", absl::StrCat("--party=", party),
                                        absl::StrCat("--seed=", s.seed)};
  if (s.joined) arguments.push_back("--join");
  const std::string unit = s.unit == Unit::kHmac ? "hmac" : s.unit == Unit::kLogin ? "rfc3962" : "";
  BenchSetup bound = s;
  for (const Axis& axis : Axes(&bound)) {
    if (axis.of.empty() || absl::c_linear_search(axis.of, unit)) {
      arguments.push_back(absl::StrCat(axis.name, "=", axis.get()));
    }
  }
  return arguments;
}

}  // namespace mpckdc::bench
