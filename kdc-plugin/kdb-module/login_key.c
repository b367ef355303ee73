/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/login_key.h"

#include <com_err.h>
#include <sodium.h>

#include "kdc-plugin/kdb-module/handles.h"

enum { HEX_SIZE = 2 * MPC_HANDLE_BYTES + 1 };

/* WELLKNOWN/ANONYMOUS (RFC 8062): who logs in by it has shown nothing, and his tickets say so. */
static int is_anonymous(krb5_const_principal p)
{
    return p->length == 2 && component_is(p, 0, "WELLKNOWN") && component_is(p, 1, "ANONYMOUS");
}

/* Whether a principal with local keys may have use for one. */
static int wanted(const module_config *config, krb5_const_principal principal)
{
    static const char *const without[] = {"K", "kadmin", "krbtgt", "kiprop", "WELLKNOWN", NULL};
    int i;

    if (is_anonymous(principal))
        return 1;
    if (!config->service_logins)
        return 0;
    for (i = 0; without[i] != NULL; i++)
        if (principal->length >= 2 && component_is(principal, 0, without[i]))
            return 0;
    return principal->length > 0;
}

/* Has a key drawn and writes its handle into the entry. On failure *error is a text for
 * mpc_text_free, and the entry is as it was. */
static krb5_error_code add(krb5_context context, const mpc_options *options,
                           krb5_const_principal principal, krb5_db_entry *entry, char **error)
{
    char hex[HEX_SIZE], *name = NULL;
    mpc_new_key key = {.kvno = LOGIN_KEY_KVNO, .enctype = LOGIN_KEY_ENCTYPE,
                       .salt_type = KRB5_KDB_SALTTYPE_NORMAL, .key_class = MPC_CLASS_USER,
                       .gate = MPC_GATE_KDC_TRUSTED};
    krb5_error_code ret;

    *error = NULL;
    if (sodium_init() < 0)
        return KRB5_CRYPTO_INTERNAL;
    ret = krb5_unparse_name(context, principal, &name);
    if (ret)
        return ret;
    randombytes_buf(key.handle, sizeof(key.handle));
    key.principal = name;
    if (mpc_admin_store_keys(options, &key, 1, error) != 0)
        ret = KRB5KDC_ERR_SVC_UNAVAILABLE;
    krb5_free_unparsed_name(context, name);
    if (ret)
        return ret;
    sodium_bin2hex(hex, sizeof(hex), key.handle, sizeof(key.handle));
    return krb5_dbe_set_string(context, entry, LOGIN_KEY_ATTRIBUTE, hex);
}

int login_key_provide(module_state *state, krb5_const_principal principal, krb5_db_entry *entry,
                      uint8_t fresh[MPC_HANDLE_BYTES])
{
    mpc_options options;
    char *error = NULL, *name = NULL;
    krb5_error_code ret;

    if (!wanted(state->config, principal) ||
        login_handle_of(state->context, entry, fresh))
        return 0;
    if (config_admin_options(state->context, state->config, &options) != 0) {
        krb5_clear_error_message(state->context);
        return 0;
    }
    ret = add(state->context, &options, principal, entry, &error);
    if (ret) {
        (void)krb5_unparse_name(state->context, principal, &name);
        com_err("mpc", 0, "%s gets no login key (it can serve, but not log in itself until it is "
                "given new keys): %s", name == NULL ? "a service" : name,
                error == NULL ? "" : error);
        krb5_free_unparsed_name(state->context, name);
    }
    mpc_text_free(error);
    return ret == 0 && login_handle_of(state->context, entry, fresh);
}

void login_key_forget(krb5_context context, krb5_db_entry *entry)
{
    (void)krb5_dbe_set_string(context, entry, LOGIN_KEY_ATTRIBUTE, NULL);
}
