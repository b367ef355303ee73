/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/kdb-module/classify.h"
#include "kdc-plugin/kdb-module/state.h"
#include "kdc-plugin/kdb-module/wrapped.h"
#include "kdc-plugin/provider/enctypes.h"

void history_end(module_state *state)
{
    history_check *check = &state->history;

    krb5_free_principal(state->context, check->principal);
    handle_list_free(&check->old);
    free(check->equal);
    memset(check, 0, sizeof(*check));
}

void history_begin(module_state *state)
{
    history_check *check = &state->history;

    history_end(state);
    check->begun = 1;
    check->first = staging_next_number();
    if (state->current != NULL &&
        krb5_copy_principal(state->context, state->current, &check->principal) != 0)
        check->principal = NULL; /* then old keys are missed, and put refuses */
}

static int is_new(const module_state *state, const staged_key *key)
{
    return key->from_password && key->number >= state->history.first;
}

/* The handles of the entry's keys and of its history. */
static krb5_error_code collect_old(module_state *state, handle_list *old)
{
    handle_list past = {NULL, 0};
    krb5_db_entry *entry;
    krb5_error_code ret;
    size_t i;

    ret = wrapped()->get_principal(state->context, state->history.principal, 0, &entry);
    if (ret)
        return ret;
    ret = handle_list_of(entry, NULL, old);
    if (ret == 0)
        ret = history_list_of(entry, &past);
    for (i = 0; i < past.count && ret == 0; i++)
        if (!handle_list_has(old, past.handles[i]))
            ret = handle_list_add(old, past.handles[i]);
    handle_list_free(&past);
    krb5_db_free_principal(state->context, entry);
    return ret;
}

/* Those new keys that the servers may hold; of others there are no old ones either. */
static size_t fill_keys(const module_state *state, const char *name, mpc_new_key *keys)
{
    krb5_const_principal principal = state->history.principal;
    int gcm_alone = needs_gcm(principal, classify(state->config, principal));
    const staged_key *staged;
    size_t count = 0;

    for (staged = state->staged; staged != NULL; staged = staged->next) {
        if (!is_new(state, staged) || !mpc_admin_holds_enctype(staged->enctype) ||
            (gcm_alone && !gcm_enctype(staged->enctype)))
            continue;
        if (keys != NULL)
            keys[count] = (mpc_new_key){
                .principal = name,
                .kvno = 1,
                .enctype = staged->enctype,
                .key_class = key_class_of(principal),
                .gate = MPC_GATE_TIMESTAMP,
                .key = {staged->key, staged->key_bytes},
            };
        count++;
    }
    return count;
}

static krb5_error_code ask_servers(module_state *state, const char *name)
{
    history_check *check = &state->history;
    size_t count = fill_keys(state, name, NULL);
    mpc_new_key *keys;
    mpc_options options;
    char *error = NULL;
    krb5_error_code ret;

    check->equal = calloc(check->old.count + 1, 1);
    keys = calloc(count + 1, sizeof(*keys));
    ret = check->equal == NULL || keys == NULL ? ENOMEM : 0;
    if (ret == 0)
        ret = config_admin_options(state->context, state->config, &options);
    if (ret == 0 && count > 0 && check->old.count > 0) {
        (void)fill_keys(state, name, keys);
        if (mpc_admin_compare_keys(&options, keys, count, check->old.handles, check->old.count,
                                   check->equal, &error) != 0) {
            ret = KRB5KDC_ERR_SVC_UNAVAILABLE;
            krb5_set_error_message(state->context, ret,
                                   "the new keys of %s could not be compared with its password "
                                   "history on the three MPC servers and nothing was changed: %s",
                                   name, error == NULL ? "" : error);
        }
    }
    mpc_text_free(error);
    free(keys); /* holds pointers only */
    return ret;
}

krb5_error_code history_ask(module_state *state)
{
    history_check *check = &state->history;
    char *name = NULL;
    krb5_error_code ret;

    if (check->principal == NULL || check->asked)
        return 0;
    ret = collect_old(state, &check->old);
    if (ret == 0)
        ret = krb5_unparse_name(state->context, check->principal, &name);
    if (ret == 0)
        ret = ask_servers(state, name);
    krb5_free_unparsed_name(state->context, name);
    if (ret == 0) {
        check->asked = 1;
    } else {
        handle_list_free(&check->old);
        free(check->equal);
        check->equal = NULL;
    }
    return ret;
}

static const staged_key *new_key_of(const module_state *state, int32_t enctype)
{
    const staged_key *staged;

    for (staged = state->staged; staged != NULL; staged = staged->next)
        if (is_new(state, staged) && staged->enctype == enctype)
            return staged;
    return NULL;
}

/* Of two new keys of one type, as of two kinds of salt, either will do: libkadm5 compares both. */
const staged_key *history_find(module_state *state, const uint8_t *handle, int32_t enctype)
{
    history_check *check = &state->history;
    size_t i;

    if (!check->begun || new_key_of(state, enctype) == NULL || staging_find(state->staged, handle) != NULL)
        return NULL;
    for (i = 0; check->asked && i < check->old.count; i++)
        if (memcmp(check->old.handles[i], handle, MPC_HANDLE_BYTES) == 0)
            return check->equal[i] ? new_key_of(state, enctype) : NULL;
    check->missed = 1;
    return NULL;
}

static int is_of(const module_state *state, const krb5_db_entry *entry)
{
    return state->history.principal == NULL ||
           krb5_principal_compare(state->context, state->history.principal, entry->princ);
}

void history_put(module_state *state, const krb5_db_entry *entry)
{
    if (is_of(state, entry))
        history_end(state);
}

krb5_error_code history_check_put(module_state *state, const krb5_db_entry *entry)
{
    char *name = NULL;

    if (!state->history.missed || !is_of(state, entry))
        return 0;
    (void)krb5_unparse_name(state->context, entry->princ, &name);
    krb5_set_error_message(state->context, KRB5_KDB_DB_INUSE,
                           "a new key of %s was not compared with all old ones, and nothing was "
                           "changed: its entry was changed by somebody else at the same time, or a "
                           "password quality module of kadmind reads entries; try again",
                           name == NULL ? "a principal" : name);
    krb5_free_unparsed_name(state->context, name);
    return KRB5_KDB_DB_INUSE;
}
