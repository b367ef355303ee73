// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/sealing.h"

#include "absl/strings/str_cat.h"

namespace mpckdc {

void Sealing::Join(const NonceMark& peer, absl::Time now) {
  const absl::Status joined = nonces_.Join(peer, now);
  if (!joined.ok()) mark_trouble_ = std::string(joined.message());
}

std::string Sealing::Reserve(const NonceMark& first, uint32_t count, absl::Time now) {
  if (count == 0) return "";
  if (mark_trouble_.empty() && clocks_->trouble().empty()) {
    // No trouble of this server's: the one whose clock it is says so.
    if (std::string differs = clocks_->NoNonces(); !differs.empty()) return differs;
    const absl::Status reserved = nonces_.Reserve(first, count, now);
    nonce_trouble_ =
        reserved.ok() ? "" : absl::StrCat("cannot reserve nonces: ", reserved.message());
  }
  Tell();
  return told_;
}

void Sealing::Tell() {
  const std::string& reason = !mark_trouble_.empty()        ? mark_trouble_
                              : clocks_->trouble().empty() ? nonce_trouble_
                                                           : clocks_->trouble();
  if (reason == told_) return;
  told_ = reason;
  status_->Update([&](EngineStatus& status) { status.degraded = told_; });
  observer_->OnDegraded(told_);
}

}  // namespace mpckdc
