// SPDX-License-Identifier: Apache-2.0
//
//   fuzz_replay CORPUS...    each: a folder of NAME.corpus, one for each fuzz target, or files of
//   any
//                            bytes after --target=NAME (a reproducer)
//
// Runs each target's seeds and what is kept of its corpus, without any fuzzer: what was found once
// stays found. A corpus is text, one input a line, in hexadecimal.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc {
namespace {

// What runs, for whoever reads why it ended.
const char* target_now = "";
char input_now[200];

void OnCrash(int) {
  const auto say = [](const char* text) {
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(1);
  };
  say("target ");
  say(target_now);
  say(", input ");
  say(input_now);
  say("\n");
  _exit(1);
}

void Run(const FuzzTarget& target, absl::string_view input, const std::string& what) {
  target_now = target.name;
  std::snprintf(input_now, sizeof(input_now), "%s", what.c_str());
  const std::vector<uint8_t> exact(input.begin(),
                                   input.end());  // so that a reader past the end is seen
  target.run(exact);
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

size_t RunCorpus(const FuzzTarget& target, const std::filesystem::path& file) {
  std::ifstream in(file);
  size_t lines = 0;
  for (std::string line; std::getline(in, line);) {
    ++lines;
    if (line.size() % 2 != 0 || !std::all_of(line.begin(), line.end(), absl::ascii_isxdigit)) {
      std::fprintf(stderr, "%s:%zu: not hexadecimal\n", file.c_str(), lines);
      std::exit(1);
    }
    Run(target, absl::HexStringToBytes(line), file.string() + ":" + std::to_string(lines));
  }
  return lines;
}

const FuzzTarget& Named(absl::string_view name) {
  for (const FuzzTarget& target : FuzzTargets()) {
    if (name == target.name) return target;
  }
  std::fprintf(stderr, "no such target: %s\n", std::string(name).c_str());
  std::exit(2);
}

// Files of targets that this program has not are an error too: a target that is gone would leave
// them.
size_t RunFolder(const std::filesystem::path& folder) {
  size_t inputs = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".corpus") continue;
    inputs += RunCorpus(Named(file.path().stem().string()), file.path());
  }
  return inputs;
}

int Main(int argc, char** argv) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(signal, OnCrash);
  const FuzzTarget* only = nullptr;
  size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--target=")) {
      only = &Named(argument);
    } else if (only != nullptr) {
      Run(*only, ReadFile(argv[i]), argv[i]);
      ++inputs;
    } else {
      inputs += RunFolder(argv[i]);
    }
  }
  if (only == nullptr) {
    for (const FuzzTarget& target : FuzzTargets()) {
      size_t number = 0;
      for (const std::string& seed : target.seeds()) {
        Run(target, seed, "seed " + std::to_string(number++));
        ++inputs;
      }
    }
  }
  std::printf("%zu targets, %zu inputs\n", FuzzTargets().size(), inputs);
  return inputs > 0 ? 0 : 1;
}

}  // namespace
}  // namespace mpckdc

int main(int argc, char** argv) { return mpckdc::Main(argc, argv); }
