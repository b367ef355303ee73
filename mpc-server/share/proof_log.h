// SPDX-License-Identifier: Apache-2.0
// What a server keeps of a run so that the three can prove to each other that every bit sent was
// right. Circuits write it while they compute (ZeroShares::log()); who proves reads it. Data only:
// nothing here knows AES or a hash.
//
// The statement, for each bit r_i that P_i sent to P_{i+1} (share/circuit.h), with Q quadratic
// without linear part and l linear; L = P_{i-1}, R = P_{i+1}:
//
//     Q(x_i) = tL + (tR + Q(a_i))     tL = l(a_{i-1}) + F(k_i)  at L,   tR = r_i + F(k_{i+1})  at R
//
// F(k_i), F(k_{i+1}) are the two halves of P_i's zero share. L knows a_{i-1}, R knows a_i, and
// x_i = a_{i-1} + a_i. So each server, P_j, writes for each bit the wires of both its components
// and two values t; for Q(x) it adds up the wires:
//
//     role 0, "own"    a_j, known to the next one     tL: P_j is L of P_{j+1}: l(a_j) + F(k_{j+1})
//     role 1, "left"   a_{j-1}, known to the one      tR: P_j is R of P_{j-1}: r_{j-1} as received
//                      before                             + F(k_j)
//
// A section: up to 32 instances ("nodes") of one gadget, each in up to 512 lanes. A row is one bit
// of all lanes: 8 bytes for at most 64 lanes, else 64 (lane j: bit j%8 of byte j/8).
//
//     wires   [role 2][node 32][wire w]         rows        w wires and o bits of a gadget:
//     t       [role 2][node 32][bit o]          rows        see gadgets.h
//
// Nodes beyond `nodes` and lanes beyond `lanes` are zero in all rows.
//
// A field section: sums of products in GF(2^128) (GHASH's order of bits), sent as 16 bytes each.
// Item n is the sum over its pairs of s*t; pairs from ends[n-1] to ends[n]. As above, with blocks.
//
//     s       [role 2][pair]                    blocks
//     t       [role 2][pair]                    blocks
//     sum     [role 2][item]                    blocks      role 0: tL, role 1: tR
//
// Sections are opened and closed by public numbers alone, and circuits run in the same order at the
// three, so sections() are the same at the three but for their rows: those that are closed, in the
// order in which they were. One that is open belongs to a circuit in the midst of it, and nothing
// that rests on its bits has left that circuit: it stays open over a Clear() and is proved later.
#ifndef MPC_SERVER_SHARE_PROOF_LOG_H_
#define MPC_SERVER_SHARE_PROOF_LOG_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/share/gadgets.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

inline constexpr size_t kProofNodes = 32;
inline constexpr size_t kProofLanes = 512;
inline constexpr size_t kFewProofLanes = 64;
// A section with rows of 64 bytes costs as much whatever its lanes, and those with rows of 8 are
// proved side by side. So a group of at most so many lanes has one of these for each 64.
inline constexpr size_t kMostSplitLanes = 256;
inline constexpr size_t kMostSplitSections = kMostSplitLanes / kFewProofLanes;
inline constexpr size_t ProofSectionsFor(size_t lanes) {
  return lanes <= kMostSplitLanes ? (lanes + kFewProofLanes - 1) / kFewProofLanes : 1;
}
// Of section i of such a group.
inline constexpr size_t ProofLanesOf(size_t lanes, size_t i) {
  const size_t left = lanes - kFewProofLanes * i;
  return lanes > kMostSplitLanes ? lanes : left < kFewProofLanes ? left : kFewProofLanes;
}
enum ProofRole { kProofOwn = 0, kProofLeft = 1 };
inline constexpr int kProofRoles = 2;

struct ProofSection {
  Gadget gadget{};
  uint32_t lanes = 0;
  uint32_t nodes = 0;  // known when it is closed
  uint32_t row = 0;    // bytes: 8 or 64
  bool far = false;    // behind more than a core's caches hold: better written past them
  uint8_t* rows = nullptr;

  // A node's rows lie behind each other, `row` bytes apart, and nodes too.
  uint8_t* Wires(int role, size_t node = 0) const {
    const auto plane = static_cast<size_t>(role) * kProofNodes;
    return rows + (plane + node) * GadgetWires(gadget) * row;
  }
  uint8_t* T(int role, size_t node = 0) const {
    const auto plane = static_cast<size_t>(role) * kProofNodes;
    return Wires(kProofRoles) + (plane + node) * GadgetBits(gadget) * row;
  }
  size_t bytes() const {
    return kProofRoles * kProofNodes * (GadgetWires(gadget) + GadgetBits(gadget)) * row;
  }
};

struct ProofFieldSection {
  uint32_t items = 0, pairs = 0;
  Block* blocks = nullptr;
  uint32_t* ends = nullptr;  // public

  Block* S(int role) const { return blocks + static_cast<size_t>(role) * pairs; }
  Block* T(int role) const { return S(kProofRoles) + static_cast<size_t>(role) * pairs; }
  Block* Sum(int role) const { return T(kProofRoles) + static_cast<size_t>(role) * items; }
};

// Of one session and one thread. Memory grows and is kept: no allocation in steady state. There is
// no bound here: who runs circuits looks at bytes() and proves before it is too much.
class ProofLog {
 public:
  ProofLog() = default;
  ProofLog(const ProofLog&) = delete;
  ProofLog& operator=(const ProofLog&) = delete;

  // For circuits. The rows hold anything: whoever opened a section writes every row of the nodes
  // that it names when it closes it. Rows of lanes that are not there may hold anything then.
  ProofSection Open(Gadget gadget, size_t lanes);
  void Close(const ProofSection& section, size_t nodes);
  // The same, with the ends to be filled in at once.
  ProofFieldSection OpenField(size_t items, size_t pairs);
  void CloseField(const ProofFieldSection& section);

  // Memory until the next call, for what a circuit writes from.
  uint8_t* Scratch(size_t size);

  // For who proves.
  absl::Span<const ProofSection> sections() const { return sections_; }
  absl::Span<const ProofFieldSection> field_sections() const { return fields_; }
  bool empty() const { return sections_.empty() && fields_.empty(); }
  // Bytes of messages that closed sections speak of, since Reset(): what Cost::bytes_to_next is of
  // circuits that open nothing to the servers.
  uint64_t message_bytes() const { return message_bytes_; }

  // Of secret memory: in sections, open or closed; and held.
  size_t bytes() const { return used_; }
  size_t capacity() const;

  // Forgets what is closed.
  void Clear();
  // Forgets everything: no circuit is in the midst of anything.
  void Reset();

 private:
  // Sections of one size that were forgotten while others were open.
  struct FreeList {
    size_t size;
    std::vector<uint8_t*> free;
  };
  uint8_t* Take(size_t size);
  void Give(uint8_t* data, size_t size);
  void Rewind();

  std::vector<ProofSection> sections_;
  std::vector<ProofFieldSection> fields_;
  uint64_t message_bytes_ = 0;
  size_t open_ = 0, used_ = 0;

  std::vector<SecretBytes> slabs_;
  size_t slab_ = 0, at_ = 0;  // where the next section that finds no free one begins
  std::vector<FreeList> free_;
  SecretBytes scratch_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_PROOF_LOG_H_
