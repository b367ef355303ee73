// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "mpc-server/base/status_macros.h"

extern char** environ;

namespace mpckdc::admin {
namespace {

constexpr size_t kMaxOutputBytes = 256 << 20;  // a realm's list of handles

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { Close(); }

  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read;
  Descriptor write;

  bool Open() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return false;
    read = Descriptor(fds[0]);
    write = Descriptor(fds[1]);
    return true;
  }
};

// Writing to a program that does not read must be an error, not our death. For this thread alone,
// to which the kernel sends the signal: two programs may run at a time.
class IgnorePipeSignal {
 public:
  IgnorePipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &old_);
  }
  ~IgnorePipeSignal() {
    const timespec at_once = {};
    sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }

 private:
  sigset_t pipe_;
  sigset_t old_;
};

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> MergedEnvironment(const std::vector<std::string>& added) {
  std::vector<std::string> merged = added;
  auto name = [](absl::string_view entry) { return entry.substr(0, entry.find('=')); };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool replaced = std::any_of(added.begin(), added.end(), [&](const std::string& a) {
      return name(a) == name(*entry);
    });
    if (!replaced) merged.emplace_back(*entry);
  }
  return merged;
}

absl::StatusOr<pid_t> Spawn(const ProcessRequest& request, const Pipe& in, const Pipe& out,
                            const Pipe& err) {
  std::vector<std::string> arguments = request.arguments;
  std::vector<std::string> environment = MergedEnvironment(request.environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  sigdelset(&blocked, SIGPIPE);
  if (request.undisturbed) sigaddset(&blocked, SIGINT);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, arguments[0].c_str(), &actions, &attributes,
                                 Pointers(arguments).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot run ", arguments[0], ": ", std::strerror(error)));
  }
  return pid;
}

// Moves bytes until the program has closed both of its outputs.
class Pump {
 public:
  Pump(absl::Span<const uint8_t> input, Descriptor in, Descriptor out, Descriptor err)
      : input_(input), in_(std::move(in)), out_(std::move(out)), err_(std::move(err)) {
    fcntl(in_.get(), F_SETFL, O_NONBLOCK);
    if (input_.empty()) in_.Close();
  }

  absl::Status Run(absl::Time deadline, ProcessResult* result) {
    while (out_.get() >= 0 || err_.get() >= 0) {
      const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
      if (left <= 0) return absl::DeadlineExceededError("it did not finish in time");
      std::array<pollfd, 3> fds = {{{in_.get(), POLLOUT, 0},
                                    {out_.get(), POLLIN, 0},
                                    {err_.get(), POLLIN, 0}}};
      if (poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left, 1000))) < 0 &&
          errno != EINTR) {
        return absl::InternalError(absl::StrCat("poll: ", std::strerror(errno)));
      }
      if (fds[0].revents != 0) Write();
      if (fds[1].revents != 0) Read(&out_, &result->output);
      if (fds[2].revents != 0) Read(&err_, &result->errors);
      if (result->output.size() + result->errors.size() > kMaxOutputBytes) {
        return absl::ResourceExhaustedError("it wrote too much");
      }
    }
    return absl::OkStatus();
  }

 private:
  void Write() {
    const ssize_t written = write(in_.get(), input_.data(), input_.size());
    if (written > 0) input_.remove_prefix(written);
    const bool failed = written < 0 && errno != EAGAIN && errno != EINTR;
    if (failed || input_.empty()) in_.Close();
  }

  static void Read(Descriptor* from, std::string* to) {
    char buffer[16 << 10];
    const ssize_t got = read(from->get(), buffer, sizeof(buffer));
    if (got > 0) to->append(buffer, got);
    if (got == 0 || (got < 0 && errno != EINTR)) from->Close();
  }

  absl::Span<const uint8_t> input_;
  Descriptor in_, out_, err_;
};

void Reap(pid_t pid, ProcessResult* result) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) result->exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result->signal = WTERMSIG(status);
}

}  // namespace

absl::StatusOr<ProcessResult> RunProcess(const ProcessRequest& request) {
  if (request.arguments.empty() || request.arguments[0].empty()) {
    return absl::InvalidArgumentError("no program to run");
  }
  const IgnorePipeSignal ignore;
  Pipe in, out, err;
  if (!in.Open() || !out.Open() || !err.Open()) {
    return absl::InternalError(absl::StrCat("pipe: ", std::strerror(errno)));
  }
  ASSIGN_OR_RETURN(pid_t pid, Spawn(request, in, out, err));
  in.read.Close();
  out.write.Close();
  err.write.Close();
  ProcessResult result;
  Pump pump(request.input, std::move(in.write), std::move(out.read), std::move(err.read));
  const absl::Status s = pump.Run(absl::Now() + request.timeout, &result);
  if (!s.ok()) kill(pid, SIGKILL);
  Reap(pid, &result);
  if (!s.ok()) {
    return absl::Status(s.code(), absl::StrCat(request.arguments[0], ": ", s.message()));
  }
  return result;
}

absl::StatusOr<std::vector<std::string>> SplitShellWords(absl::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;  // that is open
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && absl::ascii_isspace(c)) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    const bool more = i + 1 < text.size();
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote == 0 && c == '\\') {
      if (!more) return absl::InvalidArgumentError("a backslash ends the text");
      words.back() += text[++i];
    } else if (quote == '"' && c == '\\' && more &&
               absl::string_view("\\\"$`").find(text[i + 1]) != absl::string_view::npos) {
      words.back() += text[++i];
    } else {
      words.back() += c;
    }
  }
  if (quote == 0) return words;
  return absl::InvalidArgumentError(absl::StrCat("a ", std::string(1, quote), " is not closed"));
}

std::string QuoteForShell(absl::string_view word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace mpckdc::admin
