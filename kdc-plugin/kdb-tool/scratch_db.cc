// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/kdb-tool/scratch_db.h"

#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"

extern char** environ;

namespace mpckdc::kdbtool {
namespace {

namespace fs = std::filesystem;

constexpr char kModuleFolder[] = MPCKDC_KRB5_MODULE_DIR;

absl::Status Errno(const std::string& what) {
  return absl::FailedPreconditionError(absl::StrCat(what, ": ", strerror(errno)));
}

std::string Beside(const std::string& program) {
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path beside = self.parent_path() / program;
  return access(beside.c_str(), X_OK) == 0 ? beside.string() : program;
}

// What tells one dump from another without reading all of it.
absl::StatusOr<std::string> NameOfDump(const std::string& dump) {
  struct stat facts = {};
  if (stat(dump.c_str(), &facts) != 0) return Errno(dump);
  return absl::StrCat("# ", fs::absolute(dump).string(), " ", facts.st_size, " ",
                      facts.st_mtim.tv_sec, ".", facts.st_mtim.tv_nsec, "\n");
}

std::string ProfileText(const std::string& name, const std::string& folder,
                        const std::string& stash, const std::string& realm) {
  return absl::StrCat(name, "[realms]\n    ", realm, " = {\n        database_module = import\n",
                      "        key_stash_file = ", fs::absolute(stash).string(), "\n    }\n",
                      "[dbmodules]\n    db_module_dir = ", kModuleFolder,
                      "\n    import = {\n        db_library = db2\n        database_name = ",
                      folder, "/principal\n    }\n");
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::trunc);
  out << text;
  out.close();
  return out ? absl::OkStatus() : Errno(path);
}

std::string FirstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return absl::StrCat(line, "\n");
}

absl::Status Overwrite(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return errno == ENOENT ? absl::OkStatus() : Errno(path);
  absl::Cleanup close_it = [fd] { close(fd); };
  struct stat facts = {};
  if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) return Errno(path);
  const std::string zeros(1 << 20, '\0');
  for (off_t at = 0; at < facts.st_size;) {
    const size_t some = std::min<size_t>(zeros.size(), static_cast<size_t>(facts.st_size - at));
    const ssize_t written = pwrite(fd, zeros.data(), some, at);
    if (written <= 0) return Errno(path);
    at += written;
  }
  if (fsync(fd) != 0 || unlink(path.c_str()) != 0) return Errno(path);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunKrb5(const std::string& program, const std::vector<std::string>& arguments,
                     const std::string& profile) {
  const std::string path = Beside(program);
  const std::string variable = absl::StrCat("KRB5_KDC_PROFILE=", profile);
  std::vector<char*> argv = {const_cast<char*>(path.c_str())}, envp;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  for (char** each = environ; *each != nullptr; ++each) {
    if (!absl::StartsWith(*each, "KRB5_KDC_PROFILE=")) envp.push_back(*each);
  }
  envp.push_back(const_cast<char*>(variable.c_str()));
  envp.push_back(nullptr);
  char errors[] = "/tmp/mpc-kdb-XXXXXX";
  const int fd = mkostemp(errors, O_CLOEXEC);
  if (fd < 0) return Errno("making a file for errors");
  absl::Cleanup remove_it = [&] {
    close(fd);
    unlink(errors);
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  absl::Cleanup free_actions = [&] { posix_spawn_file_actions_destroy(&actions); };
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, fd, STDERR_FILENO);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, path.c_str(), &actions, nullptr, argv.data(), envp.data());
  if (failed != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(program, " cannot be run: ", strerror(failed)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  std::ifstream in(errors);
  std::string line, last;
  while (std::getline(in, line)) last = line.empty() ? last : line;
  return absl::FailedPreconditionError(absl::StrCat(program, ": ", last));
}

absl::StatusOr<std::string> LoadScratch(const std::string& given, const std::string& dump,
                                        const std::string& stash, const std::string& realm) {
  const std::string folder = fs::absolute(given).string();
  const std::string profile = folder + "/kdc.conf";
  ASSIGN_OR_RETURN(const std::string name, NameOfDump(dump));
  if (access(stash.c_str(), R_OK) != 0) return Errno(stash);
  if (access(profile.c_str(), F_OK) == 0) {
    if (FirstLine(profile) == name) return profile;
    return absl::FailedPreconditionError(
        absl::StrCat(folder, " holds another dump: name another folder"));
  }
  if (access(folder.c_str(), F_OK) == 0) RETURN_IF_ERROR(ScrubScratch(folder));
  if (mkdir(folder.c_str(), 0700) != 0) return Errno(folder);
  const std::string unfinished = profile + ".new";
  RETURN_IF_ERROR(WriteText(unfinished, ProfileText(name, folder, stash, realm)));
  RETURN_IF_ERROR(RunKrb5("kdb5_util", {"-r", realm, "load", dump}, unfinished));
  if (rename(unfinished.c_str(), profile.c_str()) != 0) return Errno(profile);
  return profile;
}

absl::Status OverwriteFiles(const std::vector<std::string>& files) {
  for (const std::string& file : files) RETURN_IF_ERROR(Overwrite(file));
  return absl::OkStatus();
}

absl::Status ScrubScratch(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    // Nothing but what LoadScratch() makes: a mistyped folder loses nothing.
    if (!absl::StartsWith(file, "principal") && !absl::StartsWith(file, "kdc.conf")) {
      return absl::FailedPreconditionError(
          absl::StrCat(folder, " is no folder of an import: it has ", file));
    }
    files.push_back(entry.path().string());
  }
  if (error) return absl::FailedPreconditionError(absl::StrCat(folder, ": ", error.message()));
  // Databases first: kdc.conf is what says that the folder is whole.
  std::sort(files.rbegin(), files.rend());
  RETURN_IF_ERROR(OverwriteFiles(files));
  return rmdir(folder.c_str()) == 0 ? absl::OkStatus() : Errno(folder);
}

}  // namespace mpckdc::kdbtool
