// SPDX-License-Identifier: Apache-2.0
// For developers: AND gates per second, of the gates alone and of programs, on one thread.
// Argument: only lines that contain it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "mpc-server/garble/aes_rounds.h"
#include "mpc-server/garble/hash_tape.h"
#include "mpc-server/garble/program_run.h"

namespace mpckdc::garble {
namespace {

const char* only = "";

// The least of many calls: others may use the machine too.
double Seconds(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  double least = 1e18;
  const auto begin = Clock::now();
  for (auto start = begin; start - begin < std::chrono::milliseconds(150);) {
    work();
    const auto end = Clock::now();
    least = std::min(least, std::chrono::duration<double>(end - start).count());
    start = end;
  }
  return least;
}

void Print(const char* isa, const char* what, size_t lanes, const char* side, size_t gates,
           const std::function<void()>& work) {
  char line[100];
  std::snprintf(line, sizeof(line), "%-9s %-22s %2zu lanes  %-9s", isa, what, lanes, side);
  if (std::strstr(line, only) == nullptr) return;
  const double seconds = Seconds(work);
  const auto all = static_cast<double>(gates * lanes);
  std::printf("%s %7.1f million gates/s  %6.2f ns a gate\n", line, all / seconds * 1e-6,
              seconds / all * 1e9);
}

std::vector<Label> Draw(std::mt19937_64& random, size_t count) {
  std::vector<Label> labels(count);
  for (Label& l : labels) l = {random(), random()};
  return labels;
}

void Gates(const char* name, const HalfGateFunctions& f, size_t lanes) {
  constexpr size_t kGates = 256;
  std::mt19937_64 random(1);
  const std::vector<Label> delta = Draw(random, lanes), a = Draw(random, kGates * lanes),
                           b = Draw(random, kGates * lanes);
  std::vector<Label> rows(kAndRows * a.size()), c(a.size());
  const GateRange range = {{random(), random()}, 0, kGates, lanes};
  Print(name, "gates", lanes, "garble", kGates,
        [&] { f.garble(range, delta.data(), a.data(), b.data(), rows.data(), c.data()); });
  Print(name, "gates", lanes, "evaluate", kGates,
        [&] { f.evaluate(range, a.data(), b.data(), rows.data(), c.data()); });
}

// Rows that nobody reads, and that come from nowhere.
class Nowhere : public RowSink, public RowSource {
 public:
  Label* Take(size_t labels) override { return Room(labels); }
  const Label* Next(size_t labels) override { return Room(labels); }

 private:
  Label* Room(size_t labels) {
    if (rows_.size() < labels) rows_.resize(labels);
    return rows_.data();
  }
  std::vector<Label> rows_;
};

void Program(const char* what, const Tape& tape, size_t copies, size_t rows, size_t lanes) {
  std::mt19937_64 random(2);
  const std::vector<Label> inputs = Draw(random, rows * lanes), delta = Draw(random, lanes);
  std::vector<Label> outputs(tape.outputs().size() * copies * lanes);
  const std::vector<uint8_t> publics(80 * 64 * lanes);
  Nowhere nowhere;
  GateCounter counter({random(), random()});
  Garbler garbler(counter, delta, nowhere);
  Evaluator evaluator(counter, lanes, nowhere);
  const size_t gates = std::max<size_t>(1, tape.gates() * copies);
  const char* isa = IsaName(BestIsa()).data();
  const auto run = [&](ProgramRun& side) {
    side.Begin(tape, copies, {inputs}, copies == 1 ? publics : std::vector<uint8_t>());
    while (!side.Done()) side.RunUnit(outputs.data());
  };
  Print(isa, what, lanes, "garble", gates, [&] { run(garbler); });
  Print(isa, what, lanes, "evaluate", gates, [&] { run(evaluator); });
}

void All() {
  for (const auto& variant : AllHalfGates().supported()) {
    for (const size_t lanes : {1, 4, 16}) Gates(variant.name, variant.functions, lanes);
  }
  for (const size_t lanes : {1, 4, 16}) {
    Program("S-boxes", SboxTape(true), kSboxCopies, 128, lanes);
    Program("MixColumns", MixTape(true), kMixCopies, 256, lanes);
    Program("SHA-1, public block", HashTape(HashKind::kSha1, MessageKind::kPublic), 1, 256 + 512,
            lanes);
    Program("SHA-384, shared block", HashTape(HashKind::kSha384, MessageKind::kShared), 1,
            1024 + 1024, lanes);
  }
}

}  // namespace
}  // namespace mpckdc::garble

int main(int argc, char** argv) {
  if (argc > 1) mpckdc::garble::only = argv[1];
  mpckdc::garble::All();
}
