// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "mpc-server/admin/exit_code.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::admin {
namespace {

// /dev/tty with echo off for as long as it lives. Signals that would leave the terminal so are held
// back until it is restored.
class QuietTerminal {
 public:
  QuietTerminal() : fd_(open("/dev/tty", O_RDWR | O_CLOEXEC)) {
    if (fd_ < 0) return;
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) sigaddset(&held, signal);
    sigprocmask(SIG_BLOCK, &held, &old_signals_);
    // ^C and ^\ then arrive as characters and end the line as an empty answer.
    if (tcgetattr(fd_, &old_) != 0) return;
    termios quiet = old_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHOE | ECHOK | ISIG);
    quiet.c_lflag |= ECHONL;
    quiet.c_cc[VEOL] = 3;  // ^C
    restore_ = tcsetattr(fd_, TCSAFLUSH, &quiet) == 0;
  }
  ~QuietTerminal() {
    if (restore_) tcsetattr(fd_, TCSAFLUSH, &old_);
    if (fd_ >= 0) {
      sigprocmask(SIG_SETMASK, &old_signals_, nullptr);
      close(fd_);
    }
  }

  bool ok() const { return restore_; }
  int fd() const { return fd_; }

 private:
  int fd_;
  bool restore_ = false;
  termios old_{};
  sigset_t old_signals_{};
};

absl::StatusOr<SecretBytes> AskOnce(const QuietTerminal& terminal, const std::string& prompt) {
  const std::string text = prompt + ": ";
  if (write(terminal.fd(), text.data(), text.size()) < 0) {
    return absl::UnavailableError("cannot write to the terminal");
  }
  absl::StatusOr<SecretBytes> answer = ReadPasswordLine(terminal.fd());
  if (answer.ok() && !answer->empty() && answer->back() == 3) {
    return Advise(absl::CancelledError("given up"), "nothing was changed");
  }
  return answer;
}

volatile sig_atomic_t stop_requested = 0;

void RequestStop(int) { stop_requested = 1; }

}  // namespace

size_t TerminalColumns() {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

absl::StatusOr<SecretBytes> ReadPasswordLine(int fd) {
  SecretBytes line;
  line.reserve(kMaxPasswordBytes + 1);
  SecretBytes byte(1);
  while (true) {
    const ssize_t got = read(fd, byte.data(), 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::UnavailableError(absl::StrCat("read: ", std::strerror(errno)));
    if (got == 0 || byte[0] == '\n') break;
    line.push_back(byte[0]);
    if (byte[0] == 3 && isatty(fd) != 0) break;
    if (line.size() > kMaxPasswordBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the password is longer than ", kMaxPasswordBytes, " bytes"));
    }
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  if (line.empty()) return absl::InvalidArgumentError("the password is empty");
  return line;
}

absl::StatusOr<SecretBytes> AskPassword(const std::string& prompt, bool again) {
  const QuietTerminal terminal;
  if (!terminal.ok()) {
    return Advise(absl::InvalidArgumentError("there is no terminal to ask for the password on"),
                  "give it on standard input with --password-stdin");
  }
  absl::StatusOr<SecretBytes> first = AskOnce(terminal, prompt);
  if (!first.ok() || !again) return first;
  ASSIGN_OR_RETURN(SecretBytes second, AskOnce(terminal, prompt + " again"));
  if (!ConstantTimeEqual(*first, second)) {
    return Advise(absl::InvalidArgumentError("the two passwords differ"), "try again");
  }
  return first;
}

absl::StatusOr<bool> AskYes(const std::string& question) {
  const int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return Advise(absl::InvalidArgumentError("there is no terminal to ask on"),
                  "say --yes if you mean it");
  }
  const std::string text = question + " (yes or no) ";
  std::string answer;
  char c = 0;
  if (write(fd, text.data(), text.size()) > 0) {
    while (answer.size() < kMaxPasswordBytes && read(fd, &c, 1) == 1 && c != '\n') answer += c;
  }
  close(fd);
  return answer == "yes";
}

InterruptGuard::InterruptGuard() {
  stop_requested = 0;
  struct sigaction action = {};
  action.sa_handler = RequestStop;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &old_interrupt_);
  sigaction(SIGTERM, &action, &old_terminate_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
}

bool InterruptGuard::requested() const { return stop_requested != 0; }

}  // namespace mpckdc::admin
