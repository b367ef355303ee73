// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/hand_over.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/confirm_view.h"
#include "mpc-server/agree/steps.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/compute/key_work.h"
#include "mpc-server/store/record_codec.h"

namespace mpckdc {
namespace {

enum Message : uint8_t {
  kHandles = 4,
  kLacking = 5,
  kComponents = 6,
  kStored = 7,
  kCandidates = 8
};

// As many as are verified together, at most.
constexpr size_t kKeysPerBatch = kMostKeysHandedOver;

// As many as are named together where the newcomer lacked none of the last ones: only its answer
// waits for the two others, who go on behind the last handle of it.
constexpr size_t kNamesPerBatch = 4096;

using Handles = std::vector<Handle>;

void AppendHandles(std::string& out, const Handles& handles) {
  AppendUint(out, handles.size(), 4);
  for (const Handle& handle : handles) absl::StrAppend(&out, AsText(handle));
}

bool ReadHandles(ByteReader& in, Handles* out) {
  const uint64_t count = in.Uint(4);
  if (in.left() / sizeof(Handle) < count) return false;
  out->resize(count);
  for (Handle& handle : *out) in.Into(handle);
  return in.ok();
}

// How many of those that were named a batch deals with: what is behind the last of a full answer is
// named again.
absl::StatusOr<size_t> DealtWith(const Handles& named, const Handles& lacking) {
  if (lacking.size() < kKeysPerBatch) return named.size();
  const auto last = std::find(named.begin(), named.end(), lacking.back());
  if (last == named.end()) return absl::DataLossError("it lacks what was not named");
  return static_cast<size_t>(last - named.begin()) + 1;
}

// A mark as it is told.
constexpr uint64_t kForHistory = uint64_t{1} << 63;

uint64_t RetiredNumber(const std::optional<RetiredMark>& mark) {
  if (!mark.has_value()) return 0;
  return static_cast<uint64_t>(absl::ToUnixMicros(mark->since)) |
         (mark->for_history ? kForHistory : 0);
}

std::optional<RetiredMark> RetiredOf(uint64_t number) {
  if (number == 0) return std::nullopt;
  return RetiredMark{.since = absl::FromUnixMicros(static_cast<int64_t>(number & ~kForHistory)),
                     .for_history = (number & kForHistory) != 0};
}

absl::Status Malformed(int party) {
  return absl::DataLossError(
      absl::StrCat("server ", party, " hands keys over in a way that this server does not know"));
}

class HandOver : public KeyRound {
 public:
  HandOver(EngineState& state, const GroupId& group, int receiver)
      : KeyRound(BatchKind::kHandOver, group, absl::InfiniteFuture()),
        store_(*state.store),
        recent_(state.recent),
        wanted_here_(state.wanted),
        own_(state.party),
        receiver_(receiver),
        guide_(PrevParty(receiver)) {}

  std::vector<ProposalEntry> Entries(BatchRecords&) override {
    return {{group, 0, Digest{}, kVoteOk}};
  }
  std::vector<VoteCode> Vote(const std::vector<ProposalEntry>&, BatchRecords&) override {
    return {kVoteOk};
  }
  CtsLoad LoadOf(const ProposalEntry&, BatchRecords&) const override { return {}; }
  bool Begin(BatchRings& rings, Ballot& ballot) override {
    if (ballot.agreed[0].code != kVoteOk) return false;
    party_ = &rings.party();
    by_ = {CtsProtocol::kReplicated, ViewOf(ballot, "")};
    rings.rings.SetContext(by_.agreed);
    return true;
  }
  absl::Status Compute() override { return own_ == receiver_ ? Receive() : Give(); }
  void Finish(EngineState& state, const absl::Status& computed) override {
    if (!computed.ok()) return;  // the session ends, and the next one begins anew
    next_try = absl::InfinitePast();
    if (own_ == receiver_) {
      state.status.Update([&](EngineStatus& status) {
        status.handed_over += stored_;
        status.left_out += left_out_;
      });
    }
    if (last_ && second_pass_) return EndHandOver(state);
    if (!last_) return;
    second_pass_ = true;
    guide_ = NextParty(receiver_);
  }
  void Answer(const absl::Status&) override {}

