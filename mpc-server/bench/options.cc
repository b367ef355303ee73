// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/options.h"

#include <algorithm>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/bench/machine.h"
#include "mpc-server/circuit/bitslice/slices.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/wire/socket.h"

namespace mpckdc::bench {
namespace {

constexpr int kMaxWorkers = static_cast<int>(limits::kMaxWorkers);
constexpr size_t kMinMessageBytes = 16;  // lane and batch are in the first block
constexpr int kMaxRuns = 1000;
constexpr double kMaxSeconds = 3600;

constexpr const char* kCommands[] = {"aes",       "hmac",   "rfc3962", "channel",
                                     "breakdown", "table2", "party"};

enum Group { kWhat, kHmac, kLogin, kHow, kWhere, kParty };  // sections of the help

struct Entry {
  Group group;
  const char* name;
  const char* argument;  // nullptr: a flag
  const char* help;
  std::function<absl::Status(absl::string_view, Options*)> set;
};

absl::Status Bad(absl::string_view value, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("\"", value, "\" is not ", expected));
}

template <class T>
absl::Status Number(absl::string_view text, T low, T high, T* out) {
  int64_t n = 0;
  if (!absl::SimpleAtoi(text, &n) || n < static_cast<int64_t>(low) ||
      n > static_cast<int64_t>(high)) {
    return Bad(text, absl::StrCat("a number from ", low, " to ", high));
  }
  *out = static_cast<T>(n);
  return absl::OkStatus();
}

// A list separated by commas; `one` parses an element.
template <class T, class One>
absl::Status List(absl::string_view text, std::vector<T>* out, One one) {
  out->clear();
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    T value{};
    if (absl::Status s = one(part, &value); !s.ok()) return s;
    out->push_back(value);
  }
  return absl::OkStatus();
}

absl::Status ParseChannel(absl::string_view text, Channel* out) {
  std::vector<absl::string_view> names;
  for (Channel c : kAllChannels) {
    names.push_back(ChannelName(c));
    if (ChannelName(c) != text) continue;
    if (ChannelIsBuilt(c)) return *out = c, absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(text, " is not built for this machine"));
  }
  return Bad(text, absl::StrCat("one of ", absl::StrJoin(names, ", ")));
}

absl::Status ParseSbox(absl::string_view text, std::optional<Sbox>* out) {
  if (text == "auto") return *out = std::nullopt, absl::OkStatus();
  for (Sbox s : {Sbox::kThroughput, Sbox::kLatency}) {
    if (SboxName(s) == text) return *out = s, absl::OkStatus();
  }
  return Bad(text, "one of auto, throughput, latency");
}

absl::Status ParseBits(absl::string_view text, AesBits* out) {
  if (text != "128" && text != "256") return Bad(text, "128 or 256");
  *out = text == "128" ? AesBits::k128 : AesBits::k256;
  return absl::OkStatus();
}

absl::Status ParseIsaName(absl::string_view text, Isa* out) {
  absl::StatusOr<Isa> isa = ParseIsa(text);
  if (isa.ok()) *out = *isa;
  return isa.status();
}

absl::Status ParseRandomness(absl::string_view text, Randomness* out) {
  for (Randomness r : {Randomness::kKeyed, Randomness::kExchanged}) {
    if (RandomnessName(r) == text) return *out = r, absl::OkStatus();
  }
  return Bad(text, "keyed or exchanged");
}

absl::Status ParseHash(absl::string_view text, HashKind* out) {
  for (HashKind h : {HashKind::kSha1, HashKind::kSha256, HashKind::kSha384}) {
    if (HashName(h) == text) return *out = h, absl::OkStatus();
  }
  return Bad(text, "one of sha1, sha256, sha384");
}

absl::Status ParseAdder(absl::string_view text, Adder* out) {
  for (Adder a : kAdders) {
    if (AdderName(a) == text) return *out = a, absl::OkStatus();
  }
  return Bad(text, "one of ripple, prefix, fewest-rounds");
}

