// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/client/combiner.h"

#include <string.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc::client {
namespace {

// The verdicts that say something about the message; the others say that the job was not computed.
bool NeedsAllThree(v1::Verdict verdict) {
  switch (verdict) {
    case v1::VERDICT_OK:
    case v1::VERDICT_BAD_TAG:
    case v1::VERDICT_CLOCK_SKEW:
    case v1::VERDICT_REPLAY:
    case v1::VERDICT_REFUSED:
      return true;
    default:
      return false;
  }
}

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
      return "; the servers did not receive the same job: are all three of this realm and cluster?";
    case v1::VERDICT_QUOTA:
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
  return absl::StrCat(who, ": ", name, detail.empty() ? "" : ": ", detail, WhatToDo(verdict));
}

void XorInto(SecretBytes& sum, const std::string& share) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] ^= static_cast<uint8_t>(share[i]);
}

// A result together with what its pointers point to.
struct ResultBox : mpc_result {
  std::string detail_text;
  SecretBytes open_keystream_bytes, open_plaintext_bytes;
  std::string headers[MPC_MAX_SEALS];
  SecretBytes keystreams[MPC_MAX_SEALS];
  SecretBytes messages[MPC_MAX_SEALS];
};

mpc_bytes View(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
mpc_bytes View(const SecretBytes& bytes) { return {bytes.data(), bytes.size()}; }

// Bytes of plaintext in a message; 0 when it is too short to hold any.
size_t PlaintextBytes(const Enctype& enctype, mpc_bytes message) {
  size_t around = kConfounderBytes + enctype.mac_bytes;
  if (enctype.is_gcm()) {
    if (message.size <= MPC_NONCE_BYTES) return 0;
    const size_t header = message.data[MPC_NONCE_BYTES];
    around = MPC_NONCE_BYTES + 1 + header + MPC_ZERO_BYTES + MPC_TAG_BYTES;
  }
  return message.size > around ? message.size - around : 0;
}

OpenSizes SizesOf(const mpc_open& open) {
  const Enctype& enctype = *FindEnctype(open.enctype);
  const size_t bytes = PlaintextBytes(enctype, open.message);
  if (enctype.is_gcm()) return {.keystream = bytes};
  return {.plaintext = bytes};
}

SealSizes SizesOf(const mpc_seal& seal) {
  const Enctype& enctype = *FindEnctype(seal.enctype);
  if (enctype.is_gcm()) {
    return {.nonce = MPC_NONCE_BYTES,
            .max_header = MPC_MAX_HEADER_BYTES,
            .keystream = MPC_ZERO_BYTES + size_t{seal.max_plaintext}};
  }
  return {.message = kConfounderBytes + seal.plaintext.size + enctype.mac_bytes};
}

MacSizes SizesOf(const mpc_make_mac& mac) {
  const Enctype& enctype = *FindEnctype(mac.enctype);
  return {.nonce = enctype.is_gcm() ? size_t{MPC_NONCE_BYTES} : 0, .tag = enctype.mac_bytes};
}

bool Fits(const OpenSizes& sizes, const v1::OpenAnswer& answer) {
  return answer.keystream_share().size() == sizes.keystream &&
         answer.plaintext_share().size() == sizes.plaintext;
}

bool Fits(const SealSizes& sizes, const v1::SealAnswer& answer) {
  return answer.nonce().size() == sizes.nonce && answer.header().size() <= sizes.max_header &&
         answer.keystream_share().size() == sizes.keystream &&
         answer.message_share().size() == sizes.message;
}

bool Fits(const MacSizes& sizes, const v1::MakeMacAnswer& answer) {
  return answer.nonce().size() == sizes.nonce && answer.tag_share().size() == sizes.tag;
}

}  // namespace

bool VerdictVote::Add(int server, v1::Verdict verdict, const std::string& detail,
                      const std::string& who) {
  if (decided_ || answered_[server]) return false;
  answered_[server] = true;
  ++count_;
  if (!NeedsAllThree(verdict)) {
    Fail(Unavailable(Describe(verdict, detail, who)));
    return true;
  }
  if (count_ == 1) {
    first_ = verdict;
    first_detail_ = detail;
    first_who_ = who;
  } else if (verdict != first_) {
    Fail(Unavailable(absl::StrCat("the servers disagree: ",
                                  Describe(first_, first_detail_, first_who_), "; ",
                                  Describe(verdict, detail, who),
                                  "; compare their clocks and stores with mpc-admin doctor")));
    return true;
  }
  if (count_ < MPC_SERVERS) return false;
  Fail({FromWire(verdict),
        verdict == v1::VERDICT_OK ? "" : Describe(first_, first_detail_, first_who_)});
  return true;
}

void VerdictVote::Fail(Outcome outcome) {
  if (decided_) return;
  decided_ = true;
  outcome_ = std::move(outcome);
}

JobCombiner::JobCombiner(const mpc_job& job) {
  if (job.open != nullptr) open_.emplace().sizes = SizesOf(*job.open);
  for (size_t i = 0; i < job.seal_count; ++i) seals_.emplace_back().sizes = SizesOf(job.seals[i]);
  if (job.make_mac != nullptr) mac_.emplace().sizes = SizesOf(*job.make_mac);
}

bool JobCombiner::Add(int server, const v1::JobAnswer& answer, const std::string& who) {
  if (vote_.decided() || vote_.Answered(server)) return false;
  if (answer.verdict() == v1::VERDICT_OK) {
    if (!SizesFit(answer)) {
      Fail(Unavailable(absl::StrCat(who, ": an answer of the wrong size", "; are the versions of "
                                    "the KDC's plugin and this server compatible?")));
      return true;
    }
    if (!PublicPartsAgree(answer)) {
      Fail(Unavailable(absl::StrCat(who, ": another nonce or header than the other servers; run "
                                    "mpc-admin doctor")));
      return true;
    }
    AddShares(answer);
  }
  return vote_.Add(server, answer.verdict(), answer.detail(), who);
}

