/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The encryption types of keys that the MPC servers hold, as far as the KDC needs to know them
 * (mpc-server/key/enctype.h), and the messages of 17 to 20:
 *
 *   AES-CBC-CTS of (confounder (16) | plain) | HMAC (12, 12, 16, 24)
 *
 * The KDC neither makes nor reads these: the servers give it shares of the message or the plain text.
 */
#ifndef KDC_PLUGIN_PROVIDER_ENCTYPES_H_
#define KDC_PLUGIN_PROVIDER_ENCTYPES_H_

#include <krb5/krb5.h>

#include "kdc-plugin/client/mpc_client.h"

#define ENCTYPE_AES128_GCM_PRIVATE (-24001)
#define ENCTYPE_AES256_GCM_PRIVATE (-24002)

enum { CTS_CONFOUNDER_BYTES = 16 };

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

/* KRB5_BAD_MSIZE with a message. */
krb5_error_code wrong_size(krb5_context context, const char *what, size_t size,
                           krb5_enctype enctype);

/* Copies what the servers opened or sealed under 17 to 20. Returns KRB5_BAD_MSIZE if it has another
 * length than a message (or plain text) of this one, or does not fit. */
krb5_error_code cts_take_plain(krb5_enctype enctype, const krb5_data *message, mpc_bytes opened,
                               krb5_data *plain);
krb5_error_code cts_take_message(krb5_enctype enctype, const krb5_data *plain, mpc_bytes sealed,
                                 krb5_data *message);

#endif /* KDC_PLUGIN_PROVIDER_ENCTYPES_H_ */