absl::Status ParseMessageKind(absl::string_view text, bool* shared) {
  if (text != "public" && text != "shared") return Bad(text, "public or shared");
  *shared = text == "shared";
  return absl::OkStatus();
}

absl::Status ParseEnctype(absl::string_view text, int32_t* out) {
  const bool number = absl::SimpleAtoi(text, out);
  const Enctype* enctype = number ? FindEnctype(*out) : nullptr;
  if (enctype == nullptr || enctype->is_gcm()) return Bad(text, "one of 17, 18, 19, 20");
  return absl::OkStatus();
}

absl::Status ParseYesNo(absl::string_view text, bool* out) {
  if (text != "yes" && text != "no") return Bad(text, "yes or no");
  *out = text == "yes";
  return absl::OkStatus();
}

absl::Status ParseMessageBytes(absl::string_view text, size_t* out) {
  return Number<size_t>(text, kMinMessageBytes, limits::kMaxSealBytes, out);
}

absl::Status ParsePart(absl::string_view text, size_t* out) {
  absl::Status s = Number<size_t>(text, kGroupLanes, limits::kMaxBatchBlocks, out);
  if (s.ok() && *out % kGroupLanes != 0) return Bad(text, "a multiple of 512");
  return s;
}

absl::Status ParsePlacement(absl::string_view text, Placement* out) {
  for (Placement p : {Placement::kProcesses, Placement::kThreads}) {
    if (PlacementName(p) == text) return *out = p, absl::OkStatus();
  }
  return Bad(text, "processes or threads");
}

absl::Status Seconds(absl::string_view text, double low, double* out) {
  if (!absl::SimpleAtod(text, out) || !(*out >= low && *out <= kMaxSeconds)) {
    return Bad(text, absl::StrCat("a number of seconds from ", low, " to ", kMaxSeconds));
  }
  return absl::OkStatus();
}

absl::Status CheckAddress(absl::string_view text) {
  constexpr int kMaxPort = 65535;
  std::string host, port;
  if (absl::Status s = SplitHostPort(text, &host, &port); !s.ok()) return s;
  int number = 0;
  if (absl::SimpleAtoi(port, &number) && number >= 1 && number <= kMaxPort) {
    return absl::OkStatus();
  }
  return Bad(text, "host:port with a port from 1 to 65535");
}

absl::Status Three(absl::string_view text, std::array<std::string, kParties>* out) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  if (parts.size() != kParties) return Bad(text, "three addresses host:port, with commas between");
  for (size_t p = 0; p < parts.size(); ++p) {
    if (absl::Status s = CheckAddress(parts[p]); !s.ok()) return s;
    (*out)[p] = parts[p];
  }
  return absl::OkStatus();
}

absl::Status Text(absl::string_view text, std::string* out) {
  if (text.empty()) return Bad(text, "a value");
  *out = std::string(text);
  return absl::OkStatus();
}

using V = absl::string_view;

