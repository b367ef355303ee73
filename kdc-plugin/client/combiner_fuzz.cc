// SPDX-License-Identifier: Apache-2.0
//
// Three servers' answers to one job, of which one server may answer anything, behind protobuf's
// decoder.
#include <google/protobuf/stubs/logging.h>

#include <array>
#include <string>

#include "kdc-plugin/client/combiner.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc::client {
namespace {

// It would say of each input that is no UTF-8 what it thinks of it.
[[maybe_unused]] const auto quiet = google::protobuf::SetLogHandler(nullptr);

const std::array<std::string, MPC_SERVERS> kNames = {"P0", "P1", "P2"};
constexpr uint8_t kHandle[16] = {1};
const std::string kMessage(12 + 1 + 16 + 28 + 16, '\0');

// A login under a gcm key, or under one of type 18.
struct TheJob {
  explicit TheJob(bool gcm) {
    const int32_t enctype = gcm ? kEnctypeAes256Gcm : kEnctypeAes256Sha1;
    open = {
        kHandle, 1, {reinterpret_cast<const uint8_t*>(kMessage.data()), kMessage.size()}, enctype};
    seals[0] = {kHandle, 2, 40, kEnctypeAes256Gcm, {}};
    seals[1] = {kHandle, 3, 40, enctype, {}};
    if (!gcm) seals[1].plaintext = {reinterpret_cast<const uint8_t*>(kMessage.data()), 40};
    mac = {kHandle, 56, {kHandle, 16}, enctype};
    job.open = &open;
    job.seals = seals;
    job.seal_count = 2;
    job.make_mac = &mac;
  }
  mpc_job job{};
  mpc_open open{};
  mpc_seal seals[2] = {};
  mpc_make_mac mac{};
};

struct Sizes {
  size_t open, ticket, reply, mac;
};
Sizes SizesOf(bool gcm) {
  const size_t mac = gcm ? 16 : 12;
  return {gcm ? 28 : kMessage.size() - 12 - 16, 56, gcm ? 56 : 16 + 40 + mac, mac};
}

// Answers of zeros whose checks hold, so that the joiner has nothing against them.
std::array<v1::JobAnswer, MPC_SERVERS> GoodAnswers(bool gcm) {
  const Sizes sizes = SizesOf(gcm);
  std::array<v1::JobAnswer, MPC_SERVERS> answers;
  std::array<AnswerKeys, MPC_SERVERS> keys{};
  for (size_t p = 0; p < MPC_SERVERS; ++p) {
    v1::JobAnswer& answer = answers[p];
    answer.set_id(7);
    answer.set_verdict(v1::VERDICT_OK);
    const std::string open(sizes.open, 'o'), reply(sizes.reply, 'r');
    v1::OpenAnswer& opened = *answer.add_opens();
    gcm ? opened.set_keystream_share(open) : opened.set_plaintext_share(open);
    v1::SealAnswer& ticket = *answer.add_seals();
    ticket.set_nonce(std::string(12, 'n'));
    ticket.set_header(std::string(33, 'h'));
    ticket.set_keystream_share(std::string(sizes.ticket, 't'));
    v1::SealAnswer& sealed = *answer.add_seals();
    if (gcm) sealed.set_nonce(std::string(12, 'm'));
    gcm ? sealed.set_keystream_share(reply) : sealed.set_message_share(reply);
    v1::MakeMacAnswer& mac = *answer.add_make_macs();
    if (gcm) mac.set_nonce(std::string(12, 'c'));
    mac.set_tag_share(std::string(sizes.mac, 'c'));
    keys[p].key[0] = keys[p].salt[0] = static_cast<uint8_t>(p + 1);
    // What the party after this one says of these shares.
  }
  for (size_t p = 0; p < MPC_SERVERS; ++p) {
    const size_t next = (p + 1) % MPC_SERVERS;
    ShareCheck check(keys[p].salt);  // s_p: of what P_p sends, said by P_{p+1}
    check.Add(AsBytes(gcm ? answers[p].opens(0).keystream_share()
                          : answers[p].opens(0).plaintext_share()));
    check.Add(AsBytes(answers[p].seals(0).keystream_share()));
    check.Add(
        AsBytes(gcm ? answers[p].seals(1).keystream_share() : answers[p].seals(1).message_share()));
    check.Add(AsBytes(answers[p].make_macs(0).tag_share()));
    keys[next].before_share = check.Finish();
    keys[p].next_key = CheckOfKey(keys[next].key);
  }
  for (size_t p = 0; p < MPC_SERVERS; ++p) answers[p].set_keys(EncodeAnswerKeys(keys[p]));
  return answers;
}

// how (1): bit 0 gcm, then who lies, and when it answers | its answer
FuzzSeeds Seeds() {
  FuzzSeeds seeds;
  for (const bool gcm : {false, true}) {
    for (char liar = 0; liar < 3; ++liar) {
      const char how = static_cast<char>((gcm ? 1 : 0) | liar << 1 | liar << 3);
      seeds.push_back(how + GoodAnswers(gcm)[static_cast<size_t>(liar)].SerializeAsString());
    }
    for (const v1::Verdict verdict :
         {v1::VERDICT_BAD_TAG, v1::VERDICT_QUOTA, v1::VERDICT_REFUSED}) {
      v1::JobAnswer refusal;
      refusal.set_verdict(verdict);
      refusal.set_detail("why\n\x1b[2J");
      seeds.push_back(static_cast<char>(gcm) + refusal.SerializeAsString());
    }
  }
  return seeds;
}

struct Heard {
  int calls = 0;
  mpc_verdict verdict = MPC_UNAVAILABLE;
  std::string detail, outputs;
};
std::string Copied(mpc_bytes bytes) {
  return bytes.size == 0 ? "" : std::string(AsText({bytes.data, bytes.size}));
}
void Hear(void* arg, mpc_result* result) {
  Heard& heard = *static_cast<Heard*>(arg);
  ++heard.calls;
  heard.verdict = result->verdict;
  heard.detail = result->detail;
  heard.outputs = Copied(result->open_keystream) + Copied(result->open_plaintext);
  for (size_t i = 0; i < result->seal_count; ++i) {
    heard.outputs += Copied(result->seals[i].header) + Copied(result->seals[i].keystream) +
                     Copied(result->seals[i].message);
  }
  heard.outputs += std::string(AsText({result->mac, result->mac_size}));
  mpc_result_free(result);
}

using ThreeAnswers = std::array<const v1::JobAnswer*, MPC_SERVERS>;

std::string OutputsOf(bool gcm, const ThreeAnswers& answers, const std::array<int, 3>& order,
                      Heard* heard) {
  const TheJob job(gcm);
  JobCombiner combiner(job.job, Hear, heard);
  combiner.set_id(7);
  bool done = false;
  for (const int p : order) {
    done = combiner.Add({p, p, kNames}, *answers[static_cast<size_t>(p)]) || done;
    if (done) break;
  }
  FUZZ_CHECK(done);
  combiner.Deliver();
  FUZZ_CHECK(heard->calls == 1);
  return heard->outputs;
}

// Three honest servers' answers, and what comes of them. No input changes these.
struct Honest {
  explicit Honest(bool gcm) : answers(GoodAnswers(gcm)) {
    Heard heard;
    outputs = OutputsOf(gcm, All(), {0, 1, 2}, &heard);
    FUZZ_CHECK(heard.verdict == MPC_OK);
  }
  ThreeAnswers All() const { return {&answers[0], &answers[1], &answers[2]}; }

