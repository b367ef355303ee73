// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace mpckdc::bench {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

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

}  // namespace mpckdc::bench