// What is measured, each a list.
std::vector<Entry> WhatEntries() {
  return {
      {kWhat, "--channel", "NAME", "aead (the default where it is built), tls, tcp (without\n"
       "protection), memory (threads only) or all",
       [](V v, Options* o) {
         o->all_channels = v == "all";
         return o->all_channels ? absl::OkStatus() : List(v, &o->channels, ParseChannel);
       }},
      {kWhat, "--batch", "N", "blocks of one batch, over all workers (16384); messages of an\n"
       "hmac's (2048), logins of an rfc3962's (500)",
       [](V v, Options* o) {
         return List(v, &o->batches, [](V t, size_t* n) {
           return Number<size_t>(t, 1, limits::kMaxBatchBlocks, n);
         });
       }},
      {kWhat, "--workers", "W", "rings; each has a thread at each party and its part of a\n"
       "batch (1; table2: 1 and the number of cores)",
       [](V v, Options* o) {
         return List(v, &o->workers, [](V t, int* n) { return Number(t, 1, kMaxWorkers, n); });
       }},
      {kWhat, "--join", nullptr, "the workers do each batch together, as a server's do, and\n"
       "wait for each other at its end",
       [](V, Options* o) { return o->joined = true, absl::OkStatus(); }},
      {kWhat, "--part", "N", "blocks of a part of a ring's share; parts overlap (as a server's)",
       [](V v, Options* o) { return List(v, &o->parts, ParsePart); }},
      {kWhat, "--slots", "N", "parts of a ring under way at once (as a server's)",
       [](V v, Options* o) {
         return List(v, &o->slots, [](V t, size_t* n) { return Number<size_t>(t, 1, 64, n); });
       }},
      {kWhat, "--randomness", "NAME", "keyed (default) or exchanged: zero shares without a\n"
       "cipher, for twice the bytes",
       [](V v, Options* o) { return List(v, &o->randomness, ParseRandomness); }},
      {kWhat, "--isa", "NAME", "auto, avx512, avx2, portable or all (that this CPU has)",
       [](V v, Options* o) {
         if (v != "all") return List(v, &o->isas, ParseIsaName);
         return o->isas = SupportedIsas(), absl::OkStatus();
       }},
      {kWhat, "--sbox", "NAME", "auto (by the batch's size), throughput or latency",
       [](V v, Options* o) { return List(v, &o->sboxes, ParseSbox); }},
      {kWhat, "--bits", "N", "128 or 256",
       [](V v, Options* o) { return List(v, &o->bits, ParseBits); }},
  };
}

std::vector<Entry> HmacEntries() {
  return {
      {kHmac, "--hash", "NAME", "sha1 (default), sha256 or sha384",
       [](V v, Options* o) { return List(v, &o->hashes, ParseHash); }},
      {kHmac, "--adder", "NAME", "ripple, prefix (default) or fewest-rounds",
       [](V v, Options* o) { return List(v, &o->adders, ParseAdder); }},
      {kHmac, "--message", "KIND", "shared (default) or public",
       [](V v, Options* o) { return List(v, &o->shared_messages, ParseMessageKind); }},
      {kHmac, "--bytes", "N", "of each message (300)",
       [](V v, Options* o) {
         return List(v, &o->message_bytes, ParseMessageBytes);
       }},
  };
}

std::vector<Entry> LoginEntries() {
  return {
      {kLogin, "--enctype", "N", "17, 18 (default), 19 or 20",
       [](V v, Options* o) { return List(v, &o->enctypes, ParseEnctype); }},
      {kLogin, "--checksum", "YESNO", "with the checksum of usage 56 over the request (yes)",
       [](V v, Options* o) { return List(v, &o->checksums, ParseYesNo); }},
      {kLogin, "--request-bytes", "N", "of the AS-REQ (200)",
       [](V v, Options* o) { return List(v, &o->request_bytes, ParseMessageBytes); }},
      {kLogin, "--reply-bytes", "N", "plaintext of the AS-REP's encrypted part (255)",
       [](V v, Options* o) { return List(v, &o->reply_bytes, ParseMessageBytes); }},
  };
}

std::vector<Entry> HowEntries() {
  return {
      {kHow, "--seconds", "S", "measured time of each combination (2)",
       [](V v, Options* o) { return Seconds(v, 0, &o->seconds); }},
      {kHow, "--runs", "N", "runs that the time is divided into: median and spread (3)",
       [](V v, Options* o) { return Number(v, 1, kMaxRuns, &o->runs); }},
      {kHow, "--with-floor", nullptr, "aes: measures the channel alone as well, in the same run",
       [](V, Options* o) { return o->with_floor = true, absl::OkStatus(); }},
      {kHow, "--json", nullptr, "prints JSON instead of a table",
       [](V, Options* o) { return o->json = true, absl::OkStatus(); }},
      {kHow, "--brief", nullptr, "leaves out the line about the machine above a table",
       [](V, Options* o) { return o->brief = true, absl::OkStatus(); }},
      {kHow, "--save", "FILE", "writes the JSON to a file as well",
       [](V v, Options* o) { return Text(v, &o->save); }},
      {kHow, "--help", nullptr, "this text",
       [](V, Options* o) { return o->help = true, absl::OkStatus(); }},
      {kHow, "--version", nullptr, "version and commit",
       [](V, Options* o) { return o->version = true, absl::OkStatus(); }},
  };
}

