/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/entries.h"

#include <com_err.h>
#include <errno.h>
#include <kadm5/admin.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/kdb-module/handles.h"
#include "kdc-plugin/kdb-module/login_key.h"
#include "kdc-plugin/kdb-module/state.h"
#include "kdc-plugin/kdb-module/wrapped.h"
#include "kdc-plugin/provider/enctypes.h"
#include "kdc-plugin/provider/provider.h"

#define SUPPORTED_ENCTYPES                                                          \
    "supported_enctypes = aes256-gcm:normal aes128-gcm:normal aes256-cts:normal "  \
    "aes128-cts:normal aes256-sha2:normal aes128-sha2:normal"

/* Tells the provider by which handle the servers know the client of an AS-REQ. */
static void note_client(krb5_context context, krb5_db_entry *entry)
{
    uint8_t login[MPC_HANDLE_BYTES];
    const uint8_t *handle = NULL;
    int i;

    for (i = 0; i < entry->n_key_data && handle == NULL; i++)
        handle = handle_in(&entry->key_data[i]);
    if (handle == NULL && login_handle_of(context, entry, login))
        handle = login;
    if (handle != NULL)
        provider_note_client(handle);
}

krb5_error_code entries_get(krb5_context context, krb5_const_principal search_for,
                            unsigned int flags, krb5_db_entry **entry)
{
    module_state *state = state_of(context);
    krb5_error_code ret;

    if (state != NULL)
        state_entry_read(state, search_for);
    ret = wrapped()->get_principal(context, search_for, flags, entry);
    if (ret == 0 && state != NULL && state->is_kdc && (flags & KRB5_KDB_FLAG_CLIENT))
        note_client(context, *entry);
    return ret;
}

/* ---- handles of an entry ---- */

typedef struct handle_list {
    uint8_t (*handles)[MPC_HANDLE_BYTES];
    size_t count;
} handle_list;

/* The handles in `entry` that are not in `kept` (may be NULL). */
static krb5_error_code collect_handles(const krb5_db_entry *entry, const krb5_db_entry *kept,
                                       handle_list *list)
{
    int i;

    list->count = 0;
    list->handles = calloc(entry->n_key_data + 1, MPC_HANDLE_BYTES);
    if (list->handles == NULL)
        return ENOMEM;
    for (i = 0; i < entry->n_key_data; i++) {
        const uint8_t *handle = handle_in(&entry->key_data[i]);

        if (handle != NULL && (kept == NULL || !entry_has_handle(kept, handle)))
            memcpy(list->handles[list->count++], handle, MPC_HANDLE_BYTES);
    }
    return 0;
}

/* Best effort: a key that stays behind on a server is referred to by nobody. */
static void delete_on_servers(module_state *state, krb5_const_principal principal,
                              const handle_list *list)
{
    mpc_options options;
    char *error = NULL, *name = NULL;

    if (list->count == 0)
        return;
    if (config_admin_options(state->context, state->config, &options) != 0) {
        krb5_clear_error_message(state->context);
        com_err("mpc", 0, "%lu old keys stay on the MPC servers: mpc_admin_certificate is not set; "
                "mpc-admin doctor collects them", (unsigned long)list->count);
        return;
    }
    if (krb5_unparse_name(state->context, principal, &name) != 0)
        return;
    if (mpc_admin_delete_keys(&options, name, list->handles, list->count, &error) != 0)
        com_err("mpc", 0, "%lu old keys may stay on the MPC servers (mpc-admin doctor collects "
                "them): %s", (unsigned long)list->count, error == NULL ? "" : error);
    mpc_text_free(error);
    krb5_free_unparsed_name(state->context, name);
}

/* ---- new keys ---- */

/* The staged key of one key data, or NULL. */
static staged_key *staged_of(const module_state *state, const krb5_key_data *key_data)
{
    const uint8_t *handle = handle_in(key_data);

    return handle == NULL ? NULL : staging_find(state->staged, handle);
}

static void restore_stock(module_state *state, krb5_db_entry *entry)
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

