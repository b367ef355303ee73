// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/login_workload.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "mpc-server/bench/workload.h"
#include "mpc-server/key/derivation.h"
#include "mpc-server/testing/aes_plain.h"
#include "mpc-server/testing/three_parties.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc::bench {
namespace {

// What is drawn for a login, from Stream::kText.
enum class Part : uint64_t { kTimestamp, kRequest, kReply, kConfounder, kCount };
// Keys beyond those of the logins, from Stream::kKeys.
constexpr uint64_t kTicketKey = 1u << 20;

Bytes DrawText(const BenchSetup& setup, size_t login, Part part, size_t bytes) {
  Bytes out(bytes);
  const auto count = static_cast<uint64_t>(Part::kCount);
  DrawFromSeed(setup.seed, Stream::kText, login * count + static_cast<uint64_t>(part),
               absl::MakeSpan(out));
  return out;
}

Bytes WithNumbers(Bytes text, size_t login, uint32_t batch) {
  const Block numbers = InputOf(login, batch);
  std::copy(numbers.begin(), numbers.end(), text.begin());
  return text;
}

void Must(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "mpc-bench: OpenSSL's %s failed\n", what);
  std::abort();
}

// Whole blocks, a zero IV.
Bytes OpenSsl(const EVP_CIPHER* cipher, const Bytes& key, const Bytes& in) {
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> ctx(
      EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  const uint8_t iv[16] = {};
  Bytes out(in.size());
  int n = 0;
  Must(ctx != nullptr &&
           EVP_EncryptInit_ex(ctx.get(), cipher, nullptr, key.data(), iv) == 1 &&
           EVP_CIPHER_CTX_set_padding(ctx.get(), 0) == 1 &&
           EVP_EncryptUpdate(ctx.get(), out.data(), &n, in.data(), static_cast<int>(in.size())) ==
               1,
       "AES");
  return out;
}

Bytes CtsOf(const Bytes& key, Bytes text) {
  const size_t bytes = text.size();
  text.resize(CtsBlocks(bytes) * 16);
  Bytes out = OpenSsl(key.size() == 16 ? EVP_aes_128_cbc() : EVP_aes_256_cbc(), key, text);
  std::swap_ranges(out.end() - 32, out.end() - 16, out.end() - 16);
  out.resize(bytes);
  return out;
}

Bytes HmacOf(HashKind hash, const Bytes& key, const Bytes& text) {
  const EVP_MD* md = hash == HashKind::kSha1     ? EVP_sha1()
                     : hash == HashKind::kSha256 ? EVP_sha256()
                                                 : EVP_sha384();
  Bytes out(HashDigestBytes(hash));
  Must(HMAC(md, key.data(), static_cast<int>(key.size()), text.data(), text.size(), out.data(),
            nullptr) != nullptr,
       "HMAC");
  return out;
}

Bytes DrawKey(const BenchSetup& setup, uint64_t number, size_t bytes) {
  Bytes key(bytes);
  DrawFromSeed(setup.seed, Stream::kKeys, number, absl::MakeSpan(key));
  return key;
}

// This party's shares of `values`; x_0 and x_1 are stream `number`, x_2 is their sum.
void ShareInto(const BenchSetup& setup, int party, uint64_t number, absl::Span<const Block> values,
               SharedBlock* out) {
  SecretVector<Block> x(kParties * values.size());
  const size_t n = values.size();
  DrawFromSeed(setup.seed, Stream::kSharing, number,
               absl::MakeSpan(x.front().data(), 2 * n * sizeof(Block)));
  for (size_t k = 0; k < n; ++k) x[2 * n + k] = XorBlocks(x[k], x[n + k]);
  const size_t own = static_cast<size_t>(party) * n;
  const size_t previous = static_cast<size_t>(PrevParty(party)) * n;
  for (size_t k = 0; k < n; ++k) out[k] = {x[own + k], XorBlocks(x[previous + k], values[k])};
}

}  // namespace

