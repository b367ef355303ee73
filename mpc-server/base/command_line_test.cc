// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdio>

namespace mpckdc::command_line {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

enum class Hue { kRed, kGreen };

// A program with two commands, one of which has commands of its own.
struct Program {
  CLI::App app{"paints houses\nFrom the ground up.", "painter"};
  bool json = false, all = false, secret = false;
  std::string config, house;
  std::vector<std::string> files;
  std::vector<int> coats;
  double litres = 0;
  Hue hue = Hue::kRed;

  Program() {
    app.fallthrough()->require_subcommand(1);
    app.set_version_flag("--version", "painter 1");
    AddFlag(app, "--json", "print JSON", &json);
    AddOption(app, "--config", "FILE", "the configuration", ToText(&config));
    CLI::App& paint = *app.add_subcommand("paint", "paint a house\nIt dries by itself.");
    AddOption(paint, "HOUSE", "", "", ToText(&house)).required();
    AddFlag(paint, "--all", "every wall -- see --coats; it is long enough to be wrapped at the "
            "end of a line and .not before", &all);
    AddOption(paint, "--coats", "N,...", "how many", ToList(&coats, [](int* to) {
      return ToNumber(to, 1, 9);
    }));
    AddOption(paint, "--hue", "HUE:{red,green}", "red or green",
              ToChoice<Hue>(&hue, {{"red", Hue::kRed}, {"green", Hue::kGreen}}));
    AddOption(paint, "--litres", "N", "of paint", ToNumber(&litres, 0, 10));
    AddFlag(paint, "--secret", "unseen", &secret).group("");
    CLI::App& log = *app.add_subcommand("log", "what was done")->require_subcommand(1);
    CLI::App& show = *log.add_subcommand("show", "print it");
    AddOperands(show, "FILE", 3, &files).required();
    AddFlag(show, "--all", "every line", &all);
    app.add_subcommand("party", "for tests")->group("");
  }

  std::string Run(const std::vector<std::string>& arguments) {
    absl::StatusOr<std::optional<std::string>> answer = Parse(app, arguments);
    if (!answer.ok()) return absl::StrCat("error: ", answer.status().message());
    return answer->value_or("");
  }
};

std::string Answer(const std::vector<std::string>& arguments) { return Program().Run(arguments); }

TEST(CommandLine, ReadsOptionsAndOperandsInAnyOrder) {
  Program p;
  ASSERT_EQ(p.Run({"--json", "--hue", "green", "paint", "home", "--coats=1,2", "--config", "f",
                   "--litres=0.5", "--secret"}), "");
  EXPECT_EQ(CommandOf(p.app), "paint");
  EXPECT_TRUE(p.json && p.secret && !p.all);
  EXPECT_EQ(p.house, "home");
  EXPECT_THAT(p.coats, ElementsAre(1, 2));
  EXPECT_EQ(p.hue, Hue::kGreen);
  EXPECT_EQ(p.config, "f");
  EXPECT_EQ(p.litres, 0.5);
}

TEST(CommandLine, ReadsCommandsOfCommands) {
  Program p;
  ASSERT_EQ(p.Run({"log", "--all", "show", "a", "--json", "b", "--json"}), "");
  EXPECT_EQ(CommandOf(p.app), "log show");
  EXPECT_THAT(p.files, ElementsAre("a", "b"));
  EXPECT_TRUE(p.json && p.all);
}

// As mpc-admin --config FILE audit verify LOG.
TEST(CommandLine, AnOptionOfTheProgramMayStandBeforeACommandOfACommand) {
  Program before, between;
  EXPECT_EQ(before.Run({"--config", "f", "log", "show", "a"}), "");
  EXPECT_THAT(before.files, ElementsAre("a"));
  EXPECT_EQ(between.Run({"log", "--config", "f", "show", "a"}), "");
  EXPECT_EQ(between.config, "f");
}

TEST(CommandLine, OperandsInBracketsAndPlusesAreOperands) {
  Program brackets, pluses;
  EXPECT_EQ(brackets.Run({"log", "show", "[a]"}), "");
  EXPECT_THAT(brackets.files, ElementsAre("[a]"));
  EXPECT_EQ(pluses.Run({"paint", "++"}), "");
  EXPECT_EQ(pluses.house, "++");
}

TEST(CommandLine, OperandsMayLookLikeOptionsAndCommands) {
  Program after, command, again, negative;
  EXPECT_EQ(after.Run({"paint", "--", "-odd"}), "");
  EXPECT_EQ(after.house, "-odd");
  EXPECT_EQ(command.Run({"paint", "log"}), "");
  EXPECT_EQ(command.house, "log");
  EXPECT_EQ(again.Run({"paint", "x", "--hue=green", "--hue=red", "--config=a", "--config=b"}), "");
  EXPECT_EQ(again.hue, Hue::kRed);
  EXPECT_EQ(again.config, "b");
  EXPECT_THAT(negative.Run({"paint", "x", "--litres", "-1"}), HasSubstr("\"-1\" is not a number"));
}

TEST(CommandLine, ErrorsNameWhatIsWrongAndTheNearest) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "no command given; there are paint, log"},
      {{"log"}, "log: no command given; there are show"},
      {{"pant"}, "unknown command \"pant\"; did you mean paint?"},
      {{"frobnicate", "x"}, "unknown command \"frobnicate\""},
      {{"log", "shw"}, "log: unknown command \"shw\"; did you mean show?"},
      {{"paint", "x", "--coat"}, "unknown option --coat; did you mean --coats?"},
      {{"paint", "x", "--jsn=1"}, "unknown option --jsn; did you mean --json?"},
      {{"paint", "x", "--frobnicate"}, "unknown option --frobnicate"},
      {{"paint", "-x"}, "unknown option -x"},
      {{"log", "show", "f", "--coats=1"}, "log show has no option --coats"},
      {{"paint"}, "paint: name a HOUSE"},
      {{"paint", "x", "y"}, "paint: one argument too many: \"y\""},
      {{"log", "show", "1", "2", "3", "4"}, "FILE: \"4\" is not one of at most 3"},
      {{"paint", "x", "--coats"}, "--coats needs a value: --coats N,..."},
      {{"paint", "--config=", "x"}, "--config: empty"},
      {{"paint", "--config", "", "x"}, "--config: empty"},
      {{"paint", "x", "--json=yes"}, "--json takes no value"},
      {{"paint", "x", "--json="}, "--json takes no value"},
      {{"paint", "x", "--coats=1,10"}, "--coats: \"10\" is not a number from 1 to 9"},
      {{"paint", "x", "--coats="}, "--coats: empty"},
      {{"paint", "x", "--litres=nan"}, "--litres: \"nan\" is not a number from 0 to 10"},
      {{"paint", "x", "--hue=blue"}, "--hue: \"blue\" is not one of red, green"},
  };
  for (const auto& [arguments, why] : cases) EXPECT_EQ(Answer(arguments), "error: " + why);
}

