// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/program_run.h"

#include <algorithm>

namespace mpckdc::garble {
namespace {

bool IsOpened(BitOp op) { return op >= BitOp::kMajority; }

size_t GatesOf(const BitSection& s) {
  if (!IsOpened(s.op)) return 0;
  return s.count * (s.op == BitOp::kProducts ? s.products : 1);
}

template <class T>
void Grow(SecretVector<T>& vector, size_t size) {
  if (vector.size() < size) vector.resize(size);
}

}  // namespace

size_t AndGatesOf(const BitProgram& program) {
  size_t gates = 0;
  for (const BitSection& s : program.sections) gates += GatesOf(s);
  return gates;
}

// The operations of a program over so many lanes; 0: as many as there are. With `kPublics` slots' public values are kept beside their labels.
template <size_t kLanes, bool kPublics>
struct ProgramRun::Ops {
  ProgramRun& run;
  const Rows& rows;
  Label* const slots = run.slots_.data();
  uint8_t* const plain = run.plain_.data();

  size_t lanes() const { return kLanes != 0 ? kLanes : run.lanes_; }
  Label* Slot(uint16_t slot) const { return slots + slot * lanes(); }
  uint8_t* Plain(uint16_t slot) const { return plain + slot * lanes(); }
  template <class Each>
  void ForLanes(Each each) const {
    for (size_t lane = 0; lane < lanes(); ++lane) each(lane);
  }
  void Copy(const Label* from, Label* to) const {
    ForLanes([&](size_t l) { to[l] = from[l]; });
  }

  void Local(const BitSection& s, const uint16_t* p) const {
    switch (s.op) {
      case BitOp::kInput:
        for (size_t i = 0; i < s.count; ++i, p += 2) Copy(rows.inputs[p[1]], Slot(p[0]));
        return;
      case BitOp::kPublic:
        for (size_t i = 0; i < s.count; ++i, p += 2) Public(Slot(p[0]), Plain(p[0]), p[1]);
        return;
      case BitOp::kXor2:
        for (size_t i = 0; i < s.count; ++i, p += 3) Xor2(p);
        return;
      case BitOp::kXor3:
        for (size_t i = 0; i < s.count; ++i, p += 4) Xor3(p);
        return;
      case BitOp::kNot:
        for (size_t i = 0; i < s.count; ++i, p += 2) {
          const Label* a = Slot(p[1]);
          ForLanes([&](size_t l) { Slot(p[0])[l] = a[l] ^ run.step_[l]; });
          if (kPublics) ForLanes([&](size_t l) { Plain(p[0])[l] = Plain(p[1])[l] ^ 1; });
        }
        return;
      case BitOp::kScale:
        for (size_t i = 0; i < s.count; ++i, p += 3) {
          const Label* a = Slot(p[2]);
          ForLanes([&](size_t l) { Slot(p[0])[l] = a[l].If((Plain(p[1])[l] & 1) != 0); });
        }
        return;
      case BitOp::kOutput:
        for (size_t i = 0; i < s.count; ++i, p += 2) Copy(Slot(p[1]), rows.outputs + p[0] * lanes());
        return;
      default:
        return;
    }
  }
  void Public(Label* out, uint8_t* value, uint16_t row) const {
    const uint8_t* bits = rows.publics + row * lanes();
    ForLanes([&](size_t l) {
      value[l] = bits[l];
      out[l] = run.step_[l].If(bits[l] != 0);
    });
  }
  // Whether an operand is public is not said: of those that are not, `plain` is nothing.
  void Xor2(const uint16_t* p) const {
    Label* out = Slot(p[0]);
    const Label *a = Slot(p[1]), *b = Slot(p[2]);
    ForLanes([&](size_t l) { out[l] = a[l] ^ b[l]; });
    if (!kPublics) return;
    ForLanes([&](size_t l) { Plain(p[0])[l] = Plain(p[1])[l] ^ Plain(p[2])[l]; });
  }
  void Xor3(const uint16_t* p) const {
    Label* out = Slot(p[0]);
    const Label *a = Slot(p[1]), *b = Slot(p[2]), *c = Slot(p[3]);
    ForLanes([&](size_t l) { out[l] = a[l] ^ b[l] ^ c[l]; });
    if (!kPublics) return;
    ForLanes([&](size_t l) { Plain(p[0])[l] = Plain(p[1])[l] ^ Plain(p[2])[l] ^ Plain(p[3])[l]; });
  }

