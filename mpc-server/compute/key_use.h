// SPDX-License-Identifier: Apache-2.0
//
// The key of one of a job's parts. There are two families of messages, gcm and those of enctypes 17
// to 20; a part is of its key's family. That is decided here, once: behind it each family has its
// own types, and code for one cannot be given a part of the other.
#ifndef MPC_SERVER_COMPUTE_KEY_USE_H_
#define MPC_SERVER_COMPUTE_KEY_USE_H_

#include <variant>

#include "mpc-server/circuit/aes/aes_circuit.h"
#include "mpc-server/store/key_record.h"

namespace mpckdc {

// In the record that the batch keeps.
struct KeyUse {
  const KeyInfo* info = nullptr;
  const UsageKey* key = nullptr;
  Handle replay_handle{};  // key_record.h

  const Enctype& enctype() const { return *FindEnctype(info->enctype); }
  AesBits bits() const { return enctype().key_bytes == 16 ? AesBits::k128 : AesBits::k256; }
};
struct GcmKeyUse : KeyUse {};
struct CtsKeyUse : KeyUse {};
using AnyKeyUse = std::variant<GcmKeyUse, CtsKeyUse>;

inline AnyKeyUse UseOf(const KeyRecord& record, const UsageKey& key) {
  const KeyUse use{&record.info, &key, record.replay_handle()};
  if (use.enctype().is_gcm()) return GcmKeyUse{use};
  return CtsKeyUse{use};
}

// A part of either family.
template <class GcmPart, class CtsPart>
const KeyUse& KeyOf(const std::variant<GcmPart, CtsPart>& part) {
  return std::visit([](const auto& p) -> const KeyUse& { return p.key; }, part);
}

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_KEY_USE_H_
