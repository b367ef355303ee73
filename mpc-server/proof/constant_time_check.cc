// SPDX-License-Identifier: Apache-2.0
// The passes and whole proofs under valgrind memcheck, as circuit/constant_time_check.cc: rows are
// marked undefined, so memcheck reports every branch and every address that depends on them. With
// the argument "leak" it branches on a sum, to prove that the check sees.
#include <cstdio>
#include <string>
#include <vector>

#include "mpc-server/base/secret.h"
#include "mpc-server/proof/ghash_field.h"
#include "mpc-server/proof/level1.h"
#include "mpc-server/proof/message_proof.h"
#include "mpc-server/proof/points.h"
#include "mpc-server/testing/synthetic_logs.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc::proof {
namespace {

// Two sections, the second cut short.
void RunPasses(Gadget gadget, size_t row_bytes, bool leak) {
  const size_t words = row_bytes / 8;
  const std::vector<uint64_t> wires(kNodes * GadgetWires(gadget) * words, 0x123456789ABCDEF);
  const std::vector<uint64_t> t(kNodes * GadgetBits(gadget) * words, 0xFEDCBA987654321);
  MarkSecret(wires.data(), 8 * wires.size());
  MarkSecret(t.data(), 8 * t.size());
  std::vector<K> weights(64, K{0x9E3779B97F4A7C15});
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
  const ProductForms forms = MakeProductForms(gadget, weights.data());
  const size_t size = forms.products * sections.columns();
  std::vector<K> u(2 * size), v(2 * size);
  FunctionalSums sums;
  for (Weighting weighting : {Weighting::kOnU, Weighting::kRootOnBoth}) {
    level1.Fold(sections, weights.data(), forms, weighting,
                {u.data(), v.data(), size, sections.columns()});
    const F* c = coefficients.data();
    for (Wires of : {Wires::kOwn, Wires::kLeft, Wires::kSum}) {
      level1.Evaluate(sections, of, {weights.data(), c, c, c, c, weighting}, sums);
    }
  }
  std::vector<F> columns(kColumns / 8);
  MultiplyAdd(u.data(), coefficients[0], columns.size(), columns.data());
  const F folded =
      Dot(coefficients.data(), columns.data(), columns.size()) * sums.u + Inverse(sums.v);
  if (leak && (folded.low.v & 1) != 0) std::puts("a branch on what depends on the rows");
  Declassify(points, sizeof(points));
  if (Reduce(points[0]) == K{1}) std::puts("a branch on what may be known");
}

// What is not a pass: the sums of a level and its fold, for any number of columns that a kernel
// treats apart, and GCM's field in F.
template <class T>
void RunParts(size_t parts, size_t variables, size_t columns, bool leak) {
  const std::vector<T> u(parts * columns, kUnit<T>), v(parts * columns, kUnit<T>);
  MarkSecret(u.data(), sizeof(T) * u.size());
  MarkSecret(v.data(), sizeof(T) * v.size());
  const std::vector<F> c(parts, F{K{5}, K{0x1000000000000001}});
  T sums[kMostPoints] = {};
  AddPoints(u.data(), v.data(), columns, parts, variables, columns, sums);
  std::vector<F> folded(columns);
  Combine(u.data(), columns, c.data(), parts, columns, folded.data());
  if (leak && folded[0] == F{}) std::puts("a branch on what was folded");
  if (leak && sums[0] == T{}) std::puts("a branch on a point");
}

void RunGhash(size_t count, bool leak) {
  const std::vector<Block> blocks(count, Block{1, 2, 3});
  MarkSecret(blocks.data(), sizeof(Block) * count);
  std::vector<F> elements(count);
  FromGhash(blocks, elements.data());
  if (leak && elements[0] == F{}) std::puts("a branch on a block");
}

// Prover, L and R at once; every kind of section, field items, more than a row of columns.
bool RunProof() {
  SyntheticLogs logs(1);
  for (size_t g = 0; g < kGadgets; ++g) {
    logs.Add(SectionShape{static_cast<Gadget>(g), g % 2 == 0 ? 70u : 9u, 3});
  }
  logs.Add(FieldShape{{1, 3, 2}});
  for (const ProofLog& log : logs.logs()) {
    for (const ProofSection& s : log.sections()) MarkSecret(s.rows, s.bytes());
    for (const ProofFieldSection& s : log.field_sections()) {
      MarkSecret(s.blocks, 2 * sizeof(Block) * (2 * s.pairs + s.items));
    }
  }
  MemoryRing ring;
  const auto statuses = RunThreeParties(
      ring, 1,
      [&](PartyContext& party) {
        party.BeginBatch(1);
        SeededRandomForTest random(static_cast<uint64_t>(party.party()));
        CoinToss coins(party.party(), party.session_id(), random);
        MessageProof proof(party, coins);
        proof.Reset(logs.logs()[party.party()], Digest{}, 0);
        return RunTogether(party, {&proof});
      },
      absl::Seconds(120));
  for (const absl::Status& s : statuses) {
    if (!s.ok()) return std::puts(s.ToString().c_str()), false;
  }
  return true;
}

}  // namespace
}  // namespace mpckdc::proof

int main(int argc, char** argv) {
  using namespace mpckdc::proof;
  const bool leak = argc > 1 && std::string(argv[1]) == "leak";
  for (size_t row_bytes : {8, 64}) {
    for (size_t g = 0; g < mpckdc::kGadgets; ++g) {
      RunPasses(static_cast<mpckdc::Gadget>(g), row_bytes, leak);
    }
  }
  for (size_t columns : {1, 7, 64, 67}) {
    for (size_t variables = 1; variables <= 3; ++variables) {
      const size_t most = size_t{1} << variables;
      for (size_t parts : {most - 1, most}) {
        RunParts<K>(parts, variables, columns, leak);
        RunParts<F>(parts, variables, columns, leak);
      }
    }
    RunGhash(columns, leak);
  }
  return RunProof() ? 0 : 1;
}
