// SPDX-License-Identifier: Apache-2.0
// One of each circuit, set up with random inputs that are the same in every run: for tests of what
// circuits record and of its proofs.
#ifndef MPC_SERVER_TESTING_SAMPLE_CIRCUITS_H_
#define MPC_SERVER_TESTING_SAMPLE_CIRCUITS_H_

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes/aes_circuit.h"
#include "mpc-server/circuit/hash/adder.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/hash_kind.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

// Of random blocks, the same for the same seed.
using SampleShares = std::array<SecretVector<SharedBlock>, kParties>;
SampleShares RandomShares(size_t blocks, uint64_t seed);

// Sets a circuit up at one party.
using MakeCircuit = std::function<std::unique_ptr<Circuit>(PartyContext& party)>;

struct AesSample {
  AesDirection direction;
  AesBits bits;
  Sbox sbox;
  size_t lanes;
  Isa isa = BestIsa();
};
// All lanes under one key; some inputs are shared and some public.
MakeCircuit MakeAes(const AesSample& sample);
MakeCircuit MakeKeySchedule(AesBits bits, size_t lanes, Isa isa = BestIsa());
MakeCircuit MakePowers(const std::vector<uint32_t>& counts, Isa isa = BestIsa());
// Three items, of one, three and two blocks.
MakeCircuit MakeZeroCheck(Isa isa = BestIsa());

struct MacSample {
  HashKind hash;
  Adder adder;
  size_t lanes;
  Isa isa = BestIsa();
};
// Lanes of different lengths, every other one public.
MakeCircuit MakeHmac(const MacSample& sample);
MakeCircuit MakeHmacStates(const MacSample& sample);

// Texts with and without stolen bytes.
MakeCircuit MakeCtsEncrypt(AesBits bits, Sbox sbox);
MakeCircuit MakeCtsDecrypt(AesBits bits, Sbox sbox);
// Three usages of two bases.
MakeCircuit MakeUsageKeys(const Enctype& enctype);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_SAMPLE_CIRCUITS_H_
