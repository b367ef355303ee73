/* SPDX-License-Identifier: Apache-2.0 */
/* The remote-key provider: krb5's operations under a handle, as jobs for the MPC servers. */
#ifndef KDC_PLUGIN_PROVIDER_PROVIDER_H_
#define KDC_PLUGIN_PROVIDER_PROVIDER_H_

#include <krb5/krb5.h>

#include "kdc-plugin/client/mpc_client.h"
#include "kdc-plugin/provider/process_client.h"

/*
 * Registers the provider for the process; starts nothing. May be called for several realms, each in
 * its own context, and again with the same realm and servers; one realm with two sets of servers is
 * refused with a message in the context.
 */
krb5_error_code provider_register(krb5_context context, const mpc_options *options,
                                  client_contexts contexts);

/* The context's database was closed: nothing more is asked in it. */
void provider_forget(krb5_context context);

/*
 * Tells the provider that the request being processed is for a client whom the servers know by this
 * handle. Without it a client whose reply key is local gets no ticket under a remote key.
 */
void provider_note_client(const uint8_t handle[MPC_HANDLE_BYTES]);

/* Unregisters the provider and stops its clients. */
void provider_unregister(void);

#endif /* KDC_PLUGIN_PROVIDER_PROVIDER_H_ */
