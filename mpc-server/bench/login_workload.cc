// SPDX-License-Identifier: Apache-2.0
// A lane is a login under one of the enctypes 17 to 20, as the jobs that a KDC sends for it, in two
// batches of compute/batch_work.h, or in more where a server would cut them:
//
//   LOGIN          open the pre-auth, seal a ticket under the krbtgt key (aes256-gcm), checksum of
//                  usage 56 over the AS-REQ
//   SEAL_GRANTED   seal the reply, whose plaintext the KDC sends in shares
#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/confirm_view.h"
#include "mpc-server/agree/lines.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/bench/workload.h"
#include "mpc-server/circuit/checks.h"
#include "mpc-server/compute/batch_work.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/job/preauth_timestamp.h"
#include "mpc-server/job/ticket_header.h"
#include "mpc-server/testing/gcm_plain.h"
#include "mpc-server/testing/realm.h"
#include "mpc-server/testing/three_parties.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc::bench {
namespace {

constexpr uint32_t kTicketBytes = 166;
// The mask of its tag, then the keystream of its zero bytes and its text.
constexpr size_t kTicketBlocks = 1 + (kZeroBytes + kTicketBytes + 15) / 16;
constexpr size_t kTimestampBytes = 28;  // PA-ENC-TS-ENC with microseconds

absl::Time TimeOf(size_t login) {
  return absl::FromUnixSeconds(1'700'000'000 + static_cast<int64_t>(login)) +
         absl::Microseconds(123'456);
}
Nonce NonceOf(size_t login, uint32_t batch) {
  const Block numbers = InputOf(login, batch);
  Nonce nonce;
  std::copy_n(numbers.begin(), nonce.size(), nonce.begin());
  return nonce;
}

// Requests and replies differ in their first block, by the login's and the batch's numbers.
template <class Text>
void AddNumbers(size_t login, uint32_t batch, Text& text) {
  const Block numbers = InputOf(login, batch);
  for (size_t i = 0; i < numbers.size(); ++i) text[i] ^= numbers[i];
}
std::string TextOf(const BenchSetup& s, size_t number, size_t bytes, size_t login, uint32_t batch) {
  const Bytes drawn = Draw(s, Stream::kText, number, bytes);
  std::string text(drawn.begin(), drawn.end());
  AddNumbers(login, batch, text);
  return text;
}
std::string RequestOf(const BenchSetup& s, size_t login, uint32_t batch) {
  return TextOf(s, 0, s.request_bytes, login, batch);
}
std::string ReplyOf(const BenchSetup& s, size_t login, uint32_t batch) {
  return TextOf(s, 1, s.reply_bytes, login, batch);
}

// Where a lane's outputs begin, in blocks.
struct Places {
  explicit Places(const BenchSetup& s)
      : enctype(*FindEnctype(s.enctype)),
        text_bytes(kConfounderBytes + s.reply_bytes),
        mac_blocks(BlocksOf(enctype.mac_bytes)),
        checksum(kTicketBlocks),
        message(checksum + (s.checksum ? mac_blocks : 0)),
        mac(message + BlocksOf(text_bytes)),
        end(mac + mac_blocks) {}

  const Enctype& enctype;
  const size_t text_bytes, mac_blocks;
  const size_t checksum, message, mac, end;
};

// The realm's keys in the clear.
class Keys {
 public:
  explicit Keys(const BenchSetup& s) {
    SeededRandomForTest random(s.seed);
    krbtgt_ = MakePlainKey(random, "krbtgt/BENCH@BENCH", KeyClass::kTgs, kEnctypeAes256Gcm,
                           Gate::kNone);
    for (size_t i = 0; i < std::min(s.lanes, kDistinctKeys); ++i) {
      clients_.push_back(
          MakePlainKey(random, absl::StrCat("user", i, "@BENCH"), KeyClass::kUser, s.enctype));
    }
  }
  const PlainKey& krbtgt() const { return krbtgt_; }
  const PlainKey& OfClient(size_t login) const { return clients_[login % clients_.size()]; }

 private:
  PlainKey krbtgt_;
  std::vector<PlainKey> clients_;
};

AnyKeyUse UseOfKey(const KeyRecord& record, uint32_t usage) {
  return UseOf(record, *record.FindUsage(usage));
}

class LoginTeam : public TeamWork {
 public:
  LoginTeam(const BenchSetup& s, const Keys& keys, int party, size_t first, size_t lanes)
      : setup_(s),
        party_(party),
        first_(first),
        lines_(party, &unused_),
        blocks_(CutOf(s), s.isa),
        circuits_(party),
        outputs_(lanes * places_.end) {
    CtsWork::PrepareAll();
    ShareKeys(keys, lanes);
    SeededRandomForTest random(s.seed + 2);
    for (size_t i = 0; i < lanes; ++i) {
      const PlainKey& client = keys.OfClient(first + i);
      ReceivedJob& login = logins_.emplace_back();
      const std::string preauth = SealPreauth(client, TimeOf(first + i), random);
      login.job = LoginJob(2 * i, client, keys.krbtgt(), preauth,
                           {kTicketBytes, 0, s.checksum ? RequestOf(s, first + i, 0) : ""});
      Job reply;
      reply.id = 2 * i + 1;
      reply.operation = Operation::kSealGranted;
      reply.client = client.info.handle;
      reply.grant = login.job.id;
      reply.seals.push_back(
          {client.info.handle, kUsageAsReply, static_cast<uint32_t>(s.reply_bytes)});
      replies_.emplace_back().job = WithTexts(reply, ReplyOf(s, first + i, 0), random)[party];
    }
    header_ = EncodeTicketHeader(NewTicketHeader(clients_[0].info.principal_id, 1, TimeOf(first),
                                                 limits::kDefaultMaxRenewableLife));
  }

  absl::Status Run(Rings& rings, uint32_t batch, Cost* cost) override {
    SetBatch(batch);
    // Twice, as the second time the line's rate is known, and never while anything is measured.
    if (batch <= 2 && !setup_.protocol.has_value()) RETURN_IF_ERROR(HearLines(rings.first()));
    RETURN_IF_ERROR(
        ComputeAll(rings, LoginsOf(batch), LoadOfLogin(), cost, &LoginTeam::KeepLogins));
    return ComputeAll(rings, RepliesOf(), LoadOfReply(), cost, &LoginTeam::KeepReplies);
  }
  absl::Span<const SharedBlock> outputs() const override { return outputs_; }
  size_t key_bytes() const override;

 private:
  // As the three parties draw them alike. Records of the same key are copies.
  void ShareKeys(const Keys& keys, size_t lanes) {
    SeededRandomForTest random(setup_.seed + 1);
    krbtgt_ = ShareKey(keys.krbtgt(), random)[party_];
    std::vector<KeyRecord> distinct;
    for (size_t i = 0; i < std::min(setup_.lanes, kDistinctKeys); ++i) {
      distinct.push_back(ShareKey(keys.OfClient(i), random)[party_]);
    }
    for (size_t i = 0; i < lanes; ++i) clients_.push_back(distinct[(first_ + i) % distinct.size()]);
  }

  // The request is public; of the reply's text one component takes the numbers, at its two holders.
  void SetBatch(uint32_t batch) {
    for (size_t i = 0; i < logins_.size(); ++i) {
      for (const uint32_t numbers : {batch_, batch}) {
        for (MakeMacPart& part : logins_[i].job.make_macs) {
          AddNumbers(first_ + i, numbers, part.data);
        }
        TextShares& text = replies_[i].job.seals[0].text;
        auto own = absl::MakeSpan(text.own).subspan(kTextSaltBytes);
        auto before = absl::MakeSpan(text.before).subspan(kTextSaltBytes);
        if (party_ == 0) AddNumbers(first_ + i, numbers, own);
        if (party_ == 1) AddNumbers(first_ + i, numbers, before);
      }
    }
    batch_ = batch;
  }

  std::vector<JobWork> LoginsOf(uint32_t batch) const {
    std::vector<JobWork> all(logins_.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const Job& job = logins_[i].job;
      all[i].received = &logins_[i];
      all[i].client = &clients_[i].info;
      all[i].AddOpen(UseOfKey(clients_[i], kUsagePreauth), job.opens[0]);
      all[i].AddSeal(UseOfKey(krbtgt_, kUsageTicket), job.seals[0], NonceOf(first_ + i, batch),
                     header_);
      for (const MakeMacPart& part : job.make_macs) {
        all[i].AddMakeMac(UseOfKey(clients_[i], part.usage), part, {});
      }
    }
    return all;
  }
  std::vector<JobWork> RepliesOf() const {
    std::vector<JobWork> all(replies_.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const SealPart& part = replies_[i].job.seals[0];
      all[i].received = &replies_[i];
      all[i].client = &clients_[i].info;
      all[i].AddSeal(UseOfKey(clients_[i], part.usage), part, {}, "");
    }
    return all;
  }

  // What a server tells in its votes, so that the three choose alike (agree/lines.h).
  absl::Status HearLines(PartyContext& party) {
    PeerChannel& channel = party.channel();
    lines_.Measure(channel, channel, SystemClock().Now());
    Vote told;
    told.lines = lines_.own();
    const std::string bytes = EncodeVote(told);
    for (const Neighbour n : {Neighbour::kPrev, Neighbour::kNext}) {
      RETURN_IF_ERROR(channel.Send(n, FrameType::kAgreement, AsBytes(bytes)));
    }
    for (const Neighbour n : {Neighbour::kPrev, Neighbour::kNext}) {
      ASSIGN_OR_RETURN(const Frame frame,
                       channel.Receive(n, SystemClock().Now() + limits::kPeerTimeout));
      ASSIGN_OR_RETURN(const Vote vote, DecodeVote(AsText(frame.payload)));
      lines_.Hear(PartyAt(party_, n), vote.lines);
    }
    return absl::OkStatus();
  }
  CtsLoad LoadOfLogin() const {
    CtsLoad load;
    load.jobs = 1;
    load.AddPart(places_.enctype, CtsPartKind::kOpen, kConfounderBytes + kTimestampBytes);
    if (setup_.checksum) load.AddPart(places_.enctype, CtsPartKind::kMac, setup_.request_bytes);
    return load;
  }
  CtsLoad LoadOfReply() const {
    CtsLoad load;
    load.jobs = 1;
    load.AddPart(places_.enctype, CtsPartKind::kSeal, places_.text_bytes);
    return load;
  }
  // How the leader would begin with so many equal jobs: the first of them, and their protocol.
  std::pair<size_t, CtsProtocol> Choose(const CtsLoad& each, size_t jobs) const {
    if (setup_.protocol.has_value()) return {jobs, *setup_.protocol};
    const ProtocolSetting setting = setup_.randomness == Randomness::kKeyed
                                        ? ProtocolSetting::kAuto
                                        : ProtocolSetting::kReplicated;
    const BatchChoice choice = ChooseBatch(std::vector<CtsLoad>(jobs, each), lines_.Farthest(),
                                           setting, std::numeric_limits<uint64_t>::max());
    return {choice.taken.size(), choice.protocol};
  }

  // As the engine runs them, once they are agreed: in one batch, or in several garbled ones. What
  // came out of the job `first` and those behind it is kept.
  using Keep = absl::Status (LoginTeam::*)(size_t first, const BatchWork&,
                                           const std::vector<JobWork>&);
  absl::Status ComputeAll(Rings& rings, std::vector<JobWork> work, const CtsLoad& each, Cost* cost,
                          Keep keep) {
    size_t done = 0;
    do {
      const auto [jobs, protocol] = Choose(each, work.size() - done);
      const auto first = work.begin() + static_cast<ptrdiff_t>(done);
      std::vector<JobWork> taken(std::make_move_iterator(first),
                                 std::make_move_iterator(first + static_cast<ptrdiff_t>(jobs)));
      RETURN_IF_ERROR(Compute(rings, done, std::move(taken), protocol, cost, keep));
      done += jobs;
    } while (done < work.size());
    return absl::OkStatus();
  }
  absl::Status Compute(Rings& rings, size_t first, std::vector<JobWork> work, CtsProtocol protocol,
                       Cost* cost, Keep keep) {
    rings.BeginBatch(++number_);
    BatchWork batch(rings, blocks_, powers_, circuits_, work, {},
                    {setup_.sbox, setup_.adder, protocol});
    ConfirmView confirm(rings.first().party(), Sha256(absl::StrCat(number_)));
    absl::Status s = batch.ComputeBlocks(confirm);
    if (s.ok()) s = batch.CheckTags();
    if (s.ok()) s = batch.OpenTimestamps();
    if (s.ok()) s = batch.Verify();
    *cost = *cost + batch.cost();
    return s.ok() ? (this->*keep)(first, batch, work) : s;
  }

  // An error also where a pre-auth is not good.
  absl::Status KeepLogins(size_t first, const BatchWork& batch, const std::vector<JobWork>& work) {
    for (size_t i = first; i < first + work.size(); ++i) {
      const JobWork& login = work[i - first];
      const OpenWork& open = login.opens[0];
      if (!open.good || DecodePreauthTimestamp(AsText(*open.plaintext)) != TimeOf(first_ + i)) {
        return absl::InternalError(absl::StrCat("the pre-auth of login ", first_ + i, " is wrong"));
      }
      const auto& seal = std::get<GcmSeal>(login.seals[0]);
      for (size_t b = 0; b < kTicketBlocks; ++b) {
        outputs_[i * places_.end + b] = batch.FamilyOf(seal).Output(seal, b);
      }
      for (const MakeMacWork& made : login.make_macs) {
        const auto& mac = std::get<CtsMac>(made);
        Put(i, places_.checksum, batch.FamilyOf(mac).mac(mac));
      }
    }
    return absl::OkStatus();
  }
  absl::Status KeepReplies(size_t first, const BatchWork& batch, const std::vector<JobWork>& work) {
    for (size_t i = first; i < first + work.size(); ++i) {
      const auto& seal = std::get<CtsSeal>(work[i - first].seals[0]);
      Put(i, places_.message, batch.FamilyOf(seal).ciphertext(seal));
      Put(i, places_.mac, batch.FamilyOf(seal).mac(seal));
    }
    return absl::OkStatus();
  }
  void Put(size_t i, size_t place, absl::Span<const SharedBlock> blocks) {
    std::copy(blocks.begin(), blocks.end(), &outputs_[i * places_.end + place]);
  }

  const BenchSetup setup_;
  const Places places_{setup_};
  const int party_;
  const size_t first_;
  SharedStatus unused_;
  Lines lines_;
  uint32_t number_ = 0;  // of the last batch of the rings
  AesBatch blocks_;
  PowersCache powers_;
  CtsCircuits circuits_;
  KeyRecord krbtgt_;
  std::vector<KeyRecord> clients_;  // by login
  std::vector<ReceivedJob> logins_, replies_;
  std::string header_;
  uint32_t batch_ = 0;  // whose numbers are in the jobs
  SecretVector<SharedBlock> outputs_;
};

size_t LoginTeam::key_bytes() const {
  size_t blocks = 0;
  for (const KeyRecord& record : clients_) {
    for (const UsageKey& u : record.usages) blocks += u.round_keys.size() + u.mac_states.size();
  }
  return blocks * sizeof(SharedBlock);
}

// From the circuits' own costs, by public sizes; no powers of H, which the warm-up leaves behind.
DeclaredSends Declared(const BenchSetup& s, const Places& places, size_t n) {
  const Enctype& e = places.enctype;
  const AesBits bits = e.key_bytes == 16 ? AesBits::k128 : AesBits::k256;
  const bool of_text = e.family == EnctypeFamily::kRfc3962;  // else of IV and ciphertext
  constexpr size_t kPreauthBytes = kConfounderBytes + kTimestampBytes;
  const Cost confirm = {1, sizeof(Digest), sizeof(Digest)};
  const auto opening = [](size_t blocks) {
    return Cost{1, blocks * sizeof(Block), blocks * sizeof(Block)};
  };
  const auto macs = [&](size_t parts, const std::vector<HmacShape>& shapes) {
    return CostOfHmac(e.hash, s.adder.value_or(CtsWork::AdderOf(e.hash, parts)), shapes);
  };
  const auto sbox = [&](size_t blocks) { return s.sbox.value_or(BatchWork::SboxOf(blocks)); };
  DeclaredSends sends;
  if (n == 0) return sends;

  const size_t parts = s.checksum ? 2 * n : n;
  const Cost texts = CostOfCtsDecrypt(bits, std::vector<size_t>(n, kPreauthBytes), sbox(parts));
  const Cost open_macs =
      of_text ? macs(parts, std::vector<HmacShape>(n, {kPreauthBytes, true}))
              : macs(parts, std::vector<HmacShape>(n, {sizeof(Block) + kPreauthBytes, false}));
  const Cost opens = of_text ? texts + open_macs : Together(texts, open_macs);
  const Cost checksums =
      macs(parts, std::vector<HmacShape>(s.checksum ? n : 0, {s.request_bytes, false}));
  const Cost judged = opens + CostOfZeroCheck(n) + opening(n * BlocksOf(kTimestampBytes));
  const Cost login = Together(Together(judged, checksums), confirm);
  const size_t tickets = n * kTicketBlocks;
  sends = DeclaredOfBlocks(s, AesBits::k256, tickets, sbox(tickets), login);
  sends.frames += 3;  // the confirmation's, the tag check's, the time stamps' to the previous party

  const Cost chain = CostOfCtsEncrypt(bits, std::vector<size_t>(n, places.text_bytes), sbox(n));
  const size_t iv = of_text ? 0 : sizeof(Block);
  const Cost reply_macs = macs(n, std::vector<HmacShape>(n, {iv + places.text_bytes, of_text}));
  const Cost reply = of_text ? Together(chain, reply_macs)
                             : chain + opening(n * BlocksOf(places.text_bytes)) + reply_macs;
  sends.Add(s, Together(confirm, reply), of_text ? 1 : 2);
  return sends;
}

bool IsRight(const BenchSetup& s, const Places& places, const Keys& keys, size_t login,
             uint32_t batch, absl::Span<const Block> outputs) {
  if (outputs.size() != places.end) return false;
  const auto text = [&](size_t place, size_t bytes) {
    return std::string(reinterpret_cast<const char*>(outputs[place].data()), bytes);
  };
  const PlainKey& client = keys.OfClient(login);
  const SecretBytes ticket_key = PlainUsageKey(keys.krbtgt().base, kUsageTicket);
  for (uint32_t b = 0; b < kTicketBlocks; ++b) {
    const Block counter = CounterBlock(NonceOf(login, batch), 1 + b);
    if (outputs[b] != PlainAes(ticket_key, counter)) return false;
  }
  const size_t mac_bytes = places.enctype.mac_bytes;
  if (s.checksum && !OracleMacGood(client, kUsageAsReqChecksum, RequestOf(s, login, batch),
                                   CtsMacResult{text(places.checksum, mac_bytes)})) {
    return false;
  }
  const std::string message = text(places.message, places.text_bytes) + text(places.mac, mac_bytes);
  return OracleOpen(client, kUsageAsReply, message) == ReplyOf(s, login, batch);
}

}  // namespace

Workload LoginWorkload(const BenchSetup& s) {
  const Places places(s);
  const auto keys = std::make_shared<const Keys>(s);
  return {.outputs_per_lane = places.end,
          .most_verified_lanes = 64,  // their outputs go through a pipe as text
          .declared = [=](size_t lanes) { return Declared(s, places, lanes); },
          .make_team =
              [=](int party, size_t first, size_t lanes) {
                return std::make_unique<LoginTeam>(s, *keys, party, first, lanes);
              },
          .is_right =
              [=](size_t login, uint32_t batch, absl::Span<const Block> outputs) {
                return IsRight(s, places, *keys, login, batch, outputs);
              }};
}

}  // namespace mpckdc::bench
