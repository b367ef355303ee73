// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/output_format.h"

#include <openssl/evp.h>
#include <sodium.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/secret.h"

namespace mpckdc {
namespace {

int PartyBefore(int party) { return (party + OutputJoiner::kServers - 1) % OutputJoiner::kServers; }
int PartyAfter(int party) { return (party + 1) % OutputJoiner::kServers; }

}  // namespace

std::string EncodeAnswerKeys(const AnswerKeys& keys) {
  std::string bytes(kAnswerKeysBytes, '\0');
  std::memcpy(bytes.data(), &keys, kAnswerKeysBytes);
  return bytes;
}

std::optional<AnswerKeys> DecodeAnswerKeys(absl::string_view bytes) {
  if (bytes.size() != kAnswerKeysBytes) return std::nullopt;
  AnswerKeys keys;
  std::memcpy(&keys, bytes.data(), kAnswerKeysBytes);
  return keys;
}

std::array<uint8_t, 16> FirstOutputCounter(uint32_t number) {
  std::array<uint8_t, 16> block{};
  for (int i = 0; i < 4; ++i) block[i] = static_cast<uint8_t>(number >> (24 - 8 * i));
  return block;
}

OutputCheck CheckOfKey(const OutputKey& key) {
  static constexpr char kDomain[] = "mpc-kdc output key v1";
  OutputCheck check;
  crypto_generichash(check.data(), check.size(), reinterpret_cast<const uint8_t*>(kDomain),
                     sizeof(kDomain), key.data(), key.size());
  return check;
}

struct ShareCheck::State : crypto_generichash_state {};

ShareCheck::ShareCheck(const OutputKey& salt) {
  static_assert(sizeof(State) <= sizeof(state_) && alignof(State) <= 64);
  static constexpr char kDomain[] = "mpc-kdc output share v1";
  auto* state = new (state_) State;
  crypto_generichash_init(state, salt.data(), salt.size(), sizeof(OutputCheck));
  crypto_generichash_update(state, reinterpret_cast<const uint8_t*>(kDomain), sizeof(kDomain));
}

ShareCheck::~ShareCheck() { Wipe(state_, sizeof(state_)); }

void ShareCheck::Add(absl::Span<const uint8_t> share) {
  crypto_generichash_update(std::launder(reinterpret_cast<State*>(state_)), share.data(),
                            share.size());
}

OutputCheck ShareCheck::Finish() {
  OutputCheck check;
  crypto_generichash_final(std::launder(reinterpret_cast<State*>(state_)), check.data(),
                           check.size());
  return check;
}

// AES-128 in counter mode. OpenSSL's memory is wiped when it is freed.
struct OutputJoiner::Answer::Stream {
  explicit Stream(const OutputKey& key) : context(EVP_CIPHER_CTX_new()) {
    // Looked up once: each look-up takes a lock of the process.
    static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-128-CTR", nullptr);
    if (context == nullptr || cipher == nullptr ||
        EVP_EncryptInit_ex(context, cipher, nullptr, key.data(), nullptr) != 1) {
      std::abort();
    }
  }
  ~Stream() { EVP_CIPHER_CTX_free(context); }

  void Xor(uint32_t number, absl::Span<uint8_t> data) {
    const auto counter = FirstOutputCounter(number);
    int written = 0;
    if (EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, counter.data()) != 1 ||
        EVP_EncryptUpdate(context, data.data(), &written, data.data(),
                          static_cast<int>(data.size())) != 1) {
      std::abort();
    }
  }

  EVP_CIPHER_CTX* const context;
};

OutputJoiner::Answer::Answer(OutputJoiner& joiner, int party, const AnswerKeys& keys)
    : joiner_(joiner),
      party_(party),
      check_(keys.salt),
      stream_(std::make_unique<Stream>(keys.key)) {
  joiner.parties_[party] = {{}, CheckOfKey(keys.key), keys.before_share, keys.next_key};
}

OutputJoiner::Answer::~Answer() { joiner_.parties_[party_].share = check_.Finish(); }

void OutputJoiner::Answer::Add(uint32_t number, absl::string_view share, absl::Span<uint8_t> sum) {
  check_.Add({reinterpret_cast<const uint8_t*>(share.data()), share.size()});
  for (size_t i = 0; i < sum.size(); ++i) sum[i] ^= static_cast<uint8_t>(share[i]);
  stream_->Xor(number, sum);
}

std::vector<OutputJoiner::Contradiction> OutputJoiner::Contradictions() const {
  std::vector<Contradiction> found;
  for (int p = 0; p < kServers; ++p) {
    const int before = PartyBefore(p), after = PartyAfter(p);
    const auto differ = [](const OutputCheck& a, const OutputCheck& b) {
      return !ConstantTimeEqual(a, b);
    };
    if (differ(parties_[p].share, parties_[after].before_share))
      found.push_back({p, after, "share"});
    if (differ(parties_[p].key, parties_[before].next_key)) found.push_back({p, before, "key"});
  }
  return found;
}

std::string Blame(const std::vector<OutputJoiner::Contradiction>& contradictions,
                  const std::array<std::string, OutputJoiner::kServers>& names) {
  std::vector<int> in_all;
  for (int p = 0; p < OutputJoiner::kServers; ++p) {
    if (std::all_of(contradictions.begin(), contradictions.end(),
                    [p](const auto& c) { return c.sender == p || c.checker == p; })) {
      in_all.push_back(p);
    }
  }
  std::string text;
  if (in_all.size() == 1) {
    text = absl::StrCat(names[in_all[0]], " altered its answer:");
  } else if (in_all.size() == 2) {
    text = absl::StrCat("one of ", names[in_all[0]], " and ", names[in_all[1]],
                        " altered its answer:");
  } else {
    text = "more than one server altered its answer, or the three were asked different things:";
  }
  for (const auto& c : contradictions) {
    absl::StrAppend(&text, &c == contradictions.data() ? " " : ", ", "the ", c.what, " of ",
                    names[c.sender], " is not what ", names[c.checker], " says of it");
  }
  return text;
}

}  // namespace mpckdc
