/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/request.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/provider/enctypes.h"

static request *begin_request(void)
{
    request *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return NULL;
    randombytes_buf(&r->id, sizeof(r->id));
    snprintf(r->label, sizeof(r->label), "request %016" PRIx64, r->id);
    r->began = kdc_metrics_clock();
    return r;
}

request *request_current(int create)
{
    void **slot = krb5_c_remote_key_host()->request_slot();

    if (slot == NULL)
        return NULL;
    if (*slot == NULL && create)
        *slot = begin_request();
    return *slot;
}

static void prepared_clear(prepared_job *p)
{
    flight_release(p->flight);
    free(p->message.data);
    free(p->as_req.data);
    memset(p, 0, sizeof(*p));
}

static void certificate_clear(certificate_proof *proof)
{
    free(proof->pa_pk_as_req.data);
    free(proof->request_body.data);
    memset(proof, 0, sizeof(*proof));
}

void request_free(request *r)
{
    if (r == NULL)
        return;
    prepared_clear(&r->prepared);
    tag_release(r->late.flight);
    free(r->parent.message.data);
    free(r->preauth.message.data);
    certificate_clear(&r->certificate);
    free(r);
}

int request_is_of(request *r, krb5_context context, mpc_client *client)
{
    if (r->client_of_realm == NULL) {
        r->client_of_realm = client;
        r->context = context;
    }
    return r->client_of_realm == client;
}

static int copy_data(const krb5_data *from, krb5_data *to)
{
    to->magic = KV5M_DATA;
    to->length = from->length;
    to->data = malloc(from->length + 1);
    if (to->data == NULL)
        return 0;
    if (from->length > 0)
        memcpy(to->data, from->data, from->length);
    return 1;
}

mpc_bytes bytes_of(const krb5_data *data)
{
    return (mpc_bytes){(const uint8_t *)data->data, data->length};
}

static int same_bytes(mpc_bytes a, const krb5_data *b)
{
    return a.size == b->length && (a.size == 0 || memcmp(a.data, b->data, a.size) == 0);
}

static int same_handle(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, MPC_HANDLE_BYTES) == 0;
}

/* Copies the handle of a reference; false if there is no key or it is local. */
static int handle_of(const krb5_keyblock *key, uint8_t *handle)
{
    krb5_data data;

    if (key == NULL || krb5_c_remote_key_handle(key, &data) != 0)
        return 0;
    memcpy(handle, data.data, MPC_HANDLE_BYTES);
    return 1;
}

/* What is too long is refused when it is to be opened. */
static void add_open(prepared_job *p, krb5_enctype enctype, uint32_t usage,
                     const krb5_data *message)
{
    if (message->length > most_bytes(enctype, usage) || !copy_data(message, &p->message))
        return;
    p->open = (mpc_open){p->own_key, usage, bytes_of(&p->message), enctype};
    p->job.open = &p->open;
}

/* Only of GCM keys: the others' ciphertext cannot be begun without the plaintext. What is too long is left
 * out, as by add_mac(). */
static void add_seal(prepared_job *p, krb5_enctype enctype, const uint8_t *handle,
                     uint32_t usage, size_t size)
{
    if (!gcm_enctype(enctype) || size > most_bytes(enctype, usage) || p->job.seal_count == MPC_MAX_SEALS)
        return;
    p->seals[p->job.seal_count++] =
        (mpc_seal){handle, usage, (uint32_t)size, enctype, {NULL, 0}};
    p->job.seals = p->seals;
}

/* What is too long is left out: it would make the whole job malformed, and the pre-authentication is
 * to be judged first. */
static void add_mac(prepared_job *p, krb5_enctype enctype, const krb5_data *as_req)
{
    if (as_req->length > most_bytes(enctype, USAGE_AS_REQ_CHECKSUM) ||
        !copy_data(as_req, &p->as_req))
        return;
    p->mac = (mpc_make_mac){p->own_key, USAGE_AS_REQ_CHECKSUM, bytes_of(&p->as_req), enctype};
    p->job.make_mac = &p->mac;
}

