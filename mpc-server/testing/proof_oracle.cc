// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/proof_oracle.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "mpc-server/circuit/gcm/gf128.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc {
namespace {

using Word = uint64_t;

// GF(16), w^4 = w + 1: the product by powers of w, one at a time.
void Times(const Word* u, const Word* v, Word* out) {
  Word power[4] = {v[0], v[1], v[2], v[3]};
  for (int k = 0; k < 4; ++k) out[k] = 0;
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 4; ++k) out[k] ^= u[i] & power[k];
    const Word top = power[3];
    power[3] = power[2];
    power[2] = power[1];
    power[1] = power[0] ^ top;
    power[0] = top;
  }
}
// (a + b)*m and b*m.
void TimesByte(const Word* x, const Word* m, Word* out) {
  const Word sum[4] = {x[0] ^ x[4], x[1] ^ x[5], x[2] ^ x[6], x[3] ^ x[7]};
  Times(sum, m, out);
  Times(x + 4, m, out + 4);
}

void Sbox17(const Word* w, Word* bits) {
  const Word *n = w + 8, q = w[12];
  Times(w, w + 4, bits);
  bits[4] = (n[0] & n[1]) ^ (n[2] & n[3]);
  const auto p = [n](int i, int j) { return n[i] & n[j]; };
  bits[5] = (q & (n[1] ^ n[2])) ^ p(0, 1) ^ p(0, 2) ^ p(1, 2) ^ p(2, 3);
  bits[6] = (q & n[3]) ^ p(0, 1) ^ p(0, 2) ^ p(1, 2) ^ p(1, 3) ^ p(2, 3);
  bits[7] = (q & n[0]) ^ p(0, 2) ^ p(0, 3);
  bits[8] = (q & n[1]) ^ p(0, 1) ^ p(0, 3) ^ p(1, 3) ^ p(2, 3);
  TimesByte(w, w + 13, bits + 9);
}

void Sbox22(const Word* w, Word* bits) {
  const Word *n = w + 8, *u = w + 12, *v = w + 14;
  Times(w, w + 4, bits);
  bits[4] = (n[0] & (n[1] ^ n[2])) ^ (n[1] & (n[2] ^ n[3]));
  bits[5] = (n[1] & n[2]) ^ (n[3] & (n[0] ^ n[1] ^ n[2]));
  const Word fourth[4] = {n[0] ^ n[1] ^ n[2] ^ n[3], n[1] ^ n[3], n[2] ^ n[3], n[3]};
  TimesByte(w, fourth, bits + 6);
  // u0 + u1*w^5, w^5 = w^2 + w.
  const Word scale[4] = {u[0], u[1], u[1], 0};
  Times(scale, v, bits + 14);
  Times(scale, v + 4, bits + 18);
}

Word WordAt(const uint8_t* rows, size_t at) {
  Word w;
  std::memcpy(&w, rows + at, sizeof(w));
  return w;
}

bool AllZero(const uint8_t* data, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (data[i] != 0) return false;
  }
  return true;
}

// Lanes and nodes that are not there.
bool RowsAreCut(const ProofSection& s) {
  const size_t wires = GadgetWires(s.gadget), bits = GadgetBits(s.gadget), row = s.row;
  bool cut = true;
  const auto check = [&](const uint8_t* rows, size_t per_node) {
    const size_t missing = (kProofNodes - s.nodes) * per_node;
    cut = cut && AllZero(rows + s.nodes * per_node * row, missing * row);
    for (size_t i = 0; i < s.nodes * per_node; ++i) {
      for (size_t lane = s.lanes; lane < 8 * row; ++lane) {
        cut = cut && (rows[i * row + lane / 8] >> lane % 8 & 1) == 0;
      }
    }
  };
  for (int role = 0; role < kProofRoles; ++role) {
    check(s.Wires(role), wires);
    check(s.T(role), bits);
  }
  return cut;
}

class Oracle {
 public:
  explicit Oracle(const std::array<Recording, 3>& parties) : parties_(parties) {}

  OracleResult Run() {
    for (int p = 0; p < kParties; ++p) {
      if (!Fits(p)) return std::move(result_);
    }
    for (int p = 0; p < kParties; ++p) {
      for (size_t s = 0; s < parties_[0].sections().size(); ++s) CheckSection(p, s);
      for (size_t s = 0; s < parties_[0].fields().size(); ++s) CheckField(p, s);
    }
    return std::move(result_);
  }

 private:
  bool Malformed(int party, size_t section, const char* what) {
    result_.malformed = absl::StrCat("P", party, " section ", section, ": ", what);
    return false;
  }
  bool Fits(int party) {
    const Recording &first = parties_[0], &here = parties_[party];
    if (here.sections().size() != first.sections().size() ||
        here.fields().size() != first.fields().size()) {
      return Malformed(party, here.sections().size(), "another number of sections");
    }
    for (size_t i = 0; i < here.sections().size(); ++i) {
      const ProofSection &a = first.sections()[i], &b = here.sections()[i];
      if (a.gadget != b.gadget || a.lanes != b.lanes || a.nodes != b.nodes || a.row != b.row) {
        return Malformed(party, i, "another section");
      }
      if (b.row != (b.lanes <= kFewProofLanes ? 8 : 64))
        return Malformed(party, i, "length of rows");
      if (!RowsAreCut(b)) return Malformed(party, i, "rows, nodes or lanes that are not zero");
    }
    for (size_t i = 0; i < here.fields().size(); ++i) {
      const ProofFieldSection &a = first.fields()[i], &b = here.fields()[i];
      if (a.items != b.items || a.pairs != b.pairs ||
          std::memcmp(a.ends, b.ends, a.items * sizeof(uint32_t)) != 0) {
        return Malformed(party, i, "another field section");
      }
    }
    return true;
  }

