// SPDX-License-Identifier: Apache-2.0
// The passes under valgrind memcheck, as circuit/constant_time_check.cc: rows are marked undefined,
// so memcheck reports every branch and every address that depends on them. With the argument "leak"
// it branches on a sum, to prove that the check sees.
#include <cstdio>
#include <string>
#include <vector>

#include "mpc-server/base/secret.h"
#include "mpc-server/proof/level1.h"

namespace mpckdc::proof {
namespace {

// Two sections, the second cut short.
void RunPasses(Gadget gadget, size_t row_bytes, bool leak) {
  const size_t words = row_bytes / 8;
  const std::vector<uint64_t> wires(kNodes * WiresOf(gadget) * words, 0x123456789ABCDEF);
  const std::vector<uint64_t> t(kNodes * OutputsOf(gadget) * words, 0xFEDCBA987654321);
  MarkSecret(wires.data(), 8 * wires.size());
  MarkSecret(t.data(), 8 * t.size());
  const std::vector<K> weights(64, K{0x9E3779B97F4A7C15});
  const std::vector<F> coefficients(kColumns, F{K{3}, K{0x1000000000000001}});
  const auto* w = reinterpret_cast<const uint8_t*>(wires.data());
  const auto* o = reinterpret_cast<const uint8_t*>(t.data());
  const Section both[] = {{{w, w}, {o, o}, weights.data(), 32},
                          {{w, w}, {o, o}, weights.data(), 9}};
  const Sections sections = {gadget, row_bytes, both};

  Level1 level1;
  WideK points[kPoints], nodes[kNodes];
  level1.SumsAtPoints(sections, weights.data(), true, points);
  level1.SumsOfT(sections, Role::kOwn, weights.data(), nodes);
  level1.SumsOfT(sections, Role::kLeft, weights.data(), nodes);
  CompleteBetas(gadget, weights.data());
  const ProductForms forms = MakeProductForms(gadget, weights.data());
  const size_t size = forms.products * sections.columns();
  std::vector<K> u(2 * size), v(2 * size);
  FunctionalSums sums;
  for (Weighting weighting : {Weighting::kOnU, Weighting::kRootOnBoth}) {
    level1.Fold(sections, weights.data(), forms, weighting,
                {u.data(), v.data(), size, sections.columns()});
    const F* c = coefficients.data();
    level1.Evaluate(sections, Wires::kSum, {weights.data(), c, c, c, c, weighting}, sums);
  }
  const F folded = Dot(coefficients.data(), u.data(), kColumns / 8) * sums.u + Inverse(sums.v);
  if (leak && (folded.low.v & 1) != 0) std::puts("a branch on what depends on the rows");
  Declassify(points, sizeof(points));
  if (Reduce(points[0]) == K{1}) std::puts("a branch on what may be known");
}

}  // namespace
}  // namespace mpckdc::proof

int main(int argc, char** argv) {
  const bool leak = argc > 1 && std::string(argv[1]) == "leak";
  for (size_t row_bytes : {8, 64}) {
    for (size_t g = 0; g < mpckdc::proof::kGadgets; ++g) {
      mpckdc::proof::RunPasses(static_cast<mpckdc::proof::Gadget>(g), row_bytes, leak);
    }
  }
}
