// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/parties.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/bench/options.h"
#include "mpc-server/bench/party.h"
#include "mpc-server/testing/certificates.h"

namespace mpckdc::bench {

// When one party fails the others fail by it: all errors are told.
template <class T>
absl::StatusOr<std::array<T, kParties>> Parties::All(Answers answers, const Reader<T>& read) {
  std::array<T, kParties> all;
  std::vector<std::string> errors;
  absl::Status first;
  for (int p = 0; p < kParties; ++p) {
    absl::StatusOr<T> value = answers[p].ok() ? read(*answers[p]) : answers[p].status();
    if (value.ok()) {
      all[p] = *std::move(value);
      continue;
    }
    if (first.ok()) first = value.status();
    errors.push_back(absl::StrCat("P", p, ": ", value.status().message()));
  }
  if (!first.ok()) return absl::Status(first.code(), absl::StrJoin(errors, "\n"));
  return all;
}

namespace {

class ThreadParties : public Parties {
 public:
  absl::Status Open(const BenchSetup& setup, RingsOfThree rings, absl::Duration round_timeout) {
    return AllAtOnce(kParties, [&](size_t p) {
      auto party = Party::Open(setup, static_cast<int>(p), std::move(rings[p]), round_timeout,
                               /*sharers=*/kParties);
      if (party.ok()) parties_[p] = *std::move(party);
      return party.status();
    });
  }
  Answers Ask(const json& command) override {
    Answers answers;
    AllAtOnce(kParties, [&](size_t p) {
      answers[p] = parties_[p]->Answer(command);
      return absl::OkStatus();
    }).IgnoreError();
    return answers;
  }

 private:
  std::array<std::unique_ptr<Party>, kParties> parties_;
};

// A child process that is spoken to line by line over two pipes.
class Child {
 public:
  // `words` is the command, looked up in PATH; `variable`, NAME=VALUE, joins its environment.
  static absl::StatusOr<std::unique_ptr<Child>> Start(std::vector<std::string> words,
                                                      std::string variable);
  // Ends its input and waits for it; kills it first if a line was asked for in vain.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  absl::Status Write(absl::string_view line);
  // Unavailable: it closed its output.
  absl::StatusOr<std::string> Read();

 private:
  explicit Child(std::string name) : name_(std::move(name)) {}

