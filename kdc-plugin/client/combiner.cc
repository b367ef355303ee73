// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/client/combiner.h"

#include <string.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "mpc-server/base/one_line.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc::client {

// A result together with what its pointers point to.
struct ResultBox : mpc_result {
  std::string detail_text;
  std::vector<PartSum> open_sums, seal_sums;
};

namespace {

// The verdicts that say something about the message need all three. The others say that the job was
// not computed.
mpc_verdict FromWire(v1::Verdict verdict) {
  switch (verdict) {
    case v1::VERDICT_OK:
      return MPC_OK;
    case v1::VERDICT_BAD_TAG:
      return MPC_BAD_TAG;
    case v1::VERDICT_CLOCK_SKEW:
      return MPC_CLOCK_SKEW;
    case v1::VERDICT_REPLAY:
      return MPC_REPLAY;
    case v1::VERDICT_REFUSED:
      return MPC_REFUSED;
    case v1::VERDICT_UNPROVED:
      return MPC_UNPROVED;
    default:
      return MPC_UNAVAILABLE;
  }
}

const char* WhatToDo(v1::Verdict verdict) {
  switch (verdict) {
    case v1::VERDICT_UNKNOWN_HANDLE:
      return "; the KDC database and this server's store differ: run mpc-admin doctor";
    case v1::VERDICT_DEADLINE:
      return "; the servers are slow or overloaded: see mpc-admin status";
    case v1::VERDICT_INCONSISTENT:
      return "; the servers do not agree about the job: are all three of this realm, cluster and time?";
    case v1::VERDICT_QUOTA:
    case v1::VERDICT_UNPROVED:
      return "; see [quota] in that server's mpc-server.toml, and its audit log";
    case v1::VERDICT_UNAVAILABLE:
      return "; see mpc-admin status and that server's log";
    case v1::VERDICT_MALFORMED:
      return "; do the KDC's plugin and this server have the same version?";
    default:
      return "";
  }
}

std::string Describe(v1::Verdict verdict, const std::string& detail, const std::string& who) {
  const std::string wire_name = v1::Verdict_Name(verdict);
  const std::string name = wire_name.empty()
                               ? absl::StrCat("unknown verdict ", static_cast<int>(verdict))
                               : std::string(absl::StripPrefix(wire_name, "VERDICT_"));
  return absl::StrCat(who, ": ", name, detail.empty() ? "" : ": ", OnOneLine(detail),
                      WhatToDo(verdict));
}

mpc_bytes View(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
mpc_bytes View(const SecretBytes& bytes) { return {bytes.data(), bytes.size()}; }

PartSum SumOf(const mpc_open& open) {
  const Enctype& enctype = *FindEnctype(open.enctype);
  const absl::string_view message(reinterpret_cast<const char*>(open.message.data),
                                  open.message.size);
  const auto plaintext_bytes = [](const auto& parsed) {
    return parsed.has_value() ? parsed->PlaintextBytes() : 0;
  };
  if (enctype.is_gcm()) return {.gcm = true, .bytes = plaintext_bytes(ParseMessage(message))};
  return {.gcm = false, .bytes = plaintext_bytes(ParseCtsMessage(enctype, message))};
}

PartSum SumOf(const mpc_seal& seal) {
  const Enctype& enctype = *FindEnctype(seal.enctype);
  if (enctype.is_gcm()) {
    return {.gcm = true,
            .bytes = kZeroBytes + size_t{seal.max_plaintext},
            .nonce_bytes = kNonceBytes,
            .max_header = MPC_MAX_HEADER_BYTES};
  }
  return {.gcm = false, .bytes = kConfounderBytes + seal.plaintext.size + enctype.mac_bytes};
}

PartSum SumOf(const mpc_make_mac& mac) {
  const Enctype& enctype = *FindEnctype(mac.enctype);
  return {.gcm = enctype.is_gcm(),
          .bytes = enctype.mac_bytes,
          .nonce_bytes = enctype.is_gcm() ? kNonceBytes : 0};
}

// The fields of one part's answer.
struct PartAnswer {
  absl::string_view share;
  absl::string_view foreign;  // the other family's share: none
  absl::string_view nonce{}, header{};
};

PartAnswer Read(const PartSum& part, const v1::OpenAnswer& answer) {
  PartAnswer read{answer.keystream_share(), answer.plaintext_share()};
  if (!part.gcm) std::swap(read.share, read.foreign);
  return read;
}

PartAnswer Read(const PartSum& part, const v1::SealAnswer& answer) {
  PartAnswer read{answer.keystream_share(), answer.message_share(), answer.nonce(),
                  answer.header()};
  if (!part.gcm) std::swap(read.share, read.foreign);
  return read;
}

PartAnswer Read(const PartSum&, const v1::MakeMacAnswer& answer) {
  return {answer.tag_share(), {}, answer.nonce()};
}

bool SizesFit(const PartSum& part, const PartAnswer& answer) {
  return answer.share.size() == part.bytes && answer.foreign.empty() &&
         answer.nonce.size() == part.nonce_bytes && answer.header.size() <= part.max_header;
}

bool PublicFieldsAgree(const PartSum& part, const PartAnswer& answer) {
  return answer.nonce == part.nonce && answer.header == part.header;
}

bool TakePublicFields(PartSum& part, const PartAnswer& answer) {
  part.nonce = std::string(answer.nonce);
  part.header = std::string(answer.header);
  part.sum.assign(part.bytes, 0);
  return true;
}

template <class Answers, class F>
bool ForEach(std::vector<PartSum>& parts, const Answers& answers, F f) {
  if (static_cast<size_t>(answers.size()) != parts.size()) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!f(parts[i], Read(parts[i], answers[static_cast<int>(i)]))) return false;
  }
  return true;
}

}  // namespace

