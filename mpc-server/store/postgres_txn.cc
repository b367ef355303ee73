// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/postgres_txn.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

// Advisory locks of a database are numbers: "mpckdc", 1 and 2. Migrations have 0.
constexpr int64_t kMetaLock = 0x6d70636b646301;
constexpr int64_t kKeysLock = 0x6d70636b646302;

// Replay entries are inserted by many at once: their number would be a row that they wait for.
bool IsCounted(rf::Table table) { return table != rf::kReplay; }

std::string NameOf(rf::Table table) { return absl::StrCat("mpckdc.", rf::kTableNames[table]); }

// A connection that the database has closed says so at once; one that is slow does not.
constexpr absl::Duration kDead = absl::Milliseconds(500);

PgStatement Plain(absl::string_view sql) { return {std::string(sql), {}}; }

PgStatement Lock(int64_t number) {
  return {"SELECT pg_advisory_xact_lock($1)", {PgValue::Integer(number)}};
}

PgStatement AddToCount(rf::Table table, int64_t added) {
  return {absl::StrCat("UPDATE mpckdc.counts SET n = n + $1 WHERE name = '", rf::kTableNames[table],
                       "'"),
          {PgValue::Integer(added)}};
}

std::vector<absl::string_view> Views(absl::Span<const std::string> texts) {
  return {texts.begin(), texts.end()};
}

absl::Status NoSuchKey() { return absl::NotFoundError("no such key"); }
absl::Status ReadOnly() { return absl::InternalError("a change in a read"); }

}  // namespace

// ---- Both ----

PgTxn::~PgTxn() {
  // Not waited for: whoever uses the connection next takes the answer first.
  if (begun_ && lease_.connection != nullptr) lease_.connection->Send({"ROLLBACK"});
  if (leased_) pool_.GiveBack(std::move(lease_));
}

absl::Status PgTxn::Lease(bool writer) const {
  if (leased_) return absl::OkStatus();
  ASSIGN_OR_RETURN(lease_, pool_.Take(writer));
  leased_ = true;
  return absl::OkStatus();
}

absl::Duration PgTxn::limit(Table) const { return limits::kDatabaseAnswer; }

absl::StatusOr<PgResult> PgTxn::Ask(const PgStatement& statement, Table table) const {
  RETURN_IF_ERROR(Ready(table));
  const bool first = !begun_;
  for (bool again = false;; again = true) {
    if (lease_.connection == nullptr) return absl::UnavailableError("no connection");
    std::vector<PgStatement> all = Before(table);
    const size_t before = all.size();
    all.push_back(statement);
    const absl::Time start = absl::Now();
    absl::StatusOr<PgConnection::Results> results = lease_.connection->Run(all, limit(table));
    if (results.ok()) {
      if (lease_.lane == PgPool::kReader) pool_.Answered(absl::Now() - start);
      begun_ = true;
      After(table, absl::MakeConstSpan(*results).first(before));
      return std::move(results->back());
    }
    if (!lease_.connection->broken()) begun_ = true;  // to be rolled back
    const bool was_dead = lease_.connection->broken() && absl::Now() < start + kDead;
    if (!first || again || !was_dead) return results.status();
    RETURN_IF_ERROR(pool_.Replace(&lease_, /*unsure=*/false, limits::kDatabaseWait));
  }
}

absl::StatusOr<KvTxn::Values> PgTxn::GetMany(Table table,
                                             absl::Span<const std::string> keys) const {
  if (keys.empty()) return Values();
  ASSIGN_OR_RETURN(
      const PgResult found,
      Ask({absl::StrCat("SELECT key, value FROM ", NameOf(table), " WHERE key = ANY($1)"),
           {PgValue::BytesArray(Views(keys))}},
          table));
  absl::flat_hash_map<absl::string_view, int> rows;
  for (int row = 0; row < found.rows(); ++row) rows[found.Bytes(row, 0)] = row;
  Values values;
  values.reserve(keys.size());
  for (const std::string& key : keys) {
    const auto it = rows.find(key);
    values.push_back(it == rows.end() ? std::nullopt
                                      : std::optional<std::string>(found.Bytes(it->second, 1)));
  }
  return values;
}

