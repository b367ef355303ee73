// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/level1.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace mpckdc::proof {
namespace {

constexpr size_t kRow = 8 * kWords;
constexpr size_t kWirePlane = kNodes * kMaxWires * kRow;
constexpr size_t kOutputPlane = kNodes * kMaxOutputs * kRow;

// Sections that go through a kernel together: eight with small rows, or one.
size_t SectionsAtOnce(const Sections& sections) { return kRow / sections.row_bytes; }

// out[node][i] word w = word of section w, for `count` rows in each node.
void Pack(absl::Span<const Section> sections, size_t count, const uint8_t* const* a,
          const uint8_t* const* b, uint8_t* out) {
  for (size_t w = 0; w < kWords; ++w) {
    const size_t there = w < sections.size() ? sections[w].nodes * count : 0;
    for (size_t i = 0; i < kNodes * count; ++i) {
      uint64_t v = 0, add = 0;
      if (i < there) std::memcpy(&v, a[w] + 8 * i, 8);
      if (i < there && b != nullptr) std::memcpy(&add, b[w] + 8 * i, 8);
      v ^= add;
      std::memcpy(out + i * kRow + 8 * w, &v, 8);
    }
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

// What goes through a kernel as one section.
struct Batch {
  absl::Span<const Section> sections;
  const Sections& of;
  uint8_t* packed;

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
    const size_t count = WiresOf(of.gadget);
    const size_t role = wires == Wires::kLeft ? 1 : 0;
    const bool sum = wires == Wires::kSum;
    WireRows rows = {sections[0].wires[role], sum ? sections[0].wires[1] : nullptr, count, nodes(),
                     words()};
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
  const uint8_t* Outputs(Role role) const {
    const auto r = static_cast<size_t>(role);
    if (!small()) return sections[0].t[r];
    const uint8_t* t[kWords];
    for (size_t w = 0; w < sections.size(); ++w) t[w] = sections[w].t[r];
    Pack(sections, OutputsOf(of.gadget), t, nullptr, packed + kWirePlane);
    return packed + kWirePlane;
  }
  // weights[output][word] = beta * omega.
  void OutputWeights(const K* betas, K* weights) const {
    K omegas[kWords];
    for (size_t w = 0; w < kWords; ++w) omegas[w] = omega(w);
    for (size_t j = 0; j < OutputsOf(of.gadget); ++j) {
      std::fill_n(weights + j * kWords, kWords, K{});
      MultiplyAdd(omegas, betas[j], kWords, weights + j * kWords);
    }
  }
  // omega * x^b, or its root.
  void ColumnWeights(Weighting weighting, K* weights) const {
    static const std::array<K, 64> powers = Powers(kX), root_powers = Powers(SquareRoot(kX));
    const bool root = weighting == Weighting::kRootOnBoth;
    std::fill_n(weights, kColumns, K{});
    for (size_t w = 0; w < words(); ++w) {
      MultiplyAdd((root ? root_powers : powers).data(), root ? SquareRoot(omega(w)) : omega(w), 64,
                  weights + 64 * w);
    }
  }
};

template <class Visitor>
void ForEachBatch(const Sections& sections, uint8_t* packed, Visitor visit) {
  const size_t step = SectionsAtOnce(sections);
  for (size_t i = 0; i < sections.all.size(); i += step) {
    visit(Batch{sections.all.subspan(i, step), sections, packed}, i);
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
      parts_(kPoints),
      plan_(kPlanBytes) {}

SumParts* Level1::ZeroParts(size_t count) {
  std::fill_n(parts_.begin(), count, SumParts());
  return parts_.data();
}

void Level1::SumsAtPoints(const Sections& sections, const K* betas, bool corners, WideK* sums) {
  SumParts* parts = ZeroParts(kPoints);
  ForEachBatch(sections, packed_.data(), [&](const Batch& batch, size_t) {
    alignas(64) K weights[kMaxOutputs * kWords];
    batch.OutputWeights(betas, weights);
    kernels_.sums_at_points(sections.gadget, batch.Rows(Wires::kSum), weights, corners,
                            scratch_.data(), parts);
  });
  AddParts(parts, kPoints, sums);
}

void Level1::SumsOfT(const Sections& sections, Role role, const K* betas, WideK* sums) {
  SumParts* parts = ZeroParts(kNodes);
  const bool add_q = role == Role::kLeft;
  ForEachBatch(sections, packed_.data(), [&](const Batch& batch, size_t) {
    alignas(64) K weights[kMaxOutputs * kWords];
    batch.OutputWeights(betas, weights);
    WireRows rows = {nullptr, nullptr, 0, batch.nodes(), batch.words()};
    if (add_q) rows = batch.Rows(Wires::kLeft);
    kernels_.sums_of_t(sections.gadget, batch.Outputs(role), rows, add_q, weights, parts);
  });
  AddParts(parts, kNodes, sums);
}

void Level1::Fold(const Sections& sections, const K* eq, const ProductForms& forms,
                  Weighting weighting, const FoldedColumns& out) {
  kernels_.plan_fold(forms, eq, plan_.data());
  const bool small = sections.row_bytes < kRow;
  const size_t half = forms.products * kColumns;
  if (small) columns_.resize(std::max(columns_.size(), 2 * half));
  ForEachBatch(sections, packed_.data(), [&](const Batch& batch, size_t first) {
    alignas(64) K weights[kColumns];
    batch.ColumnWeights(weighting, weights);
    FoldedSection to = {out.u + first * out.section_step, out.v + first * out.section_step,
                        out.product_step};
    if (small) to = {columns_.data(), columns_.data() + half, kColumns};
    kernels_.fold(plan_.data(), forms, batch.Rows(Wires::kSum),
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

void Level1::Evaluate(const Sections& sections, Wires wires, const Functional& functional,
                      FunctionalSums& sums) {
  kernels_.plan_functional(WiresOf(sections.gadget), functional.node, functional.wire_u,
                           functional.wire_v, plan_.data());
  const bool small = sections.row_bytes < kRow;
  ForEachBatch(sections, packed_.data(), [&](const Batch& batch, size_t first) {
    alignas(64) K weights[kColumns];
    alignas(64) F column_u[kColumns], column_v[kColumns];
    batch.ColumnWeights(functional.weighting, weights);
    const F* columns = functional.column;
    if (small) {
      std::fill_n(column_v, kColumns, F{});
      for (size_t w = 0; w < batch.sections.size(); ++w) {
        MultiplyAdd(columns, functional.section[first + w], 64, column_v + 64 * w);
      }
      columns = column_v;
    }
    MultiplyEach(columns, weights, kColumns, column_u);
    F u, v;
    if (functional.weighting == Weighting::kRootOnBoth) columns = column_u;
    kernels_.functional(plan_.data(), batch.Rows(wires), column_u, columns, scratch_.data(), &u,
                        &v);
    sums.u += small ? u : u * functional.section[first];
    sums.v += small ? v : v * functional.section[first];
  });
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
