// SPDX-License-Identifier: Apache-2.0
//
// What one server holds for one key: public facts about it (KeyInfo) and this server's replicated
// share of the base key and of what is derived from it for each usage u (key/enctype.h):
//
//   gcm        Kg(u)'s round keys, H(u) = AES(Kg(u), 0)
//   17 to 20   usage of messages: Ke(u)'s round keys, the states of HMAC under Ki(u)
//              usage of checksums: the states of HMAC under Kc(u)
#ifndef MPC_SERVER_STORE_KEY_RECORD_H_
#define MPC_SERVER_STORE_KEY_RECORD_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

// The base key's share: 1 block of AES-128 keys, 2 of AES-256 keys.
using SharedBase = SecretVector<SharedBlock>;

struct UsageKey {
  uint32_t usage = 0;                   // RFC 3961 key usage number
  SecretVector<SharedBlock> round_keys;  // 11 or 15; none where a usage of 17 to 20 is of checksums
  SharedBlock h{};                       // gcm alone
  // Enctypes 17 to 20: the states after key ^ ipad and key ^ opad, each HashStateBlocks() long.
  SecretVector<SharedBlock> mac_states{};
};

// Of a key that was made by copying one under another name (renamed.cc).
struct CopiedFrom {
  Handle handle{};        // the one that was copied
  PrincipalId lineage{};  // of the first of them, LineageOf() the principal whose it was
  Handle first{};         // the key that is no copy, of which all are

  friend bool operator==(const CopiedFrom&, const CopiedFrom&) = default;
};

// What a principal's keys and all their copies have in common, whatever names these got. It is no
// principal's id: who gets the name when it is free again has nothing to do with the copies.
PrincipalId LineageOf(const PrincipalId& principal);

struct KeyRecord {
  KeyInfo info;
  SharedBase base;
  SecretVector<UsageKey> usages;  // in locked memory as a whole: h lies inside
  std::optional<CopiedFrom> copied{};

  PrincipalId lineage() const { return copied ? copied->lineage : LineageOf(info.principal_id); }
  // Whose guesses at it are: its principal's, or of a copy all those of its lineage together,
  // whatever names they have.
  const PrincipalId& guessed() const { return copied ? copied->lineage : info.principal_id; }
  // Under what its pre-auths are remembered (replay_entry.h): one is spent for all copies of the key.
  const Handle& replay_handle() const { return copied ? copied->first : info.handle; }
  // The usage's key, or nullptr when the record has none.
  const UsageKey* FindUsage(uint32_t usage) const;
  std::vector<uint32_t> UsageNumbers() const;
};

// Calls `visit` for each shared block of a record, in the order of record_format.h: a usage has an
// h or states of HMAC.
template <class Visitor>
void ForEachBlock(KeyRecord& record, Visitor visit) {
  for (SharedBlock& block : record.base) visit(block);
  for (UsageKey& usage : record.usages) {
    for (SharedBlock& block : usage.round_keys) visit(block);
    if (usage.mac_states.empty()) visit(usage.h);
    for (SharedBlock& block : usage.mac_states) visit(block);
  }
}

// Says what is wrong with the record's facts, sizes or usages.
absl::Status CheckKeyRecord(const KeyRecord& record);

// Equal in every share. For tests and for the store's own checks; not constant time.
bool SameRecord(const KeyRecord& a, const KeyRecord& b);

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_KEY_RECORD_H_
