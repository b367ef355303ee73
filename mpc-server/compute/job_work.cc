// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/job_work.h"

#include <utility>

#include "mpc-server/job/operation_table.h"

namespace mpckdc {
namespace {

GcmOpen FormOf(const GcmKeyUse& key, const OpenPart& part) {
  return {{key}, *ParseMessage(part.message)};
}
CtsOpen FormOf(const CtsKeyUse& key, const OpenPart& part) {
  return {{key}, *ParseCtsMessage(key.enctype(), part.message)};
}

GcmVerify FormOf(const GcmKeyUse& key, const VerifyMacPart& part) {
  const ChecksumView checksum = *ParseChecksum(part.checksum);
  return {{{key}, checksum.nonce, part.data}, checksum.tag};
}
CtsVerify FormOf(const CtsKeyUse& key, const VerifyMacPart& part) {
  return {{{key}, part.data}, part.checksum};
}

}  // namespace

void JobWork::AddOpen(const AnyKeyUse& key, const OpenPart& part) {
  OpenWork& open = opens.emplace_back();
  open.is_preauth = part.usage == kUsagePreauth;
  std::visit([&](const auto& k) { open.form = FormOf(k, part); }, key);
}

void JobWork::AddSeal(const AnyKeyUse& key, const SealPart& part, const Nonce& nonce,
                      std::string header) {
  if (const auto* gcm = std::get_if<GcmKeyUse>(&key)) {
    seals.push_back(GcmSeal{{*gcm}, nonce, std::move(header), part.max_plaintext});
  } else {
    seals.push_back(CtsSeal{{std::get<CtsKeyUse>(key)}, part.plaintext_share});
  }
}

void JobWork::AddMakeMac(const AnyKeyUse& key, const MakeMacPart& part, const Nonce& nonce) {
  if (const auto* gcm = std::get_if<GcmKeyUse>(&key)) {
    make_macs.push_back(GcmMac{{*gcm}, nonce, part.data});
  } else {
    make_macs.push_back(CtsMac{{std::get<CtsKeyUse>(key)}, part.data});
  }
}

void JobWork::AddVerifyMac(const AnyKeyUse& key, const VerifyMacPart& part) {
  VerifyMacWork& mac = verify_macs.emplace_back();
  std::visit([&](const auto& k) { mac.form = FormOf(k, part); }, key);
}

}  // namespace mpckdc
