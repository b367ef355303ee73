// SPDX-License-Identifier: Apache-2.0

/*
 * Sealing a ticket with a header.  libk5crypto seals with an empty one, so this is
 * GCM once more, straight from OpenSSL:
 *
 *     nonce (12) | header length (1) | header | CTR(16 zero bytes | plain) | tag
 *
 * with the header length and the header as additional data, under
 * Kg = DK(base key, usage | 0x47).
 */

#include "ticket_header.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NONCE_LENGTH 12
#define ZEROS_LENGTH 16
#define TAG_LENGTH 16

/* krb5int_nfold() is exported by libk5crypto but declared nowhere public; its
 * lengths are in bits. */
extern void krb5int_nfold(unsigned int inbits, const unsigned char *in, unsigned int outbits,
                          unsigned char *out);

static void
store32(uint32_t v, unsigned char *p)
{
    p[0] = v >> 24, p[1] = v >> 16, p[2] = v >> 8, p[3] = v;
}

static uint32_t
load32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void
sha256(const void *label, size_t label_length, const void *in, size_t length, unsigned char *out)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();

    if (ctx == NULL || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1 ||
        EVP_DigestUpdate(ctx, label, label_length) != 1 ||
        EVP_DigestUpdate(ctx, in, length) != 1 || EVP_DigestFinal_ex(ctx, out, NULL) != 1)
        abort();
    EVP_MD_CTX_free(ctx);
}

void
remotetest_handle(const krb5_keyblock *key, const char *owner, unsigned char *handle)
{
    unsigned char id[SHA256_DIGEST_LENGTH], digest[SHA256_DIGEST_LENGTH];
    unsigned char enctype[4];

    store32(key->enctype, enctype);
    sha256(enctype, sizeof(enctype), owner, strlen(owner) + 1, id);
    sha256(id, sizeof(id), key->contents, key->length, digest);
    memcpy(handle, digest, 16);
}

krb5_boolean
ticket_header_applies(krb5_enctype enctype, krb5_keyusage usage, const char *owner)
{
    return (enctype == ENCTYPE_AES128_GCM || enctype == ENCTYPE_AES256_GCM) &&
           usage == KRB5_KEYUSAGE_KDC_REP_TICKET;
}

/* Set id to how principal is called in headers. */
static void
principal_id(const char *principal, uint8_t *id)
{
    static const char label[] = "mpc-kdc principal v1";
    unsigned char digest[SHA256_DIGEST_LENGTH];

    sha256(label, sizeof(label), principal, strlen(principal), digest);
    memcpy(id, digest, 16);
}

void
ticket_header_make(struct ticket_header *header, const char *principal)
{
    const char *life = getenv("KRB5_REMOTETEST_MAX_RENEWABLE_LIFE");

    memset(header, 0, sizeof(*header));
    header->version = TICKET_OF_LOGIN;
    principal_id(principal, header->principal);
    header->origin = time(NULL);
    header->cap = header->origin + (life != NULL ? atol(life) : 30 * 24 * 3600);
}

void
ticket_header_inherit(struct ticket_header *header, const krb5_data *cipher, const char *owner)
{
    const unsigned char *p = (unsigned char *)cipher->data + NONCE_LENGTH;
    const char *local = owner + strlen("krbtgt/"), *at = strchr(local, '@');

    memset(header, 0, sizeof(*header));
    if (strncmp(owner, "krbtgt/", 7) != 0 ||
        cipher->length < NONCE_LENGTH + 1 + TICKET_HEADER_LENGTH || p[0] != TICKET_HEADER_LENGTH)
        return;
    header->version = TICKET_REISSUED;
    memcpy(header->principal, p + 2, sizeof(header->principal));
    header->origin = load32(p + 18);
    header->cap = load32(p + 22);
    header->job = (uint64_t)load32(p + 26) << 32 | load32(p + 30);
    /* Of a client from another realm, that realm's krbtgt is all that is known. */
    if (at != NULL && (strlen(at + 1) != (size_t)(at - local) ||
                       strncmp(local, at + 1, at - local) != 0))
        principal_id(owner, header->principal);
}

/* Set aad to the header's length and contents. */
static void
encode_header(const struct ticket_header *header, unsigned char *aad)
{
    aad[0] = TICKET_HEADER_LENGTH;
    aad[1] = header->version;
    memcpy(aad + 2, header->principal, sizeof(header->principal));
    store32(header->origin, aad + 18);
    store32(header->cap, aad + 22);
    store32(header->job >> 32, aad + 26);
    store32((uint32_t)header->job, aad + 30);
}

/* Set out to the first key->length bytes of the chained encryptions of the
 * n-folded constant (RFC 3961 section 5.1). */
static void
derive_kg(const krb5_keyblock *key, krb5_keyusage usage, unsigned char *out)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    const EVP_CIPHER *aes = (key->length == 16) ? EVP_aes_128_ecb() : EVP_aes_256_ecb();
    unsigned char constant[5], block[16];
    unsigned int done;
    int n;

    store32(usage, constant);
    constant[4] = 0x47;
    krb5int_nfold(40, constant, 128, block);
    if (ctx == NULL || EVP_EncryptInit_ex(ctx, aes, NULL, key->contents, NULL) != 1 ||
        EVP_CIPHER_CTX_set_padding(ctx, 0) != 1)
        abort();
    for (done = 0; done < key->length; done += sizeof(block)) {
        if (EVP_EncryptUpdate(ctx, block, &n, block, sizeof(block)) != 1)
            abort();
        memcpy(out + done, block, sizeof(block));
    }
    EVP_CIPHER_CTX_free(ctx);
}

krb5_error_code
ticket_header_seal(const krb5_keyblock *key, krb5_keyusage usage, const struct ticket_header *header,
                const krb5_data *plain, krb5_data *cipher_out)
{
    static const unsigned char zeros[ZEROS_LENGTH];
    const EVP_CIPHER *gcm = (key->length == 16) ? EVP_aes_128_gcm() : EVP_aes_256_gcm();
    EVP_CIPHER_CTX *ctx;
    unsigned char kg[32], *out = (unsigned char *)cipher_out->data, *aad, *body;
    size_t length = NONCE_LENGTH + 1 + TICKET_HEADER_LENGTH + ZEROS_LENGTH + plain->length +
                    TAG_LENGTH;
    int n;

    if (length > cipher_out->length)
        return KRB5_BAD_MSIZE;
    aad = out + NONCE_LENGTH;
    body = aad + 1 + TICKET_HEADER_LENGTH;
    encode_header(header, aad);
    derive_kg(key, usage, kg);
    ctx = EVP_CIPHER_CTX_new();
    if (ctx == NULL || RAND_bytes(out, NONCE_LENGTH) != 1 ||
        EVP_EncryptInit_ex(ctx, gcm, NULL, kg, out) != 1 ||
        EVP_EncryptUpdate(ctx, NULL, &n, aad, 1 + TICKET_HEADER_LENGTH) != 1 ||
        EVP_EncryptUpdate(ctx, body, &n, zeros, ZEROS_LENGTH) != 1 ||
        EVP_EncryptUpdate(ctx, body + ZEROS_LENGTH, &n, (unsigned char *)plain->data,
                          plain->length) != 1 ||
        EVP_EncryptFinal_ex(ctx, body + ZEROS_LENGTH + plain->length, &n) != 1 ||
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG_LENGTH,
                            body + ZEROS_LENGTH + plain->length) != 1)
        abort();
    EVP_CIPHER_CTX_free(ctx);
    memset(kg, 0, sizeof(kg));
    cipher_out->length = length;
    return 0;
}