bool JobCombiner::SizesFit(const v1::JobAnswer& answer) const {
  if (answer.opens_size() != (open_.has_value() ? 1 : 0)) return false;
  if (answer.make_macs_size() != (mac_.has_value() ? 1 : 0)) return false;
  if (static_cast<size_t>(answer.seals_size()) != seals_.size()) return false;
  if (open_.has_value() && !Fits(open_->sizes, answer.opens(0))) return false;
  if (mac_.has_value() && !Fits(mac_->sizes, answer.make_macs(0))) return false;
  for (size_t i = 0; i < seals_.size(); ++i) {
    if (!Fits(seals_[i].sizes, answer.seals(static_cast<int>(i)))) return false;
  }
  return true;
}

// The first answer's public parts are those that the others must have.
void JobCombiner::TakePublicParts(const v1::JobAnswer& answer) {
  if (open_.has_value()) {
    open_->keystream.assign(open_->sizes.keystream, 0);
    open_->plaintext.assign(open_->sizes.plaintext, 0);
  }
  if (mac_.has_value()) {
    mac_->nonce = answer.make_macs(0).nonce();
    mac_->tag.assign(mac_->sizes.tag, 0);
  }
  for (size_t i = 0; i < seals_.size(); ++i) {
    seals_[i].nonce = answer.seals(static_cast<int>(i)).nonce();
    seals_[i].header = answer.seals(static_cast<int>(i)).header();
    seals_[i].keystream.assign(seals_[i].sizes.keystream, 0);
    seals_[i].message.assign(seals_[i].sizes.message, 0);
  }
}

bool JobCombiner::PublicPartsAgree(const v1::JobAnswer& answer) {
  if (!seen_ok_) {
    seen_ok_ = true;
    TakePublicParts(answer);
    return true;
  }
  if (mac_.has_value() && mac_->nonce != answer.make_macs(0).nonce()) return false;
  for (size_t i = 0; i < seals_.size(); ++i) {
    const v1::SealAnswer& seal = answer.seals(static_cast<int>(i));
    if (seal.nonce() != seals_[i].nonce || seal.header() != seals_[i].header) return false;
  }
  return true;
}

void JobCombiner::AddShares(const v1::JobAnswer& answer) {
  if (open_.has_value()) {
    XorInto(open_->keystream, answer.opens(0).keystream_share());
    XorInto(open_->plaintext, answer.opens(0).plaintext_share());
  }
  if (mac_.has_value()) XorInto(mac_->tag, answer.make_macs(0).tag_share());
  for (size_t i = 0; i < seals_.size(); ++i) {
    const v1::SealAnswer& seal = answer.seals(static_cast<int>(i));
    XorInto(seals_[i].keystream, seal.keystream_share());
    XorInto(seals_[i].message, seal.message_share());
  }
}

mpc_result* JobCombiner::Take(uint64_t id) {
  auto box = std::make_unique<ResultBox>();
  static_cast<mpc_result&>(*box) = mpc_result{};
  box->verdict = vote_.outcome().verdict;
  box->id = id;
  box->detail_text = vote_.outcome().detail;
  box->detail = box->detail_text.c_str();
  if (box->verdict != MPC_OK) return box.release();
  if (open_.has_value()) {
    box->open_keystream_bytes = std::move(open_->keystream);
    box->open_plaintext_bytes = std::move(open_->plaintext);
    box->open_keystream = View(box->open_keystream_bytes);
    box->open_plaintext = View(box->open_plaintext_bytes);
  }
  box->seal_count = seals_.size();
  for (size_t i = 0; i < seals_.size(); ++i) {
    memcpy(box->seals[i].nonce, seals_[i].nonce.data(), seals_[i].nonce.size());
    box->headers[i] = std::move(seals_[i].header);
    box->keystreams[i] = std::move(seals_[i].keystream);
    box->messages[i] = std::move(seals_[i].message);
    box->seals[i].header = View(box->headers[i]);
    box->seals[i].keystream = View(box->keystreams[i]);
    box->seals[i].message = View(box->messages[i]);
  }
  if (mac_.has_value()) {
    box->mac_size = mac_->nonce.size() + mac_->tag.size();
    memcpy(box->mac, mac_->nonce.data(), mac_->nonce.size());
    memcpy(box->mac + mac_->nonce.size(), mac_->tag.data(), mac_->tag.size());
  }
  return box.release();
}

TagCombiner::~TagCombiner() { Wipe(tag_.data(), tag_.size()); }

bool TagCombiner::Add(int server, const v1::TagAnswer& answer, const std::string& who) {
  if (vote_.decided() || vote_.Answered(server)) return false;
  if (answer.verdict() == v1::VERDICT_OK) {
    if (answer.tag_share().size() != MPC_TAG_BYTES) {
      Fail(Unavailable(absl::StrCat(who, ": a tag share of the wrong size")));
      return true;
    }
    for (size_t i = 0; i < tag_.size(); ++i) tag_[i] ^= static_cast<uint8_t>(answer.tag_share()[i]);
  }
  return vote_.Add(server, answer.verdict(), answer.detail(), who);
}

}  // namespace mpckdc::client

extern "C" void mpc_result_free(mpc_result* result) noexcept {
  if (result == nullptr) return;
  auto* box = static_cast<mpckdc::client::ResultBox*>(result);
  mpckdc::Wipe(box->mac, sizeof(box->mac));
  delete box;  // what it holds besides wipes itself
}
