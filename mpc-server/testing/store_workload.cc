// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/store_workload.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

using Kind = StoreOperation::Kind;

constexpr int kOperations = 9;
const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

// Where the keys of an operation are.
enum class Place { kNowhere, kStaged, kCommitted };

std::vector<Place> PlacesOf(Kind kind) {
  switch (kind) {
    case Kind::kEnrol: return {Place::kNowhere, Place::kStaged, Place::kCommitted};
    case Kind::kEnrolAndDelete:
      return {Place::kNowhere, Place::kStaged, Place::kCommitted, Place::kNowhere};
    case Kind::kAbort: return {Place::kNowhere, Place::kStaged, Place::kNowhere};
    case Kind::kStageOnly: return {Place::kNowhere, Place::kStaged};
    default: return {Place::kNowhere, Place::kNowhere};
  }
}

// Every key of the operation is at that place and at no other.
bool AllAt(ShareStore& store, const StoreOperation& op, Place place) {
  return std::all_of(op.records.begin(), op.records.end(), [&](const KeyRecord& record) {
    const absl::StatusOr<KeyRecord> committed = store.Get(record.info.handle);
    const absl::StatusOr<KeyRecord> staged = store.GetStaged(op.txn, record.info.handle);
    const auto is = [&record](const absl::StatusOr<KeyRecord>& read, bool wanted) {
      return wanted ? read.ok() && SameRecord(*read, record) : absl::IsNotFound(read.status());
    };
    return is(committed, place == Place::kCommitted) && is(staged, place == Place::kStaged);
  });
}

// The steps that may have happened.
std::vector<int> Possible(const StoreProgress& progress, bool failed_changes_nothing) {
  std::vector<int> steps = {progress.acknowledged};
  const bool undone = progress.failed && failed_changes_nothing;
  if (progress.tried && !undone) steps.push_back(progress.acknowledged + 1);
  return steps;
}

std::string JudgeMark(ShareStore& store, const std::vector<StoreOperation>& operations,
                      const std::vector<StoreProgress>& progress, bool failed_changes_nothing) {
  std::set<NonceMark> possible = {NonceMark{}};
  for (size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].kind != Kind::kMark) continue;
    const std::vector<int> steps = Possible(progress[i], failed_changes_nothing);
    if (steps[0] == 1) possible = {operations[i].mark};
    if (steps.size() > 1) possible.insert(operations[i].mark);
  }
  const absl::StatusOr<NonceMark> mark = store.ReadNonceMark();
  if (!mark.ok()) return absl::StrCat("the nonce mark: ", mark.status().message());
  return possible.contains(*mark) ? "" : "an acknowledged nonce mark is not there";
}

std::string JudgeReplays(const std::set<std::pair<Handle, std::array<uint8_t, 12>>>& held,
                         const StoreOperation& op, const std::vector<int>& steps) {
  const auto count = static_cast<size_t>(
      std::count_if(op.replays.begin(), op.replays.end(), [&held](const ReplayEntry& entry) {
        return held.contains({entry.handle, entry.nonce});
      }));
  for (const int step : steps) {
    if (count == (step == 1 ? op.replays.size() : 0)) return "";
  }
  return absl::StrCat(count, " of ", op.replays.size(), " replay entries are there");
}

}  // namespace

std::vector<Handle> StoreOperation::Handles() const {
  std::vector<Handle> handles;
  for (const KeyRecord& record : records) handles.push_back(record.info.handle);
  return handles;
}

int StoreOperation::Steps() const { return static_cast<int>(PlacesOf(kind).size()) - 1; }

absl::Status StoreOperation::Do(ShareStore& store, int step) const {
  if (kind == Kind::kMark) return store.ReserveNonceMark(mark);
  if (kind == Kind::kReplays) {
    const auto keep = [](size_t, const ReplayClaim&) { return std::nullopt; };
    return store.ClaimReplayEntries(replays, keep).status();
  }
  if (step == 0) return store.Stage(txn, records, kNow);
  if (step == 2) return store.Delete(Handles()).status();
  return kind == Kind::kAbort ? store.Abort(txn).status() : store.Commit(txn, kNow).status();
}

std::vector<StoreOperation> StoreWorkload(uint64_t seed) {
  SeededRandomForTest random(seed);
  const auto below = [&random](uint8_t n) {
    uint8_t byte;
    random.Fill(absl::MakeSpan(&byte, 1));
    return byte % n;
  };
  std::vector<StoreOperation> operations;
  for (int i = 0; i < kOperations; ++i) {
    StoreOperation op;
    op.kind = static_cast<Kind>(below(6));
    random.Fill(absl::MakeSpan(op.txn));
    const bool keys = op.kind != Kind::kMark && op.kind != Kind::kReplays;
    const int count = 1 + below(4);
    for (int n = 0; keys && n < count; ++n) {
      op.records.push_back(RecordForTest(random, absl::StrCat("user", i, ".", n, "@EXAMPLE.COM")));
    }
    op.mark[3] = static_cast<uint8_t>(i + 1);
    for (int n = 0; op.kind == Kind::kReplays && n < count; ++n) {
      ReplayEntry& entry = op.replays.emplace_back();
      random.Fill(absl::MakeSpan(entry.handle));
      random.Fill(absl::MakeSpan(entry.nonce));
      entry.expires = kNow;
    }
    operations.push_back(std::move(op));
  }
  return operations;
}

std::string JudgeStore(ShareStore& store, const std::vector<StoreOperation>& operations,
                       const std::vector<StoreProgress>& progress, bool failed_changes_nothing) {
  std::set<std::pair<Handle, std::array<uint8_t, 12>>> replays;
  const absl::Status loaded = store.LoadReplayEntries(
      [&replays](const ReplayEntry& entry) { replays.insert({entry.handle, entry.nonce}); });
  if (!loaded.ok()) return std::string(loaded.message());
  for (size_t i = 0; i < operations.size(); ++i) {
    const StoreOperation& op = operations[i];
    const std::vector<int> steps = Possible(progress[i], failed_changes_nothing);
    const auto what = [&](absl::string_view why) {
      return absl::StrCat("operation ", i, " of kind ", static_cast<int>(op.kind), " after ",
                          progress[i].acknowledged, " acknowledged steps",
                          progress[i].failed ? ", one failed" : "", ": ", why);
    };
    if (op.kind == Kind::kReplays) {
      const std::string bad = JudgeReplays(replays, op, steps);
      if (!bad.empty()) return what(bad);
    }
    const std::vector<Place> places = PlacesOf(op.kind);
    const bool found = std::any_of(steps.begin(), steps.end(), [&](int step) {
      return AllAt(store, op, places[static_cast<size_t>(step)]);
    });
    if (!found) return what("its keys are lost, back, or half there");
  }
  return JudgeMark(store, operations, progress, failed_changes_nothing);
}

}  // namespace mpckdc
