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
// All opens are judged as soon as their HMACs are there: one bit each, opened to the servers. The
// text of a good pre-authentication is opened to them next, since it is a time stamp. What else
// belongs to the job of a bad or a late one is abandoned then: anybody may send zeros, or what he
// sniffed an hour ago, with a long request, whose checksum is a long chain.
//
// The confounder is drawn on shares: a KDC that chose it could have any first block encrypted. A
// seal's ciphertext is the KDC's in the end, whatever the servers think of the job; what stays
// among them until the job is judged is the HMAC of a message to open, and its text.
#ifndef MPC_SERVER_COMPUTE_CTS_WORK_H_
#define MPC_SERVER_COMPUTE_CTS_WORK_H_

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes/cbc_cts.h"
#include "mpc-server/circuit/checks.h"
#include "mpc-server/circuit/hash/hmac.h"
#include "mpc-server/compute/cts_part.h"
#include "mpc-server/compute/garbled_cts.h"
#include "mpc-server/compute/protocol_choice.h"
#include "mpc-server/job/preauth_timestamp.h"
#include "mpc-server/share/flow.h"
#include "mpc-server/share/reveal.h"
#include "mpc-server/share/session.h"

namespace mpckdc {

// The circuits and their buffers, kept from batch to batch. One for each place in the flow, made
// when it is first needed.
class CtsCircuits {
 public:
  explicit CtsCircuits(int party)
      : opened_ciphertext{OpenToServers(party, "ciphertext"), OpenToServers(party, "ciphertext")},
        opened_times(party, "pre-auth timestamp") {}

  CtsDecrypt& decrypt(AesBits bits) { return Made(decrypt_[bits == AesBits::k256], bits); }
  CtsEncrypt& encrypt(AesBits bits) { return Made(encrypt_[bits == AesBits::k256], bits); }
  // What they read is public when the batch begins;
  Hmac& first_mac(HashKind hash) { return Made(first_mac_[static_cast<size_t>(hash)], hash); }
  // is of messages to open, which are judged before the others end;
  Hmac& open_mac(const Enctype& enctype) {
    return Made(open_mac_[enctype.key_bytes == 32][enctype.family == EnctypeFamily::kRfc3962],
                enctype.hash);
  }
  // is texts that came from the KDC;
  Hmac& text_mac() { return Made(text_mac_, HashKind::kSha1); }
  // is ciphertexts of 19 or 20.
  Hmac& cipher_mac(AesBits bits) {
    return Made(cipher_mac_[bits == AesBits::k256],
                bits == AesBits::k256 ? HashKind::kSha384 : HashKind::kSha256);
  }

  std::array<OpenToServers, 2> opened_ciphertext;  // of 19, of 20
  std::array<SecretVector<SharedBlock>, 2> to_open;
  OpenToServers opened_times;  // of good pre-authentications
  SecretVector<SharedBlock> times;

 private:
  template <class T, class Arg>
  static T& Made(std::unique_ptr<T>& place, Arg arg) {
    if (place == nullptr) place = std::make_unique<T>(arg);
    return *place;
  }
  std::unique_ptr<CtsDecrypt> decrypt_[2];
  std::unique_ptr<CtsEncrypt> encrypt_[2];
  std::unique_ptr<Hmac> first_mac_[3], open_mac_[2][2], text_mac_, cipher_mac_[2];
};

class CtsWork : public Flow {
 public:
  // `circuits` is the caller's and serves one batch at a time.
  CtsWork(PartyContext& party, CtsCircuits& circuits, const PreauthWindow& window)
      : party_(party), circuits_(circuits), window_(window), garbled_(party, window) {}

  // The parts that follow are of another job.
  void NextJob() { ++job_; }
  // What the parts refer to stays the caller's until Done().
  void Add(CtsOpen& open) {
    AddWork(open, CtsPartKind::kOpen, open.message.ciphertext, {});
    parts_.back().given_mac = open.message.mac;
  }
  void Add(CtsSeal& seal) { AddWork(seal, CtsPartKind::kSeal, {}, seal.text); }
  void Add(CtsMac& mac) { AddWork(mac, CtsPartKind::kMac, mac.data, {}); }
  void Add(CtsVerify& mac) {
    AddWork(mac, CtsPartKind::kMac, mac.data, {});
    parts_.back().given_mac = mac.mac;
  }
  size_t parts() const { return parts_.size(); }
  // How the words of a hash are added in a batch of so many parts; the same at the three servers.
  static Adder AdderOf(HashKind hash, size_t parts);
  // About how many rounds a part of so many bytes takes by itself.
  static uint64_t RoundsOf(const Enctype& enctype, CtsPartKind kind, size_t bytes);
  // Makes the programs of all hashes and adders, about half a second's work, so that no batch waits
  // for them. From any thread.
  static void PrepareAll();

