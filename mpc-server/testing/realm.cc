// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/realm.h"

#include <algorithm>
#include <cassert>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/job/preauth_timestamp.h"
#include "mpc-server/key/message_format.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/gcm_plain.h"
#include "mpc-server/testing/three_parties.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc {
namespace {

template <typename Container>
std::string Text(const Container& bytes) {
  return std::string(bytes.begin(), bytes.end());
}

const Enctype& EnctypeOf(const PlainKey& key) { return *FindEnctype(key.info.enctype); }

// Splits `blocks`; `get(record)` names where each of the three records has its shares.
template <typename Get>
void SplitInto(PerParty<KeyRecord>& records, absl::Span<const Block> blocks, RandomSource& random,
               Get get) {
  for (const Block& block : blocks) {
    const auto shares = SplitForTest(block, random);
    for (int p = 0; p < kParties; ++p) get(records[p]).push_back(shares[p]);
  }
}

// Joins block by block what `get(record)` names in the three records.
template <typename Get>
absl::StatusOr<std::vector<Block>> JoinBlocks(const PerParty<KeyRecord>& records, Get get) {
  std::vector<Block> out(get(records[0]).size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!JoinForTest({get(records[0])[i], get(records[1])[i], get(records[2])[i]}, &out[i])) {
      return absl::InvalidArgumentError("shares do not fit together");
    }
  }
  return out;
}

absl::Status CheckJoinedUsage(const PlainKey& key, const PerParty<KeyRecord>& records, size_t u) {
  const uint32_t usage = records[0].usages[u].usage;
  const auto keys = JoinBlocks(records, [u](const KeyRecord& r) { return r.usages[u].round_keys; });
  if (!keys.ok()) return keys.status();
  Block h;
  if (!JoinForTest({records[0].usages[u].h, records[1].usages[u].h, records[2].usages[u].h}, &h)) {
    return absl::InvalidArgumentError("shares of H do not fit together");
  }
  const auto states = JoinBlocks(records, [u](const KeyRecord& r) { return r.usages[u].mac_states; });
  if (!states.ok()) return states.status();
  const PlainUsage expected = PlainUsageOf(EnctypeOf(key), key.base, usage);
  if (*keys != expected.round_keys) {
    return absl::InvalidArgumentError(absl::StrCat("round keys of usage ", usage, " are wrong"));
  }
  if (h != expected.h && EnctypeOf(key).is_gcm()) {
    return absl::InvalidArgumentError(absl::StrCat("H of usage ", usage, " is wrong"));
  }
  if (*states != expected.mac_states) {
    return absl::InvalidArgumentError(absl::StrCat("HMAC states of usage ", usage, " are wrong"));
  }
  return absl::OkStatus();
}

}  // namespace

PlainKey MakePlainKey(RandomSource& random, const std::string& principal, KeyClass key_class,
                      int32_t enctype, Gate gate) {
  PlainKey key;
  random.Fill(absl::MakeSpan(key.info.handle));
  key.info.principal = principal;
  key.info.principal_id = PrincipalIdOf(principal);
  key.info.kvno = 1;
  key.info.enctype = enctype;
  key.info.key_class = key_class;
  key.info.gate = gate;
  key.base.resize(16 * BaseBlocks(enctype));
  random.Fill(absl::MakeSpan(key.base));
  return key;
}

PerParty<KeyRecord> ShareKey(const PlainKey& key, RandomSource& random) {
  PerParty<KeyRecord> records;
  for (KeyRecord& record : records) record.info = key.info;
  SplitInto(records, BlocksOf(key.base), random, [](KeyRecord& r) -> auto& { return r.base; });
  for (const uint32_t usage : UsagesOf(key.info.key_class)) {
    for (KeyRecord& record : records) record.usages.push_back({usage, {}, {}});
    const PlainUsage plain = PlainUsageOf(EnctypeOf(key), key.base, usage);
    SplitInto(records, plain.round_keys, random,
              [](KeyRecord& r) -> auto& { return r.usages.back().round_keys; });
    SplitInto(records, plain.mac_states, random,
              [](KeyRecord& r) -> auto& { return r.usages.back().mac_states; });
    const auto h = SplitForTest(plain.h, random);
    for (int p = 0; p < kParties; ++p) records[p].usages.back().h = h[p];
  }
  return records;
}