bool Combiner::Vote(const Sender& from, v1::Verdict verdict, const std::string& detail) {
  answered_[from.server] = true;
  ++count_;
  if (!v1::Verdict_IsValid(verdict) || verdict == v1::VERDICT_UNSPECIFIED) {
    Fail(Outage(absl::StrCat(from.name(), ": no verdict that there is (", verdict,
                             "); are the versions of the KDC's plugin and this server compatible?"),
                MPC_WRONG_ANSWERS));
    return true;
  }
  const mpc_verdict ours = FromWire(verdict);
  // Not of a tag: the three have computed the job, so that one who cannot finish it is alone with it.
  if ((ours == MPC_UNAVAILABLE || ours == MPC_UNPROVED) && !is_tag()) {
    Fail({ours, Describe(verdict, detail, from.name()),
          verdict == v1::VERDICT_UNAVAILABLE ? MPC_OUTAGE : MPC_NO_OUTAGE,
          verdict == v1::VERDICT_QUOTA});
    return true;
  }
  if (count_ == 1) {
    first_ = verdict;
    first_detail_ = detail;
    first_who_ = from.name();
  } else if (verdict != first_) {
    // The fault of one of them, who may be alone with it: another triple is asked.
    Fail(Outage(absl::StrCat("the servers disagree: ", Describe(first_, first_detail_, first_who_),
                             "; ", Describe(verdict, detail, from.name()),
                             "; compare their clocks and stores with mpc-admin doctor"),
                MPC_WRONG_ANSWERS));
    return true;
  }
  if (count_ < MPC_SERVERS) return false;
  if (verdict == v1::VERDICT_OK) {
    const auto contradictions = joiner_.Contradictions();
    if (!contradictions.empty()) return Accuse(Blame(contradictions, from.names));
  }
  Fail({FromWire(verdict),
        verdict == v1::VERDICT_OK ? "" : Describe(first_, first_detail_, first_who_),
        MPC_NO_OUTAGE});
  return true;
}

bool Combiner::Accuse(const std::string& text) {
  accusation_ = text;
  Fail(Outage(absl::StrCat(text, "; nothing of it was taken"), MPC_WRONG_ANSWERS));
  return true;
}

void Combiner::Fail(Outcome outcome) {
  if (decided_) return;
  decided_ = true;
  outcome_ = std::move(outcome);
}

JobCombiner::JobCombiner(const mpc_job& job, mpc_job_done done, void* arg)
    : done_(done), arg_(arg) {
  if (job.open != nullptr) opens_.push_back(SumOf(*job.open));
  for (size_t i = 0; i < job.seal_count; ++i) seals_.push_back(SumOf(job.seals[i]));
  if (job.make_mac != nullptr) macs_.push_back(SumOf(*job.make_mac));
  const auto number = [](std::vector<PartSum>& parts, OutputField field) {
    for (size_t i = 0; i < parts.size(); ++i) parts[i].number = OutputNumber(field, i);
  };
  number(opens_, OutputField::kOpen);
  number(seals_, OutputField::kSeal);
  number(macs_, OutputField::kMakeMac);
}

template <class F>
bool JobCombiner::ForEachPart(const v1::JobAnswer& answer, F f) {
  return ForEach(opens_, answer.opens(), f) && ForEach(seals_, answer.seals(), f) &&
         ForEach(macs_, answer.make_macs(), f);
}

