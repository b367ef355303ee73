/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the provider remembers about one request of the KDC, in the host's request slot.
 *
 * A hint describes one job that holds everything the request is going to need (a prepared job). The
 * operations that follow are matched against its parts: same handle, same usage, same input, room
 * enough. What does not match gets a job of its own, for which the request keeps what the closed
 * table asks for: the client's handle, the grant of a verified pre-authentication, the parent
 * ticket. So does a seal under a key of enctypes 17 to 20, always: it needs its plaintext, which is
 * not known when the hint comes.
 */
#ifndef KDC_PLUGIN_PROVIDER_REQUEST_H_
#define KDC_PLUGIN_PROVIDER_REQUEST_H_

#include <krb5/remote_key_plugin.h>

#include "kdc-plugin/client/mpc_client.h"
#include "kdc-plugin/provider/source.h"
#include "kdc-plugin/provider/waiting.h"

enum {
    USAGE_PREAUTH = 1,
    USAGE_TICKET = 2,
    USAGE_AS_REPLY = 3,
    USAGE_PAC_CHECKSUM = 17,
    USAGE_AS_REQ_CHECKSUM = 56,
    USAGE_CAMMAC = 64
};

/* A job with all that it points to, but for its client's handle. */
typedef struct prepared_job {
    mpc_job job; /* operation 0: nothing is prepared */
    mpc_open open;
    mpc_seal seals[MPC_MAX_SEALS]; /* of GCM enctypes */
    int used[MPC_MAX_SEALS];       /* a seal gives one ciphertext */
    mpc_make_mac mac;
    uint8_t own_key[MPC_HANDLE_BYTES]; /* the client's, or that of the TGT */
    uint8_t ticket_key[MPC_HANDLE_BYTES];
    krb5_data message, as_req; /* to be opened; to make a checksum of */
    flight *flight;            /* NULL until it is sent */
} prepared_job;

/* The first ticket that was opened for a TGS-REQ, or the pre-authentication of an AS-REQ. */
typedef struct opened_message {
  krb5_data message; /* without data if there is none */
  uint8_t handle[MPC_HANDLE_BYTES];
  krb5_enctype enctype;
} opened_message;

/* A ticket that was handed out without its tag, which is its end: see finish_with_reply in
 * krb5/remote_key_plugin.h. */
typedef struct late_tag {
    tag_flight *flight; /* NULL: there is none */
    uint32_t index;     /* of the prepared job's seals */
    krb5_data message;  /* the ticket, in the host's memory */
} late_tag;

/* By which certificate the client was proved, for whoever holds the TGT's key to verify again. */
typedef struct certificate_proof {
    krb5_data pa_pk_as_req, request_body; /* without data if it was not */
} certificate_proof;

enum { REQUEST_LABEL_BYTES = 32 };

typedef struct request {
    /* Random, so that it tells nothing: by it the logs of krb5kdc and of the three servers name the
     * request. */
    uint64_t id;
    char label[REQUEST_LABEL_BYTES]; /* "request 0123456789abcdef" */
    uint64_t began;                  /* kdc_metrics_clock() */
    int asked;                       /* the servers were, or would have been */
    int try_stream;                  /* they would answer if its address were proved */
    int over_quota, replayed;        /* they did not, and nothing is out of order */
    krb5_context context; /* of its realm, and that realm's client; NULL before the first operation */
    mpc_client *client_of_realm;
    int is_as; /* an AS-REQ: tickets are sealed for the client of this request */
    int has_noted; /* the KDB module has seen the client's entry */
    uint8_t noted[MPC_HANDLE_BYTES];
    int has_client;
    uint8_t client[MPC_HANDLE_BYTES];
    request_source source;
    uint64_t grant;       /* job that passed the client's gate, or 0 */
    opened_message parent;
    opened_message preauth; /* that gave the grant */
    certificate_proof certificate;
    int regained;           /* it gave it a second time */
    int lost; /* an answer or the grant was, in an outage: what is refused then is part of it */
    prepared_job prepared;
    int tag_may_be_late; /* the hint says so of the ticket */
    late_tag late;
} request;

mpc_bytes bytes_of(const krb5_data *data);

/* The request being processed, made if `create`; NULL without one, or without memory. */
request *request_current(int create);
void request_free(request *r);

/* Whether the request is of the realm with this client; its first operation decides. */
int request_is_of(request *r, krb5_context context, mpc_client *client);

/* The most bytes of which the servers make a checksum. */
unsigned int max_checksummed(krb5_enctype enctype, krb5_keyusage usage);

/* Says in a job which request it is for, and in one that opens something where that came from. r may
 * be NULL. */
void request_tell(request *r, mpc_job *job);

/* Remembers by which handle the servers know the client, whatever its reply key is going to be. */
void request_note_client(request *r, const uint8_t *handle);

/* Fill in r from a hint. What lacks memory is left out: a hint is only advice. */
void request_take_as_hint(request *r, const krb5_remote_key_as_hint *hint);
void request_take_tgs_hint(request *r, const krb5_remote_key_tgs_hint *hint);

/* Adds the client's proof by certificate, if there is one, to a login that seals its ticket. */
void request_add_certificate(const request *r, mpc_job *job);

/* Remember the parent ticket, unless one is known (0 without memory), and the last
 * pre-authentication, which is seldom needed again. */
int request_remember_parent(request *r, krb5_enctype enctype, const uint8_t *handle,
                            const krb5_data *message);
void request_remember_preauth(request *r, krb5_enctype enctype, const uint8_t *handle,
                              const krb5_data *message);

/* Sends the prepared job if it has not been sent. Returns 0 if there is none, or no memory. */
int request_send_prepared(request *r, mpc_client *client);

/* Whether the prepared job has this part (and, for seals, its index, which is marked used). */
int request_has_open(const request *r, const uint8_t *handle, uint32_t usage,
                     const krb5_data *message);
int request_take_seal(request *r, const uint8_t *handle, uint32_t usage, size_t plain_length,
                      uint32_t *index);
int request_has_mac(const request *r, const uint8_t *handle, const krb5_data *data);

#endif /* KDC_PLUGIN_PROVIDER_REQUEST_H_ */
