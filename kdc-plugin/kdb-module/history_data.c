/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libkadm5 keeps in KRB5_TL_KADM_DATA, in XDR (numbers of four bytes, byte strings with their
 * length in front and padded to four):
 *
 *   version | policy's name | attributes | next old key | kvno of kadmin/history |
 *   old passwords, counted: keys, counted:
 *     key data version | kvno | enctype | salt type | length | salt length | contents | salt
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/kdb-module/history.h"

#define KADM_DATA_VERSION 0x12345C01

typedef struct reader {
    const uint8_t *at;
    size_t left;
    int bad;
} reader;

static uint32_t get_number(reader *in)
{
    uint32_t number;

    if (in->left < 4) {
        in->bad = 1;
        return 0;
    }
    number = (uint32_t)in->at[0] << 24 | (uint32_t)in->at[1] << 16 | (uint32_t)in->at[2] << 8 |
             in->at[3];
    in->at += 4;
    in->left -= 4;
    return number;
}

static const uint8_t *get_bytes(reader *in, uint32_t *size)
{
    const uint8_t *bytes;
    size_t padded;

    *size = get_number(in);
    padded = ((size_t)*size + 3) & ~(size_t)3;
    bytes = in->at;
    if (in->bad || padded > in->left) {
        in->bad = 1;
        *size = 0;
        return bytes;
    }
    in->at += padded;
    in->left -= padded;
    return bytes;
}

static void read_key(reader *in, history_visit visit, void *arg)
{
    uint32_t kvno, enctype, size, salt_size;
    uint8_t *contents;

    (void)get_number(in); /* version */
    kvno = get_number(in);
    enctype = get_number(in);
    (void)get_number(in); /* salt type */
    (void)get_number(in); /* lengths, which come again */
    (void)get_number(in);
    contents = (uint8_t *)get_bytes(in, &size);
    (void)get_bytes(in, &salt_size);
    if (!in->bad && size <= UINT16_MAX) {
        krb5_key_data key_data = {0};

        key_data.key_data_contents[0] = size == 0 ? NULL : contents;
        key_data.key_data_length[0] = (krb5_ui_2)size;
        if (handle_in(&key_data) != NULL)
            visit(arg, kvno, (int32_t)enctype, handle_in(&key_data));
    }
}

krb5_error_code history_walk(const krb5_db_entry *entry, history_visit visit, void *arg)
{
    const krb5_tl_data *tl;
    uint32_t passwords, keys, size;
    reader in;

    for (tl = entry->tl_data; tl != NULL && tl->tl_data_type != KRB5_TL_KADM_DATA;)
        tl = tl->tl_data_next;
    if (tl == NULL || tl->tl_data_length == 0)
        return 0;
    in = (reader){tl->tl_data_contents, tl->tl_data_length, 0};
    if (get_number(&in) != KADM_DATA_VERSION)
        return EINVAL;
    (void)get_bytes(&in, &size); /* policy */
    (void)get_number(&in);
    (void)get_number(&in);
    (void)get_number(&in);
    for (passwords = get_number(&in); passwords > 0 && !in.bad; passwords--)
        for (keys = get_number(&in); keys > 0 && !in.bad; keys--)
            read_key(&in, visit, arg);
    return in.bad ? EINVAL : 0;
}

typedef struct collecting {
    handle_list *list;
    int no_memory;
} collecting;

static void collect(void *arg, uint32_t kvno, int32_t enctype, const uint8_t *handle)
{
    collecting *c = arg;

    (void)kvno;
    (void)enctype;
    if (!handle_list_has(c->list, handle) && handle_list_add(c->list, handle) != 0)
        c->no_memory = 1;
}

krb5_error_code history_list_of(const krb5_db_entry *entry, handle_list *list)
{
    collecting c = {list, 0};
    krb5_error_code ret;

    *list = (handle_list){NULL, 0};
    ret = history_walk(entry, collect, &c);
    return c.no_memory ? ENOMEM : ret;
}

krb5_error_code handles_of_all(const krb5_db_entry *entry, handle_list *list)
{
    collecting c = {list, 0};
    krb5_error_code ret = handle_list_of(entry, NULL, list);

    if (ret == 0)
        ret = history_walk(entry, collect, &c);
    return c.no_memory ? ENOMEM : ret;
}

typedef struct replacing {
    history_replacement replacement;
    void *arg;
} replacing;

/* The handle lies in the entry's own memory. */
static void replace(void *arg, uint32_t kvno, int32_t enctype, const uint8_t *handle)
{
    const replacing *r = arg;
    const uint8_t *other = r->replacement(r->arg, handle);

    (void)kvno;
    (void)enctype;
    if (other != NULL)
        memcpy((uint8_t *)handle, other, KRB5_REMOTE_KEY_HANDLE_LENGTH);
}

krb5_error_code history_replace(krb5_db_entry *entry, history_replacement replacement, void *arg)
{
    replacing r = {replacement, arg};

    return history_walk(entry, replace, &r);
}
