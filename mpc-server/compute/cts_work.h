// SPDX-License-Identifier: Apache-2.0
//
// The parts of a batch under keys of enctypes 17 to 20, as one circuit beside the batch's AES
// blocks. What is known when the batch begins, begins with it; the rest as soon as it can:
//
//   17, 18  open   CBC-CTS decryption -> HMAC of the text
//           seal   text from the KDC's shares -> HMAC of the text, beside it the CBC chain
//   19, 20  open   HMAC of IV | ciphertext, beside it the CBC-CTS decryption
//           seal   text from the KDC's shares -> CBC chain -> ciphertext opened to the servers
//                  -> HMAC of IV | ciphertext
//   all     mac    HMAC of the data
//
// The confounder is drawn on shares: a KDC that chose it could have any first block encrypted. A
// seal's ciphertext is the KDC's in the end, whatever the servers think of the job; what stays
// among them until the job is judged is the HMAC of a message to open, and its text.
#ifndef MPC_SERVER_COMPUTE_CTS_WORK_H_
#define MPC_SERVER_COMPUTE_CTS_WORK_H_

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes/cbc_cts.h"
#include "mpc-server/circuit/hash/hmac.h"
#include "mpc-server/compute/key_use.h"
#include "mpc-server/key/message_format.h"
#include "mpc-server/share/flow.h"
#include "mpc-server/share/input.h"
#include "mpc-server/share/reveal.h"
#include "mpc-server/share/session.h"

namespace mpckdc {

struct CtsPart {
  CtsKeyUse key;
  size_t number = 0;  // CtsWork's
};
struct CtsOpen : CtsPart {
  CtsMessageView message;  // into the job

  // As much of the HMAC as a nonce is long: it covers a random confounder.
  Nonce ReplayId() const;
};
struct CtsSeal : CtsPart {
  absl::Span<const uint8_t> text_share;
};
struct CtsMac : CtsPart {
  absl::string_view data;
};
struct CtsVerify : CtsMac {
  absl::string_view mac;
};

// The circuits and their buffers, kept from batch to batch. One for each place in the flow, made
// when it is first needed.
class CtsCircuits {
 public:
  explicit CtsCircuits(int party)
      : opened_ciphertext{OpenToServers(party, "ciphertext"), OpenToServers(party, "ciphertext")} {}

  CtsDecrypt& decrypt(AesBits bits) { return Made(decrypt_[bits == AesBits::k256], bits); }
  CtsEncrypt& encrypt(AesBits bits) { return Made(encrypt_[bits == AesBits::k256], bits); }
  // What they read is public when the batch begins;
  Hmac& first_mac(HashKind hash) { return Made(first_mac_[static_cast<size_t>(hash)], hash); }
  // is texts that were decrypted, by key size, and those that came from the KDC;
  Hmac& open_mac(AesBits bits) { return Made(open_mac_[bits == AesBits::k256], HashKind::kSha1); }
  Hmac& text_mac() { return Made(text_mac_, HashKind::kSha1); }
  // is ciphertexts of 19 or 20.
  Hmac& cipher_mac(AesBits bits) {
    return Made(cipher_mac_[bits == AesBits::k256],
                bits == AesBits::k256 ? HashKind::kSha384 : HashKind::kSha256);
  }

  ShareInput input;
  std::array<OpenToServers, 2> opened_ciphertext;  // of 19, of 20
  std::array<SecretVector<SharedBlock>, 2> to_open;

 private:
  template <class T, class Arg>
  static T& Made(std::unique_ptr<T>& place, Arg arg) {
    if (place == nullptr) place = std::make_unique<T>(arg);
    return *place;
  }
  std::unique_ptr<CtsDecrypt> decrypt_[2];
  std::unique_ptr<CtsEncrypt> encrypt_[2];
  std::unique_ptr<Hmac> first_mac_[3], open_mac_[2], text_mac_, cipher_mac_[2];
};

class CtsWork : public Flow {
 public:
  // `circuits` is the caller's and serves one batch at a time.
  CtsWork(PartyContext& party, CtsCircuits& circuits) : party_(party), circuits_(circuits) {}

