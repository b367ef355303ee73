/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/entries.h"

#include <com_err.h>
#include <errno.h>
#include <kadm5/admin.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/kdb-module/guard.h"
#include "kdc-plugin/kdb-module/handles.h"
#include "kdc-plugin/kdb-module/login_key.h"
#include "kdc-plugin/kdb-module/new_keys.h"
#include "kdc-plugin/kdb-module/state.h"
#include "kdc-plugin/kdb-module/wrapped.h"
#include "kdc-plugin/provider/provider.h"

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

    ret = wrapped()->get_principal(context, search_for, flags, entry);
    if (state != NULL)
        state_entry_read(state, ret == 0 ? (*entry)->princ : search_for, ret == 0 ? *entry : NULL);
    if (ret == 0 && state != NULL && state->is_kdc && (flags & KRB5_KDB_FLAG_CLIENT))
        note_client(context, *entry);
    return ret;
}

/* ---- all entries ---- */

typedef struct walk {
    module_state *state;
    int (*func)(krb5_pointer, krb5_db_entry *);
    krb5_pointer arg;
} walk;

static int visit(krb5_pointer arg, krb5_db_entry *entry)
{
    walk *w = arg;

    state_in_hand(w->state, entry->princ, entry);
    return w->func(w->arg, entry);
}

krb5_error_code entries_iterate(krb5_context context, char *match,
                                int (*func)(krb5_pointer, krb5_db_entry *), krb5_pointer arg,
                                krb5_flags flags)
{
    walk w = {state_of(context), func, arg};
    krb5_error_code ret;

    if (w.state == NULL || w.state->is_kdc)
        return wrapped_iterate(context, match, func, arg, flags);
    ret = wrapped_iterate(context, match, visit, &w, flags);
    state_in_hand(w.state, NULL, NULL);
    return ret;
}

/* ---- keys on the servers ---- */

/* Best effort: a key that stays behind on a server is referred to by nobody. Those of `kept` (may be
 * NULL) are retired too, but stay for the password history. */
static void delete_on_servers(module_state *state, krb5_const_principal principal,
                              const handle_list *list, const handle_list *kept)
{
    static const handle_list none = {NULL, 0};
    size_t count;

    mpc_options options;
    char *error = NULL, *name = NULL;

    kept = kept == NULL ? &none : kept;
    count = list->count + kept->count;
    if (count == 0)
        return;
    if (config_admin_options(state->context, state->config, &options) != 0) {
        krb5_clear_error_message(state->context);
        com_err("mpc", 0, "%lu old keys stay on the MPC servers: mpc_admin_certificate is not set; "
                "mpc-admin doctor collects them", (unsigned long)count);
        return;
    }
    if (krb5_unparse_name(state->context, principal, &name) != 0)
        return;
    if (mpc_admin_delete_keys(&options, name, list->handles, list->count, kept->handles,
                              kept->count, &error) != 0)
        com_err("mpc", 0, "%lu old keys may stay on the MPC servers (mpc-admin doctor collects "
                "them): %s", (unsigned long)count, error == NULL ? "" : error);
    mpc_text_free(error);
    krb5_free_unparsed_name(state->context, name);
}

/* ---- put ---- */

/* After a put that failed: the entry's new keys, which are on the servers already, go again. */
static void take_back(module_state *state, const krb5_db_entry *entry)
{
    handle_list list = {NULL, 0};
    size_t i, fresh = 0;

    if (handle_list_of(entry, NULL, &list) != 0)
        return;
    for (i = 0; i < list.count; i++)
        if (staging_find(state->staged, list.handles[i]) != NULL)
            memmove(list.handles[fresh++], list.handles[i], MPC_HANDLE_BYTES);
    list.count = fresh;
    delete_on_servers(state, entry->princ, &list, NULL);
    handle_list_free(&list);
}

static krb5_error_code put_protected(module_state *state, krb5_db_entry *entry, placement place,
                                     char **db_args)
{
    krb5_error_code ret = new_keys_protect(state, entry, place);

    if (ret)
        return ret;
    /* The servers will ask for it: their gate is "timestamp" unless an administrator says
     * otherwise. */
    if ((entry->mask & KADM5_PRINCIPAL) && key_class_of(entry->princ) == MPC_CLASS_USER)
        entry->attributes |= KRB5_KDB_REQUIRES_PRE_AUTH;
    ret = wrapped()->put_principal(state->context, entry, db_args);
    if (ret)
        take_back(state, entry);
    return ret;
}

/* Puts an entry whose keys are local, under `principal`. */
static krb5_error_code put_local(module_state *state, krb5_const_principal principal,
                                 krb5_db_entry *entry, char **db_args)
{
    uint8_t login[1][MPC_HANDLE_BYTES];
    handle_list list = {login, 0};
    krb5_error_code ret;

    list.count = login_key_provide(state, principal, entry, login[0]) ? 1 : 0;
    ret = wrapped()->put_principal(state->context, entry, db_args);
    if (ret)
        delete_on_servers(state, principal, &list, NULL);
    return ret;
}

static krb5_error_code put_new_keys(module_state *state, krb5_db_entry *entry, char **db_args)
{
    placement place = new_keys_place(state, entry);

    if (place != PLACE_LOCAL)
        return put_protected(state, entry, place, db_args);
    new_keys_restore_stock(state, entry);
    return put_local(state, entry->princ, entry, db_args);
}

