/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/guard.h"

#include <kadm5/admin.h>
#include <krb5/remote_key_plugin.h>
#include <string.h>

#include "kdc-plugin/kdb-module/handles.h"

/* `text` has a %s for the principal's name. */
static krb5_error_code refuse(module_state *state, krb5_const_principal principal,
                              krb5_error_code code, const char *text)
{
    char *name = NULL;

    if (principal != NULL)
        (void)krb5_unparse_name(state->context, principal, &name);
    krb5_set_error_message(state->context, code, text, name == NULL ? "a principal" : name);
    krb5_free_unparsed_name(state->context, name);
    return code;
}

krb5_error_code guard_reference(module_state *state, const krb5_keyblock *reference)
{
    krb5_data handle;
    krb5_error_code ret = krb5_c_remote_key_handle(reference, &handle);

    if (ret)
        return ret;
    if (handle_list_has(&state->in_hand, (const uint8_t *)handle.data))
        return 0;
    return refuse(state, state->current, KADM5_PROTECT_PRINCIPAL,
                  "%s cannot be given a key reference in place of a key: only the MPC servers' own "
                  "administrator sets handles (mpc-admin enroll, mpc-admin randkey)");
}

static int is_staged(const module_state *state, const krb5_key_data *key_data)
{
    const uint8_t *handle = handle_in(key_data);

    return handle != NULL && staging_find(state->staged, handle) != NULL;
}

static krb5_error_code check_key(module_state *state, const krb5_db_entry *entry,
                                 const krb5_db_entry *stored, const krb5_key_data *key_data)
{
    placement place = classify(state->config, entry->princ);
    int is_handle = handle_in(key_data) != NULL;

    if (is_staged(state, key_data) || entry_has_key(stored, key_data))
        return 0;
    if (is_handle && !(entry->mask & MPC_MASK_SET_HANDLES))
        return refuse(state, entry->princ, KRB5_KDB_DB_INUSE,
                      "%s would have a key that is not its own, and nothing was changed: its entry "
                      "was changed by somebody else at the same time, or the new keys were wiped "
                      "because a kadm5_hook module wrote many other entries; try again");
    if (!is_handle && (place == PLACE_PROTECTED || place == PLACE_DRAWN))
        return refuse(state, entry->princ, KRB5_KDB_DB_INUSE,
                      "%s is protected by the MPC servers, and its new key would be in the "
                      "database instead; nothing was changed. If the master key was changed, "
                      "restart kadmind");
    return 0;
}

static krb5_error_code check_login_key(module_state *state, krb5_db_entry *entry,
                                       krb5_db_entry *stored)
{
    uint8_t login[MPC_HANDLE_BYTES], before[MPC_HANDLE_BYTES];

    if (!login_handle_of(state->context, entry, login))
        return 0;
    if (stored != NULL && login_handle_of(state->context, stored, before) &&
        memcmp(login, before, sizeof(login)) == 0)
        return 0;
    return refuse(state, entry->princ, KADM5_PROTECT_PRINCIPAL,
                  "the string attribute " LOGIN_KEY_ATTRIBUTE " of %s is set by the mpc module "
                  "alone (kdc.conf: mpc_service_logins) and cannot be changed, only deleted");
}

krb5_error_code guard_put(module_state *state, krb5_db_entry *entry, krb5_db_entry *stored)
{
    krb5_error_code ret = 0;
    int i;

    if (entry->mask & KADM5_LOAD)
        return 0;
    for (i = 0; i < entry->n_key_data && ret == 0; i++)
        ret = check_key(state, entry, stored, &entry->key_data[i]);
    return ret ? ret : check_login_key(state, entry, stored);
}
