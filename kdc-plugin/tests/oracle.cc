// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/tests/oracle.h"

#include <sodium.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "mpc-server/base/bytes.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/join.h"

namespace mpckdc::test {

std::string Xor(std::string a, const std::string& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<char>(a[i] ^ b[i]);
  return a;
}

namespace {

constexpr size_t kZero = 16;
constexpr std::chrono::seconds kPatience(2);  // for a plaintext's shares at the other servers

std::string Random(size_t bytes) {
  std::string out(bytes, '\0');
  randombytes_buf(out.data(), bytes);
  return out;
}

std::array<std::string, 3> Split(const std::string& value) {
  const std::string a = Random(value.size());
  const std::string b = Random(value.size());
  return {a, b, Xor(Xor(value, a), b)};
}

absl::Span<uint8_t> Writable(std::string& bytes) {
  return {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()};
}

std::string BigEndian(uint64_t value, size_t bytes) {
  std::string out;
  AppendUint(out, value, bytes);
  return out;
}

}  // namespace

MaskedAnswer::MaskedAnswer() {
  for (AnswerKeys& k : keys_) {
    randombytes_buf(k.key.data(), k.key.size());
    randombytes_buf(k.salt.data(), k.salt.size());
  }
  for (size_t i = 0; i < 3; ++i) checks_.push_back(std::make_unique<ShareCheck>(keys_[i].salt));
}

std::array<std::string, 3> MaskedAnswer::Split(uint32_t number, const std::string& value) {
  std::array<std::string, 3> shares = test::Split(value);
  for (size_t i = 0; i < 3; ++i) {
    OutputJoiner joiner;  // for the stream under the key of the party after
    const std::string share = shares[i];
    shares[i].assign(share.size(), '\0');
    OutputJoiner::Answer(joiner, 0, keys_[(i + 1) % 3]).Add(number, share, Writable(shares[i]));
    checks_[i]->Add(AsBytes(shares[i]));
  }
  return shares;
}

std::array<std::string, 3> MaskedAnswer::Keys() {
  std::array<std::string, 3> out;
  for (size_t i = 0; i < 3; ++i) {
    keys_[(i + 1) % 3].before_share = checks_[i]->Finish();
    keys_[(i + 2) % 3].next_key = CheckOfKey(keys_[i].key);
  }
  for (size_t i = 0; i < 3; ++i) out[i] = EncodeAnswerKeys(keys_[i]);
  return out;
}

std::string UsageKey(const std::string& base, uint32_t usage) {
  return std::string(AsText(PlainUsageKey(AsBytes(base), usage)));
}

std::string SealMessage(const std::string& base, uint32_t usage, const std::string& nonce,
                        const std::string& header, const std::string& plain) {
  return std::string(AsText(PlainSeal(PlainUsageKey(AsBytes(base), usage), AsBytes(nonce),
                                      AsBytes(header), AsBytes(plain))));
}

bool OpenMessage(const std::string& base, uint32_t usage, const std::string& message,
                 std::string* header, std::string* plain) {
  const auto opened = PlainOpen(PlainUsageKey(AsBytes(base), usage), AsBytes(message));
  if (!opened.ok()) return false;
  header->assign(opened->header.begin(), opened->header.end());
  plain->assign(opened->plaintext.begin(), opened->plaintext.end());
  return true;
}

void Oracle::SetKey(const v1::KeyInfo& info, const std::string& base) {
  std::lock_guard<std::mutex> lock(mutex_);
  infos_[info.handle()] = info;
  bases_[info.handle()] = base;
}

void Oracle::Commit(int party, const v1::SharePackage& package) {
  const v1::KeyInfo& info = package.info();
  std::lock_guard<std::mutex> lock(mutex_);
  std::map<int, v1::SharePackage>& shares = shares_[info.handle()];
  shares[party] = package;
  if (shares.size() < 3) return;
  infos_[info.handle()] = info;
  bases_[info.handle()] =
      shares[0].base_x().empty()
          ? Random(FindEnctype(info.enctype())->key_bytes)
          : JoinForTest({shares[0].base_x(), shares[1].base_x(), shares[2].base_x()},
                        {shares[0].base_a(), shares[1].base_a(), shares[2].base_a()});
}

void Oracle::Stage(int party, const v1::SharePackage& package) {
  const std::lock_guard<std::mutex> lock(mutex_);
  staged_[package.info().handle()][party] = package;
}

// By what the shares of the three join to.
std::optional<bool> Oracle::Compare(const std::string& staged, const std::string& old) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = bases_.find(old);
  std::map<int, v1::SharePackage>& shares = staged_[staged];
  if (found == bases_.end() || shares.size() < 3) return std::nullopt;
  if (blind) return false;
  return shares_[old][0].info().enctype() == shares[0].info().enctype() &&
         found->second == JoinForTest({shares[0].base_x(), shares[1].base_x(), shares[2].base_x()},
                                      {shares[0].base_a(), shares[1].base_a(), shares[2].base_a()});
}

