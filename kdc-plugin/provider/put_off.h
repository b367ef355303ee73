/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that are begun together. krb5kdc runs many requests in a row (a slice: what its socket
 * had to read, or what a batch of answers woke) and says when it is through. Jobs and tag requests
 * wait until then and go to the client in one burst. So a slice costs each server a message instead
 * of one for each request: most of what a request costs a connection is the message.
 *
 * In the thread of the host's requests only, like all that a request does.
 */
#ifndef KDC_PLUGIN_PROVIDER_PUT_OFF_H_
#define KDC_PLUGIN_PROVIDER_PUT_OFF_H_

#include <sys/queue.h>

#include "kdc-plugin/client/mpc_client.h"

typedef struct put_off {
    TAILQ_ENTRY(put_off) links;
    mpc_client *client; /* that of the process */
    int waiting; /* in the queue */
    void (*begin)(struct put_off *op);
} put_off;

/* Calls begin(op) at the end of the host's slice, or at once if there is none. Until then `op` stays
 * where it is. */
void put_off_or_begin(mpc_client *client, put_off *op, void (*begin)(put_off *op));

/* Takes `op` back. Returns whether it was still waiting. */
int put_off_cancel(put_off *op);

/* Begins everything that waits, in the order in which it came. */
void put_off_flush(void);

#endif /* KDC_PLUGIN_PROVIDER_PUT_OFF_H_ */
