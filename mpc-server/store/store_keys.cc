// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/store_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/record_format.h"

namespace mpckdc {
namespace {

constexpr size_t kMaxFileBytes = 64 << 10;
constexpr absl::string_view kFileComment =
    "# mpc-kdc share store key: EPOCH KEY. Losing this file loses the store; reading it and the "
    "store\n"
    "# reveals this server's shares.\n";

absl::Status FileError(absl::string_view what, const std::string& path) {
  const int error = errno;
  const std::string text = absl::StrCat(what, " ", path, ": ", strerror(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  if (error == EEXIST) return absl::AlreadyExistsError(text);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(text);
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(text);
  return absl::UnavailableError(text);
}

absl::Status CheckAccess(int fd, const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return FileError("cannot stat the store key file", path);
  if (!S_ISREG(info.st_mode)) {
    return absl::PermissionDeniedError(
        absl::StrCat("the store key file ", path, " is not a regular file"));
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("the store key file ", path, " belongs to user ", info.st_uid,
                     ", not to the server's user ", geteuid()));
  }
  if ((info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "others may access the store key file %s (mode %04o): run chmod 0600 %s, and if somebody "
        "may have read it, treat this server's shares as known",
        path, info.st_mode & 07777, path));
  }
  return absl::OkStatus();
}

absl::StatusOr<SecretBytes> ReadAll(int fd, const std::string& path) {
  SecretBytes text(kMaxFileBytes + 1);
  size_t used = 0;
  while (used < text.size()) {
    const ssize_t count = read(fd, text.data() + used, text.size() - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError("cannot read the store key file", path);
    if (count == 0) break;
    used += static_cast<size_t>(count);
  }
  if (used > kMaxFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the store key file ", path, " is too long"));
  }
  text.resize(used);
  return text;
}

absl::StatusOr<StoreKeys> LoadFile(const std::string& path, bool check_access) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return FileError("cannot open the store key file", path);
  auto closer = absl::MakeCleanup([fd] { close(fd); });
  if (check_access) {
    RETURN_IF_ERROR(CheckAccess(fd, path));
  }
  ASSIGN_OR_RETURN(SecretBytes text, ReadAll(fd, path));
  return StoreKeys::Parse(text, path);
}

absl::Status WriteAll(int fd, absl::Span<const uint8_t> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError("cannot write the store key file", path);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  if (fsync(fd) != 0) return FileError("cannot sync the store key file", path);
  return absl::OkStatus();
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

absl::Status SyncFolder(const std::string& path) {
  const std::string folder = FolderOf(path);
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return FileError("cannot open the folder", folder);
  auto closer = absl::MakeCleanup([fd] { close(fd); });
  if (fsync(fd) != 0) return FileError("cannot sync the folder", folder);
  return absl::OkStatus();
}

absl::Status CheckFolder(const std::string& path) {
  if (access(FolderOf(path).c_str(), W_OK) == 0) return absl::OkStatus();
  const absl::Status status = FileError("cannot write in", FolderOf(path));
  return absl::Status(status.code(),
                      absl::StrCat(status.message(),
                                   ": a refresh writes the store key file anew, so its folder must be "
                                   "the server's user's; or set [policy] refresh_every = \"never\""));
}

SecretBytes FreshKey(RandomSource& random) {
  SecretBytes key(record_format::kKeyBytes);
  random.Fill(absl::MakeSpan(key));
  return key;
}

SecretBytes FileText(const std::map<uint64_t, std::shared_ptr<const SecretBytes>>& keys) {
  constexpr size_t kMaxLine = 24 + 2 * record_format::kKeyBytes;
  SecretBytes text, hex(2 * record_format::kKeyBytes + 1);
  text.reserve(kFileComment.size() + keys.size() * kMaxLine);  // never moved: nothing stays behind
  AppendBytes(text, AsBytes(kFileComment));
  for (const auto& [epoch, key] : keys) {
    sodium_bin2hex(reinterpret_cast<char*>(hex.data()), hex.size(), key->data(), key->size());
    AppendBytes(text, AsBytes(absl::StrCat(epoch, " ")));
    AppendBytes(text, absl::MakeConstSpan(hex).subspan(0, 2 * key->size()));
    AppendBytes(text, AsBytes("\n"));
  }
  return text;
}

// What a file held, as far as the file system writes over it in its place. Best effort.
void Overwrite(int fd) {
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) return;
  const std::string zeros(std::min<size_t>(static_cast<size_t>(info.st_size), kMaxFileBytes), '\0');
  if (pwrite(fd, zeros.data(), zeros.size(), 0) == static_cast<ssize_t>(zeros.size())) fsync(fd);
}

// The file is the old one or the new one, whenever the power fails.
absl::Status ReplaceFile(const std::string& path, absl::Span<const uint8_t> text) {
  const std::string fresh = path + ".new";
  if (unlink(fresh.c_str()) != 0 && errno != ENOENT) return FileError("cannot remove", fresh);
  int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    const absl::Status status = FileError("cannot create", fresh);
    return absl::Status(status.code(), absl::StrCat(status.message(),
                                                    ": a refresh writes the store key file anew, "
                                                    "so the server's user must own its folder"));
  }
  absl::Status status = WriteAll(fd, text, fresh);
  close(fd);
  const int old = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  auto closer = absl::MakeCleanup([old] {
    if (old >= 0) close(old);
  });
  if (status.ok() && rename(fresh.c_str(), path.c_str()) != 0) {
    status = FileError("cannot replace the store key file", path);
  }
  if (!status.ok()) {
    unlink(fresh.c_str());
    return status;
  }
  RETURN_IF_ERROR(SyncFolder(path));
  Overwrite(old);
  return absl::OkStatus();
}

// One line `EPOCH KEY` into `keys`; false when it is malformed.
bool ParseLine(absl::string_view line,
               std::map<uint64_t, std::shared_ptr<const SecretBytes>>& keys) {
  const size_t space = line.find(' ');
  uint64_t epoch = 0;
  if (space == absl::string_view::npos || !absl::SimpleAtoi(line.substr(0, space), &epoch) ||
      epoch == 0) {
    return false;
  }
  const absl::string_view hex = line.substr(space + 1);
  SecretBytes key(record_format::kKeyBytes);
  size_t length = 0;
  if (hex.size() != 2 * key.size() ||
      sodium_hex2bin(key.data(), key.size(), hex.data(), hex.size(), nullptr, &length, nullptr) !=
          0 ||
      length != key.size()) {
    return false;
  }
  return keys.emplace(epoch, std::make_shared<const SecretBytes>(std::move(key))).second;
}

}  // namespace