  std::array<v1::JobAnswer, MPC_SERVERS> answers;
  std::string outputs;
};
const Honest& TheHonest(bool gcm) {
  static const auto* const with_gcm = new Honest(true);
  static const auto* const without = new Honest(false);
  return gcm ? *with_gcm : *without;
}

// One server alone can turn an answer into an outage. It cannot make it another answer, or a wrong
// password.
MPCKDC_FUZZ(combiner, Seeds) {
  if (in.empty()) return;
  const bool gcm = (in[0] & 1) != 0;
  const int liar = (in[0] >> 1 & 3) % 3, turn = (in[0] >> 3 & 3) % 3;
  v1::JobAnswer answer;
  if (!answer.ParseFromArray(in.data() + 1, static_cast<int>(in.size() - 1))) return;
  const Honest& honest = TheHonest(gcm);
  ThreeAnswers answers = honest.All();
  answers[static_cast<size_t>(liar)] = &answer;
  std::array<int, 3> order = {(liar + 1) % 3, (liar + 2) % 3, liar};
  std::swap(order[2], order[static_cast<size_t>(turn)]);
  Heard heard;
  OutputsOf(gcm, answers, order, &heard);
  FUZZ_CHECK(heard.verdict == MPC_OK || heard.verdict == MPC_UNAVAILABLE ||
             heard.verdict == MPC_UNPROVED);
  FUZZ_CHECK(heard.verdict != MPC_OK || heard.outputs == honest.outputs);
  for (const char c : heard.detail) FUZZ_CHECK(static_cast<uint8_t>(c) >= 0x20);
}

}  // namespace
}  // namespace mpckdc::client
