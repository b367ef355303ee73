// SPDX-License-Identifier: Apache-2.0
//
// A key record as the bytes that get sealed (record_format.h), and back. The handle is not among
// them: it names the record and is bound by the seal.
#ifndef MPC_SERVER_STORE_RECORD_CODEC_H_
#define MPC_SERVER_STORE_RECORD_CODEC_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/store/key_record.h"

namespace mpckdc {

// `record` must satisfy CheckKeyRecord.
SecretBytes EncodeKeyRecord(const KeyRecord& record);

// InvalidArgument, saying what does not fit, unless `plain` is exactly one well-formed record.
absl::StatusOr<KeyRecord> DecodeKeyRecord(const Handle& handle, absl::Span<const uint8_t> plain);

// The public facts alone: reads no share.
absl::StatusOr<KeyInfo> DecodeKeyInfo(const Handle& handle, absl::Span<const uint8_t> plain);

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_RECORD_CODEC_H_
