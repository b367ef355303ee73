/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job clients of this process, one for each realm that it serves. One is started at its realm's
 * first job, never at configuration: the programs of krb5 read their configuration before they fork
 * (daemon(), krb5kdc -w), and gRPC must not run before a fork. A process that inherited a started
 * client gets its own.
 *
 * A handle does not say whose it is. The krb5_context does in which an operation is asked for: krb5kdc
 * opens each realm's database in a context of its own and serves a request in its realm's. So a
 * handle goes to the servers of the realm that uses it, wherever it came from; if that is another
 * realm's, they have no such key.
 */
#ifndef KDC_PLUGIN_PROVIDER_PROCESS_CLIENT_H_
#define KDC_PLUGIN_PROVIDER_PROCESS_CLIENT_H_

#include <krb5/krb5.h>

#include "kdc-plugin/client/mpc_client.h"

/* Which contexts operations may come from. */
typedef enum client_contexts {
    CONTEXTS_OF_DATABASES, /* only those in which a database was opened: krb5kdc */
    CONTEXTS_ANY           /* any, while there is one realm: GSSAPI makes its own in kadmind */
} client_contexts;

/*
 * Copies the options: `context` is a database of that realm. Returns -1 and changes nothing if the
 * process serves the realm by other servers already, or there is no memory; other changes take
 * effect when the client starts.
 */
int process_client_configure(krb5_context context, const mpc_options *options,
                             client_contexts contexts);

/* The context's database was closed. The realm's client goes on: requests may be under way. */
void process_client_forget(krb5_context context);

/* Returns the client of the context's realm, starting it if need be; or NULL with *error for
 * mpc_text_free. */
mpc_client *process_client_get(krb5_context context, char **error);

/* Where the context's realm is counted; NULL: nowhere. */
kdc_metrics *process_client_metrics(krb5_context context);

/* Stops the clients that this process has started, and forgets all options. */
void process_client_stop(void);

/* Passes a line to the log function of the context's realm, or else of any; with the realm's name if
 * there are several. */
void process_client_log(krb5_context context, int priority, const char *text);

#endif /* KDC_PLUGIN_PROVIDER_PROCESS_CLIENT_H_ */
