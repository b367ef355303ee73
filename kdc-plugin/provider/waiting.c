/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/waiting.h"

#include <krb5/remote_key_plugin.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct flight {
    pthread_mutex_t lock;
    int references; /* the request's, and the client's until the job is done */
    mpc_result *result;
    int done;
    void *token; /* of the wait in progress, or NULL */
};

static void flight_unreference(flight *f)
{
    int last;

    pthread_mutex_lock(&f->lock);
    last = --f->references == 0;
    pthread_mutex_unlock(&f->lock);
    if (!last)
        return;
    mpc_result_free(f->result);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static void flight_done(void *arg, mpc_result *result)
{
    flight *f = arg;
    void *token;

    pthread_mutex_lock(&f->lock);
    f->result = result;
    f->done = 1;
    token = f->token;
    f->token = NULL;
    pthread_mutex_unlock(&f->lock);
    if (token != NULL)
        krb5_c_remote_key_host()->wake(token);
    flight_unreference(f);
}

flight *flight_start(mpc_client *client, const mpc_job *job)
{
    flight *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return NULL;
    pthread_mutex_init(&f->lock, NULL);
    f->references = 2;
    mpc_client_submit(client, job, flight_done, f);
    return f;
}

const mpc_result *flight_await(flight *f)
{
    const krb5_remote_key_host *host = krb5_c_remote_key_host();
    void *token = NULL;
    int done;

    pthread_mutex_lock(&f->lock);
    done = f->done;
    if (!done)
        f->token = token = host->begin_wait();
    pthread_mutex_unlock(&f->lock);
    if (done)
        return f->result;
    if (token == NULL)
        return NULL;
    host->wait(token);
    return f->result;
}

void flight_release(flight *f)
{
    if (f != NULL)
        flight_unreference(f);
}

struct tag_wait {
    void *token;
    enum mpc_verdict verdict;
    uint8_t *tag;
    char *detail;
    size_t detail_size;
};

static void tag_done(void *arg, enum mpc_verdict verdict, const uint8_t *tag, const char *detail)
{
    struct tag_wait *w = arg;
    void *token = w->token;

    w->verdict = verdict;
    if (tag != NULL)
        memcpy(w->tag, tag, MPC_TAG_BYTES);
    snprintf(w->detail, w->detail_size, "%s", detail);
    krb5_c_remote_key_host()->wake(token); /* *w may be gone now */
}

enum mpc_verdict tag_await(mpc_client *client, uint64_t job, uint32_t seal, mpc_bytes ciphertext,
                           uint8_t tag[MPC_TAG_BYTES], char *detail, size_t detail_size)
{
    const krb5_remote_key_host *host = krb5_c_remote_key_host();
    struct tag_wait w = {NULL, MPC_UNAVAILABLE, tag, detail, detail_size};

    w.token = host->begin_wait();
    if (w.token == NULL) {
        snprintf(detail, detail_size, "out of memory");
        return MPC_UNAVAILABLE;
    }
    mpc_client_request_tag(client, job, seal, ciphertext, tag_done, &w);
    host->wait(w.token);
    return w.verdict;
}