std::vector<Entry> WhereEntries() {
  return {
      {kWhere, "--parties", "WHERE", "processes (three of this program) or threads of one",
       [](V v, Options* o) { return ParsePlacement(v, &o->placement); }},
      {kWhere, "--launch", "WORDS", "words before each party's command, such as\n"
       "\"ip netns exec bench{party}\"; {party} becomes 0, 1, 2",
       [](V v, Options* o) {
         o->launch = absl::StrSplit(v, ' ', absl::SkipEmpty());
         return absl::OkStatus();
       }},
      {kWhere, "--addresses", "A,B,C", "host:port of each party (free ports of 127.0.0.1)",
       [](V v, Options* o) { return Three(v, &o->addresses); }},
      {kWhere, "--congestion", "NAME", "TCP congestion control of the parties' connections",
       [](V v, Options* o) { return Text(v, &o->tuning.congestion); }},
      {kWhere, "--socket-buffer", "BYTES", "their SO_SNDBUF and SO_RCVBUF; 0 leaves the system's",
       [](V v, Options* o) { return Number(v, 0, 1 << 30, &o->tuning.socket_buffer_bytes); }},
      {kWhere, "--timeout", "S", "a party silent for so long in a round ends the run (60)",
       [](V v, Options* o) {
         double s = 0;
         absl::Status status = Seconds(v, 0.001, &s);
         o->tuning.round_timeout = absl::Seconds(s);
         return status;
       }},
  };
}

std::vector<Entry> PartyEntries() {
  return {
      {kParty, "--party", "I", "0, 1 or 2",
       [](V v, Options* o) { return Number(v, 0, kParties - 1, &o->party); }},
      {kParty, "--listen", "HOST:PORT", "where it listens for its previous party",
       [](V v, Options* o) { return Text(v, &o->listen); }},
      {kParty, "--peers", "A,B,C", "host:port of the three",
       [](V v, Options* o) { return Three(v, &o->peers); }},
      {kParty, "--ca", "FILE", "certificate authority, PEM",
       [](V v, Options* o) { return Text(v, &o->ca); }},
      {kParty, "--cert", "FILE", "certificate spiffe://TEST/mpc/peer/pI, PEM",
       [](V v, Options* o) { return Text(v, &o->certificate); }},
      {kParty, "--key", "FILE", "its key, PEM",
       [](V v, Options* o) { return Text(v, &o->key); }},
      {kParty, "--seed", "N", "keys and sharings follow from it (1)",
       [](V v, Options* o) { return Number<uint64_t>(v, 0, INT64_MAX, &o->seed); }},
  };
}

const std::vector<Entry>& Table() {
  static const std::vector<Entry>* const table = [] {
    auto* all = new std::vector<Entry>;
    for (const auto& part :
         {WhatEntries(), HmacEntries(), LoginEntries(), HowEntries(), WhereEntries(),
          PartyEntries()}) {
      all->insert(all->end(), part.begin(), part.end());
    }
    return all;
  }();
  return *table;
}

std::string Section(Group group) {
  constexpr size_t kColumn = 24;
  std::string text;
  for (const Entry& e : Table()) {
    if (e.group != group) continue;
    std::string left = absl::StrCat("  ", e.name, e.argument == nullptr ? "" : "=",
                                    e.argument == nullptr ? "" : e.argument);
    left.resize(std::max(kColumn, left.size() + 1), ' ');
    absl::StrAppend(&text, left,
                    absl::StrJoin(absl::StrSplit(e.help, '\n'), "\n" + std::string(kColumn, ' ')),
                    "\n");
  }
  return text;
}

