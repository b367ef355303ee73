/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/directory.h"

#include <kadm5/admin.h>
#include <string.h>
#include <time.h>

#include "kdc-plugin/kdb-module/handles.h"
#include "kdc-plugin/kdb-module/wrapped.h"

/* Until an answer that was lost has surely taken effect. slapd writes what it has read from a
 * connection even if that ends, within milliseconds unless it is overloaded. */
#define LOOKS 12
#define PAUSE_MS 250

/* krb5's names for what kldap tells in an entry's tagged data: type, length (two bytes), value. */
#define KLDAP_INFO 0xff
#define KLDAP_OBJECT_TYPE 1  /* KDB_TL_PRINCTYPE */
#define KLDAP_NAME_COUNT 2   /* KDB_TL_PRINCCOUNT */
#define KLDAP_STANDALONE 1   /* KDB_STANDALONE_PRINCIPAL_OBJECT */

/* What kldap makes of a connection that is lost, of a server that is not there, and of a time limit
 * of the client's own. Every other error is slapd's answer. */
static int is_away(krb5_error_code ret)
{
    return ret == KRB5_KDB_ACCESS_ERROR;
}

krb5_error_code directory_for_kdc(krb5_context context, krb5_error_code ret)
{
    const char *text;

    if (!is_away(ret))
        return ret;
    text = krb5_get_error_message(context, ret);
    krb5_set_error_message(context, KRB5KDC_ERR_SVC_UNAVAILABLE, "%s", text);
    krb5_free_error_message(context, text);
    return KRB5KDC_ERR_SVC_UNAVAILABLE;
}

static void pause_between_looks(void)
{
    const struct timespec pause = {0, PAUSE_MS * 1000000L};

    (void)nanosleep(&pause, NULL);
}

/* Whether two entries have the same keys, and the same login key. */
static int same_keys(krb5_context context, krb5_db_entry *a, krb5_db_entry *b)
{
    uint8_t of_a[KRB5_REMOTE_KEY_HANDLE_LENGTH], of_b[KRB5_REMOTE_KEY_HANDLE_LENGTH];
    int i, has_a = login_handle_of(context, a, of_a), has_b = login_handle_of(context, b, of_b);

    if (a->n_key_data != b->n_key_data || has_a != has_b ||
        (has_a && memcmp(of_a, of_b, sizeof(of_a)) != 0))
        return 0;
    for (i = 0; i < a->n_key_data; i++)
        if (!entry_has_key(b, &a->key_data[i]))
            return 0;
    return 1;
}

put_outcome directory_put_outcome(module_state *state, krb5_db_entry *entry,
                                  krb5_error_code error)
{
    krb5_db_entry *stored;
    int look, found = 0;

    if (!is_away(error))
        return PUT_REFUSED;
    for (look = 0; look < LOOKS && !found; look++) {
        if (look > 0)
            pause_between_looks();
        if (wrapped()->get_principal(state->context, entry->princ, 0, &stored) != 0)
            continue;
        found = same_keys(state->context, entry, stored);
        krb5_db_free_principal(state->context, stored);
    }
    krb5_clear_error_message(state->context);
    return found ? PUT_STORED : PUT_UNCLEAR;
}

krb5_error_code directory_unclear(module_state *state, krb5_const_principal principal,
                                  krb5_error_code error)
{
    char *name = NULL;

    (void)krb5_unparse_name(state->context, principal, &name);
    krb5_set_error_message(state->context, error,
                           "the directory did not say whether it stored the keys of %s; its old "
                           "keys and the new ones stay on the MPC servers, so what is stored "
                           "works. Look at getprinc when the LDAP server answers, and try again; "
                           "mpc-admin doctor names the keys that nobody needs",
                           name == NULL ? "a principal" : name);
    krb5_free_unparsed_name(state->context, name);
    return error;
}

int directory_deleted(module_state *state, krb5_const_principal principal, krb5_error_code error)
{
    krb5_db_entry *stored;
    krb5_error_code ret;
    int look;

    if (!is_away(error))
        return 0;
    for (look = 0; look < LOOKS; look++) {
        if (look > 0)
            pause_between_looks();
        ret = wrapped()->get_principal(state->context, principal, 0, &stored);
        if (ret == KRB5_KDB_NOENTRY) {
            krb5_clear_error_message(state->context);
            return 1;
        }
        if (ret == 0)
            krb5_db_free_principal(state->context, stored);
    }
    krb5_set_error_message(state->context, error,
                           "the directory did not say whether it deleted the entry; its keys stay "
                           "on the MPC servers. Look at getprinc when the LDAP server answers");
    return 0;
}

/* A number of kldap's, or `otherwise`. */
static int kldap_number(const krb5_tl_data *tl, int type, int otherwise)
{
    const uint8_t *at = tl->tl_data_contents;
    size_t left = tl->tl_data_length, length;

    for (; left >= 3; at += 3 + length, left -= 3 + length) {
        length = (size_t)at[1] << 8 | at[2];
        if (length > left - 3)
            break;
        if (at[0] == type && length == 2)
            return at[3] << 8 | at[4];
    }
    return otherwise;
}

static int in_directory(const module_state *state)
{
    return strcmp(state->config->wrapped, "kldap") == 0;
}

int directory_gives_flags(const module_state *state, const krb5_db_entry *entry)
{
    return in_directory(state) && !(entry->mask & KADM5_ATTRIBUTES);
}

int directory_keeps_keys(const module_state *state, const krb5_db_entry *entry)
{
    const krb5_tl_data *tl;

    if (!in_directory(state))
        return 0;
    for (tl = entry->tl_data; tl != NULL; tl = tl->tl_data_next)
        if (tl->tl_data_type == KLDAP_INFO)
            return kldap_number(tl, KLDAP_OBJECT_TYPE, 0) != KLDAP_STANDALONE &&
                   kldap_number(tl, KLDAP_NAME_COUNT, 1) != 1;
    return 0;
}
