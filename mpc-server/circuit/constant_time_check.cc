// SPDX-License-Identifier: Apache-2.0
// Run under valgrind memcheck (cmake/constant_time.cmake): shares are marked
// undefined, so memcheck reports every branch and every address that depends on them. With the
// argument "leak" it branches on a share, to prove that the check sees.
#include <cstdio>
#include <string>

#include "mpc-server/base/secret.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/circuit/aes/cbc_cts.h"
#include "mpc-server/circuit/checks.h"
#include "mpc-server/circuit/derive/usage_key.h"
#include "mpc-server/circuit/gcm/ghash.h"
#include "mpc-server/circuit/hash/hmac.h"
#include "mpc-server/share/reveal.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc {
namespace {

// What was encrypted and decrypted again: its whole blocks come back.
absl::Status RunCts(PartyContext& party, const UsageKeyShare& key) {
  const SecretVector<SharedBlock> text = {key.h, key.round_keys[0], key.round_keys[1]};
  const size_t kBytes = 40;
  CtsEncrypt encrypt(AesBits::k256);
  encrypt.Reset({{key.round_keys.data(), text.data(), kBytes}});
  absl::Status s = RunTogether(party, {&encrypt});
  if (!s.ok()) return s;
  OpenToServers open(party.party(), "ciphertext");
  open.Reset(encrypt.ciphertext(0));
  s = RunTogether(party, {&open});
  if (!s.ok()) return s;
  std::vector<uint8_t> message;
  for (const Block& b : open.values()) message.insert(message.end(), b.begin(), b.end());
  CtsDecrypt decrypt(AesBits::k256);
  decrypt.Reset({{key.round_keys.data(), absl::MakeConstSpan(message).first(kBytes)}});
  s = RunTogether(party, {&decrypt});
  if (!s.ok()) return s;
  const SecretVector<SharedBlock> same = {decrypt.text(0)[0] ^ text[0],
                                          decrypt.text(0)[1] ^ text[1]};
  ZeroCheck check(party);
  check.Reset({same, decrypt.text(0)});
  s = RunTogether(party, {&check});
  if (!s.ok()) return s;
  return check.zero()[0] == 1 && check.zero()[1] == 0 ? s : absl::InternalError("wrong text");
}

// Both kinds of messages, both kinds of adders; few lanes and a group that is cut.
absl::Status RunHmacs(PartyContext& party, const std::vector<SharedBlock>& secret) {
  const std::vector<uint8_t> text(70, 1);
  for (HashKind hash : {HashKind::kSha1, HashKind::kSha256, HashKind::kSha384}) {
    std::vector<SharedBlock> states;
    for (size_t i = 0; i < 2 * HashStateBlocks(hash); ++i) {
      states.push_back(secret[i % secret.size()]);
    }
    std::vector<HmacLane> lanes(2, HmacLane{states.data(), text, nullptr, 0});
    lanes[1] = {states.data(), {}, states.data(), 27};
    std::vector<HmacLane> many(70, lanes[1]);
    Hmac few(hash), ripple(hash), group(hash);
    few.Reset(lanes, Adder::kPrefix);
    ripple.Reset(absl::MakeConstSpan(lanes).first(hash == HashKind::kSha1 ? 2 : 0), Adder::kRipple);
    group.Reset(absl::MakeConstSpan(many), Adder::kFewestRounds);
    RETURN_IF_ERROR(RunTogether(party, {&few, &ripple, &group}));
  }
  return absl::OkStatus();
}

absl::Status RunParty(PartyContext& party, const std::vector<SharedBlock>& base, bool leak) {
  ProofLog log;
  party.SetLog(&log);
  party.BeginBatch(1);
  UsageKeys derive(*FindEnctype(kEnctypeAes256Gcm));
  const UsageKeyRequest request = {base.data(), 3};
  derive.Reset(absl::MakeConstSpan(&request, 1));
  absl::Status s = RunTogether(party, {&derive});
  if (!s.ok()) return s;
  const UsageKeyShare& key = derive.results()[0];
  if (leak && key.h.x[0] == 0) std::puts("a branch on a share");

  std::vector<AesLane> lanes(70, {key.round_keys.data(), nullptr, Block{}});
  lanes[1].shared_input = &key.h;
  AesEncrypt aes(AesBits::k256);
  aes.Reset(lanes);
  GhashPowers powers;
  powers.Reset({GhashPowersRequest{key.h, 9}});
  s = RunTogether(party, {&aes, &powers});
  if (!s.ok()) return s;
  const std::vector<Block> blocks(9, Block{1});
  const SharedBlock tag = GhashLinear(blocks, powers.powers(0)) ^ aes.output(0);
  const std::vector<SharedBlock> zero(1, aes.output(2) ^ aes.output(3)), other(1, tag);
  ZeroCheck check(party);
  check.Reset({absl::MakeConstSpan(zero), absl::MakeConstSpan(other)});
  s = RunTogether(party, {&check});
  if (!s.ok()) return s;
  if (check.zero()[0] != 1 || check.zero()[1] != 0) return absl::InternalError("wrong result");
  s = RunCts(party, key);
  if (!s.ok()) return s;
  party.BeginBatch(2);
  s = RunHmacs(party, base);
  party.SetLog(nullptr);
  return s;
}

int Main(bool leak) {
  SeededRandomForTest random(1);
  std::array<std::vector<SharedBlock>, kParties> base;
  for (int b = 0; b < 2; ++b) {
    const auto shares = SplitForTest(Block{static_cast<uint8_t>(b + 1)}, random);
    for (int p = 0; p < kParties; ++p) base[p].push_back(shares[p]);
  }
  for (const auto& b : base) MarkSecret(b.data(), b.size() * sizeof(SharedBlock));
  MemoryRing ring;
  const auto statuses = RunThreeParties(
      ring, 1, [&](PartyContext& party) { return RunParty(party, base[party.party()], leak); },
      absl::Seconds(120));
  for (const absl::Status& s : statuses) {
    if (!s.ok()) return std::puts(s.ToString().c_str()), 1;
  }
  return 0;
}

}  // namespace
}  // namespace mpckdc

int main(int argc, char** argv) {
  return mpckdc::Main(argc > 1 && std::string(argv[1]) == "leak");
}
