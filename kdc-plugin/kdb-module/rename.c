/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A principal with keys on the servers gets another name. The servers make copies of its keys under
 * the new name and new handles, in one transaction; then renaming.h says in which order the
 * database goes from one entry to the other. The old keys are retired last, as those of a principal
 * that was deleted: a dump of yesterday names them, and they work there for the servers' grace time.
 */
#include <com_err.h>
#include <errno.h>
#include <kadm5/admin.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/kdb-module/change.h"
#include "kdc-plugin/kdb-module/classify.h"
#include "kdc-plugin/kdb-module/handles.h"
#include "kdc-plugin/kdb-module/history.h"
#include "kdc-plugin/kdb-module/renaming.h"
#include "kdc-plugin/kdb-module/server_keys.h"
#include "kdc-plugin/kdb-module/wrapped.h"

enum { WORD_BYTES = 16, WORD_SIZE = 2 * WORD_BYTES + 1 };

typedef struct renaming {
    module_state *state;
    krb5_principal source;
    krb5_const_principal target;
    char *old_name, *new_name;
    char word[WORD_SIZE];
    mpc_renamed_key *keys;
    size_t count;
} renaming;

static void renaming_free(renaming *r)
{
    krb5_free_unparsed_name(r->state->context, r->old_name);
    krb5_free_unparsed_name(r->state->context, r->new_name);
    krb5_free_principal(r->state->context, r->source);
    free(r->keys);
}

static krb5_error_code begin(renaming *r, module_state *state, const krb5_db_entry *entry,
                             krb5_const_principal target)
{
    uint8_t word[WORD_BYTES];
    krb5_error_code ret;

    memset(r, 0, sizeof(*r));
    r->state = state;
    r->target = target;
    if (sodium_init() < 0)
        return KRB5_CRYPTO_INTERNAL;
    randombytes_buf(word, sizeof(word));
    sodium_bin2hex(r->word, sizeof(r->word), word, sizeof(word));
    ret = krb5_copy_principal(state->context, entry->princ, &r->source);
    if (ret == 0)
        ret = krb5_unparse_name(state->context, r->source, &r->old_name);
    return ret ? ret : krb5_unparse_name(state->context, target, &r->new_name);
}

/* ---- who may get which name ---- */

static krb5_error_code refuse(renaming *r, const char *why)
{
    krb5_set_error_message(r->state->context, KADM5_PROTECT_PRINCIPAL, "%s cannot become %s: %s",
                           r->old_name, r->new_name, why);
    return KADM5_PROTECT_PRINCIPAL;
}

/* Whose keys are an administrator's or the realm's. */
static int is_powerful(krb5_const_principal p)
{
    return component_is(p, 0, "krbtgt") || component_is(p, 0, "kadmin") || component_is(p, 0, "K");
}

static krb5_error_code check_names(renaming *r)
{
    const module_config *config = r->state->config;

    /* LDAP's entries have attributes and links of their own, which a new entry would not have. */
    if (wrapped()->rename_principal != NULL)
        return refuse(r, "mpc_wrapped names a module that renames entries itself, and the keys on "
                      "the MPC servers could not follow; create the new principal instead");
    if (is_powerful(r->source) || is_powerful(r->target))
        return refuse(r, "keys of krbtgt and kadmin are drawn by the MPC servers and neither given "
                      "to another name nor taken from one; create the new principal instead");
    if (!krb5_realm_compare(r->state->context, r->source, r->target))
        return refuse(r, "that is another realm");
    if (classify(config, r->target) != PLACE_PROTECTED)
        return refuse(r, "its keys are on the MPC servers, and those of the new name would be in "
                      "the database; create the new principal with keys of its own, or name it in "
                      "mpc_protect");
    if (key_class_of(r->source) != key_class_of(r->target))
        return refuse(r, "one is the name of a user, the other that of a service, and the MPC "
                      "servers use their keys for different things; create the new principal "
                      "instead");
    return 0;
}

/* ---- the keys ---- */

static mpc_renamed_key *find_key(const renaming *r, const uint8_t *handle)
{
    size_t i;

    for (i = 0; i < r->count; i++)
        if (memcmp(r->keys[i].from, handle, MPC_HANDLE_BYTES) == 0)
            return &r->keys[i];
    return NULL;
}

static void add_key(renaming *r, const uint8_t *handle, int for_history, int32_t salt_type,
                    mpc_bytes salt)
{
    mpc_renamed_key *key;

    if (find_key(r, handle) != NULL)
        return;
    key = &r->keys[r->count++];
    memcpy(key->from, handle, MPC_HANDLE_BYTES);
    randombytes_buf(key->to, sizeof(key->to));
    key->for_history = for_history;
    key->salt_type = salt_type;
    key->salt = salt;
}

