// SPDX-License-Identifier: Apache-2.0
//
// Key records with arbitrary shares, for tests of whatever stores or sends them.
#ifndef MPC_SERVER_TESTING_RECORDS_H_
#define MPC_SERVER_TESTING_RECORDS_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/store/key_record.h"

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

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_RECORDS_H_
