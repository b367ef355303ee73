/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/server_keys.h"

#include <com_err.h>

void server_keys_delete(module_state *state, krb5_const_principal principal,
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
