// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/sample_circuits.h"

#include <type_traits>

#include "mpc-server/circuit/aes/cbc_cts.h"
#include "mpc-server/circuit/aes/key_schedule.h"
#include "mpc-server/circuit/checks.h"
#include "mpc-server/circuit/derive/usage_key.h"
#include "mpc-server/circuit/gcm/ghash.h"
#include "mpc-server/circuit/hash/hmac.h"
#include "mpc-server/circuit/hash/hmac_states.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc {

SampleShares RandomShares(size_t blocks, uint64_t seed) {
  SeededRandomForTest random(seed);
  SampleShares all;
  for (size_t i = 0; i < blocks; ++i) {
    Block value;
    random.Fill(absl::MakeSpan(value));
    const auto split = SplitForTest(value, random);
    for (int p = 0; p < kParties; ++p) all[p].push_back(split[p]);
  }
  return all;
}

MakeCircuit MakeAes(const AesSample& c) {
  const auto keys = std::make_shared<SampleShares>(RandomShares(AesRoundKeys(c.bits), 1));
  const auto inputs = std::make_shared<SampleShares>(RandomShares(c.lanes, 2));
  return [=](PartyContext& party) -> std::unique_ptr<Circuit> {
    std::vector<AesLane> lanes;
    for (size_t j = 0; j < c.lanes; ++j) {
      lanes.push_back({(*keys)[party.party()].data(), &(*inputs)[party.party()][j], {}});
      if (j % 3 == 0) lanes[j].shared_input = nullptr;  // a public block of zeros
    }
    std::unique_ptr<AesCipher> aes;
    if (c.direction == AesDirection::kEncrypt) {
      aes = std::make_unique<AesEncrypt>(c.bits, c.isa);
    } else {
      aes = std::make_unique<AesDecrypt>(c.bits, c.isa);
    }
    aes->Reset(lanes, c.sbox);
    return aes;
  };
}

MakeCircuit MakeKeySchedule(AesBits bits, size_t lanes, Isa isa) {
  const auto keys = std::make_shared<SampleShares>(RandomShares(lanes * AesKeyBlocks(bits), 3));
  return [=](PartyContext& party) {
    auto schedule = std::make_unique<KeySchedule>(bits, isa);
    schedule->Reset((*keys)[party.party()]);
    return schedule;
  };
}

MakeCircuit MakePowers(const std::vector<uint32_t>& counts, Isa isa) {
  const auto h = std::make_shared<SampleShares>(RandomShares(counts.size(), 4));
  return [=](PartyContext& party) {
    auto powers = std::make_unique<GhashPowers>(isa);
    std::vector<GhashPowersRequest> requests;
    for (size_t i = 0; i < counts.size(); ++i) {
      requests.push_back({(*h)[party.party()][i], counts[i]});
    }
    powers->Reset(requests);
    return powers;
  };
}

MakeCircuit MakeZeroCheck(Isa isa) {
  const auto t = std::make_shared<SampleShares>(RandomShares(6, 5));
  return [=](PartyContext& party) {
    auto check = std::make_unique<ZeroCheck>(party, "test", isa);
    const auto all = absl::MakeConstSpan((*t)[party.party()]);
    check->Reset({all.subspan(0, 1), all.subspan(1, 3), all.subspan(4, 2)});
    return check;
  };
}

MakeCircuit MakeHmac(const MacSample& c) {
  const auto states =
      std::make_shared<SampleShares>(RandomShares(c.lanes * 2 * HashStateBlocks(c.hash), 6));
  const auto texts = std::make_shared<SampleShares>(RandomShares(4, 7));
  const auto plain = std::make_shared<std::vector<uint8_t>>(90, 0x35);
  return [=](PartyContext& party) {
    std::vector<HmacLane> lanes(c.lanes);
    for (size_t j = 0; j < c.lanes; ++j) {
      lanes[j].states = &(*states)[party.party()][j * 2 * HashStateBlocks(c.hash)];
      if (j % 2 == 0) {
        lanes[j].public_message = absl::MakeConstSpan(*plain).first(j % 8 == 0 ? 90 : 30);
      } else {
        lanes[j].shared_message = (*texts)[party.party()].data();
        lanes[j].bytes = 40;
      }
    }
    auto hmac = std::make_unique<Hmac>(c.hash, c.isa);
    hmac->Reset(lanes, c.adder);
    return hmac;
  };
}

MakeCircuit MakeHmacStates(const MacSample& c) {
  const auto keys = std::make_shared<SampleShares>(RandomShares(c.lanes, 8));
  return [=](PartyContext& party) {
    std::vector<HmacKey> all;
    for (size_t j = 0; j < c.lanes; ++j) all.push_back({&(*keys)[party.party()][j], 16});
    auto states = std::make_unique<HmacStates>(c.hash, c.isa);
    states->Reset(all, c.adder);
    return states;
  };
}

namespace {

template <class Cts>
MakeCircuit MakeCts(AesBits bits, Sbox sbox) {
  const auto keys = std::make_shared<SampleShares>(RandomShares(AesRoundKeys(bits), 9));
  const auto text = std::make_shared<SampleShares>(RandomShares(4, 10));
  return [=](PartyContext& party) {
    static const std::vector<uint8_t> kMessage(64, 0x77);
    const SharedBlock* round_keys = (*keys)[party.party()].data();
    auto cts = std::make_unique<Cts>(bits);
    if constexpr (std::is_same_v<Cts, CtsEncrypt>) {
      const SharedBlock* blocks = (*text)[party.party()].data();
      cts->Reset({CtsEncryptLane{round_keys, blocks, 50}, CtsEncryptLane{round_keys, blocks, 16},
                  CtsEncryptLane{round_keys, blocks, 32}},
                 sbox);
    } else {
      const auto message = absl::MakeConstSpan(kMessage);
      cts->Reset({CtsDecryptLane{round_keys, message.first(50)},
                  CtsDecryptLane{round_keys, message.first(64)}},
                 sbox);
    }
    return cts;
  };
}

}  // namespace

MakeCircuit MakeCtsEncrypt(AesBits bits, Sbox sbox) { return MakeCts<CtsEncrypt>(bits, sbox); }
MakeCircuit MakeCtsDecrypt(AesBits bits, Sbox sbox) { return MakeCts<CtsDecrypt>(bits, sbox); }

MakeCircuit MakeUsageKeys(const Enctype& enctype) {
  const auto bases = std::make_shared<SampleShares>(RandomShares(4, 11));
  return [=, &enctype](PartyContext& party) {
    auto keys = std::make_unique<UsageKeys>(enctype);
    const SharedBlock* base = (*bases)[party.party()].data();
    keys->Reset(
        {UsageKeyRequest{base, 3}, UsageKeyRequest{base, 56}, UsageKeyRequest{base + 2, 2}});
    return keys;
  };
}

}  // namespace mpckdc
