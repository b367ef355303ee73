// SPDX-License-Identifier: Apache-2.0
// What G2 says of all that G1 sends to E: GHASH under a key of this run alone, plus a pad. G1 has
// neither, so other bytes of the same length have the same MAC with at most (blocks + 1) / 2^128.
// The length is agreed on beforehand and is part of the MAC.
#ifndef MPC_SERVER_GARBLE_TABLE_MAC_H_
#define MPC_SERVER_GARBLE_TABLE_MAC_H_

#include <array>
#include <memory>

#include "absl/types/span.h"
#include "mpc-server/garble/draws.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc::garble {

using MacTag = std::array<uint8_t, 16>;

class TableMac {
 public:
  explicit TableMac(const RunKey& key);
  ~TableMac();
  TableMac(const TableMac&) = delete;
  TableMac& operator=(const TableMac&) = delete;

  void Add(absl::Span<const uint8_t> bytes);  // a multiple of 16
  // Of all that was added. Once.
  MacTag Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What Add() does where no library knows the CPU: GHASH goes on from `sum` under `h`.
void PortableGhash(const Block& h, absl::Span<const uint8_t> bytes, Block& sum);

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_TABLE_MAC_H_
