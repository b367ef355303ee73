// SPDX-License-Identifier: Apache-2.0
#ifndef KDC_PLUGIN_TESTS_FAKE_REALM_H_
#define KDC_PLUGIN_TESTS_FAKE_REALM_H_

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "kdc-plugin/client/mpc_client.h"
#include "kdc-plugin/tests/fake_party.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/package/package.h"
#include "mpc-server/testing/enrolment.h"

namespace mpckdc::test {

inline constexpr char kRealm[] = "EXAMPLE.COM";

// Three fake parties with certificates of a fresh authority, and the KDC's side of them.
class FakeRealm {
 public:
  explicit FakeRealm(const std::string& realm = kRealm)
      : name(realm),
        kdc(authority.Issue("kdc", "kdc1", "--realm " + name)),
        oracle(std::make_shared<Oracle>()) {
    for (int i = 0; i < 3; ++i) {
      const auto identity = authority.Issue("peer", absl::StrCat("p", i),
                                            absl::StrCat("--ip 127.0.0.1 --realm ", name));
      parties[i] = std::make_unique<FakeParty>(i, name, identity, oracle);
      parties[i]->Start();
      addresses[i] = parties[i]->address();
    }
  }

  mpc_options Options(uint32_t timeout_ms = 2000) const { return Options(kdc, timeout_ms); }
  mpc_options Options(const enroll::AdminIdentity& who, uint32_t timeout_ms = 2000) const {
    return {.realm = name.c_str(),
            .servers = {addresses[0].c_str(), addresses[1].c_str(), addresses[2].c_str()},
            .triples = 1,
            .ca_file = who.ca_file.c_str(),
            .certificate_file = who.certificate_file.c_str(),
            .key_file = who.key_file.c_str(),
            .cluster = 1,
            .timeout_ms = timeout_ms,
            .log = nullptr,
            .names_realm = 0,
            .metrics = nullptr};
  }

  // What every server does to its answers to jobs; null: nothing.
  void Answer(std::function<void(v1::JobAnswer&)> change) {
    for (auto& party : parties) party->behaviour.job = change;
  }
  void Answer(v1::Verdict verdict) {
    Answer([verdict](v1::JobAnswer& a) { a.set_verdict(verdict); });
  }

  void UnhookAll() {
    for (auto& party : parties) party->behaviour.UnhookAll();
  }

  // A key that the oracle knows; returns its handle.
  std::string AddKey(const std::string& principal, const std::string& base, v1::KeyClass key_class,
                     v1::Gate gate = v1::GATE_TIMESTAMP) {
    return AddKey(base.size() == 16 ? kEnctypeAes128Gcm : kEnctypeAes256Gcm, principal, base,
                  key_class, gate);
  }
  std::string AddKey(int32_t enctype, const std::string& principal, const std::string& base,
                     v1::KeyClass key_class, v1::Gate gate = v1::GATE_TIMESTAMP) {
    v1::KeyInfo info;
    info.set_handle(enroll::RandomIdentifier());
    info.set_principal(principal);
    info.set_kvno(1);
    info.set_enctype(enctype);
    info.set_key_class(key_class);
    info.set_gate(gate);
    oracle->SetKey(info, base);
    return info.handle();
  }

  const std::string name;
  enroll::TestAuthority authority;
  enroll::AdminIdentity kdc;
  std::shared_ptr<Oracle> oracle;
  std::array<std::unique_ptr<FakeParty>, 3> parties;
  std::array<std::string, 3> addresses;
};

}  // namespace mpckdc::test

#endif  // KDC_PLUGIN_TESTS_FAKE_REALM_H_
