/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The encryption types of keys that the MPC servers hold, as far as the KDC needs to know them
 * (mpc-server/key/enctype.h), and their messages. Those of GCM (mpc-server/doc/enctype.md) are
 *
 *   nonce (12) | header length (1) | header | CTR ciphertext of (16 zero bytes | plain) | tag (16)
 *
 * The KDC supplies neither nonce nor header and knows no key; it only combines keystream and text.
 * Those of 17 to 20 are
 *
 *   AES-CBC-CTS of (confounder (16) | plain) | HMAC (12, 12, 16, 24)
 *
 * The KDC neither makes nor reads these: the servers give it shares of the message or plain text.
 */
#ifndef KDC_PLUGIN_PROVIDER_ENCTYPES_H_
#define KDC_PLUGIN_PROVIDER_ENCTYPES_H_

#include <krb5/krb5.h>

#include "kdc-plugin/client/mpc_client.h"

#define ENCTYPE_AES128_GCM_PRIVATE (-24001)
#define ENCTYPE_AES256_GCM_PRIVATE (-24002)

enum { CTS_CONFOUNDER_BYTES = 16 };

/* Key usages (RFC 4120, 7.5.1; RFC 6113, 7751) that the servers' table of operations has. */
enum {
    USAGE_PREAUTH = 1,
    USAGE_TICKET = 2,
    USAGE_AS_REPLY = 3,
    USAGE_PAC_CHECKSUM = 17,
    USAGE_AS_REQ_CHECKSUM = 56,
    USAGE_CAMMAC = 64
};

/* Whether an enctype is one of the two of GCM, or one of 17 to 20. */
int gcm_enctype(krb5_enctype enctype);
int cts_enctype(krb5_enctype enctype);

/* KRB5_BAD_ENCTYPE with a message, unless the handle may be that of a key which the servers hold;
 * unless the checksum type is the one of its enctype, too. */
krb5_error_code check_remote_key(krb5_context context, krb5_enctype enctype,
                                 const krb5_data *handle);
krb5_error_code check_checksum_type(krb5_context context, krb5_enctype enctype,
                                    const krb5_data *handle, krb5_cksumtype type);

/* Bytes of plaintext in a message of any of these enctypes, or -1 if it is too short to be one. */
long plain_length(krb5_enctype enctype, const krb5_data *message);

/* Under a key of an enctype the servers open, seal or checksum at most so many bytes for a usage. */
unsigned int most_bytes(krb5_enctype enctype, krb5_keyusage usage);

/* KRB5KRB_ERR_FIELD_TOOLONG with a message, if `size` is more than that: the servers are not asked, for
 * they would call the whole job malformed, and the client is the one that said anything so long. */
krb5_error_code check_size(krb5_context context, const char *what, unsigned int size,
                           krb5_enctype enctype, krb5_keyusage usage);

/* KRB5_BAD_MSIZE with a message. */
krb5_error_code wrong_size(krb5_context context, const char *what, size_t size,
                           krb5_enctype enctype);

/* Lays out everything of a GCM message but the tag. Returns KRB5_BAD_MSIZE if the space in
 * `message` is too small; otherwise sets its length, and *ciphertext to what gets the tag. */
krb5_error_code gcm_lay_out(const mpc_sealed *sealed, const krb5_data *plain, krb5_data *message,
                            mpc_bytes *ciphertext);

/* Where the tag of a message that was laid out goes; MPC_TAG_BYTES. */
uint8_t *gcm_tag_place(const krb5_data *message);

/* The plain text of what the servers opened: with their keystream (GCM), or as it is. Returns
 * KRB5_BAD_MSIZE if that has another length than the message's, or does not fit. */
krb5_error_code take_plain(krb5_enctype enctype, const krb5_data *message,
                           const mpc_result *result, krb5_data *plain);

/* The message that the servers sealed under 17 to 20; KRB5_BAD_MSIZE in the same way. */
krb5_error_code cts_take_message(krb5_enctype enctype, const krb5_data *plain, mpc_bytes sealed,
                                 krb5_data *message);

#endif /* KDC_PLUGIN_PROVIDER_ENCTYPES_H_ */
