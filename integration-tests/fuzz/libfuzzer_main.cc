// SPDX-License-Identifier: Apache-2.0
//
// The entry points of libFuzzer, in each of its programs.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "mpc-server/testing/fuzz.h"

namespace {

const mpckdc::FuzzTarget* chosen;

// Behind `--NAME=` of an argument, or null. libFuzzer leaves such arguments alone.
const char* ValueOf(const char* argument, const char* name) {
  const size_t size = std::strlen(name);
  return std::strncmp(argument, name, size) == 0 ? argument + size : nullptr;
}

void Choose(const char* name) {
  chosen = nullptr;
  for (const mpckdc::FuzzTarget& target : mpckdc::FuzzTargets()) {
    if (name == nullptr || std::strcmp(target.name, name) == 0) chosen = &target;
  }
  if (chosen != nullptr && (name != nullptr || mpckdc::FuzzTargets().size() == 1)) return;
  for (const mpckdc::FuzzTarget& target : mpckdc::FuzzTargets()) {
    std::fprintf(stderr, "--target=%s\n", target.name);
  }
  std::exit(2);
}

void WriteSeeds(const std::string& folder) {
  size_t number = 0;
  for (const std::string& seed : chosen->seeds()) {
    const std::string path = folder + "/seed-" + std::to_string(number++);
    std::ofstream out(path, std::ios::binary);
    out << seed;
    if (!out.flush()) {
      std::perror(path.c_str());
      std::exit(1);
    }
  }
}

// Unless an argument says where: an input that crashes goes to the system's folder for such files, not to
// where somebody happens to be.
void KeepCrashesAway(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i) {
    if (ValueOf((*argv)[i], "-artifact_prefix=") != nullptr) return;
  }
  static auto* const prefix = new std::string(
      "-artifact_prefix=" + std::filesystem::temp_directory_path().string() + "/fuzz-");
  static auto* const arguments = new std::vector<char*>(*argv, *argv + *argc);
  arguments->insert(arguments->begin() + 1, prefix->data());
  *argc = static_cast<int>(arguments->size());
  arguments->push_back(nullptr);
  *argv = arguments->data();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  KeepCrashesAway(argc, argv);
  const char *name = nullptr, *folder = nullptr;
  for (int i = 1; i < *argc; ++i) {
    if (const char* value = ValueOf((*argv)[i], "--target=")) name = value;
    if (const char* value = ValueOf((*argv)[i], "--write-seeds=")) folder = value;
  }
  Choose(name);
  if (folder == nullptr) return 0;
  WriteSeeds(folder);
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen->run(absl::MakeConstSpan(data, size));
  return 0;
}