TEST(CommandLine, HelpsAndTellsItsVersion) {
  EXPECT_EQ(Answer({"--version"}), "painter 1\n");
  EXPECT_THAT(Answer({"--help"}),
              AllOf(HasSubstr("usage: painter COMMAND [OPTION]...\n\npaints houses\n\nFrom the"),
                    HasSubstr("\n  paint HOUSE  paint a house\n"), HasSubstr("--config FILE  the"),
                    Not(HasSubstr("--coats")), Not(HasSubstr("party"))));
  const std::string paint = Answer({"paint", "-h"});
  EXPECT_THAT(paint, AllOf(HasSubstr("usage: painter paint HOUSE [OPTION]"),
                           HasSubstr("paint a house\n\nIt dries"), HasSubstr("--hue HUE  "),
                           HasSubstr("Options of every command:\n  -h, --help"),
                           Not(HasSubstr("--secret"))));
  for (absl::string_view line : absl::StrSplit(paint, '\n')) EXPECT_LE(line.size(), 79u) << line;
  EXPECT_EQ(Answer({"help", "paint"}), paint);
  EXPECT_EQ(Answer({"paint", "x", "--help"}), paint);
  EXPECT_EQ(Answer({"help"}), Answer({"-h"}));
  EXPECT_THAT(Answer({"log", "show", "--help"}), HasSubstr("painter log show FILE..."));
}

TEST(CommandLine, ListsOptionsForTheManualPage) {
  const std::string text = Answer({"--man-options"});
  EXPECT_THAT(text, AllOf(HasSubstr(".TP\n\\fB\\-\\-config\\fR \\fIFILE\\fR\nthe configuration\n"),
                          HasSubstr(".TP\n\\fB\\-\\-hue\\fR \\fIHUE\\fR (paint)\nred or green\n"),
                          HasSubstr("\\fB\\-\\-all\\fR (paint)\nevery wall"),
                          HasSubstr("\\fB\\-\\-all\\fR (log show)\nevery line"),
                          HasSubstr("see \\fB\\-\\-coats\\fR; it"), Not(HasSubstr("secret"))));
}

// What bash offers for the last of `words` under the printed script.
std::string Completed(const std::string& words, int count) {
  const std::string script = absl::StrCat(
      Answer({"--completion"}), "COMP_WORDS=(", words, "); COMP_CWORD=", count - 1,
      "; _painter; echo \"${COMPREPLY[*]}\"\n");
  const std::string file = testing::TempDir() + "/completion.bash";
  std::FILE* out = std::fopen(file.c_str(), "w");
  std::fputs(script.c_str(), out);
  std::fclose(out);
  std::FILE* pipe = popen(("bash " + file + " 2>&1").c_str(), "r");
  char line[1024] = "";
  const bool read = std::fgets(line, sizeof line, pipe) != nullptr;
  pclose(pipe);
  return read ? line : "";
}

TEST(CommandLine, CompletesInBash) {
  EXPECT_EQ(Completed("painter ''", 2), "paint log\n");
  EXPECT_EQ(Completed("painter --json p", 3), "paint\n");
  EXPECT_EQ(Completed("painter --config log pa", 4), "paint\n");
  EXPECT_EQ(Completed("painter paint --c", 3), "--coats --config\n");
  EXPECT_EQ(Completed("painter paint --hue ''", 4), "red green\n");
  EXPECT_EQ(Completed("painter paint --hue = g", 5), "green\n");
  EXPECT_EQ(Completed("painter log ''", 3), "show\n");
  EXPECT_EQ(Completed("painter log show --a", 4), "--all\n");
  EXPECT_EQ(Completed("painter log show /etc/passw", 4).substr(0, 11), "/etc/passwd");
  EXPECT_EQ(Completed("painter --config /etc/passw", 3).substr(0, 11), "/etc/passwd");
}

}  // namespace
}  // namespace mpckdc::command_line