/* Of an entry whose salts stand in it (krb5_dbe_specialize_salt); they are not copied. */
static krb5_error_code collect_keys(renaming *r, const krb5_db_entry *entry)
{
    handle_list history = {NULL, 0};
    krb5_error_code ret = history_list_of(entry, &history);
    size_t i;
    int k;

    if (ret == 0) {
        r->keys = calloc(history.count + (size_t)entry->n_key_data + 1, sizeof(*r->keys));
        ret = r->keys == NULL ? ENOMEM : 0;
    }
    for (k = 0; k < entry->n_key_data && ret == 0; k++) {
        const krb5_key_data *data = &entry->key_data[k];

        if (handle_in(data) != NULL)
            add_key(r, handle_in(data), 0, data->key_data_type[1],
                    (mpc_bytes){data->key_data_contents[1], data->key_data_length[1]});
    }
    for (i = 0; i < history.count && ret == 0; i++)
        add_key(r, history.handles[i], 1, KRB5_KDB_SALTTYPE_SPECIAL, (mpc_bytes){NULL, 0});
    handle_list_free(&history);
    return ret;
}

static krb5_error_code copy_on_servers(renaming *r)
{
    mpc_options options;
    char *error = NULL;
    krb5_error_code ret = config_admin_options(r->state->context, r->state->config, &options);

    if (ret)
        return ret;
    if (mpc_admin_rename_keys(&options, r->old_name, r->new_name, r->keys, r->count, &error) != 0) {
        ret = KRB5KDC_ERR_SVC_UNAVAILABLE;
        krb5_set_error_message(r->state->context, ret,
                               "the keys of %s could not be given to %s on the three MPC servers "
                               "and nothing was changed: %s", r->old_name, r->new_name,
                               error == NULL ? "" : error);
    }
    mpc_text_free(error);
    return ret;
}

/* `new_ones`: the copies, of the new name; else what they were made of. */
static void retire(renaming *r, int new_ones)
{
    handle_list list = {NULL, 0};
    size_t i;

    for (i = 0; i < r->count; i++)
        if (!new_ones || !r->keys[i].unknown)
            (void)handle_list_add(&list, new_ones ? r->keys[i].to : r->keys[i].from);
    server_keys_delete(r->state, new_ones ? r->target : r->source, &list, NULL);
    handle_list_free(&list);
}

static const uint8_t *new_handle(void *arg, const uint8_t *handle)
{
    const mpc_renamed_key *key = find_key(arg, handle);

    return key == NULL || key->unknown ? NULL : key->to;
}

static krb5_error_code take_new_handles(renaming *r, krb5_db_entry *entry)
{
    krb5_error_code ret = 0;
    int i;

    for (i = 0; i < entry->n_key_data && ret == 0; i++)
        if (handle_in(&entry->key_data[i]) != NULL)
            ret = handle_put(&entry->key_data[i],
                             find_key(r, handle_in(&entry->key_data[i]))->to);
    return ret ? ret : history_replace(entry, new_handle, r);
}

/* ---- the database ---- */

/* Ends the change. */
static krb5_error_code put_marked(renaming *r, change *c, krb5_db_entry *entry,
                                  const char *attribute, const char *other)
{
    size_t size = strlen(other) + WORD_SIZE + 1;
    char *text = malloc(size);
    krb5_error_code ret = text == NULL ? ENOMEM : 0;

    if (ret == 0) {
        snprintf(text, size, "%s %s", r->word, other);
        ret = krb5_dbe_set_string(r->state->context, entry, attribute, text);
    }
    free(text);
    if (ret) {
        change_abandon(c);
        return ret;
    }
    return change_put(c, entry, NULL);
}

/* Whether the entry that is stored under the name has the attribute with our word. */
static int is_marked(renaming *r, krb5_const_principal name, const char *attribute)
{
    krb5_db_entry *entry = NULL;
    int is;

    if (wrapped()->get_principal(r->state->context, name, 0, &entry) != 0) {
        krb5_clear_error_message(r->state->context);
        return 0;
    }
    is = renaming_marked(r->state->context, entry, attribute, r->word);
    krb5_db_free_principal(r->state->context, entry);
    return is;
}

/* Whether the stored entry still has the keys of which there are copies, and no others. */
static int has_these_keys(renaming *r, const krb5_db_entry *stored)
{
    handle_list history = {NULL, 0};
    int i, same = history_list_of(stored, &history) == 0;
    size_t seen = 0, h;

    for (i = 0; i < stored->n_key_data && same; i++)
        same = handle_in(&stored->key_data[i]) == NULL ||
               find_key(r, handle_in(&stored->key_data[i])) != NULL;
    for (h = 0; h < history.count && same; h++)
        same = find_key(r, history.handles[h]) != NULL;
    for (h = 0; h < r->count && same; h++)
        seen += entry_has_handle(stored, r->keys[h].from) ||
                handle_list_has(&history, r->keys[h].from);
    handle_list_free(&history);
    return same && seen == r->count;
}