absl::StatusOr<StoreKeys> StoreKeys::Load(const std::string& path) {
  ASSIGN_OR_RETURN(StoreKeys keys, LoadFile(path, true));
  keys.SetSaver([path](absl::Span<const uint8_t> text) { return ReplaceFile(path, text); });
  keys.checker_ = [path] { return CheckFolder(path); };
  return keys;
}

absl::StatusOr<StoreKeys> StoreKeys::LoadCredential(const std::string& name) {
  const char* folder = getenv("CREDENTIALS_DIRECTORY");
  if (folder == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the configuration names the credential ", name,
        " but systemd passed none (no $CREDENTIALS_DIRECTORY): add LoadCredentialEncrypted= or "
        "LoadCredential= to the unit"));
  }
  ASSIGN_OR_RETURN(StoreKeys keys, LoadFile(absl::StrCat(folder, "/", name), false));
  keys.checker_ = [name] {
    return absl::FailedPreconditionError(absl::StrCat(
        "the store keys are the credential ", name,
        ", which the server cannot change: for refreshes put them into a file of the server's user "
        "and name it as [store] key_file; without them set [policy] refresh_every = \"never\""));
  };
  keys.SetSaver([check = keys.checker_](absl::Span<const uint8_t>) { return check(); });
  return keys;
}

