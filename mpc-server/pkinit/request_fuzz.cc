// SPDX-License-Identifier: Apache-2.0
//
// Requests of clients that log in with a certificate: what is signed, and the CMS around it.
#include <openssl/pem.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/pkinit/request.h"
#include "mpc-server/pkinit/verifier.h"
#include "mpc-server/testing/fuzz.h"
#include "mpc-server/testing/pkinit.h"

namespace mpckdc {
namespace {

const absl::Time kNow = absl::Now();

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

// What a server believes; its authority lives as long as the process.
struct World {
  World() {
    char path[] = "/tmp/mpckdc-pkinit-fuzz.XXXXXX";
    const int fd = mkstemp(path);
    const std::string pem = authority.pem();
    if (fd < 0 || write(fd, pem.data(), pem.size()) != static_cast<ssize_t>(pem.size()))
      std::abort();
    close(fd);
    PkinitOptions options;
    options.anchors = path;
    options.allow_upn = true;
    auto loaded = PkinitVerifier::Load(options);
    unlink(path);
    if (!loaded.ok()) std::abort();
    verifier = *std::move(loaded);
  }
  ClientAuthority authority;
  std::unique_ptr<PkinitVerifier> verifier;
};
World& TheWorld() {
  static auto* const world = new World;
  return *world;
}

// length of the PA-PK-AS-REQ (2) | that | body
std::string ProofBytes(const CertificateProof& proof) {
  std::string out;
  AppendUint(out, proof.pa_pk_as_req.size(), 2);
  return absl::StrCat(out, proof.pa_pk_as_req, proof.request_body);
}

// Signed by the authority of this process: those that are kept are of others, and are refused deep
// inside.
FuzzSeeds ProofSeeds() {
  const ClientAuthority& authority = TheWorld().authority;
  const ClientAuthority stranger("strangers"), below(authority, "below");
  FuzzSeeds seeds;
  const auto add = [&](const ClientCert& signer, const LoginOptions& options) {
    seeds.push_back(ProofBytes(SignLogin(signer, options)));
  };
  add(authority.Issue(), {.time = kNow});
  add(authority.Issue({.sans = {UpnSan("alice@example.com"), DnsSan("h")}}),
      {.time = kNow, .second = EVP_sha256()});
  add(authority.Issue({.eku = kSmartCardEku}), {.time = kNow});
  add(authority.Issue({.key_usage = "keyEncipherment"}), {.time = kNow});
  add(authority.Issue(), {.time = kNow, .with_checksum = false});
  add(authority.Issue(), {.time = kNow, .with_attributes = false});
  add(authority.Issue(), {.time = kNow, .content_type = "1.2.840.113549.1.7.1"});
  add(below.Issue(), {.time = kNow, .also_sent = {below.certificate()}});
  add(stranger.Issue(), {.time = kNow});
  return seeds;
}

MPCKDC_FUZZ(pkinit_proof, ProofSeeds) {
  ByteReader reader(in);
  CertificateProof proof;
  proof.pa_pk_as_req = reader.Text(reader.Uint(2));
  proof.request_body = reader.Text(reader.left());
  const CertificateFinding finding = TheWorld().verifier->Verify(proof, kNow);
  FUZZ_CHECK(finding.judgement.ok() != finding.client.empty());
  if (!finding.judgement.ok()) return;
  // Nobody signs for others: only what the seeds hold is good, and what it says is in the body.
  const auto body = DecodeRequestBody(proof.request_body);
  FUZZ_CHECK(body.has_value() && body->client == finding.client && body->server == finding.server);
  FUZZ_CHECK(finding.client == "alice@EXAMPLE.COM");
}

}  // namespace
}  // namespace mpckdc
