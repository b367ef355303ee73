// SPDX-License-Identifier: Apache-2.0
//
// What the chain finds: every byte changed, every line removed, doubled or moved. And what it
// cannot find, which the document says as loudly.
#include "mpc-server/audit/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "mpc-server/testing/audit_log.h"

namespace mpckdc::audit {
namespace {

std::string LineOf(const Owner& owner, absl::Time time, absl::string_view kind,
                   const Fields& fields, Head* head) {
  return EncodeLine(owner, time, kind, MembersOf(fields), head);
}

using ::testing::HasSubstr;

constexpr int kLines = 7;

class ChainTest : public ::testing::Test {
 protected:
  ChainTest() {
    Head head;
    for (int i = 0; i < kLines; ++i) {
      const Fields fields = {{"n", i}, {"text", absl::StrCat("line ", i, " \"quoted\"\n")}};
      lines_.push_back(LineOf({"EXAMPLE.COM", 1}, clock_.Now() + absl::Seconds(i), "batch",
                                  fields, &head));
    }
    head_ = head;
  }
  Verification Check(const std::vector<std::string>& lines, const std::string& head = "") {
    WriteFileForTest(file_, absl::StrJoin(lines, ""));
    return VerifyPaths({file_}, head);
  }

  // The one break that there must be.
  Break Only(const std::vector<std::string>& lines) {
    const Verification result = Check(lines);
    EXPECT_EQ(result.break_count, 1u);
    return result.breaks.empty() ? Break() : result.breaks[0];
  }

