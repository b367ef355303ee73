// SPDX-License-Identifier: Apache-2.0
// The ring P0 -> P1 -> P2 -> P0.
#ifndef MPC_SERVER_WIRE_RING_H_
#define MPC_SERVER_WIRE_RING_H_

namespace mpckdc {

inline constexpr int kParties = 3;
inline constexpr int NextParty(int party) { return (party + 1) % kParties; }
inline constexpr int PrevParty(int party) { return (party + kParties - 1) % kParties; }

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_RING_H_