static krb5_error_code refuse_changed(renaming *r, const char *what)
{
    krb5_set_error_message(r->state->context, KRB5_KDB_DB_INUSE,
                           "%s while %s was to become %s, and nothing was renamed; try again", what,
                           r->old_name, r->new_name);
    return KRB5_KDB_DB_INUSE;
}

/* The new entry, which nobody finds yet. */
static krb5_error_code write_new(renaming *r, krb5_db_entry *entry)
{
    krb5_context context = r->state->context;
    krb5_db_entry *there = NULL;
    change c;
    int taken;
    krb5_error_code ret = change_begin(r->state, r->target, &c);

    if (ret)
        return ret;
    ret = wrapped()->get_principal(context, r->target, 0, &there);
    taken = ret == 0 && !renaming_hides(context, there);
    if (ret == 0)
        krb5_db_free_principal(context, there);
    if (ret == KRB5_KDB_NOENTRY) {
        krb5_clear_error_message(context);
        ret = 0;
    }
    if (taken)
        ret = refuse_changed(r, "another principal got the new name");
    if (ret) {
        change_abandon(&c);
        return ret;
    }
    return put_marked(r, &c, entry, RENAMED_FROM_ATTRIBUTE, r->old_name);
}

/* The old entry says that it is no more. Neither of the two may have changed meanwhile. */
static krb5_error_code turn(renaming *r)
{
    krb5_db_entry *old = NULL;
    change c;
    krb5_error_code ret = change_begin(r->state, r->source, &c);

    if (ret)
        return ret;
    ret = wrapped()->get_principal(r->state->context, r->source, 0, &old);
    if (ret == 0 && !has_these_keys(r, old))
        ret = refuse_changed(r, "the keys were changed");
    if (ret == 0 && !is_marked(r, r->target, RENAMED_FROM_ATTRIBUTE))
        ret = refuse_changed(r, "another principal got the new name");
    if (ret)
        change_abandon(&c);
    else
        ret = put_marked(r, &c, old, RENAMED_TO_ATTRIBUTE, r->new_name);
    krb5_db_free_principal(r->state->context, old);
    return ret;
}

/* What a rename that a crash ended left under the new name: its keys go, when it is replaced. */
static krb5_error_code note_leftover(renaming *r, handle_list *left)
{
    krb5_db_entry *entry = NULL;
    krb5_error_code ret = wrapped()->get_principal(r->state->context, r->target, 0, &entry);

    if (ret == KRB5_KDB_NOENTRY) {
        krb5_clear_error_message(r->state->context);
        return 0;
    }
    if (ret == 0)
        ret = renaming_settle(r->state, entry);
    if (ret == 0)
        ret = handles_of_all(entry, left);
    krb5_db_free_principal(r->state->context, entry);
    return ret;
}

static void say_unfinished(renaming *r, krb5_error_code code)
{
    com_err("mpc", code, "while ending what is left of %s, which is now %s (mpc-admin doctor)",
            r->old_name, r->new_name);
}

/* The entry is the old one; its place is the new one's when this returns 0. Each write is in the file
 * before the next begins (change.h), so whoever kills us leaves one of the rows of renaming.h. */
static krb5_error_code change_database(renaming *r, krb5_db_entry *entry)
{
    krb5_principal old_name = entry->princ;
    handle_list left = {NULL, 0};
    krb5_error_code ret = note_leftover(r, &left);

    entry->princ = (krb5_principal)r->target;
    if (ret == 0)
        ret = write_new(r, entry);
    entry->princ = old_name;
    if (ret == 0) {
        server_keys_delete(r->state, r->target, &left, NULL);
        ret = turn(r);
        /* Of an error of the database we look what became of it. */
        if (ret && is_marked(r, r->source, RENAMED_TO_ATTRIBUTE))
            ret = 0;
        else if (ret)
            (void)renaming_delete(r->state, r->target, RENAMED_FROM_ATTRIBUTE, r->word);
    }
    handle_list_free(&left);
    return ret;
}

/* What is left to do when the new entry is the principal. */
static void finish(renaming *r)
{
    krb5_error_code ret = renaming_unmark(r->state, r->target, r->word);

    if (ret == 0)
        ret = renaming_delete(r->state, r->source, RENAMED_TO_ATTRIBUTE, r->word);
    if (ret)
        say_unfinished(r, ret);
}

krb5_error_code rename_protected(module_state *state, krb5_db_entry *entry,
                                 krb5_const_principal target)
{
    renaming r;
    krb5_error_code ret = begin(&r, state, entry, target);

    if (ret == 0)
        ret = check_names(&r);
    if (ret == 0)
        ret = krb5_dbe_specialize_salt(state->context, entry);
    if (ret == 0)
        ret = collect_keys(&r, entry);
    if (ret == 0)
        ret = copy_on_servers(&r);
    if (ret == 0) {
        ret = take_new_handles(&r, entry);
        if (ret == 0)
            ret = change_database(&r, entry);
        if (ret == 0)
            finish(&r);
        retire(&r, ret != 0);
    }
    renaming_free(&r);
    return ret;
}
