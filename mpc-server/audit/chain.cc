// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/audit/chain.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace mpckdc::audit {
namespace {

constexpr uint64_t kProgressLines = 4096;
constexpr size_t kMaxFragment = 64 << 20;  // more is not kept: it is then no torn line

std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 40;
  std::string shown;
  for (const char c : text.substr(0, kShown)) shown += c >= ' ' && c <= '~' ? c : '?';
  return absl::StrCat("\"", shown, text.size() > kShown ? "...\"" : "\"");
}

}  // namespace

const char* BreakName(BreakKind kind) {
  switch (kind) {
    case BreakKind::kAltered: return "altered";
    case BreakKind::kMissing: return "missing";
    case BreakKind::kOutOfOrder: return "out of order";
    case BreakKind::kForeign: return "foreign";
    case BreakKind::kTorn: return "torn";
  }
  return "";
}

void ChainReader::Note(BreakKind kind, const Place& place, std::string text) {
  ++break_count_;
  if (breaks_.size() < kMaxBreaks) {
    breaks_.push_back({kind, place.file, place.line, std::move(text)});
  }
}

// The next piece of text, from whichever file.
bool ChainReader::NextText(absl::string_view* text, bool* ended) {
  while (true) {
    if (reader_ == nullptr) {
      if (next_file_ == files_.size()) return false;
      place_.file = files_[next_file_++].path;
      absl::StatusOr<std::unique_ptr<LineReader>> reader = LineReader::Open(place_.file);
      status_ = reader.status();
      if (!status_.ok()) return false;
      reader_ = *std::move(reader);
    }
    if (reader_->Next(text, ended)) {
      place_.line = reader_->number();
      bytes_ += text->size() + 1;
      return true;
    }
    status_ = reader_->status();
    if (!status_.ok()) return false;
    reader_ = nullptr;
  }
}

void ChainReader::NoteFragment(absl::string_view text) {
  if (!in_fragment_) {
    fragment_place_ = place_;
    fragment_.clear();
  } else if (fragment_.size() < kMaxFragment) {
    fragment_ += '\n';
  }
  in_fragment_ = true;
  if (fragment_.size() < kMaxFragment) fragment_.append(text.data(), text.size());
}

bool ChainReader::Next(Line* line) {
  absl::string_view text;
  bool ended = true;
  while (NextText(&text, &ended)) {
    const std::optional<Line> parsed = ParseLine(text);
    if (!parsed) {
      NoteFragment(text);
      continue;
    }
    CheckFragment(*parsed);
    CheckLine(*parsed);
    *line = *parsed;
    return true;
  }
  if (in_fragment_ && status_.ok()) {
    Note(BreakKind::kTorn, fragment_place_,
         absl::StrCat("the log ends with ", fragment_.size(), " bytes of an unfinished line, ",
                      Quoted(fragment_), ": the server died while it wrote it and was not started ",
                      "since, or somebody cut the file"));
    in_fragment_ = false;
  }
  return false;
}

// Bytes between two lines are what the later line says of them, or somebody's.
void ChainReader::CheckFragment(const Line& line) {
  const bool names = line.text.find("\"torn\":{") != absl::string_view::npos;
  if (!in_fragment_ && !names) return;
  Fields torn;
  if (names) {
    const Fields fields = FieldsOf(line);
    if (fields.is_object() && fields.contains("torn")) torn = fields["torn"];
  }
  const uint64_t bytes = NumberField(torn, "bytes");
  if (in_fragment_ && bytes == fragment_.size() &&
      TextField(torn, "sha256") == HashText(fragment_)) {
    in_fragment_ = false;
    return;
  }
  if (in_fragment_) {
    Note(BreakKind::kAltered, fragment_place_,
         absl::StrCat("no line of an audit log: ", Quoted(fragment_)));
  } else if (bytes > 0 && begun_) {
    Note(BreakKind::kAltered, place_,
         absl::StrCat("line ", line.seq, " says that ", bytes,
                      " bytes of an unfinished line stand before it, and they do not"));
  }
  in_fragment_ = false;
}

void ChainReader::CheckLine(const Line& line) {
  if (begun_ && line.owner != owner_) {
    Note(BreakKind::kForeign, place_,
         absl::StrCat("a line of another log: ", line.owner, " and not ", owner_));
  }
  if (!HashHolds(line)) {
    Note(BreakKind::kAltered, place_, absl::StrCat("line ", line.seq, " was altered"));
  } else if (begun_ && line.seq > head_.seq + 1) {
    Note(BreakKind::kMissing, place_,
         line.seq == head_.seq + 2
             ? absl::StrCat("line ", head_.seq + 1, " is missing")
             : absl::StrCat("lines ", head_.seq + 1, " to ", line.seq - 1, " are missing"));
  } else if (begun_ && line.seq <= head_.seq) {
    Note(BreakKind::kOutOfOrder, place_,
         absl::StrCat("line ", line.seq, " stands after line ", head_.seq,
                      line.hash == head_.hash ? " and is the same" : ""));
  } else if ((begun_ || line.seq == 1) && line.prev != head_.hash) {
    Note(BreakKind::kAltered, place_,
         begun_ ? absl::StrCat("line ", line.seq, " does not follow from line ", head_.seq,
                               " as it stands here: one of the two was rewritten")
                : "line 1 claims a line before it");
  }
  begun_ = true;
  head_ = {line.seq, std::string(line.hash)};
  owner_ = std::string(line.owner);
}

absl::StatusOr<Verification> Verify(const std::vector<LogFile>& files,
                                    const std::string& known_head,
                                    const std::function<void(uint64_t)>& progress) {
  ChainReader reader(files);
  Verification result;
  Line line;
  while (reader.Next(&line)) {
    if (result.lines++ == 0) {
      result.first = line.seq;
      result.first_time = std::string(line.time);
      result.owner = std::string(line.owner);
    }
    result.last_time.assign(line.time.data(), line.time.size());
    if (!known_head.empty() && line.hash == known_head) result.known_head_found = true;
    if (progress && result.lines % kProgressLines == 0) progress(reader.bytes());
  }
  if (!reader.status().ok()) return reader.status();
  result.head = reader.head();
  result.breaks = reader.breaks();
  result.break_count = reader.break_count();
  return result;
}

}  // namespace mpckdc::audit
