// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

extern char** environ;

namespace mpckdc::bench {
namespace {

absl::Status Failed(absl::string_view what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

// This process's environment with `more`, whose names replace.
std::vector<std::string> Environment(const std::vector<std::string>& more) {
  std::vector<std::string> all = more;
  for (char** e = environ; *e != nullptr; ++e) {
    const absl::string_view variable = *e;
    const absl::string_view name = variable.substr(0, variable.find('=') + 1);
    const bool replaced = std::any_of(more.begin(), more.end(), [&](const std::string& m) {
      return absl::StartsWith(m, name);
    });
    if (!replaced) all.emplace_back(variable);
  }
  return all;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Child>> Child::Start(const std::vector<std::string>& words,
                                                    const std::vector<std::string>& environment) {
  std::unique_ptr<Child> child(new Child(words.front()));
  // Closed on exec: else each child would hold the pipes of those before it open.
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) return Failed("pipe", errno);
  child->to_ = in[1];
  if (pipe2(out, O_CLOEXEC) != 0) return close(in[0]), Failed("pipe", errno);
  child->from_ = fdopen(out[0], "r");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  const std::vector<std::string> variables = Environment(environment);
  const int error = posix_spawnp(&child->pid_, words.front().c_str(), &actions, nullptr,
                                 Pointers(words).data(), Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  if (error != 0) {
    child->pid_ = -1;
    return Failed(absl::StrCat("cannot start ", words.front()), error);
  }
  return child;
}

Child::~Child() {
  if (to_ >= 0) close(to_);
  if (pid_ > 0) {
    if (failed_) kill(pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (from_ != nullptr) std::fclose(from_);
}

absl::Status Child::Write(absl::string_view line) {
  const std::string text = absl::StrCat(line, "\n");
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = write(to_, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed_ = true, Failed(absl::StrCat("writing to ", name_), errno);
    at += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Child::Read() {
  char* line = nullptr;
  size_t capacity = 0;
  const ssize_t n = getline(&line, &capacity, from_);
  std::string text = n > 0 ? std::string(line, static_cast<size_t>(n)) : "";
  std::free(line);
  if (n <= 0) {
    failed_ = true;
    return absl::UnavailableError(absl::StrCat(name_, " ended without an answer"));
  }
  return text;
}

}  // namespace mpckdc::bench
