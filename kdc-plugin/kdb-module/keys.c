/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/keys.h"

#include <errno.h>
#include <kadm5/admin.h>
#include <kadm5/remote_key_err.h>
#include <krb5/remote_key_plugin.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/kdb-module/guard.h"
#include "kdc-plugin/kdb-module/handles.h"
#include "kdc-plugin/kdb-module/state.h"
#include "kdc-plugin/provider/enctypes.h"
#include "kdc-plugin/provider/source.h"

/* ---- encrypt ---- */

static int same_key(const krb5_keyblock *a, const krb5_keyblock *b)
{
    return a->length > 0 && a->length == b->length && a->enctype == b->enctype &&
           memcmp(a->contents, b->contents, a->length) == 0;
}

static int in_list(const krb5_keylist_node *list, const krb5_keyblock *key)
{
    for (; list != NULL; list = list->next)
        if (same_key(&list->keyblock, key))
            return 1;
    return 0;
}

/*
 * Whether krb5 wants exactly what it asks for: a master key encrypted under a master key, or a
 * local key under something that is no master key (kadmin/history, a dump's new master key).
 * During `kdb5_util create` the list of master keys is still empty.
 */
static int is_plain_storage(module_state *state, const krb5_keyblock *mkey,
                            const krb5_keyblock *key)
{
    const krb5_keylist_node *list = krb5_db_mkey_list_alias(state->context);

    if (same_key(mkey, key)) {
        krb5_free_keyblock_contents(state->context, &state->new_master);
        memset(&state->new_master, 0, sizeof(state->new_master));
        (void)krb5_copy_keyblock_contents(state->context, key, &state->new_master);
        return 1;
    }
    if (in_list(list, key) || same_key(&state->new_master, key))
        return 1;
    return list != NULL && !in_list(list, mkey) && !same_key(&state->new_master, mkey);
}

static krb5_error_code stage(module_state *state, const krb5_keyblock *key, int from_password,
                             krb5_key_data *key_data)
{
    staged_key *entry;

    entry = staging_add(&state->staged, key->contents, key->length, key->enctype, from_password,
                        key_data->key_data_contents[0], key_data->key_data_length[0]);
    if (entry == NULL) {
        krb5_set_error_message(state->context, ENOMEM,
                               "no locked memory for a new key: see ulimit -l");
        return ENOMEM;
    }
    key_data->key_data_contents[0] = NULL; /* the entry's now */
    return handle_put(key_data, entry->handle);
}

/* Stores a reference: what the default function does, but without encrypting. */
static krb5_error_code store_reference(krb5_context context, const krb5_keyblock *mkey,
                                       const krb5_keyblock *key, const krb5_keysalt *salt,
                                       int kvno, krb5_key_data *key_data)
{
    krb5_data handle;
    krb5_error_code ret = krb5_c_remote_key_handle(key, &handle);

    if (ret == 0)
        ret = krb5_dbe_def_encrypt_key_data(context, mkey, key, salt, kvno, key_data);
    if (ret)
        return ret;
    return handle_put(key_data, (const uint8_t *)handle.data);
}

/* kdb5_ldap_util create: it encrypts keys by this module and writes them past it. */
static krb5_error_code refuse_without_database(krb5_context context)
{
    krb5_set_error_message(context, KRB5_KDB_DBNOTINITED,
                           "this program would store the realm's keys themselves; the MPC servers "
                           "draw them if the realm is made by kdb5_util create (deploy/ldap.md)");
    return KRB5_KDB_DBNOTINITED;
}

krb5_error_code keys_encrypt(krb5_context context, const krb5_keyblock *mkey,
                             const krb5_keyblock *key, const krb5_keysalt *salt, int kvno,
                             krb5_key_data *key_data)
{
    module_state *state = state_of(context);
    krb5_error_code ret;

    if (state == NULL)
        return refuse_without_database(context);
    if (state->is_kdc)
        return KRB5_KDB_DBNOTINITED;
    if (krb5_c_is_remote_key(key)) {
        ret = guard_reference(state, key);
        return ret ? ret : store_reference(context, mkey, key, salt, kvno, key_data);
    }
    ret = krb5_dbe_def_encrypt_key_data(context, mkey, key, salt, kvno, key_data);
    if (ret || is_plain_storage(state, mkey, key))
        return ret;
    state->only_read = 0;
    return stage(state, key, salt != NULL, key_data);
}

/* ---- decrypt ---- */

