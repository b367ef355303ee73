// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/audit/chain.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"

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
  if (so_far_.break_count++ < kMaxBreaks) {
    so_far_.breaks.push_back({kind, place.file, place.line, std::move(text)});
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
  } else if (bytes > 0 && so_far_.lines > 0) {
    Note(BreakKind::kAltered, place_,
         absl::StrCat("line ", line.seq, " says that ", bytes,
                      " bytes of an unfinished line stand before it, and they do not"));
  }
  in_fragment_ = false;
}

void ChainReader::CheckLine(const Line& line) {
  const bool begun = so_far_.lines++ > 0;
  Head& head = so_far_.head;
  if (begun && line.owner != owner_) {
    Note(BreakKind::kForeign, place_,
         absl::StrCat("a line of another log: ", line.owner, " and not ", owner_));
  }
  if (!HashHolds(line)) {
    Note(BreakKind::kAltered, place_, absl::StrCat("line ", line.seq, " was altered"));
  } else if (begun && line.seq > head.seq + 1) {
    Note(BreakKind::kMissing, place_,
         line.seq == head.seq + 2
             ? absl::StrCat("line ", head.seq + 1, " is missing")
             : absl::StrCat("lines ", head.seq + 1, " to ", line.seq - 1, " are missing"));
  } else if (begun && line.seq <= head.seq) {
    Note(BreakKind::kOutOfOrder, place_,
         absl::StrCat("line ", line.seq, " stands after line ", head.seq,
                      line.hash == head.hash ? " and is the same" : ""));
  } else if ((begun || line.seq == 1) && line.prev != head.hash) {
    Note(BreakKind::kAltered, place_,
         begun ? absl::StrCat("line ", line.seq, " does not follow from line ", head.seq,
                              " as it stands here: one of the two was rewritten")
               : "line 1 claims a line before it");
  }
  if (!begun) {
    so_far_.first = line.seq;
    so_far_.first_time = std::string(line.time);
    so_far_.owner = std::string(line.owner);
  }
  so_far_.last_time.assign(line.time.data(), line.time.size());
  head = {line.seq, std::string(line.hash)};
  owner_ = std::string(line.owner);
}

absl::StatusOr<Verification> Verify(const std::vector<LogFile>& files,
                                    const std::string& known_head,
                                    const std::function<void(uint64_t)>& progress) {
  ChainReader reader(files);
  Line line;
  bool known_head_found = false;
  while (reader.Next(&line)) {
    known_head_found |= !known_head.empty() && line.hash == known_head;
    if (progress && reader.so_far().lines % kProgressLines == 0) progress(reader.bytes());
  }
  RETURN_IF_ERROR(reader.status());
  Verification result = reader.so_far();
  result.known_head_found = known_head_found;
  return result;
}

}  // namespace mpckdc::audit