  TestFolder folder_;
  HandClock clock_;
  std::string file_ = folder_.File("audit.log");
  std::vector<std::string> lines_;
  Head head_;
};

TEST_F(ChainTest, AnUntouchedLogIsIntact) {
  const Verification result = Check(lines_);
  EXPECT_TRUE(result.intact());
  EXPECT_EQ(result.first, 1u);
  EXPECT_EQ(result.head, head_);
  EXPECT_EQ(result.lines, static_cast<uint64_t>(kLines));
  EXPECT_EQ(result.owner, "\"realm\":\"EXAMPLE.COM\",\"party\":1");
}

TEST_F(ChainTest, TheHashIsThatOfTheBytesBeforeIt) {
  // As doc/audit_log_format.md tells an administrator with sha256sum.
  const std::string& line = lines_[0];
  const std::string body = line.substr(0, line.find(",\"hash\""));
  EXPECT_THAT(line, HasSubstr(absl::StrCat(",\"hash\":\"", HashText(body), "\"}\n")));
  EXPECT_THAT(lines_[1], HasSubstr(absl::StrCat("\"prev\":\"", HashText(body), "\"")));
  EXPECT_THAT(line, HasSubstr(absl::StrCat("\"prev\":\"", std::string(64, '0'), "\"")));
}

// A server that was upgraded goes on in the same file.
TEST_F(ChainTest, LinesOfFormat2AreReadAndVerified) {
  const Owner owner{"EXAMPLE.COM", 0};
  Head head;
  std::vector<std::string> lines;
  for (int i = 0; i < 3; ++i) lines.push_back(EncodeLine(owner, absl::UnixEpoch(), "x", {}, &head));
  EXPECT_TRUE(Check(lines).intact());
  // The first as the version before wrote it, and the others after it.
  const auto of_version = [](std::string line, int version) {
    line[5] = static_cast<char>('0' + version);
    line.resize(line.rfind(",\"hash\":"));
    return absl::StrCat(line, ",\"hash\":\"", HashText(line), "\"}\n");
  };
  for (const int version : {2, 1, 4}) {
    std::vector<std::string> mixed = {of_version(lines[0], version)};
    const std::string text = mixed[0].substr(0, mixed[0].size() - 1);  // the line points into it
    const std::optional<Line> first = ParseLine(text);
    ASSERT_EQ(first.has_value(), version == 2) << version;
    if (!first) continue;
    EXPECT_EQ(first->version, 2u);
    Head next{1, std::string(first->hash)};
    mixed.push_back(EncodeLine(owner, absl::UnixEpoch(), "x", {}, &next));
    EXPECT_TRUE(Check(mixed).intact());
  }
}

TEST_F(ChainTest, TheDocumentsExampleIsALog) {
  std::vector<std::string> lines;
  for (const std::string& line : SplitLines(ReadFileForTest(MPCKDC_AUDIT_DOCUMENT))) {
    if (line.rfind("    {", 0) == 0) lines.push_back(line.substr(4));
  }
  EXPECT_EQ(lines.size(), 4u);
  EXPECT_TRUE(Check(lines).intact());
}

TEST_F(ChainTest, EveryChangedByteIsFoundInItsLine) {
  for (size_t at = 0; at < lines_.size(); ++at) {
    for (size_t byte = 0; byte + 1 < lines_[at].size(); ++byte) {
      std::vector<std::string> lines = lines_;
      lines[at][byte] ^= 1;
      const Verification result = Check(lines);
      ASSERT_FALSE(result.intact()) << "line " << at << ", byte " << byte;
      // A changed last line may look like an unfinished one; it is named all the same.
      EXPECT_EQ(result.breaks[0].line, at + 1) << "byte " << byte << ": " << result.breaks[0].text;
    }
  }
}

TEST_F(ChainTest, EveryRemovedLineButTheLastIsFound) {
  for (size_t at = 0; at < lines_.size(); ++at) {
    std::vector<std::string> lines = lines_;
    lines.erase(lines.begin() + static_cast<ptrdiff_t>(at));
    const Verification result = Check(lines);
    if (at == 0) {
      EXPECT_EQ(result.first, 2u) << "the output says that line 1 is not there";
    } else if (at + 1 == lines_.size()) {
      EXPECT_TRUE(result.intact()) << "nothing in the file can tell";
      EXPECT_FALSE(Check(lines, head_.hash).known_head_found) << "a head noted elsewhere can";
    } else {
      ASSERT_EQ(result.break_count, 1u);
      EXPECT_EQ(result.breaks[0].kind, BreakKind::kMissing);
      EXPECT_EQ(result.breaks[0].text, absl::StrCat("line ", at + 1, " is missing"));
    }
  }
}

TEST_F(ChainTest, SeveralRemovedLinesAreNamed) {
  std::vector<std::string> lines = lines_;
  lines.erase(lines.begin() + 2, lines.begin() + 5);
  EXPECT_EQ(Check(lines).breaks.at(0).text, "lines 3 to 5 are missing");
}

TEST_F(ChainTest, EveryDoubledOrMovedLineIsFound) {
  for (size_t at = 0; at < lines_.size(); ++at) {
    std::vector<std::string> lines = lines_;
    lines.insert(lines.begin() + static_cast<ptrdiff_t>(at), lines_[at]);
    const Break found = Only(lines);
    EXPECT_EQ(found.kind, BreakKind::kOutOfOrder) << at;
    EXPECT_THAT(found.text, HasSubstr("is the same"));
    if (at == 0) continue;
    lines = lines_;
    std::swap(lines[at - 1], lines[at]);
    EXPECT_FALSE(Check(lines).intact()) << at;
  }
}

TEST_F(ChainTest, ALineWithANewHashBreaksTheNext) {
  Head head{3, std::string(lines_[2].substr(lines_[2].size() - 67, 64))};
  std::vector<std::string> lines = lines_;
  lines[3] = LineOf({"EXAMPLE.COM", 1}, clock_.Now(), "batch", {{"n", "rewritten"}}, &head);
  const Break found = Only(lines);
  EXPECT_EQ(found.kind, BreakKind::kAltered);
  EXPECT_EQ(found.line, 5u);
  EXPECT_THAT(found.text, HasSubstr("line 5 does not follow from line 4"));
}

TEST_F(ChainTest, AnInsertedLineIsFound) {
  std::vector<std::string> lines = lines_;
  lines.insert(lines.begin() + 2, "{\"kind\":\"nothing to see\"}\n");
  EXPECT_EQ(Only(lines).line, 3u);
}

TEST_F(ChainTest, AnotherServersLineIsForeign) {
  Head head = head_;
  std::vector<std::string> lines = lines_;
  lines.push_back(LineOf({"EXAMPLE.COM", 2}, clock_.Now(), "stop", {}, &head));
  EXPECT_EQ(Check(lines).breaks.at(0).kind, BreakKind::kForeign);
}

// The control: whoever may write the file can make a new chain from some line on. Verify cannot
// know; the other servers' logs and a head noted elsewhere do.
TEST_F(ChainTest, ARewrittenEndIsIntactAndHasAnotherHead) {
  Head head{3, std::string(lines_[2].substr(lines_[2].size() - 67, 64))};
  std::vector<std::string> lines(lines_.begin(), lines_.begin() + 3);
  for (int i = 3; i < kLines; ++i) {
    lines.push_back(LineOf({"EXAMPLE.COM", 1}, clock_.Now(), "batch", {{"n", 0}}, &head));
  }
  const Verification result = Check(lines, head_.hash);
  EXPECT_TRUE(result.intact());
  EXPECT_FALSE(result.known_head_found);
}

// ---- Unfinished lines ----

TEST_F(ChainTest, ATornEndIsCalledTorn) {
  std::vector<std::string> lines = lines_;
  lines.back().resize(lines.back().size() / 2);
  const Break found = Only(lines);
  EXPECT_EQ(found.kind, BreakKind::kTorn);
  EXPECT_EQ(found.line, static_cast<uint64_t>(kLines));
}

TEST_F(ChainTest, ATornLineCountsOnlyAsTheNextLineNamesIt) {
  const std::string torn = "{\"v\":2,\"seq\":8,\"pr";
  Head head = head_;
  const Fields names = {{"torn", {{"bytes", torn.size()}, {"sha256", HashText(torn)}}}};
  std::vector<std::string> lines = lines_;
  lines.push_back(torn + "\n");
  lines.push_back(LineOf({"EXAMPLE.COM", 1}, clock_.Now(), "start", names, &head));
  EXPECT_TRUE(Check(lines).intact());

  std::vector<std::string> changed = lines;
  changed[kLines][3] ^= 1;
  EXPECT_EQ(Check(changed).breaks.at(0).line, static_cast<uint64_t>(kLines) + 1);
  std::vector<std::string> removed = lines;
  removed.erase(removed.begin() + kLines);
  EXPECT_EQ(Check(removed).breaks.at(0).kind, BreakKind::kAltered);
  std::vector<std::string> unnamed = lines_;
  unnamed.insert(unnamed.begin() + 3, torn + "\n");
  EXPECT_EQ(Check(unnamed).breaks.at(0).kind, BreakKind::kAltered);
}

// ---- Files ----

TEST_F(ChainTest, FilesAreTakenInTheChainsOrder) {
  WriteFileForTest(folder_.File("x"), absl::StrJoin(lines_.begin(), lines_.begin() + 2, ""));
  WriteFileForTest(folder_.File("b"), absl::StrJoin(lines_.begin() + 2, lines_.begin() + 4, ""));
  WriteFileForTest(folder_.File("a"), absl::StrJoin(lines_.begin() + 4, lines_.end(), ""));
  WriteFileForTest(folder_.File("other"), "not an audit log\n");
  EXPECT_TRUE(VerifyPaths({folder_.File("a"), folder_.File("x"), folder_.File("b")}).intact());
  EXPECT_TRUE(VerifyPaths({folder_.path()}).intact());
  EXPECT_TRUE(VerifyPaths({folder_.path(), folder_.File("b")}).intact()) << "named twice is once";
  const Verification without = VerifyPaths({folder_.File("a"), folder_.File("x")});
  EXPECT_EQ(without.breaks.at(0).text, "lines 3 to 4 are missing");
}

TEST_F(ChainTest, WhatIsNoLogIsRefusedWithTheReason) {
  const auto error = [&](const std::string& text) {
    WriteFileForTest(folder_.File("audit.log.1.gz"), text);
    return std::string(FindFiles({folder_.File("audit.log.1.gz")}).status().message());
  };
  EXPECT_THAT(error("\x1f\x8b\x08"), HasSubstr("unpack it first"));
  EXPECT_THAT(error("{\"v\":1,\"seq\":1}\n"), HasSubstr("format 1"));
  EXPECT_THAT(error("May 1 00:00:00 kdc\n"), HasSubstr("is no audit log"));
  EXPECT_THAT(error(""), HasSubstr("is empty"));
  EXPECT_TRUE(absl::IsInvalidArgument(FindFiles({folder_.File("nowhere")}).status()));
  EXPECT_FALSE(FindFiles({folder_.path()}).ok());
}

// Else the rest of the line would be its owner.
TEST_F(ChainTest, ALineWithoutAnOwnerIsNone) {
  const std::string hash(kHashDigits, '0');
  const auto line = [&](const std::string& owner) {
    return absl::StrCat("{\"v\":3,\"seq\":1,\"prev\":\"", hash, "\",\"time\":\"t\"", owner,
                        ",\"kind\":\"a\",\"hash\":\"", hash, "\"}");
  };
  EXPECT_FALSE(ParseLine(line("")).has_value());
  const std::string owned = line(",\"realm\":\"R\",\"party\":1");
  ASSERT_TRUE(ParseLine(owned).has_value());
  EXPECT_EQ(ParseLine(owned)->owner, OwnerText({"R", 1}));
}

// A server that lies may write a line that would fill the stack of who reads it.
TEST_F(ChainTest, FieldsThatAreNestedWithoutEndAreNone) {
  const auto fields_of = [](size_t depth) {
    const Members nested{"\"suspects\":" + std::string(depth, '[') + "\"]\\\"]\"" +
                         std::string(depth, ']')};
    Head head;
    const std::string line = EncodeLine({"EXAMPLE.COM", 0}, absl::UnixEpoch(), "deviation", nested,
                                        &head);
    const auto parsed = ParseLine(absl::StripSuffix(line, "\n"));
    return parsed ? FieldsOf(*parsed) : Fields();
  };
  EXPECT_EQ(fields_of(30)["suspects"].dump(), std::string(30, '[') + "\"]\\\"]\"" +
                                                  std::string(30, ']'));
  EXPECT_TRUE(fields_of(33).is_discarded());
  EXPECT_TRUE(fields_of(2'000'000).is_discarded());
}

TEST_F(ChainTest, ALongLineIsReadWhole) {
  Head head = head_;
  std::vector<std::string> lines = lines_;
  lines.push_back(LineOf({"EXAMPLE.COM", 1}, clock_.Now(), "batch",
                             {{"jobs", std::string(5 << 20, 'x')}}, &head));
  lines.push_back(LineOf({"EXAMPLE.COM", 1}, clock_.Now(), "stop", {}, &head));
  EXPECT_TRUE(Check(lines).intact());
}

}  // namespace
}  // namespace mpckdc::audit
