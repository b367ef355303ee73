// SPDX-License-Identifier: Apache-2.0
//
// How the three servers' answers hold an output, so that one server that alters its part is caught
// and names itself. Why it is made so: doc/protocol.md, "Outputs".
//
//   value = a_0 + a_1 + a_2; P_i holds a_{i-1} and a_i, a key with each neighbour and one with both
//   K_i   key that P_{i-1} and P_i know; s_i salt that P_i and P_{i+1} know: of one answer
//   w_i   zero shares that the three know, and no KDC
//
//   P_i sends   c_i = a_i + w_i + Stream(K_{i+1})       of each output, as long as it is
//               K_i, s_i, Check(s_{i-1}, all c_{i-1}), Check(K_{i+1})          once: AnswerKeys
//
//   KDC: value = sum of all c_i and Stream(K_i). Whatever a server sends, another one has sent the
//   check of.
#ifndef MPC_SERVER_KEY_OUTPUT_FORMAT_H_
#define MPC_SERVER_KEY_OUTPUT_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mpckdc {

using OutputKey = std::array<uint8_t, 16>;    // of AES-128 in counter mode, or of a check
using OutputCheck = std::array<uint8_t, 16>;  // BLAKE2b under a key, cut

// What a server sends with the outputs of an answer. On the wire as it is here.
struct AnswerKeys {
  OutputKey key{};             // K_i
  OutputKey salt{};            // s_i
  OutputCheck before_share{};  // of what the party before this one (i-1) sends as shares
  OutputCheck next_key{};      // of the key that the party after it (i+1) sends

  friend bool operator==(const AnswerKeys&, const AnswerKeys&) = default;
};
inline constexpr size_t kAnswerKeysBytes = 64;
static_assert(sizeof(AnswerKeys) == kAnswerKeysBytes);
std::string EncodeAnswerKeys(const AnswerKeys& keys);
std::optional<AnswerKeys> DecodeAnswerKeys(absl::string_view bytes);

// An output's number within its answer: field (1) | index (1). The tag of a tag request: (kTag, 0).
enum class OutputField : uint32_t { kOpen = 1, kSeal = 2, kMakeMac = 3, kTag = 4 };
constexpr uint32_t OutputNumber(OutputField field, size_t index) {
  return static_cast<uint32_t>(field) << 8 | static_cast<uint32_t>(index);
}
// The counter block where an output's stream begins: number (4) | zeros (8) | position (4).
std::array<uint8_t, 16> FirstOutputCounter(uint32_t number);

OutputCheck CheckOfKey(const OutputKey& key);

// Of all shares of one answer of one server, in the order of the outputs.
class ShareCheck {
 public:
  explicit ShareCheck(const OutputKey& salt);
  ~ShareCheck();
  ShareCheck(const ShareCheck&) = delete;
  ShareCheck& operator=(const ShareCheck&) = delete;

  void Add(absl::Span<const uint8_t> share);
  OutputCheck Finish();

 private:
  struct State;
  alignas(64) uint8_t state_[384];
};

// The KDC's side: three answers in any order, shares added up as they come.
class OutputJoiner {
 public:
  static constexpr int kServers = 3;

  // One server's answer, once for each party: adds what it holds to the sums.
  class Answer {
   public:
    Answer(OutputJoiner& joiner, int party, const AnswerKeys& keys);
    ~Answer();  // notes the checks
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;
    // sum += share + the key's stream. In the order of the outputs; equally long.
    void Add(uint32_t number, absl::string_view share, absl::Span<uint8_t> sum);

   private:
    struct Stream;
    OutputJoiner& joiner_;
    const int party_;
    ShareCheck check_;
    std::unique_ptr<Stream> stream_;
  };

  // What two servers contradict each other about: one of them lied.
  struct Contradiction {
    int sender, checker;  // parties
    const char* what;     // "share" or "key": of the sender, by the checker's word
  };
  // When the three have come. Of two contradictions the server in both is the one that lied.
  std::vector<Contradiction> Contradictions() const;

 private:
  struct Party {
    OutputCheck share{}, key{};              // of what it sent
    OutputCheck before_share{}, next_key{};  // what it says of the others
  };
  std::array<Party, kServers> parties_;
};

// What of the contradictions follows: "P1 ..." or "one of P1 and P2 ...", and who they are.
// `names`: of the parties.
std::string Blame(const std::vector<OutputJoiner::Contradiction>& contradictions,
                  const std::array<std::string, OutputJoiner::kServers>& names);

}  // namespace mpckdc

#endif  // MPC_SERVER_KEY_OUTPUT_FORMAT_H_
