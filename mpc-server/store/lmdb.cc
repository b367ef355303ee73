// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/lmdb.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/folder_lock.h"

namespace mpckdc {
namespace {

constexpr unsigned kMaxReaders = 1024;

MDB_val ToVal(absl::string_view bytes) {
  return MDB_val{bytes.size(), const_cast<char*>(bytes.data())};
}

absl::Span<const uint8_t> ToSpan(const MDB_val& val) {
  return absl::MakeConstSpan(static_cast<const uint8_t*>(val.mv_data), val.mv_size);
}

absl::string_view ToText(const MDB_val& val) {
  return absl::string_view(static_cast<const char*>(val.mv_data), val.mv_size);
}

// ---- C only between setjmp and longjmp: no object with a destructor lives here. ----

void JumpOut(MDB_env* env, const char*) {
  longjmp(*static_cast<jmp_buf*>(mdb_env_get_userctx(env)), 1);
}

int WalkOne(MDB_txn* txn, MDB_dbi dbi, bool names_databases) {
  MDB_cursor* cursor;
  int error = mdb_cursor_open(txn, dbi, &cursor);
  if (error != 0) return error;
  MDB_val key;
  MDB_val value;
  error = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
  while (error == 0) {
    char name[32] = {0};
    MDB_dbi child;
    if (names_databases && key.mv_size < sizeof name) {
      memcpy(name, key.mv_data, key.mv_size);
      error = mdb_dbi_open(txn, name, 0, &child);
      if (error == 0) error = WalkOne(txn, child, false);
      if (error != 0) break;
    }
    error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
  }
  mdb_cursor_close(cursor);
  return error == MDB_NOTFOUND ? 0 : error;
}

// Returns MDB_CORRUPTED where LMDB would abort the process. The environment must be closed then.
int WalkCatchingAssertions(MDB_env* env) {
  constexpr MDB_dbi kFreeList = 0;
  constexpr MDB_dbi kNames = 1;
  jmp_buf out;
  mdb_env_set_userctx(env, &out);
  mdb_env_set_assert(env, JumpOut);
  if (setjmp(out) != 0) return MDB_CORRUPTED;
  MDB_txn* txn;
  int error = mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn);
  if (error != 0) return error;
  error = WalkOne(txn, kFreeList, false);
  if (error == 0) error = WalkOne(txn, kNames, true);
  mdb_txn_abort(txn);
  mdb_env_set_assert(env, nullptr);
  return error;
}

// ResourceExhausted for a full map or disk, DataLoss for a damaged file, else Unavailable.
absl::Status LmdbStatus(int error, absl::string_view what) {
  const std::string text = absl::StrCat(what, ": ", mdb_strerror(error));
  switch (error) {
    case MDB_SUCCESS:
      return absl::OkStatus();
    case MDB_NOTFOUND:
      return absl::NotFoundError(text);
    case MDB_MAP_FULL:
      return absl::ResourceExhaustedError(
          absl::StrCat("disk full: the share store has reached its map size; raise [store] "
                       "map_size_gib and restart (",
                       text, ")"));
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(absl::StrCat("disk full: ", text));
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
      return absl::DataLossError(absl::StrCat("the share store file is damaged: ", text));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    default:
      return absl::UnavailableError(text);
  }
}

constexpr absl::string_view kCannotRead = "cannot read the share store";
constexpr absl::string_view kCannotWrite = "cannot write the share store";

class LmdbTxn : public KvTxn {
 public:
  LmdbTxn(MDB_txn* txn, const MDB_dbi* tables) : txn_(txn), tables_(tables) {}
  ~LmdbTxn() override {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }
  LmdbTxn(const LmdbTxn&) = delete;
  LmdbTxn& operator=(const LmdbTxn&) = delete;

