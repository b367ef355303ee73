/* SPDX-License-Identifier: Apache-2.0 */
/* Which principals' keys live on the MPC servers. README.md states the rule for administrators. */
#ifndef KDC_PLUGIN_KDB_MODULE_CLASSIFY_H_
#define KDC_PLUGIN_KDB_MODULE_CLASSIFY_H_

#include <krb5/krb5.h>

#include "kdc-plugin/client/mpc_client.h"
#include "kdc-plugin/kdb-module/config.h"

typedef enum placement {
    PLACE_LOCAL,     /* stored as krb5 stores keys */
    PLACE_PROTECTED, /* split among the servers */
    PLACE_DRAWN,     /* the realm's krbtgt: drawn by the servers, never anywhere else */
    PLACE_BY_ENCTYPE /* a cross-realm krbtgt: protected if the servers hold keys of all its new types,
                      * local otherwise (the other realm may know none of those) */
} placement;

placement classify(const module_config *config, krb5_const_principal principal);

/* Whether the principal has this component. */
int component_is(krb5_const_principal principal, int i, const char *text);

/* K/M and kadmin/history: their keys protect other things of kadmind and never leave. */
int is_master_principal(krb5_const_principal principal);
int is_history_principal(krb5_const_principal principal);

/* Whether the servers hold keys of GCM enctypes alone for it: the realm's krbtgt, and kadmin's, whose
 * tickets are as good as an administrator's word. Only tickets of these types say how old they are.
 */
int needs_gcm(krb5_const_principal principal, placement place);

/* What the servers let a key of this principal do: a service's, kadmin's or one that mpc_protect
 * names, seals tickets and does not log in. */
enum mpc_key_class key_class_of(krb5_const_principal principal);

#endif /* KDC_PLUGIN_KDB_MODULE_CLASSIFY_H_ */
