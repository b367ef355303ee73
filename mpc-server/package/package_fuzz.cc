// SPDX-License-Identifier: Apache-2.0
//
// Share packages as they are behind their seal, descriptions of keys, certificates of servers, KDCs
// and administrators.
#include <google/protobuf/stubs/logging.h>
#include <openssl/crypto.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/package/certificate.h"
#include "mpc-server/package/package.h"
#include "mpc-server/package/package_open.h"
#include "mpc-server/testing/fuzz.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

constexpr char kRealm[] = "EXAMPLE.COM";
const google::protobuf::LogSilencer kQuiet;  // of text that is no UTF-8

std::string Joined(absl::Span<const SharedBlock> blocks, Block SharedBlock::*part) {
  std::string out;
  for (const SharedBlock& block : blocks) absl::StrAppend(&out, AsText(block.*part));
  return out;
}

// A record as protobuf's own class writes it, with the fields that SharePackage and KeyShare have
// in common.
template <class Message>
void Fill(const KeyRecord& record, Message* out) {
  KeyInfoToProto(record.info, out->mutable_info());
  out->set_base_x(Joined(record.base, &SharedBlock::x));
  out->set_base_a(Joined(record.base, &SharedBlock::a));
  for (const UsageKey& usage : record.usages) {
    v1::UsageShare& share = *out->add_usages();
    share.set_usage(usage.usage);
    share.set_round_keys_x(Joined(usage.round_keys, &SharedBlock::x));
    share.set_round_keys_a(Joined(usage.round_keys, &SharedBlock::a));
    if (FindEnctype(record.info.enctype)->is_gcm()) {
      share.set_h_x(Joined({&usage.h, 1}, &SharedBlock::x));
      share.set_h_a(Joined({&usage.h, 1}, &SharedBlock::a));
    }
    share.set_mac_states_x(Joined(usage.mac_states, &SharedBlock::x));
    share.set_mac_states_a(Joined(usage.mac_states, &SharedBlock::a));
  }
}

v1::SharePackage Begin(uint32_t version) {
  v1::SharePackage package;
  package.set_version(version);
  package.set_realm(kRealm);
  package.set_party(1);
  package.set_epoch(3);
  package.set_transaction(std::string(16, 't'));
  return package;
}

FuzzSeeds PackageSeeds() {
  SeededRandomForTest random(1);
  FuzzSeeds seeds;
  for (const int32_t enctype : {17, 19, 20, kEnctypeAes128Gcm, kEnctypeAes256Gcm}) {
    v1::SharePackage package = Begin(enroll::kOneKeyVersion);
    Fill(RecordForTest(random, "alice@EXAMPLE.COM", enctype), &package);
    seeds.push_back(package.SerializeAsString());
  }
  v1::SharePackage many = Begin(enroll::kManyKeysVersion);
  for (const int32_t enctype : {18, kEnctypeAes256Gcm}) {
    Fill(RecordForTest(random, "bob@EXAMPLE.COM", enctype), many.add_keys());
  }
  seeds.push_back(many.SerializeAsString());
  return seeds;
}

// Read by hand (package_open.cc says why): protobuf's class must read the same.
MPCKDC_FUZZ(share_package, PackageSeeds) {
  const auto contents = DecodeSharePackage(in, kRealm);
  if (!contents.ok()) return;
  v1::SharePackage proto;
  // That a realm is UTF-8 protobuf alone asks; here it must be the server's, which comes next.
  if (contents->realm != kRealm) return;
  FUZZ_CHECK(proto.ParseFromArray(in.data(), static_cast<int>(in.size())));
  FUZZ_CHECK(proto.version() == contents->version && proto.realm() == contents->realm);
  FUZZ_CHECK(proto.party() == contents->party && proto.epoch() == contents->epoch);
  FUZZ_CHECK(proto.transaction() == contents->transaction);
  const bool many = contents->version == enroll::kManyKeysVersion;
  FUZZ_CHECK(contents->records.size() == (many ? static_cast<size_t>(proto.keys_size()) : 1));
  for (size_t i = 0; i < contents->records.size(); ++i) {
    const KeyRecord& record = contents->records[i];
    FUZZ_CHECK(CheckKeyRecord(record).ok());
    const std::string base = Joined(record.base, &SharedBlock::x);
    FUZZ_CHECK(base == (many ? proto.keys(static_cast<int>(i)).base_x() : proto.base_x()));
    const int usages = many ? proto.keys(static_cast<int>(i)).usages_size() : proto.usages_size();
    FUZZ_CHECK(record.usages.size() == static_cast<size_t>(usages));
  }
}

