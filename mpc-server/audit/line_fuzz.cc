// SPDX-License-Identifier: Apache-2.0
//
// Lines of audit logs, which `mpc-admin audit` reads from three machines of which one may lie.
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "mpc-server/audit/chain.h"
#include "mpc-server/audit/files.h"
#include "mpc-server/audit/job_match.h"
#include "mpc-server/audit/line.h"
#include "mpc-server/audit/reconcile.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc::audit {
namespace {

const absl::Time kTime = absl::FromUnixSeconds(1'800'000'000);

// One server's log, as the server writes it.
class Log {
 public:
  explicit Log(int party) : owner_{"EXAMPLE.COM", party} {}
  Log& Add(const char* kind, const Fields& fields) {
    text_ += EncodeLine(owner_, kTime + absl::Seconds(head_.seq), kind, MembersOf(fields), &head_);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  Owner owner_;
  Head head_;
  std::string text_;
};

Fields Job(uint64_t id, const char* verdict) {
  return {{"kdc", "kdc1"},       {"session", "5e"}, {"id", id},           {"op", "LOGIN"},
          {"principal", "208b"}, {"digest", "d"},   {"verdict", verdict}, {"detail", "why"}};
}

Log GoodLog(int party) {
  Log log(party);
  log.Add("start", {{"boot", "a"}});
  log.Add("batch", {{"ring", "51"}, {"batch", 1}, {"view", "v"}, {"jobs", {Job(1, "OK")}}});
  log.Add("jobs", {{"jobs", {Job(2, "QUOTA")}}});
  log.Add("counted", {{"kdc", "kdc1"}, {"since", "2027-01-15T08:00:00.000000Z"}, {"count", 7}});
  log.Add("batch", {{"ring", "51"},
                    {"batch", 2},
                    {"view", "v"},
                    {"error", "e"},
                    {"jobs", {Job(3, "UNAVAILABLE")}}});
  log.Add("admin",
          {{"name", "root"}, {"act", "delete"}, {"names", {"\xff", "gr\xc3\xbc\xc3\x9f\n"}}});
  log.Add("stop", Fields());
  return log;
}

FuzzSeeds LineSeeds() {
  FuzzSeeds seeds;
  const std::string text = GoodLog(1).text();
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    seeds.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return seeds;
}

MPCKDC_FUZZ(audit_line, LineSeeds) {
  const absl::string_view text = AsText(in);
  const auto line = ParseLine(text);
  if (!line) return;
  FUZZ_CHECK(line->text == text && text.find('\n') == absl::string_view::npos);
  FUZZ_CHECK(line->hash.size() == kHashDigits && line->prev.size() == kHashDigits);
  // Every part lies in the text, in this order.
  const char* at = text.begin();
  for (const absl::string_view part :
       {line->prev, line->time, line->owner, line->kind, line->hash}) {
    FUZZ_CHECK(part.begin() >= at && part.end() <= text.end());
    at = part.end();
  }
  static_cast<void>(HashHolds(*line));
  static_cast<void>(TimeOf(*line));
  const Fields fields = FieldsOf(*line);
  static_cast<void>(TextField(fields, "kind"));
  static_cast<void>(NumberField(fields, "seq"));
  Timeline timeline;
  if (Timeline::Matters(*line)) timeline.Note(*line, kTime, fields);
  timeline.NoteTime(*line, kTime);
  static_cast<void>(timeline.At(kTime + absl::Seconds(1), absl::Seconds(5)));
  CountedJobs counted;
  counted.Note(*line, kTime, fields);
  static_cast<void>(counted.Take("kdc1", kTime));
}

// kind | 00 | a text: what is written of any bytes is a line, with a hash that holds.
FuzzSeeds MemberSeeds() {
  return {std::string("admin\0alice", 11), std::string("batch\0\xff\"\\\n", 10)};
}

MPCKDC_FUZZ(audit_encode, MemberSeeds) {
  const absl::string_view text = AsText(in);
  const std::string value(text.substr(std::min(text.find('\0'), text.size())));
  Head head;
  const std::string line =
      EncodeLine({value, 2}, kTime, "admin", MembersOf({{"text", value}}), &head);
  const auto read = ParseLine(absl::StripSuffix(line, "\n"));
  FUZZ_CHECK(read.has_value() && HashHolds(*read) && read->hash == head.hash && read->seq == 1);
  FUZZ_CHECK(TimeOf(*read) == kTime && read->kind == "admin");
  FUZZ_CHECK(read->owner == OwnerText({value, 2}));
  FUZZ_CHECK(FieldsOf(*read).is_object());
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
  return seeds;
}

// A file whose bytes change from input to input. In a folder of its own, which
// is searched for further files, and in memory if there is a place.
class Scratch {
 public:
  Scratch() {
    const char* const place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    folder_ = absl::StrCat(place, "/mpckdc-audit-fuzz.XXXXXX");
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    path_ = folder_ + "/log";
  }
  ~Scratch() {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  const std::string& Write(absl::string_view text) {
    FILE* file = std::fopen(path_.c_str(), "wb");
    if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file) != text.size() ||
        std::fclose(file) != 0) {
      std::abort();
    }
    return path_;
  }

 private:
  std::string folder_, path_;
};

// Whatever three logs hold: broken is found or they tell a story; nobody is made to read outside.
MPCKDC_FUZZ(audit_logs, LogSeeds) {
  static std::array<Scratch, 3> scratch;  // its files go when the program ends
  ByteReader reader(in);
  std::array<std::vector<LogFile>, 3> logs;
  for (size_t p = 0; p < 3; ++p) {
    std::string log = reader.Text(reader.Uint(2));
    // For the end of a last line readers wait a while.
    if (!log.empty() && log.back() != '\n') log += '\n';
    const std::string path = scratch[p].Write(log);
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

}  // namespace
}  // namespace mpckdc::audit
