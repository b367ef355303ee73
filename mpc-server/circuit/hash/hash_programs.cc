// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/hash/hash_programs.h"

#include <mutex>

#include "mpc-server/circuit/hash/word_recorder.h"
#include "mpc-server/key/hash_template.h"

namespace mpckdc {
namespace {

template <size_t N>
class CompressionRecorder {
 public:
  using Words = WordRecorder<N>;
  using Word = typename Words::Word;
  using Template = HashTemplate<Words>;

  CompressionRecorder(HashKind hash, MessageKind message, Adder adder)
      : hash_(hash), message_(message), words_(bits_, adder), schedule_(HashSteps(hash)) {}

  BitProgram Record() {
    Template compression(hash_, words_);
    std::vector<Word> state(HashStateWords(hash_)), v(state.size());
    for (size_t i = 0; i < state.size(); ++i) state[i] = InputWord(i * N);
    if (message_ == MessageKind::kShared) {
      for (size_t i = 0; i < 16; ++i) schedule_[i] = InputWord(StateRows(hash_) + i * N);
      compression.Expand(absl::MakeSpan(schedule_));
    }
    compression.Compress(absl::MakeSpan(state), absl::MakeSpan(v),
                         [this](size_t t) { return Kw(t); });
    std::vector<Bit> rows(state.size() * N);
    for (size_t i = 0; i < state.size(); ++i) {
      for (size_t b = 0; b < N; ++b) rows[RowOf(i * N, b)] = state[i].bits[b];
    }
    return bits_.Finish(rows);
  }

 private:
  static size_t RowOf(size_t row, size_t bit) { return row + 8 * (N / 8 - 1 - bit / 8) + bit % 8; }
  Word InputWord(size_t row) {
    Word w;
    for (size_t b = 0; b < N; ++b) w.bits[b] = bits_.Input(RowOf(row, b));
    return w;
  }
  typename Template::Words Kw(size_t t) {
    if (message_ == MessageKind::kShared) {
      return {schedule_[t], words_.Constant(HashConstant(hash_, t))};
    }
    Word w;
    for (size_t b = 0; b < N; ++b) w.bits[b] = bits_.Public(RowOf(t * N, b));
    return {w};
  }

  const HashKind hash_;
  const MessageKind message_;
  BitRecorder bits_;
  Words words_;
  std::vector<Word> schedule_;
};

BitProgram Record(HashKind hash, MessageKind message, Adder adder) {
  if (HashWordBits(hash) == 64) return CompressionRecorder<64>(hash, message, adder).Record();
  return CompressionRecorder<32>(hash, message, adder).Record();
}

}  // namespace

const BitProgram& HashProgram(HashKind hash, MessageKind message, Adder adder) {
  struct Kept {
    std::once_flag once;
    BitProgram program;
  };
  static Kept kept[3][2][3];
  Kept& k =
      kept[static_cast<size_t>(hash)][static_cast<size_t>(message)][static_cast<size_t>(adder)];
  std::call_once(k.once, [&] { k.program = Record(hash, message, adder); });
  if (adder != Adder::kFewestRounds) return k.program;
  // In SHA-2 the second addition does not lie on the critical path: it would save no round.
  const BitProgram& prefix = HashProgram(hash, message, Adder::kPrefix);
  return k.program.rounds() < prefix.rounds() ? k.program : prefix;
}

}  // namespace mpckdc
