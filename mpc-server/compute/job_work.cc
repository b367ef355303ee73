// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/job_work.h"

#include <algorithm>
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

bool JobWork::HasCtsPart() const {
  const auto cts_open = [](const OpenWork& w) { return std::holds_alternative<CtsOpen>(w.form); };
  const auto cts_seal = [](const SealWork& w) { return std::holds_alternative<CtsSeal>(w); };
  const auto cts_mac = [](const MakeMacWork& w) { return std::holds_alternative<CtsMac>(w); };
  const auto cts_verify = [](const VerifyMacWork& w) {
    return std::holds_alternative<CtsVerify>(w.form);
  };
  return std::any_of(opens.begin(), opens.end(), cts_open) ||
         std::any_of(seals.begin(), seals.end(), cts_seal) ||
         std::any_of(make_macs.begin(), make_macs.end(), cts_mac) ||
         std::any_of(verify_macs.begin(), verify_macs.end(), cts_verify);
}

bool JobWork::HasGcmOpen() const {
  return std::any_of(opens.begin(), opens.end(), [](const OpenWork& open) {
    return std::holds_alternative<GcmOpen>(open.form);
  });
}

bool JobWork::AllOpensGood() const {
  return std::all_of(opens.begin(), opens.end(),
                     [](const OpenWork& open) { return open.good && !open.late; });
}

bool JobWork::Abandoned() const {
  return std::any_of(opens.begin(), opens.end(), [](const OpenWork& open) {
    return open.judged && (!open.good || open.late);
  });
}

void JobWork::AddOpen(const AnyKeyUse& key, const OpenPart& part) {
  OpenWork& open = opens.emplace_back();
  open.is_preauth = part.usage == kUsagePreauth;
  std::visit([&](const auto& k) { open.form = FormOf(k, part); }, key);
  auto* gcm = std::get_if<GcmOpen>(&open.form);
  if (gcm != nullptr) gcm->tag_only = opens_only && !open.is_preauth;
}

void JobWork::AddSeal(const AnyKeyUse& key, const SealPart& part, const Nonce& nonce,
                      std::string header) {
  if (const auto* gcm = std::get_if<GcmKeyUse>(&key)) {
    seals.push_back(GcmSeal{{*gcm}, nonce, std::move(header), part.max_plaintext});
  } else {
    seals.push_back(CtsSeal{{std::get<CtsKeyUse>(key)}, part.text});
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
