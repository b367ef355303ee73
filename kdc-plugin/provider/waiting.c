/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/waiting.h"

#include <krb5/remote_key_plugin.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/provider/put_off.h"

/* ---- one wait: begun on the request's thread, ended on one of the client's ---- */

typedef struct wait_point {
    put_off start; /* first: put_off_or_begin() gives it back */
    pthread_mutex_t lock;
    int references; /* the request's, and the client's until it has answered */
    int done;
    void *token; /* of the wait in progress, or NULL */
} wait_point;

static void wait_point_begin(wait_point *w, mpc_client *client, void (*begin)(put_off *op))
{
    pthread_mutex_init(&w->lock, NULL);
    w->references = 2;
    put_off_or_begin(client, &w->start, begin);
}

/* Returns whether that was the last reference; then nobody else has the memory. */
static int wait_point_unreference(wait_point *w)
{
    int last;

    pthread_mutex_lock(&w->lock);
    last = --w->references == 0;
    pthread_mutex_unlock(&w->lock);
    if (last)
        pthread_mutex_destroy(&w->lock);
    return last;
}

/* Ends the wait, whose result has been stored, and drops the client's reference. */
static int wait_point_done(wait_point *w)
{
    void *token;

    pthread_mutex_lock(&w->lock);
    w->done = 1;
    token = w->token;
    w->token = NULL;
    pthread_mutex_unlock(&w->lock);
    if (token != NULL)
        krb5_c_remote_key_host()->wake(token);
    return wait_point_unreference(w);
}

/* Returns when it is done; false if there is no memory to wait with. */
static int wait_point_await(wait_point *w)
{
    const krb5_remote_key_host *host = krb5_c_remote_key_host();
    void *token = NULL;
    int done;

    pthread_mutex_lock(&w->lock);
    done = w->done;
    if (!done)
        w->token = token = host->begin_wait();
    pthread_mutex_unlock(&w->lock);
    if (!done && token != NULL)
        host->wait(token);
    return done || token != NULL;
}

/* The request lets go. Returns whether the memory can be freed. */
static int wait_point_release(wait_point *w)
{
    if (put_off_cancel(&w->start))
        (void)wait_point_unreference(w); /* the client never got it */
    return wait_point_unreference(w);
}

/* ---- jobs ---- */

/* A job with the parts that it points to; what those point to is not copied. */
typedef struct job_copy {
    mpc_job job;
    mpc_open open;
    mpc_seal seals[MPC_MAX_SEALS];
    mpc_make_mac make_mac;
    mpc_verify_mac verify_mac;
} job_copy;

struct flight {
    wait_point wait; /* first */
    job_copy planned;
    mpc_result *result;
};

static void flight_free(flight *f)
{
    mpc_result_free(f->result);
    free(f);
}

static void flight_done(void *arg, mpc_result *result)
{
    flight *f = arg;

    f->result = result;
    if (wait_point_done(&f->wait))
        flight_free(f);
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

    mpc_client_submit(op->client, &f->planned.job, flight_done, f);
}

flight *flight_start(mpc_client *client, const mpc_job *job)
{
    flight *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return NULL;
    copy_job(job, &f->planned);
    wait_point_begin(&f->wait, client, flight_submit);
    return f;
}

const mpc_result *flight_await(flight *f)
{
    return wait_point_await(&f->wait) ? f->result : NULL;
}

void flight_release(flight *f)
{
    if (f != NULL && wait_point_release(&f->wait))
        flight_free(f);
}

/* ---- tags ---- */

struct tag_flight {
    wait_point wait; /* first */
    uint64_t job;
    uint32_t seal;
    mpc_bytes ciphertext;
    enum mpc_verdict verdict;
    uint8_t tag[MPC_TAG_BYTES];
    char *detail; /* for the log; NULL if all is well */
};

static void tag_free(tag_flight *t)
{
    free(t->detail);
    free(t);
}

static void tag_done(void *arg, enum mpc_verdict verdict, const uint8_t *tag, const char *detail)
{
    tag_flight *t = arg;

    t->verdict = verdict;
    if (tag != NULL)
        memcpy(t->tag, tag, MPC_TAG_BYTES);
    if (verdict != MPC_OK)
        t->detail = strdup(detail);
    if (wait_point_done(&t->wait))
        tag_free(t);
}

static void tag_request(put_off *op)
{
    tag_flight *t = (tag_flight *)op;

    mpc_client_request_tag(op->client, t->job, t->seal, t->ciphertext, tag_done, t);
}

tag_flight *tag_start(mpc_client *client, uint64_t job, uint32_t seal, mpc_bytes ciphertext)
{
    tag_flight *t = calloc(1, sizeof(*t));

    if (t == NULL)
        return NULL;
    t->job = job;
    t->seal = seal;
    t->ciphertext = ciphertext;
    t->verdict = MPC_UNAVAILABLE;
    wait_point_begin(&t->wait, client, tag_request);
    return t;
}

enum mpc_verdict tag_await(tag_flight *t, uint8_t tag[MPC_TAG_BYTES], const char **detail)
{
    *detail = "out of memory";
    if (!wait_point_await(&t->wait))
        return MPC_UNAVAILABLE;
    if (t->verdict == MPC_OK)
        memcpy(tag, t->tag, MPC_TAG_BYTES);
    else if (t->detail != NULL)
        *detail = t->detail;
    return t->verdict;
}

void tag_release(tag_flight *t)
{
    if (t != NULL && wait_point_release(&t->wait))
        tag_free(t);
}