absl::Status SetOption(absl::string_view argument, absl::string_view following, bool* took,
                       Options* options) {
  const std::pair<absl::string_view, absl::string_view> split =
      absl::StrSplit(argument, absl::MaxSplits('=', 1));
  const bool has_value = absl::StrContains(argument, '=');
  for (const Entry& e : Table()) {
    if (split.first != e.name) continue;
    if (e.argument == nullptr && has_value) {
      return absl::InvalidArgumentError(absl::StrCat(e.name, " takes no value"));
    }
    *took = e.argument != nullptr && !has_value;
    if (*took && following.data() == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(e.name, " needs a value: ", e.argument));
    }
    absl::Status s = e.set(*took ? following : split.second, options);
    return s.ok() ? s : absl::Status(s.code(), absl::StrCat(e.name, ": ", s.message()));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown option ", split.first, "; see mpc-bench --help"));
}

std::vector<int> WorkersOf(const Options& o) {
  if (!o.workers.empty()) return o.workers;
  const int cores = std::min(ThisMachine().cores, kMaxWorkers);
  if (o.command == "table2" && cores > 1) return {1, cores};
  return {1};
}

// Each setup with each value of one field.
template <class T>
std::vector<BenchSetup> Times(const std::vector<BenchSetup>& setups, const std::vector<T>& values,
                              T BenchSetup::*field) {
  std::vector<BenchSetup> all;
  for (const BenchSetup& setup : setups) {
    for (const T& value : values) {
      all.push_back(setup);
      all.back().*field = value;
    }
  }
  return all;
}

absl::Status CheckParty(const Options& o) {
  if (o.party < 0) return absl::InvalidArgumentError("party needs --party");
  const std::pair<const char*, const std::string*> needed[] = {{"--listen", &o.listen},
                                                               {"--peers", &o.peers[0]},
                                                               {"--ca", &o.ca},
                                                               {"--cert", &o.certificate},
                                                               {"--key", &o.key}};
  for (const auto& [name, value] : needed) {
    if (value->empty()) return absl::InvalidArgumentError(absl::StrCat("party needs ", name));
  }
  const size_t combinations = o.channels.size() * o.batches.size() * WorkersOf(o).size() *
                              o.sboxes.size() * o.bits.size() * o.parts.size() *
                              o.slots.size() * o.randomness.size() * o.adders.size() *
                              o.shared_messages.size() * o.message_bytes.size() *
                              std::max<size_t>(o.hashes.size(), 1) *
                              std::max<size_t>(o.enctypes.size(), 1) * o.checksums.size() *
                              o.request_bytes.size() * o.reply_bytes.size();
  if (combinations != 1 || o.isas.size() > 1) {
    return absl::InvalidArgumentError("party takes one combination, no lists");
  }
  return absl::OkStatus();
}

std::vector<Channel> ChannelsOf(Placement placement) {
  std::vector<Channel> channels(std::begin(kAllChannels), std::end(kAllChannels));
  if (placement == Placement::kProcesses) std::erase(channels, Channel::kMemory);
  std::erase_if(channels, [](Channel c) { return !ChannelIsBuilt(c); });
  return channels;
}

