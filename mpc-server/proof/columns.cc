// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/columns.h"

#include <sodium.h>

#include "mpc-server/proof/forms.h"

namespace mpckdc::proof {
namespace {

// Words from a coin, in order.
class CoinStream {
 public:
  CoinStream(const Coin& coin, size_t words) : words_(words) {
    static_assert(sizeof(Coin) == randombytes_SEEDBYTES);
    randombytes_buf_deterministic(words_.data(), words_.size() * sizeof(uint64_t), coin.data());
  }
  K NextK() { return K{words_[at_++]}; }
  F NextF() {
    const K low = NextK();
    return {low, NextK()};
  }

 private:
  std::vector<uint64_t> words_;
  size_t at_ = 0;
};

void PlaceSections(absl::Span<const ProofSection> sections, ColumnPlan::OfGadget& gadget) {
  size_t row = gadget.first_row;
  for (const ProofSection& section : sections) {
    if (section.gadget != gadget.gadget || section.row != kDotRow / 8) continue;
    gadget.sections.push_back({&section, row++, 0});
  }
  size_t word = 0;
  for (const ProofSection& section : sections) {
    if (section.gadget != gadget.gadget || section.row == kDotRow / 8) continue;
    gadget.sections.push_back({&section, row, word++});
    if (word == kRowWords) {
      word = 0;
      ++row;
    }
  }
  gadget.rows = row + (word != 0) - gadget.first_row;
}

}  // namespace

ColumnPlan::ColumnPlan(const ProofLog& log) {
  for (size_t g = 0; g < kGadgets; ++g) {
    OfGadget gadget{static_cast<Gadget>(g), bit_rows, 0, {}};
    PlaceSections(log.sections(), gadget);
    if (gadget.sections.empty()) continue;
    bit_rows += gadget.rows;
    gadgets.push_back(std::move(gadget));
  }
  for (const ProofFieldSection& section : log.field_sections()) {
    field_items += section.items;
    field_pairs += section.pairs;
  }
  field_rows = (field_pairs + kDotRow - 1) / kDotRow;
}

ProofWeights::ProofWeights(const ColumnPlan& plan, const Coin& coin)
    : rows(plan.bit_rows), items(plan.field_items) {
  CoinStream stream(coin,
                    kGadgets * kMaxGadgetBits + rows.size() + words.size() + 2 * items.size());
  for (auto& gadget : bits) {
    for (K& beta : gadget) beta = stream.NextK();
  }
  for (K& row : rows) row = stream.NextK();
  for (K& word : words) word = stream.NextK();
  for (F& item : items) item = stream.NextF();
}

std::array<K, kRowWords> ProofWeights::WordsOf(const ColumnPlan::Placed& placed) const {
  std::array<K, kRowWords> all{};
  const size_t count = placed.section->row / 8;
  for (size_t w = 0; w < count; ++w) all[w] = rows[placed.row] * words[placed.word + w];
  return all;
}

}  // namespace mpckdc::proof
