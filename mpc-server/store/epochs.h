// SPDX-License-Identifier: Apache-2.0
//
// Share epochs. A refresh adds to every record a sharing of zero that the three servers make from a
// seed that they drew together: the keys stay, all shares change, and a copy of one server's shares
// from before is worth nothing beside a copy of another's from after.
//
//     component        a_0        a_1        a_2           a_0 + a_1 + a_2 = the key
//     held by        P0, P1     P1, P2     P2, P0          P_i has a_i and x_i = a_i + a_{i-1}
//     refresh adds   d_0        d_1        d_0 + d_1       to a_i  d_i, to x_i  d_{i+1}
//
//     d_i = XChaCha20(key D_i, nonce handle (16) | zeros (8)), D_i of the seed, for i = 0, 1
//
// so no message travels for a record. A store goes through these states:
//
//     epoch e  --Prepare-->  e, and the seed of e + 1  --Enter-->  e + 1, rewriting  --End-->  e +
//     1
//              <--Abandon--
//
// From Enter() on the store speaks of shares of epoch e + 1 alone: a record that is still of epoch
// e is refreshed whenever it is read, until Rewrite() has written it. When none is left End()
// deletes the seed, which is sealed under the key of epoch e, and erases that key from the key
// file.
//
// A party that lost its store begins again with an empty one and joins the epoch that the two
// others enter at that moment, by a seed that only they know:
//
//     empty  --PrepareJoin-->  empty, joining e + 1  --Enter-->  e + 1, receiving  --EndReceiving--
//
// While it is receiving, keys come in from the two others, one component from each.
//
// Several machines of a party on one store (fellows.h) see these steps there. Each works in the
// epoch that its session agreed on, and on finding another one in the store opens a new session.
// The new epoch's store key travels with the seed, sealed as it is; the old key is erased when all
// machines have the new one.
//
// Which servers may enter when is agree/epoch_agreement.h.
#ifndef MPC_SERVER_STORE_EPOCHS_H_
#define MPC_SERVER_STORE_EPOCHS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/store/key_record.h"

namespace mpckdc {

// Tells one attempt at a refresh from all others. Public.
using RefreshId = std::array<uint8_t, 16>;
// What the three servers know of a refresh, and nobody else ever may. Kept until End().
using RefreshSeed = Secret<std::array<uint8_t, 32>>;

// Of one server's store. Public.
struct EpochState {
  uint64_t epoch = 1;
  RefreshId began_by{};                  // zeros: in the store's first epoch
  absl::Time began = absl::UnixEpoch();  // by this server's clock; 1970: not known
  std::optional<RefreshId> prepared;     // into epoch + 1, or to be joined
  bool receiving = false;                // keys of the realm are missing
  bool rewriting = false;                // there may be records of epoch - 1
  int steward = 0;                       // the triple that may change the epoch
};

// What the store keeps of a refresh that has not ended, as the item `refresh`, sealed under the key
// of the epoch that it leaves (doc/share_store_format.md).
struct StoredRefresh {
  bool entered = false;
  bool joining = false;  // an empty store: the seed is nothing
  uint64_t into = 0;     // the epoch
  RefreshId id{};
  std::shared_ptr<const RefreshSeed> seed;
  std::shared_ptr<const SecretBytes> key;  // of `into`, for the party's other machines; or null
};
SecretBytes EncodeRefresh(const StoredRefresh& refresh);
absl::StatusOr<StoredRefresh> DecodeRefresh(absl::Span<const uint8_t> plain);

// How the present epoch began, as the item `epoch`.
struct EpochBegin {
  RefreshId began_by{};
  absl::Time began;
};
SecretBytes EncodeEpochBegin(const EpochBegin& begin);
absl::StatusOr<EpochBegin> DecodeEpochBegin(absl::Span<const uint8_t> plain);

// Makes party's shares of epoch `into` - 1 those of `into`.
void RefreshRecord(const RefreshSeed& seed, uint64_t into, int party, KeyRecord& record);

// What reads records of two epochs: `seed` while the store is rewriting.
struct EpochView {
  uint64_t epoch = 1;
  std::shared_ptr<const RefreshSeed> seed;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_EPOCHS_H_