// What does not go together.
absl::Status Check(const Options& o) {
  if (std::find(std::begin(kCommands), std::end(kCommands), o.command) == std::end(kCommands)) {
    return absl::InvalidArgumentError(absl::StrCat(
        o.command.empty() ? "no command" : absl::StrCat("unknown command \"", o.command, "\""),
        "; one of aes, hmac, rfc3962, channel, breakdown, table2 (see mpc-bench --help)"));
  }
  const bool memory = std::find(o.channels.begin(), o.channels.end(), Channel::kMemory) !=
                      o.channels.end();
  if (memory && (o.placement != Placement::kThreads || o.command == "party")) {
    return absl::InvalidArgumentError("--channel=memory needs --parties=threads");
  }
  if (o.placement == Placement::kThreads && (!o.launch.empty() || !o.addresses[0].empty())) {
    return absl::InvalidArgumentError("--launch and --addresses need --parties=processes");
  }
  const size_t smallest = *std::min_element(o.batches.begin(), o.batches.end());
  const std::vector<int> workers = WorkersOf(o);
  const int most = *std::max_element(workers.begin(), workers.end());
  if (!o.joined && smallest < static_cast<size_t>(most)) {
    return absl::InvalidArgumentError(absl::StrCat("--batch=", smallest, " is less than --workers=",
                                                   most, ": a worker would have no block"));
  }
  if (!o.enctypes.empty() && (most != 1 || o.joined || o.with_floor)) {
    return absl::InvalidArgumentError("rfc3962 has one worker and no floor");
  }
  if (!o.hashes.empty() && (most != 1 || o.joined || o.with_floor)) {
    return absl::InvalidArgumentError("hmac has one worker and no floor");
  }
  return o.command == "party" ? CheckParty(o) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<Options> ParseOptions(absl::Span<const std::string> arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& a = arguments[i];
    if (absl::StartsWith(a, "-")) {
      bool took = false;
      absl::string_view following;
      if (i + 1 < arguments.size()) following = arguments[i + 1];
      if (absl::Status s = SetOption(a, following, &took, &options); !s.ok()) return s;
      if (took) ++i;
    } else if (options.command.empty()) {
      options.command = a;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unexpected argument \"", a, "\""));
    }
  }
  if (options.help || options.version) return options;
  const bool hmac = options.command == "hmac", login = options.command == "rfc3962";
  if (hmac && options.hashes.empty()) options.hashes = {HashKind::kSha1};
  if (!hmac && options.command != "party" && !options.hashes.empty()) {
    return absl::InvalidArgumentError("--hash is of mpc-bench hmac");
  }
  if (login && options.enctypes.empty()) options.enctypes = {LoginSetup().enctype};
  if (!login && options.command != "party" && !options.enctypes.empty()) {
    return absl::InvalidArgumentError("--enctype is of mpc-bench rfc3962");
  }
  if (options.batches.empty()) options.batches = {size_t{hmac ? 2048u : login ? 500u : 16384u}};
  if (options.all_channels) options.channels = ChannelsOf(options.placement);
  if (absl::Status s = Check(options); !s.ok()) return s;
  return options;
}

std::string HelpText() {
  return absl::StrCat(
      "usage: mpc-bench aes|hmac|rfc3962|channel|breakdown|table2 [options]\n"
      "\n"
      "  aes        AES on shares between three parties, each block under its own key\n"
      "  hmac       HMAC on shares, each message under its own key\n"
      "  rfc3962    logins under enctypes 17 to 20 on shares, beside those under ours\n"
      "  channel    the same messages in the same rounds without computation: the floor\n"
      "  breakdown  what the time of a block goes to\n"
      "  table2     Table 2 of Araki et al. (CCS 2016) for this machine\n"
      "\n"
      "What is measured; a list with commas measures each combination:\n",
      Section(kWhat), "\nOf hmac, lists too:\n", Section(kHmac),
      "\nOf rfc3962, lists too, with --adder:\n", Section(kLogin),
      "\nHow:\n", Section(kHow), "\nWhere the parties run:\n", Section(kWhere),
      "\nmpc-bench party is one of the three processes; mpc-bench starts them itself. It is told\n"
      "what to do on standard input (mpc-server/doc/bench.md). Its further options:\n",
      Section(kParty));
}

Sbox AutoSbox(const BenchSetup& setup) {
  const size_t teams = static_cast<size_t>(Teams(setup));
  const size_t lanes = (setup.lanes + teams - 1) / teams;
  return lanes < limits::kLatencySboxBlocks ? Sbox::kLatency : Sbox::kThroughput;
}

// Each setup with each kind of HMAC; without a hash as it is.
std::vector<BenchSetup> TimesHmacs(const std::vector<BenchSetup>& setups, const Options& o) {
  if (o.hashes.empty()) return setups;
  std::vector<BenchSetup> all;
  for (const BenchSetup& setup : setups) {
    for (HashKind hash : o.hashes) {
      for (bool shared : o.shared_messages) {
        for (size_t bytes : o.message_bytes) {
          for (Adder adder : o.adders) {
            all.push_back(setup);
            all.back().hmac = HmacSetup{hash, adder, shared, bytes};
          }
        }
      }
    }
  }
  return all;
}

