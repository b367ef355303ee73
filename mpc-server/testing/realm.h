// SPDX-License-Identifier: Apache-2.0
//
// For tests and sim/ only: keys in the clear, what a client does with them, and what a KDC does
// with three servers' answers. In a library of its own that no production program links.
#ifndef MPC_SERVER_TESTING_REALM_H_
#define MPC_SERVER_TESTING_REALM_H_

#include <array>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/job/job.h"
#include "mpc-server/share/replicated_share.h"
#include "mpc-server/store/key_record.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

template <typename T>
using PerParty = std::array<T, kParties>;

// A key as the client (or nobody, for a drawn one) knows it.
struct PlainKey {
  KeyInfo info;
  std::vector<uint8_t> base;
};

PlainKey MakePlainKey(RandomSource& random, const std::string& principal, KeyClass key_class,
                      int32_t enctype, Gate gate = Gate::kTimestamp);

// Splits the base and everything derived from it.
PerParty<KeyRecord> ShareKey(const PlainKey& key, RandomSource& random);
// Joins three servers' records; InvalidArgument when the shares do not fit together or the usage
// keys are not the base's.
absl::StatusOr<PlainKey> JoinKey(const PerParty<KeyRecord>& records);
// Stages and commits one server's record under a transaction of the handle's bytes.
absl::Status Enrol(ShareStore& store, const KeyRecord& record, absl::Time now);

// ---- The client ----
std::string SealPreauth(const PlainKey& key, absl::Time time, RandomSource& random);

// What only a holder of the key can make: any header and text; and a message that does not begin
// with zero bytes.
std::string PlainSealText(const PlainKey& key, uint32_t usage, const Nonce& nonce,
                          const std::string& header, const std::string& plaintext);
std::string PlainSealRaw(const PlainKey& key, uint32_t usage, const Nonce& nonce,
                         const std::string& zero_and_plaintext);

// ---- The KDC ----

struct LoginSizes {
  uint32_t ticket = 166;
  uint32_t reply = 279;
  std::string as_req = std::string(180, 'q');  // empty: no checksum asked for
};
// LOGIN: open pre-auth, seal ticket, seal reply, checksum under usage 56. A client key of 17 to 20
// has no reply in it: that needs its plaintext (WithTexts).
Job LoginJob(JobId id, const PlainKey& client, const PlainKey& krbtgt, const std::string& preauth,
             const LoginSizes& sizes = {});

// The jobs for the three servers: each seal, of enctypes 17 to 20, with components of the text's
// first max_plaintext bytes.
PerParty<Job> WithTexts(const Job& job, const std::string& text, RandomSource& random);

// What three answers that all are OK come to; INCONSISTENT, which no server says then, when they
// contradict each other (the sums are there all the same). Otherwise the first verdict that is not
// OK.
JobResult Combine(const PerParty<JobResult>& answers);
TagResult Combine(const PerParty<TagResult>& answers);

// What a part came to under a gcm key, or under one of 17 to 20; throws if it was the other.
template <class Gcm, class Cts>
const Gcm& GcmOf(const std::variant<Gcm, Cts>& result) {
  return std::get<Gcm>(result);
}
template <class Gcm, class Cts>
const Cts& CtsOf(const std::variant<Gcm, Cts>& result) {
  return std::get<Cts>(result);
}

std::string XorText(const std::string& a, const std::string& b);
// Keystream on (16 zero bytes | plaintext), as the KDC does with a SealResult.
std::string Encrypt(const SealResult& seal, const std::string& plaintext);
// nonce | header length | header | ciphertext | tag
std::string Message(const SealResult& seal, const std::string& ciphertext, const Tag& tag);

// The plaintext, by the oracle; nullopt when tag or zero bytes are wrong.
std::optional<std::string> OracleOpen(const PlainKey& key, uint32_t usage,
                                      const std::string& message);
// Whether nonce | tag is the oracle's GMAC.
bool OracleMacGood(const PlainKey& key, uint32_t usage, const std::string& data,
                   const MakeMacResult& mac);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_REALM_H_
