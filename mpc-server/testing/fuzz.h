// SPDX-License-Identifier: Apache-2.0
//
// Fuzz targets: a function of any bytes that must come back, and the inputs from which it sets out.
// A target lies beside what it tries (store/record_codec_fuzz.cc):
//
//     MPCKDC_FUZZ(key_record, Seeds) { ... in ... }
//
// Seeds() returns what the encoders write, so they are of the formats of today and nobody keeps
// them. What was found beyond them is kept in integration-tests/fuzz/corpus, one file per target.
//
//   -DMPCKDC_FUZZ=ON   each *_fuzz.cc is a program of clang's libFuzzer with sanitizers;
//   `--target=` says
//                      which of its targets, `--write-seeds=FOLDER` writes that one's seeds
//   otherwise          all are in one ordinary test that runs the seeds and what is kept
//   (cmake/fuzz.cmake)
#ifndef MPC_SERVER_TESTING_FUZZ_H_
#define MPC_SERVER_TESTING_FUZZ_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace mpckdc {

using FuzzSeeds = std::vector<std::string>;

struct FuzzTarget {
  const char* name;
  void (*run)(absl::Span<const uint8_t> in);
  FuzzSeeds (*seeds)();
};

// All of this program.
inline std::vector<FuzzTarget>& FuzzTargets() {
  static auto* const targets = new std::vector<FuzzTarget>;
  return *targets;
}

inline bool AddFuzzTarget(const FuzzTarget& target) {
  FuzzTargets().push_back(target);
  return true;
}

}  // namespace mpckdc

// Inside of mpckdc and an unnamed namespace.
#define MPCKDC_FUZZ(name, seeds)                                                             \
  void Fuzz_##name(absl::Span<const uint8_t> in);                                            \
  [[maybe_unused]] const bool added_##name = AddFuzzTarget({#name, &Fuzz_##name, &(seeds)}); \
  void Fuzz_##name(absl::Span<const uint8_t> in)

// What must hold of any input. Not assert(): it says what, and a reproducer is kept.
#define FUZZ_CHECK(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

#endif  // MPC_SERVER_TESTING_FUZZ_H_
