/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/put_off.h"

#include <krb5/remote_key_plugin.h>

static TAILQ_HEAD(put_off_queue, put_off) queue = TAILQ_HEAD_INITIALIZER(queue);

void put_off_or_begin(mpc_client *client, put_off *op, void (*begin)(put_off *op))
{
    op->client = client;
    op->begin = begin;
    op->waiting = krb5_c_remote_key_host()->flush_later();
    if (op->waiting)
        TAILQ_INSERT_TAIL(&queue, op, links);
    else
        begin(op);
}

int put_off_cancel(put_off *op)
{
    if (!op->waiting)
        return 0;
    TAILQ_REMOVE(&queue, op, links);
    op->waiting = 0;
    return 1;
}

void put_off_flush(void)
{
    put_off *op = TAILQ_FIRST(&queue);
    mpc_client *client;

    if (op == NULL)
        return;
    client = op->client;
    mpc_client_begin_burst(client);
    while ((op = TAILQ_FIRST(&queue)) != NULL) {
        (void)put_off_cancel(op);
        op->begin(op); /* *op may be gone now */
    }
    mpc_client_end_burst(client);
}