/* The salt half of what krb5 does. */
static krb5_error_code copy_salt(const krb5_key_data *key_data, krb5_keysalt *salt)
{
    if (salt == NULL)
        return 0;
    salt->type = KRB5_KDB_SALTTYPE_NORMAL;
    salt->data = (krb5_data){KV5M_DATA, 0, NULL};
    if (key_data->key_data_ver != 2)
        return 0;
    salt->type = key_data->key_data_type[1];
    if (key_data->key_data_length[1] == 0)
        return 0;
    salt->data.data = malloc(key_data->key_data_length[1]);
    if (salt->data.data == NULL)
        return ENOMEM;
    memcpy(salt->data.data, key_data->key_data_contents[1], key_data->key_data_length[1]);
    salt->data.length = key_data->key_data_length[1];
    return 0;
}

static krb5_error_code refuse_extraction(module_state *state)
{
    char *name = NULL;

    (void)krb5_unparse_name(state->context, state->current, &name);
    krb5_set_error_message(state->context, KADM5_REMOTE_KEYS,
                           "split among the MPC servers, cannot be taken out; for a new random "
                           "key use mpc-admin randkey %s",
                           name == NULL ? "NAME" : name);
    krb5_free_unparsed_name(state->context, name);
    return KADM5_REMOTE_KEYS;
}

/* Whether the staged key will be stored by krb5 itself, as far as is known now. */
static int will_be_local(const module_state *state, const staged_key *entry)
{
    if (state->current == NULL)
        return 0;
    switch (classify(state->config, state->current)) {
    case PLACE_LOCAL:
        return 1;
    case PLACE_BY_ENCTYPE:
        return !mpc_admin_holds_enctype(entry->enctype);
    default:
        return 0;
    }
}

static krb5_error_code give_key(krb5_context context, const staged_key *entry, krb5_keyblock *key)
{
    const krb5_keyblock source = {
        KV5M_KEYBLOCK, entry->enctype, (unsigned int)entry->key_bytes, (krb5_octet *)entry->key
    };

    return krb5_copy_keyblock_contents(context, &source, key);
}

static krb5_error_code give_reference(krb5_context context, const krb5_key_data *key_data,
                                      krb5_keyblock *key)
{
    krb5_data handle = {KV5M_DATA, KRB5_REMOTE_KEY_HANDLE_LENGTH, (char *)handle_in(key_data)};

    return krb5_c_make_remote_key(context, key_data->key_data_type[0], &handle, key);
}

/*
 * libkadm5 decrypts a key that is on its way in to hand it out (new random keys) or to compare it
 * with older ones (new passwords, which libkadm5 has made keys of itself a moment ago); see
 * state.h. A stored handle gives a reference, and only where it is compared; if the servers say that
 * it is one of the new keys it gives that (history.h).
 */
static krb5_error_code decrypt_handle(module_state *state, const krb5_keyblock *mkey,
                                      const krb5_key_data *key_data, int wants_salt,
                                      krb5_keyblock *key)
{
    staged_key *entry = staging_find(state->staged, handle_in(key_data));
    const staged_key *same = NULL;
    krb5_error_code ret;

    if (entry == NULL) {
        if (state->only_read && wants_salt)
            return refuse_extraction(state);
        /* Under a master key it is moved, as cpw -keepold does, and compared with nothing. */
        if (!in_list(krb5_db_mkey_list_alias(state->context), mkey))
            same = history_find(state, handle_in(key_data), key_data->key_data_type[0]);
        return same != NULL ? give_key(state->context, same, key)
                            : give_reference(state->context, key_data, key);
    }
    if (entry->from_password) {
        ret = history_ask(state);
        if (ret)
            return ret;
    }
    if (!entry->from_password) {
        if (!will_be_local(state, entry))
            return refuse_extraction(state);
        entry->handed_out = 1; /* put_principal refuses it for a protected principal */
    }
    return give_key(state->context, entry, key);
}

krb5_error_code keys_decrypt(krb5_context context, const krb5_keyblock *mkey,
                             const krb5_key_data *key_data, krb5_keyblock *key,
                             krb5_keysalt *salt)
{
    module_state *state = state_of(context);
    krb5_error_code ret;

    source_use_master_key(context, mkey);
    if (handle_in(key_data) == NULL)
        return krb5_dbe_def_decrypt_key_data(context, mkey, key_data, key, salt);
    ret = state == NULL || state->is_kdc ? give_reference(context, key_data, key)
                                         : decrypt_handle(state, mkey, key_data, salt != NULL,
                                                          key);
    if (ret)
        return ret;
    ret = copy_salt(key_data, salt);
    if (ret)
        krb5_free_keyblock_contents(context, key);
    return ret;
}