 private:
  void EndHandOver(EngineState& state) {
    const absl::MutexLock lock(&state.waiting.mu);
    state.waiting.key_rounds.remove_if([&](const KeyRoundPtr& r) { return r.get() == this; });
  }

  absl::Status Send(int to, absl::string_view message) {
    return party_->channel().Send(NeighbourOf(own_, to), FrameType::kAgreement, AsBytes(message));
  }
  absl::StatusOr<Frame> Hear(int from, Message expected) {
    ASSIGN_OR_RETURN(Frame frame,
                     party_->channel().Receive(NeighbourOf(own_, from),
                                               party_->clock().Now() + limits::kPeerTimeout));
    if (frame.type != FrameType::kAgreement || frame.payload.empty() ||
        frame.payload[0] != expected) {
      return Malformed(from);
    }
    return frame;
  }

  // ---- The two who have the keys ----
  absl::Status Give();
  absl::StatusOr<Handles> Next();
  absl::Status ReadMore();
  absl::StatusOr<Handles> Held(Handles handles) const;
  absl::Status SendComponents(const Handles& handles);
  absl::Status HearStored();
  absl::Status HearHandles(Handles* handles);
  absl::StatusOr<Handles> HearLacking(const Handles& named);
  // Of the records that the newcomer would take, which belong together. All three at once.
  absl::StatusOr<std::vector<bool>> VerifyTogether(const std::vector<KeyRecord>& records);
  absl::StatusOr<std::vector<KeyRecord>> HearCandidates();

  // ---- The one who has not ----
  absl::Status Receive();
  struct Component {
    std::optional<RetiredMark> retired;
    SecretBytes bytes;
  };
  absl::StatusOr<std::vector<Component>> HearComponents(int from, size_t count);
  absl::Status Store(const Handles& lacking, const std::vector<Component>& own,
                     const std::vector<Component>& of_prev);

  ShareStore& store_;
  RecentHandles& recent_;
  WantedHandles& wanted_here_;
  const int own_, receiver_;
  int guide_;
  bool second_pass_ = false;
  PartyContext* party_ = nullptr;  // of the batch under way
  KeyProtocol by_;                 // with its view

  // The guide's.
  bool begun_ = false;
  size_t keys_per_batch_ = kFewKeysHandedOver;
  std::deque<Handle> wanted_, left_;
  std::optional<Handle> next_ = Handle{};  // from which on handles are still to be read
  bool lacked_none_ = false;