/* Puts the new keys of a protected principal on the servers. */
static krb5_error_code protect_new_keys(module_state *state, const krb5_db_entry *entry,
                                        placement place)
{
    const staged_key *refused;
    char *name = NULL;
    krb5_error_code ret = krb5_unparse_name(state->context, entry->princ, &name);

    if (ret)
        return ret;
    refused = find_new(state, entry, not_held);
    if (refused != NULL) {
        ret = refuse_enctype(state, name, refused->enctype);
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

/* ---- put ---- */

/* Writes an entry whose new keys are on the servers already; takes them back if that fails. */
static krb5_error_code write_protected(module_state *state, krb5_db_entry *entry, char **db_args)
{
    krb5_error_code ret = wrapped()->put_principal(state->context, entry, db_args);
    handle_list list = {NULL, 0};
    size_t i, fresh = 0;

    if (ret == 0 || collect_handles(entry, NULL, &list) != 0)
        return ret;
    for (i = 0; i < list.count; i++)
        if (staging_find(state->staged, list.handles[i]) != NULL)
            memmove(list.handles[fresh++], list.handles[i], MPC_HANDLE_BYTES);
    list.count = fresh;
    delete_on_servers(state, entry->princ, &list);
    free(list.handles);
    return ret;
}

static krb5_error_code put_new_keys(module_state *state, krb5_db_entry *entry, char **db_args)
{
    placement place = classify(state->config, entry->princ);
    krb5_error_code ret;

    if (place == PLACE_BY_ENCTYPE)
        place = find_new(state, entry, not_gcm) == NULL ? PLACE_PROTECTED : PLACE_LOCAL;
    remove_useless(state, entry, place);
    if (place == PLACE_LOCAL) {
        restore_stock(state, entry);
        login_key_provide(state, entry->princ, entry);
        ret = wrapped()->put_principal(state->context, entry, db_args);
    } else {
        ret = protect_new_keys(state, entry, place);
        /* The servers will ask for it: their gate is "timestamp" unless an administrator says
         * otherwise. */
        if ((entry->mask & KADM5_PRINCIPAL) && key_class_of(entry->princ) == MPC_CLASS_USER)
            entry->attributes |= KRB5_KDB_REQUIRES_PRE_AUTH;
        if (ret == 0)
            ret = write_protected(state, entry, db_args);
    }
    staging_clear(&state->staged);
    return ret;
}

/* Whether the entry brings handles that neither were there before nor are staged: mpc-kdb sets
 * them, and mpc-admin looks after the servers itself. */
static int has_foreign_handles(const module_state *state, const krb5_db_entry *entry,
                               const krb5_db_entry *old)
{
    int i;

    for (i = 0; i < entry->n_key_data; i++) {
        const uint8_t *handle = handle_in(&entry->key_data[i]);

        if (handle != NULL && staging_find(state->staged, handle) == NULL &&
            !entry_has_handle(old, handle))
            return 1;
    }
    return 0;
}

/* The handles that the stored entry has and the new one lacks. An entry that is being loaded from a
 * dump replaces nothing as far as the servers are concerned. */
static void collect_dropped(module_state *state, const krb5_db_entry *entry, handle_list *dropped)
{
    krb5_db_entry *old = NULL;

    if (state->is_kdc || (entry->mask & KADM5_LOAD) || !(entry->mask & KADM5_KEY_DATA))
        return;
    if (wrapped()->get_principal(state->context, entry->princ, 0, &old) != 0)
        return;
    if (!has_foreign_handles(state, entry, old))
        (void)collect_handles(old, entry, dropped);
    krb5_db_free_principal(state->context, old);
}

krb5_error_code entries_put(krb5_context context, krb5_db_entry *entry, char **db_args)
{
    module_state *state = state_of(context);
    handle_list dropped = {NULL, 0};
    krb5_error_code ret;

    if (state == NULL)
        return wrapped()->put_principal(context, entry, db_args);
    collect_dropped(state, entry, &dropped);
    if (find_new(state, entry, NULL) != NULL)
        ret = put_new_keys(state, entry, db_args);
    else
        ret = wrapped()->put_principal(context, entry, db_args);
    if (ret == 0)
        delete_on_servers(state, entry->princ, &dropped);
    free(dropped.handles);
    return ret;
}

/* ---- delete, rename ---- */

krb5_error_code entries_delete(krb5_context context, krb5_const_principal principal)
{
    module_state *state = state_of(context);
    handle_list list = {NULL, 0};
    krb5_db_entry *old = NULL;
    krb5_error_code ret;

    if (state != NULL && wrapped()->get_principal(context, principal, 0, &old) == 0) {
        if (collect_handles(old, NULL, &list) == 0 &&
            login_handle_of(context, old, list.handles[list.count]))
            list.count++; /* collect_handles leaves room for one more */
        krb5_db_free_principal(context, old);
    }
    ret = wrapped()->delete_principal(context, principal);
    if (ret == 0 && state != NULL)
        delete_on_servers(state, principal, &list);
    free(list.handles);
    return ret;
}

static krb5_error_code refuse_rename(krb5_context context)
{
    krb5_set_error_message(context, KRB5_PLUGIN_OP_NOTSUPP,
                           "the MPC servers bind a key to its principal's name, so a protected "
                           "principal cannot be renamed: create the new one, enrol it and delete "
                           "the old one");
    return KRB5_PLUGIN_OP_NOTSUPP;
}

krb5_error_code entries_rename(krb5_context context, krb5_const_principal source,
                               krb5_const_principal target)
{
    module_state *state = state_of(context);
    krb5_db_entry *entry = NULL;
    krb5_principal old_name;
    krb5_error_code ret;

    if (state == NULL)
        return KRB5_KDB_DBNOTINITED;
    ret = krb5_db_get_principal(context, source, 0, &entry);
    if (ret)
        return ret;
    if (entry_has_handle(entry, NULL) || classify(state->config, target) != PLACE_LOCAL)
        ret = refuse_rename(context);
    if (ret == 0)
        ret = krb5_dbe_specialize_salt(context, entry); /* salts must not follow the name */
    if (ret == 0) {
        login_key_forget(context, entry); /* bound to the old name, deleted with it */
        login_key_provide(state, target, entry);
        old_name = entry->princ;
        entry->princ = (krb5_principal)target;
        ret = krb5_db_put_principal(context, entry);
        entry->princ = old_name;
    }
    krb5_db_free_principal(context, entry);
    return ret ? ret : krb5_db_delete_principal(context, (krb5_principal)source);
}
