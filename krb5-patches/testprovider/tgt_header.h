// SPDX-License-Identifier: Apache-2.0

/*
 * The headers of TGTs in the GCM enctypes, as those who hold the krbtgt key set
 * them (the "TGT header" of enctype.md).
 */

#ifndef TGT_HEADER_H
#define TGT_HEADER_H

#include <stdint.h>

#include <krb5/krb5.h>

#define TGT_HEADER_LENGTH 33

struct tgt_header {
    uint8_t version; /* 1, or 0 if there is no header */
    uint8_t principal[16];
    uint32_t origin; /* time of the first authentication */
    uint32_t cap;    /* no ticket is valid or renewable after this */
    uint64_t job;
};

/* Set handle to 16 bytes which depend on key and owner. */
void remotetest_handle(const krb5_keyblock *key, const char *owner, unsigned char *handle);

/* Return true if a message under a key of owner has a header. */
krb5_boolean tgt_header_applies(krb5_enctype enctype, krb5_keyusage usage, const char *owner);

/* Set header to one for a principal which has authenticated just now. */
void tgt_header_make(struct tgt_header *header, const char *principal);

/* Set header to that of a TGT made from the one in cipher, which is under a key
 * of owner; leave version 0 if there is none. */
void tgt_header_inherit(struct tgt_header *header, const krb5_data *cipher, const char *owner);

/* Encrypt plain with a header. */
krb5_error_code tgt_header_seal(const krb5_keyblock *key, krb5_keyusage usage,
                                const struct tgt_header *header, const krb5_data *plain,
                                krb5_data *cipher_out);

#endif /* TGT_HEADER_H */
