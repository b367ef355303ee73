// SPDX-License-Identifier: Apache-2.0
// Where the sections of a log stand in the vectors of the dot product, and the weights of their
// bits. All of it is public.
//
//     row        512 columns: 8 words of 64 lanes
//     section    of up to 512 lanes: a row; of up to 64: a word, eight of them share a row
//     gadget     its rows lie behind each other, those of wide sections first
//     behind all gadgets: rows of the pairs of the field sections, one column each
//
// A column in row i, word w, bit b has the weight rows[i] words[w] x^b: so the lanes of a word have
// those of a basis of K, and a word is an element of K. u is multiplied by it, v is not.
#ifndef MPC_SERVER_PROOF_COLUMNS_H_
#define MPC_SERVER_PROOF_COLUMNS_H_

#include <array>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/proof/coin_toss.h"
#include "mpc-server/proof/dot_product.h"
#include "mpc-server/proof/field128.h"
#include "mpc-server/proof/field64.h"
#include "mpc-server/share/proof_log.h"

namespace mpckdc::proof {

inline constexpr size_t kRowWords = 8;

struct ColumnPlan {
  struct Placed {
    const ProofSection* section;
    size_t row, word;
  };
  struct OfGadget {
    Gadget gadget;
    size_t first_row = 0, rows = 0;
    std::vector<Placed> sections;
  };

  std::vector<OfGadget> gadgets;  // those that there are
  size_t bit_rows = 0;
  size_t field_items = 0, field_pairs = 0, field_rows = 0;

  size_t rows() const { return bit_rows + field_rows; }

  explicit ColumnPlan(const ProofLog& log);
};

struct ProofWeights {
  std::array<std::array<K, kMaxGadgetBits>, kGadgets> bits;  // beta of each bit
  std::vector<K> rows;
  std::array<K, kRowWords> words;
  std::vector<F> items;  // of each item of the field sections

  ProofWeights(const ColumnPlan& plan, const Coin& coin);
  // Of the words of a section.
  std::array<K, kRowWords> WordsOf(const ColumnPlan::Placed& placed) const;
};

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_COLUMNS_H_
