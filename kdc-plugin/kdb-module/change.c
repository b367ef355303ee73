/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/change.h"

#include <errno.h>

#include "kdc-plugin/kdb-module/renaming.h"
#include "kdc-plugin/kdb-module/wrapped.h"

krb5_error_code change_begin(module_state *state, krb5_const_principal principal, change *c)
{
    c->state = state;
    c->principal = principal;
    return krb5_db_log_begin(state->context, &c->logs);
}

/* The entry that the log's next line is to be compared with; NULL: there is none. */
static krb5_error_code get_before(const change *c, krb5_db_entry **before)
{
    krb5_error_code ret;

    *before = NULL;
    if (!c->logs)
        return 0;
    ret = wrapped()->get_principal(c->state->context, c->principal, 0, before);
    if (ret == 0) {
        krb5_dbe_sort_key_data((*before)->key_data, (size_t)(*before)->n_key_data);
        return 0; /* sorted as in the entries that libkdb5 gives out */
    }
    *before = NULL;
    if (ret != KRB5_KDB_NOENTRY)
        return ret;
    krb5_clear_error_message(c->state->context);
    return 0;
}

static void end(const change *c, krb5_db_entry *before, krb5_db_entry *entry,
                krb5_error_code unknown)
{
    krb5_db_log_end(c->state->context, c->principal, before, entry, unknown);
}

/* After a failure, whose text stays: unlocking a database that has no locks is an error with another. */
static void end_failed(const change *c, krb5_error_code error, krb5_error_code unknown)
{
    krb5_context context = c->state->context;
    const char *text = krb5_get_error_message(context, error);

    end(c, NULL, NULL, unknown);
    krb5_set_error_message(context, error, "%s", text);
    krb5_free_error_message(context, text);
}

void change_abandon(change *c)
{
    end(c, NULL, NULL, 0);
}

void change_fail(change *c, krb5_error_code error)
{
    end_failed(c, error, 0);
}

/* Whether nothing can have been changed by a put that failed: a bad argument of -x is found first. Of any
 * other error only kldap and klmdb say that for certain, and it is rare: replicas may do a full resync. */
static int is_refusal(krb5_error_code error, char **db_args)
{
    return error == EINVAL && db_args != NULL && db_args[0] != NULL;
}

krb5_error_code change_put(change *c, krb5_db_entry *entry, char **db_args)
{
    krb5_context context = c->state->context;
    krb5_db_entry *before = NULL;
    krb5_error_code ret = get_before(c, &before);

    if (ret) {
        end_failed(c, ret, 0);
        return ret;
    }
    ret = wrapped()->put_principal(context, entry, db_args);
    if (ret)
        end_failed(c, ret, is_refusal(ret, db_args) ? 0 : ret);
    else /* a replica does not find an entry that is hidden, and needs all of the new one */
        end(c, before != NULL && renaming_hides(context, before) ? NULL : before, entry, 0);
    krb5_db_free_principal(context, before);
    return ret;
}

krb5_error_code change_delete(change *c)
{
    krb5_db_entry *before = NULL;
    krb5_error_code ret = get_before(c, &before);

    if (ret) {
        end_failed(c, ret, 0);
        return ret;
    }
    ret = wrapped()->delete_principal(c->state->context, c->principal);
    if (ret)
        end_failed(c, ret, ret == KRB5_KDB_NOENTRY ? 0 : ret);
    else
        end(c, before, NULL, 0);
    krb5_db_free_principal(c->state->context, before);
    return ret;
}

krb5_error_code put_and_log(module_state *state, krb5_db_entry *entry, char **db_args)
{
    change c;
    krb5_error_code ret = change_begin(state, entry->princ, &c);

    return ret ? ret : change_put(&c, entry, db_args);
}

krb5_error_code delete_and_log(module_state *state, krb5_const_principal principal)
{
    change c;
    krb5_error_code ret = change_begin(state, principal, &c);

    return ret ? ret : change_delete(&c);
}

krb5_error_code rename_and_log(module_state *state, krb5_const_principal source,
                               krb5_const_principal target)
{
    change c;
    krb5_error_code ret = change_begin(state, source, &c);

    if (ret)
        return ret;
    ret = wrapped()->rename_principal(state->context, source, target);
    if (ret)
        end_failed(&c, ret, ret);
    else
        end(&c, NULL, NULL, KRB5_PLUGIN_OP_NOTSUPP);
    return ret;
}
