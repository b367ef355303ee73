// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/parties.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/bench/options.h"
#include "mpc-server/bench/party.h"
#include "mpc-server/testing/certificates.h"

namespace mpckdc::bench {

// When one party fails the others fail by it: all errors are told.
template <class T>
absl::StatusOr<std::array<T, kParties>> Parties::All(const Answers& answers) {
  std::array<T, kParties> all;
  std::vector<std::string> errors;
  absl::Status first;
  for (int p = 0; p < kParties; ++p) {
    absl::StatusOr<T> value = answers[p].ok() ? Read<T>(*answers[p]) : answers[p].status();
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

// A child process that is spoken to line by line over a socket, its standard input and output.
class Child {
 public:
  // `words` is the command, looked up in PATH.
  static absl::StatusOr<std::unique_ptr<Child>> Start(std::vector<std::string> words);
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
  FILE* socket_ = nullptr;
  bool failed_ = false;
};

absl::StatusOr<std::unique_ptr<Child>> Child::Start(std::vector<std::string> words) {
  std::unique_ptr<Child> child(new Child(words.front()));
  // Closed on exec: else each child would hold the sockets of those before it open.
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::ErrnoToStatus(errno, "socketpair");
  }
  child->socket_ = fdopen(ends[0], "r");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    posix_spawn_file_actions_adddup2(&actions, ends[1], fd);
  }
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", child->name_));
  child->pid_ = pid;
  return child;
}

Child::~Child() {
  if (socket_ != nullptr) shutdown(fileno(socket_), SHUT_WR);
  if (pid_ > 0) {
    if (failed_) kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (socket_ != nullptr) std::fclose(socket_);
}

absl::Status Child::Write(absl::string_view line) {
  const std::string text = absl::StrCat(line, "\n");
  if (dprintf(fileno(socket_), "%s", text.c_str()) > 0) return absl::OkStatus();
  failed_ = true;
  return absl::ErrnoToStatus(errno, absl::StrCat("writing to ", name_));
}

absl::StatusOr<std::string> Child::Read() {
  char* line = nullptr;
  size_t capacity = 0;
  const ssize_t n = getline(&line, &capacity, socket_);
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
  const TlsPeerOptions& tuning = options.tuning;
  words.insert(words.end(),
               {"--ca=" + peer.ca_file, "--cert=" + peer.certificate_file, "--key=" + peer.key_file,
                absl::StrCat("--socket-buffer=", tuning.socket_buffer_bytes),
                absl::StrCat("--timeout=", options.round_timeout_s)});
  if (!tuning.tcp_congestion.empty()) words.push_back("--congestion=" + tuning.tcp_congestion);
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
  setenv("MPCKDC_ISA", std::string(IsaName(setup.isa)).c_str(), 1);
  for (int p = 0; p < kParties; ++p) {
    ASSIGN_OR_RETURN(children_[p], Child::Start(Words(setup, placed, peers[p])));
  }
  return All<json>(ReadAll()).status();
}

}  // namespace

absl::Status Parties::MakeKeys() { return All<json>(Ask(json::object({{"do", "keys"}}))).status(); }

absl::StatusOr<RunReport> Parties::Run(Work work, uint32_t batches) {
  const json command = {{"do", "run"}, {"work", NameOf(kWorks, work)}, {"batches", batches}};
  ASSIGN_OR_RETURN(const auto reports, All<PartyReport>(Ask(command)));
  return RunReport{reports, batches};
}

absl::StatusOr<OutputShares> Parties::Outputs(absl::Span<const size_t> lanes) {
  const std::vector<size_t> wanted(lanes.begin(), lanes.end());
  ASSIGN_OR_RETURN(auto all, All<OutputsReport>(Ask({{"do", "outputs"}, {"lanes", wanted}})));
  return OutputShares{std::move(all[0].shares), std::move(all[1].shares), std::move(all[2].shares)};
}

absl::StatusOr<std::array<MemoryReport, kParties>> Parties::Memory() {
  return All<MemoryReport>(Ask(json::object({{"do", "memory"}})));
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