LoginSizes::LoginSizes(const BenchSetup& setup)
    : enctype(*FindEnctype(setup.login->enctype)),
      bits(enctype.key_bytes == 16 ? AesBits::k128 : AesBits::k256),
      round_keys(KeyStride(bits)),
      states(enctype.mac_state_blocks()),
      key_blocks(2 * round_keys + 3 * states),
      usage3(round_keys + states),
      usage56(2 * usage3),
      text_bytes(kConfounderBytes + setup.login->reply_bytes),
      digest_blocks(HashStateBlocks(enctype.hash)),
      message(1),
      mac(message + CtsBlocks(text_bytes)),
      checksum(mac + digest_blocks),
      ticket(checksum + (setup.login->checksum ? digest_blocks : 0)),
      outputs(ticket + kTicketBlocks) {}

Bytes TimestampOf(const BenchSetup& setup, size_t login) {
  return DrawText(setup, login, Part::kTimestamp, kTimestampBytes);
}
Bytes RequestOf(const BenchSetup& setup, size_t login, uint32_t batch) {
  return WithNumbers(DrawText(setup, login, Part::kRequest, setup.login->request_bytes), login,
                     batch);
}
Bytes ReplyOf(const BenchSetup& setup, size_t login, uint32_t batch) {
  return WithNumbers(DrawText(setup, login, Part::kReply, setup.login->reply_bytes), login, batch);
}
Block TicketInput(size_t login, size_t block, uint32_t batch) {
  return InputOf(login * kTicketBlocks + block, batch);
}

// --- in the clear --------------------------------------------------------------------------------

LoginOracle::LoginOracle(const BenchSetup& setup) : setup_(setup), sizes_(setup) {
  const Enctype& e = sizes_.enctype;
  for (size_t i = 0; i < kDistinctKeys; ++i) {
    const Bytes base = BaseKey(i);
    const auto key = [&](uint32_t usage, DerivedKeyKind kind) {
      const SecretBytes derived = *DeriveKey(e, base, usage, kind);
      return Bytes(derived.begin(), derived.end());
    };
    keys_.push_back({key(1, DerivedKeyKind::kKe), key(1, DerivedKeyKind::kKi),
                     key(3, DerivedKeyKind::kKe), key(3, DerivedKeyKind::kKi),
                     key(56, DerivedKeyKind::kKc)});
  }
  ticket_key_ = DrawKey(setup, kTicketKey, 32);
}

Bytes LoginOracle::BaseKey(size_t login) const {
  return DrawKey(setup_, login % kDistinctKeys, sizes_.enctype.key_bytes);
}

// RFC 3962 hashes the text, RFC 8009 the IV and the ciphertext.
Bytes LoginOracle::MacOf(const Bytes& key, const Bytes& text, const Bytes& ciphertext) const {
  const Enctype& e = sizes_.enctype;
  if (e.family == EnctypeFamily::kRfc3962) return HmacOf(e.hash, key, text);
  Bytes hashed(16);
  hashed.insert(hashed.end(), ciphertext.begin(), ciphertext.end());
  return HmacOf(e.hash, key, hashed);
}

Bytes LoginOracle::Preauth(size_t login) const {
  Bytes text = DrawText(setup_, login, Part::kConfounder, kConfounderBytes);
  const Bytes timestamp = TimestampOf(setup_, login);
  text.insert(text.end(), timestamp.begin(), timestamp.end());
  Bytes message = CtsOf(KeysOf(login).ke1, text);
  const Bytes mac = MacOf(KeysOf(login).ki1, text, message);
  message.insert(message.end(), mac.begin(), mac.begin() + sizes_.enctype.mac_bytes);
  return message;
}

bool LoginOracle::IsRightReply(size_t login, uint32_t batch, const Bytes& outputs) const {
  const auto at = [&](size_t block) {
    return outputs.begin() + static_cast<ptrdiff_t>(16 * block);
  };
  Bytes text(at(0), at(sizes_.message));
  const Bytes reply = ReplyOf(setup_, login, batch);
  text.insert(text.end(), reply.begin(), reply.end());
  const Bytes message = CtsOf(KeysOf(login).ke3, text);
  const Bytes mac = MacOf(KeysOf(login).ki3, text, message);
  return std::equal(message.begin(), message.end(), at(sizes_.message)) &&
         std::equal(mac.begin(), mac.end(), at(sizes_.mac));
}

