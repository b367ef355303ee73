// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/transport/record_cipher.h"

#include <intel-ipsec-mb.h>

#include <cassert>
#include <cstring>

namespace mpckdc {
namespace {

// The library's table of functions for this CPU. One for the process: the direct GCM calls do not
// change it.
IMB_MGR* Library() {
  static IMB_MGR* const library = []() -> IMB_MGR* {
    IMB_MGR* const m = alloc_mb_mgr(0);
    if (m == nullptr) return nullptr;
    IMB_ARCH arch = IMB_ARCH_NONE;
    init_mb_mgr_auto(m, &arch);
    const bool good = arch != IMB_ARCH_NONE && arch != IMB_ARCH_NOAESNI &&
                      imb_get_errno(m) == 0 && (m->features & IMB_FEATURE_SELF_TEST_PASS) != 0;
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
  Secret<RecordKey> raw;  // its iv
  uint64_t record = 0;
  bool exhausted = false;
};

bool RecordCipher::Available() { return Library() != nullptr; }

RecordCipher::RecordCipher(const Secret<RecordKey>& key, uint64_t first_record)
    : state_(std::make_unique<State>()) {
  assert(Available());
  state_->record = first_record;
  state_->raw.Get() = key.Get();
  IMB_AES128_GCM_PRE(Library(), key.Get().key, &state_->key.Get());
  Wipe(state_->raw.Get().key, sizeof(state_->raw.Get().key));
}

RecordCipher::~RecordCipher() = default;

absl::Status RecordCipher::Begin(absl::Span<const uint8_t> header) {
  if (state_->exhausted) {
    return absl::ResourceExhaustedError("record numbers of the connection are used up");
  }
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
}

void RecordCipher::FinishSeal(uint8_t tag[kRecordTagSize]) {
  IMB_AES128_GCM_ENC_FINALIZE(Library(), &state_->key.Get(), &state_->context.Get(), tag,
                              kRecordTagSize);
}

void RecordCipher::Open(absl::Span<uint8_t> piece) {
  IMB_AES128_GCM_DEC_UPDATE(Library(), &state_->key.Get(), &state_->context.Get(), piece.data(),
                            piece.data(), piece.size());
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
