// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/protocol_choice.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/circuit/derive/usage_key.h"
#include "mpc-server/compute/cts_work.h"
#include "mpc-server/garble/aes_rounds.h"

namespace mpckdc {
namespace {

// AND gates of the circuits of garble/message_circuits.h, and what each thing adds to the stream
// (garble/run_format.h). The test holds them against real plans.
constexpr uint64_t kAes128Gates = 5120, kAes256Gates = 7168, kGf128Gates = 2187;
struct HashGates {
  uint64_t of_public, of_shared;  // a compression
};
constexpr HashGates kHashGates[] = {{8795, 11035}, {16120, 22335}, {40824, 57652}};
constexpr uint64_t kGateBytes = 32, kInputBitBytes = 64, kOutputBitBytes = 16;

// One way: labels and tables, results; of two runs, messages to open and what waits for them.
constexpr int kHopsOfBatch = 4;
constexpr int kHopsOfGcm = 2;
// Of a further one also proposal, votes and confirmation.
constexpr int kHopsOfAgreement = 3;

// What passes on a slow line from one word of E's to the next one (garble/garbled_run.h), at most:
// half a time more than limits::kQuickBytesAtLeast, and the labels of inputs. On a line that takes
// longer for it the session ends, and with it what gcm users wait for.
constexpr uint64_t kQuietTableBytes = 2 * limits::kQuickBytesAtLeast;

uint64_t UpTo(uint64_t count, uint64_t step) { return (count + step - 1) / step; }

// To be computed as one batch of rounds, by its budget.
bool Fits(const CtsLoad& load, uint64_t most_rounds) { return load.rounds <= most_rounds; }

BatchChoice TakeAll(absl::Span<const CtsLoad> waiting, uint64_t most_rounds, bool leave_short) {
  BatchChoice choice;
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (i > 0 && !Fits(waiting[i], most_rounds)) continue;
    if (!leave_short || !MayBeGarbled(waiting[i])) choice.taken.push_back(i);
  }
  return choice;
}

absl::Duration TimeOfTables(uint64_t bytes, const FarthestLine& line) {
  const uint64_t rate = line.rate == 0 ? limits::kGarbledTableBytesPerSecond
                                       : std::min(line.rate, limits::kGarbledTableBytesPerSecond);
  return absl::Seconds(static_cast<double>(bytes) / static_cast<double>(rate));
}

BatchChoice TakeGarbled(absl::Span<const CtsLoad> waiting) {
  BatchChoice choice = {CtsProtocol::kGarbled, {}};
  CtsLoad all;
  for (size_t i = 0; i < waiting.size(); ++i) {
    CtsLoad with = all;
    with.Add(waiting[i]);
    if (!MayBeGarbled(with)) continue;
    all = with;
    choice.taken.push_back(i);
  }
  return choice;
}

}  // namespace

bool IsTooSlowForTables(uint64_t rate) {
  return rate != 0 && absl::Seconds(static_cast<double>(kQuietTableBytes) /
                                    static_cast<double>(rate)) > limits::kPeerTimeout / 2;
}

// Steps as garble/garbled_run.cc names them and channels tell them.
absl::Status SayIfTooSlowForTables(const absl::Status& ended) {
  if (!absl::IsDeadlineExceeded(ended)) return ended;
  if (!absl::StrContains(ended.message(), "\"garbled/")) return ended;
  return absl::Status(
      ended.code(),
      absl::StrCat(ended.message(),
                   ": the line is too slow for tables, unless the peer has stopped; with "
                   "[engine] protocol = \"replicated\" no tables are sent"));
}

const char* ProtocolName(CtsProtocol protocol) {
  return protocol == CtsProtocol::kGarbled ? "garbled" : "replicated";
}

const char* SettingName(ProtocolSetting setting) {
  switch (setting) {
    case ProtocolSetting::kAuto:
      return "auto";
    case ProtocolSetting::kReplicated:
      return "replicated";
    case ProtocolSetting::kGarbled:
      return "garbled";
  }
  return "?";
}