/* Of what is judged by where it comes from: what opens something, and logins, which may be
 * anybody's (an anonymous client). */
static void tell_source(request *r, mpc_job *job)
{
    request_source unknown = {0};
    request_source *source = r != NULL ? &r->source : &unknown;

    if (job->open == NULL && job->operation != MPC_LOGIN)
        return;
    source_of_request(r != NULL ? r->context : NULL, source);
    job->source = source->id;
    job->source_proved = source->proved;
}

void request_tell(request *r, mpc_job *job)
{
    if (r != NULL) {
        job->request = r->id;
        r->asked = 1;
    }
    tell_source(r, job);
}

void request_note_client(request *r, const uint8_t *handle)
{
    memcpy(r->noted, handle, MPC_HANDLE_BYTES);
    r->has_noted = 1;
}

/* Sets r->client from the reply key; if that is local (a service's own key, or one that OTP or
 * PKINIT has put in place of the client's), from the client's entry. Returns whether the reply key
 * is remote. */
static int find_client(request *r, const krb5_keyblock *reply_key)
{
    const int remote = handle_of(reply_key, r->client);

    if (!remote && r->has_noted)
        memcpy(r->client, r->noted, MPC_HANDLE_BYTES);
    r->has_client = remote || r->has_noted;
    return remote;
}

/* The pre-authentication may have been verified before the hint: under another key of the client's
 * than that of the reply. Its grant pays for the rest. */
static enum mpc_operation login_operation(const request *r)
{
    return r->grant != 0 ? MPC_SEAL_GRANTED : MPC_LOGIN;
}

/* What is too long the servers would not look at: without it they say what they want. */
static void take_certificate(certificate_proof *proof, const krb5_remote_key_as_hint *hint)
{
    krb5_data element;

    certificate_clear(proof);
    if (hint->proof == NULL || hint->request_body == NULL ||
        hint->proof->pa_type != KRB5_PADATA_PK_AS_REQ ||
        hint->proof->length > MPC_MAX_PROOF_BYTES ||
        hint->request_body->length > MPC_MAX_PROOF_BYTES)
        return;
    element = (krb5_data){KV5M_DATA, hint->proof->length, (char *)hint->proof->contents};
    if (!copy_data(&element, &proof->pa_pk_as_req) ||
        !copy_data(hint->request_body, &proof->request_body))
        certificate_clear(proof);
}

static int seals_ticket(const mpc_job *job)
{
    size_t i;

    for (i = 0; i < job->seal_count; i++) {
        if (job->seals[i].usage == USAGE_TICKET)
            return 1;
    }
    return 0;
}

void request_add_certificate(const request *r, mpc_job *job)
{
    if (job->operation != MPC_LOGIN || job->open != NULL || !seals_ticket(job) ||
        r->certificate.pa_pk_as_req.data == NULL)
        return;
    job->pa_pk_as_req = bytes_of(&r->certificate.pa_pk_as_req);
    job->request_body = bytes_of(&r->certificate.request_body);
}

void request_take_as_hint(request *r, const krb5_remote_key_as_hint *hint)
{
    prepared_job *p = &r->prepared;
    mpc_job *job = &p->job;
    int remote;

    prepared_clear(p);
    r->is_as = 1;
    take_certificate(&r->certificate, hint);
    remote = find_client(r, hint->client_key);
    r->tag_may_be_late = remote && hint->finish_with_reply; /* the reply comes by us */
    if (!r->has_client)
        return; /* nothing may be sealed for a client whom the servers do not know */
    memcpy(p->own_key, r->client, MPC_HANDLE_BYTES);
    job->client = r->client;
    if (remote && r->grant == 0 && hint->preauth_cipher != NULL) {
        add_open(p, hint->client_key->enctype, USAGE_PREAUTH, hint->preauth_cipher);
        if (job->open == NULL)
            return; /* and nothing is sealed before it was */
    }
    if (handle_of(hint->ticket_key, p->ticket_key))
        add_seal(p, hint->ticket_key->enctype, p->ticket_key, USAGE_TICKET, hint->ticket_size);
    if (remote && hint->reply_size > 0)
        add_seal(p, hint->client_key->enctype, p->own_key, USAGE_AS_REPLY, hint->reply_size);
    if (remote && hint->as_req != NULL)
        add_mac(p, hint->client_key->enctype, hint->as_req);
    if (job->seal_count > 0 || job->make_mac != NULL)
        job->operation = login_operation(r);
    else if (job->open != NULL)
        job->operation = MPC_OPEN_PREAUTH;
    request_add_certificate(r, job);
}

