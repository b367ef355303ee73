// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/level1.h"

#include <algorithm>
#include <array>

namespace mpckdc::proof {
namespace {

constexpr size_t kRow = 8 * kWords;
constexpr size_t kWirePlane = kNodes * kMaxGadgetWires * kRow;
constexpr size_t kOutputPlane = kNodes * kMaxGadgetBits * kRow;

// Sections that go through a kernel together: eight with small rows, or one.
size_t SectionsAtOnce(const Sections& sections) { return kRow / sections.row_bytes; }

// out[i] word w = row i of section w, in both roles added if b is given; rows from `begin` to `end`
// of each node-by-node list. `a` and `b` have an entry for each of kWords.
template <bool kSum>
void PackRows(const uint64_t* const* a, const uint64_t* const* b, size_t begin, size_t end,
              uint64_t* out) {
  for (size_t i = begin; i < end; ++i) {
    for (size_t w = 0; w < kWords; ++w) out[i * kWords + w] = a[w][i] ^ (kSum ? b[w][i] : 0);
  }
}

// `count` rows in each node. Up to the last node that all sections have, whole rows are made at
// once; missing sections are zeros there.
void Pack(absl::Span<const Section> sections, size_t count, const uint8_t* const* a,
          const uint8_t* const* b, uint8_t* memory) {
  static const uint64_t zeros[kNodes * kMaxGadgetWires] = {};
  auto* out = reinterpret_cast<uint64_t*>(memory);
  const uint64_t *from_a[kWords], *from_b[kWords];
  size_t in_all = kNodes;
  for (size_t w = 0; w < kWords; ++w) {
    const bool there = w < sections.size();
    from_a[w] = there ? reinterpret_cast<const uint64_t*>(a[w]) : zeros;
    from_b[w] = there && b != nullptr ? reinterpret_cast<const uint64_t*>(b[w]) : zeros;
    if (there) in_all = std::min(in_all, sections[w].nodes);
  }
  const auto pack = b != nullptr ? PackRows<true> : PackRows<false>;
  pack(from_a, from_b, 0, in_all * count, out);
  for (size_t node = in_all; node < kNodes; ++node) {
    const uint64_t *some_a[kWords], *some_b[kWords];
    for (size_t w = 0; w < kWords; ++w) {
      const bool there = w < sections.size() && node < sections[w].nodes;
      some_a[w] = there ? from_a[w] : zeros;
      some_b[w] = there ? from_b[w] : zeros;
    }
    pack(some_a, some_b, node * count, (node + 1) * count, out);
  }
}

std::array<K, 64> Powers(K of) {
  std::array<K, 64> powers;
  K power = kOne;
  for (K& p : powers) {
    p = power;
    power = power * of;
  }
  return powers;
}

// x^b, or its roots.
const K* PowersFor(Weighting weighting) {
  static const std::array<K, 64> powers = Powers(kX), root_powers = Powers(SquareRoot(kX));
  return (weighting == Weighting::kRootOnBoth ? root_powers : powers).data();
}

// What goes through a kernel as one section.
struct Batch {
  absl::Span<const Section> sections;
  const Sections& of;
  uint8_t* packed;
  const Section* next;  // or the last one again