uint64_t TableBytesOf(const Enctype& enctype, CtsPartKind kind, size_t bytes) {
  const HashGates& hash = kHashGates[static_cast<size_t>(enctype.hash)];
  const bool mac_of_text = enctype.family == EnctypeFamily::kRfc3962;
  const bool sealed = kind != CtsPartKind::kMac;
  // An IV of zeros goes before a ciphertext. What a message to open brings is public.
  const size_t hashed = bytes + (sealed && !mac_of_text ? sizeof(Block) : 0);
  const bool of_shared = kind == CtsPartKind::kSeal || (sealed && mac_of_text);
  uint64_t gates =
      HmacInnerBlocks(enctype.hash, hashed) * (of_shared ? hash.of_shared : hash.of_public);
  gates += hash.of_shared;  // the outer one
  uint64_t inputs = 128 * enctype.mac_state_blocks(), outputs = 0;
  if (sealed) {
    gates += UpTo(bytes, sizeof(Block)) * (enctype.key_bytes == 16 ? kAes128Gates : kAes256Gates);
    inputs += 128 * enctype.round_keys();
    outputs += 8 * bytes;
  }
  if (kind == CtsPartKind::kSeal) inputs += 8 * bytes;
  if (kind != CtsPartKind::kOpen) outputs += 8 * enctype.mac_bytes;
  return kGateBytes * gates + kInputBitBytes * inputs + kOutputBitBytes * outputs;
}

void CtsLoad::AddPart(const Enctype& enctype, CtsPartKind kind, size_t bytes) {
  ++parts;
  longest = std::max(longest, bytes);
  rounds = std::max(rounds, CtsWork::RoundsOf(enctype, kind, bytes));
  tables += TableBytesOf(enctype, kind, bytes);
}

// The base's schedule or states; what is derived of it for each usage, and the schedules and states
// of that; a verified key's are compared with as many inputs.
uint64_t TableBytesOf(const Enctype& enctype, KeyClass key_class, KeyTask task) {
  const HashGates& hash = kHashGates[static_cast<size_t>(enctype.hash)];
  const uint64_t block = enctype.key_bytes == 16 ? kAes128Gates : kAes256Gates;
  const uint64_t schedule = garble::kSboxGates * 4 * (enctype.round_keys() - enctype.base_blocks());
  const uint64_t states = 2 * hash.of_shared;
  const bool by_hash = enctype.family == EnctypeFamily::kRfc8009;
  const uint64_t derived =
      by_hash ? hash.of_public + hash.of_shared : enctype.base_blocks() * block;
  uint64_t gates = by_hash ? states : schedule, found = 0;  // bits of the usages
  for (const uint32_t usage : UsagesOf(key_class)) {
    const bool encrypts = enctype.is_gcm() || IsEncryptionUsage(usage);
    if (encrypts) gates += derived + schedule;
    gates += enctype.is_gcm() ? block : derived + states;
    found += 128 * (RoundKeys(enctype.number, usage) +
                    (enctype.is_gcm() ? 1 : enctype.mac_state_blocks()));
  }
  uint64_t inputs = 128 * enctype.base_blocks();
  if (task == KeyTask::kVerify) {
    gates += found;
    inputs += found;
    found = 0;
  }
  return kGateBytes * gates + kInputBitBytes * inputs + kOutputBitBytes * found;
}

void CtsLoad::AddKey(const KeyInfo& key, KeyTask task) {
  const Enctype* const enctype = FindEnctype(key.enctype);
  if (enctype == nullptr) return;
  ++jobs;
  ++parts;
  rounds = std::max(rounds, UsageKeys::RoundsOf(*enctype));
  tables += TableBytesOf(*enctype, key.key_class, task);
}

// Powers of H for a tag that is made, odd ones one product each; Horner's rule for one that is
// judged.
void CtsLoad::AddGcmPart(const Enctype& enctype, size_t blocks, size_t bytes, bool makes_tag) {
  const uint64_t hashed = UpTo(bytes, sizeof(Block)) + 2;  // with header and lengths
  const uint64_t products = makes_tag ? hashed / 2 : hashed;
  const uint64_t outputs = 128 * (blocks + (makes_tag ? products : 0));
  ++gcm_parts;
  gcm_longest = std::max(gcm_longest, bytes);
  gcm_tables += kGateBytes * (blocks * (enctype.key_bytes == 16 ? kAes128Gates : kAes256Gates) +
                              products * kGf128Gates) +
                kInputBitBytes * 128 * (enctype.round_keys() + 1) + kOutputBitBytes * outputs;
}

void CtsLoad::Add(const CtsLoad& more) {
  jobs += more.jobs;
  parts += more.parts;
  longest = std::max(longest, more.longest);
  rounds = std::max(rounds, more.rounds);
  tables += more.tables;
  gcm_parts += more.gcm_parts;
  gcm_longest = std::max(gcm_longest, more.gcm_longest);
  gcm_tables += more.gcm_tables;
}

bool MayBeGarbled(const CtsLoad& load) {
  return load.parts > 0 && load.parts <= limits::kGarbledParts &&
         load.longest <= limits::kGarbledMessageBytes && load.tables <= limits::kGarbledTableBytes;
}

