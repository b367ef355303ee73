/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/waiting.h"

#include <krb5/remote_key_plugin.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/provider/put_off.h"

/* A job with the parts that it points to; what those point to is not copied. */
typedef struct job_copy {
    mpc_job job;
    mpc_open open;
    mpc_seal seals[MPC_MAX_SEALS];
    mpc_make_mac make_mac;
    mpc_verify_mac verify_mac;
} job_copy;

struct flight {
    put_off start; /* first: put_off_or_begin() gives it back */
    mpc_client *client;
    job_copy planned;
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

static void copy_job(const mpc_job *job, job_copy *copy)
{
    size_t i;

    copy->job = *job;
    if (job->open != NULL) {
        copy->open = *job->open;
        copy->job.open = &copy->open;
    }
    for (i = 0; i < job->seal_count && i < MPC_MAX_SEALS; i++)
        copy->seals[i] = job->seals[i];
    copy->job.seals = copy->seals;
    copy->job.seal_count = i;
    if (job->make_mac != NULL) {
        copy->make_mac = *job->make_mac;
        copy->job.make_mac = &copy->make_mac;
    }
    if (job->verify_mac != NULL) {
        copy->verify_mac = *job->verify_mac;
        copy->job.verify_mac = &copy->verify_mac;
    }
}

static void flight_submit(put_off *op)
{
    flight *f = (flight *)op;

    mpc_client_submit(f->client, &f->planned.job, flight_done, f);
}

flight *flight_start(mpc_client *client, const mpc_job *job)
{
    flight *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return NULL;
    pthread_mutex_init(&f->lock, NULL);
    f->references = 2;
    f->client = client;
    copy_job(job, &f->planned);
    put_off_or_begin(&f->start, flight_submit);
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
    if (f == NULL)
        return;
    if (put_off_cancel(&f->start))
        flight_unreference(f); /* the client never got it */
    flight_unreference(f);
}

struct tag_wait {
    put_off start; /* first: put_off_or_begin() gives it back */
    mpc_client *client;
    uint64_t job;
    uint32_t seal;
    mpc_bytes ciphertext;
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

static void tag_request(put_off *op)
{
    struct tag_wait *w = (struct tag_wait *)op;

    mpc_client_request_tag(w->client, w->job, w->seal, w->ciphertext, tag_done, w);
}

enum mpc_verdict tag_await(mpc_client *client, uint64_t job, uint32_t seal, mpc_bytes ciphertext,
                           uint8_t tag[MPC_TAG_BYTES], char *detail, size_t detail_size)
{
    const krb5_remote_key_host *host = krb5_c_remote_key_host();
    struct tag_wait w = {.client = client, .job = job, .seal = seal, .ciphertext = ciphertext,
                         .verdict = MPC_UNAVAILABLE, .tag = tag, .detail = detail,
                         .detail_size = detail_size};

    w.token = host->begin_wait();
    if (w.token == NULL) {
        snprintf(detail, detail_size, "out of memory");
        return MPC_UNAVAILABLE;
    }
    put_off_or_begin(&w.start, tag_request);
    host->wait(w.token);
    return w.verdict;
}
