// SPDX-License-Identifier: Apache-2.0
//
// Which protocol computes what is under keys of enctypes 17 to 20, and the work on keys of all
// types, from public numbers alone: what waits, and the line between the servers. Rounds cost
// distance and take hardly longer for a hundred jobs than for one; garbled circuits cost bytes, for
// each job the same.
//
//   replicated   rounds * (kReplicatedRoundTime + distance) + jobs * kReplicatedJobTime
//   garbled      batches * kGarbledBatchTime + (7 * batches - 3) * distance
//                + tables / the slower of the line and kGarbledTableBytesPerSecond
//
// A line for which the timeout of peers (limits::kPeerTimeout) is too short is not asked to carry
// tables, however far the servers are from each other, unless an administrator forces it.
//
// The leader chooses and says so in its proposal; the others see that the hard limits (limits.h,
// "Garbled circuits") hold, and what their administrators force.
#ifndef MPC_SERVER_COMPUTE_PROTOCOL_CHOICE_H_
#define MPC_SERVER_COMPUTE_PROTOCOL_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/compute/cts_part.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/key_info.h"

namespace mpckdc {

// Many rounds and few bytes, or few messages and some megabytes a login. As proposals have them.
enum class CtsProtocol : uint8_t { kReplicated = 1, kGarbled = 2 };
const char* ProtocolName(CtsProtocol protocol);

// What an administrator leaves to the servers, or forces. kGarbled: wherever the limits allow it.
// As greetings have them.
enum class ProtocolSetting : uint8_t { kAuto = 0, kReplicated = 1, kGarbled = 2 };
inline constexpr uint8_t kLastProtocolSetting = 2;
const char* SettingName(ProtocolSetting setting);
// One forces what the other forces not to be.
constexpr bool Contradict(ProtocolSetting a, ProtocolSetting b) {
  return a != b && a != ProtocolSetting::kAuto && b != ProtocolSetting::kAuto;
}
// What servers with these two settings do together: who forces nothing follows the other.
constexpr ProtocolSetting Together(ProtocolSetting a, ProtocolSetting b) {
  return a == ProtocolSetting::kAuto ? b : a;
}

// Bytes that a part takes between the servers where it is garbled, from its length alone. `bytes`:
// confounder and text, or the data under a checksum (CtsPartWork::bytes).
uint64_t TableBytesOf(const Enctype& enctype, CtsPartKind kind, size_t bytes);

// Work on one key (key_work.h).
enum class KeyTask : uint8_t { kDraw, kVerify };
uint64_t TableBytesOf(const Enctype& enctype, KeyClass key_class, KeyTask task);

// The parts of a job, or of a batch, under keys of enctypes 17 to 20; beside them those of gcm.
struct CtsLoad {
  size_t jobs = 0;
  size_t parts = 0;
  size_t longest = 0;   // bytes of a part
  uint64_t rounds = 0;  // of the longest chain of one; parts run side by side
  uint64_t tables = 0;  // bytes
  // Of the parts under gcm keys.
  size_t gcm_parts = 0, gcm_longest = 0;
  uint64_t gcm_tables = 0;

  // `blocks`: of AES; `bytes`: under the tag, which is made (a seal's, a checksum's) or judged.
  void AddGcmPart(const Enctype& enctype, size_t blocks, size_t bytes, bool makes_tag);
  void AddPart(const Enctype& enctype, CtsPartKind kind, size_t bytes);
  // A job by itself, of one part. Batches of keys hold nothing else.
  void AddKey(const KeyInfo& key, KeyTask task);
  void Add(const CtsLoad& more);
};
// The hard limits: whether a batch of this may be garbled.
bool MayBeGarbled(const CtsLoad& load);
// The same of its gcm parts.
bool MayGarbleGcm(const CtsLoad& load);

// The farthest pair of servers, and the slowest line.
struct FarthestLine {
  absl::Duration distance;  // one way
  uint64_t rate = 0;        // bytes per second; 0: unknown, and no bound
};
// Whether a line of this rate carries no tables, unless an administrator forces it.
bool IsTooSlowForTables(uint64_t rate);
// The error of a peer that was silent amid tables, with what an administrator can do about it.
// Another one as it is.
absl::Status SayIfTooSlowForTables(const absl::Status& ended);
absl::Duration ReplicatedTime(const CtsLoad& load, const FarthestLine& line);
// Of as many batches as the limits make of it.
absl::Duration GarbledTime(const CtsLoad& load, const FarthestLine& line);
CtsProtocol ChooseProtocol(const CtsLoad& load, const FarthestLine& line, ProtocolSetting setting);

// Of the gcm parts: some forty rounds, or two messages and the tables of their blocks. It is worth
// that on long lines, and beside other parts that are garbled anyway.
CtsProtocol ChooseGcmProtocol(const CtsLoad& load, const FarthestLine& line,
                              ProtocolSetting setting, bool beside_tables);

// How many of the keys that wait, from the first one on, the next batch takes, and how.
struct KeyChoice {
  CtsProtocol protocol = CtsProtocol::kReplicated;
  size_t taken = 0;
};
// `waiting`: the load of each, empty where there is nothing to compute. All are taken into a batch
// of rounds, and as many as the limits allow into a garbled one: at least one.
KeyChoice ChooseKeys(absl::Span<const CtsLoad> waiting, const FarthestLine& line,
                     ProtocolSetting setting);

// Which of the jobs that wait the next batch computes, and how.
struct BatchChoice {
  CtsProtocol protocol = CtsProtocol::kReplicated;
  std::vector<size_t> taken;  // ascending
};
// `waiting`: in the order of their arrival; the first one is always taken. `most_rounds`: of a
// batch of rounds. No batch of two jobs exceeds it, and no garbled one the hard limits.
BatchChoice ChooseBatch(absl::Span<const CtsLoad> waiting, const FarthestLine& line,
                        ProtocolSetting setting, uint64_t most_rounds);

// A job that takes longer than others shall wait for: it shares its batches with its like
// (limits::kLongBatchRounds, kLongBatchTableBytes).
bool IsDeep(const CtsLoad& job, CtsProtocol protocol);

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_PROTOCOL_CHOICE_H_