  bool small() const { return of.row_bytes < kRow; }
  size_t words() const { return small() ? sections.size() : kWords; }
  size_t nodes() const {
    size_t most = 0;
    for (const Section& s : sections) most = std::max(most, s.nodes);
    return most;
  }
  K omega(size_t word) const {
    if (word >= words()) return K{};
    return small() ? sections[word].omega[0] : sections[0].omega[word];
  }
  WireRows Rows(Wires wires) const {
    const size_t count = GadgetWires(of.gadget);
    const size_t role = wires == Wires::kLeft ? 1 : 0;
    const bool sum = wires == Wires::kSum;
    WireRows rows = {sections[0].wires[role], sum ? sections[0].wires[1] : nullptr, count, nodes(),
                     words()};
    rows.ahead = small() ? 0 : Ahead(sections[0].wires[role], next->wires[role]);
    if (!small()) return rows;
    const uint8_t *a[kWords], *b[kWords];
    for (size_t w = 0; w < sections.size(); ++w) {
      a[w] = sections[w].wires[role];
      b[w] = sections[w].wires[1];
    }
    Pack(sections, count, a, sum ? b : nullptr, packed);
    rows.a = packed;
    rows.b = nullptr;
    return rows;
  }
  ptrdiff_t AheadOfOutputs(Role role) const {
    const auto r = static_cast<size_t>(role);
    return small() ? 0 : Ahead(sections[0].t[r], next->t[r]);
  }
  const uint8_t* Outputs(Role role) const {
    const auto r = static_cast<size_t>(role);
    if (!small()) return sections[0].t[r];
    const uint8_t* t[kWords];
    for (size_t w = 0; w < sections.size(); ++w) t[w] = sections[w].t[r];
    Pack(sections, GadgetBits(of.gadget), t, nullptr, packed + kWirePlane);
    return packed + kWirePlane;
  }
  static ptrdiff_t Ahead(const uint8_t* here, const uint8_t* there) {
    return reinterpret_cast<intptr_t>(there) - reinterpret_cast<intptr_t>(here);
  }
  // weights[output][word] = beta * omega.
  void OutputWeights(const K* betas, K* weights) const {
    K omegas[kWords];
    for (size_t w = 0; w < kWords; ++w) omegas[w] = omega(w);
    for (size_t j = 0; j < GadgetBits(of.gadget); ++j) {
      Scale(omegas, betas[j], kWords, weights + j * kWords);
    }
  }
  // What Fold multiplies u by in all columns of a word: this times PowersFor(weighting).
  K WordWeight(Weighting weighting, size_t w) const {
    return weighting == Weighting::kRootOnBoth ? SquareRoot(omega(w)) : omega(w);
  }
  void ColumnWeights(Weighting weighting, K* weights) const {
    for (size_t w = 0; w < kWords; ++w) {
      Scale(PowersFor(weighting), WordWeight(weighting, w), 64, weights + 64 * w);
    }
  }
};

template <class Visitor>
void ForEachBatch(const Sections& sections, uint8_t* packed, Visitor visit) {
  const size_t step = SectionsAtOnce(sections);
  for (size_t i = 0; i < sections.all.size(); i += step) {
    const size_t next = std::min(i + step, sections.all.size() - 1);
    visit(Batch{sections.all.subspan(i, step), sections, packed, &sections.all[next]}, i);
  }
}

void AddParts(const SumParts* parts, size_t count, WideK* sums) {
  for (size_t i = 0; i < count; ++i) {
    for (const WideK& part : parts[i].part) sums[i] += part;
  }
}

}  // namespace

Level1::Level1(const Level1Kernels& kernels)
    : kernels_(kernels),
      scratch_(kScratchBytes),
      packed_(kWirePlane + kOutputPlane),
      parts_(kPoints + 2 * kNodes),
      plan_(kPlanBytes / sizeof(Line)) {}

void Level1::SumsAtPoints(const Sections& sections, const K* betas, bool corners, WideK* sums) {
  Sums(sections, betas, corners, {sums, {}});
}

void Level1::SumsOfT(const Sections& sections, Role role, const K* betas, WideK* sums) {
  FirstSums out{};
  out.nodes[static_cast<size_t>(role)] = sums;
  Sums(sections, betas, false, out);
}

// Section by section, so that its rows are fetched once.
void Level1::Sums(const Sections& sections, const K* betas, bool corners, const FirstSums& out) {
  std::fill(parts_.begin(), parts_.end(), SumParts());
  SumParts* const points = parts_.data();
  SumParts* const nodes[2] = {points + kPoints, points + kPoints + kNodes};
  ForEachBatch(sections, packed_.data(), [&](const Batch& batch, size_t) {
    alignas(64) K weights[kMaxGadgetBits * kWords];
    batch.OutputWeights(betas, weights);
    if (out.points != nullptr) {
      kernels_.sums_at_points(sections.gadget, batch.Rows(Wires::kSum), weights, corners,
                              scratch_.data(), points);
    }
    for (const Role role : {Role::kOwn, Role::kLeft}) {
      const auto r = static_cast<size_t>(role);
      if (out.nodes[r] == nullptr) continue;
      WireRows rows = {nullptr, nullptr, 0, batch.nodes(), batch.words(), 0};
      if (role == Role::kLeft) rows = batch.Rows(Wires::kLeft);
      rows.ahead = batch.AheadOfOutputs(role);
      kernels_.sums_of_t(sections.gadget, batch.Outputs(role), rows, role == Role::kLeft, weights,
                         nodes[r]);
    }
  });
  if (out.points != nullptr) AddParts(points, kPoints, out.points);
  for (size_t r = 0; r < 2; ++r) {
    if (out.nodes[r] != nullptr) AddParts(nodes[r], kNodes, out.nodes[r]);
  }
}

void Level1::Fold(const Sections& sections, const K* eq, const ProductForms& forms,
                  Weighting weighting, const FoldedColumns& out) {
  kernels_.plan_fold(forms, eq, plan());
  const bool small = sections.row_bytes < kRow;
  const size_t half = forms.products * kColumns;
  if (small) columns_.resize(std::max(columns_.size(), 2 * half));
  ForEachBatch(sections, packed_.data(), [&](const Batch& batch, size_t first) {
    alignas(64) K weights[kColumns];
    batch.ColumnWeights(weighting, weights);
    FoldedSection to = {out.u + first * out.section_step, out.v + first * out.section_step,
                        out.product_step};
    if (small) to = {columns_.data(), columns_.data() + half, kColumns};
    kernels_.fold(plan(), forms, batch.Rows(Wires::kSum),
                  {weights, weighting == Weighting::kRootOnBoth}, scratch_.data(), to);
    for (size_t w = 0; small && w < batch.sections.size(); ++w) {
      for (size_t m = 0; m < forms.products; ++m) {
        const size_t at = (first + w) * out.section_step + m * out.product_step;
        std::copy_n(to.u + m * kColumns + 64 * w, 64, out.u + at);
        std::copy_n(to.v + m * kColumns + 64 * w, 64, out.v + at);
      }
    }
  });
}

// The halves of some columns' coefficients, for a kernel.
struct Level1::Halves {
  alignas(64) K low[kColumns], high[kColumns];