absl::Status StoreKeys::Create(const std::string& path, RandomSource& random) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return FileError("cannot create the store key file", path);
  absl::Status status =
      WriteAll(fd, FileText({{1, std::make_shared<const SecretBytes>(FreshKey(random))}}), path);
  close(fd);
  if (status.ok()) status = SyncFolder(path);
  if (!status.ok()) unlink(path.c_str());
  return status;
}

absl::StatusOr<StoreKeys> StoreKeys::Parse(absl::Span<const uint8_t> text,
                                           absl::string_view origin) {
  StoreKeys result;
  result.origin_ = std::string(origin);
  Keys keys;
  absl::string_view rest = AsText(text);
  for (int number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const absl::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line[0] == '#') continue;
    if (!ParseLine(line, keys)) {
      return absl::InvalidArgumentError(absl::StrCat(
          origin, ":", number, ": want EPOCH and 64 hexadecimal digits, each epoch once"));
    }
  }
  if (keys.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(origin, ": holds no store key"));
  }
  const absl::MutexLock lock(&result.held_->mutex);
  result.held_->keys = std::move(keys);
  return result;
}

StoreKeys::Keys StoreKeys::Copy() const {
  const absl::MutexLock lock(&held_->mutex);
  return held_->keys;
}

StoreKeys& StoreKeys::operator=(const StoreKeys& other) {
  Keys keys = other.Copy();
  origin_ = other.origin_;
  saver_ = other.saver_;
  checker_ = other.checker_;
  const absl::MutexLock lock(&held_->mutex);
  held_->keys = std::move(keys);
  return *this;
}

std::shared_ptr<const SecretBytes> StoreKeys::ForEpoch(uint64_t epoch) const {
  const absl::MutexLock lock(&held_->mutex);
  const auto it = held_->keys.find(epoch);
  return it == held_->keys.end() ? nullptr : it->second;
}

std::vector<uint64_t> StoreKeys::Epochs() const {
  const absl::MutexLock lock(&held_->mutex);
  std::vector<uint64_t> epochs;
  for (const auto& [epoch, key] : held_->keys) epochs.push_back(epoch);
  return epochs;
}

absl::Status StoreKeys::Add(uint64_t epoch, RandomSource& random) {
  const absl::MutexLock changing(&held_->changing);
  Keys keys = Copy();
  if (!keys.emplace(epoch, std::make_shared<const SecretBytes>(FreshKey(random))).second) {
    return absl::OkStatus();
  }
  return Replace(std::move(keys));
}

absl::Status StoreKeys::Adopt(uint64_t epoch, const SecretBytes& key) {
  const absl::MutexLock changing(&held_->changing);
  Keys keys = Copy();
  const auto held = keys.find(epoch);
  if (held != keys.end() && sodium_memcmp(held->second->data(), key.data(), key.size()) == 0) {
    return absl::OkStatus();
  }
  keys.insert_or_assign(epoch, std::make_shared<const SecretBytes>(key));
  return Replace(std::move(keys));
}

absl::Status StoreKeys::EraseBefore(uint64_t epoch) {
  return EraseWhere([=](uint64_t of) { return of < epoch; });
}

absl::Status StoreKeys::EraseAfter(uint64_t epoch) {
  return EraseWhere([=](uint64_t of) { return of > epoch; });
}

absl::Status StoreKeys::EraseWhere(absl::FunctionRef<bool(uint64_t)> goes) {
  const absl::MutexLock changing(&held_->changing);
  Keys keys = Copy();
  if (std::erase_if(keys, [&](const auto& key) { return goes(key.first); }) == 0) {
    return absl::OkStatus();
  }
  return Replace(std::move(keys));
}

// The disk takes its time, and logins go on meanwhile with the keys that there were.
absl::Status StoreKeys::Replace(Keys keys) {
  if (saver_) {
    RETURN_IF_ERROR(saver_(FileText(keys)));
  }
  const absl::MutexLock lock(&held_->mutex);
  held_->keys = std::move(keys);
  return absl::OkStatus();
}

}  // namespace mpckdc