  absl::StatusOr<absl::Span<const uint8_t>> Get(Table table,
                                                absl::string_view key) const override {
    MDB_val key_val = ToVal(key);
    MDB_val value;
    const int error = mdb_get(txn_, tables_[table], &key_val, &value);
    if (error != 0) return LmdbStatus(error, kCannotRead);
    return ToSpan(value);
  }
  absl::StatusOr<absl::string_view> LastKey(Table table) const override;
  absl::StatusOr<size_t> Count(Table table) const override {
    MDB_stat stat;
    const int error = mdb_stat(txn_, tables_[table], &stat);
    if (error != 0) return LmdbStatus(error, kCannotRead);
    return stat.ms_entries;
  }
  absl::Status Scan(Table table, absl::string_view from, Visitor visit) const override;

  absl::Status Put(Table table, absl::string_view key, absl::string_view value) override {
    return Put(table, key, value, 0);
  }
  absl::Status Append(Table table, absl::string_view key, absl::string_view value) override {
    return Put(table, key, value, MDB_APPEND);
  }
  absl::Status Delete(Table table, absl::string_view key) override {
    MDB_val key_val = ToVal(key);
    return LmdbStatus(mdb_del(txn_, tables_[table], &key_val, nullptr),
                      "cannot delete from the share store");
  }
  absl::StatusOr<std::vector<std::optional<std::string>>> InsertNew(
      Table table, absl::Span<const Entry> entries) override;

  absl::Status Commit(absl::string_view what);

 private:
  absl::Status Put(Table table, absl::string_view key, absl::string_view value, unsigned flags) {
    MDB_val key_val = ToVal(key);
    MDB_val val = ToVal(value);
    return LmdbStatus(mdb_put(txn_, tables_[table], &key_val, &val, flags), kCannotWrite);
  }

  MDB_txn* txn_;
  const MDB_dbi* const tables_;
};

absl::StatusOr<absl::string_view> LmdbTxn::LastKey(Table table) const {
  MDB_cursor* cursor = nullptr;
  int error = mdb_cursor_open(txn_, tables_[table], &cursor);
  if (error != 0) return LmdbStatus(error, kCannotRead);
  MDB_val key;
  MDB_val value;
  error = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
  mdb_cursor_close(cursor);
  if (error != 0) return LmdbStatus(error, kCannotRead);
  return ToText(key);
}

absl::Status LmdbTxn::Scan(Table table, absl::string_view from, Visitor visit) const {
  MDB_cursor* cursor = nullptr;
  int error = mdb_cursor_open(txn_, tables_[table], &cursor);
  if (error != 0) return LmdbStatus(error, kCannotRead);
  MDB_val key = ToVal(from);
  MDB_val value;
  error = mdb_cursor_get(cursor, &key, &value, from.empty() ? MDB_FIRST : MDB_SET_RANGE);
  while (error == 0 && visit(ToText(key), ToSpan(value))) {
    error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
  }
  mdb_cursor_close(cursor);
  return error == MDB_NOTFOUND ? absl::OkStatus() : LmdbStatus(error, kCannotRead);
}

// LMDB has one writer at a time.
absl::StatusOr<std::vector<std::optional<std::string>>> LmdbTxn::InsertNew(
    Table table, absl::Span<const Entry> entries) {
  std::vector<std::optional<std::string>> found(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    MDB_val key = ToVal(entries[i].first);
    MDB_val value = ToVal(entries[i].second);
    const int error = mdb_put(txn_, tables_[table], &key, &value, MDB_NOOVERWRITE);
    if (error == MDB_KEYEXIST) {
      found[i].emplace(ToText(value));
    } else if (error != 0) {
      return LmdbStatus(error, kCannotWrite);
    }
  }
  return found;
}

absl::Status LmdbTxn::Commit(absl::string_view what) {
  assert(txn_ != nullptr);
  const int error = mdb_txn_commit(std::exchange(txn_, nullptr));
  const std::string text = absl::StrCat("cannot commit to the share store (", what, ")");
  // LMDB turns a write that was cut short, the first sign of a full disk, into EIO.
  if (error == EIO) {
    return absl::ResourceExhaustedError(absl::StrCat("disk full or failing: ", text));
  }
  return LmdbStatus(error, text);
}

std::string DataPath(const std::string& folder) { return folder + "/shares.mdb"; }

}  // namespace

