// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/client/combiner.h"

#include <string.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

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
  SecretBytes open;
  std::string headers[MPC_MAX_SEALS];
  SecretBytes keystreams[MPC_MAX_SEALS];
};

mpc_bytes View(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
mpc_bytes View(const SecretBytes& bytes) { return {bytes.data(), bytes.size()}; }

}  // namespace

size_t PlaintextBytes(const std::string& message) {
  if (message.size() <= MPC_NONCE_BYTES) return 0;
  const size_t header = static_cast<uint8_t>(message[MPC_NONCE_BYTES]);
  const size_t around = MPC_NONCE_BYTES + 1 + header + MPC_ZERO_BYTES + MPC_TAG_BYTES;
  return message.size() > around ? message.size() - around : 0;
}

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

JobCombiner::JobCombiner(const v1::Job& job) {
  has_open_ = job.opens_size() > 0;
  if (has_open_) open_bytes_ = PlaintextBytes(job.opens(0).message());
  has_mac_ = job.make_macs_size() > 0;
  for (const v1::Seal& seal : job.seals()) {
    seals_.emplace_back().keystream_bytes = MPC_ZERO_BYTES + size_t{seal.max_plaintext()};
  }
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
  if (answer.opens_size() != (has_open_ ? 1 : 0)) return false;
  if (answer.make_macs_size() != (has_mac_ ? 1 : 0)) return false;
  if (static_cast<size_t>(answer.seals_size()) != seals_.size()) return false;
  if (has_open_ && answer.opens(0).keystream_share().size() != open_bytes_) return false;
  if (has_mac_ && (answer.make_macs(0).nonce().size() != MPC_NONCE_BYTES ||
                   answer.make_macs(0).tag_share().size() != MPC_TAG_BYTES)) {
    return false;
  }
  for (size_t i = 0; i < seals_.size(); ++i) {
    const v1::SealAnswer& seal = answer.seals(static_cast<int>(i));
    if (seal.nonce().size() != MPC_NONCE_BYTES || seal.header().size() > MPC_MAX_HEADER_BYTES ||
        seal.keystream_share().size() != seals_[i].keystream_bytes) {
      return false;
    }
  }
  return true;
}

bool JobCombiner::PublicPartsAgree(const v1::JobAnswer& answer) {
  if (!seen_ok_) {
    seen_ok_ = true;
    open_keystream_.assign(open_bytes_, 0);
    mac_tag_.assign(MPC_TAG_BYTES, 0);
    if (has_mac_) mac_nonce_ = answer.make_macs(0).nonce();
    for (size_t i = 0; i < seals_.size(); ++i) {
      seals_[i].nonce = answer.seals(static_cast<int>(i)).nonce();
      seals_[i].header = answer.seals(static_cast<int>(i)).header();
      seals_[i].keystream.assign(seals_[i].keystream_bytes, 0);
    }
    return true;
  }
  if (has_mac_ && mac_nonce_ != answer.make_macs(0).nonce()) return false;
  for (size_t i = 0; i < seals_.size(); ++i) {
    const v1::SealAnswer& seal = answer.seals(static_cast<int>(i));
    if (seal.nonce() != seals_[i].nonce || seal.header() != seals_[i].header) return false;
  }
  return true;
}

void JobCombiner::AddShares(const v1::JobAnswer& answer) {
  if (has_open_) XorInto(open_keystream_, answer.opens(0).keystream_share());
  if (has_mac_) XorInto(mac_tag_, answer.make_macs(0).tag_share());
  for (size_t i = 0; i < seals_.size(); ++i) {
    XorInto(seals_[i].keystream, answer.seals(static_cast<int>(i)).keystream_share());
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
  box->open = std::move(open_keystream_);
  box->open_keystream = View(box->open);
  box->seal_count = seals_.size();
  for (size_t i = 0; i < seals_.size(); ++i) {
    memcpy(box->seals[i].nonce, seals_[i].nonce.data(), MPC_NONCE_BYTES);
    box->headers[i] = std::move(seals_[i].header);
    box->keystreams[i] = std::move(seals_[i].keystream);
    box->seals[i].header = View(box->headers[i]);
    box->seals[i].keystream = View(box->keystreams[i]);
  }
  if (has_mac_) {
    memcpy(box->mac, mac_nonce_.data(), MPC_NONCE_BYTES);
    memcpy(box->mac + MPC_NONCE_BYTES, mac_tag_.data(), MPC_TAG_BYTES);
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
  delete box;  // its keystreams wipe themselves
}
