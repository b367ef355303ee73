// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/lmdb.h"

#include <errno.h>
#include <setjmp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"

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

}  // namespace

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

absl::StatusOr<std::unique_ptr<LmdbEnv>> LmdbEnv::Open(const std::string& path, uint64_t map_bytes,
                                                       absl::Span<const char* const> names) {
  std::unique_ptr<LmdbEnv> env(new LmdbEnv);
  if (absl::Status s = env->OpenFile(path, map_bytes, names.size()); !s.ok()) return s;
  if (absl::Status s = env->ExtendShortFile(); !s.ok()) return s;
  if (absl::Status s = env->WalkTrees(); !s.ok()) return s;
  if (absl::Status s = env->OpenDatabases(names); !s.ok()) return s;
  return env;
}

LmdbEnv::~LmdbEnv() {
  if (env_ != nullptr) mdb_env_close(env_);
}

absl::Status LmdbEnv::OpenFile(const std::string& path, uint64_t map_bytes, size_t databases) {
  const std::string what = absl::StrCat("cannot open the share store ", path);
  if (int error = mdb_env_create(&env_); error != 0) return LmdbStatus(error, what);
  int error = mdb_env_set_maxdbs(env_, static_cast<MDB_dbi>(databases));
  if (error == 0) error = mdb_env_set_maxreaders(env_, kMaxReaders);
  if (error == 0) error = mdb_env_set_mapsize(env_, map_bytes);
  // No MDB_NOSYNC, MDB_NOMETASYNC or MDB_WRITEMAP: a commit that returned is on the disk.
  if (error == 0) error = mdb_env_open(env_, path.c_str(), MDB_NOSUBDIR | MDB_NOTLS, 0600);
  return LmdbStatus(error, what);
}

absl::Status LmdbEnv::ExtendShortFile() {
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
absl::Status LmdbEnv::WalkTrees() const {
  if (!was_short_) return absl::OkStatus();
  return LmdbStatus(WalkCatchingAssertions(env_), "the share store file was cut short");
}

absl::Status LmdbEnv::OpenDatabases(absl::Span<const char* const> names) {
  return Write([&](LmdbTxn& txn) {
    for (const char* name : names) {
      MDB_dbi dbi;
      int error = mdb_dbi_open(txn.txn_, name, MDB_CREATE, &dbi);
      if (error != 0) return LmdbStatus(error, absl::StrCat("cannot open database ", name));
      dbis_.push_back(dbi);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<LmdbTxn> LmdbEnv::BeginRead() const {
  MDB_txn* txn = nullptr;
  if (int error = mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn); error != 0) {
    return LmdbStatus(error, "cannot read the share store");
  }
  return LmdbTxn(txn);
}

absl::Status LmdbEnv::Write(absl::FunctionRef<absl::Status(LmdbTxn&)> body) {
  MDB_txn* raw = nullptr;
  if (int error = mdb_txn_begin(env_, nullptr, 0, &raw); error != 0) {
    return LmdbStatus(error, "cannot write the share store");
  }
  LmdbTxn txn(raw);
  if (absl::Status status = body(txn); !status.ok()) return status;
  return txn.Commit();
}

LmdbTxn::LmdbTxn(LmdbTxn&& other) noexcept : txn_(std::exchange(other.txn_, nullptr)) {}

LmdbTxn::~LmdbTxn() {
  if (txn_ != nullptr) mdb_txn_abort(txn_);
}

absl::Status LmdbTxn::Commit() {
  assert(txn_ != nullptr);
  const int error = mdb_txn_commit(std::exchange(txn_, nullptr));
  constexpr absl::string_view kWhat = "cannot commit to the share store";
  // LMDB turns a write that was cut short, the first sign of a full disk, into EIO.
  if (error == EIO) return absl::ResourceExhaustedError(absl::StrCat("disk full or failing: ", kWhat));
  return LmdbStatus(error, kWhat);
}

absl::StatusOr<absl::Span<const uint8_t>> LmdbTxn::Get(MDB_dbi dbi, absl::string_view key) const {
  MDB_val key_val = ToVal(key);
  MDB_val value;
  if (int error = mdb_get(txn_, dbi, &key_val, &value); error != 0) {
    return LmdbStatus(error, "cannot read the share store");
  }
  return ToSpan(value);
}

absl::Status LmdbTxn::Put(MDB_dbi dbi, absl::string_view key, absl::string_view value) {
  MDB_val key_val = ToVal(key);
  MDB_val val = ToVal(value);
  return LmdbStatus(mdb_put(txn_, dbi, &key_val, &val, 0), "cannot write the share store");
}

absl::Status LmdbTxn::Append(MDB_dbi dbi, absl::string_view key, absl::string_view value) {
  MDB_val key_val = ToVal(key);
  MDB_val val = ToVal(value);
  return LmdbStatus(mdb_put(txn_, dbi, &key_val, &val, MDB_APPEND), "cannot write the share store");
}

absl::StatusOr<absl::string_view> LmdbTxn::LastKey(MDB_dbi dbi) const {
  constexpr absl::string_view kWhat = "cannot read the share store";
  MDB_cursor* cursor = nullptr;
  int error = mdb_cursor_open(txn_, dbi, &cursor);
  if (error != 0) return LmdbStatus(error, kWhat);
  MDB_val key;
  MDB_val value;
  error = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
  mdb_cursor_close(cursor);
  if (error != 0) return LmdbStatus(error, kWhat);
  return ToText(key);
}

absl::Status LmdbTxn::Delete(MDB_dbi dbi, absl::string_view key) {
  MDB_val key_val = ToVal(key);
  return LmdbStatus(mdb_del(txn_, dbi, &key_val, nullptr), "cannot delete from the share store");
}

absl::StatusOr<size_t> LmdbTxn::Count(MDB_dbi dbi) const {
  MDB_stat stat;
  if (int error = mdb_stat(txn_, dbi, &stat); error != 0) {
    return LmdbStatus(error, "cannot read the share store");
  }
  return stat.ms_entries;
}

absl::Status LmdbTxn::Scan(MDB_dbi dbi, absl::string_view from, Visitor visit) const {
  MDB_cursor* cursor = nullptr;
  int error = mdb_cursor_open(txn_, dbi, &cursor);
  if (error != 0) return LmdbStatus(error, "cannot read the share store");
  MDB_val key = ToVal(from);
  MDB_val value;
  error = mdb_cursor_get(cursor, &key, &value, from.empty() ? MDB_FIRST : MDB_SET_RANGE);
  while (error == 0 && visit(ToText(key), ToSpan(value))) {
    error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
  }
  mdb_cursor_close(cursor);
  if (error == MDB_NOTFOUND) return absl::OkStatus();
  return LmdbStatus(error, "cannot read the share store");
}

}  // namespace mpckdc
