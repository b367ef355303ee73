/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/entries.h"

#include <com_err.h>
#include <errno.h>
#include <kadm5/admin.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/kdb-module/change.h"
#include "kdc-plugin/kdb-module/directory.h"
#include "kdc-plugin/kdb-module/guard.h"
#include "kdc-plugin/kdb-module/handles.h"
#include "kdc-plugin/kdb-module/login_key.h"
#include "kdc-plugin/kdb-module/new_keys.h"
#include "kdc-plugin/kdb-module/renaming.h"
#include "kdc-plugin/kdb-module/server_keys.h"
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
    if (state != NULL && state->is_kdc)
        ret = directory_for_kdc(context, ret);
    if (ret == 0 && state != NULL && renaming_hides(context, *entry)) {
        krb5_db_free_principal(context, *entry);
        *entry = NULL;
        ret = KRB5_KDB_NOENTRY;
    }
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

/* ---- put ---- */

/* The entry's new keys, which are on the servers already. Without memory there are none, and what
 * would be taken back stays. */
static void collect_fresh(module_state *state, const krb5_db_entry *entry, handle_list *list)
{
    size_t i, fresh = 0;

    if (handle_list_of(entry, NULL, list) != 0)
        return;
    for (i = 0; i < list->count; i++)
        if (staging_find(state->staged, list->handles[i]) != NULL)
            memmove(list->handles[fresh++], list->handles[i], MPC_HANDLE_BYTES);
    list->count = fresh;
}

/* New keys leave alone whether their owner may log in, and until when; but kadm5 writes the whole entry as
 * it was before the servers were asked. */
static void keep_what_others_set(krb5_db_entry *entry, const krb5_db_entry *present)
{
    const krb5_flags own = KRB5_KDB_REQUIRES_PWCHANGE;

    if (!(entry->mask & KADM5_KEY_DATA))
        return;
    entry->attributes = (present->attributes & ~own) | (entry->attributes & own);
    entry->expiration = present->expiration;
}

/* Looks at the entry as it is now, with its change begun; an error if it is not there. */
static krb5_error_code check_present(module_state *state, krb5_db_entry *entry)
{
    krb5_db_entry *present = NULL;
    krb5_error_code ret = wrapped()->get_principal(state->context, entry->princ, 0, &present);
    char *name = NULL;

    if (ret == 0) {
        keep_what_others_set(entry, present);
        krb5_db_free_principal(state->context, present);
    }
    if (ret != KRB5_KDB_NOENTRY || krb5_unparse_name(state->context, entry->princ, &name) != 0)
        return ret;
    krb5_set_error_message(state->context, ret,
                           "%s was deleted by somebody else meanwhile; nothing was changed", name);
    krb5_free_unparsed_name(state->context, name);
    return ret;
}

/* Writes an entry that is new, or is still there: who was deleted while the servers were asked about new
 * keys would be back with these, and with a password that he chose. */
static krb5_error_code put_if_present(module_state *state, krb5_db_entry *entry, char **db_args)
{
    change c;
    krb5_error_code ret;

    if (entry->mask & (KADM5_PRINCIPAL | KADM5_LOAD))
        return put_and_log(state, entry, db_args);
    ret = change_begin(state, entry->princ, &c);
    if (ret)
        return ret;
    ret = check_present(state, entry);
    if (ret == 0)
        return change_put(&c, entry, db_args);
    change_fail(&c, ret);
    return ret;
}

/*
 * Writes an entry whose keys change. If that fails those of them that are on the servers already
 * (`fresh`) go again; but not if the database may have stored the entry all the same, since then
 * they are somebody's password.
 */
static krb5_error_code put_or_take_back(module_state *state, krb5_db_entry *entry, char **db_args,
                                        const handle_list *fresh)
{
    krb5_error_code ret = put_if_present(state, entry, db_args);

    if (ret == 0)
        return 0;
    switch (directory_put_outcome(state, entry, ret)) {
    case PUT_STORED:
        return 0;
    case PUT_UNCLEAR:
        return directory_unclear(state, entry->princ, ret);
    default:
        server_keys_delete(state, entry->princ, fresh, NULL);
        return ret;
    }
}

