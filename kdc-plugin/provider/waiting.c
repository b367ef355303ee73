/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/waiting.h"

#include <krb5/remote_key_plugin.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* ---- one wait: begun on the request's thread, ended on one of the client's ---- */

typedef struct wait_point {
    TAILQ_ENTRY(wait_point) links; /* while it is put off */
    mpc_client *client;            /* that of the request's realm */
    int put_off;
    void (*begin)(struct wait_point *w);
    enum kdc_phase phase;                   /* what is measured of it: */
    int32_t enctype;
    uint64_t wanted_at, asked_at, answered_at; /* kdc_metrics_clock() */
    pthread_mutex_t lock;
    int references; /* the request's, and the client's until it has answered */
    int done;
    void *token; /* of the wait in progress, or NULL */
} wait_point;

/* What was put off, in the order in which it came. In the thread of the host's requests only, like
 * all that a request does. */
static TAILQ_HEAD(wait_queue, wait_point) queue = TAILQ_HEAD_INITIALIZER(queue);

/* ---- what of it is measured, if the realm has metrics ---- */

static void measure_ask(wait_point *w)
{
    kdc_metrics *m = mpc_client_metrics(w->client);

    if (m == NULL)
        return;
    w->asked_at = kdc_metrics_clock();
    kdc_metrics_wait(m, KDC_GATHERED, w->enctype, w->asked_at - w->wanted_at);
}

static void measure_answer(wait_point *w)
{
    kdc_metrics *m = mpc_client_metrics(w->client);

    if (m == NULL)
        return;
    w->answered_at = kdc_metrics_clock();
    kdc_metrics_wait(m, w->phase, w->enctype, w->answered_at - w->asked_at);
}

static void measure_resume(const wait_point *w)
{
    kdc_metrics *m = mpc_client_metrics(w->client);

    if (m != NULL)
        kdc_metrics_wait(m, KDC_RESUMED, w->enctype, kdc_metrics_clock() - w->answered_at);
}

/* Calls begin(w) at the end of the host's slice, or at once if there is none. */
static void wait_point_begin(wait_point *w, mpc_client *client, void (*begin)(wait_point *w))
{
    pthread_mutex_init(&w->lock, NULL);
    w->references = 2;
    w->client = client;
    w->begin = begin;
    w->wanted_at = mpc_client_metrics(client) != NULL ? kdc_metrics_clock() : 0;
    w->put_off = krb5_c_remote_key_host()->flush_later();
    if (w->put_off)
        TAILQ_INSERT_TAIL(&queue, w, links);
    else
        begin(w);
}

/* Takes it back. Returns whether it was still put off. */
static int wait_point_cancel(wait_point *w)
{
    if (!w->put_off)
        return 0;
    TAILQ_REMOVE(&queue, w, links);
    w->put_off = 0;
    return 1;
}

/* Begins what was put off for one client. */
static void flush_client(mpc_client *client)
{
    wait_point *w, *next;

    mpc_client_begin_burst(client);
    for (w = TAILQ_FIRST(&queue); w != NULL; w = next) {
        next = TAILQ_NEXT(w, links); /* nothing is put off meanwhile */
        if (w->client != client)
            continue;
        (void)wait_point_cancel(w);
        w->begin(w); /* *w may be gone now */
    }
    mpc_client_end_burst(client);
}

void waiting_flush(void)
{
    const wait_point *w;

    while ((w = TAILQ_FIRST(&queue)) != NULL)
        flush_client(w->client);
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
    if (!done && token != NULL) {
        host->wait(token);
        measure_resume(w);
    }
    return done || token != NULL;
}

/* The request lets go. Returns whether the memory can be freed. */
static int wait_point_release(wait_point *w)
{
    if (wait_point_cancel(w))
        (void)wait_point_unreference(w); /* the client never got it */
    return wait_point_unreference(w);
}

/* ---- jobs ---- */

struct flight {
    wait_point wait; /* first: begin() gets it */
    const mpc_job *job;
    enum mpc_operation operation; /* when it ends the job may be gone */
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
    measure_answer(&f->wait);
    kdc_metrics_job(mpc_client_metrics(f->wait.client), f->operation, result->verdict);
    if (wait_point_done(&f->wait))
        flight_free(f);
}

static void flight_submit(wait_point *w)
{
    flight *f = (flight *)w;

    measure_ask(w);
    mpc_client_submit(w->client, f->job, flight_done, f);
}

/* That of a job's first part; 0: it only verifies a checksum. */
static int32_t enctype_of(const mpc_job *job)
{
    if (job->open != NULL)
        return job->open->enctype;
    if (job->seal_count > 0)
        return job->seals[0].enctype;
    return job->make_mac != NULL ? job->make_mac->enctype : 0;
}

flight *flight_start(mpc_client *client, const mpc_job *job)
{
    flight *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return NULL;
    f->job = job;
    f->operation = job->operation;
    f->wait.phase = KDC_JOB;
    f->wait.enctype = enctype_of(job);
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
    wait_point wait; /* first: begin() gets it */
    wanted_tag wanted;
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
    measure_answer(&t->wait);
    kdc_metrics_tag(mpc_client_metrics(t->wait.client), verdict);
    if (wait_point_done(&t->wait))
        tag_free(t);
}

static void tag_request(wait_point *w)
{
    tag_flight *t = (tag_flight *)w;
    const wanted_tag *tag = &t->wanted;

    measure_ask(w);
    mpc_client_request_tag(w->client, tag->job, tag->seal, tag->ciphertext, tag->request, tag_done,
                           t);
}

tag_flight *tag_start(mpc_client *client, const wanted_tag *tag)
{
    tag_flight *t = calloc(1, sizeof(*t));

    if (t == NULL)
        return NULL;
    t->wanted = *tag;
    t->wait.phase = KDC_TAG;
    t->wait.enctype = tag->enctype;
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