  // What there is to compute, by either protocol. After the last part.
  CtsLoad Load() const;

  // After the last part. Draws the confounders. Without `adder`: AdderOf().
  void Begin(Sbox sbox, std::optional<Adder> adder = {});
  // The same by garbled circuits. `agreed`: a hash of what the three agreed on. `queue` runs them,
  // and this is done when that is.
  void BeginGarbled(const Digest& agreed, garble::RunQueue& queue);

  // ---- After Done(), in blocks ----
  absl::Span<const SharedBlock> text(const CtsOpen& open) const;  // confounder first
  absl::Span<const SharedBlock> ciphertext(const CtsSeal& seal) const;
  // The part's HMAC cut to its enctype's length, zeros behind it.
  SecretVector<SharedBlock> mac(const CtsPart& part) const;
  // Whether the message's own HMAC was right.
  bool good(const CtsOpen& open) const { return parts_[open.number].good; }
  // Whether macs to verify are judged as well.
  bool judges_macs() const { return is_garbled_; }
  bool good(const CtsVerify& mac) const { return parts_[mac.number].good; }
  // What is zero if and only if the HMAC that the part brought is right.
  void AppendCheck(const CtsVerify& mac, SecretVector<SharedBlock>* out) const {
    AppendDifference(parts_[mac.number], mac.mac, out);
  }
  // Of a good pre-authentication.
  const SecretBytes& opened_text(const CtsOpen& open) const { return *parts_[open.number].opened; }

  Cost DeclaredCost() const override;

 private:
  using PartWork = CtsPartWork;

  void AddWork(CtsPart& part, CtsPartKind kind, absl::string_view public_bytes,
               TextSharesView text);
  SecretVector<SharedBlock> MacOf(const PartWork& part) const;
  void AppendDifference(const PartWork& part, absl::string_view mac,
                        SecretVector<SharedBlock>* out) const;
  template <class Is>
  std::vector<PartWork*> Select(Is is);
  std::vector<PartWork*> Opens(const Enctype& enctype);
  void StartOpens(AesBits bits);
  void StartOpenMacs(const Enctype& enctype);
  void CheckOpens();
  void JudgeOpens();
  void BeforeTimes();
  void OpenTimes();
  void JudgeTimes();
  void AbandonMacs(const absl::flat_hash_set<size_t>& jobs);
  void StartFirstMacs(HashKind hash);
  void TakeTexts();
  void StartTexts();
  void StartSeals(AesBits bits);
  void OpenCiphertexts(AesBits bits);
  Adder adder(HashKind hash) const { return adder_.value_or(AdderOf(hash, parts_.size())); }
  void StartMacs(Hmac& hmac, const std::vector<PartWork*>& parts,
                 std::function<void()> then = nullptr);
  Cost MacCost(HashKind hash, const std::vector<const PartWork*>& parts) const;
  Cost OpensCost(AesBits bits) const;
  Cost AllOpensCost() const;
  Cost SealsCost(AesBits bits) const;

  PartyContext& party_;
  CtsCircuits& circuits_;
  const PreauthWindow window_;
  Sbox sbox_ = Sbox::kThroughput;
  std::optional<Adder> adder_;
  size_t job_ = 0;
  std::vector<PartWork> parts_;
  GarbledCts garbled_;
  bool is_garbled_ = false;
  size_t opens_left_ = 0;    // enctypes whose opens' HMACs are under way
  size_t before_times_ = 0;  // what must end before time stamps are opened
  std::optional<ZeroCheck> check_;
  SecretVector<SharedBlock> texts_;  // of seals: confounder | text, each in whole blocks
};

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_CTS_WORK_H_
