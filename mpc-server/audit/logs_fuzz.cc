// SPDX-License-Identifier: Apache-2.0
//
// Three whole logs, of which some may be anybody's: as bytes, and as stories that good chains tell.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "mpc-server/audit/chain.h"
#include "mpc-server/audit/files.h"
#include "mpc-server/audit/log_seeds.h"
#include "mpc-server/audit/reconcile.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc::audit {
namespace {

// A file whose bytes change from input to input. In a folder of its own, which is searched for
// further files, and in memory if there is a place.
class Scratch {
 public:
  Scratch() {
    const char* const place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    folder_ = absl::StrCat(place, "/mpckdc-audit-fuzz.XXXXXX");
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    path_ = folder_ + "/log";
    fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ < 0) std::abort();
  }
  ~Scratch() {
    close(fd_);
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  const std::string& Write(absl::string_view text) {
    if (ftruncate(fd_, 0) != 0 ||
        pwrite(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      std::abort();
    }
    return path_;
  }

 private:
  std::string folder_, path_;
  int fd_;
};

std::array<Scratch, 3>& Files() {
  static std::array<Scratch, 3> files;  // they go when the program ends
  return files;
}

// Three logs, each behind its length (2).
FuzzSeeds LogSeeds() {
  FuzzSeeds seeds;
  const auto three = [&](const std::string& a, const std::string& b, const std::string& c) {
    std::string out;
    for (const std::string& log : {a, b, c}) {
      AppendUint(out, log.size(), 2);
      out += log;
    }
    seeds.push_back(out);
  };
  const std::string logs[] = {GoodLog(0).text(), GoodLog(1).text(), GoodLog(2).text()};
  three(logs[0], logs[1], logs[2]);
  const std::string short_log = Log(1).Add("start", {{"boot", "a"}}).text();
  three(logs[0], short_log, logs[2]);
  three(logs[0].substr(0, 700), logs[1] + logs[1], logs[2].substr(200));
  three("\x1f\x8b", "{\"v\":1,", "");
  return seeds;
}

// Whatever three logs hold: broken is found or they tell a story; nobody is made to read outside.
MPCKDC_FUZZ(audit_logs, LogSeeds) {
  ByteReader reader(in);
  std::array<std::vector<LogFile>, 3> logs;
  for (size_t p = 0; p < 3; ++p) {
    std::string log = reader.Text(reader.Uint(2));
    // For the end of a last line readers wait a while.
    if (!log.empty() && log.back() != '\n') log += '\n';
    const std::string& path = Files()[p].Write(log);
    const auto tail = ReadTail(path);
    FUZZ_CHECK(tail.ok());
    const auto files = FindFiles({path});
    if (!files.ok()) return;
    logs[p] = *files;
    const auto chain = Verify(logs[p], "", nullptr);
    FUZZ_CHECK(chain.ok());
    FUZZ_CHECK(!chain->intact() || log.empty() || chain->lines > 0 || !tail->head.has_value());
  }
  const auto result = Reconcile(logs, {});
  if (result.ok()) FUZZ_CHECK(!result->clean() || result->unexplained == 0);
}

// ---- Stories ----

// A line each: a server or * for all three | seconds that pass before | kind | fields in JSON.
// `forget` is no kind: the files so far are not given. `raw` is none either: the bytes themselves.
constexpr char kStart[] = "*0 start {\"boot\":\"a\"}\n";

std::string BatchOf(const char* who, int number, const char* verdict, const char* more = "",
                    const char* view = "v", const char* of_line = "") {
  return absl::StrCat(who, "1 batch {\"ring\":\"51\",\"batch\":", number, ",\"view\":\"", view, "\"",
                      of_line, ",\"jobs\":[{\"kdc\":\"kdc1\",\"session\":\"5e\",\"id\":", number,
                      ",\"op\":\"LOGIN\",\"principal\":\"208b\",\"digest\":\"d\",\"verdict\":\"",
                      verdict, "\"", more, "}]}\n");
}
std::string Refused(const char* who, int number, const char* verdict) {
  return absl::StrCat(who, "1 jobs {\"jobs\":[{\"kdc\":\"kdc1\",\"session\":\"5e\",\"id\":", number,
                      ",\"verdict\":\"", verdict, "\",\"detail\":\"why\"}]}\n");
}
std::string Since(absl::Duration after) {
  return absl::FormatTime(absl::RFC3339_full, kTime + after, absl::UTCTimeZone());
}

// One server was not there, and comes again.
FuzzSeeds AbsenceSeeds() {
  const std::string good = BatchOf("*", 1, "OK"), back = BatchOf("*", 9, "OK");
  const std::string others = BatchOf("0", 2, "OK") + BatchOf("2", 2, "OK");
  const std::string more = BatchOf("0", 3, "OK") + BatchOf("2", 3, "OK") + BatchOf("0", 4, "OK");
  const std::string refused = Refused("0", 5, "UNAVAILABLE") + Refused("2", 5, "UNAVAILABLE");
  FuzzSeeds seeds;
  for (const std::string& missed : {others, others + more, refused}) {
    seeds.push_back(kStart + good + missed + "160 start {\"boot\":\"a\"}\n" + back);
    seeds.push_back(kStart + good + missed + "160 start {\"boot\":\"b\"}\n" + back);
    seeds.push_back(kStart + good + "10 stop\n060 x\n" + missed + "160 start {\"boot\":\"a\"}\n");
    seeds.push_back(kStart + good + "10 stop\n060 x\n" + missed);
    seeds.push_back(kStart + good + missed);
    seeds.push_back(kStart + good + missed + "10 forget\n" + back);
    seeds.push_back("00 start\n20 start\n" + missed + "120 start\n" + back);
    seeds.push_back(kStart + missed + "160 audit {\"event\":\"resumed\",\"since\":\"" +
                    Since(absl::Seconds(1)) + "\"}\n" + back);
  }
  return seeds;
}

// All were there and tell different things.
FuzzSeeds DifferenceSeeds() {
  const std::string act =
      " admin {\"call\":\"SetPolicy\",\"who\":\"a\",\"handles\":[\"ab\"],\"gate\":3,\"result\":"
      "\"OK\"}\n";
  const std::string counted =
      "1 counted {\"since\":\"" + Since(absl::ZeroDuration()) +
      "\",\"counted\":[{\"kdc\":\"kdc1\",\"verdict\":\"QUOTA\",\"count\":2}]}\n";
  const auto seconds_key = [](const char* who, const char* principal) {
    const std::string keys =
        absl::StrCat(",\"keys\":[{\"part\":\"seal\",\"principal\":\"", principal, "\"}]");
    return BatchOf(who, 2, "OK", keys.c_str());
  };
  FuzzSeeds seeds = {
      kStart + BatchOf("0", 1, "OK") + BatchOf("1", 1, "REPLAY") + BatchOf("2", 1, "OK"),
      kStart + BatchOf("0", 1, "OK") + BatchOf("1", 1, "CLOCK_SKEW") + BatchOf("2", 1, "OK"),
      kStart + BatchOf("0", 1, "OK") + BatchOf("1", 1, "OK") +
          BatchOf("2", 1, "UNAVAILABLE", "", "v", ",\"error\":\"e\""),
      kStart + BatchOf("0", 1, "QUOTA") + BatchOf("1", 1, "REPLAY") + BatchOf("2", 1, "DEADLINE"),
      kStart + BatchOf("0", 1, "OK", ",\"digest\":\"e\"") + BatchOf("1", 1, "OK") +
          BatchOf("2", 1, "UNAVAILABLE"),
      kStart + BatchOf("0", 1, "OK", "", "lie") + BatchOf("1", 1, "OK") + BatchOf("2", 1, "OK"),
      kStart + seconds_key("0", "aa") + seconds_key("1", "bb") + seconds_key("2", "aa"),
      kStart + BatchOf("0", 1, "BAD_TAG", ",\"computed\":true") + "*1" + counted.substr(1),
      kStart + Refused("0", 1, "QUOTA") + Refused("0", 2, "QUOTA") + Refused("0", 3, "QUOTA") +
          "1" + counted + "2" + counted,
      kStart + Refused("0", 1, "QUOTA") + "10 jobs {\"left_out\":3,\"jobs\":[]}\n" + "2" + counted,
      std::string(kStart) +
          "00 deviation {\"suspects\":[1,2],\"text\":\"t\",\"ring\":\"ab\",\"batch\":7}\n",
      kStart + ("*1" + act) + "11" + act,
      kStart + ("01" + act) + "160 start {\"boot\":\"b\"}\n",
      kStart + ("01" + act) + "10 raw no line\n*1 x\n",
  };
  return seeds;
}

FuzzSeeds StorySeeds() {
  FuzzSeeds seeds = AbsenceSeeds();
  for (std::string& seed : DifferenceSeeds()) seeds.push_back(std::move(seed));
  return seeds;
}

struct Story {
  std::vector<Log> logs = {Log(0), Log(1), Log(2)};
  absl::Time now = kTime;
  bool good = true;  // nobody else wrote into them
};

void Tell(absl::string_view line, Story* story) {
  std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
  uint32_t seconds = 0;
  if (words.size() < 2 || words[0].empty() || !absl::SimpleAtoi(words[0].substr(1), &seconds)) return;
  const char who = words[0][0];
  const std::string kind(words[1]);
  if (!std::all_of(kind.begin(), kind.end(), absl::ascii_islower)) return;
  const absl::string_view rest = words.size() > 2 ? words[2] : "";
  Fields fields = Fields::parse(rest.begin(), rest.end(), nullptr, false);
  if (!fields.is_object()) fields = Fields::object();
  for (const char* own : {"v", "seq", "prev", "time", "realm", "party", "kind", "hash"}) {
    fields.erase(own);
  }
  story->good &= !fields.contains("torn");
  story->now += absl::Seconds(seconds);
  for (size_t p = 0; p < 3; ++p) {
    if (who != '*' && static_cast<size_t>(who - '0') != p) continue;
    Log& log = story->logs[p];
    if (kind == "forget") {
      log.Forget();
    } else if (kind == "raw") {
      log.AddRaw(absl::StrCat(rest, "\n"));
      story->good = false;
    } else {
      log.AddAt(story->now, kind, fields);
    }
  }
}

// Chains of any lines are read to their ends and found whole; what differs is told and no end.
MPCKDC_FUZZ(audit_story, StorySeeds) {
  Story story;
  for (const absl::string_view line : absl::StrSplit(AsText(in), '\n')) Tell(line, &story);
  std::array<std::vector<LogFile>, 3> logs;
  for (size_t p = 0; p < 3; ++p) logs[p] = {{Files()[p].Write(story.logs[p].text()), 1}};
  const auto result = Reconcile(logs, {});
  if (!result.ok()) return;
  uint64_t unexplained = 0;
  for (const Finding& finding : result->findings) {
    FUZZ_CHECK(!finding.text.empty());
    unexplained += !finding.explained;
  }
  FUZZ_CHECK(result->left_out > 0 || unexplained == result->unexplained);
  for (size_t p = 0; p < 3; ++p) {
    const Verification& chain = result->servers[p].chain;
    FUZZ_CHECK(!story.good || (chain.intact() && chain.head.seq == story.logs[p].lines()));
  }
}

}  // namespace
}  // namespace mpckdc::audit
