// SPDX-License-Identifier: Apache-2.0
// Keys, messages and what must come out of `mpc-bench rfc3962`, all from the setup's seed. Each
// login has round keys and HMAC states of its own in memory, freshly shared; the keys repeat every
// kDistinctKeys logins. One login's shares:
//
//     usage 1, PA-ENC-TIMESTAMP   | round keys of Ke | states of Ki |
//     usage 3, AS-REP             | round keys of Ke | states of Ki |
//     usage 56, AS-REQ checksum   | states of Kc |
#ifndef MPC_SERVER_BENCH_LOGIN_WORKLOAD_H_
#define MPC_SERVER_BENCH_LOGIN_WORKLOAD_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/bench/setup.h"
#include "mpc-server/circuit/aes_circuit.h"
#include "mpc-server/circuit/cbc_cts.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc::bench {

using Bytes = std::vector<uint8_t>;

// Sizes that follow from a setup with logins.
struct LoginSizes {
  explicit LoginSizes(const BenchSetup& setup);

  const Enctype& enctype;
  AesBits bits;
  size_t round_keys, states;   // blocks of a usage
  size_t key_blocks;           // of one login's shares
  size_t usage3, usage56;      // where they begin in them
  size_t text_bytes;           // confounder and reply
  size_t digest_blocks;
  // What is verified of a login: confounder | message | HMAC | checksum | ticket's blocks.
  size_t message, mac, checksum, ticket, outputs;
};

// A ticket of 166 bytes under the krbtgt key of enctype aes256-gcm: 12 blocks of keystream for it
// and its zero bytes, and the tag's mask.
inline constexpr size_t kTicketBlocks = 13;
inline constexpr size_t kTimestampBytes = 28;  // PA-ENC-TS-ENC with microseconds
inline constexpr size_t kPreauthBytes = kConfounderBytes + kTimestampBytes;  // without the HMAC

// The public facts of a login, and the reply's plaintext.
Bytes TimestampOf(const BenchSetup& setup, size_t login);
Bytes RequestOf(const BenchSetup& setup, size_t login, uint32_t batch);
Bytes ReplyOf(const BenchSetup& setup, size_t login, uint32_t batch);
Block TicketInput(size_t login, size_t block, uint32_t batch);

// The keys in the clear, and what a client and an ordinary KDC make with them, by OpenSSL.
class LoginOracle {
 public:
  explicit LoginOracle(const BenchSetup& setup);

  // PA-ENC-TIMESTAMP: ciphertext | HMAC.
  Bytes Preauth(size_t login) const;
  Bytes BaseKey(size_t login) const;
  // One login's outputs (LoginSizes), joined: true if they are what they must be.
  bool IsRight(size_t login, uint32_t batch, absl::Span<const Block> outputs) const;

 private:
  struct Keys {
    Bytes ke1, ki1, ke3, ki3, kc56;
  };
  const Keys& KeysOf(size_t login) const { return keys_[login % keys_.size()]; }
  bool IsRightReply(size_t login, uint32_t batch, const Bytes& outputs) const;
  Bytes MacOf(const Bytes& key, const Bytes& text, const Bytes& ciphertext) const;

  const BenchSetup setup_;
  const LoginSizes sizes_;
  std::vector<Keys> keys_;
  Bytes ticket_key_;
};

// One party's shares of the logins [first, first + logins).
class LoginKeys {
 public:
  LoginKeys(const BenchSetup& setup, int party, size_t first, size_t logins);

  const SharedBlock* Preauth(size_t i) const { return &shares_[i * sizes_.key_blocks]; }
  const SharedBlock* Reply(size_t i) const { return Preauth(i) + sizes_.usage3; }
  const SharedBlock* Checksum(size_t i) const { return Preauth(i) + sizes_.usage56; }
  // HMAC states behind a usage's round keys.
  const SharedBlock* StatesOf(const SharedBlock* usage) const;
  const SharedBlock* Ticket() const { return ticket_.data(); }
  size_t bytes() const { return (shares_.size() + ticket_.size()) * sizeof(SharedBlock); }

 private:
  const LoginSizes sizes_;
  SecretVector<SharedBlock> shares_, ticket_;
};

// Logins that are verified, and their outputs in the order of the logins.
std::vector<size_t> SampleOfLogins(const BenchSetup& setup);
std::vector<size_t> OutputsOfLogins(const BenchSetup& setup, absl::Span<const size_t> logins);
bool LoginsAreRight(const LoginOracle& oracle, const BenchSetup& setup, uint32_t batch,
                    absl::Span<const size_t> logins,
                    const std::array<std::vector<SharedBlock>, kParties>& shares);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_LOGIN_WORKLOAD_H_
