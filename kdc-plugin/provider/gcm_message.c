/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/gcm_message.h"

#include <string.h>

krb5_error_code gcm_lay_out(const mpc_sealed *sealed, const krb5_data *plain, krb5_data *message,
                            mpc_bytes *ciphertext)
{
    const size_t text = MPC_ZERO_BYTES + (size_t)plain->length;
    const size_t start = MPC_NONCE_BYTES + 1 + sealed->header.size;
    uint8_t *out = (uint8_t *)message->data;
    size_t i;

    if (sealed->header.size > MPC_MAX_HEADER_BYTES || sealed->keystream.size < text ||
        message->length < start + text + MPC_TAG_BYTES)
        return KRB5_BAD_MSIZE;
    memcpy(out, sealed->nonce, MPC_NONCE_BYTES);
    out[MPC_NONCE_BYTES] = (uint8_t)sealed->header.size;
    if (sealed->header.size > 0)
        memcpy(out + MPC_NONCE_BYTES + 1, sealed->header.data, sealed->header.size);
    out += start;
    memcpy(out, sealed->keystream.data, MPC_ZERO_BYTES); /* of 16 zero bytes */
    for (i = MPC_ZERO_BYTES; i < text; i++)
        out[i] = sealed->keystream.data[i] ^ (uint8_t)plain->data[i - MPC_ZERO_BYTES];
    ciphertext->data = out;
    ciphertext->size = text;
    message->length = (unsigned int)(start + text + MPC_TAG_BYTES);
    return 0;
}

uint8_t *gcm_tag_place(const krb5_data *message)
{
    return (uint8_t *)message->data + message->length - MPC_TAG_BYTES;
}

long gcm_plain_length(const krb5_data *message)
{
    size_t around;

    if (message->length <= MPC_NONCE_BYTES)
        return -1;
    around = MPC_NONCE_BYTES + 1 + (uint8_t)message->data[MPC_NONCE_BYTES] + MPC_ZERO_BYTES +
             MPC_TAG_BYTES;
    return message->length < around ? -1 : (long)(message->length - around);
}

krb5_error_code gcm_open(const krb5_data *message, mpc_bytes keystream, krb5_data *plain)
{
    const long length = gcm_plain_length(message);
    const uint8_t *text;
    long i;

    if (length < 0 || keystream.size != (size_t)length || plain->length < (unsigned long)length)
        return KRB5_BAD_MSIZE;
    text = (const uint8_t *)message->data + message->length - MPC_TAG_BYTES - length;
    for (i = 0; i < length; i++)
        plain->data[i] = (char)(text[i] ^ keystream.data[i]);
    plain->length = (unsigned int)length;
    return 0;
}