// What is kept for the history is only compared.
void Oracle::KeepForHistory(const std::string& handle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  infos_.erase(handle);
}

void Oracle::DeleteKey(const std::string& handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  infos_.erase(handle);
  bases_.erase(handle);
}

std::map<std::string, v1::KeyInfo> Oracle::Keys() {
  std::lock_guard<std::mutex> lock(mutex_);
  return infos_;
}

std::string Oracle::Base(const std::string& handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  return bases_.contains(handle) ? bases_[handle] : "";
}

void Oracle::SetGate(const std::string& handle, v1::Gate gate) {
  std::lock_guard<std::mutex> lock(mutex_);
  infos_[handle].set_gate(gate);
}

int Oracle::jobs() {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int>(done_.size());
}

std::string Oracle::NextNonce() { return std::string(4, '\0') + BigEndian(next_nonce_++, 8); }

std::string Oracle::HeaderFor(const v1::Job& job, const v1::Seal& seal) {
  if (seal.usage() != 2) return "";
  if (job.operation() == v1::OPERATION_REISSUE_TICKET) {
    std::string header, plain;
    Open(job.opens(0), &header, &plain);
    if (!header.empty()) header[0] = '\x02';
    return header;
  }
  const uint64_t now = static_cast<uint64_t>(time(nullptr));
  const PrincipalId whom = PrincipalIdOf(infos_[job.client()].principal());
  return std::string(1, '\x01') + std::string(AsText(whom)) +
         BigEndian(now, 4) + BigEndian(now + 7 * 86400, 4) + BigEndian(job.id(), 8);
}

bool Oracle::Open(const v1::Open& open, std::string* header, std::string* plain) {
  const std::string& base = bases_[open.handle()];
  const Enctype& enctype = EnctypeOf(open.handle());
  if (enctype.is_gcm()) {
    return OpenMessage(base, open.usage(), open.message(), header, plain);
  }
  header->clear();
  const auto opened = CtsOpen(enctype, AsBytes(base), open.usage(), open.message());
  *plain = opened.value_or("");
  return opened.has_value();
}

template <class Part>
std::string Oracle::MacOf(const Part& part, const std::string& nonce) {
  const std::string& base = bases_[part.handle()];
  const Enctype& enctype = EnctypeOf(part.handle());
  return enctype.is_gcm() ? GcmEncrypt(UsageKey(base, part.usage()), nonce, part.data(), "").tag
                          : CtsChecksum(enctype, AsBytes(base), part.usage(), part.data());
}

bool Oracle::Verify(const v1::VerifyMac& mac) {
  const std::string& checksum = mac.checksum();
  if (!EnctypeOf(mac.handle()).is_gcm()) return checksum == MacOf(mac, "");
  return checksum.size() == 28 && checksum.substr(12) == MacOf(mac, checksum.substr(0, 12));
}

v1::Verdict Oracle::Judge(const std::string& session, const v1::Job& job, std::string* detail) {
  const auto known = [&](const auto& part) { return bases_.contains(part.handle()); };
  if (!std::ranges::all_of(job.opens(), known) || !std::ranges::all_of(job.seals(), known)) {
    return v1::VERDICT_UNKNOWN_HANDLE;
  }
  std::string header, plain;
  for (const auto& part : job.opens()) {
    if (!Open(part, &header, &plain)) return v1::VERDICT_BAD_TAG;
    if (part.usage() == 1 && ++presented_[part.message()] > 2) return v1::VERDICT_REPLAY;
  }
  for (const auto& part : job.verify_macs()) {
    if (!Verify(part)) return v1::VERDICT_BAD_TAG;
  }
  if (job.operation() == v1::OPERATION_SEAL_GRANTED) {
    auto grant = done_.find({session, job.grant()});
    if (grant == done_.end() || !grant->second.leaves_grant) {
      *detail = "no such grant";
      return v1::VERDICT_REFUSED;
    }
  }
  if (job.operation() == v1::OPERATION_LOGIN && job.opens_size() == 0 &&
      infos_[job.client()].gate() == v1::GATE_TIMESTAMP) {
    *detail = "pre-authentication required";
    return v1::VERDICT_REFUSED;
  }
  return v1::VERDICT_OK;
}

