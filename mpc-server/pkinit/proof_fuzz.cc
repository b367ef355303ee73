// SPDX-License-Identifier: Apache-2.0
//
// Logins with a certificate, which servers of different opinions verify; and the files from which
// a server has its opinion.
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/sha256.h"
#include "mpc-server/pkinit/request.h"
#include "mpc-server/pkinit/verifier.h"
#include "mpc-server/testing/fuzz.h"
#include "mpc-server/testing/pkinit.h"

namespace mpckdc {
namespace {

const absl::Time kNow = absl::Now();

// A file in memory, whose bytes change from input to input.
class Scratch {
 public:
  Scratch() : fd_(memfd_create("pkinit", MFD_CLOEXEC)) {
    if (fd_ < 0) std::abort();
  }
  ~Scratch() { close(fd_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string Write(absl::string_view text) {
    if (ftruncate(fd_, 0) != 0 ||
        pwrite(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      std::abort();
    }
    return absl::StrCat("/proc/self/fd/", fd_);
  }

 private:
  const int fd_;
};

// While it lives OpenSSL draws the same in each process: the seeds are written by one and tried by
// another. What is kept was good for an hour, and is refused deep inside since.
class FixedRandom {
 public:
  FixedRandom() { Set(&kMethod); }
  ~FixedRandom() { Set(nullptr); }

 private:
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  static void Set(const RAND_METHOD* method) {
    if (RAND_set_rand_method(method) != 1) std::abort();
  }
#pragma GCC diagnostic pop
  static int Draw(unsigned char* out, int size) {
    static uint64_t drawn = 0;
    for (int i = 0; i < size; ++i) out[i] = Sha256(std::to_string(++drawn))[0];
    return 1;
  }
  static int Ready() { return 1; }
  static constexpr RAND_METHOD kMethod = {nullptr, &Draw, nullptr, nullptr, &Draw, &Ready};
};

struct Authorities {
  ClientAuthority root;
  ClientAuthority below{root, "below"};
  ClientAuthority stranger{"strangers"};
  ClientCert alice = root.Issue();
  ClientCert revoked = root.Issue();
  ClientCert pooled = below.Issue();
  std::string crls = root.CrlPem({revoked.certificate.get()}) + below.CrlPem({});
};
const Authorities& All() {
  static const auto* const all = [] {
    const FixedRandom random;
    return new Authorities;
  }();
  return *all;
}

// What OpenSSL keeps for the thread, its errors above all, goes with the input: else each would leave
// memory behind, and libFuzzer would look for leaks after each of a thousand, which takes most of
// the time, and then never again.
class Forget {
 public:
  ~Forget() { OPENSSL_thread_stop(); }
};

// ---- Proofs ----

enum Opinion : uint8_t { kPlain, kStrict, kLax, kOpinions };

std::unique_ptr<PkinitVerifier> Make(Opinion opinion) {
  Scratch anchors, pool, crls;
  PkinitOptions options;
  options.anchors = anchors.Write(All().root.pem());
  options.allow_upn = opinion == kPlain;
  if (opinion == kStrict) {
    options.pool = pool.Write(All().below.pem());
    options.crls = crls.Write(All().crls);
    options.eku = EkuRule::kSmartCard;
  }
  if (opinion == kLax) {
    options.crls = crls.Write(All().stranger.CrlPem({}));
    options.crls_required = false;
    options.allow_sha1 = true;
    options.eku = EkuRule::kNone;
  }
  auto loaded = PkinitVerifier::Load(options);
  if (!loaded.ok()) std::abort();
  return *std::move(loaded);
}

const PkinitVerifier& VerifierOf(Opinion opinion) {
  static const auto* const all = new std::array<std::unique_ptr<PkinitVerifier>, kOpinions>{
      Make(kPlain), Make(kStrict), Make(kLax)};
  return *(*all)[opinion];
}

// opinion (1) | length of the PA-PK-AS-REQ (2) | that | body
std::string ProofBytes(Opinion opinion, const CertificateProof& proof) {
  std::string out(1, static_cast<char>(opinion));
  AppendUint(out, proof.pa_pk_as_req.size(), 2);
  return absl::StrCat(out, proof.pa_pk_as_req, proof.request_body);
}

// With certificates that have nothing to do with it: two, or too many.
LoginOptions WithOthers(size_t count) {
  static const auto* const others = [] {
    auto* const made = new std::vector<ClientCert>;
    for (int i = 0; i < limits::kMaxProofCertificates; ++i) made->push_back(All().stranger.Issue());
    return made;
  }();
  LoginOptions login{.time = kNow};
  for (size_t i = 0; i < count; ++i) login.also_sent.push_back((*others)[i].certificate.get());
  return login;
}

FuzzSeeds ProofSeeds() {
  const ClientAuthority& root = All().root;
  FuzzSeeds seeds;
  const auto add = [&](Opinion opinion, const ClientCert& signer, const LoginOptions& options) {
    seeds.push_back(ProofBytes(opinion, SignLogin(signer, options)));
  };
  const ClientCert &alice = All().alice, &revoked = All().revoked;
  const LoginOptions plain{.time = kNow};
  for (const Opinion opinion : {kPlain, kStrict, kLax}) {
    add(opinion, alice, plain);
    add(opinion, revoked, plain);
    add(opinion, All().pooled, plain);
    add(opinion, All().pooled, {.time = kNow, .also_sent = {All().below.certificate()}});
    add(opinion, root.Issue({.eku = kSmartCardEku}), plain);
    add(opinion, root.Issue({.key_usage = "keyEncipherment"}), plain);
    add(opinion, root.Issue({.eku = "", .key_usage = ""}), plain);
  }
  add(kPlain, root.Issue({.sans = {UpnSan("alice@example.com"), DnsSan("h")}}),
      {.time = kNow, .second = EVP_sha256()});
  add(kPlain, root.Issue({.sans = {UpnSan("bob@x"), UpnSan("c"), PkinitSan("R", {"a", "b"})}}),
      plain);
  add(kPlain, root.Issue({.sans = {}}), plain);
  add(kPlain, root.Issue({.ends = -absl::Minutes(1)}), plain);
  add(kPlain, All().stranger.Issue(), plain);
  add(kPlain, alice, WithOthers(2));
  add(kPlain, alice, WithOthers(limits::kMaxProofCertificates));
  add(kPlain, alice, {.time = kNow, .md = EVP_sha1()});
  const ClientCert weak = root.Issue({.rsa_bits = 1024});
  add(kLax, weak, {.time = kNow, .md = EVP_sha1()});
  add(kLax, weak, {.time = kNow, .md = EVP_md5()});
  add(kPlain, alice, {.time = kNow, .md = EVP_sha512(), .second = EVP_sha512()});
  add(kPlain, alice, {.time = kNow, .with_checksum = false});
  add(kPlain, alice, {.time = kNow, .with_attributes = false});
  add(kPlain, alice, {.time = kNow, .content_type = "1.2.840.113549.1.7.1"});
  add(kPlain, alice, {.time = kNow, .signed_body = "another"});
  CertificateProof changed = SignLogin(alice, plain);
  changed.pa_pk_as_req.back() = static_cast<char>(changed.pa_pk_as_req.back() ^ 1);
  seeds.push_back(ProofBytes(kPlain, changed));
  seeds.push_back(ProofBytes(kPlain, {PaPkAsReq("no CMS"), "x"}));
  return seeds;
}

MPCKDC_FUZZ(pkinit_proof, ProofSeeds) {
  const Forget forget;
  ByteReader reader(in);
  const auto opinion = static_cast<Opinion>(reader.Uint(1) % kOpinions);
  CertificateProof proof;
  proof.pa_pk_as_req = reader.Text(reader.Uint(2));
  proof.request_body = reader.Text(reader.left());
  const CertificateFinding finding = VerifierOf(opinion).Verify(proof, kNow);
  FUZZ_CHECK(finding.judgement.ok() != finding.client.empty());
  if (!finding.judgement.ok()) return;
  // Nobody signs for others: only what the seeds hold is good, and what it says is in the body.
  const auto body = DecodeRequestBody(proof.request_body);
  FUZZ_CHECK(body.has_value() && body->client == finding.client && body->server == finding.server);
  FUZZ_CHECK(finding.client == "alice@EXAMPLE.COM");
}

// ---- Files: an authority's list of what is revoked comes from there, each time ----

// length (2) | anchors | length (2) | pool | lists of what is revoked
std::string FilesBytes(absl::string_view anchors, absl::string_view pool, absl::string_view crls) {
  std::string out;
  AppendUint(out, anchors.size(), 2);
  absl::StrAppend(&out, anchors);
  AppendUint(out, pool.size(), 2);
  return absl::StrCat(out, pool, crls);
}

FuzzSeeds FileSeeds() {
  const std::string root = All().root.pem(), below = All().below.pem();
  std::string damaged = root;
  damaged[100] = '!';
  return {FilesBytes(root, "", ""),
          FilesBytes(root, below, All().crls),
          FilesBytes(root, "no PEM", ""),
          FilesBytes(damaged, "", ""),
          FilesBytes(root, damaged, All().crls),
          FilesBytes(root, "", root),
          FilesBytes("", "", ""),
          FilesBytes("-----BEGIN CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: "
                     "AES-256-CBC,00112233445566778899AABBCCDDEEFF\n\nAAAA\n-----END "
                     "CERTIFICATE-----\n",
                     "", "")};
}

// What is damaged is named; and a login is judged whatever was read.
MPCKDC_FUZZ(pkinit_files, FileSeeds) {
  const Forget forget;
  static std::array<Scratch, 3> files;
  static const auto* const proof = new CertificateProof(SignLogin(All().alice, {.time = kNow}));
  ByteReader reader(in);
  const absl::string_view anchors = AsText(reader.Bytes(reader.Uint(2)));
  const absl::string_view pool = AsText(reader.Bytes(reader.Uint(2)));
  const absl::string_view crls = AsText(reader.Bytes(reader.left()));
  PkinitOptions options;
  options.anchors = files[0].Write(anchors);
  if (!pool.empty()) options.pool = files[1].Write(pool);
  if (!crls.empty()) options.crls = files[2].Write(crls);
  const auto verifier = PkinitVerifier::Load(options);
  if (!verifier.ok()) {
    FUZZ_CHECK(verifier.status().message().find("[pkinit]: ") == 0);
    return;
  }
  FUZZ_CHECK((*verifier)->anchors() > 0);
  const CertificateFinding finding = (*verifier)->Verify(*proof, kNow);
  FUZZ_CHECK(finding.judgement.ok() != finding.client.empty());
}

}  // namespace
}  // namespace mpckdc