void request_take_tgs_hint(request *r, const krb5_remote_key_tgs_hint *hint)
{
    prepared_job *p = &r->prepared;

    prepared_clear(p);
    if (hint->ticket_cipher == NULL || !handle_of(hint->tgt_key, p->own_key))
        return;
    (void)request_remember_parent(r, hint->tgt_key->enctype, p->own_key, hint->ticket_cipher);
    add_open(p, hint->tgt_key->enctype, USAGE_TICKET, hint->ticket_cipher);
    if (p->job.open == NULL)
        return;
    if (handle_of(hint->ticket_key, p->ticket_key))
        add_seal(p, hint->ticket_key->enctype, p->ticket_key, USAGE_TICKET, hint->ticket_size);
    p->job.operation = p->job.seal_count > 0 ? MPC_REISSUE_TICKET : MPC_OPEN_TICKET;
}

static int remember(opened_message *opened, krb5_enctype enctype, const uint8_t *handle,
                     const krb5_data *message)
{
    if (!copy_data(message, &opened->message))
        return 0;
    memcpy(opened->handle, handle, MPC_HANDLE_BYTES);
    opened->enctype = enctype;
    return 1;
}

int request_remember_parent(request *r, krb5_enctype enctype, const uint8_t *handle,
                            const krb5_data *message)
{
    return r->parent.message.data != NULL || remember(&r->parent, enctype, handle, message);
}

void request_remember_preauth(request *r, krb5_enctype enctype, const uint8_t *handle,
                              const krb5_data *message)
{
    free(r->preauth.message.data);
    r->preauth.message.data = NULL;
    (void)remember(&r->preauth, enctype, handle, message);
}

int request_send_prepared(request *r, mpc_client *client)
{
    prepared_job *p = &r->prepared;

    if (p->job.operation != 0 && p->flight == NULL) {
        if (p->job.operation == MPC_SEAL_GRANTED)
            p->job.grant = r->grant;
        request_tell(r, &p->job);
        p->flight = flight_start(client, &p->job);
    }
    return p->flight != NULL;
}

int request_has_open(const request *r, const uint8_t *handle, uint32_t usage,
                     const krb5_data *message)
{
    const mpc_job *job = &r->prepared.job;

    return job->operation != 0 && job->open != NULL && job->open->usage == usage &&
           same_handle(job->open->handle, handle) && same_bytes(job->open->message, message);
}

int request_take_seal(request *r, const uint8_t *handle, uint32_t usage, size_t plain_length,
                      uint32_t *index)
{
    prepared_job *p = &r->prepared;
    uint32_t i;

    for (i = 0; p->job.operation != 0 && i < p->job.seal_count; i++) {
        const mpc_seal *seal = &p->seals[i];

        if (p->used[i] || seal->usage != usage || !same_handle(seal->handle, handle) ||
            seal->max_plaintext < plain_length)
            continue;
        p->used[i] = 1;
        *index = i;
        return 1;
    }
    return 0;
}

int request_has_mac(const request *r, const uint8_t *handle, const krb5_data *data)
{
    const mpc_job *job = &r->prepared.job;

    return job->operation != 0 && job->make_mac != NULL &&
           same_handle(job->make_mac->handle, handle) && same_bytes(job->make_mac->data, data);
}