/* The entry as it is stored; NULL and no error if it is new, or loaded: then nobody asks. */
static krb5_error_code get_stored(krb5_context context, const krb5_db_entry *entry,
                                  krb5_db_entry **stored)
{
    krb5_error_code ret = 0;

    *stored = NULL;
    if (!(entry->mask & KADM5_LOAD))
        ret = wrapped()->get_principal(context, entry->princ, 0, stored);
    if (ret == 0)
        return 0;
    *stored = NULL;
    return ret == KRB5_KDB_NOENTRY ? 0 : ret;
}

/* Whether the servers' keys that an entry loses are to be deleted. One that is loaded from a dump
 * replaces nothing as far as the servers are concerned, and mpc-admin, for whom mpc-kdb sets
 * handles, looks after them itself. */
static int replaces_keys(const krb5_db_entry *entry)
{
    return (entry->mask & KADM5_KEY_DATA) && !(entry->mask & (KADM5_LOAD | MPC_MASK_SET_HANDLES));
}

/*
 * The handles that the stored entry has and the new one lacks, whether of a key or in its password
 * history. `kept`: of these, keys that the new one's history names.
 */
static krb5_error_code collect_dropped(const krb5_db_entry *entry, const krb5_db_entry *stored,
                                       handle_list *dropped, handle_list *kept)
{
    handle_list keys = {NULL, 0}, past = {NULL, 0}, history = {NULL, 0};
    krb5_error_code ret = handle_list_of(stored, entry, &keys);
    size_t i;

    if (ret == 0)
        ret = history_list_of(stored, &past);
    if (ret == 0)
        ret = history_list_of(entry, &history);
    for (i = 0; i < keys.count && ret == 0; i++)
        ret = handle_list_add(handle_list_has(&history, keys.handles[i]) ? kept : dropped,
                              keys.handles[i]);
    for (i = 0; i < past.count && ret == 0; i++)
        if (!handle_list_has(&history, past.handles[i]) &&
            !handle_list_has(dropped, past.handles[i]) &&
            !entry_has_handle(entry, past.handles[i]))
            ret = handle_list_add(dropped, past.handles[i]);
    handle_list_free(&keys);
    handle_list_free(&past);
    handle_list_free(&history);
    return ret;
}

static krb5_error_code put_guarded(module_state *state, krb5_db_entry *entry,
                                   krb5_db_entry *stored, char **db_args)
{
    handle_list dropped = {NULL, 0}, kept = {NULL, 0};
    krb5_error_code ret = guard_put(state, entry, stored);

    if (ret == 0)
        ret = history_check_put(state, entry);
    if (ret == 0 && stored != NULL && replaces_keys(entry))
        ret = collect_dropped(entry, stored, &dropped, &kept);
    entry->mask &= ~(krb5_ui_4)MPC_MASK_SET_HANDLES;
    if (ret == 0 && new_keys_any(state, entry))
        ret = put_new_keys(state, entry, db_args);
    else if (ret == 0)
        ret = wrapped()->put_principal(state->context, entry, db_args);
    if (ret == 0)
        delete_on_servers(state, entry->princ, &dropped, &kept);
    handle_list_free(&dropped);
    handle_list_free(&kept);
    return ret;
}

krb5_error_code entries_put(krb5_context context, krb5_db_entry *entry, char **db_args)
{
    module_state *state = state_of(context);
    krb5_db_entry *stored = NULL;
    krb5_error_code ret;

    if (state == NULL)
        return KRB5_KDB_DBNOTINITED;
    if (state->is_replica)
        return wrapped()->put_principal(context, entry, db_args);
    ret = get_stored(context, entry, &stored);
    if (ret == 0)
        ret = put_guarded(state, entry, stored, db_args);
    krb5_db_free_principal(context, stored);
    new_keys_forget(state, entry); /* the operation is over */
    history_put(state, entry);
    staging_other_put(&state->staged);
    return ret;
}

/* ---- delete, rename ---- */

krb5_error_code entries_delete(krb5_context context, krb5_const_principal principal)
{
    module_state *state = state_of(context);
    handle_list list = {NULL, 0}, past = {NULL, 0};
    krb5_db_entry *old = NULL;
    krb5_error_code ret;
    size_t i;

    if (state == NULL)
        return KRB5_KDB_DBNOTINITED;
    if (state->is_replica)
        return wrapped()->delete_principal(context, principal);
    if (wrapped()->get_principal(context, principal, 0, &old) == 0) {
        if (handle_list_of(old, NULL, &list) == 0 &&
            login_handle_of(context, old, list.handles[list.count]))
            list.count++; /* handle_list_of leaves room for one more */
        (void)history_list_of(old, &past);
        for (i = 0; i < past.count; i++)
            if (!handle_list_has(&list, past.handles[i]))
                (void)handle_list_add(&list, past.handles[i]);
        krb5_db_free_principal(context, old);
    }
    ret = wrapped()->delete_principal(context, principal);
    if (ret == 0)
        delete_on_servers(state, principal, &list, NULL);
    handle_list_free(&list);
    handle_list_free(&past);
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
        old_name = entry->princ;
        entry->princ = (krb5_principal)target;
        ret = put_local(state, target, entry, NULL);
        entry->princ = old_name;
    }
    krb5_db_free_principal(context, entry);
    /* (libkdb5 logs both halves for replicas.) */
    return ret ? ret : entries_delete(context, source);
}
