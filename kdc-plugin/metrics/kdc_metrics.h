/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What krb5kdc counts, for Prometheus. A krb5kdc may be many processes (krb5kdc -w), and an
 * administrator wants to see one. So the counters of a realm are in a page of memory that the
 * processes share: it is mapped before the first fork, and each process adds to it without a lock.
 * Once a second one of them writes all of it into a text file, for node_exporter's
 * textfile collector: krb5kdc listens nowhere for it and parses nothing.
 *
 *     worker 1 ----+                              writer: whichever process holds the page's lock;
 *     worker 2 ----+--> shared page ---> file     if it dies the next one takes over
 *     worker 3 ----+
 *
 * Nothing here blocks a request, or fails: without memory or without the file krb5kdc only is not
 * seen. All functions take a NULL page, of a realm that is not to be counted, and do nothing then.
 * No name of a principal, no address of a client and no key is in it.
 */
#ifndef KDC_PLUGIN_METRICS_KDC_METRICS_H_
#define KDC_PLUGIN_METRICS_KDC_METRICS_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define KDC_METRICS_NOEXCEPT noexcept
extern "C" {
#else
#define KDC_METRICS_NOEXCEPT
#endif

#define KDC_METRICS_SERVERS 48 /* of all triples of a realm */

typedef struct kdc_metrics kdc_metrics;

typedef struct kdc_metrics_options {
    const char *realm;
    const char *file;                             /* absolute */
    const char *servers[KDC_METRICS_SERVERS];     /* "host:port", by triple; NULL after the last */
    const char *certificate_files[3];             /* krb5kdc's, its authority, kadmind's; or NULL */
    void (*log)(int priority, const char *text);  /* of the writer's troubles; from any thread */
} kdc_metrics_options;

/*
 * The page of a realm: made at the first call, the same at all later ones of this process and of
 * those that it forks. Also begins the thread that writes, here and after each fork. NULL without
 * memory, or if another realm has this file; *error is then a text for free().
 */
kdc_metrics *kdc_metrics_open(const kdc_metrics_options *options,
                              char **error) KDC_METRICS_NOEXCEPT;

/* Ends this process's thread. The pages stay, since somebody may still count. */
void kdc_metrics_stop(void) KDC_METRICS_NOEXCEPT;

/* Microseconds of a clock that never goes back; for differences. */
uint64_t kdc_metrics_clock(void) KDC_METRICS_NOEXCEPT;

/* ---- Requests of clients ---- */

enum kdc_request_type { KDC_AS_REQ = 0, KDC_TGS_REQ = 1, KDC_REQUEST_TYPES = 2 };

/* How a request ended. The labels are in render.cc. */
enum kdc_result {
    KDC_OK,
    KDC_PREAUTH_REQUIRED,  /* the first half of most logins */
    KDC_WRONG_PASSWORD,    /* or whatever else the client should have proved */
    KDC_CLOCK_SKEW,
    KDC_UNKNOWN_CLIENT,
    KDC_UNKNOWN_SERVICE,
    KDC_CLIENT_REFUSED,    /* locked out, disabled, expired */
    KDC_POLICY,
    KDC_BAD_TICKET,        /* of a TGS-REQ, or of armor: altered, expired, of another key */
    KDC_UNSUPPORTED,       /* enctypes, mechanisms */
    KDC_TRY_STREAM,        /* the client was told to come by TCP, which proves its address */
    KDC_OVER_QUOTA,        /* the client was told of an outage, and there is none */
    KDC_REPLAY,            /* likewise: the request came too often */
    KDC_UNAVAILABLE,       /* an outage */
    KDC_OTHER,
    KDC_RESULTS
};

/* `remote`: a remote key was used, or was to be. `microseconds`: since the KDC knew of it; 0: that
 * was not measured. */
void kdc_metrics_request(kdc_metrics *m, enum kdc_request_type type, enum kdc_result result,
                         int remote, uint64_t microseconds) KDC_METRICS_NOEXCEPT;

/* For lack of a place; before anybody knows the realm, so in the page of each. */
void kdc_metrics_dropped(void) KDC_METRICS_NOEXCEPT;

/* ---- What a request waits for ---- */

enum kdc_phase {
    KDC_GATHERED, /* until the other requests of the slice were read, to be sent together */
    KDC_JOB,      /* for the answer to a job, from all three servers */
    KDC_TAG,      /* for that to a request for a tag */
    KDC_RESUMED,  /* until krb5kdc, which has one thread, went on with it */
    KDC_PHASES
};

void kdc_metrics_wait(kdc_metrics *m, enum kdc_phase phase, int32_t enctype,
                      uint64_t microseconds) KDC_METRICS_NOEXCEPT;

/* Of mpc_client.h: enum mpc_operation and enum mpc_verdict. */
void kdc_metrics_job(kdc_metrics *m, unsigned int operation,
                     unsigned int verdict) KDC_METRICS_NOEXCEPT;
void kdc_metrics_tag(kdc_metrics *m, unsigned int verdict) KDC_METRICS_NOEXCEPT;

/* ---- The servers; `server` is the index in the options ---- */

/* A job was sent once more, after an outage; a job had to wait since no triple served. */
void kdc_metrics_resent(kdc_metrics *m) KDC_METRICS_NOEXCEPT;
void kdc_metrics_held(kdc_metrics *m) KDC_METRICS_NOEXCEPT;

/* A message with so many jobs and tag requests was sent. */
void kdc_metrics_message(kdc_metrics *m, size_t server, size_t entries,
                         size_t bytes) KDC_METRICS_NOEXCEPT;

/* A server's answer, with its own verdict (of proto/kdc_key.proto). One to a request for a tag needs
 * no other server, so the shortest is about a round trip. */
void kdc_metrics_answer(kdc_metrics *m, size_t server, unsigned int wire_verdict, int is_tag,
                        uint64_t microseconds) KDC_METRICS_NOEXCEPT;

/* This process's connection stands, to which party; or it was lost. */
void kdc_metrics_connected(kdc_metrics *m, size_t server, unsigned int party) KDC_METRICS_NOEXCEPT;
void kdc_metrics_lost(kdc_metrics *m, size_t server) KDC_METRICS_NOEXCEPT;

/* ---- What a process has now ---- */

typedef struct kdc_load {
    uint64_t jobs, tags;        /* asked for and not answered */
    uint64_t held;              /* jobs that wait for a triple */
    uint64_t oldest_us;         /* how long the oldest of the three has waited */
    uint64_t queued_bytes;      /* that wait for the connections */
} kdc_load;

/* Asked for once a second, from the thread; it may take locks that requests take, for a moment. */
typedef void (*kdc_load_probe)(void *arg, kdc_load *load);

/* At most one at a time. After kdc_metrics_unwatch() returns it is not asked any more. */
void kdc_metrics_watch(kdc_metrics *m, kdc_load_probe probe, void *arg) KDC_METRICS_NOEXCEPT;
void kdc_metrics_unwatch(kdc_metrics *m) KDC_METRICS_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* KDC_PLUGIN_METRICS_KDC_METRICS_H_ */
