/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/enctypes.h"

#include <string.h>

typedef struct cts_sizes {
    krb5_enctype enctype;
    krb5_cksumtype checksum;
    unsigned int hmac_bytes;
} cts_sizes;

static const cts_sizes table[] = {
    {ENCTYPE_AES128_CTS_HMAC_SHA1_96, CKSUMTYPE_HMAC_SHA1_96_AES128, 12},
    {ENCTYPE_AES256_CTS_HMAC_SHA1_96, CKSUMTYPE_HMAC_SHA1_96_AES256, 12},
    {ENCTYPE_AES128_CTS_HMAC_SHA256_128, CKSUMTYPE_HMAC_SHA256_128_AES128, 16},
    {ENCTYPE_AES256_CTS_HMAC_SHA384_192, CKSUMTYPE_HMAC_SHA384_192_AES256, 24},
};

static const cts_sizes *find(krb5_enctype enctype)
{
    size_t i;

    for (i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if (table[i].enctype == enctype)
            return &table[i];
    }
    return NULL;
}

int gcm_enctype(krb5_enctype enctype)
{
    return enctype == ENCTYPE_AES128_GCM_PRIVATE || enctype == ENCTYPE_AES256_GCM_PRIVATE;
}

int cts_enctype(krb5_enctype enctype)
{
    return find(enctype) != NULL;
}

/* The checksum types of GCM have the enctypes' numbers. */
static krb5_cksumtype checksum_type_of(krb5_enctype enctype)
{
    const cts_sizes *cts = find(enctype);

    return (cts == NULL) ? (krb5_cksumtype)enctype : cts->checksum;
}

krb5_error_code check_remote_key(krb5_context context, krb5_enctype enctype,
                                 const krb5_data *handle)
{
    if ((gcm_enctype(enctype) || cts_enctype(enctype)) && handle->length == MPC_HANDLE_BYTES)
        return 0;
    if (context != NULL)
        krb5_set_error_message(context, KRB5_BAD_ENCTYPE,
                               "a remote key of enctype %d; the MPC servers hold keys of "
                               "aes128-gcm, aes256-gcm and the aes enctypes 17 to 20 only",
                               (int)enctype);
    return KRB5_BAD_ENCTYPE;
}

krb5_error_code check_checksum_type(krb5_context context, krb5_enctype enctype,
                                    const krb5_data *handle, krb5_cksumtype type)
{
    krb5_error_code ret = check_remote_key(context, enctype, handle);

    if (ret == 0 && type != checksum_type_of(enctype)) {
        ret = KRB5_BAD_ENCTYPE;
        if (context != NULL)
            krb5_set_error_message(context, ret, "checksum type %d under a remote key of enctype "
                                   "%d", (int)type, (int)enctype);
    }
    return ret;
}

/* ---- messages ---- */

static long gcm_plain_length(const krb5_data *message)
{
    size_t around;

    if (message->length <= MPC_NONCE_BYTES)
        return -1;
    around = MPC_NONCE_BYTES + 1 + (uint8_t)message->data[MPC_NONCE_BYTES] + MPC_ZERO_BYTES +
             MPC_TAG_BYTES;
    return message->length < around ? -1 : (long)(message->length - around);
}

static long cts_plain_length(krb5_enctype enctype, const krb5_data *message)
{
    const cts_sizes *cts = find(enctype);
    unsigned int around;

    if (cts == NULL)
        return -1;
    around = CTS_CONFOUNDER_BYTES + cts->hmac_bytes;
    return message->length < around ? -1 : (long)(message->length - around);
}

long plain_length(krb5_enctype enctype, const krb5_data *message)
{
    return gcm_enctype(enctype) ? gcm_plain_length(message) : cts_plain_length(enctype, message);
}

unsigned int most_bytes(krb5_enctype enctype, krb5_keyusage usage)
{
    if (gcm_enctype(enctype))
        return MPC_MAX_GCM_BYTES;
    return usage == USAGE_TICKET            ? MPC_MAX_CTS_TICKET_BYTES
           : usage == USAGE_AS_REQ_CHECKSUM ? MPC_MAX_CTS_REQUEST_BYTES
                                            : MPC_MAX_CTS_BYTES;
}

krb5_error_code check_size(krb5_context context, const char *what, unsigned int size,
                           krb5_enctype enctype, krb5_keyusage usage)
{
    const unsigned int most = most_bytes(enctype, usage);

    if (size <= most)
        return 0;
    if (context != NULL)
        krb5_set_error_message(context, KRB5KRB_ERR_FIELD_TOOLONG,
                               "%s: of %u bytes; the MPC servers take at most %u under this key",
                               what, size, most);
    return KRB5KRB_ERR_FIELD_TOOLONG;
}

krb5_error_code wrong_size(krb5_context context, const char *what, size_t size,
                           krb5_enctype enctype)
{
    if (context != NULL)
        krb5_set_error_message(context, KRB5_BAD_MSIZE, "%s: %lu bytes are none of enctype %d",
                               what, (unsigned long)size, (int)enctype);
    return KRB5_BAD_MSIZE;
}

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

static krb5_error_code gcm_open(const krb5_data *message, mpc_bytes keystream,
                                krb5_data *plain)
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

static krb5_error_code copy(mpc_bytes from, krb5_data *to)
{
    if (to->length < from.size)
        return KRB5_BAD_MSIZE;
    if (from.size > 0)
        memcpy(to->data, from.data, from.size);
    to->length = (unsigned int)from.size;
    return 0;
}

krb5_error_code take_plain(krb5_enctype enctype, const krb5_data *message,
                           const mpc_result *result, krb5_data *plain)
{
    const mpc_bytes opened = result->open_plaintext;

    if (gcm_enctype(enctype))
        return gcm_open(message, result->open_keystream, plain);
    if (cts_plain_length(enctype, message) != (long)opened.size)
        return KRB5_BAD_MSIZE;
    return copy(opened, plain);
}

krb5_error_code cts_take_message(krb5_enctype enctype, const krb5_data *plain, mpc_bytes sealed,
                                 krb5_data *message)
{
    const krb5_data whole = {KV5M_DATA, (unsigned int)sealed.size, NULL};

    if (cts_plain_length(enctype, &whole) != (long)plain->length)
        return KRB5_BAD_MSIZE;
    return copy(sealed, message);
}
