// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/pkinit/verifier.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/sha256.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/pkinit/cms_outline.h"
#include "mpc-server/pkinit/request.h"

namespace mpckdc {
namespace {

constexpr char kAuthData[] = "1.3.6.1.5.2.3.1";  // id-pkinit-authData
// OpenSSL's levels: 112 bits, and no rule at all.
constexpr int kAuthLevel = 2, kAnyLevel = 0;
// What OpenSSL says of RSA of 1024 bits, and of signatures with SHA-1; with MD5 it is 39.
constexpr int kKeyBitsAtLeast = 80, kSignatureBitsAtLeast = 63;

absl::Status Refused(absl::string_view why) { return absl::PermissionDeniedError(why); }

// What OpenSSL says of the last error of this thread; nothing is left of it.
std::string OpensslError() {
  const unsigned long code = ERR_peek_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "no reason given" : reason;
}

using InfoStack = std::unique_ptr<STACK_OF(X509_INFO),
                                  decltype([](STACK_OF(X509_INFO) * all) {
                                    sk_X509_INFO_pop_free(all, X509_INFO_free);
                                  })>;

absl::StatusOr<InfoStack> ReadPem(const std::string& file) {
  const BioPtr in(BIO_new_file(file.c_str(), "r"));
  if (in == nullptr) {
    return absl::NotFoundError(absl::StrCat("[pkinit]: cannot read ", file, ": ", OpensslError()));
  }
  // Nobody is asked for a password: a server that starts would wait for it at a terminal.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  InfoStack all(PEM_X509_INFO_read_bio(in.get(), nullptr, no_password, nullptr));
  if (all == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("[pkinit]: ", file, " is damaged: ", OpensslError()));
  }
  return all;
}

// Calls `take` for each certificate, or list of revoked ones, of a file that must have one.
template <class Member, class Take>
absl::Status ForEachIn(const std::string& file, Member member, const char* what, Take take) {
  ASSIGN_OR_RETURN(const InfoStack all, ReadPem(file));
  int count = 0;
  for (int i = 0; i < sk_X509_INFO_num(all.get()); ++i) {
    auto* const one = sk_X509_INFO_value(all.get(), i)->*member;
    if (one == nullptr) continue;
    if (take(one) != 1) return absl::ResourceExhaustedError("out of memory");
    ++count;
  }
  if (count > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("[pkinit]: there is no ", what, " in ", file));
}

// With lists that need not be there: a missing one is no reason to refuse.
int IgnoreMissingCrl(int ok, X509_STORE_CTX* ctx) {
  const int error = X509_STORE_CTX_get_error(ctx);
  return ok == 1 || error == X509_V_ERR_UNABLE_TO_GET_CRL ? 1 : 0;
}

// No level of OpenSSL takes SHA-1 and refuses what is worse. Of a good chain; nobody asks how the
// anchor, its last, is signed.
absl::Status CheckStrength(const STACK_OF(X509) * chain) {
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    X509* const one = sk_X509_value(chain, i);
    const EVP_PKEY* const key = X509_get0_pubkey(one);
    if (key == nullptr || EVP_PKEY_get_security_bits(key) < kKeyBitsAtLeast) {
      return Refused("a key in its chain is weaker than RSA of 1024 bits");
    }
    int bits = 0;
    if (i + 1 < sk_X509_num(chain) &&
        (X509_get_signature_info(one, nullptr, nullptr, &bits, nullptr) != 1 ||
         bits < kSignatureBitsAtLeast)) {
      return Refused("a signature in its chain is weaker than SHA-1");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CmsPtr> DecodeCms(absl::string_view der) {
  const auto* at = reinterpret_cast<const uint8_t*>(der.data());
  const uint8_t* const end = at + der.size();
  CmsPtr cms(d2i_CMS_ContentInfo(nullptr, &at, static_cast<long>(der.size())));
  if (cms == nullptr || at != end || OBJ_obj2nid(CMS_get0_type(cms.get())) != NID_pkcs7_signed) {
    ERR_clear_error();
    return Refused("signedAuthPack is not signed data");
  }
  return cms;
}

// The only one. Its type of content is signed with its attributes, without which it would be
// anybody's word.
absl::StatusOr<CMS_SignerInfo*> OnlySigner(CMS_ContentInfo* cms) {
  const ObjectPtr auth_data(OBJ_txt2obj(kAuthData, /*no_name=*/1));
  const ASN1_OBJECT* const type = CMS_get0_eContentType(cms);
  if (auth_data == nullptr || type == nullptr || OBJ_cmp(type, auth_data.get()) != 0) {
    return Refused("what was signed is no AuthPack");
  }
  STACK_OF(CMS_SignerInfo)* const all = CMS_get0_SignerInfos(cms);
  if (all == nullptr || sk_CMS_SignerInfo_num(all) != 1) {
    return Refused("signedAuthPack must have one signature");
  }
  CMS_SignerInfo* const signer = sk_CMS_SignerInfo_value(all, 0);
  const int at = CMS_signed_get_attr_by_NID(signer, NID_pkcs9_contentType, -1);
  const auto* const attribute = static_cast<const ASN1_OBJECT*>(CMS_signed_get0_data_by_OBJ(
      signer, OBJ_nid2obj(NID_pkcs9_contentType), -3, V_ASN1_OBJECT));
  if (at < 0 || attribute == nullptr || OBJ_cmp(attribute, auth_data.get()) != 0) {
    return Refused("the signature does not say that it is one of an AuthPack");
  }
  return signer;
}

absl::Status CheckDigest(CMS_SignerInfo* signer, bool allow_sha1) {
  X509_ALGOR* algorithm = nullptr;
  CMS_SignerInfo_get0_algs(signer, nullptr, nullptr, &algorithm, nullptr);
  const ASN1_OBJECT* object = nullptr;
  if (algorithm != nullptr) X509_ALGOR_get0(&object, nullptr, nullptr, algorithm);
  switch (object == nullptr ? NID_undef : OBJ_obj2nid(object)) {
    case NID_sha256: case NID_sha384: case NID_sha512:
      return absl::OkStatus();
    case NID_sha1:
      if (allow_sha1) return absl::OkStatus();
      return Refused("the signature is made with SHA-1, which [pkinit] allow_sha1 would allow");
    default:
      return Refused("the signature's digest is none of SHA-256, SHA-384 and SHA-512");
  }
}

Nonce IdOf(absl::string_view signed_content) {
  std::string bytes("mpc-kdc pkinit v1");
  bytes.push_back('\0');
  const Digest digest = Sha256(absl::StrCat(bytes, signed_content));
  Nonce id;
  std::copy_n(digest.begin(), id.size(), id.begin());
  return id;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PkinitVerifier>> PkinitVerifier::Load(const PkinitOptions& options) {
  std::unique_ptr<PkinitVerifier> verifier(new PkinitVerifier(options));
  verifier->store_.reset(X509_STORE_new());
  verifier->pool_.reset(sk_X509_new_null());
  X509_STORE* const store = verifier->store_.get();
  STACK_OF(X509)* const pool = verifier->pool_.get();
  if (store == nullptr || pool == nullptr) return absl::ResourceExhaustedError("out of memory");
  RETURN_IF_ERROR(ForEachIn(options.anchors, &X509_INFO::x509, "certificate", [&](X509* one) {
    ++verifier->anchors_;
    return X509_STORE_add_cert(store, one);
  }));
  if (!options.pool.empty()) {
    RETURN_IF_ERROR(ForEachIn(options.pool, &X509_INFO::x509, "certificate", [&](X509* one) {
      X509_up_ref(one);
      return sk_X509_push(pool, one) > 0 ? 1 : 0;
    }));
  }
  if (!options.crls.empty()) {
    RETURN_IF_ERROR(ForEachIn(options.crls, &X509_INFO::crl, "list of revoked certificates",
                              [&](X509_CRL* one) { return X509_STORE_add_crl(store, one); }));
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    if (!options.crls_required) X509_STORE_set_verify_cb(store, IgnoreMissingCrl);
  }
  return verifier;
}

absl::Status PkinitVerifier::CheckChain(X509* signer, STACK_OF(X509) * sent,
                                        absl::Time now) const {
  const StoreCtxPtr ctx(X509_STORE_CTX_new());
  // The pool's certificates are the verifier's; the list is this call's.
  const std::unique_ptr<STACK_OF(X509), decltype([](STACK_OF(X509) * all) { sk_X509_free(all); })>
      between(sk_X509_dup(pool_.get()));
  if (ctx == nullptr || between == nullptr) return Refused("out of memory");
  for (int i = 0; i < sk_X509_num(sent); ++i) {
    if (sk_X509_push(between.get(), sk_X509_value(sent, i)) <= 0) return Refused("out of memory");
  }
  if (X509_STORE_CTX_init(ctx.get(), store_.get(), signer, between.get()) != 1) {
    return Refused("out of memory");
  }
  X509_VERIFY_PARAM* const param = X509_STORE_CTX_get0_param(ctx.get());
  X509_VERIFY_PARAM_set_time(param, absl::ToTimeT(now));
  X509_VERIFY_PARAM_set_depth(param, limits::kMaxCertificateChain);
  X509_VERIFY_PARAM_set_auth_level(param, options_.allow_sha1 ? kAnyLevel : kAuthLevel);
  const bool good = X509_verify_cert(ctx.get()) == 1;
  ERR_clear_error();
  if (good && !options_.allow_sha1) return absl::OkStatus();
  if (good) return CheckStrength(X509_STORE_CTX_get0_chain(ctx.get()));
  return Refused(X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx.get())));
}

// The AuthPack, if its signature is good, by a certificate of ours.
absl::StatusOr<std::string> PkinitVerifier::SignedContent(absl::string_view der, absl::Time now,
                                                          X509Ptr* signer) const {
  RETURN_IF_ERROR(CheckOutline(der));
  ASSIGN_OR_RETURN(const CmsPtr cms, DecodeCms(der));
  ASSIGN_OR_RETURN(CMS_SignerInfo* const info, OnlySigner(cms.get()));
  RETURN_IF_ERROR(CheckDigest(info, options_.allow_sha1));
  const X509StackPtr sent(CMS_get1_certs(cms.get()));
  const int count = sent == nullptr ? 0 : sk_X509_num(sent.get());
  for (int i = 0; i < count && *signer == nullptr; ++i) {
    X509* const one = sk_X509_value(sent.get(), i);
    if (CMS_SignerInfo_cert_cmp(info, one) != 0) continue;
    X509_up_ref(one);
    signer->reset(one);
  }
  if (*signer == nullptr) return Refused("signedAuthPack has no certificate of its signer");
  if (absl::Status s = CheckChain(signer->get(), sent.get(), now); !s.ok()) {
    return Refused(absl::StrCat("the certificate of ", SubjectOf(signer->get()),
                                " is not good here: ", s.message()));
  }
  // Only now: keys that nobody vouches for are decoded, in little time, and not worked with.
  CMS_SignerInfo_set1_signer_cert(info, signer->get());
  const BioPtr out(BIO_new(BIO_s_mem()));
  const unsigned flags = CMS_NO_SIGNER_CERT_VERIFY | CMS_BINARY;
  if (out == nullptr || CMS_verify(cms.get(), nullptr, nullptr, nullptr, out.get(), flags) != 1) {
    return Refused(absl::StrCat("the signature by ", SubjectOf(signer->get()), " is not good: ",
                                OpensslError()));
  }
  const char* content = nullptr;
  const long size = BIO_get_mem_data(out.get(), &content);
  return std::string(content, static_cast<size_t>(size));
}

absl::StatusOr<CertificateFinding> PkinitVerifier::Check(const CertificateProof& proof,
                                                         absl::Time now) const {
  if (proof.pa_pk_as_req.size() > limits::kMaxProofBytes ||
      proof.request_body.size() > limits::kMaxProofBytes) {
    return Refused(absl::StrCat("a login by certificate of ",
                                std::max(proof.pa_pk_as_req.size(), proof.request_body.size()),
                                " bytes, at most ", limits::kMaxProofBytes));
  }
  const auto message = SignedAuthPackOf(proof.pa_pk_as_req);
  if (!message) return Refused("PA-PK-AS-REQ cannot be read");
  X509Ptr signer;
  ASSIGN_OR_RETURN(const std::string content, SignedContent(*message, now, &signer));
  const auto pack = DecodeAuthPack(content);
  if (!pack) return Refused("the AuthPack cannot be read");
  RETURN_IF_ERROR(CheckBody(*pack, proof.request_body));
  const auto body = DecodeRequestBody(proof.request_body);
  if (!body) return Refused("the request that was signed cannot be read");
  absl::Status fits = CheckUsage(signer.get(), options_.eku);
  if (fits.ok()) fits = CheckNames(signer.get(), body->client, options_.allow_upn);
  if (!fits.ok()) {
    return Refused(absl::StrCat("the certificate of ", SubjectOf(signer.get()), ": ",
                                fits.message()));
  }
  return CertificateFinding{Ok(), body->client, body->server, pack->time, IdOf(content)};
}

CertificateFinding PkinitVerifier::Verify(const CertificateProof& proof, absl::Time now) const {
  absl::StatusOr<CertificateFinding> finding = Check(proof, now);
  if (finding.ok()) return *std::move(finding);
  CertificateFinding refused;
  refused.judgement = Refuse(Verdict::kRefused, std::string(finding.status().message()));
  return refused;
}

}  // namespace mpckdc