static krb5_error_code put_protected(module_state *state, krb5_db_entry *entry, placement place,
                                     char **db_args)
{
    handle_list fresh = {NULL, 0};
    krb5_error_code ret = new_keys_protect(state, entry, place);

    if (ret)
        return ret;
    /* The servers will ask for it: their gate is "timestamp" unless an administrator says
     * otherwise. So the flag only saves them a question, which is not worth all other flags that a
     * ticket policy gives. */
    if ((entry->mask & KADM5_PRINCIPAL) && key_class_of(entry->princ) == MPC_CLASS_USER &&
        !directory_gives_flags(state, entry)) {
        entry->attributes |= KRB5_KDB_REQUIRES_PRE_AUTH;
        entry->mask |= KADM5_ATTRIBUTES;
    }
    collect_fresh(state, entry, &fresh);
    ret = put_or_take_back(state, entry, db_args, &fresh);
    handle_list_free(&fresh);
    return ret;
}

/* Puts an entry whose keys are local. */
static krb5_error_code put_local(module_state *state, krb5_db_entry *entry, char **db_args)
{
    uint8_t login[1][MPC_HANDLE_BYTES];
    handle_list list = {login, 0};

    list.count = login_key_provide(state, entry->princ, entry, login[0]) ? 1 : 0;
    return put_or_take_back(state, entry, db_args, &list);
}