// By pages, each from the key after the last one; small ones first, as many scans end soon.
absl::Status PgTxn::ScanPages(Table table, absl::string_view from, bool values,
                              Visitor visit) const {
  constexpr size_t kFirstPage = 64;
  RETURN_IF_ERROR(Settle(table));
  std::string next(from);
  const char* comparison = ">=";
  for (size_t rows = kFirstPage;; rows = std::min(rows * 4, limits::kDatabasePageRows)) {
    ASSIGN_OR_RETURN(
        const PgResult page,
        Ask({absl::StrCat("SELECT key", values ? ", value" : "", " FROM ", NameOf(table),
                          " WHERE key ", comparison, " $1 ORDER BY key LIMIT $2"),
             {PgValue::Bytes(next), PgValue::Integer(static_cast<int64_t>(rows))}},
            table));
    for (int row = 0; row < page.rows(); ++row) {
      const absl::string_view key = page.Bytes(row, 0);
      Saw(table, key);
      if (!visit(key, values ? AsBytes(page.Bytes(row, 1)) : absl::Span<const uint8_t>())) {
        return absl::OkStatus();
      }
    }
    if (static_cast<size_t>(page.rows()) < rows) return absl::OkStatus();
    next = std::string(page.Bytes(page.rows() - 1, 0));
    comparison = ">";
  }
}

absl::Status PgTxn::Scan(Table table, absl::string_view from, Visitor visit) const {
  return ScanPages(table, from, /*values=*/true, visit);
}

absl::Status PgTxn::ScanNames(Table table, absl::string_view from, KeyVisitor visit) const {
  return ScanPages(table, from, /*values=*/false,
                   [&](absl::string_view key, auto) { return visit(key); });
}

absl::StatusOr<absl::string_view> PgTxn::LastKey(Table table) const {
  ASSIGN_OR_RETURN(
      const PgResult last,
      Ask({absl::StrCat("SELECT key FROM ", NameOf(table), " ORDER BY key DESC LIMIT 1")}, table));
  if (last.rows() == 0) return absl::NotFoundError("the table is empty");
  return kept_.emplace_back(last.Bytes(0, 0));
}

absl::StatusOr<size_t> PgTxn::Count(Table table) const {
  RETURN_IF_ERROR(Settle(table));
  const std::string sql =
      IsCounted(table)
          ? absl::StrCat("SELECT n FROM mpckdc.counts WHERE name = '", rf::kTableNames[table], "'")
          : absl::StrCat("SELECT count(*) FROM ", NameOf(table));
  ASSIGN_OR_RETURN(const PgResult count, Ask({sql}, table));
  if (count.rows() != 1) return absl::DataLossError("the database has lost a row of mpckdc.counts");
  return static_cast<size_t>(count.Integer(0, 0));
}

// ---- Reads ----

