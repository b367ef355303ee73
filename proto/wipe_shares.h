// SPDX-License-Identifier: Apache-2.0
//
// protobuf frees its strings as they are. Both ends of an answer wipe what was secret in it first.
#ifndef PROTO_WIPE_SHARES_H_
#define PROTO_WIPE_SHARES_H_

#include "proto/kdc_key.pb.h"

namespace mpckdc {

// Overwrites the shares of keystream and tags, and leaves the rest.
void WipeShares(v1::ServerMessage& message);

}  // namespace mpckdc

#endif  // PROTO_WIPE_SHARES_H_