namespace {

absl::Status Sync(const std::string& path, int flags) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  const bool synced = fd >= 0 && fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (synced) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot sync ", path, ": ", strerror(error)));
}
absl::Status SyncFolder(const std::string& path) { return Sync(path, O_DIRECTORY); }
absl::Status SyncFile(const std::string& path) { return Sync(path, 0); }

}  // namespace

bool LmdbEngine::Exists(const std::string& folder) {
  return access(DataPath(folder).c_str(), F_OK) == 0;
}

absl::StatusOr<std::unique_ptr<LmdbEngine>> LmdbEngine::Open(const std::string& folder,
                                                             uint64_t map_bytes) {
  ASSIGN_OR_RETURN(int lock, LockFolder(folder));
  std::unique_ptr<LmdbEngine> engine(new LmdbEngine);
  engine->lock_fd_ = lock;
  if (!Exists(folder)) {
    RETURN_IF_ERROR(CreateFile(folder, map_bytes));
  }
  RETURN_IF_ERROR(engine->OpenFile(DataPath(folder), map_bytes));
  return engine;
}

absl::Status LmdbEngine::Backup(const std::string& folder, uint64_t map_bytes,
                                const std::string& target) {
  const std::string path = DataPath(target), fresh = path + ".new";
  if (!Exists(folder)) {
    return absl::NotFoundError(absl::StrCat("there is no share store in ", folder));
  }
  if (Exists(target)) {
    return absl::AlreadyExistsError(absl::StrCat(path, " exists: give a folder without a store"));
  }
  LmdbEngine source;
  RETURN_IF_ERROR(source.OpenEnvironment(DataPath(folder), map_bytes));
  const mode_t mask = umask(077);
  unlink(fresh.c_str());
  const int error = mdb_env_copy2(source.env_, fresh.c_str(), MDB_CP_COMPACT);
  umask(mask);
  if (error != 0) {
    unlink(fresh.c_str());
    return LmdbStatus(error, absl::StrCat("cannot copy the share store to ", fresh));
  }
  RETURN_IF_ERROR(SyncFile(fresh));
  if (rename(fresh.c_str(), path.c_str()) == 0) return SyncFolder(target);
  return absl::UnavailableError(absl::StrCat("cannot create ", path, ": ", strerror(errno)));
}

LmdbEngine::~LmdbEngine() {
  if (env_ != nullptr) mdb_env_close(env_);
  if (lock_fd_ >= 0) close(lock_fd_);
}

std::optional<uint64_t> LmdbEngine::DiskBytes() const {
  mdb_filehandle_t file = -1;
  struct stat seen {};
  if (mdb_env_get_fd(env_, &file) != MDB_SUCCESS || fstat(file, &seen) != 0) return std::nullopt;
  constexpr uint64_t kStatBlock = 512;  // whatever the file system's is
  return static_cast<uint64_t>(seen.st_blocks) * kStatBlock;
}

// LMDB's first pages are not written in one piece: a power failure during the first start would
// leave a file that no later start accepts. So a new file gets its name when it is complete.
absl::Status LmdbEngine::CreateFile(const std::string& folder, uint64_t map_bytes) {
  const std::string path = DataPath(folder), fresh = path + ".new";
  const auto failed = [&path] {
    return absl::UnavailableError(absl::StrCat("cannot create ", path, ": ", strerror(errno)));
  };
  for (const std::string& left : {fresh, fresh + "-lock"}) {
    if (unlink(left.c_str()) != 0 && errno != ENOENT) return failed();
  }
  // Closed again at once, and synced.
  RETURN_IF_ERROR(LmdbEngine().OpenFile(fresh, map_bytes));
  unlink((fresh + "-lock").c_str());
  if (rename(fresh.c_str(), path.c_str()) != 0) return failed();
  return SyncFolder(folder);
}