absl::StatusOr<PlainKey> JoinKey(const PerParty<KeyRecord>& records) {
  PlainKey key;
  key.info = records[0].info;
  ASSIGN_OR_RETURN(const auto base, JoinBlocks(records, [](const KeyRecord& r) { return r.base; }));
  for (const Block& block : base) key.base.insert(key.base.end(), block.begin(), block.end());
  for (size_t u = 0; u < records[0].usages.size(); ++u) {
    RETURN_IF_ERROR(CheckJoinedUsage(key, records, u));
  }
  return key;
}

absl::Status Enrol(ShareStore& store, const KeyRecord& record, absl::Time now) {
  const TransactionId txn = record.info.handle;
  const absl::Status staged = store.Stage(txn, absl::MakeConstSpan(&record, 1), now);
  return staged.ok() ? store.Commit(txn, now).status() : staged;
}

std::string SealPreauth(const PlainKey& key, absl::Time time, RandomSource& random) {
  const std::string timestamp = EncodePreauthTimestamp(time);
  if (!EnctypeOf(key).is_gcm()) {
    std::vector<uint8_t> confounder(kConfounderBytes);
    random.Fill(absl::MakeSpan(confounder));
    return CtsSeal(EnctypeOf(key), key.base, kUsagePreauth, AsText(confounder), timestamp);
  }
  GcmNonce nonce;
  random.Fill(absl::MakeSpan(nonce));
  return PlainSealText(key, kUsagePreauth, nonce, "", timestamp);
}

std::string PlainSealText(const PlainKey& key, uint32_t usage, const Nonce& nonce,
                          const std::string& header, const std::string& plaintext) {
  return Text(
      PlainSeal(PlainUsageKey(key.base, usage), nonce, AsBytes(header), AsBytes(plaintext)));
}

std::string PlainSealRaw(const PlainKey& key, uint32_t usage, const Nonce& nonce,
                         const std::string& zero_and_plaintext) {
  const GcmOutput out = GcmEncrypt(AsText(PlainUsageKey(key.base, usage)), AsText(nonce),
                                   HeaderAad(""), zero_and_plaintext);
  return absl::StrCat(Text(nonce), HeaderAad(""), out.ciphertext, out.tag);
}

PerParty<Job> WithTexts(const Job& job, const std::string& text, RandomSource& random) {
  PerParty<Job> jobs = {job, job, job};
  for (size_t i = 0; i < job.seals.size(); ++i) {
    const std::string plain = text.substr(0, job.seals[i].max_plaintext);
    PerParty<TextShares> texts = SplitText(AsBytes(plain), random);
    for (int p = 0; p < kParties; ++p) jobs[p].seals[i].text = std::move(texts[p]);
  }
  return jobs;
}

Job LoginJob(JobId id, const PlainKey& client, const PlainKey& krbtgt, const std::string& preauth,
             const LoginSizes& sizes) {
  Job job;
  job.id = id;
  job.operation = Operation::kLogin;
  job.client = client.info.handle;
  if (!preauth.empty()) job.opens.push_back({client.info.handle, kUsagePreauth, preauth});
  job.seals.push_back({krbtgt.info.handle, kUsageTicket, sizes.ticket});
  if (EnctypeOf(client).is_gcm()) {
    job.seals.push_back({client.info.handle, kUsageAsReply, sizes.reply});
  }
  if (!sizes.as_req.empty()) {
    job.make_macs.push_back({client.info.handle, kUsageAsReqChecksum, sizes.as_req});
  }
  return job;
}

std::string XorText(const std::string& a, const std::string& b) {
  std::string out(std::min(a.size(), b.size()), '\0');
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(a[i] ^ b[i]);
  return out;
}

