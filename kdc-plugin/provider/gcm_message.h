/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of the GCM enctypes (mpc-server/doc/enctype.md), as far as the KDC handles them:
 *
 *   nonce (12) | header length (1) | header | CTR ciphertext of (16 zero bytes | plain) | tag (16)
 *
 * The KDC supplies neither nonce nor header and knows no key; it only combines keystream and text.
 */
#ifndef KDC_PLUGIN_PROVIDER_GCM_MESSAGE_H_
#define KDC_PLUGIN_PROVIDER_GCM_MESSAGE_H_

#include <krb5/krb5.h>

#include "kdc-plugin/client/mpc_client.h"
#include "kdc-plugin/provider/enctypes.h"

/* Lays out everything but the tag. Returns KRB5_BAD_MSIZE if the space in `message` is too small;
 * otherwise sets its length, and *ciphertext to the part that the tag is asked for. */
krb5_error_code gcm_lay_out(const mpc_sealed *sealed, const krb5_data *plain, krb5_data *message,
                            mpc_bytes *ciphertext);

/* Where the tag of a message that was laid out goes; MPC_TAG_BYTES. */
uint8_t *gcm_tag_place(const krb5_data *message);

/* Bytes of plaintext in a message, or -1 if it is too short to be one. */
long gcm_plain_length(const krb5_data *message);

/* Returns KRB5_BAD_MSIZE if the message is malformed, the keystream of another length, or the space
 * in `plain` too small; otherwise decrypts and sets the length of `plain`. */
krb5_error_code gcm_open(const krb5_data *message, mpc_bytes keystream, krb5_data *plain);

#endif /* KDC_PLUGIN_PROVIDER_GCM_MESSAGE_H_ */