static krb5_error_code put_new_keys(module_state *state, krb5_db_entry *entry, char **db_args)
{
    placement place = new_keys_place(state, entry);

    if (place != PLACE_LOCAL)
        return put_protected(state, entry, place, db_args);
    new_keys_restore_stock(state, entry);
    return put_local(state, entry, db_args);
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
    static const handle_list none_fresh = {NULL, 0};
    handle_list dropped = {NULL, 0}, kept = {NULL, 0};
    const int hidden = stored != NULL && renaming_hides(state->context, stored);
    krb5_error_code ret = guard_put(state, entry, stored);

    if (ret == 0)
        ret = renaming_guard(state, entry, stored);
    if (ret == 0)
        ret = history_check_put(state, entry);
    if (ret == 0 && hidden)
        ret = renaming_settle(state, stored);
    if (ret == 0 && stored != NULL && (hidden || replaces_keys(entry)))
        ret = collect_dropped(entry, stored, &dropped, &kept);
    entry->mask &= ~(krb5_ui_4)MPC_MASK_SET_HANDLES;
    if (ret == 0 && new_keys_any(state, entry))
        ret = put_new_keys(state, entry, db_args);
    else if (ret == 0 && (entry->mask & KADM5_KEY_DATA))
        ret = put_or_take_back(state, entry, db_args, &none_fresh);
    else if (ret == 0)
        ret = put_if_present(state, entry, db_args);
    if (ret == 0)
        server_keys_delete(state, entry->princ, &dropped, &kept);
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

/* All keys that the servers hold for an entry, and in *name the name that they know it by:
 * `principal` may be an alias. NULL: nothing is to be deleted there. What a renaming left of it is
 * settled before; an error is that of this. */
static krb5_error_code collect_all(module_state *state, krb5_const_principal principal,
                                   handle_list *list, krb5_principal *name)
{
    handle_list past = {NULL, 0};
    krb5_db_entry *old = NULL;
    krb5_error_code ret;
    size_t i;

    *name = NULL;
    if (wrapped()->get_principal(state->context, principal, 0, &old) != 0)
        return 0;
    ret = renaming_settle(state, old);
    if (ret == 0 && !directory_keeps_keys(state, old) &&
        krb5_copy_principal(state->context, old->princ, name) == 0) {
        if (handle_list_of(old, NULL, list) == 0 &&
            login_handle_of(state->context, old, list->handles[list->count]))
            list->count++; /* handle_list_of leaves room for one more */
        (void)history_list_of(old, &past);
        for (i = 0; i < past.count; i++)
            if (!handle_list_has(list, past.handles[i]))
                (void)handle_list_add(list, past.handles[i]);
        handle_list_free(&past);
    }
    krb5_db_free_principal(state->context, old);
    return ret;
}

krb5_error_code entries_delete(krb5_context context, krb5_const_principal principal)
{
    module_state *state = state_of(context);
    handle_list list = {NULL, 0};
    krb5_principal name = NULL;
    krb5_error_code ret;

    if (state == NULL)
        return KRB5_KDB_DBNOTINITED;
    if (state->is_replica)
        return wrapped()->delete_principal(context, principal);
    ret = collect_all(state, principal, &list, &name);
    if (ret == 0)
        ret = delete_and_log(state, principal);
    if (ret && directory_deleted(state, principal, ret))
        ret = 0;
    if (ret == 0 && name != NULL)
        server_keys_delete(state, name, &list, NULL);
    handle_list_free(&list);
    krb5_free_principal(context, name);
    return ret;
}

/* By writing the entry under the new name and deleting it under the old one. */
static krb5_error_code rename_by_copy(module_state *state, krb5_db_entry *entry,
                                      krb5_const_principal target)
{
    krb5_principal old_name = entry->princ;
    krb5_error_code ret = krb5_dbe_specialize_salt(state->context, entry); /* not by the new name */

    if (ret)
        return ret;
    login_key_forget(state->context, entry); /* bound to the old name, deleted with it */
    entry->princ = (krb5_principal)target;
    entry->mask |= KADM5_PRINCIPAL; /* a new one */
    ret = put_local(state, entry, NULL);
    entry->princ = old_name;
    return ret ? ret : entries_delete(state->context, old_name);
}

/* Gives an entry that the wrapped module has renamed a login key of its new name. */
static krb5_error_code renew_login_key(module_state *state, krb5_const_principal target)
{
    krb5_db_entry *entry;
    krb5_error_code ret = wrapped()->get_principal(state->context, target, 0, &entry);

    if (ret)
        return ret;
    entry->mask = KADM5_TL_DATA;
    ret = put_local(state, entry, NULL);
    krb5_db_free_principal(state->context, entry);
    return ret;
}

/* kldap renames the object; a copy would be written to that of the old name. The login key goes
 * first: whatever fails, no entry names a key of another principal. */
static krb5_error_code rename_in_place(module_state *state, krb5_db_entry *entry,
                                       krb5_const_principal source, krb5_const_principal target)
{
    uint8_t login[1][MPC_HANDLE_BYTES];
    handle_list list = {login, 0};
    krb5_error_code ret = 0;

    if (login_handle_of(state->context, entry, login[0])) {
        list.count = 1;
        login_key_forget(state->context, entry);
        entry->mask = KADM5_TL_DATA;
        ret = put_and_log(state, entry, NULL);
        if (ret == 0)
            server_keys_delete(state, source, &list, NULL);
    }
    if (ret == 0)
        ret = rename_and_log(state, source, target);
    return ret || list.count == 0 ? ret : renew_login_key(state, target);
}

/* A principal whose keys are in the database, or that has none. */
static krb5_error_code rename_local(module_state *state, krb5_db_entry *entry,
                                    krb5_const_principal source, krb5_const_principal target)
{
    if (entry->n_key_data > 0 && classify(state->config, target) != PLACE_LOCAL) {
        krb5_set_error_message(state->context, KADM5_PROTECT_PRINCIPAL,
                               "its keys are in the database, and those of the new name would be "
                               "on the MPC servers: create the new principal and delete the old "
                               "one");
        return KADM5_PROTECT_PRINCIPAL;
    }
    if (wrapped()->rename_principal != NULL)
        return rename_in_place(state, entry, source, target);
    return rename_by_copy(state, entry, target);
}

/* kldap keeps what is not a key (group memberships, say) in the object, which has one name: two
 * entries side by side, as renaming.h has them, it cannot have. */
static krb5_error_code rename_keys(module_state *state, krb5_db_entry *entry,
                                   krb5_const_principal target)
{
    if (wrapped()->rename_principal == NULL)
        return rename_protected(state, entry, target);
    krb5_set_error_message(state->context, KRB5_PLUGIN_OP_NOTSUPP,
                           "in an LDAP directory a principal with keys on the MPC servers cannot be "
                           "renamed: name and keys change in several writes there, and between them "
                           "nobody could log in; create the new principal with a password of its "
                           "own and delete the old one");
    return KRB5_PLUGIN_OP_NOTSUPP;
}

krb5_error_code entries_rename(krb5_context context, krb5_const_principal source,
                               krb5_const_principal target)
{
    module_state *state = state_of(context);
    krb5_db_entry *entry = NULL;
    handle_list handles = {NULL, 0};
    krb5_error_code ret;

    if (state == NULL)
        return KRB5_KDB_DBNOTINITED;
    ret = krb5_db_get_principal(context, source, 0, &entry);
    if (ret == 0)
        ret = renaming_settle(state, entry);
    if (ret == 0)
        ret = handles_of_all(entry, &handles);
    if (ret == 0)
        ret = handles.count > 0 ? rename_keys(state, entry, target)
                                : rename_local(state, entry, source, target);
    handle_list_free(&handles);
    krb5_db_free_principal(context, entry);
    return ret;
}
