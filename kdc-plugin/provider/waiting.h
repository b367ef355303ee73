/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider's waits. Every wait for the servers is in this file: jobs complete on a thread of
 * the client, and the request that wants the result sleeps by the functions of the host (a fiber in
 * krb5kdc, the calling thread elsewhere).
 *
 * What is waited for is begun together. krb5kdc runs many requests in a row (a slice: what its
 * socket had to read, or what a batch of answers woke) and says when it is through. Jobs and tag
 * requests are put off until then and go to the client in one burst. So a slice costs each server a
 * message instead of one for each request: most of what a request costs is the message.
 */
#ifndef KDC_PLUGIN_PROVIDER_WAITING_H_
#define KDC_PLUGIN_PROVIDER_WAITING_H_

#include <krb5/krb5.h>

#include "kdc-plugin/client/mpc_client.h"

/* A job that was started; its result can be awaited, more than once, by one request. */
typedef struct flight flight;

/* Sends a job, now or with those of other requests. The job and all that it points to
 * stay as they are until the flight has been awaited or released. NULL if there is no memory. */
flight *flight_start(mpc_client *client, const mpc_job *job);

/* Waits for the result, which belongs to the flight. NULL if there is no memory to wait with. */
const mpc_result *flight_await(flight *f);

/* Lets go; the job may still be on its way. Wipes the result. NULL is allowed. */
void flight_release(flight *f);

/* A tag that was asked for. */
typedef struct tag_flight tag_flight;

typedef struct wanted_tag {
    uint64_t job;
    uint32_t seal;        /* of the job's */
    int32_t enctype;
    mpc_bytes ciphertext; /* stays as it is until the tag has been awaited or released */
    uint64_t request;     /* as in mpc_job */
} wanted_tag;

/* Asks for a tag, now or with what other requests ask for. NULL if there is no memory. */
tag_flight *tag_start(mpc_client *client, const wanted_tag *tag);

/* Waits for the tag. If the verdict is not MPC_OK, *detail is the text for the log, which belongs
 * to the flight. */
enum mpc_verdict tag_await(tag_flight *t, uint8_t tag[MPC_TAG_BYTES], const char **detail);

/* As flight_release(). */
void tag_release(tag_flight *t);

/* Begins everything that was put off. */
void waiting_flush(void);

#endif /* KDC_PLUGIN_PROVIDER_WAITING_H_ */
