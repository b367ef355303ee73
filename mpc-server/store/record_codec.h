// SPDX-License-Identifier: Apache-2.0
//
// A key record as the bytes that get sealed (record_format.h), and back. The handle is not among
// them: it names the record and is bound by the seal.
#ifndef MPC_SERVER_STORE_RECORD_CODEC_H_
#define MPC_SERVER_STORE_RECORD_CODEC_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/store/key_record.h"

namespace mpckdc {

// `record` must satisfy CheckKeyRecord.
SecretBytes EncodeKeyRecord(const KeyRecord& record);

// InvalidArgument, saying what does not fit, unless `plain` is exactly one well-formed record.
absl::StatusOr<KeyRecord> DecodeKeyRecord(const Handle& handle, absl::Span<const uint8_t> plain);

// One of the three components of the record's shares (epochs.h), with the facts: this party's own
// a_i, or a_{i-1}, which the party before has too.
SecretBytes EncodeComponent(const KeyRecord& record, bool of_prev);
// A party's record from its two components; they are secret from nobody but outsiders and the party
// that has neither. InvalidArgument: malformed, or the facts differ.
absl::StatusOr<KeyRecord> JoinComponents(const Handle& handle, absl::Span<const uint8_t> own,
                                         absl::Span<const uint8_t> of_prev);

// The public facts alone, and what a copy is one of: reads no share.
absl::StatusOr<KeyInfo> DecodeKeyInfo(const Handle& handle, absl::Span<const uint8_t> plain);
absl::StatusOr<std::optional<CopiedFrom>> DecodeCopied(const Handle& handle,
                                                       absl::Span<const uint8_t> plain);

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_RECORD_CODEC_H_
