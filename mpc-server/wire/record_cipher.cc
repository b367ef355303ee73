// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/wire/record_cipher.h"

#include <intel-ipsec-mb.h>
#include <sodium.h>

#include <cassert>
#include <cstring>

namespace mpckdc {
namespace {

constexpr char kKdfContext[crypto_kdf_CONTEXTBYTES + 1] = "mpcpeer1";

// The library's table of functions for this CPU. One for the process: the direct GCM calls do not
// change it.
IMB_MGR* Library() {
  static IMB_MGR* const library = []() -> IMB_MGR* {
    IMB_MGR* const m = alloc_mb_mgr(0);
    if (m == nullptr) return nullptr;
    IMB_ARCH arch = IMB_ARCH_NONE;
    init_mb_mgr_auto(m, &arch);
    const bool good = arch >= IMB_ARCH_SSE && imb_get_errno(m) == 0 &&
                      (m->features & IMB_FEATURE_SELF_TEST_PASS) != 0;
    if (good) return m;
    free_mb_mgr(m);
    return nullptr;
  }();
  return library;
}

}  // namespace

struct RecordCipher::State {
  Secret<gcm_key_data> key;
  Secret<gcm_context_data> context;
  Secret<RecordKey> raw;  // the iv and the chain; `key` has the rest
  uint64_t record = 0;
  uint64_t bytes = 0;  // of payload under this key
  uint64_t bytes_per_key = 0;
  bool exhausted = false;
};

bool RecordCipher::Available() { return Library() != nullptr; }

RecordCipher::RecordCipher(const Secret<RecordKey>& key, uint64_t first_record,
                           uint64_t bytes_per_key)
    : state_(std::make_unique<State>()) {
  assert(Available());
  state_->record = first_record;
  state_->bytes_per_key = bytes_per_key;
  state_->raw.Get() = key.Get();
  UseKey();
}

void RecordCipher::UseKey() {
  RecordKey& raw = state_->raw.Get();
  IMB_AES128_GCM_PRE(Library(), raw.key, &state_->key.Get());
  Wipe(raw.key, sizeof(raw.key));
  state_->bytes = 0;
}

// The chain is overwritten: whoever reads this process later cannot go back.
void RecordCipher::NextKey() {
  Secret<RecordKey> next;
  static_assert(sizeof(RecordKey::chain) == crypto_kdf_KEYBYTES);
  const int rc = crypto_kdf_derive_from_key(reinterpret_cast<uint8_t*>(&next.Get()),
                                            sizeof(RecordKey), 1, kKdfContext,
                                            state_->raw.Get().chain);
  assert(rc == 0);
  static_cast<void>(rc);
  state_->raw.Get() = next.Get();
  UseKey();
}

RecordCipher::~RecordCipher() = default;

absl::Status RecordCipher::Begin(absl::Span<const uint8_t> header) {
  if (state_->exhausted) {
    return absl::ResourceExhaustedError("record numbers of the connection are used up");
  }
  if (state_->bytes >= state_->bytes_per_key) NextKey();
  uint8_t nonce[sizeof(RecordKey::iv)];
  std::memcpy(nonce, state_->raw.Get().iv, sizeof(nonce));
  for (size_t i = 0; i < sizeof(uint64_t); ++i) {
    nonce[sizeof(nonce) - 1 - i] ^= static_cast<uint8_t>(state_->record >> (8 * i));
  }
  state_->exhausted = ++state_->record == 0;
  IMB_AES128_GCM_INIT(Library(), &state_->key.Get(), &state_->context.Get(), nonce, header.data(),
                      header.size());
  return absl::OkStatus();
}

void RecordCipher::Seal(uint8_t* sealed, const uint8_t* plain, size_t size) {
  IMB_AES128_GCM_ENC_UPDATE(Library(), &state_->key.Get(), &state_->context.Get(), sealed, plain,
                            size);
  state_->bytes += size;
}

void RecordCipher::FinishSeal(uint8_t tag[kRecordTagSize]) {
  IMB_AES128_GCM_ENC_FINALIZE(Library(), &state_->key.Get(), &state_->context.Get(), tag,
                              kRecordTagSize);
}

void RecordCipher::Open(absl::Span<uint8_t> piece) {
  IMB_AES128_GCM_DEC_UPDATE(Library(), &state_->key.Get(), &state_->context.Get(), piece.data(),
                            piece.data(), piece.size());
  state_->bytes += piece.size();
}

bool RecordCipher::FinishOpen(const uint8_t tag[kRecordTagSize]) {
  uint8_t expected[kRecordTagSize];
  IMB_AES128_GCM_DEC_FINALIZE(Library(), &state_->key.Get(), &state_->context.Get(), expected,
                              sizeof(expected));
  const bool good = ConstantTimeEqual(expected, {tag, kRecordTagSize});
  Wipe(expected, sizeof(expected));
  return good;
}

}  // namespace mpckdc
