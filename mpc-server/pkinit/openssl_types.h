// SPDX-License-Identifier: Apache-2.0
//
// Owners of OpenSSL's objects.
#ifndef MPC_SERVER_PKINIT_OPENSSL_TYPES_H_
#define MPC_SERVER_PKINIT_OPENSSL_TYPES_H_

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/cms.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

namespace mpckdc {

template <auto kFree>
struct Freer {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
inline void FreeCertificates(STACK_OF(X509) * all) { sk_X509_pop_free(all, X509_free); }

using BioPtr = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using CmsPtr = std::unique_ptr<CMS_ContentInfo, Freer<CMS_ContentInfo_free>>;
using CrlPtr = std::unique_ptr<X509_CRL, Freer<X509_CRL_free>>;
using EkuPtr = std::unique_ptr<EXTENDED_KEY_USAGE, Freer<EXTENDED_KEY_USAGE_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;
using ObjectPtr = std::unique_ptr<ASN1_OBJECT, Freer<ASN1_OBJECT_free>>;
using PkeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using StoreCtxPtr = std::unique_ptr<X509_STORE_CTX, Freer<X509_STORE_CTX_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Freer<X509_STORE_free>>;
using X509Ptr = std::unique_ptr<X509, Freer<X509_free>>;
using X509StackPtr = std::unique_ptr<STACK_OF(X509), Freer<FreeCertificates>>;

}  // namespace mpckdc

#endif  // MPC_SERVER_PKINIT_OPENSSL_TYPES_H_