// Each setup with each kind of login; without an enctype as it is.
std::vector<BenchSetup> TimesLogins(const std::vector<BenchSetup>& setups, const Options& o) {
  if (o.enctypes.empty()) return setups;
  std::vector<BenchSetup> all;
  for (const BenchSetup& setup : setups) {
    for (int32_t enctype : o.enctypes) {
      for (bool checksum : o.checksums) {
        for (size_t request : o.request_bytes) {
          for (size_t reply : o.reply_bytes) {
            for (Adder adder : o.adders) {
              all.push_back(setup);
              all.back().login = LoginSetup{enctype, checksum, adder, request, reply};
            }
          }
        }
      }
    }
  }
  return all;
}

std::vector<BenchSetup> Setups(const Options& o) {
  BenchSetup s;
  s.placement = o.placement;
  s.seed = o.seed;
  s.joined = o.joined;
  std::vector<BenchSetup> setups = {s};
  setups = Times(setups, o.bits, &BenchSetup::bits);
  setups = Times(setups, o.isas.empty() ? std::vector<Isa>{BestIsa()} : o.isas, &BenchSetup::isa);
  setups = Times(setups, o.randomness, &BenchSetup::randomness);
  setups = Times(setups, o.channels, &BenchSetup::channel);
  setups = Times(setups, WorkersOf(o), &BenchSetup::workers);
  setups = Times(setups, o.parts, &BenchSetup::part_lanes);
  setups = Times(setups, o.slots, &BenchSetup::slots);
  setups = Times(setups, o.batches.empty() ? std::vector<size_t>{s.lanes} : o.batches,
                 &BenchSetup::lanes);
  setups = TimesLogins(TimesHmacs(setups, o), o);
  std::vector<BenchSetup> all;
  for (const BenchSetup& setup : setups) {
    for (std::optional<Sbox> sbox : o.sboxes) {
      all.push_back(setup);
      all.back().sbox = sbox.value_or(AutoSbox(setup));
    }
  }
  return all;
}

std::vector<std::string> PartyArguments(const BenchSetup& s, int party) {
  std::vector<std::string> arguments = {
      "party",
      absl::StrCat("--party=", party),
      absl::StrCat("--channel=", ChannelName(s.channel)),
      absl::StrCat("--batch=", s.lanes),
      absl::StrCat("--workers=", s.workers),
      absl::StrCat("--part=", s.part_lanes),
      absl::StrCat("--slots=", s.slots),
      absl::StrCat("--randomness=", RandomnessName(s.randomness)),
      absl::StrCat("--isa=", IsaName(s.isa)),
      absl::StrCat("--sbox=", SboxName(s.sbox)),
      absl::StrCat("--bits=", static_cast<int>(s.bits)),
      absl::StrCat("--seed=", s.seed)};
  if (s.joined) arguments.push_back("--join");
  if (s.hmac.has_value()) {
    arguments.push_back(absl::StrCat("--hash=", HashName(s.hmac->hash)));
    arguments.push_back(absl::StrCat("--adder=", AdderName(s.hmac->adder)));
    arguments.push_back(absl::StrCat("--message=", s.hmac->shared ? "shared" : "public"));
    arguments.push_back(absl::StrCat("--bytes=", s.hmac->bytes));
  }
  if (s.login.has_value()) {
    arguments.push_back(absl::StrCat("--enctype=", s.login->enctype));
    arguments.push_back(absl::StrCat("--checksum=", s.login->checksum ? "yes" : "no"));
    arguments.push_back(absl::StrCat("--adder=", AdderName(s.login->adder)));
    arguments.push_back(absl::StrCat("--request-bytes=", s.login->request_bytes));
    arguments.push_back(absl::StrCat("--reply-bytes=", s.login->reply_bytes));
  }
  return arguments;
}

}  // namespace mpckdc::bench