void Oracle::AddOpen(const v1::Open& open, Done& done) {
  std::string header, plain;
  Open(open, &header, &plain);
  const bool gcm = EnctypeOf(open.handle()).is_gcm();
  // The keystream is what the ciphertext and the plaintext differ by.
  const auto shares = done.masks.Split(
      OutputNumber(OutputField::kOpen, 0),
      gcm ? Xor(open.message().substr(13 + header.size() + kZero, plain.size()), plain) : plain);
  for (int i = 0; i < 3; ++i) {
    v1::OpenAnswer* answer = done.answers[i].add_opens();
    gcm ? answer->set_keystream_share(shares[i]) : answer->set_plaintext_share(shares[i]);
  }
}

void Oracle::AddSeal(const v1::Job& job, int index, Done& done) {
  const v1::Seal& seal = job.seals(index);
  const std::string& base = bases_[seal.handle()];
  const Enctype& enctype = EnctypeOf(seal.handle());
  if (!enctype.is_gcm()) {
    const std::array<std::string, 3>& plain = done.plaintexts[static_cast<size_t>(index)];
    const auto shares =
        done.masks.Split(OutputNumber(OutputField::kSeal, static_cast<size_t>(index)),
                         CtsSeal(enctype, AsBytes(base), seal.usage(), Random(kConfounderBytes),
                                 Xor(Xor(plain[0], plain[1]), plain[2])));
    for (int i = 0; i < 3; ++i) done.answers[i].add_seals()->set_message_share(shares[i]);
    done.seals.emplace_back();  // no tag to ask for
    return;
  }
  Sealed sealed{
      UsageKey(base, seal.usage()), NextNonce(), HeaderFor(job, seal), "", "", {}, {}, {}};
  sealed.keystream =
      GcmEncrypt(sealed.key, sealed.nonce, "", std::string(kZero + seal.max_plaintext(), '\0'))
          .ciphertext;
  const auto shares = done.masks.Split(OutputNumber(OutputField::kSeal, static_cast<size_t>(index)),
                                       sealed.keystream);
  for (int i = 0; i < 3; ++i) {
    v1::SealAnswer* answer = done.answers[i].add_seals();
    answer->set_nonce(sealed.nonce);
    answer->set_header(sealed.header);
    answer->set_keystream_share(shares[i]);
  }
  done.seals.push_back(std::move(sealed));
}

void Oracle::AddMac(const v1::MakeMac& mac, Done& done) {
  const std::string nonce = EnctypeOf(mac.handle()).is_gcm() ? NextNonce() : "";
  const auto shares = done.masks.Split(OutputNumber(OutputField::kMakeMac, 0), MacOf(mac, nonce));
  for (int i = 0; i < 3; ++i) {
    v1::MakeMacAnswer* answer = done.answers[i].add_make_macs();
    answer->set_nonce(nonce);
    answer->set_tag_share(shares[i]);
  }
}

void Oracle::Compute(const std::string& session, const v1::Job& job, Done& done) {
  std::string detail;
  const v1::Verdict verdict = Judge(session, job, &detail);
  for (v1::JobAnswer& answer : done.answers) {
    answer.set_id(job.id());
    answer.set_verdict(verdict);
    answer.set_detail(detail);
  }
  done.computed = true;
  if (verdict != v1::VERDICT_OK) return;
  done.leaves_grant = job.operation() == v1::OPERATION_LOGIN ||
                      job.operation() == v1::OPERATION_OPEN_PREAUTH;
  for (const auto& open : job.opens()) AddOpen(open, done);
  for (int i = 0; i < job.seals_size(); ++i) AddSeal(job, i, done);
  for (const auto& mac : job.make_macs()) AddMac(mac, done);
  const auto keys = done.masks.Keys();
  for (size_t i = 0; i < 3; ++i) done.answers[i].set_keys(keys[i]);
}

