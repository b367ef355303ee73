// SPDX-License-Identifier: Apache-2.0
//
// Key records with arbitrary shares, for tests of whatever stores or sends them, and stores for them.
#ifndef MPC_SERVER_TESTING_RECORDS_H_
#define MPC_SERVER_TESTING_RECORDS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/lmdb.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

inline SharedBlock RandomShareForTest(RandomSource& random) {
  SharedBlock share;
  random.Fill(absl::MakeSpan(share.x));
  random.Fill(absl::MakeSpan(share.a));
  return share;
}

inline KeyRecord RecordForTest(RandomSource& random, const std::string& principal,
                               int32_t enctype = kEnctypeAes128Gcm,
                               KeyClass key_class = KeyClass::kUser) {
  KeyRecord record;
  random.Fill(absl::MakeSpan(record.info.handle));
  record.info.principal = principal;
  record.info.principal_id = PrincipalIdOf(principal);
  record.info.kvno = 1;
  record.info.enctype = enctype;
  record.info.salt = "EXAMPLE.COMalice";
  record.info.key_class = key_class;
  record.base.resize(BaseBlocks(enctype));
  for (SharedBlock& share : record.base) share = RandomShareForTest(random);
  for (uint32_t usage : UsagesOf(key_class)) {
    UsageKey& key = record.usages.emplace_back();
    key.usage = usage;
    key.round_keys.resize(RoundKeys(enctype, usage));
    for (SharedBlock& share : key.round_keys) share = RandomShareForTest(random);
    if (FindEnctype(enctype)->is_gcm()) key.h = RandomShareForTest(random);
    key.mac_states.resize(MacStateBlocks(enctype));
    for (SharedBlock& share : key.mac_states) share = RandomShareForTest(random);
  }
  return record;
}

// The key of every test's store.
inline StoreKeys StoreKeysForTest() {
  return *StoreKeys::Parse(AsBytes("1 " + std::string(64, '5')), "the test's keys");
}

inline const StoreIdentity kIdentityForTest{"EXAMPLE.COM", 1, 7};

// The production's store: FOLDER/shares.mdb.
inline absl::StatusOr<std::unique_ptr<ShareStore>> OpenLmdbForTest(const std::string& folder,
                                                                   uint64_t map_bytes = 64 << 20) {
  ASSIGN_OR_RETURN(std::unique_ptr<LmdbEngine> lmdb, LmdbEngine::Open(folder, map_bytes));
  return ShareStore::Open(std::move(lmdb), {kIdentityForTest, StoreKeysForTest(), &SystemRandom()});
}

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_RECORDS_H_
