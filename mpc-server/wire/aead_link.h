// SPDX-License-Identifier: Apache-2.0
// Frames as AES-128-GCM records of our own, one each, after a TLS handshake that gave the keys.
// doc/frame_format.md draws them and says why they are safe. Internal to wire/.
#ifndef MPC_SERVER_WIRE_AEAD_LINK_H_
#define MPC_SERVER_WIRE_AEAD_LINK_H_

#include <vector>

#include "mpc-server/wire/raw_link.h"
#include "mpc-server/wire/record_cipher.h"

namespace mpckdc {

class AeadLink : public RawLink {
 public:
  AeadLink(Fd fd, const Secret<RecordKey>& sends, const Secret<RecordKey>& receives);

  Progress Flush() override;

 private:
  bool Sending() const override { return begun_ || sealed_at_ < sealed_end_; }
  absl::Status OpenHeader(const uint8_t header[kFrameHeaderSize]) override;
  void OpenPiece(absl::Span<uint8_t> piece) override { opener_.Open(piece); }
  absl::Status OpenTrailer(const uint8_t trailer[kMaxTrailer]) override;
  // Seals the next piece of what is queued: the rest of a frame, or many small ones.
  absl::Status SealPiece();

  RecordCipher sealer_, opener_;
  std::vector<uint8_t> sealed_;  // the piece on its way, unsent from sealed_at_ to sealed_end_
  size_t sealed_at_ = 0, sealed_end_ = 0;
  uint64_t sealed_plain_ = 0;    // bytes of frames that are sealed, since the link was made
  bool begun_ = false;           // the first frame queued is partly sealed
};

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_AEAD_LINK_H_
