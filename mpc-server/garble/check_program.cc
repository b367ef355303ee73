// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/check_program.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace mpckdc::garble {
namespace {

BitProgram Record(size_t bits, size_t gated) {
  BitRecorder recorder;
  std::vector<Bit> equal, outputs;
  for (size_t i = 0; i < bits; ++i) {
    equal.push_back(recorder.Not(recorder.Xor(recorder.Input(i), recorder.Input(bits + i))));
  }
  while (equal.size() > 1) {
    std::vector<Bit> half;
    for (size_t i = 0; i + 1 < equal.size(); i += 2) {
      half.push_back(recorder.And(equal[i], equal[i + 1]));
    }
    if (equal.size() % 2 != 0) half.push_back(equal.back());
    equal = std::move(half);
  }
  outputs.push_back(equal[0]);
  for (size_t i = 0; i < gated; ++i) {
    outputs.push_back(recorder.And(recorder.Input(2 * bits + i), equal[0]));
  }
  return recorder.Finish(outputs);
}

struct Tapes {
  absl::Mutex mu;
  absl::flat_hash_map<std::pair<size_t, size_t>, std::unique_ptr<Tape>> by_size ABSL_GUARDED_BY(mu);
};

}  // namespace

const Tape& CheckTape(size_t bits, size_t gated) {
  static auto& tapes = *new Tapes;
  absl::MutexLock lock(&tapes.mu);
  std::unique_ptr<Tape>& tape = tapes.by_size[{bits, gated}];
  if (tape == nullptr) tape = std::make_unique<Tape>(Record(bits, gated));
  return *tape;
}

}  // namespace mpckdc::garble