  void CheckSection(int prover, size_t index) {
    const ProofSection& l = parties_[PrevParty(prover)].sections()[index];
    const ProofSection& r = parties_[NextParty(prover)].sections()[index];
    const ProofSection& own = parties_[prover].sections()[index];
    const size_t w = GadgetWires(l.gadget), o = GadgetBits(l.gadget), row = l.row;
    for (size_t i = 0; i < l.nodes * w; ++i) {
      const auto other = [&](const uint8_t* theirs, const uint8_t* ours) {
        return std::memcmp(theirs + i * row, ours + i * row, row) != 0;
      };
      result_.other_wires += other(l.Wires(kProofOwn), own.Wires(kProofLeft)) +
                             other(r.Wires(kProofLeft), own.Wires(kProofOwn));
    }
    for (size_t node = 0; node < l.nodes; ++node) {
      for (size_t at = 0; at < row; at += sizeof(Word)) {
        Word left[22], right[22], x[22], q_x[22], q_right[22];
        for (size_t k = 0; k < w; ++k) {
          left[k] = WordAt(l.Wires(kProofOwn, node), k * row + at);
          right[k] = WordAt(r.Wires(kProofLeft, node), k * row + at);
          x[k] = left[k] ^ right[k];
        }
        QuadraticParts(l.gadget, x, q_x);
        QuadraticParts(l.gadget, right, q_right);
        for (size_t bit = 0; bit < o; ++bit) {
          const Word t_left = WordAt(l.T(kProofOwn, node), bit * row + at);
          const Word t_right = WordAt(r.T(kProofLeft, node), bit * row + at);
          const Word wrong = q_x[bit] ^ t_left ^ t_right ^ q_right[bit];
          for (size_t lane = 0; lane < 64; ++lane) {
            if (wrong >> lane & 1) {
              result_.false_bits.push_back({prover, false, index, node, bit, 8 * at + lane});
            }
          }
        }
      }
    }
  }

  void CheckField(int prover, size_t index) {
    const ProofFieldSection& l = parties_[PrevParty(prover)].fields()[index];
    const ProofFieldSection& r = parties_[NextParty(prover)].fields()[index];
    const ProofFieldSection& own = parties_[prover].fields()[index];
    size_t pair = 0;
    for (size_t item = 0; item < l.items; ++item) {
      Block sum = XorBlocks(l.Sum(kProofOwn)[item], r.Sum(kProofLeft)[item]);
      for (; pair < l.ends[item]; ++pair) {
        const Block &ls = l.S(kProofOwn)[pair], &lt = l.T(kProofOwn)[pair];
        const Block &rs = r.S(kProofLeft)[pair], &rt = r.T(kProofLeft)[pair];
        sum = XorBlocks(sum, GfMultiply(rs, rt));
        sum = XorBlocks(sum, GfMultiply(XorBlocks(ls, rs), XorBlocks(lt, rt)));
        result_.other_wires += (ls != own.S(kProofLeft)[pair]) + (rs != own.S(kProofOwn)[pair]) +
                               (lt != own.T(kProofLeft)[pair]) + (rt != own.T(kProofOwn)[pair]);
      }
      if (sum != Block{}) result_.false_bits.push_back({prover, true, index, item, 0, 0});
    }
  }

  const std::array<Recording, 3>& parties_;
  OracleResult result_;
};

}  // namespace

void QuadraticParts(Gadget gadget, const uint64_t* wires, uint64_t* bits) {
  if (gadget == Gadget::kSbox17) return Sbox17(wires, bits);
  if (gadget == Gadget::kSbox22) return Sbox22(wires, bits);
  bits[0] = 0;
  for (size_t k = 0; k < GadgetWires(gadget); k += 2) bits[0] ^= wires[k] & wires[k + 1];
}

void Recording::Add(const ProofLog& log) {
  for (const ProofSection& s : log.sections()) {
    memory_.push_back(std::make_unique<std::vector<uint8_t>>(s.rows, s.rows + s.bytes()));
    sections_.push_back(s);
    sections_.back().rows = memory_.back()->data();
  }
  for (const ProofFieldSection& s : log.field_sections()) {
    const auto* begin = reinterpret_cast<const uint8_t*>(s.blocks);
    const auto* end = reinterpret_cast<const uint8_t*>(s.ends + s.items);
    memory_.push_back(std::make_unique<std::vector<uint8_t>>(begin, end));
    ProofFieldSection copy = s;
    copy.blocks = reinterpret_cast<Block*>(memory_.back()->data());
    copy.ends = reinterpret_cast<uint32_t*>(copy.Sum(kProofRoles));
    fields_.push_back(copy);
  }
}

OracleResult AskOracle(const std::array<Recording, 3>& parties) { return Oracle(parties).Run(); }

}  // namespace mpckdc
