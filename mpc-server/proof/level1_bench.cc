// SPDX-License-Identifier: Apache-2.0
// For developers: how long the passes take with every instruction set, in ns for each lane of each
// section, and for each block of AES-128 (5 sections). One thread. Argument: only lines that
// contain it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "mpc-server/proof/level1.h"

namespace mpckdc::proof {
namespace {

constexpr size_t kSections = 5;

struct Workload {
  Workload(Gadget gadget, size_t row_bytes) : sections{gadget, row_bytes, {}} {
    const size_t wire_words = kNodes * GadgetWires(gadget) * row_bytes / 8;
    const size_t output_words = kNodes * GadgetBits(gadget) * row_bytes / 8;
    memory.resize(2 * kSections * (wire_words + output_words));
    for (uint64_t& v : memory) v = random();
    for (K& k : weights) k = K{random()};
    for (F& f : columns) f = F{K{random()}, K{random()}};
    const auto* at = reinterpret_cast<const uint8_t*>(memory.data());
    for (size_t i = 0; i < kSections; ++i, at += 16 * (wire_words + output_words)) {
      const uint8_t* t = at + 16 * wire_words;
      all.push_back({{at, at + 8 * wire_words}, {t, t + 8 * output_words}, &weights[8 * i], 32});
    }
    sections.all = all;
    forms = MakeProductForms(gadget, weights);
    u.resize(kSections * forms.products * sections.columns());
    v = u;
  }
  std::mt19937_64 random{1};
  std::vector<uint64_t> memory;
  K weights[64];
  F columns[kColumns];
  std::vector<Section> all;
  Sections sections;
  ProductForms forms;
  std::vector<K> u, v;
};

// The least of many calls: others may use the machine too.
double Nanoseconds(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  double least = 1e18;
  const auto begin = Clock::now();
  for (auto start = begin; start - begin < std::chrono::milliseconds(150);) {
    work();
    const auto end = Clock::now();
    least = std::min(least, std::chrono::duration<double, std::nano>(end - start).count());
    start = end;
  }
  return least;
}

// `only`: what the line of a pass must contain.
void Run(const char* name, Gadget gadget, size_t row_bytes, const char* only) {
  Workload w(gadget, row_bytes);
  const size_t columns = w.sections.columns();
  for (const auto& variant : AllLevel1Kernels().supported()) {
    Level1 level1(variant.functions);
    const auto print = [&](const char* pass, const std::function<void()>& work) {
      char line[100];
      std::snprintf(line, sizeof(line), "%-8s rows of %2zu  %-12s %-23s", name, row_bytes,
                    variant.name, pass);
      if (std::strstr(line, only) == nullptr) return;
      const double block = Nanoseconds(work) / static_cast<double>(columns);
      std::printf("%s %9.2f ns a lane of a section %9.1f a block\n", line, block / kSections,
                  block);
    };
    WideK points[kPoints], nodes[kNodes];
    FunctionalSums sums;
    print("sums at points", [&] { level1.SumsAtPoints(w.sections, w.weights, false, points); });
    print("sums of t, own", [&] { level1.SumsOfT(w.sections, Role::kOwn, w.weights, nodes); });
    print("sums of t, left", [&] { level1.SumsOfT(w.sections, Role::kLeft, w.weights, nodes); });
    for (Weighting weighting : {Weighting::kOnU, Weighting::kRootOnBoth}) {
      const bool root = weighting == Weighting::kRootOnBoth;
      print(root ? "fold, root on both" : "fold, weight on u", [&] {
        level1.Fold(w.sections, w.weights, w.forms, weighting,
                    {w.u.data(), w.v.data(), columns * w.forms.products, columns});
      });
      print(root ? "functional, root" : "functional, weight on u", [&] {
        level1.Evaluate(w.sections, Wires::kOwn,
                        {w.weights, w.columns, w.columns + 50, w.columns, w.columns, weighting},
                        sums);
      });
    }
  }
}

// Once for a proof and gadget.
void RunForms() {
  Workload w(Gadget::kSbox17, 8);
  const double ns = Nanoseconds([&] { w.forms = MakeProductForms(Gadget::kSbox17, w.weights); });
  std::printf("sbox17   product forms %.0f ns\n", ns);
}

}  // namespace
}  // namespace mpckdc::proof

int main(int argc, char** argv) {
  using mpckdc::Gadget;
  using mpckdc::proof::Run;
  mpckdc::proof::RunForms();
  const char* only = argc > 1 ? argv[1] : "";
  Run("sbox17", Gadget::kSbox17, 64, only);
  Run("sbox17", Gadget::kSbox17, 8, only);
  Run("sbox22", Gadget::kSbox22, 64, only);
  Run("product", Gadget::kProducts1, 64, only);
}
