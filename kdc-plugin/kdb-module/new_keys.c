/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/new_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/kdb-module/handles.h"
#include "kdc-plugin/provider/enctypes.h"

#define SUPPORTED_ENCTYPES                                                          \
    "supported_enctypes = aes256-gcm:normal aes128-gcm:normal aes256-cts:normal "  \
    "aes128-cts:normal aes256-sha2:normal aes128-sha2:normal"

/* The staged key of one key data, or NULL. */
static staged_key *staged_of(const module_state *state, const krb5_key_data *key_data)
{
    const uint8_t *handle = handle_in(key_data);

    return handle == NULL ? NULL : staging_find(state->staged, handle);
}

void new_keys_restore_stock(module_state *state, krb5_db_entry *entry)
{
    int i;

    for (i = 0; i < entry->n_key_data; i++) {
        krb5_key_data *key_data = &entry->key_data[i];
        staged_key *staged = staged_of(state, key_data);

        if (staged == NULL)
            continue;
        free(key_data->key_data_contents[0]);
        key_data->key_data_contents[0] = staged->stock;
        key_data->key_data_length[0] = staged->stock_bytes;
        staged->stock = NULL;
        staging_remove(&state->staged, staged);
    }
}

typedef int (*key_test)(const staged_key *key);

static int is_gcm(const staged_key *key)
{
    return gcm_enctype(key->enctype);
}

static int not_gcm(const staged_key *key)
{
    return !gcm_enctype(key->enctype);
}

static int not_held(const staged_key *key)
{
    return !mpc_admin_holds_enctype(key->enctype);
}

static int is_standard(const staged_key *key)
{
    return not_gcm(key) && !not_held(key);
}

static int from_password(const staged_key *key)
{
    return key->from_password;
}

static int was_handed_out(const staged_key *key)
{
    return key->handed_out;
}

/* The first new key of the entry that passes the test (NULL: any does), or NULL. */
static const staged_key *find_new(const module_state *state, const krb5_db_entry *entry,
                                  key_test test)
{
    int i;

    for (i = 0; i < entry->n_key_data; i++) {
        const staged_key *staged = staged_of(state, &entry->key_data[i]);

        if (staged != NULL && (test == NULL || test(staged)))
            return staged;
    }
    return NULL;
}

static void remove_new(module_state *state, krb5_db_entry *entry, key_test unwanted)
{
    int i, kept = 0;

    for (i = 0; i < entry->n_key_data; i++) {
        krb5_key_data *key_data = &entry->key_data[i];
        staged_key *staged = staged_of(state, key_data);

        if (staged != NULL && unwanted(staged)) {
            staging_remove(&state->staged, staged);
            krb5_dbe_free_key_data_contents(state->context, key_data);
        } else {
            entry->key_data[kept++] = *key_data;
        }
    }
    entry->n_key_data = (krb5_int16)kept;
}

/*
 * supported_enctypes is for all principals, but not each type of key is of use to each: no client
 * meets the keys of the realm's krbtgt and of kadmin, which stay with GCM, and a stock service
 * cannot read a ticket of a GCM type, which the KDC would prefer. What is left may still be refused.
 */
static void remove_useless(module_state *state, krb5_db_entry *entry, placement place)
{
    if (needs_gcm(entry->princ, place) && find_new(state, entry, is_gcm) != NULL)
        remove_new(state, entry, is_standard);
    if (place == PLACE_LOCAL && key_class_of(entry->princ) == MPC_CLASS_SERVICE &&
        find_new(state, entry, not_gcm) != NULL)
        remove_new(state, entry, is_gcm);
}

static krb5_error_code refuse_enctype(module_state *state, const char *name, int enctype)
{
    char text[64] = "";

    (void)krb5_enctype_to_name(enctype, FALSE, text, sizeof(text));
    krb5_set_error_message(state->context, KRB5_PROG_ETYPE_NOSUPP,
                           "%s is protected by the MPC servers, which hold no keys of enctype %s: "
                           "set %s in the realm's section of kdc.conf (or use -e), or list the "
                           "principal in mpc_local", name, text[0] ? text : "of that number",
                           SUPPORTED_ENCTYPES);
    return KRB5_PROG_ETYPE_NOSUPP;
}

static krb5_error_code refuse_ageless(module_state *state, const char *name)
{
    krb5_set_error_message(state->context, KRB5_PROG_ETYPE_NOSUPP,
                           "%s must have keys of aes256-gcm or aes128-gcm: only in these do the "
                           "MPC servers see for whom and when a ticket was made. Add "
                           "aes256-gcm:normal to supported_enctypes in kdc.conf, or to -e", name);
    return KRB5_PROG_ETYPE_NOSUPP;
}

/* libkadm5 was given a random key as that of a local principal (state.h). */
static krb5_error_code refuse_handed_out(module_state *state, const char *name)
{
    krb5_set_error_message(state->context, KRB5_KDB_DB_INUSE,
                           "the new key of %s was taken for that of another principal and is "
                           "thrown away; nothing was changed: try again", name);
    return KRB5_KDB_DB_INUSE;
}