  // Of the batch under way.
  std::vector<KeyRecord> sent_;  // of which this one gave its component
  bool last_ = false;
  size_t stored_ = 0, left_out_ = 0;
};

// ---- Giving ----

// Those that this server has, each once: what logins name may have been deleted since, and is no
// loss then; and it is among all keys again.
absl::StatusOr<Handles> HandOver::Held(Handles handles) const {
  ASSIGN_OR_RETURN(const Handles lacking, store_.Lacking(handles));
  absl::flat_hash_set<Handle> left_out(lacking.begin(), lacking.end());
  std::erase_if(handles, [&](const Handle& handle) { return !left_out.insert(handle).second; });
  return handles;
}

absl::StatusOr<Handles> HandOver::Next() {
  if (!begun_) {
    for (const Handle& handle : recent_.LastFirst()) left_.push_back(handle);
    begun_ = true;
  }
  const size_t most = second_pass_ || lacked_none_ ? kNamesPerBatch : keys_per_batch_;
  if (left_.size() < most && next_.has_value()) RETURN_IF_ERROR(ReadMore());
  Handles some;
  // Half of them at most are wanted: there is an end to it.
  const auto take = [&some](std::deque<Handle>& queue, size_t until) {
    for (; !queue.empty() && some.size() < until; queue.pop_front()) some.push_back(queue.front());
  };
  take(wanted_, keys_per_batch_ / 2);
  take(left_, most);
  last_ = left_.empty() && !next_.has_value();
  return Held(std::move(some));
}

// Never all at once: the two others wait for the message, and a database takes its time over
// millions.
absl::Status HandOver::ReadMore() {
  ASSIGN_OR_RETURN(const Handles more, store_.HandlesFrom(*next_, kNamesPerBatch));
  left_.insert(left_.end(), more.begin(), more.end());
  next_ = more.size() < kNamesPerBatch ? std::nullopt : NextHandle(more.back());
  return absl::OkStatus();
}

absl::Status HandOver::HearHandles(Handles* handles) {
  ASSIGN_OR_RETURN(const Frame frame, Hear(guide_, kHandles));
  ByteReader in(frame.payload);
  in.Uint(1);
  last_ = in.Uint(1) == 1;
  if (!ReadHandles(in, handles) || !in.AtEnd() || handles->size() > kNamesPerBatch) {
    return Malformed(guide_);
  }
  return absl::OkStatus();
}

absl::StatusOr<Handles> HandOver::HearLacking(const Handles& named) {
  ASSIGN_OR_RETURN(const Frame frame, Hear(receiver_, kLacking));
  ByteReader in(frame.payload);
  in.Uint(1);
  Handles lacking;
  if (!ReadHandles(in, &lacking) || !in.AtEnd() || lacking.size() > kKeysPerBatch) {
    return Malformed(receiver_);
  }
  const absl::StatusOr<size_t> dealt_with = DealtWith(named, lacking);
  if (!dealt_with.ok()) return Malformed(receiver_);
  if (*dealt_with < named.size()) last_ = false;
  if (own_ == guide_) left_.insert(left_.begin(), named.begin() + *dealt_with, named.end());
  lacked_none_ = lacking.empty();
  return lacking;
}

absl::Status HandOver::SendComponents(const Handles& handles) {
  // To P_i goes a_i from P_{i+1}, which has it as its previous one's, and a_{i-1} from P_{i-1}.
  const bool of_prev = receiver_ == PrevParty(own_);
  SecretBytes out;
  AppendUint(out, kComponents, 1);
  AppendUint(out, handles.size(), 4);
  sent_.clear();
  // In this order: what is collected in between is not here, and is not sent as a key in use.
  ASSIGN_OR_RETURN(const auto retired, store_.MarksOf(handles));
  std::vector<absl::StatusOr<KeyRecord>> records = store_.GetMany(handles);
  for (size_t i = 0; i < handles.size(); ++i) {
    AppendUint(out, RetiredNumber(retired[i]), 8);
    if (!records[i].ok()) {
      AppendUint(out, 0, 4);
      continue;
    }
    const SecretBytes component = EncodeComponent(*records[i], of_prev);
    AppendUint(out, component.size(), 4);
    AppendBytes(out, component);
    sent_.push_back(*std::move(records[i]));
  }
  return party_->channel().Send(NeighbourOf(own_, receiver_), FrameType::kAgreement, out);
}

absl::Status HandOver::HearStored() {
  ASSIGN_OR_RETURN(const Frame frame, Hear(receiver_, kStored));
  ByteReader in(frame.payload);
  in.Uint(1);
  stored_ = in.Uint(4);
  left_out_ = in.Uint(4);
  Handles wanted;
  if (!ReadHandles(in, &wanted) || !in.AtEnd() || wanted.size() > kKeysPerBatch) {
    return Malformed(receiver_);
  }
  wanted_.insert(wanted_.end(), wanted.begin(), wanted.end());
  return absl::OkStatus();
}

absl::Status HandOver::Give() {
  const absl::Time begin = party_->clock().Now();
  Handles named;
  if (own_ == guide_) {
    ASSIGN_OR_RETURN(named, Next());
    std::string message;
    AppendUint(message, kHandles, 1);
    AppendUint(message, last_ ? 1 : 0, 1);
    AppendHandles(message, named);
    for (int to = 0; to < kParties; ++to) {
      if (to != own_) RETURN_IF_ERROR(Send(to, message));
    }
  } else {
    RETURN_IF_ERROR(HearHandles(&named));
  }
  ASSIGN_OR_RETURN(const Handles lacking, HearLacking(named));
  RETURN_IF_ERROR(SendComponents(lacking));
  ASSIGN_OR_RETURN(const std::vector<KeyRecord> candidates, HearCandidates());
  RETURN_IF_ERROR(VerifyTogether(candidates).status());
  RETURN_IF_ERROR(HearStored());
  keys_per_batch_ =
      KeysOfNextBatch(keys_per_batch_, lacking.size(), party_->clock().Now() - begin);
  return absl::OkStatus();
}

// Those of which both gave a component, as it was then: a key may be collected here meanwhile, and
// the newcomer, who hears that it is deleted, collects it too.
absl::StatusOr<std::vector<KeyRecord>> HandOver::HearCandidates() {
  ASSIGN_OR_RETURN(const Frame frame, Hear(receiver_, kCandidates));
  ByteReader in(frame.payload);
  in.Uint(1);
  Handles handles;
  if (!ReadHandles(in, &handles) || !in.AtEnd() || handles.size() > kKeysPerBatch) {
    return Malformed(receiver_);
  }
  std::vector<KeyRecord> records;
  for (const Handle& handle : handles) {
    const auto of_handle = [&](const KeyRecord& record) { return record.info.handle == handle; };
    const auto found = std::find_if(sent_.begin(), sent_.end(), of_handle);
    if (found == sent_.end()) return Malformed(receiver_);
    records.push_back(std::move(*found));
    sent_.erase(found);
  }
  sent_.clear();
  return records;
}

absl::StatusOr<std::vector<bool>> HandOver::VerifyTogether(const std::vector<KeyRecord>& records) {
  if (records.empty()) return std::vector<bool>();
  std::vector<const KeyRecord*> pointers;
  for (const KeyRecord& record : records) pointers.push_back(&record);
  ConfirmView confirm(own_, Sha256(absl::StrCat(AsText(by_.agreed), ShapeOf(records))));
  Cost cost;
  return VerifyRecords(*party_, pointers, by_, confirm, &cost);
}

// ---- Receiving ----

absl::StatusOr<std::vector<HandOver::Component>> HandOver::HearComponents(int from, size_t count) {
  ASSIGN_OR_RETURN(const Frame frame, Hear(from, kComponents));
  ByteReader in(frame.payload);
  in.Uint(1);
  if (in.Uint(4) != count) return Malformed(from);
  std::vector<Component> components(count);
  for (Component& component : components) {
    component.retired = RetiredOf(in.Uint(8));
    const absl::Span<const uint8_t> bytes = in.Bytes(in.Uint(4));
    component.bytes.assign(bytes.begin(), bytes.end());
  }
  if (!in.AtEnd()) return Malformed(from);
  return components;
}

// Deleted is what both say is, since the later of their times, and kept what one of them keeps: one
// that lies has nothing collected.
std::optional<RetiredMark> Both(const std::optional<RetiredMark>& a,
                                const std::optional<RetiredMark>& b) {
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  return RetiredMark{.since = std::max(a->since, b->since),
                     .for_history = a->for_history || b->for_history};
}

absl::Status HandOver::Store(const Handles& lacking, const std::vector<Component>& own,
                             const std::vector<Component>& of_prev) {
  std::vector<KeyRecord> records;
  std::vector<std::optional<RetiredMark>> retired;
  Handles candidates;
  for (size_t i = 0; i < lacking.size(); ++i) {
    absl::StatusOr<KeyRecord> record =
        JoinComponents(lacking[i], own[i].bytes, of_prev[i].bytes);
    if (!record.ok()) continue;
    retired.push_back(Both(own[i].retired, of_prev[i].retired));
    records.push_back(*std::move(record));
    candidates.push_back(lacking[i]);
  }
  std::string message;
  AppendUint(message, kCandidates, 1);
  AppendHandles(message, candidates);
  for (const int to : {PrevParty(own_), NextParty(own_)}) RETURN_IF_ERROR(Send(to, message));
  ASSIGN_OR_RETURN(const std::vector<bool> good, VerifyTogether(records));
  std::vector<ShareStore::Received> keys;
  for (size_t i = 0; i < records.size(); ++i) {
    if (good[i]) keys.push_back({std::move(records[i]), retired[i]});
  }
  stored_ = keys.size();
  left_out_ = lacking.size() - keys.size();
  return keys.empty() ? absl::OkStatus() : store_.Receive(keys);
}

absl::Status HandOver::Receive() {
  Handles some;
  RETURN_IF_ERROR(HearHandles(&some));
  ASSIGN_OR_RETURN(Handles lacking, store_.Lacking(some));
  if (lacking.size() > kKeysPerBatch) lacking.resize(kKeysPerBatch);
  ASSIGN_OR_RETURN(const size_t dealt_with, DealtWith(some, lacking));
  if (dealt_with < some.size()) last_ = false;
  std::string message;
  AppendUint(message, kLacking, 1);
  AppendHandles(message, lacking);
  for (const int to : {PrevParty(own_), NextParty(own_)}) RETURN_IF_ERROR(Send(to, message));
  ASSIGN_OR_RETURN(const auto of_prev, HearComponents(PrevParty(own_), lacking.size()));
  ASSIGN_OR_RETURN(const auto own, HearComponents(NextParty(own_), lacking.size()));
  RETURN_IF_ERROR(Store(lacking, own, of_prev));
  // Whoever names handles that nobody has keeps nothing from its end.
  const Handles wanted = wanted_here_.Take(kKeysPerBatch);
  if (last_ && second_pass_) RETURN_IF_ERROR(store_.EndReceiving());
  message.clear();
  AppendUint(message, kStored, 1);
  AppendUint(message, stored_, 4);
  AppendUint(message, left_out_, 4);
  AppendHandles(message, wanted);
  for (const int to : {PrevParty(own_), NextParty(own_)}) RETURN_IF_ERROR(Send(to, message));
  return absl::OkStatus();
}

}  // namespace

std::string ShapeOf(absl::Span<const KeyRecord> records) {
  std::string shape;
  for (const KeyRecord& record : records) {
    absl::StrAppend(&shape, HandleText(record.info.handle), ",", record.info.enctype, ",",
                    static_cast<int>(record.info.key_class));
    for (const uint32_t usage : record.UsageNumbers()) absl::StrAppend(&shape, ",", usage);
    absl::StrAppend(&shape, ";");
  }
  return shape;
}

size_t KeysOfNextBatch(size_t present, size_t given, absl::Duration took) {
  constexpr absl::Duration kLong = absl::Milliseconds(250);
  if (took > kLong) return std::max(present / 2, kFewKeysHandedOver / 4);
  if (took < kLong / 3 && given >= present) return std::min(present * 2, kMostKeysHandedOver);
  return present;
}

void RecentHandles::Note(absl::Span<const Handle> handles) {
  const absl::MutexLock lock(&mu_);
  for (const Handle& handle : handles) {
    if (ring_.size() < limits::kRecentHandles) {
      ring_.push_back(handle);
    } else {
      ring_[next_] = handle;
    }
    next_ = (next_ + 1) % limits::kRecentHandles;
  }
}

std::vector<Handle> RecentHandles::LastFirst() const {
  absl::flat_hash_set<Handle> seen;
  std::vector<Handle> handles;
  const absl::MutexLock lock(&mu_);
  for (size_t i = 0; i < ring_.size(); ++i) {
    const Handle& handle = ring_[(next_ + ring_.size() - 1 - i) % ring_.size()];
    if (seen.insert(handle).second) handles.push_back(handle);
  }
  return handles;
}

void WantedHandles::Note(const Handle& handle) {
  const absl::MutexLock lock(&mu_);
  if (wanted_.size() < kKeysPerBatch) wanted_.insert(handle);
}

std::vector<Handle> WantedHandles::Take(size_t count) {
  const absl::MutexLock lock(&mu_);
  std::vector<Handle> taken;
  while (!wanted_.empty() && taken.size() < count) {
    taken.push_back(*wanted_.begin());
    wanted_.erase(wanted_.begin());
  }
  return taken;
}

KeyRoundPtr MakeHandOver(EngineState& state, const PeerSession& session, int receiver) {
  return std::make_shared<HandOver>(state, session.parties[0]->session_id(), receiver);
}

void DropHandOvers(EngineState& state) {
  const absl::MutexLock lock(&state.waiting.mu);
  state.waiting.key_rounds.remove_if(
      [](const KeyRoundPtr& round) { return round->kind == BatchKind::kHandOver; });
}

}  // namespace mpckdc