bool MayGarbleGcm(const CtsLoad& load) {
  return load.gcm_parts > 0 && load.gcm_parts <= limits::kGarbledParts &&
         load.gcm_longest <= limits::kGarbledMessageBytes &&
         load.gcm_tables <= limits::kGarbledTableBytes;
}

absl::Duration ReplicatedTime(const CtsLoad& load, const FarthestLine& line) {
  return load.rounds * (limits::kReplicatedRoundTime + line.distance) +
         load.jobs * limits::kReplicatedJobTime;
}

absl::Duration GarbledTime(const CtsLoad& load, const FarthestLine& line) {
  const uint64_t batches = std::max({uint64_t{1}, UpTo(load.parts, limits::kGarbledParts),
                                     UpTo(load.tables, limits::kGarbledTableBytes)});
  const uint64_t hops = batches * kHopsOfBatch + (batches - 1) * kHopsOfAgreement;
  return batches * limits::kGarbledBatchTime + hops * line.distance +
         TimeOfTables(load.tables, line);
}

CtsProtocol ChooseProtocol(const CtsLoad& load, const FarthestLine& line, ProtocolSetting setting) {
  if (setting == ProtocolSetting::kReplicated || load.parts == 0) return CtsProtocol::kReplicated;
  if (load.longest > limits::kGarbledMessageBytes) return CtsProtocol::kReplicated;
  if (setting == ProtocolSetting::kGarbled) return CtsProtocol::kGarbled;
  if (IsTooSlowForTables(line.rate)) return CtsProtocol::kReplicated;
  return GarbledTime(load, line) < ReplicatedTime(load, line) ? CtsProtocol::kGarbled
                                                              : CtsProtocol::kReplicated;
}

CtsProtocol ChooseGcmProtocol(const CtsLoad& load, const FarthestLine& line,
                              ProtocolSetting setting, bool beside_tables) {
  if (setting == ProtocolSetting::kReplicated || !MayGarbleGcm(load)) {
    return CtsProtocol::kReplicated;
  }
  if (setting == ProtocolSetting::kGarbled) return CtsProtocol::kGarbled;
  if (IsTooSlowForTables(line.rate)) return CtsProtocol::kReplicated;
  const absl::Duration rounds = limits::kGcmBatchRounds * (limits::kGcmRoundTime + line.distance);
  absl::Duration garbled = TimeOfTables(load.gcm_tables, line);
  if (!beside_tables) garbled += limits::kGarbledBatchTime + kHopsOfGcm * line.distance;
  // Tables take several times the processors' time, which is to be saved as well.
  garbled += 2 * TimeOfTables(load.gcm_tables, {});
  return garbled < rounds ? CtsProtocol::kGarbled : CtsProtocol::kReplicated;
}

KeyChoice ChooseKeys(absl::Span<const CtsLoad> waiting, const FarthestLine& line,
                     ProtocolSetting setting) {
  CtsLoad all;
  for (const CtsLoad& key : waiting) all.Add(key);
  KeyChoice choice = {ChooseProtocol(all, line, setting), waiting.size()};
  if (choice.protocol == CtsProtocol::kReplicated) return choice;
  all = {};
  for (choice.taken = 0; choice.taken < waiting.size(); ++choice.taken) {
    all.Add(waiting[choice.taken]);
    if (all.parts > 0 && !MayBeGarbled(all)) break;
  }
  return choice;
}

BatchChoice ChooseBatch(absl::Span<const CtsLoad> waiting, const FarthestLine& line,
                        ProtocolSetting setting, uint64_t most_rounds) {
  const bool forced = setting == ProtocolSetting::kGarbled;
  if (!MayBeGarbled(waiting[0])) return TakeAll(waiting, most_rounds, forced);
  CtsLoad all;
  for (const CtsLoad& job : waiting) {
    if (MayBeGarbled(job)) all.Add(job);
  }
  // What does not fit a batch of rounds is not computed so with others.
  if (ChooseProtocol(all, line, setting) == CtsProtocol::kGarbled ||
      (setting == ProtocolSetting::kAuto && !Fits(waiting[0], most_rounds))) {
    return TakeGarbled(waiting);
  }
  return TakeAll(waiting, most_rounds, false);
}

bool IsDeep(const CtsLoad& job, CtsProtocol protocol) {
  return protocol == CtsProtocol::kGarbled ? job.tables > limits::kLongBatchTableBytes
                                           : job.rounds > limits::kLongBatchRounds;
}

}  // namespace mpckdc
