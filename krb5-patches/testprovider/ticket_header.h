// SPDX-License-Identifier: Apache-2.0

/*
 * The headers of tickets in the GCM enctypes, as those who hold the keys set
 * them (the "ticket header" of enctype.md).
 */

#ifndef TICKET_HEADER_H
#define TICKET_HEADER_H

#include <stdint.h>

#include <krb5/krb5.h>

#define TICKET_HEADER_LENGTH 33

#define TICKET_OF_LOGIN 1
#define TICKET_REISSUED 2

struct ticket_header {
    uint8_t version; /* one of these, or 0 if there is no header */
    uint8_t principal[16];
    uint32_t origin; /* time of the first authentication */
    uint32_t cap;    /* no ticket is valid or renewable after this */
    uint64_t job;
};

/* Set handle to 16 bytes which depend on key and owner. */
void remotetest_handle(const krb5_keyblock *key, const char *owner, unsigned char *handle);

/* Return true if a message under a key of owner has a header. */
krb5_boolean ticket_header_applies(krb5_enctype enctype, krb5_keyusage usage, const char *owner);

/* Set header to one for a principal which has authenticated just now. */
void ticket_header_make(struct ticket_header *header, const char *principal);

/* Set header to that of a ticket made from the TGT in cipher, which is under a
 * key of owner; leave version 0 if there is none. */
void ticket_header_inherit(struct ticket_header *header, const krb5_data *cipher, const char *owner);

/* Encrypt plain with a header. */
krb5_error_code ticket_header_seal(const krb5_keyblock *key, krb5_keyusage usage,
                                const struct ticket_header *header, const krb5_data *plain,
                                krb5_data *cipher_out);

#endif /* TICKET_HEADER_H */