/* The salt in words of the string-to-key function; free with krb5_free_data_contents. */
static krb5_error_code salt_of(krb5_context context, const krb5_db_entry *entry,
                               const krb5_key_data *key_data, int32_t *type, krb5_data *salt)
{
    *salt = (krb5_data){KV5M_DATA, 0, NULL};
    *type = KRB5_KDB_SALTTYPE_NORMAL;
    if (key_data->key_data_ver < 2)
        return krb5_principal2salt(context, entry->princ, salt);
    *type = key_data->key_data_type[1];
    salt->length = key_data->key_data_length[1];
    salt->data = malloc(salt->length + 1);
    if (salt->data == NULL)
        return ENOMEM;
    memcpy(salt->data, key_data->key_data_contents[1], salt->length);
    return 0;
}

static krb5_error_code fill_new_key(module_state *state, const krb5_db_entry *entry,
                                    const krb5_key_data *key_data, const char *name, int drawn,
                                    krb5_data *salt, mpc_new_key *key)
{
    const staged_key *staged = staged_of(state, key_data);
    krb5_error_code ret = salt_of(state->context, entry, key_data, &key->salt_type, salt);

    if (ret)
        return ret;
    memcpy(key->handle, staged->handle, MPC_HANDLE_BYTES);
    key->principal = name;
    key->kvno = key_data->key_data_kvno;
    key->enctype = key_data->key_data_type[0];
    key->salt = (mpc_bytes){(const uint8_t *)salt->data, salt->length};
    key->key_class = key_class_of(entry->princ);
    key->gate = MPC_GATE_AS_BEFORE;
    if (!drawn)
        key->key = (mpc_bytes){staged->key, staged->key_bytes};
    return 0;
}

/* Puts the new keys of the entry on the servers: all of them, or none. */
static krb5_error_code send_new_keys(module_state *state, const krb5_db_entry *entry,
                                     const char *name, int drawn)
{
    mpc_new_key *keys = calloc(entry->n_key_data, sizeof(*keys));
    krb5_data *salts = calloc(entry->n_key_data, sizeof(*salts));
    mpc_options options;
    size_t count = 0;
    int i;
    char *error = NULL;
    krb5_error_code ret = keys == NULL || salts == NULL ? ENOMEM : 0;

    if (ret == 0)
        ret = config_admin_options(state->context, state->config, &options);
    for (i = 0; i < entry->n_key_data && ret == 0; i++) {
        if (staged_of(state, &entry->key_data[i]) == NULL)
            continue;
        ret = fill_new_key(state, entry, &entry->key_data[i], name, drawn, &salts[count],
                           &keys[count]);
        count++;
    }
    if (ret == 0 && mpc_admin_store_keys(&options, keys, count, &error) != 0) {
        ret = KRB5KDC_ERR_SVC_UNAVAILABLE;
        krb5_set_error_message(state->context, ret,
                               "the keys of %s could not be put on the three MPC servers and "
                               "nothing was changed: %s", name, error == NULL ? "" : error);
    }
    mpc_text_free(error);
    while (count > 0)
        krb5_free_data_contents(state->context, &salts[--count]);
    free(keys); /* holds pointers only */
    free(salts);
    return ret;
}

krb5_error_code new_keys_protect(module_state *state, const krb5_db_entry *entry, placement place)
{
    const staged_key *refused;
    char *name = NULL;
    krb5_error_code ret = krb5_unparse_name(state->context, entry->princ, &name);

    if (ret)
        return ret;
    refused = find_new(state, entry, not_held);
    if (refused != NULL) {
        ret = refuse_enctype(state, name, refused->enctype);
    } else if (find_new(state, entry, was_handed_out) != NULL) {
        ret = refuse_handed_out(state, name);
    } else if (needs_gcm(entry->princ, place) && find_new(state, entry, not_gcm) != NULL) {
        ret = refuse_ageless(state, name);
    } else if (place == PLACE_DRAWN && find_new(state, entry, from_password) != NULL) {
        ret = EINVAL;
        krb5_set_error_message(state->context, ret,
                               "the key of %s is drawn by the MPC servers and cannot come from a "
                               "password: use cpw -randkey or mpc-admin randkey", name);
    } else {
        ret = send_new_keys(state, entry, name, place == PLACE_DRAWN);
    }
    krb5_free_unparsed_name(state->context, name);
    return ret;
}

int new_keys_any(const module_state *state, const krb5_db_entry *entry)
{
    return find_new(state, entry, NULL) != NULL;
}

placement new_keys_place(module_state *state, krb5_db_entry *entry)
{
    placement place = classify(state->config, entry->princ);

    if (place == PLACE_BY_ENCTYPE)
        place = find_new(state, entry, not_held) == NULL ? PLACE_PROTECTED : PLACE_LOCAL;
    remove_useless(state, entry, place);
    return place;
}

void new_keys_forget(module_state *state, const krb5_db_entry *entry)
{
    staged_key *staged;
    int i;

    for (i = 0; i < entry->n_key_data; i++) {
        staged = staged_of(state, &entry->key_data[i]);
        if (staged != NULL)
            staging_remove(&state->staged, staged);
    }
}
