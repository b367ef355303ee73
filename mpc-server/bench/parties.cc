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
#include "mpc-server/testing/certificates.h"
#include "mpc-server/testing/memory_channel.h"

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
    return AllAtOnce(kParties, [&](size_t p) -> absl::Status {
      ASSIGN_OR_RETURN(parties_[p], Party::Open(setup, static_cast<int>(p), std::move(rings[p]),
                                                round_timeout, /*sharers=*/kParties));
      return absl::OkStatus();
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
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  // Ends its input and waits for it; kills it first if a line was asked for in vain.
  ~Child() {
    if (socket_ != nullptr) shutdown(fileno(socket_), SHUT_WR);
    if (pid_ > 0) {
      if (failed_) kill(pid_, SIGKILL);
      while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    if (socket_ != nullptr) std::fclose(socket_);
  }

  // `words` is the command, looked up in PATH.
  absl::Status Start(std::vector<std::string> words) {
    name_ = words.front();
    // Closed on exec: else each child would hold the sockets of those before it open.
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return absl::ErrnoToStatus(errno, "socketpair");
    }
    socket_ = fdopen(ends[0], "r");
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
    if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", name_));
    pid_ = pid;
    return absl::OkStatus();
  }

  absl::Status Write(absl::string_view line) {
    const std::string text = absl::StrCat(line, "\n");
    if (dprintf(fileno(socket_), "%s", text.c_str()) > 0) return absl::OkStatus();
    failed_ = true;
    return absl::ErrnoToStatus(errno, absl::StrCat("writing to ", name_));
  }

  // Unavailable: it closed its output.
  absl::StatusOr<std::string> Read() {
    char* line = nullptr;
    size_t capacity = 0;
    const ssize_t n = getline(&line, &capacity, socket_);
    std::string text = n > 0 ? std::string(line, static_cast<size_t>(n)) : "";
    std::free(line);
    failed_ = n <= 0;
    if (!failed_) return text;
    return absl::UnavailableError(absl::StrCat(name_, " ended without an answer"));
  }

 private:
  std::string name_;
  pid_t pid_ = -1;
  FILE* socket_ = nullptr;
  bool failed_ = false;
};

std::vector<std::string> Words(const BenchSetup& setup, const std::string& program,
                               const Options& options, const TlsPeerOptions& party) {
  std::vector<std::string> words;
  for (const std::string& word : options.launch) {
    words.push_back(absl::StrReplaceAll(word, {{"{party}", absl::StrCat(party.party)}}));
  }
  words.push_back(program);
  for (std::string& a : PartyArguments(setup, party.party)) words.push_back(std::move(a));
  const bool chosen = !options.addresses[0].empty();
  const std::array<std::string, kParties>& peers = chosen ? options.addresses : party.peers;
  words.insert(words.end(),
               {absl::StrCat("--listen=", peers[static_cast<size_t>(party.party)]),
                absl::StrCat("--peers=", absl::StrJoin(peers, ",")), "--ca=" + party.ca_file,
                "--cert=" + party.certificate_file, "--key=" + party.key_file,
                absl::StrCat("--socket-buffer=", options.peer.socket_buffer_bytes),
                absl::StrCat("--timeout=", options.round_timeout_s)});
  const std::string& congestion = options.peer.tcp_congestion;
  if (!congestion.empty()) words.push_back("--congestion=" + congestion);
  return words;
}

class ProcessParties : public Parties {
 public:
  absl::Status Start(const BenchSetup& setup, const std::string& program, const Options& options) {
    // Its files go when the parties are connected: they have read them.
    TestCa ca;
    // The streams of zero shares and the circuits of logins take the environment's instruction
    // set, like a server's.
    setenv("MPCKDC_ISA", std::string(IsaName(setup.isa)).c_str(), 1);
    for (const TlsPeerOptions& party : TestPeerOptions(ca)) {
      RETURN_IF_ERROR(
          children_[static_cast<size_t>(party.party)].Start(Words(setup, program, options, party)));
    }
    return All<json>(ReadAll()).status();
  }
  Answers Ask(const json& command) override {
    for (Child& child : children_) {
      if (absl::Status s = child.Write(command.dump()); !s.ok()) return {s, s, s};
    }
    return ReadAll();
  }

 private:
  Answers ReadAll() {
    Answers answers;
    for (size_t p = 0; p < kParties; ++p) {
      absl::StatusOr<std::string> line = children_[p].Read();
      answers[p] = line.ok() ? ParseMessage(*line) : line.status();
    }
    return answers;
  }

  std::array<Child, kParties> children_;
};

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

absl::StatusOr<RingsOfThree> ConnectInProcess(const BenchSetup& setup,
                                              const TlsPeerOptions& tuning) {
  RingsOfThree rings;
  if (setup.channel == Channel::kMemory) {
    for (int w = 0; w < setup.workers; ++w) {
      const auto ring = std::make_shared<MemoryRing>();
      for (int p = 0; p < kParties; ++p) rings[p].emplace_back(ring, &ring->channel(p));
    }
    return rings;
  }
  TestCa ca;
  std::array<TlsPeerOptions, kParties> options = TestPeerOptions(ca);
  RETURN_IF_ERROR(AllAtOnce(kParties, [&](size_t p) -> absl::Status {
    options[p].rings = setup.workers;
    options[p].socket_buffer_bytes = tuning.socket_buffer_bytes;
    options[p].tcp_congestion = tuning.tcp_congestion;
    ASSIGN_OR_RETURN(rings[p], ConnectRings(setup.channel, options[p]));
    return absl::OkStatus();
  }));
  return rings;
}

absl::StatusOr<std::unique_ptr<Parties>> OpenOnThreads(const BenchSetup& setup, RingsOfThree rings,
                                                       absl::Duration round_timeout) {
  auto parties = std::make_unique<ThreadParties>();
  RETURN_IF_ERROR(parties->Open(setup, std::move(rings), round_timeout));
  return parties;
}

absl::StatusOr<std::unique_ptr<Parties>> OpenInProcesses(const BenchSetup& setup,
                                                         const std::string& program,
                                                         const Options& options) {
  auto parties = std::make_unique<ProcessParties>();
  RETURN_IF_ERROR(parties->Start(setup, program, options));
  return parties;
}

}  // namespace mpckdc::bench