bool JobCombiner::Add(const Sender& from, const v1::JobAnswer& answer) {
  if (!Awaits(from.server)) return false;
  if (answer.verdict() == v1::VERDICT_OK && !TakeOutputs(from, answer)) return true;
  return Vote(from, answer.verdict(), answer.detail());
}

bool JobCombiner::TakeOutputs(const Sender& from, const v1::JobAnswer& answer) {
  const std::optional<AnswerKeys> keys = DecodeAnswerKeys(answer.keys());
  if (!keys.has_value() || !answer.detail().empty() || !ForEachPart(answer, SizesFit)) {
    // Whatever the job was: no server that is well says so, and another triple is asked.
    Fail(Outage(absl::StrCat(from.name(), ": an answer of the wrong size",
                             "; are the versions of the KDC's plugin and this server "
                             "compatible?"),
                MPC_WRONG_ANSWERS));
    return false;
  }
  if (first_ok_.empty()) {
    first_ok_ = from.name();
    ForEachPart(answer, TakePublicFields);
  } else if (!ForEachPart(answer, PublicFieldsAgree)) {
    Accuse(absl::StrCat("one of ", first_ok_, " and ", from.name(),
                        " altered its answer: they name different nonces or headers"));
    return false;
  }
  OutputJoiner::Answer outputs(joiner(), from.party, *keys);
  return ForEachPart(answer, [&](PartSum& part, const PartAnswer& read) {
    outputs.Add(part.number, read.share, absl::MakeSpan(part.sum));
    return true;
  });
}

void JobCombiner::Deliver() {
  auto box = std::make_unique<ResultBox>();
  static_cast<mpc_result&>(*box) = mpc_result{};
  box->verdict = outcome().verdict;
  box->detail_text = outcome().detail;
  box->detail = box->detail_text.c_str();
  box->outage = outcome().outage;
  box->over_quota = outcome().over_quota ? 1 : 0;
  if (box->verdict == MPC_OK) FillIn(*box);
  done_(arg_, box.release());
}

void JobCombiner::FillIn(ResultBox& box) {
  box.id = id_;
  box.open_sums = std::move(opens_);
  for (const PartSum& open : box.open_sums) {
    (open.gcm ? box.open_keystream : box.open_plaintext) = View(open.sum);
  }
  box.seal_sums = std::move(seals_);
  box.seal_count = box.seal_sums.size();
  for (size_t i = 0; i < box.seal_count; ++i) {
    const PartSum& seal = box.seal_sums[i];
    memcpy(box.seals[i].nonce, seal.nonce.data(), seal.nonce.size());
    box.seals[i].header = View(seal.header);
    (seal.gcm ? box.seals[i].keystream : box.seals[i].message) = View(seal.sum);
  }
  for (const PartSum& mac : macs_) {
    box.mac_size = mac.nonce.size() + mac.sum.size();
    memcpy(box.mac, mac.nonce.data(), mac.nonce.size());
    memcpy(box.mac + mac.nonce.size(), mac.sum.data(), mac.sum.size());
  }
}

TagCombiner::~TagCombiner() { Wipe(tag_.data(), tag_.size()); }

bool TagCombiner::Add(const Sender& from, const v1::TagAnswer& answer) {
  if (!Awaits(from.server)) return false;
  if (answer.verdict() == v1::VERDICT_OK) {
    const std::optional<AnswerKeys> keys = DecodeAnswerKeys(answer.keys());
    if (!keys.has_value() || !answer.detail().empty() ||
        answer.tag_share().size() != MPC_TAG_BYTES) {
      Fail(Outage(absl::StrCat(from.name(), ": a tag answer of the wrong size"),
                  MPC_WRONG_ANSWERS));
      return true;
    }
    OutputJoiner::Answer(joiner(), from.party, *keys)
        .Add(OutputNumber(OutputField::kTag, 0), answer.tag_share(), absl::MakeSpan(tag_));
  }
  return Vote(from, answer.verdict(), answer.detail());
}

void TagCombiner::Deliver() {
  const mpc_verdict verdict = outcome().verdict;
  done_(arg_, verdict, verdict == MPC_OK ? tag_.data() : nullptr, outcome().detail.c_str());
}

}  // namespace mpckdc::client

extern "C" void mpc_result_free(mpc_result* result) noexcept {
  if (result == nullptr) return;
  auto* box = static_cast<mpckdc::client::ResultBox*>(result);
  mpckdc::Wipe(box->mac, sizeof(box->mac));
  delete box;  // what it holds besides wipes itself
}
