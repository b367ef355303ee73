// SPDX-License-Identifier: Apache-2.0
//
// What a batch computes under keys of enctypes 17 to 20: messages to open, texts to seal,
// checksums.
#ifndef MPC_SERVER_COMPUTE_CTS_PART_H_
#define MPC_SERVER_COMPUTE_CTS_PART_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/compute/key_use.h"
#include "mpc-server/key/message_format.h"
#include "mpc-server/key/text_shares.h"

namespace mpckdc {

class Hmac;  // circuit/hash/hmac.h

struct CtsPart {
  CtsKeyUse key;
  size_t number = 0;  // CtsWork's
};
// As much of the HMAC as a nonce is long: it covers a random confounder.
Nonce ReplayIdOf(const CtsMessageView& message);

struct CtsOpen : CtsPart {
  CtsMessageView message;  // into the job

  Nonce ReplayId() const { return ReplayIdOf(message); }
};
// This server's components of a text, equally long. Into the job.
struct TextSharesView {
  absl::Span<const uint8_t> own, before;  // a_i, a_{i-1}

  TextSharesView() = default;
  TextSharesView(const TextShares& shares) {  // NOLINT: it is one
    if (shares.empty()) return;
    own = absl::MakeConstSpan(shares.own).subspan(kTextSaltBytes);
    before = absl::MakeConstSpan(shares.before).subspan(kTextSaltBytes);
  }
  size_t bytes() const { return own.size(); }
};
struct CtsSeal : CtsPart {
  TextSharesView text;
};
struct CtsMac : CtsPart {
  absl::string_view data;
};
struct CtsVerify : CtsMac {
  absl::string_view mac;
};

enum class CtsPartKind { kOpen, kSeal, kMac };

struct CtsPartWork {
  CtsPartKind kind;
  size_t job;
  const Enctype* enctype;
  const UsageKey* key;
  absl::string_view public_bytes;       // ciphertext of an open, data of a mac
  absl::string_view given_mac{};        // of an open, and of a mac to verify
  bool good = false;                    // likewise: the result
  std::optional<SecretBytes> opened{};  // of a good pre-authentication: its text
  TextSharesView text;                  // of a seal
  size_t first_block = 0;               // of a seal's text in texts_
  std::string iv_and_ciphertext{};      // 19 and 20
  // Where its circuits are: of rounds (cts_work.h);
  size_t cts_lane = 0;
  Hmac* hmac = nullptr;
  size_t mac_lane = 0;
  // of garbled runs, their results (garbled_cts.h).
  SecretVector<SharedBlock> garbled_text{}, garbled_mac{};

  AesBits bits() const { return enctype->key_bytes == 16 ? AesBits::k128 : AesBits::k256; }
  bool mac_of_text() const { return enctype->family == EnctypeFamily::kRfc3962; }
  bool preauth() const;
  bool judged() const { return !given_mac.empty(); }
  size_t text_bytes() const { return public_bytes.size() - kConfounderBytes; }  // of an open
  // Confounder and text, or the data.
  size_t bytes() const {
    return kind == CtsPartKind::kSeal ? kConfounderBytes + text.bytes() : public_bytes.size();
  }
  size_t mac_input_bytes() const {
    return bytes() + (kind != CtsPartKind::kMac && !mac_of_text() ? sizeof(Block) : 0);
  }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_CTS_PART_H_