bool LoginOracle::IsRight(size_t login, uint32_t batch, absl::Span<const Block> outputs) const {
  Bytes bytes;
  for (const Block& b : outputs) bytes.insert(bytes.end(), b.begin(), b.end());
  if (bytes.size() != 16 * sizes_.outputs || !IsRightReply(login, batch, bytes)) return false;
  if (setup_.login->checksum) {
    const Bytes want = HmacOf(sizes_.enctype.hash, KeysOf(login).kc56,
                              RequestOf(setup_, login, batch));
    if (!std::equal(want.begin(), want.end(), bytes.begin() + 16 * sizes_.checksum)) return false;
  }
  Bytes ticket;
  for (size_t b = 0; b < kTicketBlocks; ++b) {
    const Block in = TicketInput(login, b, batch);
    ticket.insert(ticket.end(), in.begin(), in.end());
  }
  ticket = OpenSsl(EVP_aes_256_ecb(), ticket_key_, ticket);
  return std::equal(ticket.begin(), ticket.end(), bytes.begin() + 16 * sizes_.ticket);
}

// --- on shares -----------------------------------------------------------------------------------

LoginKeys::LoginKeys(const BenchSetup& setup, int party, size_t first, size_t logins)
    : sizes_(setup) {
  const Enctype& e = sizes_.enctype;
  const LoginOracle oracle(setup);
  shares_.resize(logins * sizes_.key_blocks);
  for (size_t begin = 0; begin < std::min(logins, kDistinctKeys); ++begin) {
    SecretVector<Block> values(sizes_.key_blocks);
    const Bytes base = oracle.BaseKey(first + begin);
    for (const auto& [usage, at] : {std::pair{1u, size_t{0}}, std::pair{3u, sizes_.usage3},
                                    std::pair{56u, sizes_.usage56}}) {
      const PlainUsage plain = PlainUsageOf(e, base, usage);
      std::copy(plain.round_keys.begin(), plain.round_keys.end(), &values[at]);
      const size_t states = at + (plain.round_keys.empty() ? 0 : sizes_.round_keys);
      std::copy(plain.mac_states.begin(), plain.mac_states.end(), &values[states]);
    }
    for (size_t i = begin; i < logins; i += kDistinctKeys) {
      ShareInto(setup, party, first + i, values, &shares_[i * sizes_.key_blocks]);
    }
  }
  const SecretVector<Block> ticket = PlainKeySchedule(DrawKey(setup, kTicketKey, 32));
  ticket_.resize(ticket.size());
  ShareInto(setup, party, UINT64_MAX, ticket, ticket_.data());
}

const SharedBlock* LoginKeys::StatesOf(const SharedBlock* usage) const {
  return usage + sizes_.round_keys;
}

// --- verification --------------------------------------------------------------------------------

std::vector<size_t> SampleOfLogins(const BenchSetup& setup) {
  // Their outputs go through a pipe as text.
  constexpr size_t kMost = 64;
  const size_t count = std::min(setup.lanes, kMost);
  std::vector<size_t> sample;
  for (size_t i = 0; i < count; ++i) {
    sample.push_back(count == 1 ? 0 : i * (setup.lanes - 1) / (count - 1));
  }
  return sample;
}

std::vector<size_t> OutputsOfLogins(const BenchSetup& setup, absl::Span<const size_t> logins) {
  const size_t each = LoginSizes(setup).outputs;
  std::vector<size_t> numbers;
  for (const size_t login : logins) {
    for (size_t k = 0; k < each; ++k) numbers.push_back(login * each + k);
  }
  return numbers;
}

bool LoginsAreRight(const LoginOracle& oracle, const BenchSetup& setup, uint32_t batch,
                    absl::Span<const size_t> logins,
                    const std::array<std::vector<SharedBlock>, kParties>& shares) {
  const size_t each = LoginSizes(setup).outputs;
  for (const std::vector<SharedBlock>& s : shares) {
    if (s.size() != logins.size() * each) return false;
  }
  for (size_t i = 0; i < logins.size(); ++i) {
    std::vector<Block> outputs(each);
    for (size_t k = 0; k < each; ++k) {
      const size_t at = i * each + k;
      if (!JoinForTest({shares[0][at], shares[1][at], shares[2][at]}, &outputs[k])) return false;
    }
    if (!oracle.IsRight(logins[i], batch, outputs)) return false;
  }
  return !logins.empty();
}

}  // namespace mpckdc::bench