FuzzSeeds InfoSeeds() {
  SeededRandomForTest random(1);
  FuzzSeeds seeds;
  for (const auto key_class : {KeyClass::kUser, KeyClass::kTgs, KeyClass::kService}) {
    v1::KeyInfo info;
    KeyInfoToProto(
        RecordForTest(random, "krbtgt/EXAMPLE.COM@EXAMPLE.COM", kEnctypeAes256Gcm, key_class).info,
        &info);
    seeds.push_back(info.SerializeAsString());
  }
  return seeds;
}

MPCKDC_FUZZ(key_info, InfoSeeds) {
  v1::KeyInfo proto, again;
  if (!proto.ParseFromArray(in.data(), static_cast<int>(in.size()))) return;
  const auto info = KeyInfoFromProto(proto, kRealm);
  if (!info.ok()) return;
  FUZZ_CHECK(CheckKeyInfo(*info).ok());
  KeyInfoToProto(*info, &again);
  const auto same = KeyInfoFromProto(again, kRealm);
  FUZZ_CHECK(same.ok() && *same == *info);
  // Who enrols asks for one thing more.
  FUZZ_CHECK(enroll::CheckKeyInfo(proto, kRealm).ok() == (proto.kvno() != 0));
}

FuzzSeeds RoleSeeds() {
  return {"spiffe://EXAMPLE.COM/mpc/kdc/kdc1", "spiffe://EXAMPLE.COM/mpc/peer/p0",
          "spiffe:///mpc/admin/a", "spiffe://R/mpc/admin/a/b"};
}

MPCKDC_FUZZ(role_name, RoleSeeds) {
  const auto role = enroll::ParseRoleName(AsText(in));
  if (!role.ok()) return;
  FUZZ_CHECK("spiffe://" + role->realm + "/mpc/" + role->role + "/" + role->name == AsText(in));
  FUZZ_CHECK(!role->realm.empty() && !role->name.empty());
}

// An identity of `mpc-ca`, P-256, of no realm; its private key is nobody's any more.
constexpr char kCertificate[] =
#include "mpc-server/package/certificate_fuzz.inc"
    ;

FuzzSeeds CertificateSeeds() {
  const std::string pem = kCertificate;
  // One that asks for a password.
  std::string locked = pem;
  locked.insert(
      locked.find('\n') + 1,
      "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n");
  return {pem, locked, enroll::ParseCertificate(pem)->der};
}

// As text, and as a signer's.
MPCKDC_FUZZ(certificate, CertificateSeeds) {
  const auto facts = enroll::ParseCertificate(AsText(in));
  if (facts.ok()) {
    FUZZ_CHECK(!facts->der.empty() && (facts->uri_count == 1 || facts->uri.empty()));
    static_cast<void>(enroll::CheckCertificate(*facts, "it", kRealm, "kdc",
                                               absl::FromUnixSeconds(1'800'000'000)));
  }
  FUZZ_CHECK(!enroll::VerifyPackageSignature(AsText(in), "sealed", "signature").ok());
  OPENSSL_thread_stop();  // with its errors: nothing is left behind, where leaks are looked for
}

}  // namespace
}  // namespace mpckdc
