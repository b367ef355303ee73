// SPDX-License-Identifier: Apache-2.0
//
// Requests of clients that log in with a certificate: what is signed. proof_fuzz.cc has the CMS
// around it.
#include <string>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/pkinit/request.h"
#include "mpc-server/testing/fuzz.h"
#include "mpc-server/testing/pkinit.h"

namespace mpckdc {
namespace {

FuzzSeeds RequestSeeds() {
  const LoginOptions plain{.time = absl::FromUnixSeconds(1'700'000'000)};
  const LoginOptions second{.client = {"a/b", "c@d"}, .time = plain.time, .second = EVP_sha256()};
  FuzzSeeds seeds;
  for (const LoginOptions& login : {plain, second}) {
    const std::string body = RequestBodyDer(login);
    seeds.push_back(body);
    seeds.push_back(AuthPackDer(login, body));
  }
  const absl::string_view realm = "EXAMPLE.COM";
  seeds.push_back(
      Der(der::kSequence, absl::StrCat(Der(der::Field(0), Der(der::kGeneralString, realm)),
                                       Der(der::Field(1), DerPrincipal({"alice", "x\n"})))));
  seeds.push_back(PaPkAsReq("a CMS message"));
  return seeds;
}

MPCKDC_FUZZ(pkinit_request, RequestSeeds) {
  const absl::string_view der = AsText(in);
  if (const auto cms = SignedAuthPackOf(der))
    FUZZ_CHECK(cms->begin() >= der.begin() && cms->end() <= der.end());
  if (const auto body = DecodeRequestBody(der)) {
    FUZZ_CHECK(body->client.find('@') != std::string::npos &&
               body->server.find('@') != std::string::npos);
    // A name is one line whatever the client wrote into it.
    FUZZ_CHECK((body->client + body->server).find('\n') == std::string::npos);
  }
  static_cast<void>(UnparsedSan(der));
  const auto pack = DecodeAuthPack(der);
  if (!pack) return;
  FUZZ_CHECK(pack->second_checksum.empty() == pack->second_algorithm.empty() ||
             !pack->second_checksum.empty());
  FUZZ_CHECK(!CheckBody(*pack, "another request").ok() || !pack->checksum.empty());
}

}  // namespace
}  // namespace mpckdc