  // Maj = (x + z)(y + z) + z, Ch = x(y + z) + z, or products as they are. a, b: the gates' inputs.
  void Gather(const BitSection& s, const uint16_t* p, Label* a, Label* b) const {
    if (s.op == BitOp::kProducts) {
      for (size_t i = 0; i < s.count; ++i) {
        p += s.linears;
        for (size_t k = 0; k < s.products; ++k, p += 2, a += lanes(), b += lanes()) {
          Copy(Slot(p[0]), a);
          Copy(Slot(p[1]), b);
        }
      }
      return;
    }
    const bool majority = s.op == BitOp::kMajority;
    for (size_t i = 0; i < s.count; ++i, p += 3, a += lanes(), b += lanes()) {
      const Label *x = Slot(p[0]), *y = Slot(p[1]), *z = Slot(p[2]);
      ForLanes([&](size_t l) {
        a[l] = x[l] ^ z[l].If(majority);
        b[l] = y[l] ^ z[l];
      });
    }
  }
  // From the gates' outputs to what the section gives.
  void Scatter(const BitSection& s, const uint16_t* p, const Label* c, Label* out) const {
    for (size_t i = 0; i < s.count; ++i, out += lanes()) {
      if (s.op != BitOp::kProducts) {
        const Label* z = Slot(p[2]);
        ForLanes([&](size_t l) { out[l] = c[l] ^ z[l]; });
        p += 3;
        c += lanes();
        continue;
      }
      ForLanes([&](size_t l) { out[l] = {}; });
      for (size_t k = 0; k < s.linears; ++k, ++p) {
        const Label* linear = Slot(*p);
        ForLanes([&](size_t l) { out[l] = out[l] ^ linear[l]; });
      }
      for (size_t k = 0; k < s.products; ++k, p += 2, c += lanes()) {
        ForLanes([&](size_t l) { out[l] = out[l] ^ c[l]; });
      }
    }
  }
};

template <size_t kLanes, bool kPublics>
void ProgramRun::RunStage(const BitProgram& program, const BitStage& stage, const Rows& rows) {
  const Ops<kLanes, kPublics> ops = {*this, rows};
  const uint16_t* stores = program.args.data() + stage.stores_at;
  for (size_t i = 0; i < stage.stores; ++i) {
    ops.Copy(opened_.data() + i * lanes_, ops.Slot(stores[i]));
  }
  const auto sections =
      absl::MakeConstSpan(program.sections).subspan(stage.first_section, stage.sections);
  size_t all = 0;
  for (const BitSection& s : sections) all += GatesOf(s);
  for (SecretVector<Label>* v : {&a_, &b_, &c_}) Grow(*v, all * lanes_);
  Grow(opened_, stage.opened * lanes_);
  size_t gates = 0, opened = 0;
  for (const BitSection& s : sections) {
    const uint16_t* args = program.args.data() + s.at;
    if (!IsOpened(s.op)) {
      ops.Local(s, args);
      continue;
    }
    ops.Gather(s, args, a_.data() + gates * lanes_, b_.data() + gates * lanes_);
    gates += GatesOf(s);
  }
  if (all > 0) Gates(all, a_.data(), b_.data(), c_.data());
  gates = 0;
  for (const BitSection& s : sections) {
    if (!IsOpened(s.op)) continue;
    ops.Scatter(s, program.args.data() + s.at, c_.data() + gates * lanes_,
                opened_.data() + opened * lanes_);
    gates += GatesOf(s);
    opened += s.count;
  }
}

template <size_t kLanes>
void ProgramRun::RunOn(const BitProgram& program, const Rows& rows) {
  const bool publics = rows.publics != nullptr;
  for (const BitStage& stage : program.stages) {
    publics ? RunStage<kLanes, true>(program, stage, rows)
            : RunStage<kLanes, false>(program, stage, rows);
  }
}

void ProgramRun::Run(const BitProgram& program,
                     absl::Span<const absl::Span<const Label>> inputs,
                     absl::Span<const uint8_t> publics, Label* outputs) {
  input_rows_.clear();
  for (const absl::Span<const Label>& part : inputs) {
    for (size_t at = 0; at < part.size(); at += lanes_) input_rows_.push_back(&part[at]);
  }
  Grow(slots_, program.slots * lanes_);
  if (!publics.empty()) plain_.resize(std::max(plain_.size(), program.slots * lanes_));
  const Rows rows = {input_rows_.data(), publics.empty() ? nullptr : publics.data(), outputs};
  switch (lanes_) {
    case 1:
      return RunOn<1>(program, rows);
    case 4:
      return RunOn<4>(program, rows);
    case 16:
      return RunOn<16>(program, rows);
    default:
      return RunOn<0>(program, rows);
  }
}

}  // namespace mpckdc::garble
