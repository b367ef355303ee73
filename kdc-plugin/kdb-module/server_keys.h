/* SPDX-License-Identifier: Apache-2.0 */
/* Old keys on the servers. */
#ifndef KDC_PLUGIN_KDB_MODULE_SERVER_KEYS_H_
#define KDC_PLUGIN_KDB_MODULE_SERVER_KEYS_H_

#include <krb5/krb5.h>

#include "kdc-plugin/kdb-module/handles.h"
#include "kdc-plugin/kdb-module/state.h"

/* Best effort: a key that stays behind on a server is referred to by nobody. Those of `kept` (may be
 * NULL) are retired too, but stay for the password history. */
void server_keys_delete(module_state *state, krb5_const_principal principal,
                        const handle_list *list, const handle_list *kept);

#endif /* KDC_PLUGIN_KDB_MODULE_SERVER_KEYS_H_ */