namespace {

bool SamePublicPart(const auto&, const auto&) { return true; }
bool SamePublicPart(const GcmSealResult& a, const GcmSealResult& b) {
  return a.nonce == b.nonce && a.header == b.header;
}
bool SamePublicPart(const GcmMacResult& a, const GcmMacResult& b) { return a.nonce == b.nonce; }

// Adds one server's answers to the sums. False when the families or the public parts differ.
template <class Result>
bool AddAll(OutputField field, OutputJoiner::Answer& outputs, const std::vector<Result>& answers,
            std::vector<Result>* sums) {
  if (sums->size() != answers.size()) return false;
  for (size_t i = 0; i < answers.size(); ++i) {
    const bool same = std::visit(
        [&](auto& sum) {
          const auto* answer = std::get_if<std::decay_t<decltype(sum)>>(&answers[i]);
          if (answer == nullptr || !SamePublicPart(sum, *answer) ||
              sum.share.size() != answer->share.size()) {
            return false;
          }
          outputs.Add(OutputNumber(field, i), answer->share,
                      {reinterpret_cast<uint8_t*>(sum.share.data()), sum.share.size()});
          return true;
        },
        (*sums)[i]);
    if (!same) return false;
  }
  return true;
}

bool Add(OutputJoiner& joiner, int party, const JobResult& answer, JobResult* sum) {
  OutputJoiner::Answer outputs(joiner, party, answer.keys);
  return AddAll(OutputField::kOpen, outputs, answer.opens, &sum->opens) &&
         AddAll(OutputField::kSeal, outputs, answer.seals, &sum->seals) &&
         AddAll(OutputField::kMakeMac, outputs, answer.make_macs, &sum->make_macs);
}

template <class Results>
void ClearShares(Results& results) {
  for (auto& result : results) {
    std::visit([](auto& r) { r.share.assign(r.share.size(), '\0'); }, result);
  }
}

// As the KDC's plugin does, who is accused.
Judgement JudgementOf(const OutputJoiner& joiner) {
  const auto contradictions = joiner.Contradictions();
  if (contradictions.empty()) return Ok();
  return Refuse(Verdict::kInconsistent, Blame(contradictions, {"P0", "P1", "P2"}));
}

}  // namespace

JobResult Combine(const PerParty<JobResult>& answers) {
  for (const JobResult& answer : answers) {
    if (!answer.judgement.ok()) return answer;
  }
  JobResult sum = answers[0];
  ClearShares(sum.opens);
  ClearShares(sum.seals);
  ClearShares(sum.make_macs);
  OutputJoiner joiner;
  for (int p = 0; p < kParties; ++p) {
    if (Add(joiner, p, answers[p], &sum)) continue;
    sum.judgement = Refuse(Verdict::kInconsistent, "the servers' answers differ in public parts");
    return sum;
  }
  sum.judgement = JudgementOf(joiner);
  return sum;
}

TagResult Combine(const PerParty<TagResult>& answers) {
  for (const TagResult& answer : answers) {
    if (!answer.judgement.ok()) return answer;
  }
  TagResult sum = answers[0];
  sum.tag_share = {};
  OutputJoiner joiner;
  for (int p = 0; p < kParties; ++p) {
    OutputJoiner::Answer(joiner, p, answers[p].keys)
        .Add(OutputNumber(OutputField::kTag, 0), AsText(answers[p].tag_share),
             absl::MakeSpan(sum.tag_share));
  }
  sum.judgement = JudgementOf(joiner);
  return sum;
}

std::string Encrypt(const SealResult& seal, const std::string& plaintext) {
  const std::string& keystream = GcmOf(seal).share;
  assert(kZeroBytes + plaintext.size() <= keystream.size());
  return XorText(keystream, std::string(kZeroBytes, '\0') + plaintext);
}

std::string Message(const SealResult& seal, const std::string& ciphertext, const Tag& tag) {
  const auto& [nonce, header, keystream] = GcmOf(seal);
  return absl::StrCat(Text(nonce), HeaderAad(header), ciphertext, Text(tag));
}

std::optional<std::string> OracleOpen(const PlainKey& key, uint32_t usage,
                                      const std::string& message) {
  if (!EnctypeOf(key).is_gcm()) return CtsOpen(EnctypeOf(key), key.base, usage, message);
  const auto opened = PlainOpen(PlainUsageKey(key.base, usage), AsBytes(message));
  if (!opened.ok()) return std::nullopt;
  return Text(opened->plaintext);
}

bool OracleMacGood(const PlainKey& key, uint32_t usage, const std::string& data,
                   const MakeMacResult& mac) {
  if (const auto* cts = std::get_if<CtsMacResult>(&mac)) {
    return !EnctypeOf(key).is_gcm() &&
           CtsChecksum(EnctypeOf(key), key.base, usage, data) == cts->share;
  }
  const auto& [nonce, share] = GcmOf(mac);
  const auto expected = PlainGmac(PlainUsageKey(key.base, usage), nonce, AsBytes(data));
  return EnctypeOf(key).is_gcm() && Text(expected) == Text(nonce) + share;
}

}  // namespace mpckdc