  // What the parts refer to stays the caller's until Done().
  void Add(CtsOpen& open) { AddWork(open, Kind::kOpen, open.message.ciphertext, {}); }
  void Add(CtsSeal& seal) { AddWork(seal, Kind::kSeal, {}, seal.text_share); }
  void Add(CtsMac& mac) { AddWork(mac, Kind::kMac, mac.data, {}); }
  size_t parts() const { return parts_.size(); }
  // How the words of a hash are added in a batch of so many parts; the same at the three servers.
  static Adder AdderOf(HashKind hash, size_t parts);
  // Makes the programs of all hashes and adders, about half a second's work, so that no batch waits
  // for them. From any thread.
  static void PrepareAll();

  // After the last part. Draws the confounders. Without `adder`: AdderOf().
  void Begin(Sbox sbox, std::optional<Adder> adder = {});

  // ---- After Done(), in blocks ----
  absl::Span<const SharedBlock> text(const CtsOpen& open) const;  // confounder first
  absl::Span<const SharedBlock> ciphertext(const CtsSeal& seal) const;
  // The part's HMAC cut to its enctype's length, zeros behind it.
  SecretVector<SharedBlock> mac(const CtsPart& part) const;
  // What is zero if and only if the HMAC that the part brought is right.
  void AppendCheck(const CtsOpen& open, SecretVector<SharedBlock>* out) const {
    AppendDifference(open, open.message.mac, out);
  }
  void AppendCheck(const CtsVerify& mac, SecretVector<SharedBlock>* out) const {
    AppendDifference(mac, mac.mac, out);
  }
  // The open's text without its confounder; and as bytes, once it is opened.
  void AppendText(const CtsOpen& open, SecretVector<SharedBlock>* out) const;
  static SecretBytes TextOf(const CtsOpen& open, absl::Span<const Block> opened);

  Cost DeclaredCost() const override;

 private:
  enum class Kind { kOpen, kSeal, kMac };
  struct PartWork {
    Kind kind;
    const Enctype* enctype;
    const UsageKey* key;
    absl::string_view public_bytes;            // ciphertext of an open, data of a mac
    absl::Span<const uint8_t> text_share;      // of a seal
    size_t first_block = 0;                    // of a seal's text in texts_
    std::string iv_and_ciphertext{};           // 19 and 20
    size_t cts_lane = 0;
    const Hmac* hmac = nullptr;
    size_t mac_lane = 0;

    AesBits bits() const { return enctype->key_bytes == 16 ? AesBits::k128 : AesBits::k256; }
    bool mac_of_text() const { return enctype->family == EnctypeFamily::kRfc3962; }
    // Its HMAC's input is public when the batch begins.
    bool mac_first() const {
      return kind == Kind::kMac || (kind == Kind::kOpen && !mac_of_text());
    }
    // Confounder and text, or the data.
    size_t bytes() const {
      return kind == Kind::kSeal ? kConfounderBytes + text_share.size() : public_bytes.size();
    }
    size_t mac_input_bytes() const {
      return bytes() + (kind != Kind::kMac && !mac_of_text() ? sizeof(Block) : 0);
    }
  };

  void AddWork(CtsPart& part, Kind kind, absl::string_view public_bytes,
               absl::Span<const uint8_t> text_share);
  void AppendDifference(const CtsPart& part, absl::string_view mac,
                        SecretVector<SharedBlock>* out) const;
  template <class Is>
  std::vector<PartWork*> Select(Is is);
  void StartOpens(AesBits bits);
  void StartFirstMacs(HashKind hash);
  void StartTexts();
  void SealTexts();
  void StartSeals(AesBits bits);
  void OpenCiphertexts(AesBits bits);
  Adder adder(HashKind hash) const { return adder_.value_or(AdderOf(hash, parts_.size())); }
  void StartMacs(Hmac& hmac, const std::vector<PartWork*>& parts);
  Cost MacCost(HashKind hash, const std::vector<const PartWork*>& parts) const;
  Cost OpensCost(AesBits bits) const;
  Cost SealsCost(AesBits bits) const;

  PartyContext& party_;
  CtsCircuits& circuits_;
  Sbox sbox_ = Sbox::kThroughput;
  std::optional<Adder> adder_;
  std::vector<PartWork> parts_;
  SecretVector<SharedBlock> texts_;  // of seals: confounder | text, each in whole blocks
};

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_CTS_WORK_H_