absl::Status LmdbEngine::OpenFile(const std::string& path, uint64_t map_bytes) {
  RETURN_IF_ERROR(OpenEnvironment(path, map_bytes));
  RETURN_IF_ERROR(ExtendShortFile());
  RETURN_IF_ERROR(WalkTrees());
  return OpenTables();
}

absl::Status LmdbEngine::OpenEnvironment(const std::string& path, uint64_t map_bytes) {
  const std::string what = absl::StrCat("cannot open the share store ", path);
  if (int error = mdb_env_create(&env_); error != 0) return LmdbStatus(error, what);
  int error = mdb_env_set_maxdbs(env_, static_cast<MDB_dbi>(tables_.size()));
  if (error == 0) error = mdb_env_set_maxreaders(env_, kMaxReaders);
  if (error == 0) error = mdb_env_set_mapsize(env_, map_bytes);
  // No MDB_NOSYNC, MDB_NOMETASYNC or MDB_WRITEMAP: a commit that returned is on the disk.
  if (error == 0) error = mdb_env_open(env_, path.c_str(), MDB_NOSUBDIR | MDB_NOTLS, 0600);
  return LmdbStatus(error, what);
}

absl::Status LmdbEngine::ExtendShortFile() {
  constexpr absl::string_view kWhat = "cannot examine the share store";
  MDB_envinfo info;
  MDB_stat stat;
  int fd = -1;
  int error = mdb_env_info(env_, &info);
  if (error == 0) error = mdb_env_stat(env_, &stat);
  if (error == 0) error = mdb_env_get_fd(env_, &fd);
  if (error != 0) return LmdbStatus(error, kWhat);
  struct stat file;
  if (fstat(fd, &file) != 0) return LmdbStatus(errno, kWhat);
  const off_t want = static_cast<off_t>(info.me_last_pgno + 1) * stat.ms_psize;
  if (file.st_size >= want) return absl::OkStatus();
  was_short_ = true;
  if (ftruncate(fd, want) != 0) return LmdbStatus(errno, "cannot extend the share store");
  return absl::OkStatus();
}

// LMDB maps its file: a page beyond the end would be SIGBUS, a page of zeros makes it assert. So a
// file that was short is walked once with assertions caught, before anything else reads it.
absl::Status LmdbEngine::WalkTrees() const {
  if (!was_short_) return absl::OkStatus();
  return LmdbStatus(WalkCatchingAssertions(env_), "the share store file was cut short");
}

std::string LmdbEngine::Doubt() const {
  return was_short_ ? "the share store file was cut short" : "";
}

absl::Status LmdbEngine::OpenTables() {
  MDB_txn* raw = nullptr;
  if (int error = mdb_txn_begin(env_, nullptr, 0, &raw); error != 0) {
    return LmdbStatus(error, kCannotWrite);
  }
  LmdbTxn txn(raw, tables_.data());
  for (size_t i = 0; i < tables_.size(); ++i) {
    const char* const name = record_format::kTableNames[i];
    const int error = mdb_dbi_open(raw, name, MDB_CREATE, &tables_[i]);
    if (error != 0) return LmdbStatus(error, absl::StrCat("cannot open database ", name));
  }
  return txn.Commit("open");
}

absl::StatusOr<std::unique_ptr<const KvTxn>> LmdbEngine::BeginRead() const {
  MDB_txn* txn = nullptr;
  if (int error = mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn); error != 0) {
    return LmdbStatus(error, kCannotRead);
  }
  return std::make_unique<LmdbTxn>(txn, tables_.data());
}

absl::Status LmdbEngine::Write(absl::string_view what, Body body) {
  MDB_txn* raw = nullptr;
  if (int error = mdb_txn_begin(env_, nullptr, 0, &raw); error != 0) {
    return LmdbStatus(error, kCannotWrite);
  }
  LmdbTxn txn(raw, tables_.data());
  RETURN_IF_ERROR(body(txn));
  return txn.Commit(what);
}

}  // namespace mpckdc