// Notes what a party got of the plaintexts, and waits for the others'. False if one is missing, or
// a seal has components that its enctype does not ask for, of another length or with other hashes.
bool Oracle::Receive(int party, const v1::Job& job, std::unique_lock<std::mutex>& lock,
                     Done& done) {
  bool wanted = false;
  done.plaintexts.resize(static_cast<size_t>(job.seals_size()));
  for (int i = 0; i < job.seals_size(); ++i) {
    const v1::Seal& seal = job.seals(i);
    const Enctype* enctype = FindEnctype(infos_[seal.handle()].enctype());
    const bool cts = enctype != nullptr && !enctype->is_gcm();
    const auto bytes = [](const std::string& s) { return SecretBytes(s.begin(), s.end()); };
    const TextShares text = {bytes(seal.own_component()), bytes(seal.before_component()),
                             seal.component_hashes()};
    std::string why;
    if (text.bytes() != (cts ? seal.max_plaintext() : 0)) return false;
    if (!text.empty() && !TextSharesFit(text, party, &why)) return false;
    wanted |= cts;
    done.plaintexts[static_cast<size_t>(i)][static_cast<size_t>(party)] =
        text.empty() ? "" : seal.own_component().substr(kTextSaltBytes);
  }
  done.received.insert(party);
  received_.notify_all();
  return !wanted || received_.wait_for(lock, kPatience, [&] { return done.received.size() == 3; });
}

std::vector<std::array<std::string, 3>> Oracle::plaintext_shares() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::array<std::string, 3>> all;
  for (const auto& [id, done] : done_) {
    for (const auto& shares : done.plaintexts) {
      if (!shares[0].empty()) all.push_back(shares);
    }
  }
  return all;
}

void ClearComponents(v1::Job& job) {
  for (v1::Seal& seal : *job.mutable_seals()) {
    seal.clear_own_component();
    seal.clear_before_component();
  }
}

v1::JobAnswer Oracle::Answer(int party, const std::string& session, const v1::Job& job) {
  v1::Job common = job;
  ClearComponents(common);
  v1::JobAnswer answer;
  answer.set_id(job.id());
  std::unique_lock<std::mutex> lock(mutex_);
  auto [place, fresh] = done_.try_emplace({session, job.id()});
  Done& done = place->second;
  if (fresh) done.job = common.SerializeAsString();
  if (done.job != common.SerializeAsString()) {
    answer.set_verdict(v1::VERDICT_INCONSISTENT);
    return answer;
  }
  if (!Receive(party, job, lock, done)) {
    answer.set_verdict(v1::VERDICT_MALFORMED);
    return answer;
  }
  if (!done.computed) Compute(session, common, done);
  return done.answers[party];
}

v1::TagAnswer Oracle::Tag(int party, const std::string& session, const v1::TagRequest& request) {
  v1::TagAnswer answer;
  answer.set_job(request.job());
  answer.set_seal(request.seal());
  answer.set_verdict(v1::VERDICT_REFUSED);
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = done_.find({session, request.job()});
  if (found == done_.end() || request.seal() >= found->second.seals.size()) {
    answer.set_detail("no such seal");
    return answer;
  }
  Sealed& sealed = found->second.seals[request.seal()];
  const std::string& ct = request.ciphertext();
  if (ct.size() > sealed.keystream.size() || !sealed.asked.insert(party).second) {
    answer.set_detail("the tag was given already, or the text is too long");
    return answer;
  }
  if (sealed.ciphertext.empty()) {
    sealed.ciphertext = ct;
    MaskedAnswer masks;
    sealed.tag_shares = masks.Split(
        OutputNumber(OutputField::kTag, 0),
        GcmEncrypt(sealed.key, sealed.nonce, BigEndian(sealed.header.size(), 1) + sealed.header,
                   Xor(ct, sealed.keystream))
            .tag);
    sealed.tag_keys = masks.Keys();
  }
  answer.set_verdict(v1::VERDICT_OK);
  answer.set_tag_share(sealed.ciphertext == ct ? sealed.tag_shares[party] : Random(16));
  answer.set_keys(sealed.tag_keys[party]);
  return answer;
}

}  // namespace mpckdc::test