std::vector<PgStatement> PgReadTxn::Before(Table) const {
  if (begun_) return {};
  return {Plain("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
          Plain("SELECT n FROM mpckdc.version")};
}

void PgReadTxn::After(Table, absl::Span<const PgResult> results) const {
  if (results.size() == 2 && results[1].rows() == 1) {
    version_ = static_cast<uint64_t>(results[1].Integer(0, 0));
  }
}

absl::StatusOr<absl::Span<const uint8_t>> PgReadTxn::Get(Table table, absl::string_view key) const {
  ASSIGN_OR_RETURN(Values found, PgTxn::GetMany(table, {std::string(key)}));
  if (!found[0].has_value()) return NoSuchKey();
  return AsBytes(kept_.emplace_back(*std::move(found[0])));
}

absl::StatusOr<uint64_t> PgReadTxn::KeyVersion() const {
  if (!begun_) RETURN_IF_ERROR(Ask({"SELECT 1"}, rf::kKeys).status());
  return version_;
}

absl::Status PgReadTxn::Put(Table, absl::string_view, absl::string_view) { return ReadOnly(); }
absl::Status PgReadTxn::Append(Table, absl::string_view, absl::string_view) { return ReadOnly(); }
absl::Status PgReadTxn::Delete(Table, absl::string_view) { return ReadOnly(); }
absl::StatusOr<KvTxn::Values> PgReadTxn::InsertNew(Table, absl::Span<const Entry>) {
  return ReadOnly();
}

// ---- Writes ----

PgWriteTxn::~PgWriteTxn() {
  if (has_turn_) pool_.EndTurn();
}

absl::Status PgWriteTxn::Ready(Table table) const {
  if (LockOf(table) == kKeysLock && !has_turn_) {
    RETURN_IF_ERROR(pool_.TakeTurn());
    has_turn_ = true;
  }
  return Lease(/*writer=*/true);
}

// The advisory lock that a change of the table needs.
std::optional<int64_t> PgWriteTxn::LockOf(Table table) const {
  if (table == rf::kReplay) return std::nullopt;
  if (table == rf::kMeta) return meta_locked_ ? std::nullopt : std::optional(kMetaLock);
  return keys_locked_ ? std::nullopt : std::optional(kKeysLock);
}

// Bulk alone may take long: the engine waits for marks and replay entries.
absl::Duration PgWriteTxn::limit(Table table) const {
  const bool bulk = keys_locked_ || LockOf(table) == kKeysLock;
  return bulk ? limits::kDatabaseBulkAnswer : limits::kDatabaseAnswer;
}

std::vector<PgStatement> PgWriteTxn::Before(Table table) const {
  std::vector<PgStatement> all;
  if (!begun_) all.push_back(Plain("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"));
  if (const auto lock = LockOf(table)) all.push_back(Lock(*lock));
  return all;
}

void PgWriteTxn::After(Table table, absl::Span<const PgResult>) const {
  meta_locked_ |= table == rf::kMeta;
  keys_locked_ |= table != rf::kMeta && table != rf::kReplay;
}

void PgWriteTxn::Saw(Table table, absl::string_view key) const {
  known_[table].try_emplace(std::string(key), Known{true, std::nullopt});
}

// Asks for the keys' values, all that are not known.
absl::Status PgWriteTxn::Learn(Table table, absl::Span<const std::string> keys) const {
  std::vector<std::string> unknown;
  for (const std::string& key : keys) {
    if (changes_[table].contains(key)) continue;
    const auto it = known_[table].find(key);
    if (it != known_[table].end() && (!it->second.there || it->second.value)) continue;
    unknown.push_back(key);
  }
  ASSIGN_OR_RETURN(Values values, PgTxn::GetMany(table, unknown));
  for (size_t i = 0; i < unknown.size(); ++i) {
    const bool there = values[i].has_value();
    known_[table][unknown[i]] = {there, std::move(values[i])};
  }
  return absl::OkStatus();
}

absl::Status PgWriteTxn::Prefetch(Table table, absl::Span<const std::string> keys) const {
  return Learn(table, keys);
}

absl::StatusOr<absl::Span<const uint8_t>> PgWriteTxn::Get(Table table,
                                                          absl::string_view key) const {
  auto change = changes_[table].find(key);
  if (change == changes_[table].end()) {
    RETURN_IF_ERROR(Learn(table, {std::string(key)}));
    const Known& known = known_[table].find(key)->second;
    if (!known.there) return NoSuchKey();
    return AsBytes(*known.value);
  }
  if (!change->second.has_value()) return NoSuchKey();
  return AsBytes(*change->second);
}

absl::StatusOr<KvTxn::Values> PgWriteTxn::GetMany(Table table,
                                                  absl::Span<const std::string> keys) const {
  RETURN_IF_ERROR(Learn(table, keys));
  return KvTxn::GetMany(table, keys);
}

absl::StatusOr<absl::string_view> PgWriteTxn::LastKey(Table table) const {
  if (deletes_[table]) RETURN_IF_ERROR(Settle(table));
  if (!last_[table].has_value()) {
    absl::StatusOr<absl::string_view> last = PgTxn::LastKey(table);
    if (!last.ok() && !absl::IsNotFound(last.status())) return last;
    last_[table] = last.ok() ? std::string(*last) : "";  // below every key
  }
  const Changes& changes = changes_[table];
  const absl::string_view pending = changes.empty() ? absl::string_view() : changes.rbegin()->first;
  const absl::string_view last = std::max<absl::string_view>(pending, *last_[table]);
  if (last.empty()) return absl::NotFoundError("the table is empty");
  return last;
}

absl::StatusOr<size_t> PgWriteTxn::Count(Table table) const {
  ASSIGN_OR_RETURN(const size_t count, PgTxn::Count(table));
  return count + static_cast<size_t>(IsCounted(table) ? added_[table] : 0);
}

absl::StatusOr<uint64_t> PgWriteTxn::KeyVersion() const {
  ASSIGN_OR_RETURN(const PgResult version, Ask({"SELECT n FROM mpckdc.version"}, rf::kKeys));
  return static_cast<uint64_t>(version.Integer(0, 0)) + (keys_changed_ ? 1 : 0);
}

absl::Status PgWriteTxn::Put(Table table, absl::string_view key, absl::string_view value) {
  changes_[table].insert_or_assign(std::string(key), std::string(value));
  changed_ = true;
  return absl::OkStatus();
}

absl::Status PgWriteTxn::Delete(Table table, absl::string_view key) {
  const auto change = changes_[table].find(key);
  bool there = change != changes_[table].end() && change->second.has_value();
  if (change == changes_[table].end()) {
    auto known = known_[table].find(key);
    if (known == known_[table].end()) {
      RETURN_IF_ERROR(Learn(table, {std::string(key)}));
      known = known_[table].find(key);
    }
    there = known->second.there;
  }
  if (!there) return NoSuchKey();
  changes_[table].insert_or_assign(std::string(key), std::nullopt);
  deletes_[table] = true;
  changed_ = true;
  return absl::OkStatus();
}

// ---- Changes ----

// The statements of what was changed since the last time. Both sides of `n` see the table as it was
// before the statement.
std::vector<PgStatement> PgWriteTxn::Flush(Table table) const {
  std::vector<absl::string_view> keys, values, gone;
  for (const auto& [key, value] : changes_[table]) {
    if (value.has_value()) {
      keys.push_back(key);
      values.push_back(*value);
    } else {
      gone.push_back(key);
    }
  }
  std::vector<PgStatement> all;
  const std::string name = NameOf(table);
  const std::string put = absl::StrCat("INSERT INTO ", name,
                                       " SELECT * FROM unnest($1::bytea[], $2::bytea[]) "
                                       "ON CONFLICT (key) DO UPDATE SET value = excluded.value");
  const std::string drop = absl::StrCat("DELETE FROM ", name, " WHERE key = ANY($1::bytea[])");
  const std::string count =
      absl::StrCat("(SELECT count(*) FROM ", name, " WHERE key = ANY($1)) WHERE name = '",
                   rf::kTableNames[table], "'");
  if (!gone.empty()) {
    all.push_back({IsCounted(table) ? absl::StrCat("WITH gone AS (", drop,
                                                   ") UPDATE mpckdc.counts SET "
                                                   "n = n - ",
                                                   count)
                                    : drop,
                   {PgValue::BytesArray(gone)}});
  }
  if (!keys.empty()) {
    all.push_back({IsCounted(table) ? absl::StrCat("WITH put AS (", put,
                                                   ") UPDATE mpckdc.counts SET "
                                                   "n = n + cardinality($1) - ",
                                                   count)
                                    : put,
                   {PgValue::BytesArray(keys), PgValue::BytesArray(values)}});
  }
  return all;
}

void PgWriteTxn::Flushed(Table table) const {
  if (changes_[table].empty()) return;
  keys_changed_ |= table == rf::kKeys || table == rf::kRecords ||
                   (table == rf::kMeta && changes_[table].contains(rf::kNameIdentity));
  for (auto& [key, value] : changes_[table]) {
    const bool there = value.has_value();
    known_[table][key] = {there, std::move(value)};
  }
  changes_[table].clear();
  deletes_[table] = false;
  last_[table].reset();
}

// Before something is asked that own changes bear on, they go to the database.
absl::Status PgWriteTxn::Settle(Table table) const {
  for (const PgStatement& statement : Flush(table)) {
    RETURN_IF_ERROR(Ask(statement, table).status());
  }
  Flushed(table);
  return absl::OkStatus();
}

// The values of those that are there, which nobody else changes then until the end.
absl::StatusOr<std::map<std::string, std::string, std::less<>>> PgWriteTxn::LockFound(
    Table table, absl::Span<const absl::string_view> keys) const {
  std::map<std::string, std::string, std::less<>> found;
  if (keys.empty()) return found;
  ASSIGN_OR_RETURN(const PgResult rows,
                   Ask({absl::StrCat("SELECT key, value FROM ", NameOf(table),
                                     " WHERE key = ANY($1) ORDER BY key FOR UPDATE"),
                        {PgValue::BytesArray(keys)}},
                       table));
  for (int row = 0; row < rows.rows(); ++row) found.emplace(rows.Bytes(row, 0), rows.Bytes(row, 1));
  return found;
}

// First all are inserted, then those that were there are locked, both in the order of the keys: two
// that meet wait for each other, never in a circle.
absl::StatusOr<KvTxn::Values> PgWriteTxn::InsertNew(Table table, absl::Span<const Entry> entries) {
  if (entries.empty()) return Values();
  RETURN_IF_ERROR(Settle(table));
  std::map<absl::string_view, absl::string_view> first;  // of entries with the same key
  for (const auto& [key, value] : entries) first.try_emplace(key, value);
  std::vector<absl::string_view> keys, values;
  for (const auto& [key, value] : first) {
    keys.push_back(key);
    values.push_back(value);
  }
  std::set<std::string, std::less<>> added;
  std::map<std::string, std::string, std::less<>> there;
  // Who inserted one of them may delete it before its value is read.
  while (added.size() + there.size() < keys.size()) {
    ASSIGN_OR_RETURN(const PgResult fresh,
                     Ask({absl::StrCat("INSERT INTO ", NameOf(table),
                                       " SELECT * FROM unnest($1::bytea[], "
                                       "$2::bytea[]) ON CONFLICT (key) DO NOTHING RETURNING key"),
                          {PgValue::BytesArray(keys), PgValue::BytesArray(values)}},
                         table));
    for (int row = 0; row < fresh.rows(); ++row) added.emplace(fresh.Bytes(row, 0));
    std::vector<absl::string_view> others;
    for (absl::string_view key : keys) {
      if (!added.contains(key)) others.push_back(key);
    }
    ASSIGN_OR_RETURN(there, LockFound(table, others));
  }
  changed_ = changed_ || !added.empty();
  added_[table] += static_cast<int64_t>(added.size());
  keys_changed_ |= !added.empty() && (table == rf::kKeys || table == rf::kRecords);
  last_[table].reset();
  Values present;
  for (const auto& [key, value] : entries) {
    known_[table].erase(key);
    if (const auto it = there.find(key); it != there.end()) {
      present.emplace_back(it->second);
    } else if (added.erase(key) == 1) {
      present.emplace_back(std::nullopt);
    } else {
      present.emplace_back(std::string(first[key]));
    }
  }
  return present;
}

// ---- The commit ----

std::vector<PgStatement> PgWriteTxn::CommitStatements() const {
  std::vector<PgStatement> all;
  // The last table first: `meta` is locked after the others.
  for (size_t i = rf::kTables; i-- > 0;) {
    const auto table = static_cast<rf::Table>(i);
    if (const auto lock = LockOf(table); lock.has_value() && !changes_[i].empty()) {
      all.push_back(Lock(*lock));
      After(table, {});
    }
    for (PgStatement& statement : Flush(table)) all.push_back(std::move(statement));
    if (added_[i] != 0 && IsCounted(table)) all.push_back(AddToCount(table, added_[i]));
    Flushed(table);
  }
  if (keys_changed_) {
    all.push_back(Plain("UPDATE mpckdc.version SET n = n + 1"));
    all.push_back(Plain("SELECT pg_notify('mpckdc_keys', '')"));
  }
  all.push_back({"SELECT mpckdc.mark($1, $2)",
                 {PgValue::Bytes(pool_.memory().WriterId(lease_.lane)),
                  PgValue::Integer(static_cast<int64_t>(pool_.memory().Commits(lease_.lane)))}});
  all.push_back(Plain("COMMIT"));
  return all;
}

absl::Status PgWriteTxn::Commit(absl::string_view what) {
  if (!changed_) return absl::OkStatus();
  for (size_t i = 0; i < rf::kTables; ++i) {
    if (!changes_[i].empty()) RETURN_IF_ERROR(Ready(static_cast<rf::Table>(i)));
  }
  // A body that only writes has not begun: what Ask() does for others.
  if (!begun_) {
    RETURN_IF_ERROR(Ask({"SELECT 1"}, rf::kReplay).status());
  }
  const std::vector<PgStatement> statements = CommitStatements();
  const absl::Time start = absl::Now();
  const absl::StatusOr<PgConnection::Results> results =
      lease_.connection->Run(statements, limit(rf::kReplay));
  if (results.ok()) {
    pool_.Committed(absl::Now() - start);
    return Committed(*results);
  }
  if (lease_.connection->broken()) return LookWhatHappened(what, results.status());
  return absl::Status(
      results.status().code(),
      absl::StrCat("cannot commit to the share store (", what, "): ", results.status().message()));
}

absl::Status PgWriteTxn::Committed(absl::Span<const PgResult> results) {
  if (results.back().Tag() != "COMMIT") return absl::UnavailableError("the commit was rolled back");
  begun_ = false;
  pool_.memory().Committed(lease_.lane, ParseLsn(results[results.size() - 2].Bytes(0, 0)));
  if (lease_.connection->warning().empty()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the database has committed, but says that its standby may not have it: ",
                   lease_.connection->warning()));
}

// The answer to COMMIT was lost. The writer's row says whether it happened: it counts the commits.
absl::Status PgWriteTxn::LookWhatHappened(absl::string_view what, const absl::Status& lost) {
  begun_ = false;
  const int lane = lease_.lane;
  const uint64_t before = pool_.memory().Commits(lane);
  const absl::Status found = pool_.Replace(&lease_, /*unsure=*/true, limits::kDatabaseResolve);
  if (!found.ok()) {
    return absl::UnavailableError(absl::StrCat("the database went while it committed (", what,
                                               "), and whether it did is not known yet: ask "
                                               "again. ",
                                               found.message()));
  }
  if (pool_.memory().Commits(lane) == before + 1) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("not committed (", what, "), nothing was changed: ", lost.message()));
}

}  // namespace mpckdc