  const std::string name_;
  pid_t pid_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
  bool failed_ = false;
};

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

absl::StatusOr<std::unique_ptr<Child>> Child::Start(std::vector<std::string> words,
                                                    std::string variable) {
  std::unique_ptr<Child> child(new Child(words.front()));
  // Closed on exec: else each child would hold the pipes of those before it open.
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  child->to_ = fdopen(in[1], "w");
  if (pipe2(out, O_CLOEXEC) != 0) return close(in[0]), absl::ErrnoToStatus(errno, "pipe");
  child->from_ = fdopen(out[0], "r");
  std::vector<std::string> variables = {std::move(variable)};
  const std::string name = variables[0].substr(0, variables[0].find('=') + 1);
  for (char** e = environ; *e != nullptr; ++e) {
    if (!absl::StartsWith(*e, name)) variables.emplace_back(*e);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, words.front().c_str(), &actions, nullptr,
                                 Pointers(words).data(), Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", child->name_));
  child->pid_ = pid;
  return child;
}

Child::~Child() {
  if (to_ != nullptr) std::fclose(to_);
  if (pid_ > 0) {
    if (failed_) kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (from_ != nullptr) std::fclose(from_);
}

absl::Status Child::Write(absl::string_view line) {
  const std::string text = absl::StrCat(line, "\n");
  if (std::fputs(text.c_str(), to_) >= 0 && std::fflush(to_) == 0) return absl::OkStatus();
  failed_ = true;
  return absl::ErrnoToStatus(errno, absl::StrCat("writing to ", name_));
}

absl::StatusOr<std::string> Child::Read() {
  char* line = nullptr;
  size_t capacity = 0;
  const ssize_t n = getline(&line, &capacity, from_);
  std::string text = n > 0 ? std::string(line, static_cast<size_t>(n)) : "";
  std::free(line);
  failed_ = n <= 0;
  if (!failed_) return text;
  return absl::UnavailableError(absl::StrCat(name_, " ended without an answer"));
}

class ProcessParties : public Parties {
 public:
  absl::Status Start(const BenchSetup& setup, const ProcessOptions& options);
  Answers Ask(const json& command) override {
    for (const auto& child : children_) {
      if (absl::Status s = child->Write(command.dump()); !s.ok()) return {s, s, s};
    }
    return ReadAll();
  }

 private:
  Answers ReadAll() {
    Answers answers;
    for (int p = 0; p < kParties; ++p) {
      absl::StatusOr<std::string> line = children_[p]->Read();
      answers[p] = line.ok() ? ParseMessage(*line) : line.status();
    }
    return answers;
  }

  std::array<std::unique_ptr<Child>, kParties> children_;
};

std::vector<std::string> Words(const BenchSetup& setup, const ProcessOptions& options,
                               const TlsPeerOptions& peer) {
  std::vector<std::string> words;
  for (const std::string& word : options.launch) {
    words.push_back(absl::StrReplaceAll(word, {{"{party}", absl::StrCat(peer.party)}}));
  }
  words.push_back(options.program);
  for (std::string& a : PartyArguments(setup, peer.party)) words.push_back(std::move(a));
  words.push_back(absl::StrCat("--listen=", options.addresses[peer.party]));
  words.push_back(absl::StrCat("--peers=", absl::StrJoin(options.addresses, ",")));
  words.push_back("--ca=" + peer.ca_file);
  words.push_back("--cert=" + peer.certificate_file);
  words.push_back("--key=" + peer.key_file);
  words.push_back(absl::StrCat("--socket-buffer=", options.tuning.socket_buffer_bytes));
  if (!options.tuning.congestion.empty()) {
    words.push_back("--congestion=" + options.tuning.congestion);
  }
  words.push_back(absl::StrCat("--timeout=", options.tuning.round_timeout_s));
  return words;
}

absl::Status ProcessParties::Start(const BenchSetup& setup, const ProcessOptions& options) {
  ProcessOptions placed = options;
  // Its files go when the parties are connected: they have read them.
  TestCa ca;
  const std::array<TlsPeerOptions, kParties> peers = TestPeerOptions(ca);
  if (placed.addresses[0].empty()) placed.addresses = peers[0].peers;
  // The streams of zero shares and the circuits of logins take the environment's instruction set,
  // like a server's.
  const std::string isa = absl::StrCat("MPCKDC_ISA=", IsaName(setup.isa));
  for (int p = 0; p < kParties; ++p) {
    ASSIGN_OR_RETURN(children_[p], Child::Start(Words(setup, placed, peers[p]), isa));
  }
  return All<json>(ReadAll(), Read<json>).status();
}

}  // namespace

absl::Status Parties::MakeKeys() {
  return All<json>(Ask(json::object({{"do", "keys"}})), Read<json>).status();
}

absl::StatusOr<RunReport> Parties::Run(Work work, uint32_t batches) {
  const json command = {{"do", "run"}, {"work", NameOf(kWorks, work)}, {"batches", batches}};
  ASSIGN_OR_RETURN(const auto reports, All<PartyReport>(Ask(command), Read<PartyReport>));
  return RunReport{reports, batches};
}

absl::StatusOr<OutputShares> Parties::Outputs(absl::Span<const size_t> lanes) {
  const std::vector<size_t> wanted(lanes.begin(), lanes.end());
  return All<std::vector<SharedBlock>>(Ask({{"do", "outputs"}, {"lanes", wanted}}), SharesFromJson);
}

absl::StatusOr<std::array<MemoryReport, kParties>> Parties::Memory() {
  return All<MemoryReport>(Ask(json::object({{"do", "memory"}})), Read<MemoryReport>);
}

absl::StatusOr<std::unique_ptr<Parties>> OpenOnThreads(const BenchSetup& setup, RingsOfThree rings,
                                                       absl::Duration round_timeout) {
  auto parties = std::make_unique<ThreadParties>();
  RETURN_IF_ERROR(parties->Open(setup, std::move(rings), round_timeout));
  return parties;
}

absl::StatusOr<std::unique_ptr<Parties>> OpenInProcesses(const BenchSetup& setup,
                                                         const ProcessOptions& options) {
  auto parties = std::make_unique<ProcessParties>();
  RETURN_IF_ERROR(parties->Start(setup, options));
  return parties;
}

}  // namespace mpckdc::bench
