/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job client of this process. It is started at the first job, never at configuration: the
 * programs of krb5 read their configuration before they fork (daemon(), krb5kdc -w), and gRPC must
 * not run before a fork. A process that inherited a started client gets its own.
 */
#ifndef KDC_PLUGIN_PROVIDER_PROCESS_CLIENT_H_
#define KDC_PLUGIN_PROVIDER_PROCESS_CLIENT_H_

#include "kdc-plugin/client/mpc_client.h"

/*
 * Copies the options. A process serves one realm: a second call with another realm or other servers
 * returns -1 and changes nothing; other changes take effect when the client starts.
 */
int process_client_configure(const mpc_options *options);

/* Returns the client, starting it if need be, or NULL with *error for mpc_text_free. */
mpc_client *process_client_get(char **error);

/* Stops the client, if this process has started it, and forgets the options. */
void process_client_stop(void);

/* Passes a line to the log function of the options. */
void process_client_log(int priority, const char *text);

#endif /* KDC_PLUGIN_PROVIDER_PROCESS_CLIENT_H_ */
