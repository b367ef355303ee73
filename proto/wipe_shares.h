// SPDX-License-Identifier: Apache-2.0
//
// protobuf frees its strings as they are. Both ends of a job or an answer wipe what was secret in it
// first.
#ifndef PROTO_WIPE_SHARES_H_
#define PROTO_WIPE_SHARES_H_

#include "proto/kdc_key.pb.h"

namespace mpckdc {

// Overwrites the shares of keystream, plaintext, messages and tags, and leaves the rest.
void WipeShares(v1::ServerMessage& message);

// Overwrites the shares of plaintexts that are to be sealed.
void WipeShares(v1::Job& job);
void WipeShares(v1::KdcMessage& message);

}  // namespace mpckdc

#endif  // PROTO_WIPE_SHARES_H_