  void Put(size_t at, const F* from, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      low[at + i] = from[i].low;
      high[at + i] = from[i].high;
    }
  }
  // A word of another, multiplied.
  void PutWord(size_t w, const Halves& from, K factor) {
    Scale(from.low + 64 * w, factor, 64, low + 64 * w);
    Scale(from.high + 64 * w, factor, 64, high + 64 * w);
  }
};

void Level1::EvaluateLarge(const Sections& sections, Wires wires, const Functional& functional,
                           FunctionalSums& sums) {
  const bool root = functional.weighting == Weighting::kRootOnBoth;
  Halves plain, with_powers, u;
  plain.Put(0, functional.column, kColumns);
  F column[64];
  for (size_t w = 0; w < kWords; ++w) {
    MultiplyEach(functional.column + 64 * w, PowersFor(functional.weighting), 64, column);
    with_powers.Put(64 * w, column, 64);
  }
  const Halves& v = root ? u : plain;
  ForEachBatch(sections, packed_.data(), [&](const Batch& batch, size_t first) {
    for (size_t w = 0; w < kWords; ++w) {
      u.PutWord(w, with_powers, batch.WordWeight(functional.weighting, w));
    }
    F sum_u, sum_v;
    kernels_.functional(plan(), batch.Rows(wires), {{u.low, u.high}, {v.low, v.high}},
                        scratch_.data(), &sum_u, &sum_v);
    sums.u += sum_u * functional.section[first];
    sums.v += sum_v * functional.section[first];
  });
}

// Every word has a section's coefficient of its own, which goes into the columns.
void Level1::EvaluateSmall(const Sections& sections, Wires wires, const Functional& functional,
                           FunctionalSums& sums) {
  const bool root = functional.weighting == Weighting::kRootOnBoth;
  Halves u, plain;
  const Halves& v = root ? u : plain;
  F with_powers[64];
  MultiplyEach(functional.column, PowersFor(functional.weighting), 64, with_powers);
  ForEachBatch(sections, packed_.data(), [&](const Batch& batch, size_t first) {
    for (size_t w = 0; w < batch.sections.size(); ++w) {
      const F factor = functional.section[first + w];
      F column[64] = {};
      MultiplyAdd(with_powers, factor * batch.WordWeight(functional.weighting, w), 64, column);
      u.Put(64 * w, column, 64);
      if (root) continue;
      std::fill_n(column, 64, F{});
      MultiplyAdd(functional.column, factor, 64, column);
      plain.Put(64 * w, column, 64);
    }
    kernels_.functional(plan(), batch.Rows(wires), {{u.low, u.high}, {v.low, v.high}},
                        scratch_.data(), &sums.u, &sums.v);
  });
}

void Level1::Evaluate(const Sections& sections, Wires wires, const Functional& functional,
                      FunctionalSums& sums) {
  kernels_.plan_functional(sections.gadget, functional.node, functional.wire_u, functional.wire_v,
                           plan());
  if (sections.row_bytes < kRow) {
    EvaluateSmall(sections, wires, functional, sums);
  } else {
    EvaluateLarge(sections, wires, functional, sums);
  }
}

const IsaTable<Level1Kernels>& AllLevel1Kernels() {
  static const IsaTable<Level1Kernels> all = {
    {"portable", Isa::kPortable, kLevel1Portable},
#if defined(__x86_64__)
    {"avx2_pclmul", Isa::kAvx2, kLevel1Avx2},
    {"avx512_gfni", Isa::kAvx512, kLevel1Gfni512,
     __builtin_cpu_supports("gfni") != 0 && __builtin_cpu_supports("avx512vbmi") != 0 &&
         __builtin_cpu_supports("vpclmulqdq") != 0},
#endif
  };
  return all;
}

}  // namespace mpckdc::proof
